"""Starting the sandbox for one program, from outside, and ending it."""

from __future__ import annotations

import marshal
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from soar_dlm.errors import SettingsError
from soar_dlm.tasks.sandbox import bubblewrap, control_group, places
from soar_dlm.tasks.sandbox.frames import HEADER, READY, framed
from soar_dlm.tasks.sandbox.limits import Limits
from soar_dlm.tasks.sandbox.values import NotPlain, unpack
from soar_dlm.tasks.sandbox.walls import MADE_OF, NEEDED

TRIES = ("bubblewrap", "namespaces", "landlock", "seccomp")
START = 60
"""Seconds that a sandbox has to get ready, which takes a fraction of one unless the machine is very busy."""
INSIDE = "/tmp/program"
"""Where a program starts, in a root folder of its own."""
MODULES = ("kernel", "rlimits", "namespaces", "landlock", "seccomp", "frames", "values", "program", "judge", "child")
"""What runs inside, in the order in which it is loaded."""
PACKAGE = "soar_dlm.tasks.sandbox"
BOOT = f"""
import marshal, os, sys
def read(size, text=b""):
    while len(text) < size:
        text += os.read(0, size - len(text)) or sys.exit(1)
    return text
names = "{PACKAGE}".split(".")
for last in range(1, len(names) + 1):
    package = sys.modules[".".join(names[:last])] = type(sys)(".".join(names[:last]))
    package.__path__ = []
packages, modules = marshal.loads(read(int.from_bytes(read({HEADER}), "big")))
os.environ.clear()
os.putenv("OPENBLAS_NUM_THREADS", "1")
sys.path.append(packages)
for name, code in modules:
    module = sys.modules["{PACKAGE}." + name] = type(sys)("{PACKAGE}." + name)
    setattr(package, name, module)
    exec(code, module.__dict__)
module.main()
"""

_running: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()
_interrupted = threading.Event()


@dataclass(frozen=True)
class Sandbox:
    """Which walls are tried, best first, and whether the two that matter must stand (``strict``)."""

    tries: Sequence[str] = TRIES
    strict: bool = True

    def run(self, request: Sequence[Any], limits: Limits) -> tuple[str, list[Any], list[str]]:
        """Why it ended, the answers of the program, and the walls that stood."""
        if sys.platform == "win32":
            raise SettingsError("Windows cannot isolate model-written code. Use Linux, WSL or a container.")
        home = places.folder()
        readable = sorted({*places.readable(), str(home.packages)})
        command = [places.interpreter(), "-I", "-S", "-c", BOOT]
        wrapper = bubblewrap.found() if "bubblewrap" in self.tries else None
        if wrapper is not None:
            command = bubblewrap.command(wrapper, readable, limits.disk_bytes, INSIDE) + command
        command = control_group.entering() + command
        with home.work() as folder:
            settings = {
                "tries": list(self.tries),
                "built": list(bubblewrap.BUILT) if wrapper is not None else [],
                "needed": [MADE_OF[wall] for wall in NEEDED] if self.strict else [],
                "parent": os.getpid(),
                "root": str(home.root),
                "readable": readable,
                "inside": INSIDE,
                "folder": str(folder),
                "size": limits.disk_bytes,
                "limits": limits.for_child(),
                "threads": limits.threads,
                "output": limits.output_bytes,
                "seconds": math.ceil(START + limits.wall_seconds) + 2,
            }
            parts = ((str(home.packages), code()), settings, list(request))
            reply, late = heard(command, b"".join(framed(marshal.dumps(part)) for part in parts), folder, limits)
        if late:
            return "timeout", [], []
        try:
            why, answers, built = unpack(reply[HEADER:], lambda number: NotPlain)
        except (NotPlain, ValueError, TypeError):
            return "exit", [], []
        return why, answers, built


@cache
def code() -> list[tuple[str, Any]]:
    """The modules of the inside, compiled."""
    here = Path(__file__).parent
    return [(name, compile((here / f"{name}.py").read_bytes(), name, "exec", dont_inherit=True)) for name in MODULES]


