"""A file of traces, compressed or not, and the one of them that the user chose."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from soar_dlm.cli.files import open_input
from soar_dlm.errors import InputFileError, SettingsError, SoarError, told
from soar_dlm.files import explained
from soar_dlm.strict_json import DEEPEST, read_json

if TYPE_CHECKING:
    from soar_dlm.engine.trace import Trace

LONGEST_LINE = 2**28
"""The most bytes of a line, far more than any trace."""

AROUND = 10
"""Levels that a line may have around the prompt that it keeps."""

PARTS = ("index", "method", "sample")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Key:
    """What tells a trace from the others in its file; a part that the file does not have is None."""

    index: int
    method: str | None = None
    sample: int | None = None


@dataclass(frozen=True)
class Choice:
    """The parts of a key that the user gave; the case of a method does not matter."""

    index: int | None = None
    method: str | None = None
    sample: int | None = None

    def fits(self, key: Key) -> bool:
        return (
            self.index in (None, key.index)
            and self.sample in (None, key.sample)
            and (self.method is None or self.method.casefold() == (key.method or "").casefold())
        )


class Chosen(NamedTuple):
    """A trace, and the text of each blank if the file has it."""

    trace: Trace
    texts: list[str] | None


def chosen_trace(path: Path, choice: Choice) -> Chosen:
    """The trace that fits the choice; if there is none, or several, the sentence says which there are.

    Of two traces with the same key the last counts, as an evaluation that was killed decodes its last turn again.
    """
    from soar_dlm.engine.trace import Trace

    keys: dict[Key, None] = {}
    fitting: dict[Key, None] = {}
    content: Any = None
    for number, line in _lines(path):
        key = _key(line, number, path)
        keys[key] = None
        if choice.fits(key):
            fitting[key], content = None, line
    if not keys:
        raise InputFileError(f"{path} has no traces. {_WRITERS}")
    if not fitting:
        raise SettingsError(f"{path} has no such trace. It has {_inventory(keys)}.")
    if len(fitting) > 1:
        several = [name for name in PARTS if len({getattr(key, name) for key in fitting}) > 1]
        options = " and ".join(f"--{name}" for name in several)
        raise SettingsError(f"{path} has {len(fitting)} such traces: {_inventory(fitting)}. Choose one with {options}.")
    try:
        return Chosen(Trace.from_json(content), _texts(content))
    except SoarError as error:
        raise InputFileError(f"{path}: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The lines of a file, parsed, with their numbers; a last one that is torn is left out."""
    read = 0
    with explained("read", path), open_input(path) as file:
        source = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP else file
        while True:
            try:
                line = source.readline(LONGEST_LINE + 1)
            except EOFError:  # the last member of a compressed file is torn
                return
            except (zlib.error, gzip.BadGzipFile) as error:
                raise InputFileError(f"{path} is damaged after line {read}: {told(error)}.") from error
            if not line:
                return
            if len(line) > LONGEST_LINE:
                raise InputFileError(f"Line {read + 1} of {path} is too long for a trace.")
            try:
                parsed = read_json(line, DEEPEST + AROUND)
            except InputFileError as error:
                if read and not line.endswith(b"\n"):
                    return
                raise InputFileError(f"Line {read + 1} of {path} is damaged. {error}") from error
            read += 1
            yield read, parsed


def _key(line: Any, number: int, path: Path) -> Key:
    """The key of a line; one that has no index, such as ``Trace.to_json`` makes, has its place in the file."""
    if isinstance(line, list):
        return Key(number - 1)
    if not isinstance(line, Mapping) or "trace" not in line:
        raise InputFileError(f"Line {number} of {path} is not a trace. {_WRITERS}")
    index, method, sample = line.get("index", number - 1), line.get("method"), line.get("sample")
    whole = all(isinstance(one, int) for one in (index, 0 if sample is None else sample))
    if not whole or not isinstance(method, (str, type(None))):
        raise InputFileError(f"Line {number} of {path} has an index, a method or a sample that is none.")
    return Key(index, method, sample)


_WRITERS = "'soar generate --trace' and 'soar eval --traces' write files of traces."


def _texts(line: Any) -> list[str] | None:
    """The text of each blank, where the line says it."""
    found = line.get("blanks", [line.get("text")]) if isinstance(line, Mapping) else None
    is_text = isinstance(found, list) and all(isinstance(one, str) for one in found)
    return found if is_text else None


def _inventory(keys: Iterable[Key]) -> str:
    """What there is of each part of the keys, on one line."""
    parts = []
    for name in PARTS:
        values = list(dict.fromkeys(getattr(key, name) for key in keys if getattr(key, name) is not None))
        if values:
            parts.append(f"{name} {_range(sorted(values)) if name != 'method' else ', '.join(map(repr, values))}")
    return "; ".join(parts)


def _range(numbers: Sequence[int]) -> str:
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    shown = ", ".join(map(str, numbers[:20]))
    return shown if len(numbers) <= 20 else f"{shown}, ..."
