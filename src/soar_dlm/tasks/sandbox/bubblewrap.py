"""bubblewrap, where it is installed: namespaces and a root folder made by a program that many systems rely on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

BUILT = ("user", "network", "ipc", "mount", "pid")
"""The walls that stand when it has started a program."""


@cache
def found() -> str | None:
    """The path of bubblewrap, if it is installed and can limit the size of folders (0.7 or later)."""
    path = shutil.which("bwrap")
    if path is None:
        return None
    try:
        said = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return path if "--size" in said.stdout else None


def command(path: str, readable: Sequence[str], size: int, inside: str) -> list[str]:
    """The arguments to put before a command line: nothing is seen but ``readable``, only ``/tmp`` can be written."""
    arguments = [path, "--unshare-user", "--uid", "1000", "--gid", "1000", "--unshare-ipc", "--unshare-pid"]
    arguments += ["--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
    arguments += ["--size", str(size), "--tmpfs", "/tmp"]
    for one in readable:
        if os.path.islink(one):
            arguments += ["--symlink", os.readlink(one), one]
        elif one.startswith("/dev/"):
            arguments += ["--dev-bind-try", one, one]
        else:
            arguments += ["--ro-bind-try", one, one]
    return [*arguments, "--remount-ro", "/", "--dir", inside, "--chdir", inside, "--"]
