from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from soar_dlm import __version__
from soar_dlm.cli import completion
from soar_dlm.cli.loading import status
from soar_dlm.cli.main import main
from soar_dlm.cli.method import Method, setting_value
from soar_dlm.cli.problems import problems_of
from soar_dlm.cli.progress import bar
from soar_dlm.cli.screen import say, screen
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import InputFileError, PromptError, SettingsError
from soar_dlm.lm import load
from soar_dlm.search.catalogue import STRATEGIES, make_strategy
from soar_dlm.search.greedy import Greedy
from soar_dlm.tasks.catalogue import make_task
from tests.closeness import about
from tests.command import BASE, invoke, soar


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
        stop_token_ids=[90],
        early_exit=False,
        chat=True,
    )
    found = invoke(
        *BASE, "Hello", "-s", "pbs", "--block-length", "5", "--temperature", "0.7", "--top-p", "0.9", "--top-k", "20",
        "--cfg-scale", "0.5", "--seed", "3", "--stop", "zz", "--suppress-token", "70", "--suppress-token", "71",
        "--stop-token", "90", "--no-early-exit", "--chat",
    )  # fmt: skip
    assert found.stdout == expected.text + "\n"


def test_strategy_settings_reach_the_strategy(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    invoke(
        *BASE, "Hello", "-s", "soar", "--beam", "4", "--threshold", "0.9", "--metric", "margin", "--released", "dream",
        "--trace", str(trace),
    )  # fmt: skip
    record = json.loads(trace.read_text())
    steps = Trace.from_json(record)
    from soar_dlm.search.soar import Soar

    expected = load("random-llada").generate("Hello", Soar(4, 0.9, "margin", "dream"), max_new_tokens=12)
    assert steps == about(expected.trace)
    assert (record["text"], record["token_ids"], record["steps"]) == (expected.text, expected.token_ids, expected.steps)
    assert record["prompt_length"] == 5


def test_what_a_search_counted_and_measured_is_shown(tmp_path: Path) -> None:
    method = ["-s", "deliberate", "--set", "accept=0", "--set", "tries=2"]
    one = invoke(*BASE, "Hello", *method, "--stats").stderr
    for name in ("score", "drafts", "branches", "verifications"):
        assert re.search(rf"^ *{name} +-?[0-9.]+ *$", one, re.MULTILINE)
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"prompt": "a", "details": "mine"}\n{"prompt": "b"}\n')
    both = invoke(*BASE, "-i", str(source), "-o", str(target), *method, "--stats").stderr
    records = [json.loads(line) for line in target.read_text().splitlines()]
    assert all(record["details"].keys() == {"score", "drafts", "branches", "verifications"} for record in records)
    assert sorted(records, key=lambda record: record["index"])[0]["input"] == {"details": "mine"}
    branches = sum(record["details"]["branches"] for record in records)
    assert re.search(rf"^ *branches +{branches} *$", both, re.MULTILINE), "counts are added up"
    score = sum(record["details"]["score"] for record in records) / 2
    assert float(re.findall(r"mean score +(\S+)", both)[0]) == pytest.approx(score, abs=1e-4), "measures are averaged"


def test_a_drafter_can_be_named_on_the_command_line(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    table = '{"strategy": "pbs", "beam": 3}'
    for draft, widest in (("pbs", 2), (table, 3)):
        invoke(*BASE, "Hello", "-s", "deliberate", "--set", f"draft={draft}", "--trace", str(trace), "--overwrite")
        steps = json.loads(trace.read_text())["trace"]
        assert max(len(step["beam"]) for step in steps[:5]) == widest


def test_stats_show_the_figures() -> None:
    result = invoke(*BASE, "Hello", "-s", "greedy", "--no-early-exit", "--stats")
    shown = " ".join(result.stderr.split())
    assert "steps 12 forwards 12 tokens per forward 1.00 mean confidence 0." in shown


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
        (["hi", "--temperature", "-1"], "temperature must be"),
        (["hi", "--set", "released"], "NAME=VALUE"),
        (["hi", "-s", "soar", "--preset", "file.toml"], "one or the other"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(
    args: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["soar", *BASE, *args])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    written = capsys.readouterr()
    assert words in written.err
    assert written.err.startswith("error: ")
    assert written.err.count("\n") == 1
    assert written.out == ""


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (OSError(28, "No space left on device", "/some/file"), "/some/file: No space left on device.", 1),
        (RecursionError("deep"), "nested too deeply", 1),
        (MemoryError(), "not enough memory", 1),
        (KeyboardInterrupt(), "Interrupted", 130),
        (ZeroDivisionError("ours [/x]"), "(ZeroDivisionError: ours [/x])", 1),
    ],
)
def test_whatever_is_left_is_a_sentence(
    error: BaseException, words: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["soar", "tasks"])
    monkeypatch.setattr("soar_dlm.tasks.catalogue.make_task", failing)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == code
    written = capsys.readouterr().err
    assert words in written
    assert written.startswith("error: ")
    assert written.count("\n") == 1


