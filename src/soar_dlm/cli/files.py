"""Files that the command reads and writes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from soar_dlm.errors import InputFileError

_ESCAPES = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
"""Characters that JSON allows in a line and some readers take for its end."""


class Output:
    """A file, or standard output for None and "-"; each line is flushed as it is written.

    Whether it can be written is checked at once, but nothing is created or replaced before the first line is there. An
    existing file is only replaced with ``overwrite``.
    """

    def __init__(self, path: Path | None, overwrite: bool) -> None:
        self._path = None if path is None or str(path) == "-" else path
        self._file: IO[str] | None = sys.stdout if self._path is None else None
        if self._path is None:
            return
        if self._path.exists() and not overwrite:
            raise InputFileError(f"{self._path} exists. Choose another file, or replace it with --overwrite.")
        target = self._path if self._path.exists() else self._path.absolute().parent
        if self._path.is_dir() or not os.access(target, os.W_OK):
            raise InputFileError(f"Cannot write {self._path}. Check that its folder exists and may be written.")

    def write(self, line: str) -> None:
        if self._file is None:
            assert self._path is not None
            try:
                self._file = self._path.open("w", encoding="utf-8")
            except OSError as error:
                raise InputFileError(f"Cannot write {self._path}: {error.strerror}.") from error
        self._file.write(line + "\n")
        self._file.flush()

    def write_json(self, record: Any) -> None:
        self.write(json.dumps(record, ensure_ascii=False).translate(_ESCAPES))


def read_input(path: Path) -> str:
    """All of a text file, or of standard input for "-"."""
    try:
        if str(path) == "-":
            return sys.stdin.read()
        with path.open(encoding="utf-8", newline="") as file:  # line ends stay as they are
            return file.read()
    except OSError as error:
        raise InputFileError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputFileError(f"Cannot read {path}: it is not UTF-8 text ({error.reason}).") from error
