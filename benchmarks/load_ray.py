"""The clients of ``benchmarks.load`` on ``soar serve --ray --replicas 2``, when a replica is killed, and in an update.

    python -m benchmarks.load_ray kill                             64 clients for 2 minutes
    python -m benchmarks.load_ray update                           the same, with an update in place of the kill
    python -m benchmarks.load_ray kill --seconds 20 --clients 16   a first look

1. Two replicas of the embedded model behind Ray's proxies, on a cluster of three nodes on this machine.
2. In the middle the replica that has more rows is killed with SIGKILL, or the command is run again with another option.
3. Every answer must be the text of offline ``generate``. Every other request must be told to come back (429), or that
   its replica was lost: by status 503 with ``Retry-After``, or by the last event of its stream. In an update, none may
   be lost. Nobody waits for more than two minutes.

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
from contextlib import ExitStack
from dataclasses import dataclass, field

import httpx

from benchmarks.load import CLIENTS, Tally, besieged, connection, expected, percentiles, server
from benchmarks.pages import RESULTS, conditions, table, write
from benchmarks.ray_nodes import nodes

SECONDS = 120.0
SAID = {"kill": "one killed", "update": "updated"}


@dataclass
class Change:
    """What was done in the middle; ``back`` is when two replicas that were not there or not touched took requests."""

    address: str
    at: float = 0.0
    back: float = 0.0
    searches: dict[str, int] = field(default_factory=dict)

    @property
    def start(self) -> tuple[str, ...]:
        """The options that start the service."""
        return ("--ray", self.address, "--replicas", "2")

    async def __call__(self, url: str, given: argparse.Namespace, stack: ExitStack) -> None:
        await asyncio.sleep(given.seconds / 2)
        async with connection(url) as http:
            found = await figures(http)
            self.searches = numbers(found, 'soar_searches_total{end="finished",')
            rows = numbers(found, "soar_rows_live{")
            self.at = time.monotonic()
            if given.how == "kill":
                gone = {max(rows, key=lambda name: rows[name])}
                pids = {name: int(pid) for pid, name in re.findall(r'pid="(\d+)",replica="(\w+)"', found)}
                os.kill(pids[min(gone)], signal.SIGKILL)
            else:
                gone = {*rows}
                again = server(*self.start, "--max-choices", "8")
                await asyncio.to_thread(stack.enter_context, again)
            while len({*numbers(await figures(http), "soar_rows_live{")} - gone) < 2:
                await asyncio.sleep(0.1)
            self.back = time.monotonic()


async def figures(http: httpx.AsyncClient) -> str:
    answer = await http.get("/metrics")
    return answer.text if answer.status_code == 200 else ""


def numbers(text: str, start: str) -> dict[str, int]:
    """The values of the figure whose lines start so, by replica."""
    lines = re.findall(rf'^{re.escape(start)}replica="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {name: int(float(value)) for name, value in lines}


def told(tally: Tally, change: Change, how: str) -> str:
    counts = tally.counts
    rows = [
        ("answered, each with the text of offline `generate`", counts["answered"]),
        ("lost without a word, with another text, or not answered", len(tally.wrong)),
        ("told that the replica was lost: by 503, in a stream", f"{counts['503']}, {counts['broken off']}"),
    ]
    if tally.retries:
        rows.append(
            (f"from the {how} until the last of them was told", f"{1000 * (max(tally.retries) - change.at):.0f} ms")
        )
    new = "new " if how == "update" else ""
    rows += [
        (f"from the {how} until there were two {new}replicas", f"{change.back - change.at:.1f} s"),
        (f"searches of each replica before the {how}", ", ".join(map(str, change.searches.values()))),
        ("asked to come back (429)", counts["429"]),
        ("clients that left", counts["left"]),
        ("nonsense, refused", counts["refused"]),
        ("latency, p50 / p95 / p99", f"{' / '.join(percentiles(tally.waits))} ms"),
    ]
    return table(("", ""), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=("kill", "update"))
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    texts = expected()
    with nodes(3) as cluster, ExitStack() as stack:
        change = Change(cluster.address)
        url, pid = stack.enter_context(server(*change.start))
        siege = besieged(url, pid, texts, given.clients, given.seconds, lambda: change(url, given, stack))
        tally = asyncio.run(siege)
    text = told(tally, change, given.how)
    section = f"Two replicas on Ray, {SAID[given.how]}: {given.clients} clients for {given.seconds:.0f} s"
    print(f"{section}\n\n{text}\n")
    if given.seconds >= SECONDS and given.clients >= CLIENTS:
        command = f"`python -m benchmarks.load_ray {given.how}`"
        write(RESULTS / "load.md", "Load", section, f"{command}. {conditions()}\n\n{text}")
    for wrong in tally.wrong[:20]:
        print(wrong)
    raise SystemExit(bool(tally.wrong) or bool(tally.retries) != (given.how == "kill"))


if __name__ == "__main__":
    main()
