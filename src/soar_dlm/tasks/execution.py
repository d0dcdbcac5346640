"""Running programs that nobody has read, each in its own process and within limits.

The child process gets the program and the arguments, never the expected values. It sends back what the function
returned and the parent compares, so a program can only pass by returning the right values. The child is isolated by
the walls of :mod:`soar_dlm.tasks.isolation`, as far as the system allows. Inside the child, the program is kept away
from the frames and functions that run it, so that it cannot tamper with asserts, which have to run in the same
process; since no process can hide everything from its own code, that is a fence and not a wall. On a platform without
the ``resource`` module (Windows), only the wall clock limits a program; for a superuser the system does not enforce
the limit on processes.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from tempfile import TemporaryDirectory
from typing import IO, Any, Literal

from soar_dlm.checks import real_number, whole_number
from soar_dlm.tasks.isolation import BUILD_WALLS, readable

Why = Literal["passed", "wrong", "error", "missing", "syntax", "timeout", "memory", "output", "exit"]

# Imports only what the interpreter has loaded anyway: start-up is most of the cost of a short program.
CHILD = (
    f"""
import os, sys
{BUILD_WALLS}
"""
    + r"""
token, program, name, arguments, limits, walls = eval(sys.stdin.buffer.read())
missing = build_walls(*walls)
try:
    import resource
except ImportError:
    limits = []
for kind, soft, hard in limits:
    number = getattr(resource, kind, None)
    if number is not None:
        most = resource.getrlimit(number)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        try:
            resource.setrlimit(number, (soft, hard))
        except (ValueError, OSError):
            pass
channel, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
for standard in (0, 1, 2):
    os.dup2(nothing, standard)
os.environ.clear()


