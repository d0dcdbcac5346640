"""All figures by name, and how they are made from the runs of one model on one task."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from soar_dlm.evals.runs import Run
from soar_dlm.plots import confidence, lengths, method, modes, order, pareto, path, sweep
from soar_dlm.plots.figure import Picture
from soar_dlm.plots.runs import NothingToDraw, widest_first

Maker = Callable[[Sequence[Run]], Picture]


@dataclass(frozen=True)
class Kind:
    """A kind of figure: what it shows, and what it is called in the paper."""

    about: str
    paper: str
    make: Maker


def _of_one(make: Callable[[Run], Picture]) -> Maker:
    """The figure of the run with the most strategies that has what it shows; else what the last one lacks."""

    def made(runs: Sequence[Run]) -> Picture:
        *others, last = widest_first(runs)
        for run in others:
            try:
                return make(run)
            except NothingToDraw:
                continue
        return make(last)

    return made


FIGURES: dict[str, Kind] = {
    "confidence": Kind("accuracy over average confidence", "Figure 1", _of_one(confidence.picture)),
    "method": Kind("a beam that forks and collapses, from a trace", "Figure 2", _of_one(method.picture)),
    "pareto": Kind("accuracy over speed-up and tokens per forward", "Figure 3", _of_one(pareto.picture)),
    "threshold": Kind("confidence of tokens; accuracy and speed-up over tau", "Figure 4", sweep.threshold_picture),
    "beam": Kind("accuracy and speed-up over K", "Figure 5", sweep.beam_picture),
    "order": Kind("accuracy over confidence and AR-ness, by method", "Figure 6", _of_one(order.picture)),
    "modes": Kind("search and parallel mode over progress", "appendix", _of_one(modes.picture)),
    "path": Kind("step over position, two methods", "appendix", _of_one(path.picture)),
    "lengths": Kind("exact match over the initial length", "Table 3", _of_one(lengths.picture)),
}
"""Every kind of figure by its name."""


def by_task(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each model and task that have a whole chunk of problems, in their order."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.problems:
            found.setdefault((run.model, run.task), []).append(run)
    if not found:
        raise NothingToDraw("No run there has finished its first chunk of problems with all methods.")
    return found


def pictures(kinds: Sequence[str], runs: Sequence[Run]) -> dict[str, Picture | NothingToDraw]:
    """These figures of every model and task, or the reason why one is missing, by names that can be those of files.

    A name has the model only where several models have the task.
    """
    found: dict[str, Picture | NothingToDraw] = {}
    groups = by_task(runs)
    for (model, task), own in groups.items():
        several = sum(other == task for _, other in groups) > 1
        for kind in kinds:
            name = re.sub(r"[^\w.-]+", "-", f"{kind}-{task}-{model}" if several else f"{kind}-{task}")
            try:
                found[name] = FIGURES[kind].make(own)
            except NothingToDraw as error:
                found[name] = NothingToDraw(f"{kind} of {task}: {error}")
    return found
