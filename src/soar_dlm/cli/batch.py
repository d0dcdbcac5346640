"""Many prompts: JSON lines in, JSON lines out, each written when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from soar_dlm.cli.files import Output
from soar_dlm.cli.lines import FIGURES, Line
from soar_dlm.cli.resume import Progress
from soar_dlm.errors import SoarError

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Result
    from soar_dlm.search.strategy import Strategy


def summary(result: Result) -> dict[str, Any]:
    """The figures of a result as output files have them, with ``details`` if its search counted or measured any."""
    figures = {**result.to_dict(), **result.usage}
    figures["tokens_per_forward"] = round(result.tokens_per_forward, 4)
    figures["mean_confidence"] = round(result.mean_confidence, 6)
    details = {name: value if isinstance(value, int) else round(value, 6) for name, value in result.details.items()}
    return {name: figures[name] for name in FIGURES} | ({"details": details} if details else {})


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


class BatchWriter:
    """Writes one record per line as it is done, after those that were found; counts them and the failures.

    The trace comes first, so that every record has its trace, whenever the run is interrupted.
    """

    def __init__(self, output: Output, trace: Output | None, found: Progress) -> None:
        self._output, self._trace = output, trace
        self.done, self.failed = len(found.done), found.failed
        output.keep(found.output_bytes)
        if trace is not None:
            trace.keep(found.trace_bytes)

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
        self._output.add_json({"index": line.index, **line.kept, **record})

    def _write_trace(self, line: Line, result: Result, sample: int | None) -> None:
        if self._trace is not None:
            self._trace.add_json(trace_record(line.index, line.prompt, result, sample))


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
