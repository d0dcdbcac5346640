"""Walls around a program on Linux: namespaces, a separate root, no new processes and no sockets.

This code is passed as text and runs in the child process before the program does, since the child shares no modules
with the parent. Each wall is tried separately; the child reports the names of those that could not be built.
"""

from __future__ import annotations

import os
import sys
from typing import Literal

Wall = Literal["user", "network", "files", "processes", "calls"]

WALLS: dict[Wall, str] = {
    "user": "a user of its own (user namespace)",
    "network": "no network (network namespace)",
    "files": "none of your files (mount namespace)",
    "processes": "no view of other processes (process namespace)",
    "calls": "no new processes, programs or sockets (seccomp)",
}
"""What each wall keeps a program from, in words for the user."""

# The numbers are those of the kernel's interface: flags of unshare(2), mount(2) and prctl(2), and a seccomp filter that
# answers EPERM to the calls named, on the processors it knows.
BUILD_WALLS = r"""
def build_walls(read_only, size):
    import ctypes

    missing, libc = [], ctypes.CDLL(None, use_errno=True)

    def done(answer):
        if answer:
            raise OSError(ctypes.get_errno(), "")

    def mount(source, target, kind, flags, data=None):
        texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
        done(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]))

    def built(wall, build):
        try:
            build()
        except (OSError, AttributeError):
            missing.append(wall)

    def user():
        numbers = os.getuid(), os.getgid()
        done(libc.unshare(0x10000000))
        for name, text in ("setgroups", "deny"), ("uid_map", "1000 %d 1"), ("gid_map", "1000 %d 1"):
            number = numbers[name == "gid_map"]
            with open("/proc/self/" + name, "w") as file:
                file.write(text % number if "%" in text else text)

    def files():
        root, outside = os.getcwd(), os.statvfs
        done(libc.unshare(0x20000))
        mount(None, "/", None, 0x44000)
        mount("tmpfs", root, "tmpfs", 6, "size=%d,mode=755" % size)
        for path in read_only:
            inside = root + path
            if os.path.islink(path):
                os.makedirs(os.path.dirname(inside), exist_ok=True)
                os.symlink(os.readlink(path), inside)
                continue
            if os.path.isdir(path):
                os.makedirs(inside, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(inside), exist_ok=True)
                os.close(os.open(inside, os.O_CREAT))
            mount(path, inside, None, 0x5000)
            mount(None, inside, None, 0x1023 | outside(path).f_flag & 0x1C0E)
        os.mkdir(root + "/tmp", 0o777)
        os.chdir(root)
        mount(".", "/", None, 0x2000)
        os.chroot(".")
        os.chdir("/tmp")

    def processes():
        done(libc.unshare(0x20000000))
        for _ in range(2):  # the first process of a namespace takes no signals, so the program is the second
            child = os.fork()
            if child:
                status = os.waitpid(child, 0)[1]
                os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
            libc.prctl(1, *map(ctypes.c_ulong, (9, 0, 0, 0)))

    def calls():
        machine = os.uname().machine
        architecture, barred = {
            "x86_64": (
                0xC000003E,
                (41, 56, 57, 58, 59, 62, 101, 155, 161, 165, 200, 234, 272, 308, 310, 311, 322, 425, 435),
            ),
            "aarch64": (0xC00000B7, (40, 41, 51, 97, 117, 129, 130, 131, 198, 220, 221, 268, 270, 271, 281, 425, 435)),
        }[machine]
        load, equal, give = 0x20, 0x15, 0x06
        code = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, 0x50001), (load, 0, 0, 0)]
        code.append((0x35, len(barred) + 1, 0, 0x40000000))  # numbers of another interface to the same calls
        for place, number in enumerate(barred):
            code.append((equal, len(barred) - place, 0, number))
        code += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x50001)]
        packed = b"".join([kind.to_bytes(2, sys.byteorder) + bytes((yes, no)) + value.to_bytes(4, sys.byteorder)
                           for kind, yes, no, value in code])

        class Program(ctypes.Structure):
            _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]

        done(libc.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0))))
        none = ctypes.c_ulong(0)
        done(libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(Program(len(code), packed)), none, none))

    def harmless():
        header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        done(libc.capset(header, nothing))

    if not sys.platform.startswith("linux"):
        return ["user", "network", "files", "processes", "calls"]
    built("user", user)
    built("network", lambda: done(libc.unshare(0x40000000)))
    built("files", files)
    built("processes", processes)
    built("user", harmless)
    built("calls", lambda: calls())
    return missing
"""


def readable() -> list[str]:
    """The paths that a program can read: those of the interpreter itself."""
    wanted = ["/usr", "/lib", "/lib64", "/bin", "/dev/null", "/dev/zero", "/dev/urandom"]
    wanted += [sys.base_prefix, sys.base_exec_prefix]
    found = []
    for path in dict.fromkeys(wanted):
        inside = any(path != other and path.startswith(f"{other}/") for other in wanted)
        if os.path.exists(path) and not inside:
            found.append(path)
    return found
