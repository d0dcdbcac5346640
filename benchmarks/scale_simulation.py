"""A batch on 1 to 1,000 workers, simulated: what breaks first, and what a billion prompts cost.

    python -m benchmarks.scale_simulation                          takes seconds
    python -m benchmarks.scale_simulation --seconds 0.5 --chunk 1024

Writes ``docs/results/scale.md`` and the tables of ``docs/scale.md``.

What the driver, the disk and planning cost is measured by ``python -m benchmarks.cluster costs`` on this machine. What
a worker takes for a prompt is up to you, and how workers differ and how often they die are the constants below.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from benchmarks.cluster import KEPT
from benchmarks.pages import RESULTS, SCALE, conditions, fill, table, write
from soar_dlm.scale.on_ray import LONGEST_TASK, task_sizes

PAGE, TITLE = RESULTS / "scale.md", "Batches on many workers, simulated"
WORKERS = (1, 10, 100, 300, 1000)
TOGETHER = 2
"""Chunks that a worker decodes at a time. Ray Data hands it twice as many tasks, so it never waits for the next."""
LOAD_SECONDS = 90.0
"""Until a worker has its model: that of 8 billion parameters, from a local disk."""
HOURS_BETWEEN_DEATHS = 200.0
"""Of one worker, on average: machines that may be taken away at any time."""
SPREAD = 0.25
"""How much the time of a chunk varies: its standard deviation, of its mean."""
SLOW, SLOWNESS = 0.02, 2.0
"""The share of workers that are slow all the time, and how many times as long they take."""
FILE_SECONDS = 1e-3
"""To open a file on a disk that machines share, when a run resumes or merges."""
MEMORY = 16e9
"""Bytes that the driver's machine may give to the descriptions of tasks."""


