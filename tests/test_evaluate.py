"""``soar eval``, ``soar table``, ``soar sweep`` and ``soar tune``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from soar_dlm.cli.main import app
from soar_dlm.errors import InputFileError, SettingsError, SoarError, UnknownName
from soar_dlm.evals.comparison import Method, settings_of
from soar_dlm.evals.protocol import methods
from soar_dlm.evals.results import MANIFEST, RESULTS, ResultFolder
from soar_dlm.lm import load
from soar_dlm.models.random_checkpoint import write_llada
from soar_dlm.presets import Preset, read_preset, write_preset
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.tasks.mini_infill import MiniInfill
from soar_dlm.tasks.mini_sums import MiniSums
from tests.closeness import about

QUICK = ["-m", "random-llada", "--device", "cpu", "-t", "mini-sums", "--limit", "4", "--chunk", "3"]


def soar(*arguments: str | Path) -> Any:
    """The command's result; what it raises is raised."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def lines(folder: Path) -> list[Any]:
    return [{**json.loads(line), "seconds": None} for line in (folder / RESULTS).read_text().splitlines()]


def test_the_papers_methods_and_settings() -> None:
    names = ["greedy", "adaptive", "pbs", "pbs-parallel", "soar"]
    found = methods(names, [256, 512], MiniSums())
    assert {name: method.strategy for name, method in found.items() if method.length == 256} == {
        "Greedy at 256": Greedy(),
        "Adaptive Parallel at 256": AdaptiveParallel(),
        "PBS at 256": PositionBeam(beam=2),
        "PBS parallel at 256": PositionBeam(beam=2, tokens_per_step=2),
        "SOAR at 256": Soar(beam=2),
    }
    assert len(found) == 10
    assert all(method.options == {"early_exit": False, "truncate_prompt": True} for method in found.values())


def test_settings_go_to_the_strategies_that_have_them() -> None:
    found = methods(["greedy", "soar"], [], MiniSums(), "library", beam=4, threshold=0.8, metric="margin")
    assert [method.strategy for method in found.values()] == [
        Greedy(metric="margin"),
        Soar(beam=4, threshold=0.8, metric="margin"),
    ]
    assert all(method.length == MiniSums.canvas and "early_exit" not in method.options for method in found.values())
    assert not next(iter(methods(["greedy"], [], MiniInfill()).values())).options
    preset = Preset("soar", {"threshold": 0.7})
    assert methods([], [8], MiniSums(), presets={"mine": preset})["mine at 8"].strategy == Soar(threshold=0.7)
    with pytest.raises(SettingsError, match="has a setting 'beam'"):
        methods(["greedy"], [], MiniSums(), beam=4)
    with pytest.raises(UnknownName, match="protocol"):
        methods(["greedy"], [], MiniSums(), "papre")
    with pytest.raises(SettingsError, match="length must be a whole number of at least 1, not 0"):
        methods(["greedy"], [0], MiniSums())


def test_results_have_a_manifest_and_a_line_for_each_example(tmp_path: Path) -> None:
    soar("eval", *QUICK, "-s", "greedy,soar", "-n", "8,10", "--threshold", "0.5", "-o", tmp_path)
    found = ResultFolder(tmp_path / "mini-sums").read()
    assert found.complete
    assert len(found.records) == 4 * 4
    told = json.loads((tmp_path / "mini-sums" / MANIFEST).read_text())
    assert {"model", "revision", "seed", "versions", "dtype", "problems_sha256"} <= told["settings"].keys()
    assert {"cpu", "cores", "accelerator"} <= told["machine"].keys()
    assert {record.forwards for record in found.records if record.method == "Greedy at 10"} == {10}
    assert told["settings"]["methods"]["SOAR at 8"]["threshold"] == 0.5


def test_a_log_gets_a_line_for_every_tenth(tmp_path: Path) -> None:
    told = soar("eval", *QUICK, "-s", "greedy", "-n", "8", "-o", tmp_path).stderr
    assert [f"mini-sums: {count} of 4; Greedy at 8: " in told for count in (1, 2, 3, 4)] == [True] * 4


def test_the_manifest_tells_the_models_own_threshold(tmp_path: Path) -> None:
    soar("eval", *QUICK, "-s", "greedy,adaptive", "-n", "8", "-o", tmp_path)
    told = json.loads((tmp_path / "mini-sums" / MANIFEST).read_text())["settings"]["methods"]
    assert told["Adaptive Parallel at 8"]["threshold"] == 0.95
    assert told["Greedy at 8"]["threshold"] is None


