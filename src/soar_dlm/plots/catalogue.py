"""How figures are made, by name, from the runs of each model on each task."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from soar_dlm.evals.runs import Run
from soar_dlm.plots import confidence, lengths, method, modes, order, pareto, path, sweep
from soar_dlm.plots.figure import Picture
from soar_dlm.plots.runs import NothingToDraw, widest_first

Maker = Callable[[Sequence[Run]], Picture]


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


MAKERS: dict[str, Maker] = {
    "confidence": _of_one(confidence.picture),
    "method": _of_one(method.picture),
    "pareto": _of_one(pareto.picture),
    "threshold": sweep.threshold_picture,
    "beam": sweep.beam_picture,
    "order": _of_one(order.picture),
    "modes": _of_one(modes.picture),
    "path": _of_one(path.picture),
    "lengths": _of_one(lengths.picture),
}
"""How each of :data:`~soar_dlm.plots.FIGURES` is made."""


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
        whose = [task, model] if sum(other == task for _, other in groups) > 1 else [task]
        for kind in kinds:
            name = re.sub(r"[^\w.-]+", "-", "-".join([kind, *whose]))
            try:
                found[name] = MAKERS[kind](own)
            except NothingToDraw as error:
                found[name] = NothingToDraw(f"{kind} of {' by '.join(whose)}: {error}")
    return found
