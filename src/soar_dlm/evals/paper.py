"""The paper's own figures and settings, to compare with what is measured."""

from __future__ import annotations

from dataclasses import dataclass

LLADA, DREAM, DREAMON = "LLaDA-8B-Base", "Dream-v0-Base-7B", "DreamOn-v0-7B"

LENGTHS = (256, 512)
"""Lengths of the canvas in Tables 1 and 2."""

INITIAL_LENGTHS = (8, 16, 32, 64)
"""Masks a blank starts with in Table 3."""

THRESHOLDS = {LLADA: 0.95, DREAM: 0.90}
"""For the probability, by model. Tables 2 and 3 use 0.9 for the margin and -0.1 for negative entropy."""


@dataclass(frozen=True)
class Figure:
    """Accuracy in percent, and how many times faster than greedy (1 for greedy itself)."""

    accuracy: float
    speed_up: float = 1.0


_COLUMNS = tuple((task, length) for task in ("humaneval", "mbpp", "gsm8k") for length in LENGTHS)

_TABLE_1: dict[str, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    LLADA: {
        "Greedy": ((32.3, 32.9, 40.8, 39.2, 70.4, 70.9), (1, 1, 1, 1, 1, 1)),
        "Adaptive Parallel": ((32.3, 32.9, 40.8, 39.2, 70.4, 71.0), (2.25, 2.79, 2.06, 2.42, 1.69, 1.92)),
        "PBS": ((34.2, 34.8, 41.4, 39.2, 71.6, 72.1), (0.48, 0.48, 0.48, 0.48, 0.47, 0.48)),
        "PBS parallel": ((31.1, 29.3, 35.2, 36.1, 69.5, 68.1), (0.98, 0.98, 0.97, 0.97, 0.98, 0.99)),
        "SOAR": ((32.9, 39.0, 40.8, 39.4, 71.3, 71.5), (1.63, 2.16, 1.49, 1.85, 1.18, 1.43)),
    },
    DREAM: {
        "Greedy": ((50.0, 53.7, 53.4, 55.4, 73.7, 74.5), (1, 1, 1, 1, 1, 1)),
        "Adaptive Parallel": ((50.0, 51.8, 53.8, 55.6, 73.2, 74.6), (1.63, 1.60, 2.20, 2.86, 2.19, 1.83)),
        "PBS": ((57.3, 58.1, 54.0, 56.9, 75.2, 76.4), (0.57, 0.52, 0.50, 0.52, 0.57, 0.56)),
        "PBS parallel": ((53.7, 54.3, 53.6, 54.0, 73.5, 75.1), (1.02, 0.98, 1.01, 0.96, 1.03, 1.01)),
        "SOAR": ((55.5, 55.1, 57.0, 56.2, 74.7, 75.7), (1.13, 1.07, 1.87, 2.47, 0.95, 1.07)),
    },
}

_METRICS = {
    ("margin", "Greedy"): ((47.0, 49.4), (1, 1)),
    ("margin", "SOAR"): ((51.2, 51.2), (1.04, 1.07)),
    ("neg_entropy", "Greedy"): ((51.2, 56.1), (1, 1)),
    ("neg_entropy", "SOAR"): ((53.0, 57.9), (1.07, 1.14)),
}

_INFILLING = {
    "Greedy": ((58.4, 57.4, 58.0, 58.0), (1, 1, 1, 1)),
    "SOAR": ((63.0, 66.1, 67.2, 67.7), (1.02, 1.02, 1.03, 1.04)),
}


def paper_figure(model: str, task: str, length: int | str, method: str, metric: str) -> Figure | None:
    """What the paper reports, if anything; a model is recognised by the last part of its name."""
    return _FIGURES.get((model.rstrip("/").rsplit("/", 1)[-1], task, length, method, metric))


def _figures() -> dict[tuple[str, str, int | str, str, str], Figure]:
    found: dict[tuple[str, str, int | str, str, str], Figure] = {}
    for model, methods in _TABLE_1.items():
        for method, rows in methods.items():
            for (task, length), *values in zip(_COLUMNS, *rows, strict=True):
                found[model, task, length, method, "probability"] = Figure(*values)
    for (metric, method), rows in _METRICS.items():
        for length, *values in zip(LENGTHS, *rows, strict=True):
            found[DREAM, "humaneval", length, method, metric] = Figure(*values)
    for method, rows in _INFILLING.items():
        for length, *values in zip(INITIAL_LENGTHS, *rows, strict=True):
            found[DREAMON, "humaneval-infilling-single", length, method, "neg_entropy"] = Figure(*values)
    return found


_FIGURES = _figures()
