"""What every entrant decodes: the same canvases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.lm import LM
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """Prompts, each with what follows its canvas, and the length of all canvases and of their blocks."""

    prompts: Sequence[tuple[Ids, Ids]]
    canvas: int
    block_length: int | None = None

    def __post_init__(self) -> None:
        checks.whole_number("canvas", self.canvas, 1, checks.LONGEST)

    def canvases(self, mask_id: int) -> list[tuple[list[int], range]]:
        """The token ids of each row, and the positions to fill."""
        return [
            ([*before, *[mask_id] * self.canvas, *after], range(len(before), len(before) + self.canvas))
            for before, after in self.prompts
        ]

    def cut(self, canvas: int) -> Workload:
        """The first request with a short canvas."""
        return replace(self, prompts=self.prompts[:1], canvas=min(canvas, self.canvas))


def random_prompts(facts: ModelFacts, count: int, length: int, mixed: bool, seed: int) -> list[tuple[Ids, Ids]]:
    """Prompts of ordinary tokens. Those that are ``mixed`` have from half to one and a half times the length.

    The first prompts of a longer list are those of a shorter one, whatever their number.
    """
    checks.whole_number("requests", count, 1, checks.WIDEST)
    checks.whole_number("prompt", length, 0, checks.LONGEST)
    if count * length > checks.MANY:
        raise SettingsError(
            f"{count} prompts of {length} tokens are more than can be held; ask for fewer or shorter ones."
        )
    random = Random(checks.seed("seed", seed))
    special = {facts.mask_id, facts.pad_id, facts.expand_id, facts.delete_id, *facts.end_ids}
    ordinary = [token for token in range(facts.vocab_size) if token not in special]
    made: list[tuple[Ids, Ids]] = []
    for _ in range(count):
        own = round(length * random.uniform(0.5, 1.5)) if mixed else length
        made.append((tuple(random.choice(ordinary) for _ in range(own)), ()))
    return made


def task_prompts(lm: LM, task: Task, problems: Sequence[Problem]) -> list[tuple[Ids, Ids]]:
    """The prompts of problems as the model reads them."""
    if task.infills:
        raise SettingsError(f"{task.name} fills blanks; name a task whose answers continue a prompt, or use --prompt.")
    encoded = (lm.encode(problem.prompt) for problem in problems)
    return [(tuple(before), tuple(after)) for before, after in encoded]
