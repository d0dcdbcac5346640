"""``--resume``: what an interrupted run of many prompts has done already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soar_dlm.errors import InputFileError
from soar_dlm.files import explained
from soar_dlm.prompt_lines import Line
from soar_dlm.strict_json import DEEPEST_RECORD, json_line, read_json


@dataclass(frozen=True)
class Progress:
    """The lines whose records are there, how many of them failed, and how many bytes of the two files stay."""

    done: frozenset[int] = frozenset()
    failed: int = 0
    output_bytes: int = 0
    trace_bytes: int = 0


def progress_of(output: Path, trace: Path | None, lines: Sequence[Line]) -> Progress:
    """How far the run that wrote ``output`` and ``trace`` came.

    1. A last line that was torn by the interruption does not count.
    2. Every record must belong to the line of the input that has its index; anything else is refused.
    3. Traces are written before their records, so those of a line without a record are at the end, and are cut off.
    """
    done, failed, kept = set[int](), set[int](), 0
    for record, end in _records(output):
        index = _index(record, output)
        if index >= len(lines) or not _same(lines[index].kept, record):
            raise InputFileError(
                f"The record with index {index} in {output} does not belong to this input. Resume with the input of "
                "the interrupted run, or start again with --overwrite."
            )
        done.add(index)
        failed |= {index} if "error" in record else set()
        kept = end
    if trace is None:
        return Progress(frozenset(done), len(failed), kept)
    traced, traces_kept = set[int](), 0
    for record, end in _records(trace):
        index = _index(record, trace)
        if index in done:
            traced.add(index)
            traces_kept = end
    if done - failed - traced:
        raise InputFileError(
            f"{trace} lacks the traces of texts that are in {output}. Resume with the trace file of the interrupted "
            "run, or without --trace, or start again with --overwrite."
        )
    return Progress(frozenset(done), len(failed), kept, traces_kept)


def _records(path: Path) -> Iterator[tuple[Any, int]]:
    """The complete lines of a file and where each ends, in bytes; none if there is no file."""
    end = 0
    with explained("read", path):
        if not path.exists():
            return
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                end += len(line)
                yield _record(path, number, line), end


def _record(path: Path, number: int, line: bytes) -> Any:
    try:
        return read_json(line, DEEPEST_RECORD)
    except InputFileError as error:
        raise InputFileError(
            f"Line {number} of {path} is damaged, so it cannot be resumed. Correct or remove that line. {error}"
        ) from error


def _index(record: Any, path: Path) -> int:
    index = record.get("index") if isinstance(record, dict) else None
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise InputFileError(f"{path} was not written by 'soar generate' for many prompts, so it cannot be resumed.")
    return index


def _same(kept: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a record has the fields that the record of a line keeps."""
    return json_line(dict(kept)) == json_line({name: record[name] for name in kept if name in record})
