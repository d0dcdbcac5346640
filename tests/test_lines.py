"""The door for JSON lines: no line is the end of a batch, and what comes out can be read by everybody."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soar_dlm import prompt_lines as lines
from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.errors import InputFileError
from soar_dlm.lm import LM
from soar_dlm.prompt_lines import Line, read_lines
from soar_dlm.strict_json import DEEPEST, json_line, json_text, plain, read_json
from tests.command import BASE, invoke

BAD = [
    ("half a character", rb'{"prompt": "\ud800"}'),
    ("half a character", rb'{"prompt": "a", "\udc00": 1}'),
    ("more than 100 levels", b"[" * 5000 + b"]" * 5000),
    ("100 levels", b'{"prompt": "a", "x": ' + b"[" * 300 + b"]" * 300 + b"}"),
    ("5,000 digits", b'{"prompt": "a", "x": ' + b"9" * 5000 + b"}"),
    ("is too large", b'{"prompt": "a", "x": -1e999}'),
    ("not UTF-8", b'{"prompt": "\xff"}'),
    ("not UTF-8", b'{"prompt": "\xed\xa0\x80"}'),
    ("NaN is not a JSON number", b'{"prompt": "a", "x": [NaN]}'),
    ("-Infinity is not a JSON number", b'{"prompt": "a", "x": -Infinity}'),
    ('the name "prompt" twice', b'{"prompt": "a", "prompt": "b"}'),
    ("not JSON", b'{"prompt": "a"} {"prompt": "b"}'),
    ("must be an object", b'["prompt"]'),
    ("both", b'{"prompt": "a", "messages": []}'),
    ("(a string)", b'{"prompt": ["a"]}'),
    ("(a list of", b'{"messages": "a"}'),
]


def read(source: bytes) -> list[Line]:
    return read_lines(io.BytesIO(source))


@pytest.mark.parametrize(("words", "bad"), BAD)
def test_a_bad_line_is_an_error_with_its_index_and_the_next_line_is_read(words: str, bad: bytes) -> None:
    """Several of these used to end the batch."""
    before, line, after = read(b'{"prompt": "a"}\n' + bad + b'\n{"prompt": "b"}')
    assert (before.index, line.index, after.index) == (0, 1, 2)
    assert (before.prompt, after.prompt) == ("a", "b")
    assert before.error is None
    assert words in str(line.error)
    assert after.error is None
    assert read_json(json_line(line.kept)) == line.kept, "its record can be written and read again"


def test_marks_carriage_returns_and_separators_are_read() -> None:
    source = (
        '\ufeff{"prompt": "a"}\r\n \t\r\n\n{"prompt": "u\u2028\u2029\x85\x0bv"}\r\n{"prompt": null, "messages": [{}]}'
    )
    first, second, third = read(source.encode().replace(b"\x0b", b"\\u000b"))
    assert (first.prompt, second.prompt, third.prompt) == ("a", "u\u2028\u2029\x85\x0bv", [{}])
    assert [line.index for line in (first, second, third)] == [0, 1, 2]
    (inner,) = read(b'{"prompt": "\xef\xbb\xbfa"}')
    assert inner.prompt == "\ufeffa", "inside a string it is a character like others"


def test_a_very_long_line_is_an_error_and_only_its_start_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 100)
    exact = b'{"prompt": "' + b"x" * 86 + b'"}'
    assert len(exact) == 100
    found = read(exact + b"\n" + b'{"prompt": "a"}' + b" " * 90 + b"garbage\n" + b'{"prompt": "b"}')
    assert [line.error is None for line in found] == [True, False, True]
    assert "more than 100 bytes" in str(found[1].error)
    assert found[1].kept["input"].startswith('{"prompt": "a"}')


PIECES = [b'{"prompt"', b":", b'"a"', b"}", b"[", b"]", b"\r", b"\n", b"1e9", b"\xff", b"\\u", b","]


@given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES)).map(b"".join))
@example(b"\xef\xbb\xbf")
@example(b'{"prompt": "a", "input": {"index": 1}, "text": 2}')
def test_no_bytes_break_the_door(source: bytes) -> None:
    for index, line in enumerate(read(source)):
        assert line.index == index
        assert read_json(json_line(line.kept), DEEPEST + 2) == line.kept


def test_the_batch_goes_on_after_bad_lines_and_resumes_after_their_records(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines_of_bad = [bad for _, bad in BAD]
    source.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([b'{"prompt": "first"}', *lines_of_bad, b'{"prompt": "last"}']))
    options = [*BASE, "-i", str(source), "-o", str(target)]
    run = invoke(*options)
    assert run.exit_code == 1
    assert f"{len(BAD)} of {len(BAD) + 2} prompts failed" in run.stderr
    written = target.read_bytes()
    records = {record["index"]: record for record in map(read_json, written.splitlines())}
    assert sorted(records) == list(range(len(BAD) + 2))
    assert {index for index, record in records.items() if "error" not in record} == {0, len(BAD) + 1}
    assert '{"prompt": "\\xff"}' in [record.get("input") for record in records.values()]
    for cut in (len(BAD) // 2, len(BAD)):
        target.write_bytes(b"".join(written.splitlines(keepends=True)[:cut]) + b'{"torn')
        assert invoke(*options, "--resume").exit_code == 1
        assert sorted(target.read_bytes().splitlines()) == sorted(written.splitlines())


def test_fields_named_like_options_are_told_and_kept() -> None:
    """They used to look as if they changed the decoding of their line."""
    run = invoke(*BASE, "--jsonl", stdin='{"prompt": "a", "temperature": 0.9, "seed": 4, "colour": "red"}\n')
    assert "fields named like options (seed, temperature)" in run.stderr
    record = json.loads(run.stdout)
    assert (record["temperature"], record["input"], record["colour"]) == (0.9, {"seed": 4}, "red")
    assert "options" not in invoke(*BASE, "--jsonl", stdin='{"prompt": "a", "colour": "red"}\n').stderr


def test_nan_and_infinity_are_not_written(random_llada: LM) -> None:
    odd = float("nan"), float("inf"), -float("inf"), 1.5
    entry = BeamEntry("search", 0, (1, 2, 3, 4), (5, 6, 7, 8), odd, float("inf"), 0, (1, 1, 1, 1))
    trace = Trace((StepRecord(1, 1, (entry,)),))
    result = replace(
        random_llada.generate("a", max_new_tokens=2),
        details={"score": float("nan")},
        mean_confidence=float("inf"),
        token_confidence=list(odd),
        trace=trace,
    )
    event = list(random_llada.stream("a", max_new_tokens=2))[-1]
    strange = replace(event, confidence=list(odd), record=trace.steps[0], result=result)
    for written in (result.to_dict(trace=True), strange.to_dict(), trace.to_json()):
        text = json.dumps(written, allow_nan=False)
        assert "[null, null, null, 1.5]" in text
    assert json_line({"x": [*odd, {"y": odd[0]}]}) == '{"x": [null, null, null, 1.5, {"y": null}]}'


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    import numpy as np

    assert plain([np.float32(0.5), np.int64(3), np.bool_(True), np.array([1.0, np.nan])]) == [0.5, 3, True, [1.0, None]]


@pytest.mark.parametrize("text", ["", "nul", "[1", "\ufeff1", '"\ud800"'])
def test_what_is_no_json_is_a_sentence(text: str) -> None:
    with pytest.raises(InputFileError):
        read_json(text)


ODD = b'{"a": NaN, "b": [Infinity, -Infinity, 1e999], "c": "\\ud800", "c": "d\\ud800"}'


def test_what_other_programs_write_is_read_leniently() -> None:
    """Strictness would refuse checkpoints that everybody else loads."""
    with pytest.raises(InputFileError):
        read_json(ODD)
    found = read_json(ODD, lenient=True)
    assert found["b"] == [math.inf, -math.inf, math.inf]
    assert math.isnan(found["a"])
    assert found["c"] == "d\ud800", "the last of two counts"
    assert '"a": NaN' in json_text(found, lenient=True)
    for wrong in (b"[" * 5000 + b"]" * 5000, b"[" * 300 + b"]" * 300, b"9" * 5000, b"\xff", b"{"):
        with pytest.raises(InputFileError):
            read_json(wrong, lenient=True)


def test_a_text_for_a_file_is_exact_or_refused() -> None:
    assert read_json(json_text({"a": [1, "\U0001f600"], "b": None})) == {"a": [1, "\U0001f600"], "b": None}
    for wrong in (math.nan, {"a": -math.inf}, object(), [{1}], {(1,): 1}):
        with pytest.raises(InputFileError, match="cannot be written as JSON"):
            json_text(wrong)


def test_input_and_output_are_utf8_whatever_the_locale() -> None:
    odd: dict[str, Any] = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    script = (
        "import sys; from soar_dlm.cli import files, main\n"
        "main.app = lambda: files.Output(None).add_json([sys.stdin.read()])\n"
        "main.main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        input="gr\u00fc\u00df \u96ea".encode(),
        env={**os.environ, **odd},
        capture_output=True,
        check=True,
    )
    assert run.stdout == '["gr\u00fc\u00df \u96ea"]\n'.encode()
