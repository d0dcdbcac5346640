"""What a benchmark decodes, by whom, and what varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from soar_dlm import checks
from soar_dlm.bench.entrants import CACHES, NO_CACHE, by_hand, decoders
from soar_dlm.bench.race import Lane
from soar_dlm.bench.workload import Workload, random_prompts, task_prompts
from soar_dlm.errors import PromptTooLong, SettingsError
from soar_dlm.lm import LM
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.task import Task

PROMPT, CANVAS = 512, 128
BEAM = "beam"
VARIABLES = ("prompt", "canvas", "requests", BEAM)

Strategies = Callable[[Mapping[str, Any]], Mapping[str, Strategy]]
"""Makes the strategies by name, with some settings changed."""


@dataclass(frozen=True)
class Plan:
    """A workload and its entrants; ``over`` is the variable that takes the ``values``.

    Prompts are those of the ``task``, or random tokens. ``options`` are those of every request in the engine;
    ``refresh_every`` is for those that have a cache.
    """

    caches: Sequence[str] = (NO_CACHE,)
    task: Task | None = None
    prompt: int | None = None
    canvas: int | None = None
    requests: int = 1
    mixed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False
    one_by_one: bool = False
    over: str | None = None
    values: Sequence[int] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for cache in self.caches:
            checks.known_name("cache called", cache, CACHES)
        if not self.caches or len(set(self.caches)) < len(self.caches):
            raise SettingsError("Name one or more different caches: none, prefix, dual.")
        if self.task is not None and (self.prompt is not None or self.mixed or self.over == "prompt"):
            raise SettingsError("The prompts are the task's; leave out the task, or the length of the prompt.")
        if self.over is not None:
            checks.known_name("variable called", self.over, VARIABLES)
            if not self.values or len(set(self.values)) < len(self.values):
                raise SettingsError(f"{self.over} needs one or more different values to vary over.")

    def lanes(self, lm: LM, strategies: Strategies) -> list[Lane]:
        """Every entrant at every value."""
        found: list[Lane] = []
        for value in self.values if self.over is not None else [None]:
            made = strategies({BEAM: value} if self.over == BEAM else {})
            entrants = decoders(made, self.caches, self._options, lm.engine_settings, self.one_by_one)
            entrants += by_hand(made, self.caches, lm.engine_settings) if self.baseline else []
            workload = self._workload(lm, value)
            found += [Lane(entrant, workload, value) for entrant in entrants]
        return found

    def settings(self, lm: LM) -> dict[str, Any]:
        """What is the same in all lanes, in words."""
        sizes = {"prompt": self._size("prompt"), "canvas": self._size("canvas"), "requests": self.requests}
        if self.mixed:
            sizes["prompt"] = f"{sizes['prompt']} on average"
        if self.task is not None:
            del sizes["prompt"]
        return {
            "model": lm.name,
            "dtype": str(lm.model.dtype).removeprefix("torch."),
            "task": None if self.task is None else self.task.name,
            **{name: size for name, size in sizes.items() if name != self.over},
            **{name.replace("_", " "): value for name, value in self.options.items()},
            "seed": self.seed,
        }

    @property
    def _options(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name != "block_length"}

    def _size(self, name: str, value: int | None = None) -> Any:
        if name == self.over and value is not None:
            return value
        given = getattr(self, name)
        if given is not None:
            return given
        return PROMPT if name == "prompt" else CANVAS if self.task is None else self.task.canvas

    def _workload(self, lm: LM, value: int | None) -> Workload:
        prompt, canvas, requests = (self._size(name, value) for name in ("prompt", "canvas", "requests"))
        checks.whole_number("requests", requests, 1, checks.WIDEST)
        if self.task is None:
            texts = random_prompts(lm.model.facts, requests, prompt, self.mixed, self.seed)
        else:
            texts = task_prompts(lm, self.task, self.task.distinct("test", requests))
        made = Workload(texts, canvas, self.options.get("block_length"))
        longest = max(len(before) + len(after) for before, after in texts) + canvas
        if lm.context is not None and longest > lm.context:
            raise PromptTooLong(
                f"Prompt and canvas are up to {longest} tokens; the model's context is {lm.context}. Make them shorter."
            )
        return made
