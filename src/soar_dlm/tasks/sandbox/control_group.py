"""A control group for all programs of an evaluation, where this process may make one.

Every process has its own limit of memory; the group is for what such limits do not count, whatever that may be. Its
limit is above the sum of all others, so that no right program meets it because of another.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

PREFIX = "soar-sandbox-"
MEMORY = 4 * 2**30
ENTER = 'echo $$ > "$0" 2> /dev/null; exec "$@"'
"""Run a command as a member of the group."""
LIMITS = ("memory.max", "memory.limit_in_bytes")
"""The file that holds the limit, in both versions of control groups."""


def entering() -> list[str]:
    """The arguments to put before a command so that it runs in the group; none where there is no group."""
    group = _group(os.getpid())
    return [] if group is None else ["/bin/sh", "-c", ENTER, str(group / "cgroup.procs")]


@cache
def _group(process: int) -> Path | None:
    if not sys.platform.startswith("linux") or not os.path.exists("/bin/sh"):
        return None
    for place in _own_places():
        _remove_left_behind(place)
        group = place / f"{PREFIX}{process}"
        with suppress(OSError):
            group.mkdir(exist_ok=True)
            atexit.register(_remove, group, process)
            for name in LIMITS:
                if (group / name).exists():
                    (group / name).write_text(str(MEMORY))
                    return group
            group.rmdir()
    return None


def _own_places() -> list[Path]:
    """The folders of the groups that this process is in and that could limit memory."""
    found = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            roots = ("memory",) if "memory" in kinds.split(",") else ("", "unified") if not kinds else ()
            found += [Path("/sys/fs/cgroup", root, path.lstrip("/")) for root in roots]
    return [place for place in found if (place / "cgroup.procs").exists()]


def _remove_left_behind(place: Path) -> None:
    """Remove the groups of evaluations that have ended; one that has members cannot be removed."""
    for group in place.glob(f"{PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(PREFIX)).exists():
            with suppress(OSError):
                group.rmdir()


def _remove(group: Path, process: int) -> None:
    if os.getpid() == process:
        with suppress(OSError):
            group.rmdir()
