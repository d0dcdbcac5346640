"""Fixed sets of distinct problems, in an order that says nothing about how they were drawn.

Making a thousand test problems of a task takes 32,000 draws, since 31 of 32 belong to other splits. For the library's
tasks ``fixed_sets.json`` therefore records where in the stream each problem of a fixed set is, and the draws between
them are skipped. ``python -m soar_dlm.tasks.fixed_sets`` writes that file; it changes no problem.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from soar_dlm.tasks.problem import Problem, Split

if TYPE_CHECKING:
    from soar_dlm.tasks.task import Task

SIZE = 1000
"""How many problems a fixed set has, unless the stream runs out first."""

MOST = 10_000
"""The most problems that can be drawn at once; a stream has no end."""

PATIENCE = 1_000
"""A stream has run out after this many repeats in a row."""

WORD = 32
"""Bits of a word, the unit in which Python's generator moves on."""

FILE = Path(__file__).with_suffix(".json")
SPLITS: tuple[Split, ...] = ("test", "validation")
RECORDED = ("mini-gsm", "mini-code", "mini-infill", "mini-infill-lines", "mini-sudoku", "mini-sums")


def fixed_set(task: Task, split: Split, size: int, seed: int) -> list[Problem]:
    """The first ``size`` distinct problems of a stream, or all it has if they are fewer, in fair order."""
    skips = recorded_skips().get(task_id(task), {}).get(split) if (size, seed) == (SIZE, 0) else None
    if skips is None:
        found = list(islice(first_of_each_key(task.problems(split, seed)), size))
    else:
        found = list(skipped_to(task, stream_generator(task.name, split, seed), skips))
    return fair_order(found)


def fair_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems sorted by a hash of their keys, so that any first n are a fair sample of all.

    In the order of drawing they are not: problems with few possible keys run out, so they are common among the first
    and rare among the last. The hash differs from the one that decides the split.
    """
    return sorted(problems, key=lambda one: blake2b(one.key.encode(), digest_size=16, person=b"fair order").digest())


def first_of_each_key(stream: Iterable[Problem]) -> Iterator[Problem]:
    """Problems with a key not seen before, until the stream runs out."""
    seen: set[str] = set()
    repeats = 0
    for problem in stream:
        if problem.key not in seen:
            seen.add(problem.key)
            repeats = 0
            yield problem
        else:
            repeats += 1
            if repeats > PATIENCE:
                return


def stream_generator(name: str, split: Split, seed: int) -> random.Random:
    """The generator of a task's stream of problems."""
    return random.Random(f"{name} {split} {seed}")


def skipped_to(task: Task, rng: random.Random, skips: Iterable[int]) -> Iterator[Problem]:
    """The problems that are drawn after skipping this many words before each."""
    for words in skips:
        rng.getrandbits(words * WORD)
        yield task.draw(rng)


@cache
def recorded_skips() -> dict[str, dict[str, list[int]]]:
    """By :func:`task_id` and split: how many words to skip before each problem of the fixed set of seed 0."""
    found: dict[str, dict[str, list[int]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def task_id(task: Task) -> str:
    """A task by its class: a subclass may draw other problems under the same name."""
    return f"{type(task).__module__}:{type(task).__qualname__}"


class _Counting(random.Random):
    """A generator that counts the words it has drawn."""

    words = 0

    def random(self) -> float:
        self.words += 2
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        self.words += -(-k // WORD)
        return super().getrandbits(k)


def measured_skips(task: Task, split: Split, size: int = SIZE) -> list[int]:
    """What :func:`recorded_skips` should hold for a task and a split, by drawing the whole stream."""
    rng = _Counting(f"{task.name} {split} 0")
    places: dict[str, tuple[int, int]] = {}
    while len(places) < size:
        start = rng.words
        problem = task.draw(rng)
        if problem.split == split:
            places.setdefault(problem.key, (start, rng.words))
    ends = [0, *(end for _, end in places.values())]
    return [start - end for (start, _), end in zip(places.values(), ends, strict=False)]


def main() -> None:
    from soar_dlm.tasks.catalogue import make_task

    tasks = map(make_task, RECORDED)
    found = {task_id(task): {split: measured_skips(task, split) for split in SPLITS} for task in tasks}
    FILE.write_text(json.dumps(found, separators=(",", ":")).replace("],", "],\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
