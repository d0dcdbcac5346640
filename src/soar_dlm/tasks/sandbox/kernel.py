"""The system calls that Python does not offer. Runs inside the sandbox."""

from __future__ import annotations

import ctypes
import os

PDEATHSIG, DUMPABLE, NO_NEW_PRIVS = 1, 4, 38
KILL = 9

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: int | bytes | ctypes.Array[ctypes.c_uint32] | None) -> int:
    """A function of the C library by name; what it says against the call is an OSError."""
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    function = getattr(_libc, name)
    function.restype = ctypes.c_long
    answer = int(function(*given))
    if answer == -1:
        raise OSError(ctypes.get_errno(), name)
    return answer


def system_call(number: int, *arguments: int | bytes | None) -> int:
    """A system call by number, for those that the C library has no function for."""
    return call("syscall", number, *arguments)


def control(option: int, value: int) -> None:
    """prctl(2) with one value."""
    call("prctl", option, value, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed when the parent ends, however it ends. :func:`os.getppid` shows whether it had ended before."""
    control(PDEATHSIG, KILL)


def drop_capabilities() -> None:
    """Give up all rights of a superuser, for good."""
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    call("capset", header, nothing)


def end_after(seconds: int) -> None:
    """Be killed by the system's own timer."""
    call("alarm", seconds)


def silence() -> None:
    """Input is empty, output goes nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
