"""Metrics by name: the paper's three, and those that other packages add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soar_dlm.doors import door
from soar_dlm.errors import SettingsError
from soar_dlm.registry import Registry

if TYPE_CHECKING:
    from soar_dlm.search.confidence import Metric

METRICS: Registry[Metric] = Registry(
    "metric",
    "soar_dlm.metrics",
    {
        "probability": "soar_dlm.search.confidence:PROBABILITY",
        "margin": "soar_dlm.search.confidence:MARGIN",
        "neg_entropy": "soar_dlm.search.confidence:NEG_ENTROPY",
    },
)


@door
def get_metric(name: str) -> Metric:
    """The metric registered as ``name``."""
    from soar_dlm.search.confidence import Metric

    metric = METRICS.get(name)
    if not isinstance(metric, Metric):
        raise SettingsError(f"Metric {name!r} is not a soar_dlm.Metric; ask its author to make it one.")
    return metric
