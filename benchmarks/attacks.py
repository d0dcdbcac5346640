"""What does the sandbox for model-written code stop, and do honest programs pass in it?

    python -m benchmarks.attacks [--user-python PATH]

Runs every attack and every honest program of ``benchmarks.attack_programs`` as a superuser (if started as one) and as a
user, in each setting: with bubblewrap, with own namespaces, with Landlock alone, and in the conditions of a Docker
container (its default profile bars namespaces; the sandbox finds out what is left). Prints a table of what each setting
stops, then every attack that some setting does not stop. Attacks go against files and processes made for the purpose.
A user needs an interpreter that others can read: name it, with its packages in PYTHONPATH.

The exit code is 1 if an attack succeeds that is not known to, or an honest program fails. A run in which all settings
are available also writes its table to ``docs/results/attacks.md``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.attack_programs import FORGERIES, HONEST, KINDS, PRELUDE
from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.tasks.execution import Asserts, Limits, run_cases, run_tests
from soar_dlm.tasks.sandbox import bubblewrap, kernel, places, seccomp
from soar_dlm.tasks.sandbox.launch import TRIES, Sandbox, current

SETTINGS = {"bubblewrap": TRIES, "namespaces": TRIES[1:], "Landlock alone": TRIES[2:], "Docker": None}
NOBODY = 65534
KEY = 0x50A2
QUICK = Limits(wall_seconds=2.5, cpu_seconds=1)
GENEROUS = Limits(wall_seconds=30, cpu_seconds=10)
TESTS = (
    Asserts("def check(add):\n    assert abs(add(1, 2) - 3) < 1e-6\ncheck(add)", ("add",)),
    Asserts("import math\nassert add(1, 2) == 3\nassert math.isclose(add(2, 2), 4)", ("add",)),
    Asserts("assert add(1, 2)\nassert not add(0, 0)\nassert add(1, 1) != 3", ("add",)),
)
KNOWN = ("files: learn that a file exists", "limits: many files")
"""What only a root folder of its own keeps a program from."""
ABOUT = """\
Each number says how many attacks of a kind a setting stops; the last column, how many honest programs pass. "Docker"
bars what Docker's default profile bars (namespaces, mounts, keys); the sandbox found out what is left.
"""
WITHOUT_ROOT = """\
Without a root folder of its own a program can learn that a file exists, though not what is in it; only the size of each
file it writes is limited, not their sum; and it cannot change the mode or the times of any file, its own included, so
`shutil.copy` fails there and `shutil.copyfile` works.
"""
CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
"""Those that Docker leaves to the superuser of a container."""


def like_docker() -> None:
    """Bar this process what Docker's default profile bars: namespaces, mounts, keys and what only a superuser needs."""
    if os.getuid() == 0:
        for number in set(range(41)) - set(CAPABILITIES):
            ctypes.CDLL(None).prctl(24, number, 0, 0, 0)
    machine = os.uname().machine
    names = {
        **seccomp.NAMESPACES,
        **{name: seccomp.SHARED_MEMORY[name] for name in ("add_key", "keyctl", "request_key")},
    }
    names |= {
        name: seccomp.KERNEL[name] for name in ("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "syslog")
    }
    names.pop("chroot")
    code = [(seccomp.LOAD, 0, 0, 0)]
    for number in seccomp.numbers(machine, names):
        code += [(seccomp.EQUAL, 0, 1, number), (seccomp.RETURN, 0, 0, seccomp.BAR)]
    clone, clone3 = (seccomp.numbers(machine, {name: seccomp.BY_ARGUMENT[name]})[0] for name in ("clone", "clone3"))
    code += [(seccomp.EQUAL, 0, 1, clone3), (seccomp.RETURN, 0, 0, seccomp.ABSENT), (seccomp.EQUAL, 0, 3, clone)]
    code += [(seccomp.LOAD, 0, 0, 16), (seccomp.HAS, 0, 1, 0x7E020000), (seccomp.RETURN, 0, 0, seccomp.BAR)]
    if os.getuid():
        kernel.control(kernel.NO_NEW_PRIVS, 1)
    seccomp.install([*code, (seccomp.RETURN, 0, 0, seccomp.ALLOW)])


@contextmanager
def targets() -> Iterator[dict[str, Any]]:
    """What attacks are aimed at, by the names they use; all of it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="soar-target-"))
    readable, inner = folder / "readable", folder / "readable" / "inner"
    (folder / "own").mkdir()
    inner.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", inner], capture_output=True, check=False).returncode == 0
    victim = subprocess.Popen(["sleep", "1000"])
    hidden = f"\0soar-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as sockets:
        for kind, name in (
            (socket.SOCK_STREAM, str(folder / "socket")),
            (socket.SOCK_STREAM, hidden),
            (socket.SOCK_DGRAM, str(folder / "mailbox")),
            (socket.SOCK_DGRAM, f"{hidden}m"),
        ):
            one = sockets.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(name)
            if kind == socket.SOCK_STREAM:
                one.listen()
        libc = ctypes.CDLL(None)
        shared, queue = libc.shmget(KEY, 4096, 0o1600), libc.msgget(KEY, 0o1600)
        paths = (*places.readable(), str(readable))
        places.readable = lambda: paths  # type: ignore[assignment]
        try:
            yield {
                "FOLDER": str(folder / "own"),
                "FILE": str(folder / "own" / "file"),
                "TEXT": os.urandom(8).hex(),
                "MOUNTED": str(inner),
                "VICTIM": victim.pid,
                "SOAR": os.getpid(),
                "PORT": server.getsockname()[1],
                "SOCKET": str(folder / "socket"),
                "MAILBOX": str(folder / "mailbox"),
                "ABSTRACT": hidden,
                "KEY": KEY,
            }
        finally:
            libc.shmctl(shared, 0, None)
            libc.msgctl(queue, 0, None)
            victim.kill()
            victim.wait()
            if mounted:
                subprocess.run(["umount", "-l", inner], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def state(known: Mapping[str, Any]) -> list[Any]:
    """All that an attack could change outside."""
    found = []
    for folder in (known["FOLDER"], known["MOUNTED"]):
        for path in sorted(Path(folder).iterdir()):
            facts = path.stat()
            text = path.read_text() if path.is_file() else ""
            found.append((path.name, text, facts.st_mode, facts.st_mtime_ns, facts.st_uid, os.listxattr(path)))
    return found


def prepare(known: Mapping[str, Any]) -> list[Any]:
    shutil.rmtree(known["FOLDER"])
    Path(known["FOLDER"]).mkdir()
    Path(known["FILE"]).write_text(known["TEXT"])
    (Path(known["MOUNTED"]) / "file").write_text("x")
    return state(known)


def function(body: str, start: str = "") -> str:
    return f"{start}\ndef solve():\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def succeeds(body: str, known: Mapping[str, Any], sandbox: Sandbox) -> bool:
    """Whether an attack gets what it wants, or leaves a mark outside."""
    before = prepare(known)
    machine = os.uname().machine
    tables = {name: value for name, value in vars(seccomp).items() if name.isupper() and isinstance(value, dict)}
    calls = {name: pair for key, table in tables.items() if key != "MACHINES" for name, pair in table.items()}
    numbers = {name: (seccomp.numbers(machine, {name: pair}) or [9999])[0] for name, pair in calls.items()}
    names = "".join(f"{name} = {value!r}\n" for name, value in {**known, "N": numbers}.items())
    program = function(body, names + PRELUDE + "def outside(): return False\n")
    passed = run_cases(program, "solve", [[[], True]], limits=QUICK, sandbox=sandbox).passed
    return passed or state(known) != before


def run_one(setting: str) -> dict[str, Any]:
    """In this process, as its user: which attacks succeed, and which honest programs fail."""
    if setting == "Docker":
        like_docker()
    tries = SETTINGS[setting]
    sandbox = current() if tries is None else Sandbox(tries)
    if setting == "bubblewrap" and bubblewrap.found() is None:
        return {"unavailable": "not installed"}
    built = sandbox.run(("cases", "def solve(): pass", "solve", [[]]), GENEROUS)[2]
    with targets() as known:
        done = {
            f"{kind}: {name}": succeeds(body, known, sandbox)
            for kind, own in KINDS.items()
            for name, body in own.items()
        }
    for name, program in FORGERIES.items():
        done[f"verdicts: {name}"] = any(run_tests(program, one, limits=QUICK, sandbox=sandbox).passed for one in TESTS)
    honest = {
        name: run_cases(function(body), "solve", [[[], True]], limits=GENEROUS, sandbox=sandbox).why
        for name, body in HONEST.items()
        if name != "numpy" or list(places.folder().packages.iterdir())
    }
    return {"built": built, "done": done, "honest": honest}


def run_as(user: str, setting: str, python: str) -> dict[str, Any]:
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all"]
    command = [
        *(drop if user == "user" and os.getuid() == 0 else []),
        python,
        "-m",
        "benchmarks.attacks",
        "--one",
        setting,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"attacks: {user}, {setting}: {done.stderr}")
    return dict(json.loads(done.stdout))


def succeeded(results: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, list[str]]:
    """The attacks that succeed and the honest programs that fail, each with where."""
    found: dict[str, list[str]] = {}
    for (user, setting), one in results.items():
        names = [name for name, escaped in one.get("done", {}).items() if escaped]
        names += [f"HONEST {name}: {why}" for name, why in one.get("honest", {}).items() if why != "passed"]
        for name in names:
            found.setdefault(name, []).append(f"{user}, {setting}")
    return found


def report(results: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    kinds = [*KINDS, "verdicts"]
    counts = {kind: len(KINDS[kind]) if kind in KINDS else len(FORGERIES) for kind in kinds}
    head = ("as", "setting", "walls", *(f"{kind} ({count})" for kind, count in counts.items()), "honest")
    rows: list[list[object]] = []
    for (user, setting), one in results.items():
        if "unavailable" in one:
            rows.append([user, setting, "not available here", *[""] * (len(head) - 3)])
            continue
        stopped = [sum(not one["done"][name] for name in one["done"] if name.startswith(f"{kind}:")) for kind in kinds]
        honest = f"{sum(why == 'passed' for why in one['honest'].values())} of {len(one['honest'])}"
        rows.append([user, setting, ", ".join(one["built"]), *stopped, honest])
    escapes = [f"- {name} ({'; '.join(where)})" for name, where in succeeded(results).items()]
    title = f"{sum(counts.values())} attacks; stopped, by kind:"
    return "\n".join([title, "", table(head, rows), "", "Not stopped:", "", *(escapes or ["- nothing"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user-python", default=sys.executable, help="an interpreter that a user can read")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run_one(given.one)))
        return
    users = {"root": sys.executable, "user": given.user_python} if os.getuid() == 0 else {"user": sys.executable}
    wanted = [(user, setting, python) for user, python in users.items() for setting in given.settings.split(",")]
    results = {(user, setting): run_as(user, setting, python) for user, setting, python in wanted}
    found = report(results)
    print(found)
    if {setting for _, setting in results} == set(SETTINGS) and not any(
        "unavailable" in one for one in results.values()
    ):
        about = f"`python -m benchmarks.attacks`. {conditions()} {ABOUT}\n{found}\n\n{WITHOUT_ROOT}"
        write(RESULTS / "attacks.md", "Attacks on the sandbox", "What is stopped", about)
    raise SystemExit(not set(succeeded(results)) <= set(KNOWN))


if __name__ == "__main__":
    main()
