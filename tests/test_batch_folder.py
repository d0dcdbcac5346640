"""``soar batch``: chunks that are written whole, a folder that resumes, settings that must not change."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.errors import InputFileError, PromptError, SettingsError, SoarError
from soar_dlm.prompt_lines import Line, read_lines
from soar_dlm.scale.inputs import files_of, lines_of, planned
from soar_dlm.scale.shards import Shards, fingerprint
from tests.command import invoke

MODEL = ["-m", "random-llada", "-n", "8", "-s", "pbs", "--beam", "2"]
PROMPTS = [{"prompt": f"text {number}", "id": number} for number in range(11)]


def prompts_file(path: Path, prompts: list[Any] = PROMPTS) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in prompts))
    return path


def batch(*args: str, code: int = 0) -> str:
    result = invoke("batch", *args)
    assert result.exit_code == code, result.output
    return str(result.output)


def refused(*args: str) -> str:
    with pytest.raises(SoarError) as error:
        invoke("batch", *args)
    return str(error.value)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def shards(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted((folder / "results").rglob("*.jsonl"))}


PIECES = st.sampled_from(
    [b'{"prompt": "a"}\n', b'{"prompt": "b"}\r\n', b"\n", b"  \r\n", b"{bad\n", b"\xff\n", b"\xef\xbb\xbf\n", b"3\n"]
)


@given(files=st.lists(st.tuples(st.lists(PIECES), st.booleans()), min_size=1, max_size=3), size=st.integers(1, 5))
def test_chunks_hold_the_lines_of_all_files_in_order(
    files: list[tuple[list[bytes], bool]], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("inputs")
    expected: list[Line] = []
    paths = []
    for number, (pieces, open_end) in enumerate(files):
        content = b"".join(pieces) + (b'{"prompt": "last"}' if open_end else b"")
        paths.append(folder / f"{number}.jsonl")
        paths[-1].write_bytes(content)
        expected += read_lines(BytesIO(content))
    if not expected:
        with pytest.raises(PromptError, match="no prompts"):
            planned(paths, size)
        return
    plan = planned(paths, size)
    found = [list(lines_of(chunk)) for chunk in plan.chunks]
    assert [len(lines) for lines in found[:-1]] == [size] * (len(found) - 1)
    assert [chunk.first for chunk in plan.chunks] == [lines[0].index for lines in found]
    flat = [line for lines in found for line in lines]
    assert [line.index for line in flat] == list(range(len(expected)))
    assert plan.prompts == len(expected)
    for line, wanted in zip(flat, expected, strict=True):
        assert (line.prompt, line.kept, str(line.error)) == (wanted.prompt, wanted.kept, str(wanted.error))


def test_files_come_from_folders_and_patterns_each_once(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("b.jsonl", "a.jsonl", "inner/c.ndjson", ".hidden.jsonl", "notes.txt"):
        prompts_file(tmp_path / name)
    found = files_of([str(tmp_path / "b.jsonl"), str(tmp_path), str(tmp_path / "*.jsonl")])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["b.jsonl", "a.jsonl", "inner/c.ndjson"]
    for name, told in (("notes.txt", "neither JSON lines"), ("none.jsonl", "no file"), ("x*.jsonl", "no file")):
        with pytest.raises(InputFileError, match=told):
            files_of([str(tmp_path / name)])


def test_a_batch_has_the_records_of_generate_and_merges_them_in_order(tmp_path: Path) -> None:
    source = prompts_file(tmp_path / "prompts.jsonl", [*PROMPTS, {"text": 1}, "no object"])
    out = batch(str(source), *MODEL, "-o", str(tmp_path / "out"), "--chunk", "3", "--trace", "--merge", code=1)
    assert "13 prompts are done" in out
    assert "2 of them failed" in out
    again = batch(str(source), *MODEL, "-o", str(tmp_path / "out"), "--chunk", "3", "--trace", code=1)
    assert "2 of them failed" in again  # those of an earlier run count, too
    trace = tmp_path / "trace.jsonl"
    result = invoke("generate", "-i", str(source), *MODEL, "-o", str(tmp_path / "one.jsonl"), "--trace", str(trace))
    assert result.exit_code == 1
    one = sorted(map(json.loads, (tmp_path / "one.jsonl").read_text().splitlines()), key=lambda record: record["index"])
    found = records(tmp_path / "out")
    for mine, theirs in zip(found, one, strict=True):
        assert mine.pop("mean_confidence", 0) == pytest.approx(theirs.pop("mean_confidence", 0), abs=1e-5)
        assert mine == theirs
    traced = [json.loads(line) for line in (tmp_path / "out/traces.jsonl").read_text().splitlines()]
    assert [line["index"] for line in traced] == list(range(11))
    assert {line["index"]: line["text"] for line in traced} == {line["index"]: line.get("text") for line in found[:11]}
    assert len(shards(tmp_path / "out")) == 5


def test_a_run_resumes_with_the_chunks_that_are_missing(tmp_path: Path) -> None:
    source, out = prompts_file(tmp_path / "prompts.jsonl"), tmp_path / "out"
    batch(str(source), *MODEL, "-o", str(out), "--chunk", "2")
    whole = shards(out)
    lost, kept = sorted(whole)[1], sorted(whole)[0]
    (out / lost).unlink()
    (out / lost).with_name(".001.jsonl.4242.new").write_text("half")
    before = (out / kept).stat()
    assert "not decoded yet" in refused("--merge", "-o", str(out))
    batch(str(source), *MODEL, "-o", str(out), "--chunk", "2")
    assert shards(out).keys() == whole.keys()
    assert (out / kept).stat() == before
    assert [json.loads(line)["text"] for line in shards(out)[lost].splitlines()] == [
        json.loads(line)["text"] for line in whole[lost].splitlines()
    ]
    assert not list(out.rglob("*.new"))
    batch("--merge", "-o", str(out))
    assert [record["id"] for record in records(out)] == list(range(11))


def test_other_settings_and_other_prompts_are_refused_by_name(tmp_path: Path) -> None:
    source, out = prompts_file(tmp_path / "prompts.jsonl"), tmp_path / "out"
    batch(str(source), *MODEL, "-o", str(out), "--chunk", "4")
    before = shards(out)
    assert "options.temperature was None, is now 0.5" in refused(
        str(source), *MODEL, "-o", str(out), "--chunk", "4", "--temperature", "0.5"
    )
    assert "chunk was 4, is now 5" in refused(str(source), *MODEL, "-o", str(out), "--chunk", "5")
    assert "method.beam was 2, is now 3" in refused(str(source), *MODEL, "--beam", "3", "-o", str(out), "--chunk", "4")
    prompts_file(source, PROMPTS[:-1])
    told = refused(str(source), *MODEL, "-o", str(out), "--chunk", "4")
    assert "prompts was 11, is now 10" in told
    assert "prompts_sha256 was" in told
    assert shards(out) == before


def test_where_a_model_runs_may_change(tmp_path: Path) -> None:
    source, out = prompts_file(tmp_path / "prompts.jsonl"), tmp_path / "out"
    batch(str(source), *MODEL, "-o", str(out))
    batch(str(source), *MODEL, "-o", str(out), "--max-rows", "4", "--device", "cpu")


def test_parquet_is_read_like_json_lines(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(PROMPTS), tmp_path / "prompts.parquet", row_group_size=4)
    source = prompts_file(tmp_path / "prompts.jsonl")
    batch(str(tmp_path / "prompts.parquet"), *MODEL, "-o", str(tmp_path / "p"), "--chunk", "3", "--merge")
    batch(str(source), *MODEL, "-o", str(tmp_path / "j"), "--chunk", "3", "--merge")
    assert [(one["index"], one["id"], one["text"]) for one in records(tmp_path / "p")] == [
        (one["index"], one["id"], one["text"]) for one in records(tmp_path / "j")
    ]
    (tmp_path / "bad.parquet").write_text("no parquet")
    assert "cannot be read as Parquet" in refused(str(tmp_path / "bad.parquet"), *MODEL, "-o", str(tmp_path / "b"))


def test_mistakes_are_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    source, out = prompts_file(tmp_path / "prompts.jsonl"), tmp_path / "out"
    start = [str(source), "-m", "no-such-folder/", "-o", str(out)]
    assert "add --ray" in refused(*start, "--workers", "2")
    assert "no prompts" in refused("-m", "random-llada", "-o", str(out))
    assert "2-16" in refused(*start, "--ray", "--workers", "3-2")
    assert "on a machine of the cluster" in refused(*start, "--ray", "ray://head:10001")
    assert "no folder" in refused(*start)
    assert "folder of the results" in refused(str(source), *MODEL, "-o", str(tmp_path))
    assert "no batch" in refused("--merge", "-o", str(tmp_path))
    assert not out.exists()


def test_what_is_wrong_for_every_prompt_is_told_once_and_writes_nothing(tmp_path: Path) -> None:
    source, out = prompts_file(tmp_path / "prompts.jsonl"), tmp_path / "out"
    assert "n must be" in refused(str(source), *MODEL, "-o", str(out), "--n", "0")
    assert not (out / "results").exists()
    batch(str(source), *MODEL, "-o", str(out), "--n", "2")


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not see"):
        Shards(tmp_path / "elsewhere").check_seen()


def test_a_worker_that_outlives_its_run_writes_nothing_into_the_next(tmp_path: Path) -> None:
    old, new = ({"prompts": 1, "chunk": 1, "n": n} for n in (1, 2))
    orphan = Shards(tmp_path, job=fingerprint(old))
    with Shards(tmp_path).alone(old):
        orphan.check_seen()
    with Shards(tmp_path).alone(new), pytest.raises(SettingsError, match="other settings"):
        orphan.write(0, ["{}"], [])
    assert not shards(tmp_path)


def test_a_killed_run_loses_the_chunks_in_work_and_no_more(tmp_path: Path) -> None:
    many = [{"prompt": f"text {number}", "id": number} for number in range(120)]
    source, out = prompts_file(tmp_path / "prompts.jsonl", many), tmp_path / "out"
    command = [str(source), *MODEL, "-o", str(out), "--chunk", "4", "--max-rows", "8"]
    run = subprocess.Popen([sys.executable, "-m", "soar_dlm", "batch", *command], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not Shards(out).done():
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    found = shards(out)
    assert found
    assert {len(content.splitlines()) for content in found.values()} == {4}
    batch(*command, "--merge")
    assert {name: content for name, content in shards(out).items() if name in found} == found
    assert [record["id"] for record in records(out)] == list(range(120))
