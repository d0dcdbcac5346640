"""Is every mistake answered by a sentence? Malformed calls, files and commands, each with the same three questions.

    python -m benchmarks.fuzz                                    all parts, more than 50,000 calls
    python -m benchmarks.fuzz --parts api loading --calls 2000   some parts, with as many calls of each
    python -m benchmarks.fuzz --first 1000                       other calls: chunks from this number on

1. Nothing but a SoarError may come out. 2. No stack trace may be shown. 3. No call may hang: take over 5 seconds of
the processor's time, or stand still for 20.

Calls come in chunks. Half of them are made by hypothesis, half by damaging something valid at random; the number of the
chunk is the seed of both. They run in processes that are watched from here and replaced when one hangs. After an
interruption the same command continues where it was. The exit code is 1 if anything was found. A run of all
parts also writes its table to ``docs/results/fuzz.md``.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from multiprocessing.connection import wait

from benchmarks.journal import BUILD, Journal
from benchmarks.malformed.tally import Tally, shown
from benchmarks.malformed.worker import Chunk, Worker, quiet
from benchmarks.pages import RESULTS, conditions, write

PARTS = {
    "processes": 40,
    "api": 16_000,
    "templates": 1_000,
    "loading": 8_000,
    "command": 8_000,
    "lines": 5_000,
    "presets": 5_000,
    "recipes": 4_000,
    "results": 4_000,
}
"""The parts, and how many calls of each a full run makes."""
SIZE = 50
"""Calls of a chunk."""
LOOK = 0.25
"""Seconds between looks at workers that say nothing."""


def chunks_of(part: str, calls: int, first: int) -> list[Chunk]:
    sizes = [SIZE] * (calls // SIZE) + [calls % SIZE] * (calls % SIZE > 0)
    return [Chunk(part, number, size) for number, size in enumerate(sizes, start=first)]


def run(chunks: Iterable[Chunk], workers: int, finished: Callable[[Chunk, Tally], None]) -> None:
    """Run all chunks, some at a time; ``finished`` is told of each."""
    waiting, crew = deque(chunks), list[Worker]()
    try:
        while waiting or any(worker.chunk for worker in crew):
            crew = [worker for worker in crew if worker.alive]
            crew += [Worker() for _ in range(min(workers, len(waiting)) - len(crew))]
            for worker in crew:
                if worker.chunk is None and waiting:
                    worker.begin(waiting.popleft())
            busy = [worker for worker in crew if worker.chunk]
            wait([worker.messages for worker in busy], LOOK)
            for worker in busy:
                chunk, tally = worker.chunk, worker.listen()
                if chunk is not None and tally is not None:
                    finished(chunk, tally)
    finally:
        for worker in crew:
            worker.stop()


def fuzz(chunks: Sequence[Chunk], workers: int, journal: Journal) -> dict[str, Tally]:
    """The tallies of all parts; chunks that the journal knows are not run again."""

    def finished(chunk: Chunk, tally: Tally) -> None:
        journal.put(str(chunk), asdict(tally))
        own = [one for one in chunks if one.part == chunk.part]
        done = sum(str(one) in journal.known for one in own)
        if done == len(own) or done % 10 == 0:
            print(f"{chunk.part}: {done} of {len(own)} chunks", file=sys.stderr, flush=True)

    run([chunk for chunk in chunks if str(chunk) not in journal.known], workers, finished)
    tallies = {chunk.part: Tally() for chunk in chunks}
    for chunk in chunks:
        tallies[chunk.part].include(Tally(**journal.known[str(chunk)]))
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--calls", type=int, help="calls of each part; default: as many as make 50,000 in all")
    parser.add_argument("--first", type=int, default=0, help="the number of the first chunk, which seeds it")
    parser.add_argument("--workers", type=int, default=2, help="processes that make calls at the same time")
    parser.add_argument("--fresh", action="store_true", help="start anew after an interruption")
    given = parser.parse_args()
    quiet()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chunks = [chunk for part in given.parts for chunk in chunks_of(part, given.calls or PARTS[part], given.first)]
    journal = Journal(BUILD / "fuzz.jsonl", given.fresh)
    try:
        tallies = fuzz(chunks, given.workers, journal)
    except KeyboardInterrupt:
        raise SystemExit("fuzz: interrupted; the same command continues") from None
    journal.remove()
    found = shown(tallies)
    print(found)
    calls = sum(tally.calls for tally in tallies.values())
    if set(given.parts) == set(PARTS) and given.calls is None:
        about = f"`python -m benchmarks.fuzz`: {calls:,} malformed calls, files and commands. {conditions()}"
        write(RESULTS / "fuzz.md", "Mistakes answered by a sentence", "Malformed calls", f"{about}\n\n{found}")
    raise SystemExit(not all(tally.clean for tally in tallies.values()))


if __name__ == "__main__":
    main()
