"""The figures of several replicas as one text for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


def merged(figures: Mapping[str, Iterable[Metric]]) -> bytes:
    """What the figures of each replica, by its name, come to: each with a label ``replica``."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Labelled(figures))
    return generate_latest(registry)


class _Labelled(Collector):
    def __init__(self, figures: Mapping[str, Iterable[Metric]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for replica, metrics in sorted(self._figures.items()):
            for metric in metrics:
                whole = found.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                labelled = (one._replace(labels={"replica": replica, **one.labels}) for one in metric.samples)
                whole.samples.extend(labelled)
        yield from found.values()
