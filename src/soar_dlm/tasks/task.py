"""A task: an endless seeded stream of problems, and the judge of their answers."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, get_args

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.tasks.fixed_sets import MOST, SIZE, fixed_set, stream_generator
from soar_dlm.tasks.problem import Problem, Split


class Task(ABC):
    """A subclass defines :meth:`draw` and :meth:`correct`, and these attributes.

    ``canvas`` is the number of positions that every answer fits into, including its end token, with the tokenizer of
    the embedded models. A task that ``infills`` has problems with a suffix; there ``canvas`` is the number of masks a
    blank starts with. ``stop`` strings end an answer. ``shots`` solved examples precede the question. A task that
    ``runs_code`` executes the model's answers to judge them. ``answer_mark`` separates the reasoning of an answer from
    its conclusion, if it has both.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    canvas: ClassVar[int]
    infills: ClassVar[bool] = False
    stop: ClassVar[tuple[str, ...]] = ()
    shots: ClassVar[int] = 0
    runs_code: ClassVar[bool] = False
    answer_mark: ClassVar[str | None] = None

    @abstractmethod
    def draw(self, rng: random.Random) -> Problem:
        """One problem of any split; ``rng`` is its only source of randomness."""

    @abstractmethod
    def correct(self, problem: Problem, text: str) -> bool:
        """Whether ``text``, which a model wrote after the prompt, solves the problem."""

    def all_correct(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[bool]:
        """:meth:`correct` for many answers; a task with a slow judge may override it to judge several at a time."""
        return [self.correct(problem, text) for problem, text in zip(problems, texts, strict=True)]

    def problems(self, split: Split = "train", seed: int = 0) -> Iterator[Problem]:
        """An endless stream of one split. The same seed gives the same problems; they may repeat."""
        rng = stream_generator(self.name, _split(split), checks.seed("seed", seed))
        while True:
            problem = self.draw(rng)
            if problem.split == split:
                yield problem

    def test_set(self) -> list[Problem]:
        """All problems a model is measured on."""
        return self.distinct("test")

    def distinct(self, split: Split = "test", count: int = SIZE, seed: int = 0) -> list[Problem]:
        """``count`` problems with different keys; by default the task's fixed test set.

        These are the first ``count`` of a fixed set: the first max(``count``, 1,000) distinct problems of the stream,
        or all if it has fewer, sorted by a hash of their keys. So any number of problems up to 1,000 is a fair sample
        of the same thousand, and a smaller number is a part of a larger one.
        """
        count = checks.whole_number("count", count, 0, MOST)
        split, seed = _split(split), checks.seed("seed", seed)
        size = max(count, SIZE)
        sets: dict[tuple[Split, int, int], list[Problem]] = self.__dict__.setdefault("_fixed_sets", {})
        if (split, size, seed) not in sets:
            sets[split, size, seed] = fixed_set(self, split, size, seed)
        found = sets[split, size, seed]
        if len(found) < count:
            raise SettingsError(f"{self.name} has only {len(found)} {split} problems, not {count}. Ask for fewer.")
        return found[:count]


def _split(name: Split) -> Split:
    """No problem belongs to a split that does not exist, so one would be looked for without end."""
    checks.known_name("split", name, get_args(Split))
    return name
