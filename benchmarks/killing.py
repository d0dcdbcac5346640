"""Commands that are killed at random moments and started again until they are done."""

from __future__ import annotations

import operator
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

NOISE = 1e-5


@dataclass(frozen=True)
class Trial:
    """A ``command`` that writes to a folder; ``content`` is what a run must have written there.

    With the options ``idle`` it only does what comes before the work. ``done`` says by exit code and messages whether a
    run came to its end, ``same`` whether two contents count as equal.
    """

    name: str
    command: Callable[[Path], list[str]]
    content: Callable[[Path], Any]
    idle: tuple[str, ...] = ()
    done: Callable[[int, str], bool] = lambda code, said: code == 0
    same: Callable[[Any, Any], bool] = operator.eq

    def run(self, folder: Path, *options: str, seconds: float | None = None) -> bool:
        """Whether the command came to its end; after ``seconds`` it is killed. An error is raised."""
        folder.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [*self.command(folder), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return False
        if not self.done(process.returncode, said):
            raise SystemExit(f"{self.name}: exit code {process.returncode}: {said}")
        return True


def killed_again_and_again(trial: Trial, kills: int, folder: Path, seed: int) -> dict[str, Any]:
    """A row of the table: whether runs that are killed write what an uninterrupted one does, and nothing else.

    The moments are chosen so that about all kills fit into one run, some of them before its first line. A run that
    finishes before that is compared like the last one, and the next starts anew.
    """
    rng, killed = random.Random(seed), folder / f"killed {seed}"
    expected, took, idle = uninterrupted(trial, folder)
    latest = idle + 2.2 * max(took - idle, 0) / kills
    done, runs, same = 0, 1, True
    while done < kills:
        moment = rng.uniform(0.6 * idle, latest)
        if trial.run(killed, seconds=moment):
            same = same and _as_expected(trial, killed, expected)
            killed, runs = folder / f"killed {seed} {runs}", runs + 1
            continue
        done += 1
        size = sum(file.stat().st_size for file in killed.rglob("*") if file.is_file())
        print(f"{trial.name}, kill {done} after {moment:4.1f} s: {size} bytes", flush=True)
    trial.run(killed)
    same = same and _as_expected(trial, killed, expected)
    print(f"{trial.name}, {done} kills in {runs} runs: {_word(same)}", flush=True)
    return {"what": f"`soar {trial.name}` killed", "times": done, "runs": runs, "result": _word(same)}


@cache
def uninterrupted(trial: Trial, folder: Path) -> tuple[Any, float, float]:
    """What a run writes that is left alone, its seconds, and those of a run that finds nothing to do."""
    started = time.perf_counter()
    trial.run(folder / "whole")
    between = time.perf_counter()
    trial.run(folder / "whole", *trial.idle)
    took, idle = between - started, time.perf_counter() - between
    print(f"{trial.name}, uninterrupted: {took:.0f} s, {idle:.0f} s when all is done", flush=True)
    return trial.content(folder / "whole"), took, idle


def _as_expected(trial: Trial, folder: Path, expected: Any) -> bool:
    hidden = [file.name for file in folder.rglob(".*")]
    return trial.same(trial.content(folder), expected) and not hidden


def together(trial: Trial, folder: Path) -> dict[str, Any]:
    """A row of the table: whether two runs that start at the same time on one folder leave what one would."""
    both = folder / "both"
    both.mkdir(parents=True, exist_ok=True)
    runs = [
        subprocess.Popen(trial.command(both), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [run.communicate()[1] for run in runs]
    ended = [trial.done(run.returncode, said) for run, said in zip(runs, told, strict=True)]
    refused = [said for said, fine in zip(told, ended, strict=True) if not fine]
    same = any(ended) and all("is in use" in said for said in refused)
    same = same and _as_expected(trial, both, uninterrupted(trial, folder)[0])
    print(f"{trial.name}, two at once: {_word(same)}; {refused}", flush=True)
    return {"what": f"`soar {trial.name}` twice at once", "times": 1, "runs": 2, "result": _word(same)}


def _word(same: bool) -> str:
    return "identical" if same else "DIFFERENT"


def close(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for what a forward adds up in another order with other rows beside it."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= NOISE
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(close(value, other[name]) for name, value in one.items())
    return bool(one == other)
