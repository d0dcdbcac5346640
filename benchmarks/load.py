"""Many clients of one ``soar serve``, some of which leave, read slowly or ask for nonsense.

    python -m benchmarks.load                             64 clients for 3 minutes, then tokens per second
    python -m benchmarks.load --seconds 10 --rate 3       a first look

1. A server process on loopback, with the embedded model. 64 clients send requests one after the other: most wait for
   their answer or read its stream, some leave in the middle, some read slowly, some send what must be refused.
2. Every answer must be the text of offline ``generate``, every client must get an answer, and the server's memory in
   the last third must be no more than ``--growth`` MB above that after the first.
3. For the time until a client's rows are free, clients leave one by one while the server has nothing else to do.
4. Tokens per second are measured with 1, 4, 16 and 64 clients that do nothing but ask and wait.

It prints tables and, if it lasts as long as usual, writes them to ``docs/results/load.md``. It fails if anything of the
second rule does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.pages import RESULTS, conditions, table, write

CLIENTS, SECONDS = 64, 180.0
RATES = (1, 4, 16, 64)
QUEUE = 16
MODEL, TOKENS = "mini-llada", 24
STRATEGIES = ("greedy", "adaptive", "pbs", "soar", "deliberate")
PROMPTS = [f"Tom has {number} apples. Tom buys {number + 3} more apples." for number in range(1, 9)]
NONSENSE: list[dict[str, Any]] = [
    {"prompt": "a", "beam": "wide"},
    {"prompt": "a", "nothing": 1},
    {"prompt": "a" * 20_000},
    {"prompt": "a", "strategy": "luck"},
    {"prompt": "a", "max_tokens": 10**6},
]
WAYS = {"wait": 6, "stream": 5, "leave": 3, "slow": 1, "nonsense": 1}
"""What clients do, and how often."""
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass
class Tally:
    """What has happened so far; ``waits`` are the seconds from a request to its whole answer, ``retries`` the times at
    which clients were told that a replica was lost.
    """

    counts: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    retries: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class ReplicaLost(httpx.RemoteProtocolError):
    """The replica that worked on a request was lost; the client is asked to send it again."""


@contextmanager
def server(*more: str) -> Iterator[tuple[str, int]]:
    """``soar serve`` on a free port: its address and its process."""
    command = [sys.executable, "-m", "soar_dlm", "serve", "-m", MODEL, "--device", "cpu", "--port", "0", *more]
    process = subprocess.Popen([*command, "--queue", str(QUEUE)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = ""
        while (found := re.search(r"http://\S+", said)) is None:
            said = process.stderr.readline()
            if not said:
                raise SystemExit("The server did not start; try `soar serve` by hand.")
        threading.Thread(target=process.stderr.read, daemon=True).start()  # its log must not fill the pipe
        yield found[0], process.pid
        process.terminate()
        if process.wait(120) != 0:
            raise SystemExit(f"The server ended with exit code {process.returncode}.")
    finally:
        process.kill()


def expected() -> dict[tuple[str, str], str]:
    """Strategy and prompt -> the text of offline ``generate``."""
    from soar_dlm.lm import load

    lm = load(MODEL, device="cpu")
    texts: dict[tuple[str, str], str] = {}
    for name in STRATEGIES:
        results = lm.generate(PROMPTS, name, max_new_tokens=TOKENS, trace=False)
        texts |= {(name, prompt): result.text for prompt, result in zip(PROMPTS, results, strict=True)}
    return texts


class Client:
    """One client, which asks again and again until the time is over."""

    def __init__(self, http: httpx.AsyncClient, texts: dict[tuple[str, str], str], tally: Tally, seed: int) -> None:
        self._http, self._texts, self._tally = http, texts, tally
        self._random = random.Random(seed)

    async def run(self, end: float) -> None:
        while time.monotonic() < end:
            way = self._random.choices([*WAYS], [*WAYS.values()])[0]
            try:
                await getattr(self, f"_{way}")()
            except ReplicaLost:
                self._tally.counts["broken off"] += 1
                self._tally.retries.append(time.monotonic())
            except httpx.HTTPError as error:
                self._tally.counts["lost"] += 1
                self._tally.wrong.append(f"{way}: {error!r}")

    def _body(self, **more: Any) -> dict[str, Any]:
        name, prompt = self._random.choice([*self._texts])
        return {"prompt": prompt, "strategy": name, "max_tokens": TOKENS, **more}

    async def _wait(self) -> None:
        body, began = self._body(), time.monotonic()
        answer = await self._http.post("/v1/completions", json=body)
        if await self._accepted(answer):
            self._judge(body, answer.json()["choices"][0]["text"], began)

    async def _stream(self, pause: float = 0.0) -> None:
        body, began, text = self._body(stream=True), time.monotonic(), ""
        async with self._http.stream("POST", "/v1/completions", json=body) as answer:
            if not await self._accepted(answer):
                return
            async for chunk in chunks(answer):
                await asyncio.sleep(pause)
                text += "".join(choice["text"] for choice in chunk["choices"])
        self._judge(body, text, began, timed=not pause)

    async def _slow(self) -> None:
        await self._stream(self._random.uniform(0.05, 0.3))

    async def _leave(self) -> None:
        """Leave before the answer, or in the middle of the stream."""
        with suppress(asyncio.TimeoutError):
            work = self._wait() if self._random.random() < 0.5 else self._stream()
            await asyncio.wait_for(work, self._random.uniform(0.0, 0.5))
            return
        self._tally.counts["left"] += 1

    async def _nonsense(self) -> None:
        answer = await self._http.post("/v1/completions", json=self._random.choice(NONSENSE))
        self._tally.counts["refused"] += answer.status_code == 400
        if answer.status_code not in (400, 429) and not _again(answer):  # some is seen when the text is prepared
            self._tally.wrong.append(f"nonsense was answered with {answer.status_code}")

    async def _accepted(self, answer: httpx.Response) -> bool:
        """Whether the request was taken; one that comes too early is asked to come back, and does."""
        if answer.status_code == 429:
            self._tally.counts["429"] += 1
            await asyncio.sleep(self._random.uniform(0.0, float(answer.headers["retry-after"])))
        elif _again(answer):
            self._tally.counts["503"] += 1
            self._tally.retries.append(time.monotonic())
            await asyncio.sleep(float(answer.headers["retry-after"]))
        elif answer.status_code != 200:
            self._tally.wrong.append(f"status {answer.status_code}")
        return answer.status_code == 200

    def _judge(self, body: dict[str, Any], text: str, began: float, timed: bool = True) -> None:
        self._tally.counts["answered"] += 1
        if timed:
            self._tally.waits.append(time.monotonic() - began)
        if text != self._texts[body["strategy"], body["prompt"]]:
            self._tally.wrong.append(f"another text for {body}: {text!r}")


def _again(answer: httpx.Response) -> bool:
    """Whether a client is asked to send its request again, because a replica was lost."""
    return answer.status_code == 503 and "retry-after" in answer.headers


async def chunks(answer: httpx.Response) -> AsyncIterator[Any]:
    """The objects of a stream; one that ends without its mark was lost."""
    ended = False
    async for line in answer.aiter_lines():
        if line == "data: [DONE]":
            ended = True
        elif line.startswith("data: "):
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk and chunk["error"]["code"] == "replica_lost":
                raise ReplicaLost(chunk["error"]["message"])
            if "error" in chunk:
                raise httpx.RemoteProtocolError(chunk["error"]["message"])
            yield chunk
    if not ended:
        raise httpx.RemoteProtocolError("The stream ended too early.")


def connection(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=120, limits=httpx.Limits(max_connections=None))


async def besieged(
    url: str,
    pid: int,
    texts: dict[tuple[str, str], str],
    clients: int,
    seconds: float,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Tally:
    """All kinds of clients at once, while something else may happen, too."""
    tally, end = Tally(), time.monotonic() + seconds

    async def weigh() -> None:
        while time.monotonic() < end:
            tally.memory.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB)
            await asyncio.sleep(seconds / 90)

    async with connection(url) as http:
        work = [Client(http, texts, tally, seed).run(end) for seed in range(clients)]
        await asyncio.gather(weigh(), *work, *([] if meanwhile is None else [meanwhile()]))
    return tally


async def freed(url: str, times: int) -> list[float]:
    """Seconds from a client's leaving until its rows are free, with the server asked again and again."""
    found: list[float] = []
    body = {"prompt": "Tom", "strategy": "pbs", "max_tokens": 400, "early_exit": False, "stream": True}
    async with connection(url) as http:
        for _ in range(times):
            async with http.stream("POST", "/v1/completions", json={**body, "diffusing": True}) as answer:
                await anext(answer.aiter_lines())
            began = time.monotonic()
            while "soar_rows_live 0.0" not in (await http.get("/metrics")).text:
                pass
            found.append(time.monotonic() - began)
    return found


