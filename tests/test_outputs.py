"""Files that the command writes: by one process at a time, each into a place of its own, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.cli.files import Output, check_apart
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.lm import LM
from soar_dlm.strict_json import read_json
from tests.command import BASE, invoke
from tests.disks import contents, files_up_to

HOLDER = (
    "import sys; from pathlib import Path; from soar_dlm.cli.files import Output\n"
    "with Output(Path(sys.argv[1]), many=True): print('held', flush=True); sys.stdin.read()"
)
WRONG = ["generate", "-m", "no/such/model", "--overwrite", "hi"]
"""Fails when the model is loaded, if nothing fails before."""


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process that is about to write a file."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder.pid
        holder.communicate("")


def test_the_second_process_is_told_who_holds_the_file_before_it_loads_a_model(tmp_path: Path) -> None:
    """It used to be told by its first line, and not who it is."""
    file, link = tmp_path / "out.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(file)
    with held(file) as holder:
        for options in (["-o", str(file)], ["-o", str(link)], ["--trace", str(file)]):
            with pytest.raises(InputFileError, match=f"in use: process {holder} on "):
                invoke(*WRONG, *options)
    assert os.listdir(tmp_path) == ["link.jsonl"], "no lock is left, and nothing was written"


def test_a_file_that_another_process_writes_is_in_use_rather_than_there_already(tmp_path: Path) -> None:
    """The second process was told to add --overwrite or --resume, and then that the file is in use."""
    file = tmp_path / "out.jsonl"
    options = [*BASE, "hi", "-o", str(file)]
    with held(file) as holder:
        file.touch()
        with pytest.raises(InputFileError, match=f"in use: process {holder} on "):
            invoke(*options)
    with pytest.raises(InputFileError, match=r"exists\. Replace it with --overwrite"):
        invoke(*options)
    assert os.listdir(tmp_path) == ["out.jsonl"]


@pytest.mark.parametrize("size", [150, 1000, 1500])
def test_a_batch_that_finds_the_disk_full_keeps_whole_lines_and_resumes(
    random_llada: LM, tmp_path: Path, size: int
) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f'{{"prompt": "prompt {number}"}}\n' for number in range(12)))
    options = [*BASE, "-i", str(source), "-o", str(target)]
    with files_up_to(size), pytest.raises(InputFileError, match=r"Cannot write .*: File too large"):
        invoke(*options)
    done = target.read_bytes() if target.exists() else b""
    assert done == b"" or done.endswith(b"\n"), "no part of a line"
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl", *(["out.jsonl"] if done else [])]
    assert invoke(*options, "--resume").exit_code == 0
    assert target.read_bytes().startswith(done)
    assert {read_json(line)["index"] for line in target.read_bytes().splitlines()} == set(range(12))


def test_a_text_is_replaced_whole_or_stays_as_it_was(random_llada: LM, tmp_path: Path) -> None:
    target, trace, blank = tmp_path / "out.txt", tmp_path / "trace.jsonl", tmp_path / "blank.txt"
    precious = f"precious {{blank}}{'.' * 150}"
    for file in (target, trace, blank):
        file.write_text(precious)
    write = [*BASE, "hi", "--overwrite"]
    infill = ["infill", "-m", "random-llada", "-n", "9", str(blank)]
    with files_up_to(150):
        for options in (
            [*infill, "-o", str(target), "--overwrite"],
            [*write, "--trace", str(trace)],
            [*infill, "--write"],
        ):
            with pytest.raises(InputFileError, match=r"Cannot write .*: File too large"):
                invoke(*options)
    assert {file.read_text() for file in (target, trace, blank)} == {precious}
    assert len(os.listdir(tmp_path)) == 3, "nothing else is left"
    invoke(*infill, "--write")
    assert blank.read_text().startswith("precious ")
    assert "{blank}" not in blank.read_text()


@pytest.mark.parametrize("name", ["/proc/x", "missing/x", "file/x", "x" * 300, "circle", "."])
def test_a_bad_path_is_a_sentence_before_the_model_is_loaded(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")
    for option in ("-o", "--trace"):
        with pytest.raises(InputFileError, match=r"Cannot (write|use) "):
            invoke(*WRONG, option, str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["circle", "file"]


@pytest.mark.parametrize(
    ("output", "trace"),
    [("x", "x"), ("x", "folder/../x"), ("x", "link"), ("there", "hard"), ("folder/y", "other/y"), (None, "-")],
)
def test_output_and_trace_in_one_file_are_refused(
    output: str | None, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two used to overwrite each other."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "other").symlink_to("folder")
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "there").touch()
    (tmp_path / "hard").hardlink_to(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="--output and --trace are the same file"):
        invoke(*WRONG, *([] if output is None else ["-o", output]), "--trace", trace)


def test_what_is_read_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"prompt": "a {blank}"}\n')
    for option in ("-o", "--trace"):
        with pytest.raises(SettingsError, match="are the same file"):
            invoke(*WRONG[:-1], "-i", str(file), option, str(file))
        with pytest.raises(SettingsError, match="are the same file"):
            invoke("infill", "-m", "no/such/model", str(file), option, str(file), "--overwrite")
    with pytest.raises(SettingsError, match="FILE and --trace are the same file"):
        invoke("infill", "-m", "no/such/model", str(file), "--write", "--trace", str(file), "--overwrite")
    check_apart({"a": file, "b": file}, {"c": None, "d": tmp_path / "other"})


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    """``-o >(program)`` and ``-o /dev/null`` must stay what they are."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Output(pipe) as output:
            output.replace("text")
        assert os.read(reader, 100) == b"text\n"
    finally:
        os.close(reader)
    assert os.listdir(tmp_path) == ["pipe"]


def test_what_an_editor_saved_meanwhile_is_not_overwritten(
    random_llada: LM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blanks of a file may take minutes to fill; its new text used to be lost."""
    file, real = tmp_path / "file.txt", LM.infill_template
    file.write_text("a {blank:2}")

    def edited(self: LM, *given: Any, **options: Any) -> Any:
        file.write_text("a {blank:2} and more")
        return real(self, *given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LM, "infill_template", edited)
        with pytest.raises(InputFileError, match="was changed while"):
            invoke("infill", "-m", "random-llada", str(file), "--write")
    assert contents(tmp_path) == {"file.txt": b"a {blank:2} and more"}


def test_a_file_with_a_mark_and_carriage_returns_keeps_them(random_llada: LM, tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(b"\xef\xbb\xbfa\r\n{blank:2}!\r\nb\r\n")
    invoke("infill", "-m", "random-llada", str(file), "--write")
    assert file.read_bytes().startswith(b"\xef\xbb\xbfa\r\n")
    assert file.read_bytes().endswith(b"!\r\nb\r\n")
    assert file.read_bytes().count(b"\xef\xbb\xbf") == 1
