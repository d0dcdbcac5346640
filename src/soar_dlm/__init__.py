"""Decoding for diffusion language models that searches over the order in which text is written.

import soar_dlm as soar
lm = soar.load("GSAI-ML/LLaDA-8B-Instruct")
print(lm.generate("Why is the sky blue?", soar.Soar(beam=2), chat=True).text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "AdaptiveParallel": "soar_dlm.search.adaptive_parallel",
    "Engine": "soar_dlm.engine.engine",
    "EngineSettings": "soar_dlm.engine.settings",
    "Event": "soar_dlm.results",
    "Greedy": "soar_dlm.search.greedy",
    "Infilling": "soar_dlm.results",
    "LM": "soar_dlm.lm",
    "Options": "soar_dlm.engine.settings",
    "Problem": "soar_dlm.tasks.problem",
    "PositionBeam": "soar_dlm.search.position_beam",
    "Request": "soar_dlm.engine.request",
    "Result": "soar_dlm.results",
    "STRATEGIES": "soar_dlm.search.catalogue",
    "Soar": "soar_dlm.search.soar",
    "SoarError": "soar_dlm.errors",
    "Strategy": "soar_dlm.search.strategy",
    "TASKS": "soar_dlm.tasks.catalogue",
    "Task": "soar_dlm.tasks.task",
    "Template": "soar_dlm.template",
    "Trace": "soar_dlm.engine.trace",
    "load": "soar_dlm.lm",
    "make_strategy": "soar_dlm.search.catalogue",
    "make_task": "soar_dlm.tasks.catalogue",
}

__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605

if TYPE_CHECKING:
    from soar_dlm.engine.engine import Engine as Engine
    from soar_dlm.engine.request import Request as Request
    from soar_dlm.engine.settings import EngineSettings as EngineSettings
    from soar_dlm.engine.settings import Options as Options
    from soar_dlm.engine.trace import Trace as Trace
    from soar_dlm.errors import SoarError as SoarError
    from soar_dlm.lm import LM as LM
    from soar_dlm.lm import load as load
    from soar_dlm.results import Event as Event
    from soar_dlm.results import Infilling as Infilling
    from soar_dlm.results import Result as Result
    from soar_dlm.search.adaptive_parallel import AdaptiveParallel as AdaptiveParallel
    from soar_dlm.search.catalogue import STRATEGIES as STRATEGIES
    from soar_dlm.search.catalogue import make_strategy as make_strategy
    from soar_dlm.search.greedy import Greedy as Greedy
    from soar_dlm.search.position_beam import PositionBeam as PositionBeam
    from soar_dlm.search.soar import Soar as Soar
    from soar_dlm.search.strategy import Strategy as Strategy
    from soar_dlm.tasks.catalogue import TASKS as TASKS
    from soar_dlm.tasks.catalogue import make_task as make_task
    from soar_dlm.tasks.problem import Problem as Problem
    from soar_dlm.tasks.task import Task as Task
    from soar_dlm.template import Template as Template


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``soar --help`` does not wait for PyTorch."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