async def rate(url: str, texts: dict[tuple[str, str], str], clients: int, seconds: float) -> tuple[float, Tally]:
    """Tokens per second for clients that ask and wait; what they ask is the same for all numbers of clients."""
    tally, tokens, began = Tally(), 0, time.monotonic()

    async def ask(http: httpx.AsyncClient, number: int) -> None:
        nonlocal tokens
        turn = number
        while time.monotonic() < began + seconds:
            body = {"prompt": PROMPTS[turn % len(PROMPTS)], "strategy": "soar", "max_tokens": TOKENS}
            turn, asked = turn + 1, time.monotonic()
            answer = await http.post("/v1/completions", json=body)
            if answer.status_code == 429:
                tally.counts["429"] += 1
                await asyncio.sleep(0.05)
                continue
            tally.waits.append(time.monotonic() - asked)
            tokens += answer.json()["usage"]["completion_tokens"]

    async with connection(url) as http:
        await asyncio.gather(*(ask(http, number) for number in range(clients)))
    return tokens / (time.monotonic() - began), tally


def percentiles(seconds: list[float]) -> list[str]:
    return [f"{1000 * value:.0f}" for value in np.percentile(seconds or [np.nan], (50, 95, 99))]


def grown(memory: list[float]) -> float:
    """How much more memory the server takes in the last third than when a third of the time was over."""
    third = len(memory) // 3
    return max(memory[-third:]) - max(memory[: third + 1]) if third else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=float, default=20.0, help="seconds for each number of clients")
    parser.add_argument("--growth", type=float, default=16.0, help="MB that the server may grow by")
    given = parser.parse_args()
    texts = expected()
    with server() as (url, pid):
        tally = asyncio.run(besieged(url, pid, texts, given.clients, given.seconds))
        leaving = asyncio.run(freed(url, 20))
        rates = {clients: asyncio.run(rate(url, texts, clients, given.rate)) for clients in RATES}
    more = grown(tally.memory)
    sections: dict[str, Callable[[], str]] = {
        f"{given.clients} clients for {given.seconds:.0f} s": lambda: siege(tally, more, leaving),
        "Tokens per second": lambda: throughput(rates),
    }
    for section, text in sections.items():
        print(f"{section}\n\n{text()}\n")
        if given.seconds >= SECONDS and given.clients >= CLIENTS:
            write(RESULTS / "load.md", "Load", section, f"`python -m benchmarks.load`. {conditions()}\n\n{text()}")
    for wrong in tally.wrong[:20]:
        print(wrong)
    raise SystemExit(bool(tally.wrong) or more > given.growth)


def siege(tally: Tally, more: float, leaving: list[float]) -> str:
    counts = tally.counts
    rows = [
        ("answered, each with the text of offline `generate`", counts["answered"]),
        ("lost, or with another text", len(tally.wrong)),
        ("asked to come back (429)", counts["429"]),
        ("clients that left", counts["left"]),
        ("nonsense, refused", counts["refused"]),
        ("latency, p50 / p95 / p99", f"{' / '.join(percentiles(tally.waits))} ms"),
        ("from leaving to free rows, p50 / p95 / p99", f"{' / '.join(percentiles(leaving))} ms"),
        ("memory, at first and at last", f"{tally.memory[0]:.0f} MB, {tally.memory[-1]:.0f} MB"),
        ("memory, last third over first", f"{more:+.1f} MB"),
    ]
    return table(("", ""), rows)


def throughput(rates: dict[int, tuple[float, Tally]]) -> str:
    head = ("clients", "tokens/s", "p50, ms", "p95, ms", "p99, ms", "429")
    rows = [
        (clients, f"{speed:.0f}", *percentiles(tally.waits), tally.counts["429"])
        for clients, (speed, tally) in rates.items()
    ]
    return table(head, rows)


if __name__ == "__main__":
    main()
