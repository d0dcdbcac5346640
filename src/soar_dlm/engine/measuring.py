"""Metrics are other people's code, and a forward that all requests share reads with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from soar_dlm.engine.memory import is_out_of_memory
from soar_dlm.errors import StrategyError, shown, told
from soar_dlm.search.confidence import Metric
from soar_dlm.search.metrics import get_metric

Measure = Callable[[Tensor, Tensor], Tensor]


def checked_metric(name: str) -> Metric:
    """The metric registered as ``name``; what it does wrong is a :class:`StrategyError` that names it."""
    metric = get_metric(name)
    several = None if metric.several is None else _checked(name, metric.several)
    return replace(metric, measure=_checked(name, metric.measure), several=several)


def _checked(name: str, measure: Measure) -> Measure:
    """The function, held to one value per token; a lack of memory is not its fault and passes unchanged."""

    def measured(values: Tensor, tokens: Tensor) -> Tensor:
        try:
            found: Any = measure(values, tokens)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise StrategyError(f"The metric {name!r} failed. {type(error).__name__}: {told(error)}.") from error
        if not isinstance(found, Tensor) or found.is_complex():
            raise StrategyError(f"The metric {name!r} must return a tensor of real numbers, not {shown(found)}.")
        if found.shape != tokens.shape or found.device != tokens.device:
            raise StrategyError(
                f"The metric {name!r} must return a tensor of shape {list(tokens.shape)} on {tokens.device}, not of "
                f"shape {list(found.shape)} on {found.device}."
            )
        return found

    return measured
