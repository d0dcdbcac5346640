"""Programs that try to get out of the sandbox, in every way of building it that this system allows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from soar_dlm.errors import SettingsError
from soar_dlm.tasks.execution import Limits, missing_walls, run_cases
from soar_dlm.tasks.sandbox import bubblewrap, consent, control_group, launch, places, seccomp, selftest
from soar_dlm.tasks.sandbox.frames import READY, framed
from soar_dlm.tasks.sandbox.launch import TRIES, Sandbox, current
from soar_dlm.tasks.sandbox.walls import WALLS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="walls are built on Linux alone")
QUICK = Limits(wall_seconds=5.0, cpu_seconds=1, memory_bytes=256 * 2**20)
WAYS = {
    "bubblewrap": (TRIES, "pid"),
    "namespaces": (TRIES[1:], "mount"),
    "landlock": (TRIES[2:], "landlock"),
}


@pytest.fixture(params=WAYS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """The sandbox built in one way; skipped where the system does not allow it."""
    tries, needed = WAYS[request.param]
    if request.param == "bubblewrap" and bubblewrap.found() is None:
        pytest.skip("bubblewrap is not installed")
    made = Sandbox(tries)
    why, _, built = made.run(("cases", "def solve(): pass", "solve", [[]]), QUICK)
    if why != "passed" or needed not in built:
        pytest.skip(f"this system does not allow {request.param}")
    return made


def outcome(program: str, sandbox: Sandbox, limits: Limits = QUICK) -> str:
    """What became of a program whose function should have returned True."""
    return run_cases(program, "solve", [[[], True]], limits=limits, sandbox=sandbox).why


def succeeded(sandbox: Sandbox, *lines: str) -> list[str]:
    """Those of the lines that raise no error in the sandbox."""
    text = "import ctypes, os, signal, socket, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    text += "def call(*numbers):\n    if libc.syscall(*map(ctypes.c_long, numbers)) == -1: raise OSError\n"
    text += "def solve():\n    done = []\n"
    for line in lines:
        text += f"    try:\n        {line}\n        done.append({line!r})\n    except Exception: pass\n"
    why, answers, _ = sandbox.run(("cases", text + "    return done\n", "solve", [[]]), QUICK)
    assert why == "passed"
    return list(answers[0])


def test_no_processes_no_sockets_no_signals(sandbox: Sandbox) -> None:
    assert not succeeded(
        sandbox,
        "os.fork() or os._exit(0)",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "socket.socket()",
        "socket.create_connection(('127.0.0.1', 80))",
        "os.kill(1, signal.SIGKILL)",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "os.killpg(0, signal.SIGKILL)",
        "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGKILL)",
        f"os.kill({os.getpid()}, 0)",
    )


def test_a_pair_of_sockets_does_not_send_outside(sandbox: Sandbox, tmp_path: Path) -> None:
    """Without a root folder of its own, a program could write to any socket of datagrams, such as the system's log."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mailbox:
        mailbox.bind(str(tmp_path / "mailbox"))
        sending = f"socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', {mailbox.getsockname()!r})"
        assert not succeeded(sandbox, sending)
    assert succeeded(sandbox, "pair = socket.socketpair(); pair[0].send(b'x')")


def test_the_flags_of_files_that_can_be_read_stay(sandbox: Sandbox) -> None:
    change = "__import__('fcntl').ioctl(os.open(os.__file__, os.O_RDONLY), 0x40086602, bytes(8))"
    assert not succeeded(sandbox, change)


