"""What Ray costs and what it survives: ``soar batch --ray`` on nodes by ``ray start``, all on this machine.

    python -m benchmarks.cluster speed      prompts per second of one process, of one worker, of two; about 10 minutes
    python -m benchmarks.cluster costs      planning, scheduling, writing, merging: what the simulation reckons with
    python -m benchmarks.cluster faults     2,000 prompts, while workers, drivers and a node are killed; 20 minutes

Each part writes its section of ``docs/results/cluster.md``; ``speed`` and ``costs`` also theirs of ``docs/scale.md``,
and ``costs`` writes ``docs/results/cluster.json``. Run them on a quiet machine: the workers and Ray share its cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.pages import RESULTS, SCALE, conditions, fill, table, write
from benchmarks.ray_nodes import Node, Nodes, nodes
from soar_dlm.scale.cluster import connected
from soar_dlm.scale.here import run_here
from soar_dlm.scale.inputs import Plan, planned
from soar_dlm.scale.on_ray import run_on_ray
from soar_dlm.scale.pool import Pool, mapped
from soar_dlm.scale.shards import JOB, Shards
from soar_dlm.scale.worker import Done, Task, at_once
from soar_dlm.strict_json import json_text
from soar_dlm.tasks.catalogue import make_task

PAGE, KEPT, TITLE = RESULTS / "cluster.md", RESULTS / "cluster.json", "What Ray costs and what it survives"
MODEL, STRATEGY, LENGTH = "mini-llada", "soar", 32
SCHEDULED = 2000
"""Tasks that do nothing, to see what each costs the driver."""
EXACT = ("index", "id", "prompt", "text", "steps", "forwards", "completion_tokens", "finish_reason", "seed")
"""The fields of a record that are equal; means of confidences may differ in the last digit with the batch."""


def prompts_file(path: Path, count: int) -> Path:
    """So many prompts of mini-gsm."""
    problems = make_task("mini-gsm", None).distinct("test", count)
    lines = (json.dumps({"id": number, "prompt": one.prompt}) for number, one in enumerate(problems))
    path.write_text("\n".join(lines) + "\n")
    return path


class Ready:
    """The model for a worker, which uses one thread."""

    def __call__(self) -> Any:
        import torch

        from soar_dlm.lm import load

        torch.set_num_threads(1)
        lm = load(MODEL)
        return lm, lm.strategy(STRATEGY)


def rate(plan: Plan, folder: Path, pool: Pool | None) -> float:
    """Prompts per second between the first chunk that is done and the last; loading the model is before the first."""
    folder.mkdir(parents=True)
    (folder / JOB).write_text("{}")
    task = Task(Ready(), Shards(folder), None, {"max_new_tokens": LENGTH, "trace": False})
    done: list[tuple[float, int]] = []

    def note(one: Done) -> None:
        done.append((time.perf_counter(), one.prompts))

    together = at_once(plan.chunks[0].count, 32)
    if pool is None:
        run_here(task, plan.chunks, together, note, lambda: None)
    else:
        run_on_ray(task, plan.chunks, together, pool, note)
    skipped = together * (1 if pool is None else pool.most)  # every worker has begun
    ended = len(done) - skipped  # and none has fewer chunks in work than it may
    return sum(count for _, count in done[skipped:ended]) / (done[ended - 1][0] - done[skipped - 1][0])


def speed(prompts: int, rounds: int) -> str:
    rates: dict[str, list[float]] = {"one process": [], "Ray, one worker": [], "Ray, two workers": []}
    pools = (None, Pool(1, 1, 1.0, 0.0), Pool(2, 2, 1.0, 0.0))
    with tempfile.TemporaryDirectory() as place, nodes(2) as cluster, connected(cluster.address):
        source = prompts_file(Path(place) / "prompts.jsonl", 2 * prompts)
        half = Path(place) / "half.jsonl"
        half.write_text("".join(source.read_text().splitlines(keepends=True)[:prompts]))
        one_each, both = planned([half], 8), planned([source], 8)  # as many prompts for each worker
        for turn in range(rounds):
            order = list(zip(rates, pools, strict=True))
            for name, pool in order[turn % 3 :] + order[: turn % 3]:
                rates[name].append(rate(both if pool == pools[2] else one_each, Path(place) / f"{turn}-{name}", pool))
                print(f"{name}: {rates[name][-1]:.2f} prompts per second", flush=True)
    one = rates["one process"]
    workers = {"one process": 1, "Ray, one worker": 1, "Ray, two workers": 2}
    rows = []
    for name, own in rates.items():
        each = [value / workers[name] / alone for value, alone in zip(own, one, strict=True)]
        spread = f"{median(each):.3f} ({min(each):.3f} to {max(each):.3f})"
        rows.append([name, f"{median(own):.2f}", spread])
    over = [1000 / ray - 1000 / alone for ray, alone in zip(rates["Ray, one worker"], one, strict=True)]
    return (
        f"{prompts} prompts of mini-gsm for each worker, {MODEL}, SOAR, canvas {LENGTH}, chunks of 8, one thread each, "
        f"{rounds} rounds in turns; the machine has {os.cpu_count()} cores for two workers, the driver and Ray.\n\n"
        + table(["", "prompts/s", "per worker, of one process"], rows)
        + f"\n\nOverhead of Ray per prompt: {median(over):+.1f} ms on {1000 / median(one):.0f} ms (rounds: "
        + f"{', '.join(f'{value:+.1f}' for value in over)}){_in_noise(over)}.\n\n{conditions()}"
    )


def _in_noise(differences: Collection[float]) -> str:
    return ", within the spread of the rounds" if min(differences) <= 0 <= max(differences) else ""


def _idle() -> Callable[[str], str]:
    """A worker that does nothing."""
    return lambda item: item


def _scheduled(tasks: int, items: int = 1) -> tuple[float, float]:
    """Seconds for so many tasks of items that cost nothing, on two workers, and how long this process computed."""
    own = [[f"{number}-{item}" for item in range(items)] for number in range(tasks)]
    started, computed = time.perf_counter(), time.process_time()
    assert len(list(mapped(own, _idle, Pool(2, 2, 1.0, 0.0), 4, ordered=False))) == tasks * items
    return time.perf_counter() - started, time.process_time() - computed


def _resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def costs() -> str:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        line = json.dumps({"id": 1, "prompt": "x" * 400}) + "\n"
        (folder / "many.jsonl").write_text(line * 200_000)
        started = time.perf_counter()
        planned([folder / "many.jsonl"], 256)
        found["plan_seconds_per_prompt"] = (time.perf_counter() - started) / 200_000
        shards = Shards(folder / "out")
        record = json.dumps({"index": 1, "id": 1, "prompt": "x" * 400, "text": "y" * 400})
        started = time.perf_counter()
        for number in range(200):
            shards.write(number, [record] * 256, [])
        found["write_seconds_per_chunk"] = (time.perf_counter() - started) / 200
        started = time.perf_counter()
        shards.merge(200)
        found["merge_seconds_per_prompt"] = (time.perf_counter() - started) / (200 * 256)
        started = time.perf_counter()
        shards.done()
        found["list_seconds_per_file"] = (time.perf_counter() - started) / 200
    with nodes(2) as cluster, connected(cluster.address):
        few, items = 4, 32
        _scheduled(few)  # the first actors of a cluster wait for its machinery
        found["start_seconds"], least = _scheduled(few)
        before = _resident()
        seconds, computed = _scheduled(SCHEDULED)
        found["seconds_per_task"] = (seconds - found["start_seconds"]) / (SCHEDULED - few)
        found["driver_seconds_per_task"] = (computed - least) / (SCHEDULED - few)
        found["driver_bytes_per_task"] = max(0, _resident() - before) / SCHEDULED
        computed = _scheduled(SCHEDULED // items, items)[1] - least
        results = SCHEDULED - SCHEDULED // items
        found["driver_seconds_per_result"] = (
            computed - found["driver_seconds_per_task"] * (SCHEDULED // items)
        ) / results
    KEPT.write_text(json_text({"costs": found, "conditions": conditions()}))
    rows_of = [
        ("Planning: reading a prompt of 400 characters and its hash", found["plan_seconds_per_prompt"] * 1e6, "µs"),
        ("A task that does nothing, from end to end", found["seconds_per_task"] * 1e3, "ms"),
        ("Handing out a task, computing of the driver", found["driver_seconds_per_task"] * 1e3, "ms"),
        ("Noting that a chunk is done, computing of the driver", found["driver_seconds_per_result"] * 1e3, "ms"),
        ("Memory of the driver for a task", found["driver_bytes_per_task"] / 1e3, "kB"),
        ("Starting workers that have no model, and ending them", found["start_seconds"], "s"),
        ("Writing a chunk of 256 records", found["write_seconds_per_chunk"] * 1e3, "ms"),
        ("Looking for a file of results, when a run resumes", found["list_seconds_per_file"] * 1e6, "µs"),
        ("Merging a record", found["merge_seconds_per_prompt"] * 1e6, "µs"),
    ]
    return (
        table(["", "cost"], [(name, f"{value:.3g} {unit}") for name, value, unit in rows_of])
        + f"\n\nTasks: {SCHEDULED:,} that do nothing, on two workers, each with one chunk or with {items}; files are "
        + "on a local disk."
        + f"\n\n{conditions()}"
    )


def faults(prompts: int, kills: int, seed: int) -> str:
    """Kill at random moments, told by how many chunks are done, and compare with one undisturbed process."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = prompts_file(folder / "prompts.jsonl", prompts)
        start = [str(source), "-m", MODEL, "-s", STRATEGY, "-n", str(LENGTH), "--chunk", "20", "--merge"]
        command = [sys.executable, "-m", "soar_dlm", "batch", *start]
        started = time.perf_counter()
        subprocess.run([*command, "-o", str(folder / "one")], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        print(f"one process: {time.perf_counter() - started:.0f} s", flush=True)
        chunks = -(-prompts // 20)
        events = ["worker"] * kills + ["driver"] * 3
        chance.shuffle(events)
        events.insert(len(events) // 2, "node")
        moments = sorted(chance.sample(range(1, chunks - 2), len(events)))
        told, old = list[str](), set[int]()
        with nodes(2) as cluster:
            cluster.add()
            on_ray = [*command, "-o", str(folder / "many"), "--ray", cluster.address, "--workers", "1-3"]
            driver = subprocess.Popen(on_ray)
            shards = Shards(folder / "many")
            for moment, event in zip(moments, events, strict=True):
                _wait(driver, lambda moment=moment: len(shards.done()) >= moment)
                told.append(f"{event} after {len(shards.done())} chunks")
                print(told[-1], flush=True)
                if event == "worker":
                    _kill_worker(chance, driver, cluster, old)
                elif event == "driver":
                    driver.send_signal(signal.SIGKILL)
                    driver.wait()
                    old = cluster.workers()
                    driver = subprocess.Popen(on_ray)
                else:
                    _remove_node(driver, cluster, old)
                    cluster.add()
            code = driver.wait()
        one, many = (_records(folder / name) for name in ("one", "many"))
        shutil.rmtree(folder / "one")
    numbers = [record["index"] for record in many]
    wrong = [a["index"] for a, b in zip(one, many, strict=False) if any(a.get(name) != b.get(name) for name in EXACT)]
    same = sum(a == b for a, b in zip(one, many, strict=False))
    unlike = sorted({name for a, b in zip(one, many, strict=False) for name in {*a, *b} if a.get(name) != b.get(name)})
    missing, doubled = len(set(range(prompts)) - set(numbers)), len(numbers) - len(set(numbers))
    rows: list[list[object]] = [
        ["prompts", prompts],
        ["workers killed (SIGKILL)", kills],
        ["drivers killed (SIGKILL) and run again", 3],
        ["nodes removed while they decoded (SIGKILL to all processes), and another added", 1],
        ["exit code of the last driver", code],
        ["records lost", missing],
        ["records doubled", doubled],
        ["records whose text or counts differ from those of one process", len(wrong)],
        ["lines equal to the last digit", same],
        ["what differs in the others", ", ".join(unlike) or "nothing"],
    ]
    ok = code == missing == doubled == len(wrong) == 0
    print("nothing lost, doubled or changed" if ok else "SOMETHING DIFFERS", flush=True)
    setting = "A cluster of three nodes by `ray start`, each with one CPU; `soar batch --ray HOST:PORT --workers 1-3`."
    return f"{setting}\n\n{table(['', ''], rows)}\n\nWhat was killed: {'; '.join(told)} of {chunks}.\n\n{conditions()}"


def _wait(driver: subprocess.Popen[bytes], ready: Any) -> None:
    deadline = time.monotonic() + 900
    while not ready():
        if driver.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the driver ended with {driver.poll()} before its time")
        time.sleep(0.05)


def _remove_node(driver: subprocess.Popen[bytes], cluster: Nodes, old: Collection[int]) -> None:
    """Remove a node, not the head, as soon as there is one that decodes."""
    found: list[Node] = []

    def ready() -> bool:
        found[:] = [node for node in cluster.alive[1:] if cluster.workers(node) - set(old)]
        return bool(found)

    _wait(driver, ready)
    cluster.remove(found[0])


def _kill_worker(chance: random.Random, driver: subprocess.Popen[bytes], cluster: Nodes, old: Collection[int]) -> None:
    """Kill one of the actors that decode, as soon as there is one that is not left from an earlier driver."""
    found: list[int] = []

    def ready() -> bool:
        found[:] = sorted(cluster.workers() - set(old))
        return bool(found)

    _wait(driver, ready)
    os.kill(chance.choice(found), signal.SIGKILL)


def _records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["speed", "costs", "faults"])
    parser.add_argument("--prompts", type=int, help="default: 400 for speed, 2,000 for faults")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.part == "speed":
        told = speed(given.prompts or 400, given.rounds)
        write(PAGE, TITLE, "Speed", told)
        fill(SCALE, "speed", told)
    elif given.part == "costs":
        told = costs()
        write(PAGE, TITLE, "Unit costs", told)
        fill(SCALE, "costs", told)
    else:
        write(PAGE, TITLE, "Faults", faults(given.prompts or 2000, given.kills, given.seed))
