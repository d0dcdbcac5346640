"""``/v1/strategies`` and ``/v1/examples``: what there is to choose from, and what to try it on."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from types import UnionType
from typing import Annotated, Any, Literal, Optional, Union, get_args, get_origin, get_type_hints

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from soar_dlm.async_lm import AsyncLM
from soar_dlm.checks import LAST_SEED
from soar_dlm.errors import SoarError
from soar_dlm.jobs import MAX_LENGTH
from soar_dlm.lm import LM
from soar_dlm.models.embedded import EMBEDDED
from soar_dlm.options import CACHES, GenerateOptions, InfillOptions
from soar_dlm.search.about import About, all_strategies
from soar_dlm.search.metrics import METRICS
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

router = APIRouter()

Kind = Literal["whole", "real", "text", "switch", "choice"]
_DEFAULTS = {
    **{entry.name: entry.default for kind in (InfillOptions, GenerateOptions) for entry in fields(kind)},
    "max_length": MAX_LENGTH,
}
_KINDS: dict[Any, Kind] = {bool: "switch", int: "whole", float: "real", str: "text"}


class Setting(BaseModel):
    """A setting of a strategy; without a value of its own, a request gets the default of this model."""

    name: str
    kind: Kind
    default: Union[bool, int, float, str, None]
    choices: list[str] = []


class StrategyFacts(BaseModel):
    name: str
    rule: str
    settings: list[Setting]


class Strategies(BaseModel):
    """``thresholds`` belong to a metric each; ``options`` are those of a request that do not depend on its strategy.

    The settings of the ``default`` strategy hold where a request names no strategy.
    """

    model: str
    context: Optional[int]
    default: str
    thresholds: dict[str, float]
    options: list[Setting]
    strategies: list[StrategyFacts]


class Example(BaseModel):
    """A problem of a task that the model knows, and its right answer."""

    task: str
    title: str
    prompt: Optional[str] = None
    template: Optional[str] = None
    max_tokens: Optional[int] = None
    answer: str


class Examples(BaseModel):
    examples: list[Example]


@router.get("/v1/strategies")
def strategies(request: Request) -> Strategies:
    """The strategies, with the settings that they have for this model where a request says nothing."""
    lm = _lm(request)
    return Strategies(
        model=lm.name,
        context=lm.context,
        default=_default(lm),
        thresholds=dict(lm.model.facts.thresholds),
        options=_options(lm),
        strategies=[
            StrategyFacts(name=one.name, rule=one.rule, settings=_settings(one, lm)) for one in all_strategies()
        ],
    )


@router.get("/v1/examples")
def examples(request: Request, seed: Annotated[int, Query(ge=0, le=LAST_SEED)] = 0) -> Examples:
    """One problem of each task that the model was trained for; none where it is not known."""
    model = EMBEDDED.get(_lm(request).name)
    tasks = [make_task(name) for name in (() if model is None else model.tasks)]
    return Examples(examples=[_example(task, seed) for task in tasks])


def _lm(request: Request) -> LM:
    lm: AsyncLM = request.app.state.lm
    return lm.lm


def _default(lm: LM) -> str:
    """The strategy of requests that name none."""
    return lm.defaults.strategy or "soar"


def _options(lm: LM) -> list[Setting]:
    """What the page offers; a blank that grows has a greatest length."""
    facts, defaults = lm.model.facts, {**_DEFAULTS, **lm.defaults.options}
    kinds: dict[str, Kind] = {"max_tokens": "whole", "block_length": "whole", "cache": "choice", "seed": "whole"}
    kinds["temperature"] = "real"
    if facts.expand_id is not None and facts.delete_id is not None:
        kinds["max_length"] = "whole"
    return [
        Setting(
            name=name,
            kind=kind,
            default=defaults["max_new_tokens" if name == "max_tokens" else name],
            choices=list(CACHES) if kind == "choice" else [],
        )
        for name, kind in kinds.items()
    ]


def _settings(about: About, lm: LM) -> list[Setting]:
    """Those settings of a strategy that are a single value."""
    defaults = {**about.settings, **_bound(about, lm)}
    found = []
    for name in about.settings:
        kind = _kind(about.kind, name)
        if kind is not None:
            choices = METRICS.names() if kind == "choice" else []
            found.append(Setting(name=name, kind=kind, default=defaults[name], choices=choices))
    return found


def _bound(about: About, lm: LM) -> dict[str, Any]:
    """The settings of a strategy for this model; none of one that cannot be made without being told more.

    The checkpoint's own settings of its default strategy hold only where no strategy is named.
    """
    try:
        made = lm.strategy(None if about.name == _default(lm) else about.name).bound(lm.model.facts.thresholds)
    except SoarError:
        return {}
    return {name: getattr(made, name) for name in about.settings}


def _kind(strategy: Any, name: str) -> Kind | None:
    """How a setting is entered; None if it is not a single value."""
    if name == "metric":
        return "choice"
    hint = get_type_hints(strategy)[name]
    single = get_origin(hint) in (Union, UnionType)
    kinds = [_KINDS[one] for one in (get_args(hint) if single else (hint,)) if one in _KINDS]
    return kinds[0] if len(kinds) == 1 else None


def _example(task: Task, seed: int) -> Example:
    problem = next(iter(task.problems("test", seed)))
    shared = partial(
        Example, task=task.name, title=_TITLES.get(task.name, task.name), answer=problem.answer.strip("\n")
    )
    if task.infills:
        return shared(template=_template(problem, task.canvas))
    return shared(prompt=problem.prompt, max_tokens=task.canvas)


def _template(problem: Problem, length: int) -> str:
    """The text with a blank that stands alone on its line, and so for whole lines, as the answers are."""
    return f"{problem.prompt}{{blank:{length}}}\n{problem.suffix}"


_TITLES = {
    "mini-gsm": "Word problem",
    "mini-code": "Python function",
    "mini-sudoku": "Sudoku",
    "mini-infill": "Missing lines",
}