def test_shared_memory_queues_and_keys_are_barred(sandbox: Sandbox) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers below are those of x86_64")
    numbers = {"shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "add_key": 248, "keyctl": 250}
    assert not succeeded(sandbox, *(f"call({number}, 0, 4096, 0o1600)" for number in numbers.values()))


def test_memory_beyond_the_limit_cannot_be_had_as_a_file(sandbox: Sandbox) -> None:
    assert not succeeded(sandbox, "os.memfd_create('x')", "open('/dev/shm/soar-test', 'w')")


def test_open_files_are_limited(sandbox: Sandbox) -> None:
    assert not succeeded(sandbox, "[os.dup(1) for _ in range(100)]")


def test_the_memory_of_other_processes_is_out_of_reach(sandbox: Sandbox) -> None:
    lines = [f"open('/proc/{pid}/mem', 'rb')" for pid in ("%d' % os.getppid() + '", os.getpid(), 1)]
    assert not succeeded(sandbox, *lines, "os.listdir('/proc')", "os.readlink('/proc/%d/exe' % os.getppid())")


def test_a_program_cannot_outlive_its_judge(sandbox: Sandbox) -> None:
    assert not succeeded(sandbox, "1 / (libc.prctl(1, 0, 0, 0, 0) + 1)")


def test_files_outside_are_neither_read_nor_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o640)
    times = secret.stat().st_mtime_ns
    name = str(secret)
    assert not succeeded(
        sandbox,
        f"open({name!r})",
        f"os.listdir({str(tmp_path)!r})",
        f"open({name!r}, 'w')",
        f"os.truncate({name!r}, 0)",
        f"os.chmod({name!r}, 0)",
        f"os.utime({name!r}, (0, 0))",
        f"os.rename({name!r}, {name + '2'!r})",
        f"os.link({name!r}, 'link')",
        f"os.symlink({name!r}, 'soft') or open('soft')",
        f"open({os.path.abspath(__file__)!r})",
    )
    assert (secret.read_text(), secret.stat().st_mode & 0o777, secret.stat().st_mtime_ns) == ("x", 0o640, times)


def test_what_can_be_read_cannot_be_written(sandbox: Sandbox) -> None:
    folders = [path for path in places.readable() if os.path.isdir(path)]
    assert folders
    assert not succeeded(sandbox, *(f"open({path + '/soar-test'!r}, 'w')" for path in folders))
    assert len(succeeded(sandbox, "open('own', 'w').write('x')", "open(os.devnull, 'w').write('x')")) == 2


