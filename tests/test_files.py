"""Files that are there whole or not at all, and folders that one process uses at a time."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.errors import InputFileError
from soar_dlm.files import (
    LOCK,
    append_line,
    check_usable,
    explained,
    locked,
    locked_file,
    made_folder,
    replacing,
    write_json,
    write_text,
)
from tests.disks import contents, files_up_to


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    file.chmod(0o640)
    write_text(file, "new\r\n\u2028")
    assert file.read_bytes() == "new\r\n\u2028".encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["a.txt"]


def _fail(_: object) -> None:
    raise ZeroDivisionError


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_json(file, {"old": 1})
    with pytest.raises(ZeroDivisionError), replacing(file) as fresh:
        _fail(fresh.write_text("half"))
    with pytest.raises(InputFileError, match=r"Cannot write .*a\.json"), replacing(file):
        pass  # nothing was written aside
    assert file.read_text() == '{\n  "old": 1\n}\n'
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("name", ["no/such/folder/x", "x" * 300, "a\0b", "\ud800"])
def test_a_bad_path_is_a_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Cannot write"):
        write_text(tmp_path / name, "text")
    assert os.listdir(tmp_path) == []


def test_other_mistakes_are_not_blamed_on_the_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ours"), explained("write", tmp_path):
        raise ValueError("ours")


def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    script = (
        "import resource, signal, sys; from pathlib import Path; from soar_dlm.files import write_text\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_text(Path(sys.argv[1]), 'x' * 5000)"
    )
    done = subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=False)
    assert f"Cannot write {file}: File too large." in done.stderr
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_line_that_does_not_fit_leaves_the_file_as_it_was_or_none(tmp_path: Path) -> None:
    """The first line on a full disk used to leave an empty file."""
    file = tmp_path / "a.jsonl"
    with files_up_to(10), pytest.raises(InputFileError, match="File too large"):
        append_line(file, "x" * 20)
    assert contents(tmp_path) == {}
    append_line(file, "12345")
    with files_up_to(10), pytest.raises(InputFileError, match="File too large"):
        append_line(file, "x" * 20)
    append_line(file, b"6")
    assert file.read_bytes() == b"12345\n6\n"


def test_a_text_that_utf8_cannot_hold_is_not_blamed_on_the_path(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(InputFileError, match="UTF-8 cannot hold its text"):
        write_text(file, "half \ud800")
    with pytest.raises(InputFileError, match="cannot be written as JSON"):
        write_json(file, {"a": float("nan")})
    assert contents(tmp_path) == {"a.txt": b"old"}


def test_whether_a_folder_can_be_used_is_told_without_making_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_usable(tmp_path / "new" / "deeper")
    check_usable(tmp_path)
    for name in ("file", "file/below", "x" * 300, "new/a\0b"):
        with pytest.raises(InputFileError, match="Cannot write"):
            check_usable(tmp_path / name)
    with locked(tmp_path), pytest.raises(InputFileError, match="in use"):
        check_usable(tmp_path)
    assert contents(tmp_path) == {"file": b""}


HOLDER = (
    "import sys; from pathlib import Path; from soar_dlm.files import locked\n"
    "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
)


def test_the_second_process_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputFileError, match=f"in use: process {holder.pid} on .* since"), locked(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path), pytest.raises(InputFileError, match="in use"), locked(tmp_path):
        pass
    assert os.listdir(tmp_path) == [], "a lock that is let go leaves nothing"


KEEPER = (
    "import sys; from soar_dlm.files import lasting_folder\n"
    "print(lasting_folder('soar-kept-'), flush=True); sys.stdin.read()"
)


def test_temporary_folders_of_killed_processes_do_not_stay(tmp_path: Path) -> None:
    """Each killed run of a random model used to leave its checkpoint in /tmp."""
    command = [sys.executable, "-c", KEEPER]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = {**os.environ, "TMPDIR": str(tmp_path)}

    def folder_of(process: subprocess.Popen[str]) -> Path:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        os.utime(folder, (0, 0))  # not one that was made a moment ago
        return folder

    with subprocess.Popen(command, env=env, **pipes) as killed, subprocess.Popen(command, env=env, **pipes) as alive:
        left, used = folder_of(killed), folder_of(alive)
        killed.kill()
        killed.wait()
        assert left.is_dir()
        subprocess.run(command, env=env, input="", capture_output=True, text=True, check=True)
        assert (left.exists(), used.exists()) == (False, True)
        alive.communicate("")
    assert os.listdir(tmp_path) == []


FORKER = """
import os, sys
from soar_dlm.files import InputFileError, lasting_folder, locked
folder = lasting_folder('soar-kept-')
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
try:
    with locked(folder):
        print("free")
except InputFileError:
    print("in use")
"""


def test_a_temporary_folder_outlives_the_children_of_its_process(tmp_path: Path) -> None:
    """A forked child that ended used to remove the folder and to release its lock."""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FORKER], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "in use\n"
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A device or pipe must not be moved away by a file of its name."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputFileError, match="not a file"):
        write_text(pipe, "text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["x" * 255, "\u96ea" * 85])
def test_the_longest_names_can_be_replaced_and_locked(name: str, tmp_path: Path) -> None:
    with locked_file(tmp_path / name):
        write_text(tmp_path / name, "text")
        with pytest.raises(InputFileError, match=f"in use: process {os.getpid()} "), locked_file(tmp_path / name):
            pass
    assert os.listdir(tmp_path) == [name]


def test_links_in_a_circle_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputFileError, match="in a circle"):
        write_text(tmp_path / "a", "text")


def test_a_folder_that_cannot_be_locked_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Cannot write"), locked(tmp_path / "missing"):
        pass


def test_folders_made_for_nothing_are_removed_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    new = tmp_path / "before" / "one" / "two"
    with pytest.raises(InputFileError), made_folder(new):
        write_text(new / "file" / "below", "there is no such folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["before"]
    with pytest.raises(ZeroDivisionError), made_folder(new):
        _ = (new.parent / "file").write_text("kept") / 0
    assert {path.name for path in tmp_path.rglob("*")} == {"before", "one", "file"}
    with made_folder(new):
        pass
    assert new.is_dir()
