"""What an evaluation leaves behind when it is killed or interrupted: nothing that runs, and nothing that stays."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from soar_dlm.tasks.sandbox import bubblewrap, places
from soar_dlm.tasks.sandbox.launch import TRIES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is built on Linux alone")
SOURCE = Path(places.__file__).parents[2]
STUBS = (  # the library without what it imports at once, which takes longer than all the rest
    "import sys, types\nlibrary = sys.modules['soar_dlm'] = types.ModuleType('soar_dlm')\n"
    f"library.__path__ = [{str(SOURCE)!r}]\n"
)
SLEEPING = "import signal, time\nsignal.alarm(0)\ndef f(): time.sleep(600)\n"
JUDGE = STUBS + (
    "from soar_dlm.tasks.execution import Limits, run_cases\n"
    "from soar_dlm.tasks.sandbox.launch import Sandbox\n"
    f"run_cases({SLEEPING!r}, 'f', [[[], None]], limits=Limits(wall_seconds=600), sandbox=Sandbox(%r))\n"
)
MANY = STUBS + (
    "from soar_dlm.tasks import unit_tests\n"
    "from soar_dlm.tasks.execution import Asserts, Limits\n"
    "unit_tests.TEST_LIMITS = Limits(wall_seconds=600)\n"
    f"unit_tests.all_pass_tests([{SLEEPING!r} + str(n) for n in range(4)], [Asserts('f()', ('f',))] * 4)\n"
)


HEEDED = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
"""Under nohup, programs are started with SIGHUP ignored."""


def started(code: str, folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", HEEDED + code], env=environment, stderr=subprocess.PIPE)


def below(process: int) -> list[int]:
    """All processes that a process started, and those they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def when_running(process: subprocess.Popen[bytes], count: int) -> list[int]:
    """Handles of the ``count`` processes of a sandbox, as soon as all have been started."""
    until = time.monotonic() + 60
    while len(found := below(process.pid)) < count:
        assert process.poll() is None, "the sandbox did not start"
        assert time.monotonic() < until, "the sandbox did not start"
    return [os.pidfd_open(one) for one in found]


def all_ended(handles: list[int]) -> bool:
    """Whether all the processes end; a handle can be read once its process has."""
    try:
        return all(select.select([one], [], [], 30)[0] for one in handles)
    finally:
        for one in handles:
            os.close(one)


@pytest.mark.parametrize("way", ["bubblewrap", "namespaces", "landlock"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_killing_the_evaluation_ends_its_programs(way: str, number: signal.Signals, tmp_path: Path) -> None:
    if way == "bubblewrap" and bubblewrap.found() is None:
        pytest.skip("bubblewrap is not installed")
    process = started(JUDGE % (TRIES[TRIES.index(way) :],), tmp_path)
    handles = when_running(process, 2 if way == "landlock" else 4)
    process.send_signal(number)
    assert process.wait(30) == -number
    assert all_ended(handles)


def test_the_next_evaluation_removes_what_a_killed_one_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process = started(JUDGE % (TRIES[2:],), tmp_path)
    handles = when_running(process, 2)
    (used,) = tmp_path.iterdir()
    os.utime(used, (0, 0))  # not one that was made a moment ago
    kept = places.Folder()
    assert used.exists(), "what is in use stays"
    process.kill()
    process.wait(30)
    assert all_ended(handles)
    link = tmp_path / "soar-sandbox-link"
    link.symlink_to(SOURCE)
    assert set(tmp_path.iterdir()) == {used, kept.path, link}
    os.utime(used, (0, 0))
    last = places.Folder()
    assert set(tmp_path.iterdir()) == {kept.path, last.path, link}


def test_an_interruption_does_not_wait_for_programs(tmp_path: Path) -> None:
    process = started(MANY, tmp_path)
    handles = when_running(process, 4)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)  # each program has 600 seconds
    assert b"KeyboardInterrupt" in said
    assert all_ended(handles)
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_removes_its_folder(tmp_path: Path) -> None:
    process = started(JUDGE.replace("time.sleep(600)", "pass") % (TRIES[1:],), tmp_path)
    assert process.wait(60) == 0
    assert list(tmp_path.iterdir()) == []