@pytest.fixture
def mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder that programs can read, with another file system mounted in it."""
    inner = tmp_path / "readable" / "inner"
    inner.mkdir(parents=True)
    if (
        os.getuid()
        or subprocess.run(["mount", "-t", "tmpfs", "tmpfs", inner], capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting needs a superuser")
    try:
        (inner / "file").write_text("x")
        paths = (*places.readable(), str(tmp_path / "readable"))
        monkeypatch.setattr(places, "readable", lambda: paths)
        yield inner
    finally:
        subprocess.run(["umount", "-l", inner], check=True)


def test_what_is_mounted_below_a_readable_folder_is_read_only_too(sandbox: Sandbox, mounted: Path) -> None:
    file = str(mounted / "file")
    bare = replace(sandbox, tries=tuple(name for name in sandbox.tries if name != "landlock"))
    for one in (sandbox, bare):  # without Landlock, the mounts themselves must hold
        if one is bare and sandbox.tries == WAYS["landlock"][0]:
            continue
        assert succeeded(one, f"open({file!r})", f"open({file!r}, 'w')", f"os.remove({file!r})") == [f"open({file!r})"]
    assert (mounted / "file").read_text() == "x"


def test_a_fork_bomb_does_not_go_off(sandbox: Sandbox) -> None:
    bomb = "import os\ndef solve():\n    while True:\n        try: os.fork()\n        except OSError: pass\n"
    assert outcome(bomb, sandbox, Limits(wall_seconds=0.5)) == "timeout"


def test_the_disk_is_small(sandbox: Sandbox) -> None:
    if "namespaces" not in sandbox.tries:
        pytest.skip("without a file system of its own, only each file is limited")
    filling = (
        "def solve():\n    for number in range(64):\n        with open(str(number), 'wb') as file:\n"
        "            file.write(bytes(2**20 - 1))\n    return True\n"
    )
    assert outcome(filling, sandbox) == "error"


def test_memory_output_and_time_are_bounded(sandbox: Sandbox) -> None:
    assert outcome("def solve():\n    return len(bytearray(2**30)) > 0\n", sandbox) == "memory"
    assert outcome("def solve():\n    return 'x' * 2**18\n", sandbox, replace(QUICK, output_bytes=2**16)) == "output"
    sleeping = "import time\ndef solve():\n    time.sleep(60)\n"
    assert outcome(sleeping, sandbox, Limits(wall_seconds=0.5)) == "timeout"


def test_honest_programs_pass_and_attacks_fail(sandbox: Sandbox) -> None:
    assert selftest.faults(sandbox) == ()


def test_a_program_may_signal_itself_and_use_asyncio(sandbox: Sandbox) -> None:
    handled = "import signal\ndef solve():\n    got = []\n    signal.signal(10, lambda *_: got.append(1))\n"
    assert outcome(handled + "    signal.raise_signal(10)\n    return got == [1]\n", sandbox) == "passed"
    awaited = "import asyncio\nasync def one(): return True\ndef solve():\n    return asyncio.run(one())\n"
    assert outcome(awaited, sandbox) == "passed"


def test_without_a_wall_for_files_or_processes_nothing_runs(tmp_path: Path) -> None:
    for tries in ((), ("seccomp",), ("landlock",)):
        with pytest.raises(SettingsError, match="--unsafe-sandbox"):
            run_cases("def solve(): pass", "solve", [[[], None]], sandbox=Sandbox(tries))
    permitted = run_cases("def solve(): pass", "solve", [[[], None]], sandbox=Sandbox((), strict=False))
    assert (permitted.why, permitted.missing) == ("passed", tuple(WALLS))


def test_a_machine_whose_calls_are_unknown_is_refused_not_misjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        machine = "s390x"

    monkeypatch.setattr(os, "uname", Machine)
    with pytest.raises(OSError, match="s390x"):
        seccomp.restrict_calls(own_root=True)


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_no_jump_of_the_filter_leaves_it(machine: str) -> None:
    tables = [seccomp.PROCESSES, seccomp.NETWORK, seccomp.KERNEL, seccomp.MARKS]
    barred = [number for table in tables for number in seccomp.numbers(machine, table)]
    code = seccomp.filter_code(machine, 7, barred)
    assert len(set(barred)) == len(barred)
    assert all(place + 1 + max(yes, no) < len(code) for place, (_, yes, no, _) in enumerate(code[:-1]))
    assert max(barred) < seccomp.NEWEST


def test_the_sandbox_stops_the_evaluation_that_it_would_judge_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    selftest.faults.cache_clear()
    monkeypatch.setitem(selftest.HONEST, "is not judged right", "return False")
    try:
        said = consent.refusal()
    finally:
        selftest.faults.cache_clear()
    assert said is not None
    assert "a right program that is not judged right is judged wrong (wrong)" in said


def test_the_sandbox_stops_the_evaluation_that_it_would_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    selftest.faults.cache_clear()
    monkeypatch.setitem(selftest.ATTACKS["files"], "do as it likes", "pass")
    try:
        said = consent.refusal()
    finally:
        selftest.faults.cache_clear()
    assert said is not None
    assert "a program can do as it likes" in said


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_told_that_linux_is_needed(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    said = consent.refusal()
    assert said is not None
    assert "Linux" in said


def run_python(interpreter: Path, code: str) -> str:
    source = str(Path(consent.__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": source}
    done = subprocess.run([interpreter, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


JUDGE = (
    "from soar_dlm.tasks.execution import run_cases\n"
    "from soar_dlm.tasks.sandbox.launch import TRIES, Sandbox\n"
    "program = 'import json\\ndef solve(): return json.loads(\"[1]\")'\n"
    "for tries in (TRIES, TRIES[1:], TRIES[2:]):\n"
    "    print(run_cases(program, 'solve', [[[], [1]]], sandbox=Sandbox(tries)).why, end=' ')\n"
)


def test_right_programs_pass_where_python_is_reached_through_a_link(tmp_path: Path) -> None:
    if bubblewrap.found() is None or set(missing_walls()):
        pytest.skip("this system does not allow every way of building the sandbox")
    (tmp_path / "linked").symlink_to(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert run_python(tmp_path / "linked" / "bin" / version, _stubs() + JUDGE).split() == ["passed"] * 3


def _stubs() -> str:
    """The library's package without its heavy imports, which a bare interpreter does not have."""
    here = Path(consent.__file__).parents[2]
    return (
        "import sys, types\n"
        "package = sys.modules['soar_dlm'] = types.ModuleType('soar_dlm')\n"
        f"package.__path__ = [{str(here)!r}]\n"
    )


