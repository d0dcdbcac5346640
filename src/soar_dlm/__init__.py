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
    "Answer": "soar_dlm.search.question",
    "AsyncLM": "soar_dlm.async_lm",
    "Candidate": "soar_dlm.search.candidate",
    "Commit": "soar_dlm.search.candidate",
    "Core": "soar_dlm.search.core",
    "Deliberate": "soar_dlm.search.deliberate",
    "Engine": "soar_dlm.engine.engine",
    "EngineSettings": "soar_dlm.engine.settings",
    "EntropyBound": "soar_dlm.search.entropy_bound",
    "Event": "soar_dlm.results",
    "Factor": "soar_dlm.search.factor",
    "Frechet": "soar_dlm.search.frechet",
    "FreeDave": "soar_dlm.search.freedave",
    "GenerateOptions": "soar_dlm.options",
    "Greedy": "soar_dlm.search.greedy",
    "Infilling": "soar_dlm.results",
    "InfillOptions": "soar_dlm.options",
    "Klass": "soar_dlm.search.klass",
    "LM": "soar_dlm.lm",
    "load": "soar_dlm.lm",
    "Lopa": "soar_dlm.search.lopa",
    "make_strategy": "soar_dlm.search.catalogue",
    "make_task": "soar_dlm.tasks.catalogue",
    "Metric": "soar_dlm.search.confidence",
    "METRICS": "soar_dlm.search.metrics",
    "Options": "soar_dlm.options",
    "Place": "soar_dlm.search.question",
    "Pool": "soar_dlm.search.candidate",
    "PositionBeam": "soar_dlm.search.position_beam",
    "Problem": "soar_dlm.tasks.problem",
    "Proposal": "soar_dlm.search.candidate",
    "Question": "soar_dlm.search.question",
    "Reading": "soar_dlm.search.question",
    "Request": "soar_dlm.engine.request",
    "Result": "soar_dlm.results",
    "Soar": "soar_dlm.search.soar",
    "SoarError": "soar_dlm.errors",
    "Start": "soar_dlm.search.start",
    "STRATEGIES": "soar_dlm.search.catalogue",
    "Strategy": "soar_dlm.search.strategy",
    "Task": "soar_dlm.tasks.task",
    "TASKS": "soar_dlm.tasks.catalogue",
    "Template": "soar_dlm.template",
    "Trace": "soar_dlm.engine.trace",
    "Wanted": "soar_dlm.search.question",
}

__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605

if TYPE_CHECKING:
    from soar_dlm.async_lm import AsyncLM as AsyncLM
    from soar_dlm.engine.engine import Engine as Engine
    from soar_dlm.engine.request import Request as Request
    from soar_dlm.engine.settings import EngineSettings as EngineSettings
    from soar_dlm.engine.trace import Trace as Trace
    from soar_dlm.errors import SoarError as SoarError
    from soar_dlm.lm import LM as LM
    from soar_dlm.lm import load as load
    from soar_dlm.options import GenerateOptions as GenerateOptions
    from soar_dlm.options import InfillOptions as InfillOptions
    from soar_dlm.options import Options as Options
    from soar_dlm.results import Event as Event
    from soar_dlm.results import Infilling as Infilling
    from soar_dlm.results import Result as Result
    from soar_dlm.search.adaptive_parallel import AdaptiveParallel as AdaptiveParallel
    from soar_dlm.search.candidate import Candidate as Candidate
    from soar_dlm.search.candidate import Commit as Commit
    from soar_dlm.search.candidate import Pool as Pool
    from soar_dlm.search.candidate import Proposal as Proposal
    from soar_dlm.search.catalogue import STRATEGIES as STRATEGIES
    from soar_dlm.search.catalogue import make_strategy as make_strategy
    from soar_dlm.search.confidence import Metric as Metric
    from soar_dlm.search.core import Core as Core
    from soar_dlm.search.deliberate import Deliberate as Deliberate
    from soar_dlm.search.entropy_bound import EntropyBound as EntropyBound
    from soar_dlm.search.factor import Factor as Factor
    from soar_dlm.search.frechet import Frechet as Frechet
    from soar_dlm.search.freedave import FreeDave as FreeDave
    from soar_dlm.search.greedy import Greedy as Greedy
    from soar_dlm.search.klass import Klass as Klass
    from soar_dlm.search.lopa import Lopa as Lopa
    from soar_dlm.search.metrics import METRICS as METRICS
    from soar_dlm.search.position_beam import PositionBeam as PositionBeam
    from soar_dlm.search.question import Answer as Answer
    from soar_dlm.search.question import Place as Place
    from soar_dlm.search.question import Question as Question
    from soar_dlm.search.question import Reading as Reading
    from soar_dlm.search.question import Wanted as Wanted
    from soar_dlm.search.soar import Soar as Soar
    from soar_dlm.search.start import Start as Start
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
