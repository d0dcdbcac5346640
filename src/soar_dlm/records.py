"""What output files say of a text: one record for a prompt, one line of its trace for each text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

from soar_dlm.errors import SoarError
from soar_dlm.prompt_lines import FIGURES, Line

if TYPE_CHECKING:
    from soar_dlm.results import Result

Outcome = Union["Result", list["Result"]]
"""What became of a prompt: its text, or several where several were asked for."""


def summary(result: Result) -> dict[str, Any]:
    """The figures of a result as output files have them, with ``details`` if its search counted or measured any."""
    figures = {**result.to_dict(), **result.usage}
    figures["tokens_per_forward"] = round(result.tokens_per_forward, 4)
    figures["mean_confidence"] = round(result.mean_confidence, 6)
    details = {name: value if isinstance(value, int) else round(value, 6) for name, value in result.details.items()}
    return {name: figures[name] for name in FIGURES} | ({"details": details} if details else {})


def record_of(line: Line, outcome: Outcome | SoarError) -> dict[str, Any]:
    """The record of one text, of several as ``choices``, or of what went wrong, with what the line's record keeps."""
    if isinstance(outcome, SoarError):
        told: dict[str, Any] = {"error": {"type": type(outcome).__name__, "message": str(outcome)}}
    elif isinstance(outcome, list):
        told = {"choices": [{"text": one.text, **summary(one)} for one in outcome]}
    else:
        told = {"text": outcome.text, **summary(outcome)}
    return {"index": line.index, **line.kept, **told}


def traces_of(line: Line, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """The lines of a trace file for a prompt's texts."""
    if isinstance(outcome, list):
        for sample, result in enumerate(outcome):
            yield trace_record(line.index, line.prompt, result, sample)
    else:
        yield trace_record(line.index, line.prompt, outcome)


def trace_record(
    index: int, prompt: Any, result: Result, sample: int | None = None, method: str | None = None
) -> dict[str, Any]:
    """One line of a trace file; canvas positions count from the start of the prompt."""
    return {
        "index": index,
        **({} if method is None else {"method": method}),
        **({} if sample is None else {"sample": sample}),
        "prompt": prompt,
        "text": result.text,
        "token_ids": result.token_ids,
        "prompt_length": result.prompt_length,
        **summary(result),
        **result.trace.to_line(),
    }