def test_a_reader_that_goes_away_is_a_sentence() -> None:
    """It used to be a stack trace, or nothing."""
    for command in (["models"], ["tasks", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        run = subprocess.run(
            [sys.executable, "-m", "soar_dlm", *command], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(writing)
        assert run.returncode == 1
        assert run.stderr.startswith("error: Nothing reads the output any more")
        assert run.stderr.count("\n") == 1


def test_a_polite_signal_ends_the_command_tidily(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from soar_dlm.cli import files, main\n"
        "def app():\n"
        "    with files.Output(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGTERM)\n"
        "main.app = app; main.main()"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path / "out")], check=False)
    assert run.returncode == 128 + 15
    assert os.listdir(tmp_path) == [], "no lock is left"


COLOURED = re.compile(r"\x1b\[[0-9;]*(?<![0-9])(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")


@pytest.mark.parametrize("args", [["generate", "--nope"], ["generate", "-m", "x", "-s", "saor", "hi"], ["models"]])
def test_no_color_is_honoured(
    args: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import typer.rich_utils  # noqa: F401  (it remembers FORCE_COLOR from when it is imported)

    monkeypatch.setattr(sys, "argv", ["soar", *args])
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = []
    for name in ("", "1"):
        monkeypatch.setenv("NO_COLOR", name)
        with pytest.raises(SystemExit):
            main()
        written = capsys.readouterr()
        shown.append(bool(COLOURED.search(written.err + written.out)))
    assert shown == [True, False]


def test_square_brackets_in_names_are_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model called "[/x]" used to be a stack trace in a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    with status("Loading [/x] [red] ..."):
        pass
    say("error", "Cannot read [/x] [red]\x1b[31m", "bold red")
    with bar("[/x]", 2, screen()):
        pass
    written = capsys.readouterr().err
    assert "Loading [/x] [red] ..." in written
    assert "Cannot read [/x] [red]\u241b[31m" in written, "and nobody's text gives orders to the terminal"


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_a_word_is_no_switch(name: str, tmp_path: Path) -> None:
    """The word "False" counts as true."""
    switches = [key for key, value in settings_of(name).items() if isinstance(value, bool)]
    for switch in switches:
        with pytest.raises(SettingsError, match=f"{switch} must be true or false"):
            make_strategy(name, **{switch: "False"})
        preset = tmp_path / "preset.toml"
        preset.write_text(f'strategy = "{name}"\n[settings]\n{switch} = "False"\n')
        with pytest.raises(InputFileError, match=f"{switch} must be true or false"):
            Method({"preset": preset})


def settings_of(name: str) -> dict[str, object]:
    shown = json.loads(invoke("strategies", "--json").stdout)["strategies"]
    found: dict[str, object] = next(entry["settings"] for entry in shown if entry["name"] == name)
    return found


def test_a_switch_of_someone_elses_strategy_takes_no_word() -> None:
    @dataclass(frozen=True)
    class Careless(Greedy):
        backwards: bool = True

    STRATEGIES.register("careless", Careless)
    with pytest.raises(SettingsError, match="backwards must be true or false"):
        make_strategy("careless", backwards="False")


def test_more_problems_than_can_be_drawn_are_refused_at_once() -> None:
    """``--limit 100000000`` used to draw problems until somebody stopped it."""
    with pytest.raises(SettingsError, match="--limit is 100,000,000"):
        problems_of(make_task("mini-sums"), "test", 100_000_000)
    assert len(problems_of(make_task("mini-sums"), "test", 3)) == 3


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


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in soar(*BASE, "-i", str(tmp_path / "data"), code=1).stderr


def test_models_lists_families_and_embedded_names() -> None:
    shown = invoke("models").stdout
    assert "random-llada" in shown
    assert "GSAI-ML/LLaDA-8B-Base" in shown
    content = json.loads(invoke("models", "--json").stdout)
    assert {entry["family"] for entry in content["families"]} == {"llada", "dream", "masked-lm"}


def test_help_and_version() -> None:
    for args in (["--help"], ["-h"], ["generate", "--help"], ["chat", "-h"], ["models", "--help"]):
        assert "Usage: soar" in invoke(*args).stdout
    assert invoke("--version").stdout == invoke("-V").stdout == f"soar-dlm {__version__}\n"
    missing = soar("generate", "hi", code=2).stderr
    assert "--model" in missing


def test_help_lists_and_completion_do_not_wait_for_torch() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from soar_dlm.cli.main import app;"
        "assert CliRunner().invoke(app, ['generate', '--help']).exit_code == 0;"
        "assert CliRunner().invoke(app, ['models']).exit_code == 0;"
        "assert CliRunner().invoke(app, ['tasks', '--json']).exit_code == 0;"
        "from soar_dlm.cli import completion;"
        "found = [completion.models(''), completion.strategies(''), completion.metrics(''), completion.tasks('')];"
        "assert all([*found, completion.figures('')]);"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_strategies_and_tasks_are_listed_with_their_settings() -> None:
    shown = json.loads(invoke("strategies", "--json").stdout)["strategies"]
    settings = {entry["name"]: entry["settings"] for entry in shown}
    assert settings["pbs-parallel"] == {
        "beam": 2,
        "tokens_per_step": 2,
        "metric": "probability",
        "defer_end": False,
    }
    assert settings["deliberate"]["drafts"] == ["open"]
    assert settings["soar-llada"]["released"] == "llada"
    assert all(entry["about"] for entry in shown)
    listed = invoke("strategies").stdout
    assert "beam=2, threshold=None, metric=probability" in listed
    assert 'drafts=["open"]' in listed, "as --set takes it"
    assert "The strategy soar with released=llada." in listed
    tasks = {entry["name"]: entry for entry in json.loads(invoke("tasks", "--json").stdout)["tasks"]}
    assert tasks["mini-code"]["settings"]["runs_code"]
    assert "mini-sudoku" in invoke("tasks").stdout


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_a_strategy_is_told_in_one_line_of_a_terminal(name: str) -> None:
    shown = json.loads(invoke("strategies", "--json").stdout)["strategies"]
    about = next(entry["about"] for entry in shown if entry["name"] == name)
    assert 20 < len(about) <= 78


def test_values_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checkpoint" / "last").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert completion.strategies("greedy,ad") == ["greedy,adaptive"]
    assert completion.metrics("neg") == ["neg_entropy"]
    assert completion.tasks("mini-gsm,mini-su") == ["mini-gsm,mini-sudoku", "mini-gsm,mini-sums"]
    assert completion.models("mini-l") == ["mini-llada"]
    assert completion.models("GSAI-ML/LLaDA-8B-B") == ["GSAI-ML/LLaDA-8B-Base"]
    assert completion.models("ch") == ["checkpoint/"]
    assert completion.models("checkpoint/") == ["checkpoint/last/"]
    assert completion.models(f"{tmp_path}/ch") == [f"{tmp_path}/checkpoint/"]
    assert completion.models("no-such-folder/") == []


def test_empty_input_is_no_prompt(tmp_path: Path) -> None:
    """Empty standard input used to decode the empty prompt."""
    (tmp_path / "empty.txt").write_text(" \n")
    for args, stdin in ([], ""), ([], "\n"), (["-i", str(tmp_path / "empty.txt")], None):
        with pytest.raises(PromptError, match="is empty"):
            invoke(*BASE, *args, stdin=stdin)
    with pytest.raises(PromptError, match="has no prompts"):
        invoke(*BASE, "--jsonl", stdin="\n")
    assert invoke(*BASE, "").stdout == load("random-llada").generate("", max_new_tokens=12).text + "\n"


def test_a_random_seed_is_a_fresh_one(tmp_path: Path) -> None:
    seeds = set()
    for name in ("a", "b"):
        trace = tmp_path / name
        invoke(*BASE, "hi", "--temperature", "1", "--seed", "random", "--trace", str(trace))
        seeds.add(json.loads(trace.read_text())["seed"])
    assert len(seeds) == 2
    assert "neither a whole number nor" in soar(*BASE, "hi", "--seed", "some", code=2).stderr


def test_settings_that_are_on_or_off_take_words() -> None:
    """``--set NAME=no`` used to be the string "no", which counts as true."""
    for word, value in {"no": False, "False": False, "off": False, "yes": True, "TRUE": True, "on": True}.items():
        assert setting_value("backwards", word, default=True) is value
    with pytest.raises(SettingsError, match="--set backwards=true or --set backwards=false"):
        setting_value("backwards", "maybe", default=False)
    assert [setting_value("at_once", text, default=1) for text in ("4", "0.5", "no")] == [4, 0.5, "no"]
    for odd in ("NaN", "9" * 5000, "[" * 5000):
        assert setting_value("at_once", odd, default=1) == odd, "the strategy refuses it"


def test_a_prompt_that_loses_its_beginning_is_a_warning_in_one_sentence() -> None:
    warned = soar(*BASE, "x" * 3000, "--truncate-prompt").stderr
    assert warned.startswith("warning: ")
    assert warned.count("\n") == 1


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
        "    backwards: bool = False\n"
        "    def propose(self, reading):\n"
        "        size = len(reading)\n"
        "        first = size - 1 if self.backwards else 0\n"
        "        return [Proposal(np.arange(first, min(first + self.at_once, size)), 'search')]\n"
    )
    info = tmp_path / "leftmost-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leftmost\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[soar_dlm.strategies]\nleftmost = leftmost:Leftmost\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_a_third_party_strategy_works_in_the_command_and_in_the_library(
    third_party: dict[str, str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    soar(*BASE, "hi", "-s", "leftmost", "--set", "at_once=4", "--no-early-exit", "--trace", str(trace), env=third_party)
    steps = json.loads(trace.read_text())["trace"]
    assert [step["beam"][0]["positions"] for step in steps] == [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13]]
    soar(*BASE, "hi", "-s", "leftmost", "--set", "backwards=Yes", "--trace", str(trace), "--overwrite", env=third_party)
    assert json.loads(trace.read_text())["trace"][0]["beam"][0]["positions"] == [13]
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
