from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from soar_dlm.cli.main import app, main
from soar_dlm.cli.watch import as_share, colour
from soar_dlm.engine.trace import Trace
from soar_dlm.lm import load
from tests.closeness import about

runner = CliRunner()
BASE = ["generate", "-m", "random-llada", "-n", "12"]


def soar(
    *args: str, stdin: str = "", code: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "soar_dlm.cli.main", *args],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        check=False,
    )
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr
    return run


def invoke(*args: str, stdin: str | None = None) -> Any:
    result = runner.invoke(app, list(args), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_prompt_as_argument_from_a_file_and_from_stdin_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Hello")
    expected = load("random-llada").generate("Hello", max_new_tokens=12).text + "\n"
    assert invoke(*BASE, "Hello").stdout == expected
    assert invoke(*BASE, "-i", str(tmp_path / "prompt.txt")).stdout == expected
    assert invoke(*BASE, stdin="Hello").stdout == expected
    assert invoke(*BASE, stdin="Hello\n").stdout == expected, "the newline that echo adds is no part of the prompt"
    assert invoke(*BASE, "-i", "-", stdin="Hello").stdout == expected
    invoke(*BASE, "Hello", "-o", str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text() == expected


def test_options_reach_the_decoder() -> None:
    expected = load("random-llada").generate(
        "Hello",
        "pbs",
        max_new_tokens=12,
        block_length=5,
        temperature=0.7,
        top_p=0.9,
        top_k=20,
        cfg_scale=0.5,
        seed=3,
        stop=["zz"],
        suppress_tokens=[70, 71],
        early_exit=False,
        chat=True,
    )
    found = invoke(
        *BASE, "Hello", "-s", "pbs", "--block-length", "5", "--temperature", "0.7", "--top-p", "0.9", "--top-k", "20",
        "--cfg-scale", "0.5", "--seed", "3", "--stop", "zz", "--suppress-token", "70", "--suppress-token", "71",
        "--no-early-exit", "--chat",
    )  # fmt: skip
    assert found.stdout == expected.text + "\n"


def test_strategy_settings_reach_the_strategy(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    invoke(
        *BASE, "Hello", "-s", "soar", "--beam", "4", "--threshold", "0.9", "--metric", "margin", "--released", "dream",
        "--trace", str(trace),
    )  # fmt: skip
    record = json.loads(trace.read_text())
    steps = Trace.from_json(record["trace"])
    from soar_dlm.search.soar import Soar

    expected = load("random-llada").generate("Hello", Soar(4, 0.9, "margin", "dream"), max_new_tokens=12)
    assert steps == about(expected.trace)
    assert (record["text"], record["token_ids"], record["steps"]) == (expected.text, expected.token_ids, expected.steps)
    assert record["prompt_length"] == 5


def test_stats_show_the_figures() -> None:
    result = invoke(*BASE, "Hello", "-s", "greedy", "--no-early-exit", "--stats")
    shown = " ".join(result.stderr.split())
    assert "steps 12 forwards 12 tokens per forward 1.00 mean confidence 0." in shown


def test_watch_ends_with_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = invoke(*BASE, "Hello", "-s", "soar")
    watched = invoke(*BASE, "Hello", "-s", "soar", "--watch")
    assert watched.stdout == plain.stdout
    assert "step" in watched.stderr
    assert "sure" in watched.stderr


def test_colours_run_from_red_to_green() -> None:
    assert colour(0.0) == "rgb(220,60,70)"
    assert colour(1.0) == "rgb(70,200,70)"
    assert as_share(-1.0) == 0.5
    assert as_share(0.3) == 0.3


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
    from soar_dlm.lm import LM

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


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["hi", "-s", "pbs", "--beam", "0"], "beam must be a whole number of at least 1"),
        (["hi", "-s", "saor"], "Did you mean 'soar'"),
        (["hi", "--metric", "entropy"], "Did you mean 'neg_entropy'"),
        (["hi", "--threshold", "2"], "from 0 to 1, not 2.0"),
        (["hi", "-s", "greedy", "--beam", "2"], "no setting of strategy 'greedy' called 'beam'"),
        (["hi", "--block-length", "0"], "block_length must be"),
        (["hi", "-n", "5000"], "context is 1024"),
        (["hi", "-n", "0"], "max_new_tokens must be"),
        (["hi", "--dtype", "float31"], "Did you mean 'float32'"),
        (["hi", "--device", "cuda:9"], "cannot be used here"),
        (["hi", "--max-rows", "0"], "max_rows must be"),
        (["hi", "--set", "beam"], "NAME=VALUE"),
        (["hi", "--set", "depth=3"], "called 'depth'"),
        (["hi", "-i", "file.txt"], "not both"),
        (["hi", "--jsonl"], "leave out the argument"),
        (["-i", "no-such-file.txt"], "Cannot read no-such-file.txt"),
        (["hi", "-o", "no-such-folder/out.txt"], "Cannot write no-such-folder"),
        (["--jsonl", "--watch"], "--watch shows one prompt"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    args: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["soar", *BASE, *args])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    told = capsys.readouterr()
    assert words in told.err
    assert told.err.startswith("error: ")
    assert told.out == ""


def test_existing_files_are_not_replaced_unasked(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("precious")
    assert "--overwrite" in soar(*BASE, "hi", "-o", str(target), code=1).stderr
    assert target.read_text() == "precious"
    soar(*BASE, "hi", "-o", str(target), "--overwrite")
    assert target.read_text() != "precious"


def test_a_run_that_cannot_start_leaves_files_as_they_were(tmp_path: Path) -> None:
    target, fresh = tmp_path / "out.txt", tmp_path / "new.txt"
    target.write_text("precious")
    for file, more in ((target, ["--overwrite"]), (fresh, [])):
        soar("generate", "-m", "random-lada", "hi", "-o", str(file), *more, code=1)
        soar("generate", "-m", "random-llada", "-n", "5000", "hi", "-o", str(file), *more, code=1)
    assert target.read_text() == "precious"
    assert not fresh.exists()
    assert "Cannot write" in soar(*BASE, "hi", "-o", str(tmp_path), "--overwrite", code=1).stderr


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in soar(*BASE, "-i", str(tmp_path / "data"), code=1).stderr


def test_models_lists_families_and_embedded_names() -> None:
    shown = invoke("models").stdout
    assert "random-llada" in shown
    assert "GSAI-ML/LLaDA-8B-Base" in shown
    content = json.loads(invoke("models", "--json").stdout)
    assert {entry["family"] for entry in content["families"]} == {"llada", "dream", "masked-lm"}


def test_help_and_version() -> None:
    for args in (["--help"], ["-h"], ["generate", "--help"], ["models", "--help"]):
        assert "Usage: soar" in invoke(*args).stdout
    assert invoke("--version").stdout.startswith("soar-dlm 0.")
    missing = soar("generate", "hi", code=2).stderr
    assert "--model" in missing


def test_help_and_models_do_not_wait_for_torch() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from soar_dlm.cli.main import app;"
        "assert CliRunner().invoke(app, ['generate', '--help']).exit_code == 0;"
        "assert CliRunner().invoke(app, ['models']).exit_code == 0;"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def third_party(tmp_path: Path) -> dict[str, str]:
    """A package of someone else's that registers a strategy, installed on a path of its own."""
    (tmp_path / "leftmost.py").write_text(
        "from dataclasses import dataclass\n"
        "import numpy as np\n"
        "from soar_dlm import Strategy\n"
        "from soar_dlm.search.candidate import Proposal\n"
        "@dataclass(frozen=True)\n"
        "class Leftmost(Strategy):\n"
        "    at_once: int = 1\n"
        "    def propose(self, confidence):\n"
        "        return [Proposal(np.arange(min(self.at_once, confidence.size)), 'search')]\n"
    )
    info = tmp_path / "leftmost-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leftmost\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[soar_dlm.strategies]\nleftmost = leftmost:Leftmost\n")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}


def test_a_third_party_strategy_works_in_the_command_and_in_the_library(
    third_party: dict[str, str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    soar(*BASE, "hi", "-s", "leftmost", "--set", "at_once=4", "--no-early-exit", "--trace", str(trace), env=third_party)
    steps = json.loads(trace.read_text())["trace"]
    assert [step["beam"][0]["positions"] for step in steps] == [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13]]
    code = (
        "import soar_dlm as soar; lm = soar.load('random-llada');"
        "print(lm.generate('hi', 'leftmost', max_new_tokens=3, early_exit=False).steps);"
        "print('leftmost' in soar.STRATEGIES.names())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **third_party}, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["3", "True"]
    assert "'leftmost'" not in soar(*BASE, "hi", "-s", "nothing", code=1).stderr
    assert "leftmost" in soar(*BASE, "hi", "-s", "nothing", code=1, env=third_party).stderr
