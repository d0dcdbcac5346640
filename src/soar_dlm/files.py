"""Files that are there whole or not at all, files and folders for one process at a time, disk trouble as a sentence.

Whatever a later run depends on is written through this module.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

from soar_dlm.errors import InputFileError
from soar_dlm.strict_json import json_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEFTOVER = re.compile(r"\..+\.\d+\.new")
"""The names of files that are not whole yet."""
LOCK = ".lock"
"""The file in a folder that is locked while a process uses the folder."""

STARTING = 60.0
"""Seconds that a process is given to lock a folder it has made."""

LONGEST_NAME = 250
"""Bytes of a file's name; systems allow 255."""


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turn what the system says against ``path`` (full disk, no permission, bad name) into a sentence."""
    try:
        yield
    except OSError as error:
        raise InputFileError(f"Cannot {doing} {path}: {error.strerror or error}.") from error
    except RuntimeError as error:
        if "Symlink loop" not in str(error):
            raise
        raise InputFileError(f"Cannot {doing} {path}: its links lead in a circle.") from error
    except ValueError as error:
        if "null" not in str(error) and not isinstance(error, UnicodeEncodeError):
            raise
        raise InputFileError(f"Cannot {doing} {str(path)!r}: it cannot be the name of a file ({error}).") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to the path this yields; it takes the place of ``path`` in one move once it is on the disk.

    If anything fails before that, ``path`` is as it was and nothing else is left. An existing file keeps its mode, and
    a link stays a link. Anything but a file, such as a folder or a device, is not replaced.
    """
    with explained("write", path):
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise InputFileError(f"Cannot write {path}: it is not a file.")
        fresh = _beside(target, f".{os.getpid()}.new")
    try:
        with explained("write", path):
            yield fresh
            _on_disk(fresh)
            if target.exists():
                os.chmod(fresh, target.stat().st_mode & 0o7777)
            os.replace(fresh, target)
            _on_disk(target.parent)
    finally:
        with suppress(OSError):
            fresh.unlink()


def write_text(path: Path, text: str) -> None:
    """Replace a file's text in one move, in UTF-8 with the line ends that the text has."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputFileError(f"Cannot write {path}: UTF-8 cannot hold its text ({error.reason}).") from error
    with replacing(path) as fresh:
        fresh.write_bytes(content)


def write_json(path: Path, content: Mapping[str, Any], *, lenient: bool = False) -> None:
    """Replace a JSON file in one move; see :func:`~soar_dlm.strict_json.json_text`."""
    write_text(path, json_text(content, lenient=lenient))


def append_line(path: Path, line: str | bytes) -> None:
    """Add a line to a file as :func:`append_bytes` does."""
    append_bytes(path, (line.encode("utf-8") if isinstance(line, str) else line) + b"\n")


def append_bytes(path: Path, content: bytes) -> None:
    """Add to a file and wait until the disk has it; if that fails, the file is as it was, or not there."""
    rest = memoryview(content)
    with explained("write", path):
        made = not path.exists()
        with path.open("ab", buffering=0) as file:
            before = file.seek(0, os.SEEK_END)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
                if made:
                    _on_disk(path.parent)
            except BaseException:
                file.truncate(before)
                if made:
                    path.unlink()
                raise


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed left half written in a folder that is used alone."""
    with explained("write", folder):
        for left in folder.glob(".*.new"):
            if LEFTOVER.fullmatch(left.name):
                left.unlink(missing_ok=True)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and those above it, for what is done inside; if that fails, those still empty are removed."""
    missing: list[Path] = []
    try:
        with explained("write", folder):
            missing = [one for one in (folder, *folder.parents) if not one.exists()]
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for one in missing:
            with suppress(OSError, ValueError):
                one.rmdir()
        raise


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The tables in a TOML file, which messages call ``what``."""
    with explained(f"read {what}", path):
        content = path.read_bytes()
    try:
        return tomllib.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise InputFileError(f"{str(path)!r} cannot be read: it is nested too deeply.") from error
    except ValueError as error:  # not TOML, not UTF-8, or a number that is too long
        raise InputFileError(f"{str(path)!r} is not a TOML file: {error}.") from error


