"""Landlock: the kernel's own wall around files, which needs no rights at all. Runs inside the sandbox.

Only named folders can be read and one can be written; everything else that the kernel knows to handle is refused: other
files, TCP, and signals and abstract sockets out of the sandbox. Landlock does not hide that a file exists, nor does it
keep a program from changing the marks of a file (mode, times); :mod:`soar_dlm.tasks.sandbox.seccomp` bars that.
"""

from __future__ import annotations

import os
import sys

from soar_dlm.tasks.sandbox.kernel import system_call

CREATE, ADD, RESTRICT = 444, 445, 446
EXECUTE, WRITE, READ, LIST, TRUNCATE, DEVICE = 1, 2, 4, 8, 1 << 14, 1 << 15
CHANGES = WRITE | READ | LIST | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13 | TRUNCATE
"""In its own folder a program reads, writes, lists, removes, makes files, folders and links, renames and truncates."""


def version() -> int:
    """The version of the kernel's interface; 0 without Landlock."""
    try:
        return system_call(CREATE, None, 0, 1)
    except OSError:
        return 0


def known_rights(abi: int) -> int:
    """Everything that this version of the interface can refuse, as bits."""
    return (1 << 13) - 1 | (1 << 13) * (abi > 1) | TRUNCATE * (abi > 2) | DEVICE * (abi > 4)


def restrict_files(readable: list[str], writable: list[str]) -> None:
    """Refuse this process and its children all files but these, from now on."""
    abi = version()
    if not abi:
        raise OSError("no Landlock")
    known = known_rights(abi)
    wanted = (
        known.to_bytes(8, sys.byteorder)
        + (3).to_bytes(8, sys.byteorder) * (abi > 3)
        + (3).to_bytes(8, sys.byteorder) * (abi > 5)
    )
    rules = system_call(CREATE, wanted, len(wanted), 0)
    try:
        for path in readable:
            allow(rules, path, READ | LIST)
        for path in writable:
            allow(rules, path, CHANGES & known)
        system_call(RESTRICT, rules, 0)
    finally:
        os.close(rules)


def allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no permission
    try:
        if not os.path.isdir(path):
            rights &= EXECUTE | WRITE | READ | TRUNCATE
        system_call(ADD, rules, 1, rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder), 0)
    finally:
        os.close(place)