@dataclass(frozen=True)
class Job:
    """What is to be done: ``seconds`` is what a worker takes for a prompt when its rows are full."""

    prompts: int
    chunk: int
    seconds: float

    @property
    def chunks(self) -> int:
        return -(-self.prompts // self.chunk)

    @property
    def chunk_seconds(self) -> float:
        return self.chunk * self.seconds


@dataclass(frozen=True)
class Outcome:
    """``use``: the work over what as many workers that are never slow, idle or dead could have done.

    ``driver``: the share of the time that it was busy. ``tail``: seconds from when the first worker has nothing left to
    do until the end.
    """

    seconds: float
    use: float
    driver: float
    tail: float
    deaths: int
    tasks: int


def simulate(job: Job, workers: int, costs: Mapping[str, float], seed: int = 0) -> Outcome:
    """Task by task.

    1. The driver does one thing at a time: it hands out tasks in their order and notes each chunk that is done. It
       hands a worker a task while the worker still has ``2 * TOGETHER`` others, so only a driver that is behind makes
       anyone wait.
    2. A worker does its tasks one after another, which takes as long as doing ``TOGETHER`` of them at a time.
    3. A worker that dies loads its model again. Of the chunks it had in work, each is half done on average, and lost.
    """
    chance = random.Random(seed)
    pace = [SLOWNESS if chance.random() < SLOW else 1.0 for _ in range(workers)]
    ends = [LOAD_SECONDS] * workers  # when each worker will have done what it was given
    room = [(0.0, worker) for _ in range(2 * TOGETHER) for worker in range(workers)]  # when each can be given more
    heapq.heapify(room)
    driver = busy = work = 0.0
    deaths = tasks = 0
    for chunks in task_sizes(job.chunks, workers):
        asked, worker = heapq.heappop(room)
        handing = costs["driver_seconds_per_task"] + chunks * costs["driver_seconds_per_result"]
        driver, busy, tasks = max(driver, asked) + handing, busy + handing, tasks + 1
        each = job.chunk_seconds * pace[worker]
        takes = max(each * (chunks + SPREAD * sqrt(chunks) * chance.gauss(0.0, 1.0)), 0.0)
        work += takes / pace[worker]
        died = _deaths(takes, chance)
        deaths += died
        ends[worker] = max(ends[worker], driver) + takes + died * (LOAD_SECONDS + TOGETHER * each / 2)
        heapq.heappush(room, (ends[worker], worker))
    last, first = max(ends), min(ends)
    return Outcome(last, work / (workers * last), busy / last, last - first, deaths, tasks)


def _deaths(seconds: float, chance: random.Random) -> int:
    """How often a worker dies in so many seconds of work."""
    count, left = 0, seconds
    while (left := left - chance.expovariate(1 / (HOURS_BETWEEN_DEATHS * 3600))) > 0:
        count += 1
    return count


def from_one_to_many(job: Job, costs: Mapping[str, float]) -> str:
    """The same work for each worker, however many there are."""
    rows = []
    for workers in WORKERS:
        own = Job(job.prompts * workers, job.chunk, job.seconds)
        found = simulate(own, workers, costs)
        rows.append(
            [
                f"{workers:,}",
                f"{own.prompts:,}",
                f"{found.seconds / 3600:.2f}",
                f"{found.use:.1%}",
                f"{found.driver:.2%}",
                f"{found.tasks * costs['driver_bytes_per_task'] / 1e6:,.1f}",
                f"{found.tail / 60:.1f}",
                f"{own.chunks:,}",
                found.deaths,
            ]
        )
    return table(
        ["workers", "prompts", "hours", "in use", "driver busy", "tasks, MB", "tail, min", "files", "deaths"], rows
    )


def limits(job: Job, costs: Mapping[str, float]) -> str:
    """Where each part of the machinery gives way, with so many prompts for each worker."""
    driver = job.chunk_seconds / (costs["driver_seconds_per_task"] / LONGEST_TASK + costs["driver_seconds_per_result"])
    tasks = MEMORY / costs["driver_bytes_per_task"]
    tail = simulate(Job(job.prompts * WORKERS[-1], job.chunk, job.seconds), WORKERS[-1], costs).tail
    disk = job.chunk_seconds / costs["write_seconds_per_chunk"]
    rows = [
        ["driver", f"busy all the time with {rounded(driver)} workers", "larger chunks, or several jobs"],
        [
            "object store, and the driver's memory",
            f"{MEMORY / 1e9:.0f} GB of tasks with {rounded(tasks * LONGEST_TASK * job.chunk)} prompts",
            "larger chunks: a task is a file name and a place, and texts never pass through the driver",
        ],
        [
            "stragglers",
            f"the first of {WORKERS[-1]:,} workers waits {tail / 60:.1f} minutes for the last",
            "smaller chunks",
        ],
        [
            "files",
            f"a run that resumes takes an hour to open those of {rounded(3600 / FILE_SECONDS * job.chunk)} prompts",
            "larger chunks",
        ],
        [
            "a shared disk as fast as this one",
            f"busy all the time with {rounded(disk)} workers",
            "a parallel file system",
        ],
    ]
    return table(["what", "where it gives way", "what helps"], rows)


def rounded(value: float) -> str:
    """With two digits that count."""
    return f"{float(f'{value:.2g}'):,.0f}"


def billion(seconds: Sequence[float], costs: Mapping[str, float]) -> str:
    """A billion prompts on 1,000 workers."""
    rows = []
    for each in seconds:
        for chunk in (256, 4096):
            job = Job(10**9, chunk, each)
            found = simulate(job, 1000, costs)
            rows.append(
                [
                    f"{each:g}",
                    f"{chunk:,}",
                    f"{found.seconds / 86400:,.1f}",
                    f"{1000 * found.seconds / 3600:,.0f}",
                    f"{found.use:.1%}",
                    f"{found.driver:.1%}",
                    f"{found.tasks * costs['driver_bytes_per_task'] / 1e9:,.1f}",
                    f"{found.tail / 60:,.1f}",
                    f"{job.chunks:,}",
                    f"{(FILE_SECONDS + costs['list_seconds_per_file']) * job.chunks / 60:,.0f}",
                ]
            )
    head = ["s per prompt", "chunk", "days", "worker hours", "in use", "driver busy", "tasks, GB", "tail, min", "files"]
    whole = (
        "\n\nPlanning, which reads all prompts once, takes {:,.0f} minutes before that, and merging {:,.0f} after it."
    )
    return table([*head, "resuming, min"], rows) + whole.format(
        costs["plan_seconds_per_prompt"] * 1e9 / 60, costs["merge_seconds_per_prompt"] * 1e9 / 60
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a worker for a prompt, with full rows")
    parser.add_argument("--chunk", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=100_000, help="for each worker")
    given = parser.parse_args()
    known: Mapping[str, float] = json.loads(KEPT.read_text())["costs"]
    one = Job(given.prompts, given.chunk, given.seconds)
    about = (
        f"{one.prompts:,} prompts for each worker, which takes {one.seconds:g} s for one; chunks of {one.chunk}. The "
        f"time of a chunk varies by {SPREAD:.0%}, {SLOW:.0%} of the workers take {SLOWNESS:g} times as long as the "
        f"others, and each dies every {HOURS_BETWEEN_DEATHS:g} hours and takes {LOAD_SECONDS:g} s to load its model. "
        "*In use*: the work over what as many workers that are never slow, idle or dead could have done in that time. "
        "*Tail*: from when the first worker has nothing "
        "left to do until the end."
    )
    found = {
        "workers": ("From 1 to 1,000 workers", f"{about}\n\n{from_one_to_many(one, known)}"),
        "limits": ("What breaks first", limits(one, known)),
        "billion": ("A billion prompts", f"{billion((0.02, 0.2, 2.0), known)}\n\n{conditions()}"),
    }
    for name, (section, text) in found.items():
        write(PAGE, TITLE, section, text)
        fill(SCALE, name, text)
    print(PAGE.read_text())
