"""Where things are: what a program can read, and the folders that an evaluation uses and removes."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from soar_dlm.files import explained, lasting_folder

PREFIX = "soar-sandbox-"
SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store", "/gnu/store", "/etc/ld.so.cache",
    "/etc/alternatives", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
PACKAGES = ("numpy",)
"""Packages beside the standard library that a program can import, where they are installed."""


def interpreter() -> str:
    """The interpreter itself, not a link to it from a virtual environment: its files are found beside it."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def readable() -> tuple[str, ...]:
    """The paths that a program can read: the interpreter, its libraries, the system's libraries and a few packages.

    Links are followed, except those of the system, which stay what they are.
    """
    standard = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")]
    prefixes = {sys.base_prefix, sys.base_exec_prefix}
    wanted = [interpreter(), *standard, *(f"{prefix}/{lib}" for prefix in prefixes for lib in ("lib", "lib64"))]
    wanted += library_path().split(":")
    wanted += [str(path) for folder in _packages() for path in (folder, folder.with_name(f"{folder.name}.libs"))]
    real = [os.path.realpath(path) for path in wanted if path]
    found: list[str] = []
    for path in sorted(dict.fromkeys([*SYSTEM, *real])):
        if os.path.exists(path) and not any(
            path.startswith(f"{other}/") and not os.path.islink(other) for other in found
        ):
            found.append(path)
    return tuple(found)


def library_path() -> str:
    """Where the interpreter finds its own library, on systems that say so in the environment; no other folder."""
    given = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return ":".join(path for path in given if os.path.isabs(path) and any(Path(path).glob("libpython*.so*")))


def _packages() -> list[Path]:
    specs = [find_spec(name) for name in PACKAGES]
    return [Path(spec.origin).resolve().parent for spec in specs if spec is not None and spec.origin]


class Folder:
    """The folder of one evaluation: ``packages`` to import from, an empty ``root`` to mount on, and work folders.

    It is removed when its process ends; what a killed process left is removed when the next one starts.
    """

    def __init__(self) -> None:
        self.path = Path(os.path.realpath(lasting_folder(PREFIX)))
        self.root, self.packages = self.path / "root", self.path / "packages"
        with explained("write", self.path):
            self.root.mkdir()
            self.packages.mkdir()
            for folder in _packages():
                (self.packages / folder.name).symlink_to(folder)

    @contextmanager
    def work(self) -> Iterator[Path]:
        """A new empty folder, which is gone afterwards."""
        with explained("write", self.path):
            made = Path(tempfile.mkdtemp(dir=self.path))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


_making = threading.Lock()
_folders: dict[int, Folder] = {}


def folder() -> Folder:
    """The folder of this process."""
    with _making:
        if os.getpid() not in _folders:
            _folders[os.getpid()] = Folder()
        return _folders[os.getpid()]
