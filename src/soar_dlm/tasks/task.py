"""A task: an endless seeded stream of problems, and the judge of their answers."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from soar_dlm.errors import SettingsError
from soar_dlm.tasks.problem import Problem, Split

TEST_SIZE = 1000
"""How many fixed test problems a task has."""

PATIENCE = 1_000
"""After so many repeats in a row a stream is taken to have no new problem left."""


class Task(ABC):
    """What a task must say; a subclass gives :meth:`draw` and :meth:`correct`.

    ``canvas`` is the number of positions in which every answer of the task fits, its end token included, with the
    tokenizer of the embedded models. A task that ``infills`` has problems with a suffix, and ``canvas`` is how many
    masks a blank starts with. ``stop`` strings end an answer, ``shots`` solved examples stand before the question, and
    a task that ``runs_code`` runs what the model wrote to judge it.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    canvas: ClassVar[int]
    infills: ClassVar[bool] = False
    stop: ClassVar[tuple[str, ...]] = ()
    shots: ClassVar[int] = 0
    runs_code: ClassVar[bool] = False

    @abstractmethod
    def draw(self, rng: random.Random) -> Problem:
        """One problem, of whichever split; all its randomness comes from ``rng``."""

    @abstractmethod
    def correct(self, problem: Problem, text: str) -> bool:
        """Whether ``text``, as a model wrote it after the prompt, answers the problem."""

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        """:meth:`correct` for many; a task whose judge is slow may do better than one after the other."""
        return [self.correct(problem, text) for problem, text in zip(problems, texts, strict=True)]

    def problems(self, split: Split = "train", seed: int = 0) -> Iterator[Problem]:
        """An endless stream of one split. The same seed gives the same problems; repeats are possible."""
        rng = random.Random(f"{self.name} {split} {seed}")
        while True:
            problem = self.draw(rng)
            if problem.split == split:
                yield problem

    def test_set(self) -> list[Problem]:
        """All problems a model is measured on."""
        return self.distinct("test")

    def distinct(self, split: Split = "test", count: int = TEST_SIZE, seed: int = 0) -> list[Problem]:
        """The first ``count`` problems of a stream with a key of their own: by default the task's fixed test set."""
        unique: dict[str, Problem] = {}
        since_new = 0
        for problem in self.problems(split, seed):
            since_new = since_new + 1 if problem.key in unique else 0
            unique.setdefault(problem.key, problem)
            if len(unique) >= count or since_new > PATIENCE:
                break
        if len(unique) < count:
            raise SettingsError(f"{self.name} has no {count} {split} problems; it found {len(unique)}. Ask for fewer.")
        return list(unique.values())
