"""All figures by name, and how they are made from the runs of one model on one task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def by_task(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each model and task that have a whole chunk of problems, in their order."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.problems:
            found.setdefault((run.model, run.task), []).append(run)
    if not found:
        raise NothingToDraw("No run there has finished its first chunk of problems with all methods.")
    return found


def pictures(names: Sequence[str], runs: Sequence[Run]) -> Iterator[Picture | NothingToDraw]:
    """These figures of every task, or the reason why a task lacks one."""
    for (_, task), own in by_task(runs).items():
        for name in names:
            try:
                yield FIGURES[name].make(own)
            except NothingToDraw as error:
                yield NothingToDraw(f"{name} of {task}: {error}")