def heard(command: Sequence[str], request: bytes, folder: Path, limits: Limits) -> tuple[bytes, bool]:
    """What the sandbox says after it got ready, and whether the wall clock ended it.

    One that did not get ready judged nothing: that is an error, not a verdict.
    """
    reply, said, late = converse(command, request, folder, limits.wall_seconds)
    if reply.startswith(framed(READY)):
        return reply[len(framed(READY)) :], late
    if late:
        raise not_started(f"it took longer than {START} seconds")
    raise not_started(said.decode("utf-8", "replace").strip()[-500:] or "it ended at once")


def not_started(why: str) -> SettingsError:
    return SettingsError(f"The sandbox for model-written code could not be started: {why}.")


def converse(command: Sequence[str], request: bytes, folder: Path, seconds: float) -> tuple[bytes, bytes, bool]:
    """What a new process answers, what it says of errors, and whether it was ended by the wall clock."""
    environment = {"MALLOC_ARENA_MAX": "1"}
    if places.library_path():
        environment["LD_LIBRARY_PATH"] = places.library_path()
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    try:
        child = subprocess.Popen(command, **pipes, bufsize=0, cwd=folder, env=environment, start_new_session=True)
    except OSError as error:
        raise not_started(error.strerror or str(error)) from error
    with _lock:
        _running.add(child)
        if _interrupted.is_set():
            os.killpg(child.pid, signal.SIGKILL)
    try:
        return exchange(child, request, seconds)
    finally:
        with _lock:
            _running.discard(child)
        end(child)


def exchange(child: subprocess.Popen[bytes], request: bytes, seconds: float) -> tuple[bytes, bytes, bool]:
    """Send the request and read until both outputs end; or until time is up, which is the third value.

    The process has ``START`` seconds to get ready and ``seconds`` from then on, so that no program loses time to the
    building of its walls, however busy the machine.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    said = {child.stdout: b"", child.stderr: b""}
    rest, ready, until = memoryview(request), False, time.monotonic() + START
    with selectors.DefaultSelector() as waiting:
        os.set_blocking(child.stdin.fileno(), False)
        waiting.register(child.stdin, selectors.EVENT_WRITE)
        for pipe in said:
            waiting.register(pipe, selectors.EVENT_READ)
        while any(pipe in waiting.get_map() for pipe in said):
            left = until - time.monotonic()
            if left <= 0:
                return said[child.stdout], said[child.stderr], True
            for key, _ in waiting.select(left):
                if key.fileobj is child.stdin:
                    rest = _sent(child.stdin.fileno(), rest)
                    ended = not rest
                else:
                    part = os.read(key.fd, 2**16)
                    said[key.fileobj] += part  # type: ignore[index]
                    ended = not part
                if ended:
                    waiting.unregister(key.fileobj)
            if not ready and said[child.stdout].startswith(framed(READY)):
                ready, until = True, time.monotonic() + seconds
    return said[child.stdout], said[child.stderr], False


def _sent(pipe: int, rest: memoryview) -> memoryview:
    """What is left to send after as much as the pipe takes now; nothing if nobody reads it any more."""
    try:
        return rest[os.write(pipe, rest) :]
    except BrokenPipeError:
        return rest[:0]


def end(child: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it started; even what left its session ends with it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)  # before it is waited for: its number is its own until then
    except (ProcessLookupError, PermissionError):
        child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def begin() -> None:
    """Programs may be judged (again)."""
    _interrupted.clear()


def end_all() -> None:
    """End all programs that are being judged, so that nobody waits for them; those that come next end at once."""
    with _lock:
        _interrupted.set()
        for child in _running:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


_chosen = [Sandbox()]


def current() -> Sandbox:
    return _usable(_chosen[0])


def allow_unsafe() -> None:
    """Let programs run in this process even where a wall that matters cannot be built."""
    _chosen[0] = replace(_chosen[0], strict=False)


@cache
def _usable(wanted: Sandbox) -> Sandbox:
    """``wanted``, without bubblewrap where that is not installed or does not work."""
    if "bubblewrap" not in wanted.tries:
        return wanted
    without = replace(wanted, tries=tuple(name for name in wanted.tries if name != "bubblewrap"))
    if bubblewrap.found() is None:
        return without
    try:
        why, _, _ = wanted.run(("cases", "def nothing(): pass", "nothing", [[]]), Limits())
    except SettingsError:
        return without
    return wanted if why == "passed" else without
