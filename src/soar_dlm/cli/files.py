"""Files that the command reads and writes."""

from __future__ import annotations

import codecs
import fcntl
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO

from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.files import explained, locked_file, write_text
from soar_dlm.strict_json import json_line

STREAM = Path("-")
"""The name for standard input and standard output."""

SEPARATOR = "---"
"""The line between several texts for one prompt."""

LONGEST_TEXT = 64 * 2**20
"""The most bytes of a text, far more than any model reads."""


class Output:
    """A file, or standard output for None and "-", always in UTF-8.

    1. Whether the file can be written is checked at once, but it is created or changed only when there is something to
       write. An existing file is replaced only with ``overwrite``. With ``resume`` it stays, up to the bytes that
       :meth:`keep` says, and lines are added. An output of many lines is written with :meth:`add` and can be resumed;
       any other with :meth:`replace`.
    2. Inside ``with`` no other process can write the file; a second one is told at once who has it.
    3. :meth:`replace` writes the whole file in one move. :meth:`add` hands a line to the system before it returns, so
       that a kill does not lose it; if that fails, the file has the lines before it and no part of this one.
    """

    def __init__(self, path: Path | None, *, overwrite: bool = False, resume: bool = False, many: bool = False) -> None:
        self._path = None if path is None or path == STREAM else path
        self._file: FileIO | None = None
        self._end = 0
        self._held = ExitStack()
        if self._path is None:
            return
        with explained("write", self._path):
            folder = self._path.resolve().parent
            self._is_file = self._path.is_file() or not self._path.exists()
            self._lockable = self._is_file and os.access(folder, os.W_OK)
            if self._path.is_file() and not overwrite and not resume:
                how = ", or continue an interrupted run with --resume" if many else ""
                with self._lock(self._path):  # while another process writes it, no option would help
                    raise InputFileError(
                        f"{self._path} exists. Replace it with --overwrite{how}, or choose another file."
                    )
            needed = [self._path] if self._path.exists() else []
            needed += [folder] if self._is_file and not (many and needed) else []  # what is replaced is moved there
            if self._path.is_dir() or not all(os.access(place, os.W_OK) for place in needed):
                raise InputFileError(f"Cannot write {self._path}. Check that its folder exists and can be written to.")

    def __enter__(self) -> Output:
        if self._path is not None:
            self._held.enter_context(self._lock(self._path))
        return self

    def _lock(self, path: Path) -> AbstractContextManager[None]:
        return locked_file(path) if self._lockable else nullcontext()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    @property
    def is_stdout(self) -> bool:
        return self._path is None

    def keep(self, count: int) -> None:
        """Keep the first ``count`` bytes of the file when a line is added."""
        self._end = count

    def replace(self, text: str, end: str = "\n") -> None:
        """Write ``text`` as all there is."""
        if self._path is None or not self._is_file:
            self.add(text, end)
        else:
            write_text(self._path, text + end)

    def add(self, line: str, end: str = "\n") -> None:
        if self._path is None:
            _print(line + end)
            return
        with explained("write", self._path):
            if self._file is None:
                self._file = self._opened(self._path)
            self._append(self._file, (line + end).encode())

    def add_json(self, record: Any) -> None:
        self.add(json_line(record))

    def _opened(self, path: Path) -> FileIO:
        if not path.exists():
            self._held.callback(_remove_if_empty, path)
        file = FileIO(path, "a")
        self._held.callback(file.close)
        if self._is_file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # also under another name, or in a read-only folder
            except BlockingIOError as error:
                raise InputFileError(f"Another process is writing {path}; wait until it is done.") from error
            file.truncate(self._end)
        return file

    def _append(self, file: FileIO, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[file.write(left) or 0 :]
        except BaseException:
            if self._is_file:
                with suppress(OSError):
                    file.truncate(self._end)
            raise
        self._end += len(data)


def _print(text: str) -> None:
    if sys.stdout is None:
        raise InputFileError("There is no standard output; name a file with --output.")
    try:
        print(text, end="", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputFileError(f"Cannot write to standard output: {error.strerror}.") from error


def _remove_if_empty(path: Path) -> None:
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


def open_input(path: Path) -> Any:
    """The bytes of a file, or of standard input for "-", for use with ``with``."""
    if path == STREAM:
        return nullcontext(_stdin())
    with explained("read", path):
        return path.open("rb")


def read_text(path: Path) -> str:
    """All of a text file, or of standard input for "-"; its line ends stay, a byte-order mark is dropped."""
    with explained("read", path), open_input(path) as file:
        content = file.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise InputFileError(f"{path} has more than {LONGEST_TEXT:,} bytes, too many for a text.")
    try:
        return str(content.removeprefix(codecs.BOM_UTF8), "utf-8")
    except UnicodeDecodeError as error:
        raise InputFileError(f"Cannot read {path}: it is not UTF-8 text ({error.reason}).") from error


def check_apart(read: Mapping[str, Path | None], written: Mapping[str, Path | None]) -> None:
    """Refuse two names for one file if it is written, by whatever links and relative paths they lead there.

    Names of files by what the user calls them; None is one that is not given, and "-" a standard stream.
    """
    seen: dict[Any, str] = {}
    for names, stream in ((read, sys.stdin), (written, sys.stdout)):
        for what, path in names.items():
            place = None if path is None else _place(path, stream)
            if names is written and place in seen:
                raise SettingsError(f"{seen[place]} and {what} are the same file; name two.")
            if place is not None:
                seen[place] = what


def _place(path: Path, stream: IO[str] | None) -> Any:
    """What tells a file from others: its number on its disk, or its path if it is not there; None if it has neither.

    A terminal and other devices can be read and written at once; two outputs to one standard output are one place.
    """
    standard = "standard output" if stream is sys.stdout else None
    try:
        found = path.stat() if path != STREAM else os.fstat(stream.fileno()) if stream is not None else None
    except (OSError, ValueError):
        found = None
    if found is None:
        return standard if path == STREAM else _resolved(path)
    if stat.S_ISCHR(found.st_mode):
        return standard if path == STREAM else None
    return found.st_dev, found.st_ino


def _resolved(path: Path) -> str:
    with explained("use", path):
        return str(path.resolve())


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise InputFileError("There is no standard input; name a file with --input.")
    return sys.stdin.buffer
