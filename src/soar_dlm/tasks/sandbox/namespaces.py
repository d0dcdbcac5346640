"""Own namespaces: a user, a network, message queues, a root folder and processes that are the program's alone.

Runs inside the sandbox, where bubblewrap is not installed. Each namespace is tried separately.
"""

from __future__ import annotations

import os

from soar_dlm.tasks.sandbox.kernel import call, control

USER, MOUNT, IPC, PROCESSES, NETWORK = 0x10000000, 0x20000, 0x08000000, 0x20000000, 0x40000000
READ_ONLY, NO_SUID, NO_DEVICES, REMOUNT, BIND, MOVE, RECURSIVE, PRIVATE = 1, 2, 4, 0x20, 0x1000, 0x2000, 0x4000, 0x40000
KEPT_FLAGS = 0x1C0E
"""Flags of a mount that a user namespace may not take away: no programs, no devices, access times."""


def build_namespaces(root: str, readable: list[str], size: int, work: str) -> list[str]:
    """Enter all namespaces that the system allows and return their names."""
    built = []
    for name, build in (
        ("user", own_user),
        ("network", lambda: call("unshare", NETWORK)),
        ("ipc", lambda: call("unshare", IPC)),
        ("mount", lambda: own_root(root, readable, size, work)),
        ("pid", own_processes),
    ):
        try:
            build()
        except OSError:
            continue
        built.append(name)
    return built


def own_user() -> None:
    numbers = os.getuid(), os.getgid()
    call("unshare", USER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"1000 {numbers[0]} 1"),
        ("gid_map", f"1000 {numbers[1]} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def own_root(root: str, readable: list[str], size: int, work: str) -> None:
    """A root folder in memory in which only ``readable`` is seen and only ``/tmp`` is meant for writing."""
    call("unshare", MOUNT)
    mount(None, "/", None, RECURSIVE | PRIVATE)
    mount("tmpfs", root, "tmpfs", NO_SUID | NO_DEVICES, f"size={size},mode=755")
    for path in readable:
        show(path, root + path)
    for path in mounts_below(root):
        read_only(path)
    os.makedirs(root + work, exist_ok=True)
    os.chdir(root)
    mount(".", "/", None, MOVE)
    os.chroot(".")
    os.chdir("/")


def show(path: str, inside: str) -> None:
    """Bind ``path``, with all that is mounted below it, to a place in the new root."""
    if os.path.islink(path):
        if not os.path.lexists(inside):
            os.makedirs(os.path.dirname(inside), exist_ok=True)
            os.symlink(os.readlink(path), inside)
        return
    if os.path.isdir(path):
        os.makedirs(inside, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        os.close(os.open(inside, os.O_CREAT))
    mount(path, inside, None, BIND | RECURSIVE)


def mounts_below(folder: str) -> list[str]:
    """Every mount inside ``folder``, not only those made here: binding a folder brings along what is mounted in it."""
    with open("/proc/self/mountinfo", "rb") as file:
        places = [line.split(b" ")[4] for line in file]
    names = [os.fsdecode(place.decode("unicode_escape").encode("latin-1")) for place in places]
    return [name for name in names if name.startswith(folder + "/")]


def read_only(path: str) -> None:
    kept = os.statvfs(path).f_flag & KEPT_FLAGS
    devices = 0 if path.endswith(("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")) else NO_DEVICES
    mount(None, path, None, REMOUNT | BIND | READ_ONLY | NO_SUID | devices | kept)


def own_processes() -> None:
    """Continue in a new process that sees only itself and its children; those outside wait for it.

    The first process of a namespace takes no signals that it does not handle, so this is the second.
    """
    call("unshare", PROCESSES)
    for _ in range(2):
        child = os.fork()
        if child:
            status = os.waitpid(child, 0)[1]
            os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
        control(1, 9)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    call("mount", texts[0], texts[1], texts[2], flags, texts[3])
