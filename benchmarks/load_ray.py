"""The clients of ``benchmarks.load`` on ``soar serve --ray --replicas 2``, one of which is killed in the middle.

    python -m benchmarks.load_ray                             64 clients for 2 minutes
    python -m benchmarks.load_ray --seconds 20 --clients 16   a first look

1. Two replicas of the embedded model behind Ray's proxy, on a cluster that the command starts on this machine.
2. In the middle the replica that has more rows is killed with SIGKILL.
3. Every answer must be the text of offline ``generate``. Every other request must be told to come back (429), or that
   its replica was lost: by status 503 with ``Retry-After``, or by the last event of its stream. Nobody waits for more
   than two minutes.

It prints a table and, if it lasts as long as usual, writes it to ``docs/results/load.md``. It fails if anything of the
third rule does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import time
from dataclasses import dataclass, field

import httpx

from benchmarks.load import CLIENTS, Tally, besieged, connection, expected, percentiles, server
from benchmarks.pages import RESULTS, conditions, table, write

SECONDS = 120.0


@dataclass
class Kill:
    """What was killed and when, and what the replicas had done by then; ``back`` is when there were two again."""

    at: float = 0.0
    back: float = 0.0
    searches: dict[str, int] = field(default_factory=dict)

    async def __call__(self, url: str, seconds: float) -> None:
        await asyncio.sleep(seconds / 2)
        async with connection(url) as http:
            found = await figures(http)
            self.searches = numbers(found, 'soar_searches_total{end="finished",')
            rows = numbers(found, "soar_rows_live{")
            lost = max(rows, key=lambda name: rows[name])
            pids = {name: int(pid) for pid, name in re.findall(r'pid="(\d+)",replica="(\w+)"', found)}
            self.at = time.monotonic()
            os.kill(pids[lost], signal.SIGKILL)
            while len({*numbers(await figures(http), "soar_rows_live{")} - {lost}) < 2:
                await asyncio.sleep(0.1)
            self.back = time.monotonic()


async def figures(http: httpx.AsyncClient) -> str:
    answer = await http.get("/metrics")
    return answer.text if answer.status_code == 200 else ""


def numbers(text: str, start: str) -> dict[str, int]:
    """The values of the figure whose lines start so, by replica."""
    lines = re.findall(rf'^{re.escape(start)}replica="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {name: int(float(value)) for name, value in lines}


def told(tally: Tally, kill: Kill) -> str:
    counts = tally.counts
    rows = [
        ("answered, each with the text of offline `generate`", counts["answered"]),
        ("lost without a word, with another text, or not answered", len(tally.wrong)),
        ("told that the replica was lost: by 503, in a stream", f"{counts['503']}, {counts['broken off']}"),
        ("from the kill until the last of them was told", f"{1000 * (max(tally.retries) - kill.at):.0f} ms"),
        ("from the kill until there were two replicas again", f"{kill.back - kill.at:.1f} s"),
        ("searches of each replica before the kill", ", ".join(map(str, kill.searches.values()))),
        ("asked to come back (429)", counts["429"]),
        ("clients that left", counts["left"]),
        ("nonsense, refused", counts["refused"]),
        ("latency, p50 / p95 / p99", f"{' / '.join(percentiles(tally.waits))} ms"),
    ]
    return table(("", ""), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    texts, kill = expected(), Kill()
    with server("--ray", "--replicas", "2") as (url, pid):
        siege = besieged(url, pid, texts, given.clients, given.seconds, lambda: kill(url, given.seconds))
        tally = asyncio.run(siege)
    text = told(tally, kill)
    section = f"Two replicas on Ray, one killed: {given.clients} clients for {given.seconds:.0f} s"
    print(f"{section}\n\n{text}\n")
    if given.seconds >= SECONDS and given.clients >= CLIENTS:
        write(RESULTS / "load.md", "Load", section, f"`python -m benchmarks.load_ray`. {conditions()}\n\n{text}")
    for wrong in tally.wrong[:20]:
        print(wrong)
    raise SystemExit(bool(tally.wrong) or not tally.retries)


if __name__ == "__main__":
    main()
