"""A batch on 1 to 1,000 workers, simulated: what breaks first, and what a billion prompts cost.

    python -m benchmarks.scale_simulation                          writes docs/results/scale.md
    python -m benchmarks.scale_simulation --seconds 0.5 --chunk 1024

Reckons with the unit costs that ``python -m benchmarks.cluster costs`` measured on this machine and with a time per
prompt that you give. Each task holds some chunks; the driver, which does one thing at a time, hands out a task and
notes its end. How long a chunk takes varies (log-normal); workers die at random and start again, and what they had in
work is repeated. Ends when the last chunk is written.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cluster import KEPT
from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.scale.on_ray import LONGEST_TASK, TURNS

PAGE, TITLE = RESULTS / "scale.md", "Batches on many workers, simulated"
WORKERS = (1, 10, 100, 300, 1000)
IN_FLIGHT = 2
"""Tasks that a worker has in work, so that it never waits for the next."""
TASK_BYTES = 400
"""What the description of a chunk takes in the object store, about."""
LOAD_SECONDS = 90.0
"""Until a worker that starts again has its model: that of 8 billion parameters, from a local disk."""
HOURS_BETWEEN_DEATHS = 200.0
"""Of one worker, on average: machines that may be taken away at any time."""
SPREAD = 0.25
"""Standard deviation of the logarithm of a chunk's time."""


@dataclass(frozen=True)
class Job:
    """What is to be done: ``seconds`` is what a worker takes for a prompt when its rows are full."""

    prompts: int
    chunk: int
    seconds: float

    @property
    def chunks(self) -> int:
        return -(-self.prompts // self.chunk)

    def per_task(self, workers: int) -> int:
        return min(LONGEST_TASK, max(1, self.chunks // (workers * TURNS)))


@dataclass(frozen=True)
class Outcome:
    """``tail`` is the time from when the first worker has nothing left to do until the end."""

    hours: float
    efficiency: float
    driver: float
    tail: float
    deaths: int


def simulate(job: Job, workers: int, costs: Mapping[str, float], seed: int = 0) -> Outcome:
    """Event by event: workers that become free ask the driver, which answers one after the other."""
    chance = random.Random(seed)
    per_task = job.per_task(workers)
    left, size = -(-job.chunks // per_task), per_task * job.chunk * job.seconds
    mean = size / math.exp(SPREAD**2 / 2)
    each = costs["schedule_seconds_per_task"]
    free = [(LOAD_SECONDS, number) for number in range(workers)]
    heapq.heapify(free)
    driver = busy = useful = first_idle = end = 0.0
    deaths = 0
    while free:
        now, worker = heapq.heappop(free)
        if not left:
            first_idle = first_idle or now
            end = max(end, now)
            continue
        left -= 1
        # a worker has a second task in work while the driver answers, so only a driver that is behind makes it wait
        driver = max(driver, now - size) + each
        busy += each
        begins = max(now, driver)
        takes = mean * math.exp(chance.gauss(0.0, SPREAD))
        dies = chance.expovariate(1 / (HOURS_BETWEEN_DEATHS * 3600))
        if dies < takes:
            deaths += 1
            heapq.heappush(free, (begins + dies + LOAD_SECONDS, worker))
            left += 1
        else:
            useful += takes
            heapq.heappush(free, (begins + takes, worker))
    return Outcome(end / 3600, useful / (workers * end), busy / end, end - first_idle, deaths)


def weak_scaling(job: Job, costs: Mapping[str, float]) -> str:
    """The same work for each worker, however many there are."""
    rows = []
    for workers in WORKERS:
        own = Job(job.prompts * workers, job.chunk, job.seconds)
        found = simulate(own, workers, costs)
        store = own.chunks * TASK_BYTES / 1e6
        rows.append(
            [
                f"{workers:,}",
                f"{own.prompts:,}",
                f"{found.hours:.2f}",
                f"{found.efficiency:.1%}",
                f"{found.driver:.2%}",
                f"{found.tail / 60:.1f}",
                found.deaths,
                f"{own.chunks:,}",
                f"{store:,.1f}",
            ]
        )
    head = ["workers", "prompts", "hours", "in use", "driver busy", "tail, min", "deaths", "files", "tasks, MB"]
    return table(head, rows)


def breaking_points(job: Job, costs: Mapping[str, float]) -> str:
    """With how many workers each part of the machinery becomes the bottleneck."""
    seconds = job.chunk * job.seconds
    driver = seconds * LONGEST_TASK / costs["schedule_seconds_per_task"]
    single = seconds / costs["schedule_seconds_per_task"]
    disk = seconds / costs["write_seconds_per_chunk"]
    rows = [
        ["driver, tasks of one chunk", f"{single:,.0f}", "hand out more chunks in a task, which happens by itself"],
        [f"driver, tasks of {LONGEST_TASK} chunks", f"{driver:,.0f}", "larger chunks; several jobs"],
        ["a shared disk as fast as this one", f"{disk:,.0f}", "larger chunks; a parallel file system"],
    ]
    return table(["what", "saturated at workers", "what helps"], rows)


def billion(seconds: Sequence[float], costs: Mapping[str, float]) -> str:
    """A billion prompts on 1,000 workers, with chunks of 256 and of 4,096."""
    rows = []
    for each in seconds:
        for chunk in (256, 4096):
            job = Job(10**9, chunk, each)
            hours = simulate(job, 1000, costs).hours if job.chunks <= 4 * 10**6 else float("nan")
            rows.append(
                [
                    f"{each:g}",
                    f"{chunk:,}",
                    f"{hours / 24:,.1f}",
                    f"{10**9 * each / 3600:,.0f}",
                    f"{costs['plan_seconds_per_prompt'] * 1e9 / 60:,.0f}",
                    f"{job.chunks:,}",
                    f"{costs['list_seconds_per_file'] * job.chunks / 60:,.1f}",
                    f"{job.chunks * TASK_BYTES / 1e6:,.0f}",
                    f"{costs['merge_seconds_per_prompt'] * 1e9 / 60:,.0f}",
                ]
            )
    head = [
        "s per prompt",
        "chunk",
        "days on 1,000 workers",
        "worker hours",
        "planning, min",
        "files",
        "resuming, min",
        "driver's memory for tasks, MB",
        "merging, min",
    ]
    return table(head, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a worker for a prompt, with full rows")
    parser.add_argument("--chunk", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=100_000, help="for each worker")
    given = parser.parse_args()
    known: Mapping[str, float] = json.loads(KEPT.read_text())["costs"]
    one = Job(given.prompts, given.chunk, given.seconds)
    about = (
        f"{one.prompts:,} prompts for each worker, {one.seconds:g} s of a worker each, chunks of {one.chunk}; the time "
        f"of a chunk varies by {SPREAD:.0%}, a worker dies every {HOURS_BETWEEN_DEATHS:g} hours and takes "
        f"{LOAD_SECONDS:g} s to load its model again. *In use*: the share of the workers' time that goes into chunks "
        "which are kept. *Tail*: from the first worker with nothing left to do until the end."
    )
    write(PAGE, TITLE, "From 1 to 1,000 workers", f"{about}\n\n{weak_scaling(one, known)}")
    write(PAGE, TITLE, "What breaks first", breaking_points(one, known))
    write(PAGE, TITLE, "A billion prompts", f"{billion((0.02, 0.2, 2.0), known)}\n\n{conditions()}")
    print(PAGE.read_text())
