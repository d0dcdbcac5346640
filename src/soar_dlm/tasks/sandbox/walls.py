"""The names of the walls, in words for the user."""

from __future__ import annotations

from typing import Literal

Wall = Literal["files", "processes", "network", "memory", "calls"]

WALLS: dict[Wall, str] = {
    "files": "none of your files (bubblewrap, a mount namespace or Landlock)",
    "processes": "no way to other processes (bubblewrap, a process namespace or seccomp)",
    "network": "no network (bubblewrap, a network namespace or seccomp)",
    "memory": "no memory shared with other programs (bubblewrap, an IPC namespace or seccomp)",
    "calls": "no new processes, programs or sockets (seccomp)",
}
"""What each wall keeps a program from, and what it can be made of."""

NEEDED: tuple[Wall, ...] = ("files", "processes")
"""Without these no program runs, unless the user insists."""

MADE_OF: dict[Wall, tuple[str, ...]] = {
    "files": ("mount", "landlock"),
    "processes": ("pid", "seccomp"),
    "network": ("network", "seccomp"),
    "memory": ("ipc", "seccomp"),
    "calls": ("seccomp",),
}
"""Any one of these mechanisms makes the wall."""


def missing(built: list[str]) -> tuple[Wall, ...]:
    return tuple(wall for wall, ways in MADE_OF.items() if not set(ways) & set(built))
