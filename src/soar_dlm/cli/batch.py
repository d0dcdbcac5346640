"""Many prompts: JSON lines in, JSON lines out, each written when it is done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from soar_dlm.cli.files import Output
from soar_dlm.errors import PromptError, SoarError

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Result
    from soar_dlm.search.strategy import Strategy

_FIGURES = (
    "finish_reason",
    "steps",
    "forwards",
    "tokens_per_forward",
    "mean_confidence",
    "prompt_tokens",
    "completion_tokens",
    "seed",
)
_OWN = frozenset({"index", "input", "text", "choices", "error", "details", *_FIGURES})
"""The fields of a record that the command writes itself."""


@dataclass(frozen=True)
class Line:
    """One line of the input: what to decode, or the error, and the fields that its record keeps."""

    index: int
    prompt: Any
    kept: dict[str, Any]
    error: PromptError | None = None


def read_lines(source: str) -> list[Line]:
    """The lines that are not blank, counted from 0."""
    return [_read_line(index, line) for index, line in enumerate(one for one in source.split("\n") if one.strip())]


def _read_line(index: int, line: str) -> Line:
    """An object with "prompt" (a string) or "messages" (a list).

    Its record keeps all of its fields; those with the name of a field that we write go into an object "input". A line
    that is no object is kept there as it is.
    """
    try:
        entry = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        return Line(index, None, {"input": line}, PromptError(f"This line is not JSON: {error}."))
    if not isinstance(entry, dict):
        return Line(index, None, {"input": entry}, PromptError('A line must be an object such as {"prompt": "..."}.'))
    taken = {name: value for name, value in entry.items() if name in _OWN}
    kept = {name: value for name, value in entry.items() if name not in _OWN} | ({"input": taken} if taken else {})
    prompt = entry.get("prompt", entry.get("messages"))
    if prompt is None:
        missing = PromptError('A line must have "prompt" (a string) or "messages" (a list of role and content).')
        return Line(index, None, kept, missing)
    return Line(index, prompt, kept)


def summary(result: Result) -> dict[str, Any]:
    """The figures of a result as output files have them; what its search counted or measured, if it did."""
    figures = {**result.to_dict(), **result.usage}
    figures["tokens_per_forward"] = round(result.tokens_per_forward, 4)
    figures["mean_confidence"] = round(result.mean_confidence, 6)
    details = {name: value if isinstance(value, int) else round(value, 6) for name, value in result.details.items()}
    return {name: figures[name] for name in _FIGURES} | ({"details": details} if details else {})


def trace_record(index: int, prompt: Any, result: Result, sample: int | None = None) -> dict[str, Any]:
    """One line of a trace file; canvas positions count from the start of the prompt."""
    return {
        "index": index,
        **({} if sample is None else {"sample": sample}),
        "prompt": prompt,
        "text": result.text,
        "token_ids": result.token_ids,
        "prompt_length": result.prompt_length,
        **summary(result),
        "trace": result.trace.to_json(),
    }


class BatchWriter:
    """Writes one record per line as it is done; counts them and the failures.

    The trace comes first, so that a line with a record has its trace, too, whenever the run is interrupted.
    """

    def __init__(self, output: Output, trace: Output | None, done: int = 0, failed: int = 0) -> None:
        self._output, self._trace = output, trace
        self.done, self.failed = done, failed

    def result(self, line: Line, outcome: Result | list[Result]) -> None:
        """The record of one text, or of several as ``choices``."""
        if isinstance(outcome, list):
            for sample, result in enumerate(outcome):
                self._write_trace(line, result, sample)
            record: dict[str, Any] = {"choices": [{"text": one.text, **summary(one)} for one in outcome]}
        else:
            self._write_trace(line, outcome, None)
            record = {"text": outcome.text, **summary(outcome)}
        self._write(line, record)

    def error(self, line: Line, error: SoarError) -> None:
        self.failed += 1
        self._write(line, {"error": {"type": type(error).__name__, "message": str(error)}})

    def _write(self, line: Line, record: dict[str, Any]) -> None:
        self.done += 1
        self._output.write_json({"index": line.index, **line.kept, **record})

    def _write_trace(self, line: Line, result: Result, sample: int | None) -> None:
        if self._trace is not None:
            self._trace.write_json(trace_record(line.index, line.prompt, result, sample))


def run_batch(
    lm: LM, lines: Sequence[Line], writer: BatchWriter, strategy: Strategy, n: int | None, options: dict[str, Any]
) -> Iterator[list[Result]]:
    """Decode every line and write its record; a line that is bad or fails gets an error record.

    Yields the texts of each line once its record is written; none for an error.
    """
    for line in lines:
        if line.error is not None:
            writer.error(line, line.error)
            yield []
    good = [line for line in lines if line.error is None]
    for place, outcome in lm.generate_as_completed((line.prompt for line in good), strategy, n=n, **options):
        if isinstance(outcome, SoarError):
            writer.error(good[place], outcome)
            yield []
        else:
            writer.result(good[place], outcome)
            yield outcome if isinstance(outcome, list) else [outcome]
