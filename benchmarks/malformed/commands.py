"""The parts ``command`` and ``processes``: arguments that make no sense, in this process or in one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import cache
from typing import Any

from typer.main import get_command

from benchmarks.malformed.chooser import Chooser
from benchmarks.malformed.room import MODEL, SLOW, Case, Hung, NotSoar, Room, command, refused

WORDS = (
    *("", " ", "x", "0", "1", "-1", "2.5", "nan", "inf", "1e999", "1e-46", "1000000000", "18446744073709551616"),
    *("True", "False", "[/x]", "[bold", "\udc80", "é\u2028", "a" * 5000, "9" * 5000, "{}", "[]", "a=b", "beam=[]", "="),
    *(
        "beam=1e9",
        "/dev/null/x",
        "/",
        ".",
        "..",
        "-",
        "--",
        "no/such/folder",
        "soar",
        "margin",
        "greedy,greedy",
        ",",
        "cpu",
    ),
)
BASES: dict[str, tuple[str, ...]] = {
    "generate": ("-m", MODEL, "-n", "2", "--device", "cpu", "a prompt"),
    "infill": ("-m", MODEL, "-n", "2", "--device", "cpu", "a {blank} b"),
    "chat": ("-m", MODEL, "-n", "2", "--device", "cpu"),
    "eval": ("-m", MODEL, "-t", "mini-sums", "-s", "greedy", "--limit", "2", "-n", "2", "--device", "cpu", "-o", "OUT"),
    "sweep": ("-m", MODEL, "-t", "mini-sums", "--limit", "2", "-n", "2", "--thresholds", "0.9", "-o", "OUT"),
    "bench": ("-m", MODEL, "--device", "cpu", "--prompt", "2", "-n", "2", "--repeats", "1"),
    "table": ("RESULTS",),
    "tune": ("SWEEP", "-o", "OUT"),
    "train": ("RECIPE", "-o", "OUT", "--dry-run"),
    "models": (),
    "strategies": (),
    "tasks": (),
}
NOT_OURS = ("--nonsense", "--beam", "-n", "--jsonl", "--set")
"""Options that a command may not have."""
START = 5
"""Seconds of the processor's time in which a process of the command has imported all it needs, and more."""
PATIENCE = 600.0
"""Seconds after which a process that stands still is ended; on a busy machine most take far longer than usual."""
LIMITED = f"""
import resource, runpy
resource.setrlimit(resource.RLIMIT_CPU, ({START + SLOW}, {START + SLOW + 5}))
runpy.run_module("soar_dlm", run_name="__main__", alter_sys=True)
"""
"""The command, with a limit on the processor's time that the system keeps."""
STDIN = (b"", b"x\n", b"\xff\n", b'{"prompt": "a"}\n', b"/reset\n/exit\n")


@cache
def options_of(name: str) -> tuple[tuple[str, bool], ...]:
    """The options of a command, each with whether it takes no value."""
    from soar_dlm.cli.main import app

    group: Any = get_command(app)
    return tuple(
        (option, bool(getattr(parameter, "is_flag", False)))
        for parameter in group.commands[name].params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-") and option not in ("--help", "-h")
    )


def arguments(choose: Chooser, room: Room) -> tuple[str, ...]:
    name = choose.pick(sorted(BASES))
    place = room.fresh()
    found = {
        "OUT": lambda: str(place / "out"),
        "RESULTS": lambda: str(room.results),
        "SWEEP": lambda: str(room.sweep),
        "RECIPE": lambda: str(room.recipe),
    }
    args = [found[word]() if word in found else word for word in BASES[name]]
    for _ in range(choose.number(1, 3)):
        kind = choose.number(0, 4)
        if kind == 0 and args:
            args[choose.number(0, len(args) - 1)] = choose.pick(WORDS)
        elif kind == 1 and args:
            del args[choose.number(0, len(args) - 1)]
        else:
            own = options_of(name) if choose.number(0, 5) else ()
            option, alone = choose.pick(own or tuple((other, False) for other in NOT_OURS))
            args += [option] if alone else [option, choose.pick(WORDS)]
    return name, *args


def commands(choose: Chooser, room: Room) -> Case:
    args, stdin = arguments(choose, room), choose.pick(STDIN)
    case = room.folder / "case"
    return Case(f"soar {' '.join(args)}", lambda: refused(command(*args, stdin=stdin, folder=case)))


def processes(choose: Chooser, room: Room) -> Case:
    """The same in a process of its own: what a user sees."""
    args, stdin = arguments(choose, room), choose.pick(STDIN)
    sent = [os.fsencode(one) for one in args]

    def run() -> None:
        try:
            done = subprocess.run(
                [sys.executable, "-c", LIMITED, *sent],
                input=stdin,
                capture_output=True,
                check=False,
                cwd=room.folder / "case",
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired as error:
            raise Hung from error
        if -done.returncode == signal.SIGXCPU:
            raise Hung
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        if "Traceback (most recent call last)" in said or done.returncode < 0:
            raise NotSoar(f"exit code {done.returncode}: {said.strip().splitlines()[-1:]}")
        refused(done.returncode)

    return Case(f"soar (own process) {' '.join(args)}", run)
