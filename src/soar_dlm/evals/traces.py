"""The traces of a run beside its results: one compressed line for each problem and method."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from soar_dlm import files
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import InputFileError, SoarError
from soar_dlm.evals.fields import Damaged, Fields
from soar_dlm.strict_json import json_line, read_json

TRACES = "traces.jsonl.gz"
MOST_BYTES = 2**28
"""The most that one line may take up, far more than any trace."""

_GZIP, _SIGN = 31, b"\x1f\x8b\x08"
"""What zlib calls a gzip member, and what each begins with."""


@dataclass(frozen=True)
class Decoded:
    """How a method decoded a problem, and the right answer to it; the prompt is in the trace's scene."""

    index: int
    method: str
    answer: str
    trace: Trace

    @property
    def line(self) -> str:
        known = {"index": self.index, "method": self.method, "answer": self.answer}
        return json_line({**known, **self.trace.to_line(packed=True)})

    @classmethod
    def from_json(cls, content: Any) -> Decoded:
        found = Fields(content)
        return cls(found.whole("index"), found.text("method"), found.text("answer"), Trace.from_json(found.content))


class TraceFile:
    """The traces in a folder of results, written by one process that has locked the folder.

    1. Each line is a gzip member of its own, so the whole is a gzip file (``zcat`` reads it), and what was written
       stays readable if the run is killed.
    2. A line is written before the record of the same problem and method; so a record that is there has its trace. Of
       two lines for one problem and method the last counts: the turn that a killed run was in is decoded again.
    3. What cannot be read at the end of the file is left out, and cut off when the run resumes: it may be torn. Any
       other damage is refused, and so is a record without its trace; a repair leaves out what cannot be read, and has
       the problems without a trace decoded again.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / TRACES

    def append(self, decoded: Decoded) -> None:
        files.append_bytes(self.path, gzip.compress(decoded.line.encode() + b"\n", mtime=0))

    def read(self) -> dict[tuple[str, int], Decoded]:
        """All traces by method and problem."""
        found: dict[tuple[str, int], Decoded] = {}
        for member in _members(self._content()):
            if member.torn:
                break
            if member.decoded is None:
                raise InputFileError(
                    f"{self.path} is damaged at byte {member.start + 1}. To leave such traces out and decode their "
                    "problems again, add --repair to the run."
                )
            found[member.decoded.method, member.decoded.index] = member.decoded
        return found

    def resume(self) -> None:
        """Cut off a line that is torn."""
        for member in _members(self._content()):
            if member.torn:
                with files.explained("write", self.path):
                    os.truncate(self.path, member.start)

    def repair(self) -> set[tuple[str, int]]:
        """Leave out all lines that cannot be read; the methods and problems that have a trace."""
        content = self._content()
        kept = [member for member in _members(content) if member.decoded is not None]
        with files.replacing(self.path) as fresh:
            fresh.write_bytes(b"".join(content[member.start : member.end] for member in kept))
        return {(one.decoded.method, one.decoded.index) for one in kept if one.decoded is not None}

    def _content(self) -> bytes:
        with files.explained("read", self.path):
            return self.path.read_bytes() if os.path.lexists(self.path) else b""


class _Member(NamedTuple):
    """A stretch of the file: a line, or something that is none; at the end of the file, that is torn."""

    start: int
    end: int
    decoded: Decoded | None
    torn: bool = False


def _members(content: bytes) -> Iterator[_Member]:
    """The members of a file one after the other; what cannot be read ends where the next member begins."""
    start = 0
    while start < len(content):
        text, end = _inflated(content, start)
        if text is not None:
            yield _Member(start, end, _decoded(text))
        else:
            following = content.find(_SIGN, start + 1)
            end = len(content) if following < 0 else following
            yield _Member(start, end, None, torn=following < 0)
        start = end


def _inflated(content: bytes, start: int) -> tuple[bytes | None, int]:
    """The text of the member that starts here, None if it cannot be read, and where it ends.

    It is fed up to each sign that may be the next member's, because zlib copies whatever it is given too much.
    """
    member, text, at = zlib.decompressobj(_GZIP), b"", start
    try:
        while at < len(content) and not member.eof and len(text) <= MOST_BYTES:
            following = content.find(_SIGN, at + 1)
            end = len(content) if following < 0 else following
            text += member.decompress(content[at:end], MOST_BYTES)
            at = end
    except zlib.error:
        return None, at
    return text if member.eof else None, at - len(member.unused_data)


def _decoded(text: bytes) -> Decoded | None:
    try:
        return Decoded.from_json(read_json(text))
    except (SoarError, Damaged):
        return None
