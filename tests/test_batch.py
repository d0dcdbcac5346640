"""``soar generate`` over many prompts: what records keep, samples, and resuming after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.cli.files import Output
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.lm import LM, load
from tests.closeness import about
from tests.command import BASE, invoke


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_json_lines_in_and_out_with_bad_lines_among_them(tmp_path: Path) -> None:
    prompts = [
        json.dumps({"prompt": "one", "id": "first"}),
        "{not json",
        json.dumps({"text": "no prompt"}),
        "",
        json.dumps({"messages": [{"role": "user", "content": "two"}]}),
        json.dumps({"prompt": "x" * 3000, "id": 7}),
        json.dumps([1]),
        json.dumps({"prompt": 5}),
        json.dumps({"prompt": "three"}),
    ]
    source, target, trace = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "trace.jsonl"
    source.write_text("\n".join(prompts))
    run = invoke(*BASE, "-i", str(source), "-o", str(target), "--trace", str(trace), "--stats")
    assert run.exit_code == 1
    assert "5 of 8 prompts failed" in run.stderr
    records = {record["index"]: record for record in lines(target)}
    assert sorted(records) == list(range(8))
    lm = load("random-llada")
    first = lm.generate("one", max_new_tokens=12)
    assert records[0] == {
        "index": 0,
        "id": "first",
        "prompt": "one",
        "text": first.text,
        "finish_reason": first.finish_reason,
        "steps": first.steps,
        "forwards": first.forwards,
        "tokens_per_forward": round(first.tokens_per_forward, 4),
        "mean_confidence": pytest.approx(first.mean_confidence, abs=1e-5),
        "prompt_tokens": 3,
        "completion_tokens": len(first.tokens),
        "seed": 0,
    }
    assert records[3]["text"] == lm.generate([{"role": "user", "content": "two"}], max_new_tokens=12).text
    assert records[7]["text"] == lm.generate("three", max_new_tokens=12).text
    kinds = {index: record["error"]["type"] for index, record in records.items() if "error" in record}
    assert kinds == {1: "PromptError", 2: "PromptError", 4: "PromptTooLong", 5: "PromptError", 6: "PromptError"}
    assert records[4]["id"] == 7
    assert {record["index"] for record in lines(trace)} == {0, 3, 7}


def test_prompts_that_break_tokenizer_or_template_are_error_records_too() -> None:
    prompts = [
        '{"prompt": "\\ud800"}',
        '{"messages": [{"role": "user", "content": null}]}',
        '{"messages": []}',
        '{"prompt": "a line separator \u2028 is no end of line"}',
    ]
    run = invoke(*BASE, "--jsonl", stdin="\n".join(prompts))
    records = {record["index"]: record for record in map(json.loads, run.stdout.splitlines()) if "error" in record}
    assert run.exit_code == 1
    assert set(records) >= {0, 2}
    assert 3 not in records
    assert {record["error"]["type"] for record in records.values()} == {"PromptError"}


def test_json_lines_from_stdin_to_stdout() -> None:
    run = invoke(*BASE, "--jsonl", stdin='{"prompt": "a"}\n{"prompt": "b"}\n')
    assert [json.loads(line)["prompt"] for line in run.stdout.splitlines()] == ["a", "b"]


def test_what_is_done_is_on_disk_before_a_later_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash in the middle of a run must not take finished records with it."""
    real = LM.generate_as_completed

    def failing(self: LM, prompts: Any, *args: Any, **options: Any) -> Any:
        for count, outcome in enumerate(real(self, prompts, *args, **options)):
            if count == 2:
                raise RuntimeError("power cut")
            yield outcome

    monkeypatch.setattr(LM, "generate_as_completed", failing)
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"prompt": str(n)}) + "\n" for n in range(4)))
    with pytest.raises(RuntimeError, match="power cut"):
        invoke(*BASE, "-i", str(source), "-o", str(target))
    assert len(lines(target)) == 2


def test_records_keep_the_fields_of_their_lines_also_of_lines_that_fail() -> None:
    """Fields other than "id" used to be dropped, and of lines that failed the id too."""
    messages = [{"role": "user", "content": "two"}]
    prompts = [
        {"prompt": "one", "id": "a", "tags": ["x"], "text": "gold", "steps": 3},
        {"id": "b", "question": "no prompt here"},
        {"prompt": "x" * 3000, "id": "c"},
        {"messages": messages, "id": "d"},
    ]
    run = invoke(*BASE, "--jsonl", stdin="\n".join([*map(json.dumps, prompts), "{torn", "[1]"]))
    records = {record["index"]: record for record in map(json.loads, run.stdout.splitlines())}
    assert [records[index]["id"] for index in range(4)] == ["a", "b", "c", "d"]
    assert records[0]["tags"] == ["x"]
    assert records[0]["input"] == {"text": "gold", "steps": 3}
    assert records[0]["text"] != "gold"
    assert records[1]["question"] == "no prompt here"
    assert records[2]["prompt"] == "x" * 3000
    assert records[3]["messages"] == messages
    assert (records[4]["input"], records[5]["input"]) == ("{torn", [1])


