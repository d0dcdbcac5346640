"""What figures ask of a run, and what they say of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from soar_dlm.engine.trace import Trace
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Summary, against
from soar_dlm.evals.manifest import GREEDY, RecordedMethod
from soar_dlm.evals.runs import Run


class NothingToDraw(SettingsError):
    """The results lack what a figure shows; the text says what is missing."""


def traces_of(run: Run, method: RecordedMethod) -> list[Trace]:
    """The traces of a method, problem by problem."""
    if not run.traced:
        raise NothingToDraw(f"{run.folder} has no traces; run soar eval with --traces in a new folder.")
    return [run.traces[method.name, record.index].trace for record in run.records[method.name]]


def greedy_of(run: Run) -> RecordedMethod | None:
    """The first method that is greedy."""
    return next((method for method in run.methods.values() if method.label == GREEDY), None)


def baseline_of(run: Run, method: RecordedMethod) -> RecordedMethod:
    """Greedy by the same metric from the same length."""
    found = method.baseline_among(run.methods.values())
    if found is None:
        raise NothingToDraw(f"{run.folder} has no greedy decoding to compare {method.label} with.")
    return found


def against_greedy(run: Run) -> dict[str, Summary]:
    """Each method compared with greedy by the same metric from the same length."""
    return {
        name: against(run.records[name], run.records[baseline_of(run, method).name])
        for name, method in run.methods.items()
    }


def first_of(run: Run, *kinds: str) -> RecordedMethod:
    """A method whose strategy is one of these, the first of them that is there."""
    for kind in kinds:
        for method in run.methods.values():
            if method.kind == kind:
                return method
    raise NothingToDraw(f"{run.folder} has no results of {' or '.join(kinds)}.")


def widest_first(runs: Sequence[Run]) -> list[Run]:
    """The runs that compare the most strategies first; a sweep has many settings of few."""
    return sorted(runs, key=lambda run: -len({method.strategy_name for method in run.methods.values()}))


def about(run: Run, *methods: RecordedMethod) -> str:
    """The end of a caption: the model, the task, the number of problems, the lengths, and the methods' settings."""
    own = methods or tuple(run.methods.values())
    what = f"{run.model} on {run.task}, {run.problems:,} problems, canvas {_values(one.length for one in own)}"
    what += "".join(f", {how}" for how in dict.fromkeys(one.decoding for one in own) if how)
    if methods:
        settings = "; ".join(f"{one.label}: {_without_defaults(one.strategy)}" for one in methods)
    else:
        settings = f"Metric {_values(one.metric for one in own)}"
        settings += f", K = {_values(one.beam for one in own)}, tau = {_values(one.threshold for one in own)}"
    return f"{what}. {settings}."


def _values(found: Iterable[int | float | str | None]) -> str:
    """The different values, numbers first."""
    known = sorted({one for one in found if one is not None}, key=lambda one: (isinstance(one, str), one))
    return ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in known) or "none"


def _without_defaults(strategy: str) -> str:
    """A strategy as a manifest has it, without the settings that are off."""
    return re.sub(r", \w+=(None|False)(?=[,)])", "", strategy)