def test_results_become_tables(tmp_path: Path) -> None:
    soar("eval", *QUICK, "-s", "greedy,soar", "-n", "8", "--threshold", "0.5", "-o", tmp_path)
    assert "| method | mini-sums 8 |" in soar("table", tmp_path, "--format", "markdown").stdout
    assert "SpeedUp" in soar("table", tmp_path, "--table", "1").stdout
    assert json.loads(soar("table", tmp_path, "--format", "json").stdout)["model"] == "random-llada"
    with pytest.raises(SettingsError, match="1, 2 or 3"):
        soar("table", tmp_path, "--table", "4")
    with pytest.raises(SettingsError, match="no results"):
        soar("table", tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="nothing for Table 2"):
        soar("table", tmp_path, "--table", "2")
    with pytest.raises(SettingsError, match="not the results of a sweep"):
        soar("tune", tmp_path / "mini-sums", "-o", tmp_path / "preset.toml")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / MANIFEST).write_text('{"settings": {"order": [], "chunk": 1, "problems": 0}, "machine": {}}')
    with pytest.raises(InputFileError, match="not the manifest of a run"):
        soar("table", tmp_path)


def test_a_sweep_is_tuned_to_a_preset_that_every_command_reads(tmp_path: Path) -> None:
    shown = soar("sweep", *QUICK, "--thresholds", "0.3,0.6", "--beams", "2", "-n", "8", "-o", tmp_path / "s")
    assert "0.6" in shown.stdout
    drawn: list[str | Path] = ["--thresholds", "0.3,0.6", "--beams", "2", "-n", "8", "-o", tmp_path / "s", "--figure"]
    soar("sweep", *QUICK, *drawn, tmp_path / "sweep.svg")
    assert (tmp_path / "sweep.svg").read_text().startswith("<?xml")
    points = [line.split(",")[:3] for line in (tmp_path / "sweep.csv").read_text().splitlines()]
    assert points == [["panel", "threshold", "beam"], ["sweep", "", "1"], ["sweep", "0.3", "2"], ["sweep", "0.6", "2"]]
    for name, told in (("sweep.doc", "ends in .svg, .png, .pdf"), ("nowhere/sweep.svg", "no folder")):
        with pytest.raises(SettingsError, match=told):
            soar("sweep", *QUICK, *drawn, tmp_path / name)
    preset = tmp_path / "my.toml"
    assert "Written to" in soar("tune", tmp_path / "s", "-o", preset).stdout
    found = read_preset(preset)
    assert found.strategy == "soar"
    assert found.settings["threshold"] in (0.3, 0.6)
    with pytest.raises(SettingsError, match="exists"):
        soar("tune", tmp_path / "s", "-o", preset)
    for asked in (["--speed", "1000"], ["--forwards", "0.001"]):
        with pytest.raises(SettingsError, match="No setting"):
            soar("tune", tmp_path / "s", "-o", tmp_path / "other.toml", *asked)
    with pytest.raises(SettingsError, match="not for both"):
        soar("tune", tmp_path / "s", "-o", tmp_path / "other.toml", "--speed", "1", "--accuracy", "0")
    with pytest.raises(SettingsError, match="no points with a beam of 4"):
        soar("tune", tmp_path / "s", "-o", tmp_path / "other.toml", "--beam", "4")
    with pytest.raises(SettingsError, match="--save-to-model"):
        soar("tune", tmp_path / "s")
    assert not (tmp_path / "other.toml").exists()
    soar("generate", "-m", "random-llada", "--device", "cpu", "1+1=", "-n", "4", "--preset", preset)
    soar("eval", *QUICK, "-s", "greedy", "--preset", preset, "-n", "8", "-o", tmp_path / "e")
    assert "my at 8" in {record.method for record in ResultFolder(tmp_path / "e" / "mini-sums").read().records}
    with pytest.raises(SettingsError, match="one or the other"):
        soar("generate", "-m", "random-llada", "x", "--strategy", "soar", "--preset", preset)


def test_sweeps_of_two_tasks_give_a_checkpoint_its_default(tmp_path: Path) -> None:
    folder = write_llada(tmp_path / "model")
    points: list[str | Path] = ["--thresholds", "0.3,0.6", "--beams", "1", "-n", "8", "--limit", "3", "-o"]
    for task in ("mini-sums", "mini-sudoku"):
        soar("sweep", "-m", folder, "--device", "cpu", "-t", task, *points, tmp_path / task)
    sweeps = [tmp_path / task for task in ("mini-sums", "mini-sudoku")]
    shown = soar("tune", *sweeps, "--save-to-model", folder, "--forwards", "9").stdout
    assert "mini-sums, mini-sudoku: 0.0% of 6 problems" in shown
    assert load(folder, "cpu").model.facts.thresholds["probability"] == 0.6
    soar("eval", "-m", folder, "--device", "cpu", "-t", "mini-sums", "--limit", "1", "-n", "8", "-o", tmp_path / "e")
    methods = ResultFolder(tmp_path / "e" / "mini-sums").read().settings["methods"]
    assert {one["label"]: one["threshold"] for one in methods.values()} == {
        "Greedy": None,
        "Adaptive Parallel": 0.6,
        "PBS": None,
        "PBS parallel": None,
        "SOAR": 0.6,
    }, "what the checkpoint says is what is measured and recorded"


