"""Files that the command reads and writes."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from soar_dlm.errors import InputFileError

_ESCAPES = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029, *range(0xD800, 0xE000))}
"""Characters that JSON allows in a line but some readers take for its end, and halves that UTF-8 cannot hold."""


class Output:
    """A file, or standard output for None and "-"; each line is flushed as it is written.

    1. Whether the file can be written is checked at once, but it is created or changed only when the first line comes.
    2. An existing file is replaced only with ``overwrite``. With ``keep``, its first ``keep`` bytes stay and lines are
       added after them; the user is pointed to that possibility if the output is ``resumable``.
    3. A file that is being written is locked.
    """

    def __init__(
        self, path: Path | None, *, overwrite: bool = False, keep: int | None = None, resumable: bool = False
    ) -> None:
        self._path = None if path is None or str(path) == "-" else path
        self._file: IO[str] | None = sys.stdout if self._path is None else None
        self._keep = keep
        if self._path is None:
            return
        if self._path.is_file() and not overwrite and keep is None:
            resume = ", or continue an interrupted run with --resume" if resumable else ""
            raise InputFileError(f"{self._path} exists. Replace it with --overwrite{resume}, or choose another file.")
        target = self._path if self._path.exists() else self._path.absolute().parent
        if self._path.is_dir() or not os.access(target, os.W_OK):
            raise InputFileError(f"Cannot write {self._path}. Check that its folder exists and can be written to.")

    @property
    def is_stdout(self) -> bool:
        return self._path is None

    def write(self, line: str) -> None:
        if self._file is None:
            self._file = self._open()
        self._file.write(line + "\n")
        self._file.flush()

    def write_json(self, record: Any) -> None:
        self.write(json.dumps(record, ensure_ascii=False).translate(_ESCAPES))

    def _open(self) -> IO[str]:
        assert self._path is not None
        try:
            file = self._path.open("a", encoding="utf-8", newline="\n")
            if self._path.is_file():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.truncate(self._keep or 0)
        except BlockingIOError as error:
            raise InputFileError(f"Another process is writing {self._path}; wait until it is done.") from error
        except OSError as error:
            raise InputFileError(f"Cannot write {self._path}: {error.strerror}.") from error
        return file


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
