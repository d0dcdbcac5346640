"""How good the model is so far: held-out problems, decoded with the checkpoint as written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from soar_dlm.errors import SettingsError
from soar_dlm.jobs import MAX_LENGTH
from soar_dlm.lm import load
from soar_dlm.solving import solve
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task
from soar_dlm.train.recipe import Recipe


@dataclass(frozen=True)
class Validation:
    """The ``accuracy`` and mean ``forwards`` of each task at a step, on this many ``problems`` each.

    The ``sample`` is a prompt and its answer.
    """

    step: int
    problems: int
    accuracy: Mapping[str, float]
    forwards: Mapping[str, float]
    sample: tuple[str, str] | None


def validate(folder: Path, recipe: Recipe, step: int, device: torch.device, count: int | None = None) -> Validation:
    """Decode held-out problems of every task, the same at every validation; the sample changes.

    ``count`` is the number of problems of each task; by default the recipe's.
    """
    count = count or recipe.report.problems
    lm = load(folder, device)
    accuracy, forwards = {}, {}
    samples = []
    for name in recipe.data.tasks:
        task, problems = _held_out(name, count)
        results = solve(lm, task, problems, recipe.report.strategy)
        right = task.all_correct(problems, [result.text for result in results])
        accuracy[name] = round(sum(right) / len(right), 4)
        forwards[name] = round(sum(result.forwards for result in results) / len(results), 2)
        chosen = step // recipe.report.validate % len(problems)
        samples.append((problems[chosen].prompt, results[chosen].text))
    sample = samples[step // recipe.report.validate % len(samples)] if samples else None
    return Validation(step, count, accuracy, forwards, sample)


def check_fits(recipe: Recipe, tokenizer: Tokenizer) -> None:
    """Refuse a recipe with held-out problems that the model's context has no room for."""

    def length(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    for name in recipe.data.tasks:
        task, problems = _held_out(name, recipe.report.problems)
        grows = task.infills and recipe.model.variable_length
        room = max(MAX_LENGTH, task.canvas) + 2 if grows else task.canvas  # the 2 are BOS and EOS
        longest = max(length(one.prompt) + length(one.suffix) for one in problems) + room
        if longest > recipe.model.context:
            raise SettingsError(
                f"The validation problems of {name} take up to {longest} tokens with the canvas for their answers; "
                f"model.context is {recipe.model.context}. Increase it to {longest}, or leave {name} out of data.tasks."
            )


def log_entry(found: Validation) -> dict[str, Any]:
    """A validation as a line of the log."""
    return {
        "step": found.step,
        "problems": found.problems,
        "validation": dict(found.accuracy),
        "forwards": dict(found.forwards),
    }


@cache
def _held_out(name: str, count: int) -> tuple[Task, list[Problem]]:
    task = make_task(name)
    return task, task.distinct("validation", count)
