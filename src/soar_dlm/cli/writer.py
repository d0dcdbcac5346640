"""Many prompts: JSON lines in, JSON lines out, each written when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from soar_dlm.cli.files import Output
from soar_dlm.cli.resume import Progress
from soar_dlm.errors import SoarError
from soar_dlm.prompt_lines import Line
from soar_dlm.records import Outcome, record_of, traces_of

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Result
    from soar_dlm.search.strategy import Strategy


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

    def write(self, line: Line, outcome: Outcome | SoarError) -> None:
        self.done += 1
        self.failed += isinstance(outcome, SoarError)
        if self._trace is not None and not isinstance(outcome, SoarError):
            for trace in traces_of(line, outcome):
                self._trace.add_json(trace)
        self._output.add_json(record_of(line, outcome))


def run_batch(
    lm: LM, lines: Sequence[Line], writer: BatchWriter, strategy: Strategy, n: int | None, options: dict[str, Any]
) -> Iterator[list[Result]]:
    """Decode every line and write its record; a line that is bad or fails gets an error record.

    Yields the texts of each line once its record is written; none for an error.
    """
    for line in lines:
        if line.error is not None:
            writer.write(line, line.error)
            yield []
    good = [line for line in lines if line.error is None]
    for place, outcome in lm.generate_as_completed((line.prompt for line in good), strategy, n=n, **options):
        writer.write(good[place], outcome)
        if isinstance(outcome, SoarError):
            yield []
        else:
            yield outcome if isinstance(outcome, list) else [outcome]
