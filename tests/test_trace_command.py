"""``soar trace``: what it shows of a file, with and without a terminal, and what it says if it cannot."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from rich.console import Console

import soar_dlm as soar
from soar_dlm.cli.canvas import MASK, clean
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import InputFileError, SettingsError, SoarError
from soar_dlm.evals.comparison import compare
from soar_dlm.evals.traces import TRACES
from soar_dlm.lm import LM
from soar_dlm.strict_json import json_line
from tests.command import BASE, invoke
from tests.terminal import Screen, terminal

LENGTH = 12


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one") / "t.jsonl"
    invoke(*BASE, "Hello", "--trace", str(path))
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, random_llada: LM) -> Path:
    """Traces of an evaluation: 2 methods, 3 problems."""
    folder, task = tmp_path_factory.mktemp("measured"), soar.make_task("mini-sums")
    methods = {"Greedy": soar.Greedy(4), "SOAR": soar.Soar(2, 0.2)}
    compare(random_llada, task, task.distinct("test", 3), methods, folder=folder, traces=True)
    return folder / TRACES


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    """A terminal of 100 columns and 20 lines in place of standard output."""
    console = terminal(100, 20)
    monkeypatch.setattr("soar_dlm.cli.trace.screen", lambda stderr: console)
    return console


def left(console: Console) -> str:
    return "\n".join(Screen(console.file.getvalue()).lines)  # type: ignore[attr-defined]


def test_without_a_terminal_every_step_is_a_line(one: Path, random_llada: LM) -> None:
    head, *lines = invoke("trace", str(one)).stdout.splitlines()
    events = list(random_llada.stream("Hello", max_new_tokens=LENGTH))
    assert head.split("\t") == ["step", "forwards", "mode", "text"]
    assert [line.split("\t")[:2] for line in lines] == [[str(one.step), str(one.forwards)] for one in events]
    assert all(line.split("\t")[2] in ("search", "parallel") for line in lines)
    masks = [line.split("\t")[3].count(MASK) for line in lines]
    assert masks == [sum(event.masked) for event in events]
    assert masks[-1] == 0


def test_line_breaks_do_not_break_the_line(tmp_path: Path) -> None:
    result = soar.load("mini-llada").generate("Eva wins 10 stickers. Eva finds 2 more. How many?\n", max_new_tokens=24)
    line = result.trace.to_line()
    line["scene"]["pieces"] = dict.fromkeys(line["scene"]["pieces"], "a\n\x1b")
    (tmp_path / "t.jsonl").write_text(json_line(line) + "\n")
    lines = invoke("trace", str(tmp_path / "t.jsonl")).stdout.splitlines()
    assert len(lines) == 1 + len(result.trace)
    assert "a\N{SYMBOL FOR LINE FEED}\N{SYMBOL FOR ESCAPE}" in lines[-1]


def test_in_a_terminal_it_ends_with_the_text_and_the_legend(one: Path, screen: Console) -> None:
    assert invoke("trace", str(one), "--speed", "0").exit_code == 0
    text = json.loads(one.read_text())["text"]
    assert left(screen).count(clean(text)) == 1
    assert left(screen).count("step ") == 1
    assert left(screen).count("unsure") == 1
    assert MASK in screen.file.getvalue()  # type: ignore[attr-defined]


def test_the_speed_is_in_steps_per_second(one: Path, screen: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("soar_dlm.cli.trace.time.sleep", pauses.append)
    invoke("trace", str(one), "--speed", "4")
    assert pauses == [0.25] * len(json.loads(one.read_text())["trace"])


def test_ctrl_c_leaves_nothing_behind(one: Path, screen: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("soar_dlm.cli.trace.time.sleep", interrupt)
    assert invoke("trace", str(one)).exit_code == 130
    assert left(screen).strip() == ""


def test_one_step_alone(one: Path) -> None:
    shown = invoke("trace", str(one), "--step", "2").stdout
    assert shown.startswith("step 2  forwards ")
    assert "Hello" in shown
    assert MASK in shown
    with pytest.raises(SettingsError, match="step"):
        invoke("trace", str(one), "--step", "99")


def test_a_text_that_a_stop_string_cut_ends_there(tmp_path: Path, screen: Console, random_llada: LM) -> None:
    whole = random_llada.generate("Hello", max_new_tokens=LENGTH).text
    stop = whole[len(whole) // 2 :][:1]
    invoke(*BASE, "Hello", "--stop", stop, "--trace", str(tmp_path / "t.jsonl"))
    text = json.loads((tmp_path / "t.jsonl").read_text())["text"]
    invoke("trace", str(tmp_path / "t.jsonl"), "--speed", "0")
    assert left(screen).partition("\n\nstep")[0].rstrip("∎") == "Hello" + clean(text)


def test_infillings_are_replayed_with_their_text_around(tmp_path: Path, screen: Console) -> None:
    (tmp_path / "f.txt").write_text("a {blank:4} b {blank:5} c")
    path = str(tmp_path / "t.jsonl")
    filled = invoke("infill", str(tmp_path / "f.txt"), "-m", "random-dreamon", "--trace", path, "-o", "-").stdout
    invoke("trace", path, "--speed", "0")
    assert left(screen).startswith(clean(filled.removesuffix("\n")))


def test_an_evaluation_has_one_trace_for_each_problem_and_method(measured: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"6 such .*: index 0 to 2; method 'Greedy', 'SOAR'\. .*--index and --method"
    ):
        invoke("trace", str(measured))
    with pytest.raises(SettingsError, match=r"3 such traces: .* Choose one with --index\."):
        invoke("trace", str(measured), "--method", "greedy")
    with pytest.raises(SettingsError, match=r"no such trace\. It has index 0 to 2; method"):
        invoke("trace", str(measured), "--index", "7")
    shown = invoke("trace", str(measured), "--index", "1", "--method", "greedy").stdout
    assert [line.split("\t")[1] for line in shown.splitlines()[1:3]] == ["1", "2"]


def test_samples_are_chosen_by_number(tmp_path: Path) -> None:
    path = str(tmp_path / "t.jsonl")
    invoke(*BASE, "Hello", "--n", "2", "--temperature", "1", "--trace", path)
    with pytest.raises(SettingsError, match=r"sample 0, 1\. Choose one with --sample"):
        invoke("trace", path)
    first, second = (invoke("trace", path, "--sample", sample).stdout for sample in ("0", "1"))
    assert first != second


def test_a_torn_end_is_left_out(measured: Path, tmp_path: Path) -> None:
    content = measured.read_bytes()
    (tmp_path / TRACES).write_bytes(content[:-20])
    with pytest.raises(SettingsError, match="5 such traces"):
        invoke("trace", str(tmp_path / TRACES))


def test_of_two_traces_with_one_key_the_last_counts(one: Path, tmp_path: Path) -> None:
    line = json.loads(one.read_text())
    line["trace"] = line["trace"][:3]
    (tmp_path / "t.jsonl").write_text(one.read_text() + json_line(line) + "\n")
    assert len(invoke("trace", str(tmp_path / "t.jsonl")).stdout.splitlines()) == 1 + 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no traces"),
        (b"{oops\n", "Line 1 of .* is damaged. It is not JSON"),
        (b'{"text": "a"}\n', "Line 1 of .* is not a trace"),
        (b"[]\n", "does not say what its tokens mean"),
        (b'{"trace": 5, "index": 0}\n', "not a trace of soar-dlm"),
        (b'{"trace": [], "index": "x"}\n', "has an index"),
        (gzip.compress(b'{"trace": []}\n', mtime=0)[:-12] + b"xxxxxxxxxxxxxxxxxxxxxxxx", "damaged"),
    ],
    ids=repr,
)
def test_damaged_files_are_answered_by_a_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(SoarError, match=sentence):
        invoke("trace", str(tmp_path / "t"))


def test_an_old_trace_says_that_it_cannot_be_shown(one: Path, tmp_path: Path) -> None:
    line = json.loads(one.read_text())
    del line["scene"]
    (tmp_path / "t.jsonl").write_text(json_line(line) + "\n")
    with pytest.raises(InputFileError, match="Decode again"):
        invoke("trace", str(tmp_path / "t.jsonl"))


@pytest.mark.parametrize("change", [{"after": 3}, {"after": 2}, {"after": 1, "origin": 99}])
def test_a_trace_whose_path_leads_nowhere_is_refused(one: Path, change: dict[str, int]) -> None:
    """Such a trace used to be followed for ever, or past the end of a list."""
    line = json.loads(one.read_text())
    line["trace"][1]["beam"][0] |= change
    with pytest.raises(InputFileError, match="does not continue an earlier one"):
        Trace.from_json(line)