def test_several_texts_per_prompt_are_the_choices_of_one_record(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    options = ["--n", "2", "--temperature", "1", "--seed", "5"]
    run = invoke(*BASE, *options, "--jsonl", "--trace", str(trace), stdin='{"prompt": "a"}\n{"prompt": "b"}\n')
    expected = load("random-llada").generate(["a", "b"], n=2, temperature=1.0, seed=5, max_new_tokens=12)
    records = sorted(map(json.loads, run.stdout.splitlines()), key=lambda record: record["index"])
    for record, results in zip(records, expected, strict=True):
        assert [choice["text"] for choice in record["choices"]] == [result.text for result in results]
        assert [choice["seed"] for choice in record["choices"]] == [5, 6]
        assert "text" not in record
    assert sorted((record["index"], record["sample"]) for record in lines(trace)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    single = invoke(*BASE, *options, "a").stdout
    assert single == "\n---\n".join(result.text for result in expected[0]) + "\n"


def test_a_batch_without_a_trace_file_keeps_no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand traces are gigabytes."""
    seen: list[int] = []
    real = LM.generate_as_completed

    def watched(self: LM, prompts: Any, *args: Any, **options: Any) -> Any:
        for place, outcome in real(self, prompts, *args, **options):
            seen.append(len(outcome.trace.steps))
            yield place, outcome

    monkeypatch.setattr(LM, "generate_as_completed", watched)
    invoke(*BASE, "--jsonl", stdin='{"prompt": "a"}\n')
    assert seen == [0]


PROMPTS = [json.dumps({"prompt": f"prompt {number}", "id": number}) for number in range(4)]


def run_once(tmp_path: Path) -> tuple[list[str], Path, Path]:
    """A finished run with one bad line: its options, output and trace."""
    source, target, trace = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "trace.jsonl"
    source.write_text("\n".join([*PROMPTS, "{bad"]))
    options = [*BASE, "-i", str(source), "-o", str(target), "--trace", str(trace)]
    assert invoke(*options).exit_code == 1
    return options, target, trace


def texts(path: Path) -> dict[int, Any]:
    found = lines(path)
    assert len({record["index"] for record in found}) == len(found), "a line is there twice"
    return {record["index"]: record.get("text") for record in found}


@pytest.mark.parametrize("cut", [0, 1, 300, 700, 1000])
def test_an_interrupted_run_resumes_where_it_was(tmp_path: Path, cut: int) -> None:
    """A kill can tear the last line of the output, and leave traces of lines that have no record."""
    options, target, trace = run_once(tmp_path)
    wanted, wanted_traces, whole = texts(target), texts(trace), target.read_bytes()
    target.write_bytes(whole[:cut])
    kept = whole[:cut].rpartition(b"\n")[0]
    assert invoke(*options, "--resume").exit_code == 1, "the bad line still counts"
    assert target.read_bytes().startswith(kept)
    assert texts(target) == wanted
    assert texts(trace) == wanted_traces


def test_a_torn_trace_is_mended_too(tmp_path: Path) -> None:
    options, target, trace = run_once(tmp_path)
    wanted = texts(trace)
    target.write_bytes(b"".join(target.read_bytes().splitlines(keepends=True)[:-1]))
    trace.write_bytes(trace.read_bytes()[:-50])
    invoke(*options, "--resume")
    assert texts(trace) == wanted


def test_resuming_a_finished_run_changes_nothing_and_a_missing_output_starts_one(tmp_path: Path) -> None:
    options, target, trace = run_once(tmp_path)
    before = target.read_bytes(), trace.read_bytes()
    assert "1 of 5 prompts failed" in invoke(*options, "--resume").stderr
    assert (target.read_bytes(), trace.read_bytes()) == before
    target.unlink()
    trace.unlink()
    invoke(*options, "--resume")
    assert len(lines(target)) == 5


def test_a_run_is_resumed_with_its_own_input_only(tmp_path: Path) -> None:
    options, target, trace = run_once(tmp_path)
    with pytest.raises(InputFileError, match="--overwrite, or continue an interrupted run with --resume"):
        invoke(*options)
    source = Path(options[options.index("-i") + 1])
    source.write_text("\n".join(["", *PROMPTS[1:], "{bad"]))
    with pytest.raises(InputFileError, match="does not belong to this input"):
        invoke(*options, "--resume")
    source.write_text("\n".join([*PROMPTS, "{bad"]))
    trace.unlink()
    with pytest.raises(InputFileError, match="lacks the traces"):
        invoke(*options, "--resume")
    target.write_text("no record\n")
    with pytest.raises(InputFileError, match=r"Line 1 of .* is damaged.* not JSON"):
        invoke(*options, "--resume")
    target.write_text('{"text": "of something else"}\n')
    with pytest.raises(InputFileError, match="was not written by 'soar generate'"):
        invoke(*options, "--resume")


def test_a_file_is_written_by_one_process_at_a_time(tmp_path: Path) -> None:
    first, second = Output(tmp_path / "out", many=True), Output(tmp_path / "out", many=True)
    first.add("a")
    with pytest.raises(InputFileError, match="Another process is writing"):
        second.add("b")
    assert (tmp_path / "out").read_text() == "a\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["hi", "--resume"], "--resume continues a run"),
        (["--jsonl", "--resume"], "--resume continues a run"),
        (["--jsonl", "--resume", "--overwrite", "-o", "x"], "choose one"),
        (["--jsonl", "--n", "2", "--watch"], "--watch shows one text"),
        (["hi", "--strategy", "greedy", "--n", "2"], "set a temperature"),
    ],
)
def test_options_that_do_not_go_together_are_refused(args: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        invoke(*BASE, *args, stdin='{"prompt": "a"}')


def test_a_line_of_a_trace_file_is_a_trace(tmp_path: Path) -> None:
    """``Trace.from_json`` used to read only the bare list of steps."""
    trace = tmp_path / "trace.jsonl"
    invoke(*BASE, "hi", "--trace", str(trace))
    assert Trace.from_json(trace.read_text()) == about(load("random-llada").generate("hi", max_new_tokens=12).trace)