def test_right_programs_pass_where_python_lies_under_tmp(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    folder = Path("/tmp/soar-test-python")
    folder.mkdir(exist_ok=True)
    try:
        (folder / "module.py").write_text("value = True\n")
        paths = (*places.readable(), str(folder))
        monkeypatch.setattr(places, "readable", lambda: paths)
        program = f"import sys\nsys.path.append({str(folder)!r})\nimport module, os\n"
        assert outcome(program + "def solve(): return module.value and os.listdir() == []\n", sandbox) == "passed"
        assert not succeeded(sandbox, f"open({str(folder / 'new')!r}, 'w')")
    finally:
        (folder / "module.py").unlink()
        folder.rmdir()


def test_walls_are_those_that_users_read_about() -> None:
    assert set(missing_walls()) <= set(WALLS)
    assert current().strict


def test_programs_are_members_of_a_group_with_limited_memory() -> None:
    entering = control_group.entering()
    if not entering:
        pytest.skip("this process may not make control groups")
    said = subprocess.run([*entering, "/bin/cat", "/proc/self/cgroup"], capture_output=True, text=True, check=True)
    assert f"{control_group.PREFIX}{os.getpid()}" in said.stdout
    group = Path(entering[3]).parent
    limits = [int((group / name).read_text()) for name in control_group.LIMITS if (group / name).exists()]
    assert limits == [control_group.MEMORY]


def test_unsafe_runs_what_cannot_be_isolated_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_chosen", [Sandbox(())])
    with pytest.raises(SettingsError, match="--unsafe-sandbox"):
        consent.require_consent("mini-code", allowed=True)
    with pytest.raises(SettingsError, match="--allow-code-execution"):
        consent.require_consent("mini-code", allowed=False, unsafe=True)
    consent.require_consent("mini-code", allowed=True, unsafe=True)
    assert run_cases("def solve(): return True", "solve", [[[], True]]).passed


def test_the_time_that_walls_take_is_not_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, right programs ran out of time before they had started."""
    seconds = iter(range(1000))
    monkeypatch.setattr(
        "soar_dlm.tasks.sandbox.launch.time.monotonic", lambda: next(seconds)
    )  # a second passes at every look
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as echo:
        said, _, late = launch.exchange(echo, framed(READY), 0.5)
        launch.end(echo)
    assert (said, late) == (framed(READY), True)
    assert next(seconds) > 2, "more time passed before it was ready than the program has"


def test_a_sandbox_that_does_not_start_is_an_error_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "interpreter", lambda: "/bin/false")
    with pytest.raises(SettingsError, match="could not be started"):
        run_cases("def solve(): return True", "solve", [[[], True]], sandbox=Sandbox(TRIES[1:]))


def test_on_a_machine_with_unknown_calls_right_programs_pass_or_are_refused() -> None:
    if shutil.which("setarch") is None or os.uname().machine != "x86_64" or bubblewrap.found() is None:
        pytest.skip("pretending to be another machine needs setarch, x86_64 and bubblewrap")
    code = _stubs() + (
        "from soar_dlm.tasks.execution import run_cases\n"
        "from soar_dlm.tasks.sandbox.launch import TRIES, Sandbox\n"
        "for tries in (TRIES, TRIES[2:]):\n"
        "    try: print(run_cases('def solve(): return 1', 'solve', [[[], 1]], sandbox=Sandbox(tries)))\n"
        "    except Exception as error: print(error)\n"
    )
    done = subprocess.run(["setarch", "i686", sys.executable, "-c", code], capture_output=True, text=True, check=True)
    walled, refused = done.stdout.splitlines()
    assert walled == "Outcome(why='passed', missing=('calls',))"
    assert "no way to other processes" in refused
