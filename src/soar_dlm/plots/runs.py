"""What figures ask of a run, and what they say of it."""

from __future__ import annotations

from soar_dlm.engine.trace import Trace
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Summary, against
from soar_dlm.evals.manifest import GREEDY, RecordedMethod, length_order
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


def about(run: Run, *methods: RecordedMethod) -> str:
    """The end of a caption: the model, the task, the number of problems, the lengths, and what the methods were."""
    lengths = {method.length for method in methods or run.methods.values()}
    canvas = ", ".join(map(str, sorted(lengths, key=length_order)))
    what = f"{run.model} on {run.task}, {run.problems:,} problems, canvas {canvas}"
    settings = "; ".join(f"{method.label}: {method.strategy}" for method in methods)
    return f"{what}. {settings}." if settings else f"{what}."
