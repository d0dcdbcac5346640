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
LOOK = 0.02
"""Seconds between looks at what a run has written."""
EARLY = 0.25
"""The share of kills that come before a run has written anything."""
HEAD = ("what", "times", "after a new line", "runs", "result")


@dataclass(frozen=True)
class Kill:
    """A kill ``seconds`` after the start of a run, or, if it comes ``late``, after the run wrote its first line."""

    seconds: float
    late: bool


@dataclass(frozen=True)
class Trial:
    """A ``command`` that writes to a folder; ``content`` is what a run must have written there.

    ``lines`` is the file there that grows line by line as the work gets on. With the options ``idle`` the command only
    does what comes before the work. ``done`` says by exit code and messages whether a run came to its end, ``same``
    whether two contents count as equal.
    """

    name: str
    command: Callable[[Path], list[str]]
    content: Callable[[Path], Any]
    lines: str
    idle: tuple[str, ...] = ()
    done: Callable[[int, str], bool] = lambda code, said: code == 0
    same: Callable[[Any, Any], bool] = operator.eq

    def run(self, folder: Path, *options: str, kill: Kill | None = None) -> bool:
        """Whether the command came to its end, or was killed before. An error is raised."""
        folder.mkdir(parents=True, exist_ok=True)
        before, started = self.written(folder), time.perf_counter()
        moment = None if kill is None or kill.late else started + kill.seconds
        process = subprocess.Popen(
            [*self.command(folder), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        while True:
            try:
                said = process.communicate(timeout=LOOK)[1]
                break
            except subprocess.TimeoutExpired:
                now = time.perf_counter()
                if kill is not None and moment is None and self.written(folder) > before:
                    moment = now + kill.seconds
                if moment is not None and now >= moment:
                    process.kill()
                    process.communicate()
                    return False
        if not self.done(process.returncode, said):
            raise SystemExit(f"{self.name}: exit code {process.returncode}: {said}")
        return True

    def written(self, folder: Path) -> int:
        """The bytes of its lines."""
        file = folder / self.lines
        return file.stat().st_size if file.exists() else 0


def killed_again_and_again(trial: Trial, kills: int, folder: Path, seed: int) -> dict[str, Any]:
    """A row of the table: whether runs that are killed write what an uninterrupted one does, and nothing else.

    A quarter of the kills come at any moment of a run's first seconds, when it loads, reads what is there and mends it;
    the others once it has written at least one more line, so that each of them leaves more behind than the last. A run
    that finishes before that is compared like the last one, and the next starts anew.
    """
    rng, killed = random.Random(seed), folder / f"killed {seed}"
    expected, took, idle = uninterrupted(trial, folder)
    pace = 2 * max(took - idle, 0) / kills
    done, late, runs, same = 0, 0, 1, True
    while done < kills:
        kill = Kill(rng.uniform(0, idle), late=False) if rng.random() < EARLY else Kill(rng.uniform(0, pace), late=True)
        if trial.run(killed, kill=kill):
            same = same and _as_expected(trial, killed, expected)
            killed, runs = folder / f"killed {seed} {runs}", runs + 1
            continue
        done, late = done + 1, late + kill.late
        when = "after its first line" if kill.late else "after its start"
        print(f"{trial.name}, kill {done} {kill.seconds:.2f} s {when}: {trial.written(killed)} bytes", flush=True)
    trial.run(killed)
    same = same and _as_expected(trial, killed, expected)
    print(f"{trial.name}, {done} kills in {runs} runs: {_word(same)}", flush=True)
    return row(f"`soar {trial.name}` killed", done, late, runs, _word(same))


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
    return row(f"`soar {trial.name}` twice at once", 1, "", 2, _word(same))


def row(*cells: object) -> dict[str, Any]:
    """A row of the table."""
    return dict(zip(HEAD, cells, strict=True))


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
