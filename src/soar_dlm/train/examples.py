"""The training data: an endless stream of examples, drawn pool by pool so that any pool can be made again."""

from __future__ import annotations

import codecs
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from soar_dlm import files
from soar_dlm.errors import InputFileError
from soar_dlm.strict_json import read_json
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.train.recipe import DataRecipe

POOL = 2048
"""The number of examples that are sorted by length together."""


@dataclass(frozen=True)
class Example:
    """A prompt, which is never masked, its answer, and what follows it. EOS fills up the ``canvas`` of the answer."""

    prompt: str
    answer: str
    canvas: int | None = None
    suffix: str = ""


class Examples:
    """The mixture of a recipe.

    1. Every pool holds the sources in the recipe's shares, rounded, with at least one example of each.
    2. A pool depends only on the seed and its number, so that a run can stop and resume anywhere.
    3. Tasks give problems of their training split; files are read once and reshuffled for every pass.
    """

    def __init__(self, recipe: DataRecipe, seed: int) -> None:
        self.recipe, self.seed = recipe, seed
        total = sum(recipe.tasks.values()) + sum(recipe.files.values())

        def count(share: float) -> int:
            return max(round(POOL * share / total), 1)

        self._tasks = [(make_task(name), count(share)) for name, share in recipe.tasks.items()]
        self._files = [(read_examples(Path(name)), count(share)) for name, share in recipe.files.items()]

    def pool(self, number: int) -> list[Example]:
        """The examples of one pool, source by source."""
        rng = random.Random(f"{self.seed} pool {number}")
        found = []
        for task, count in self._tasks:
            stream = task.problems("train", seed=rng.getrandbits(48))
            for _, problem in zip(range(count), stream, strict=False):
                canvas = task.canvas if rng.random() < self.recipe.full_canvas else None
                found.append(Example(problem.prompt, problem.answer, canvas, problem.suffix))
        for examples, count in self._files:
            first = number * count
            found += [_shuffled(examples, place, self.seed) for place in range(first, first + count)]
        return [self._with_canvas(example, rng) for example in found]

    def _with_canvas(self, example: Example, rng: random.Random) -> Example:
        if example.canvas is not None:
            return example
        return replace(example, canvas=rng.randint(1, self.recipe.longest_canvas))


def _shuffled(examples: list[Example], place: int, seed: int) -> Example:
    """The example at a place in an endless stream of passes, each in its own order."""
    number, offset = divmod(place, len(examples))
    return examples[_order(len(examples), number, seed)[offset]]


@lru_cache(maxsize=8)
def _order(count: int, number: int, seed: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed} pass {number}").shuffle(order)
    return order


def read_examples(path: Path) -> list[Example]:
    """The examples in a JSON-lines file: {"prompt": ..., "answer": ...}, or {"text": ...} to learn all of it.

    A byte-order mark at its start belongs to no line.
    """
    with files.explained("read training data from", path):
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    examples = [_parsed(line, path, number) for number, line in enumerate(lines, start=1) if line.strip()]
    if not examples:
        raise InputFileError(f"{str(path)!r} holds no examples; it needs one JSON object per line.")
    return examples


def _parsed(line: bytes, path: Path, number: int) -> Example:
    wanted = f'{str(path)!r}, line {number}: each line must be {{"prompt": ..., "answer": ...}} or {{"text": ...}}'
    try:
        entry: Any = read_json(line)
    except InputFileError as error:
        raise InputFileError(f"{wanted}. {error}") from error
    if isinstance(entry, Mapping):
        texts = entry.get("prompt"), entry.get("answer"), entry.get("suffix", "")
        if all(isinstance(text, str) for text in texts):
            return Example(entry["prompt"], entry["answer"], suffix=entry.get("suffix", ""))
        if isinstance(entry.get("text"), str) and not entry.keys() & {"prompt", "answer"}:
            return Example("", entry["text"])
    raise InputFileError(f"{wanted}, all of them strings.")