def said(value):
    kind = type(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or (kind is float and value - value == 0):
        return repr(value)
    if kind is str:
        units = value.encode("utf-16-be", "surrogatepass").hex()
        return '"' + "".join(["\\u" + units[at : at + 4] for at in range(0, len(units), 4)]) + '"'
    if kind is list:
        return "[" + ",".join([said(item) for item in value]) + "]"
    if kind is dict and not [key for key in value if type(key) is not str]:
        return "{" + ",".join([said(key) + ":" + said(item) for key, item in value.items()]) + "}"
    raise TypeError


def finish(why, answers=(), token=token, missing=missing, channel=channel, write=os.write, leave=os._exit):
    walls = ",".join(['"%s"' % wall for wall in missing])
    rest = ('["%s","%s",[%s],[%s]]' % (token, why, ",".join(answers), walls)).encode()
    while rest:
        rest = rest[write(channel, rest) :]
    leave(0)


def fence(event, details):
    frame = event == "object.__getattr__" and details[1] in ("tb_frame", "gi_frame", "cr_frame", "ag_frame")
    if frame or event in looks or event.partition(".")[0] in ("ctypes", "gc"):
        raise ValueError(event)  # what the interpreter itself raises for a frame that is not there


looks = {"sys._getframe", "sys._current_frames", "sys._current_exceptions", "sys.settrace", "sys.setprofile"}
sys.modules["__main__"] = type(sys)("__main__")
sys.addaudithook(fence)
try:
    code = compile(program, "program", "exec")
except BaseException:
    finish("syntax")
try:
    space, answers = {"__name__": "program"}, []
    exec(code, space)
    if not callable(space.get(name)):
        finish("missing")
    for values in arguments:
        answer = space[name](*values)
        try:
            answers.append(said(answer))
        except (TypeError, ValueError, RecursionError):
            finish("wrong")
except MemoryError:
    finish("memory")
except (SystemExit, KeyboardInterrupt):
    finish("exit")
except BaseException:
    finish("error")
finish("passed", answers)
"""
)


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    ``output_bytes`` limits the returned values; what the program prints is discarded. ``file_bytes`` limits each file,
    ``disk_bytes`` everything it writes, where it has a file system of its own. ``processes`` is how many processes the
    user may have before the program can start no more; with 0 it can start none.
    """

    wall_seconds: float = 4.0
    cpu_seconds: int = 2
    memory_bytes: int = 512 * 2**20
    file_bytes: int = 2**20
    processes: int = 0
    output_bytes: int = 2**20
    disk_bytes: int = 16 * 2**20

    def __post_init__(self) -> None:
        real_number("wall_seconds", self.wall_seconds, 0, 3600, open_low=True)
        whole_number("cpu_seconds", self.cpu_seconds, 1)
        whole_number("memory_bytes", self.memory_bytes, 32 * 2**20)
        whole_number("file_bytes", self.file_bytes, 0)
        whole_number("processes", self.processes, 0)
        whole_number("output_bytes", self.output_bytes, 64)
        whole_number("disk_bytes", self.disk_bytes, 0)

    def for_child(self) -> list[tuple[str, int, int]]:
        """Names of the ``resource`` module, each with its soft and hard limit."""
        return [
            ("RLIMIT_CORE", 0, 0),
            ("RLIMIT_CPU", self.cpu_seconds, self.cpu_seconds + 1),
            ("RLIMIT_AS", self.memory_bytes, self.memory_bytes),
            ("RLIMIT_FSIZE", self.file_bytes, self.file_bytes),
            ("RLIMIT_NPROC", self.processes, self.processes),
        ]


@dataclass(frozen=True)
class Outcome:
    """Whether every case was right, one word that says why or why not, and which walls were ``missing``."""

    why: Why
    missing: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        return self.why == "passed"


DEFAULT_LIMITS = Limits()


def run_cases(program: str, name: str, cases: Sequence[Sequence[Any]], *, limits: Limits = DEFAULT_LIMITS) -> Outcome:
    """Run ``program`` and call its function ``name`` on every case ``[arguments, expected]``.

    Arguments and expected values are plain JSON values. A returned value is right if it equals the expected one in
    type and value; any value that is not exactly a JSON type, such as a tuple, is wrong.
    """
    token = secrets.token_hex(16)
    walls = (readable(), limits.disk_bytes)
    request = ascii((token, program, name, [list(arguments) for arguments, _ in cases], limits.for_child(), walls))
    reply, why = _converse(request.encode(), limits)
    if why is not None:
        return Outcome(why)
    try:
        given, why, answers, missing = json.loads(reply)
    except (ValueError, TypeError, RecursionError):
        return Outcome("exit")
    if given != token or not isinstance(answers, list):
        return Outcome("exit")
    if why != "passed":
        return Outcome(why if why in ("wrong", "error", "missing", "syntax", "memory", "exit") else "exit", missing)
    right = len(answers) == len(cases) and all(
        same(expected, answer) for (_, expected), answer in zip(cases, answers, strict=True)
    )
    return Outcome("passed" if right else "wrong", missing)


@cache
def missing_walls() -> tuple[str, ...]:
    """The walls that this machine does not allow, as names of :data:`soar_dlm.tasks.isolation.WALLS`."""
    return tuple(run_cases("def nothing():\n    return True\n", "nothing", [[[], True]]).missing)


def same(expected: Any, answer: Any) -> bool:
    """Equality of JSON values in which ``1``, ``1.0`` and ``true`` all differ."""
    if type(expected) is not type(answer):
        return False
    if isinstance(expected, list):
        return len(expected) == len(answer) and all(map(same, expected, answer))
    if isinstance(expected, dict):
        return expected.keys() == answer.keys() and all(same(expected[key], answer[key]) for key in expected)
    return bool(expected == answer)


def _converse(request: bytes, limits: Limits) -> tuple[bytes, Why | None]:
    """What a new child process answers to ``request``, and the reason if there is no full answer."""
    deadline = time.monotonic() + limits.wall_seconds
    with TemporaryDirectory(prefix="soar-", ignore_cleanup_errors=True) as empty:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CHILD],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=empty,
            env=_environment(),
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        reply = bytearray()
        # A thread, because a pipe cannot be waited for with a time limit on every platform.
        reader = threading.Thread(target=_read, args=(child.stdout, reply, limits.output_bytes), daemon=True)
        reader.start()
        try:
            _send(child.stdin, request)
            reader.join(max(0.0, deadline - time.monotonic()))
            finished = not reader.is_alive()
            if finished and len(reply) <= limits.output_bytes:
                finished = _ended(child, deadline)
        finally:
            _kill(child)
            reader.join(1.0)
            if not reader.is_alive():
                child.stdout.close()
        if len(reply) > limits.output_bytes:
            return b"", "output"
        if not finished or _out_of_time(child.returncode):
            return b"", "timeout"
        return bytes(reply), None


def _environment() -> dict[str, str]:
    """Empty, except for the one variable that every process on Windows needs to start; the child clears it."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if sys.platform == "win32" and name in os.environ}


def _send(pipe: IO[bytes], request: bytes) -> None:
    rest = memoryview(request)
    try:
        while rest:
            rest = rest[pipe.write(rest) :]
        pipe.close()
    except BrokenPipeError:  # the child is already gone; its silence is the answer
        pass


def _read(pipe: IO[bytes], into: bytearray, most: int) -> None:
    """Read until the end or until more than ``most`` bytes have come."""
    while len(into) <= most and (piece := pipe.read(65536)):
        into += piece


def _ended(child: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _out_of_time(code: int) -> bool:
    """Whether a child ended at its CPU limit, itself or the process it had put the program into."""
    return sys.platform != "win32" and code in (-signal.SIGXCPU, 128 + signal.SIGXCPU)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started in its session."""
    if sys.platform == "win32":
        child.kill()
    else:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            child.kill()
    child.wait()