def _beside(path: Path, end: str) -> Path:
    """A hidden name in the folder of ``path``: its own, or where that would be too long, a hash of it."""
    name = os.fsencode(path.name)
    own = sha256(name).hexdigest() if len(name) + len(end) > LONGEST_NAME else path.name
    return path.with_name(f".{own}{end}")


def _on_disk(path: Path) -> None:
    """Wait until the disk has what was written to a file, or the names in a folder."""
    if not hasattr(os, "O_DIRECTORY") and path.is_dir():
        return  # a system on which folders cannot be opened
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def check_usable(folder: Path) -> None:
    """Refuse a folder that cannot be written, cannot be made or is in use, before the work for it starts; make none."""
    with explained("write", folder):
        place = folder.resolve()
        while not place.exists():
            place = place.parent
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if place == folder.resolve():
        with locked(folder):
            pass


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Use an existing folder alone; where another process does, refuse at once and say which.

    The lock ends with its process, however that ends. A lock file that a killed process left means nothing.
    """
    with _held(folder / LOCK, folder):
        yield


@contextmanager
def locked_file(file: Path) -> Iterator[None]:
    """Write a file alone, whether or not it is there yet: as :func:`locked`, with a lock file beside it."""
    with explained("write", file):
        target = file.resolve()
        path = _beside(target, LOCK)
    with _held(path, file):
        yield


@contextmanager
def _held(path: Path, used: Path) -> Iterator[None]:
    """Hold the lock file ``path``, which stands for ``used``."""
    import fcntl

    with explained("write", used):
        file = _locked_file(path, used)
    owner = os.getpid()
    try:
        holder = f"process {os.getpid()} on {socket.gethostname()}, {_command()}, since {time.strftime('%F %T')}"
        with explained("write", used):
            os.write(file.fileno(), holder.encode(errors="replace"))  # nothing is left to write when it is closed
        yield
    finally:
        if os.getpid() == owner:  # a forked child that ends must not release the lock of its parent
            with suppress(OSError):
                path.unlink()
            fcntl.flock(file, fcntl.LOCK_UN)
        file.close()


def lasting_folder(prefix: str) -> Path:
    """A temporary folder that is removed when this process ends; a fork of it that ends before leaves it alone.

    A killed process cannot do that, so each call also removes the folders of the same prefix that killed processes
    left: those whose lock nobody holds any more.
    """
    for other in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError, InputFileError):
            if _is_left(other.lstat()) and (other / LOCK).exists():
                with locked(other):
                    shutil.rmtree(other, ignore_errors=True)
    with explained("write", Path(tempfile.gettempdir())):
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    owner, held = os.getpid(), ExitStack()
    held.callback(shutil.rmtree, folder, ignore_errors=True)
    held.enter_context(locked(folder))
    atexit.register(lambda: held.close() if os.getpid() == owner else None)  # not at the end of a forked child
    return folder


def _is_left(found: os.stat_result) -> bool:
    """Whether a folder is ours, and not one that another process is making at this moment."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and found.st_mtime < time.time() - STARTING


def _locked_file(path: Path, used: Path) -> TextIO:
    """The lock file, which is this process's now."""
    import fcntl

    while True:
        file = path.open("a+", encoding="utf-8", errors="replace")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(path, file):
                file.truncate(0)
                return file
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise InputFileError(
                f"{used} is in use: {holder}. Wait until that is done, or choose another path."
            ) from error
        except BaseException:
            file.close()
            raise
        file.close()


def _same(path: Path, file: TextIO) -> bool:
    """Whether the name still leads to this file: its last holder may have removed it before it was locked here."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _command() -> str:
    """What this process was started as, as short as it can be told from others."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return " ".join([name, *sys.argv[1:2]]) or "python"
