"""The launcher: builds the walls, then forks into judge and program. Runs inside the sandbox."""

from __future__ import annotations

import marshal
import os
import sys

from soar_dlm.tasks.sandbox import judge, kernel, program
from soar_dlm.tasks.sandbox.frames import READY, receive, send
from soar_dlm.tasks.sandbox.landlock import restrict_files
from soar_dlm.tasks.sandbox.namespaces import build_namespaces
from soar_dlm.tasks.sandbox.rlimits import set_limits
from soar_dlm.tasks.sandbox.seccomp import restrict_calls
from soar_dlm.tasks.sandbox.values import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Read the settings, build what they ask for, and judge the one program that follows."""
    settings: dict[str, Any] = marshal.loads(receive(0))
    linux = sys.platform.startswith("linux")
    built = walls(settings) if linux else []
    set_limits(settings["limits"] + thread_limit(built, settings["threads"]))
    channel = os.dup(1)
    questions, answers = os.pipe(), os.pipe()
    own_root, filtered = "mount" in built, linux and "seccomp" in settings["tries"]
    process = os.fork()
    if not process:
        if linux:
            kernel.die_with_parent()
        os.dup2(questions[0], 60)
        os.dup2(answers[1], 61)
        os.closerange(3, 60)
        kernel.silence()
        program.serve(60, 61, filtered and filter_calls(own_root))
        os._exit(0)
    os.close(questions[0])
    os.close(answers[1])
    link = judge.Link(answers[0], questions[1], process, settings["output"])
    if linux:
        kernel.control(kernel.DUMPABLE, 0)
    both = link.hello() is True, filtered and filter_calls(own_root)
    if all(both):
        built.append("seccomp")
    send(channel, READY)
    if not all(set(ways) & set(built) for ways in settings["needed"]):
        found: tuple[str, list[Any]] = ("refused", [])
    else:
        request = marshal.loads(receive(0))
        kernel.silence()
        found = (judge.by_cases if request[0] == "cases" else judge.by_tests)(link, *request[1:])
    send(channel, pack((*found, built)))
    os._exit(0)


def walls(settings: dict[str, Any]) -> list[str]:
    """Build the walls that do not need to come after the fork, and name all that stand."""
    built: list[str] = list(settings["built"])
    if not built:
        kernel.die_with_parent()
        if os.getppid() != settings["parent"]:
            os._exit(1)
    if "namespaces" in settings["tries"] and not built:
        built = build_namespaces(settings["root"], settings["readable"], settings["size"], settings["inside"])
    kernel.die_with_parent()  # again, since this may be another process by now
    kernel.end_after(settings["seconds"])
    work = settings["inside"] if "mount" in built else settings["folder"]
    os.chdir(work)
    kernel.control(kernel.NO_NEW_PRIVS, 1)
    if "landlock" in settings["tries"]:
        try:
            restrict_files(settings["readable"], ["/tmp" if "mount" in built else work, os.devnull])
            built.append("landlock")
        except OSError:
            pass
    kernel.drop_capabilities()
    return built


def thread_limit(built: list[str], threads: int) -> list[tuple[str, int, int]]:
    """A limit on threads, where it counts those of the sandbox alone: in a user namespace, since Linux 5.14."""
    version = os.uname().release.split(".")
    digits = [int("".join(filter(str.isdigit, part)) or 0) for part in version[:2]]
    return [("RLIMIT_NPROC", threads, threads)] if "user" in built and digits >= [5, 14] else []


def filter_calls(own_root: bool) -> bool:
    try:
        restrict_calls(own_root)
    except OSError:
        return False
    return True