def test_code_runs_only_when_it_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--allow-code-execution"):
        soar("eval", "-m", "random-llada", "-t", "mini-code", "--limit", "1", "-o", tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (["-t", "mini-gsn"], UnknownName, "mini-gsm"),
        (["-t", "mini-sums", "-n", "a,b"], SettingsError, "not a list of numbers"),
        (["-t", "mini-sums", "-n", "8,0"], SettingsError, "length must be a whole number of at least 1"),
        (["-t", "mini-sums", "-s", "sore"], UnknownName, "soar"),
        (["-t", "mini-sums", "-s", ""], SettingsError, "at least one strategy"),
        (["-t", ","], SettingsError, "at least one task"),
        (["-t", "mini-sums", "--beam", "0"], SettingsError, "beam"),
        (["-t", "mini-sums", "--metric", "magrin"], UnknownName, "margin"),
        (["-t", "mini-sums", "--protocol", "papre"], UnknownName, "paper"),
        (["-t", "mini-sums", "--block-length", "0"], SettingsError, "block_length must be a whole number"),
        (["-t", "mini-sums", "--cache", "daul"], UnknownName, "dual"),
        (["-t", "mini-sums", "--refresh-every", "2"], SettingsError, "refresh_every needs a cache"),
        (["-t", "mini-sums", "--chunk", "0"], SettingsError, "chunk must be a whole number of at least 1"),
        (["-t", "mini-sums", "--limit", "0"], SettingsError, "limit must be a whole number of at least 1"),
        (["-t", "gsm8k", "--data-dir", "nowhere"], InputFileError, "nowhere"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(
    tmp_path: Path, arguments: list[str], error: type[SoarError], told: str
) -> None:
    with pytest.raises(error, match=told):
        soar("eval", "-m", "no/such-model", "--limit", "1", *arguments, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_without_a_line_may_start_again_with_other_settings(tmp_path: Path) -> None:
    task, lm = MiniSums(), load("random-llada", "cpu")
    settings = settings_of(lm, task, task.distinct("test", 1), {"g": Method(Greedy())}, chunk=1, seed=0)
    ResultFolder(tmp_path).resume(settings)
    assert ResultFolder(tmp_path).resume({**settings, "seed": 1}).settings["seed"] == 1


KILLED = """
import os, signal, sys
from soar_dlm.evals.results import ResultFolder
from soar_dlm.cli.main import app
left, append = int(sys.argv[1]), ResultFolder.append

def dying(self, record):
    global left
    left -= 1
    if left == 0:
        with (self.path / "results.jsonl").open("a") as target:
            target.write('{"index": 0, "met')
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, record)

ResultFolder.append = dying
app(sys.argv[2:])
"""


def test_a_killed_run_goes_on_to_the_same_results(tmp_path: Path) -> None:
    """Killed in the middle of a line, twice in a row; ``benchmarks/kills.py`` does it at random moments."""
    command = ["eval", *QUICK, "-s", "greedy,soar", "-n", "8", "--threshold", "0.5", "-o"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}  # results of another number differ
    soar(*command, tmp_path / "whole")
    for moment in (1, 2):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, str(moment), *command, str(tmp_path / "killed")],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
    soar(*command, tmp_path / "killed")
    assert lines(tmp_path / "killed" / "mini-sums") == about(lines(tmp_path / "whole" / "mini-sums"))


def test_a_preset_may_be_measured_beside_strategies(tmp_path: Path) -> None:
    write_preset(tmp_path / "quick.toml", Preset("greedy", {"tokens_per_step": 4}))
    soar("eval", *QUICK, "-s", "greedy", "--preset", tmp_path / "quick.toml", "-n", "8", "-o", tmp_path / "out")
    assert "| quick |" in soar("table", tmp_path / "out", "--format", "markdown").stdout


BLOCKS = ("--block-length", "4", "--cache", "dual", "--refresh-every", "3", "--suffix-window", "2")


def test_blocks_and_caches_are_part_of_the_settings(tmp_path: Path) -> None:
    command = ["eval", *QUICK, "-s", "greedy", "-n", "8", "-o", str(tmp_path)]
    soar(*command, *BLOCKS)
    methods = json.loads((tmp_path / "mini-sums" / "manifest.json").read_text())["settings"]["methods"]
    own = {"block_length": 4, "cache": "dual", "refresh_every": 3, "suffix_window": 2}
    assert methods["Greedy at 8"]["options"].items() >= own.items()
    with pytest.raises(SettingsError, match="results of other settings"):
        soar(*command)
    told = soar("table", tmp_path, "--format", "markdown").stdout
    assert "mini-sums 8, blocks of 4, dual cache, refreshed every 3 steps, suffix window 2" in told


def test_a_sweep_tells_its_blocks_and_the_area_under_each_curve(tmp_path: Path) -> None:
    sweep = ["sweep", *QUICK, "--thresholds", "0.2,0.5", "--beams", "1,2", "-n", "8", "-o", str(tmp_path / "s")]
    told = soar(*sweep, *BLOCKS[:4]).stdout
    assert "blocks of 4, dual cache" in " ".join(told.split())
    assert "tokens/forward" in told
    assert "AUP: Greedy" in told
    assert "SOAR, K = 2" in " ".join(told.split())
