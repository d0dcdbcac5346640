"""Runs that cannot be lost or mixed up, and recipes whose mistakes are told before anything is trained."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from soar_dlm import files
from soar_dlm.cli.main import app
from soar_dlm.cli.screen import screen
from soar_dlm.cli.train import _show
from soar_dlm.errors import CheckpointError, InputFileError, PromptTooLong, SettingsError, SoarError
from soar_dlm.models.layouts import save_weights
from soar_dlm.tasks.mini_infill import MiniInfill
from soar_dlm.tasks.mini_sums import MiniSums
from soar_dlm.tasks.task import Task
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.model_card import write_card
from soar_dlm.train.recipe import DataRecipe, Recipe, read_recipe
from soar_dlm.train.tokenizer import train_tokenizer
from soar_dlm.train.trainer import Trainer
from soar_dlm.train.validation import Validation, check_fits, validate
from tests.disks import contents, files_up_to
from tests.test_training import tiny, weights

RECIPE = """\
name = "tiny"
[model]
width = 32
layers = 1
heads = 2
context = {context}
[tokenizer]
vocabulary = 400
texts = 50
[data]
full_canvas = 0.0
longest_canvas = 8
[data.tasks]
{task} = 1
[training]
steps = 2
batch_tokens = 128
precision = "float32"
[report]
validate = 2
problems = 1
"""


def soar(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def written(folder: Path, context: int = 128, task: str = "mini-sums") -> Path:
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(context=context, task=task))
    return path


def test_a_dry_run_finds_validation_problems_that_do_not_fit_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"validation problems of mini-sums take up to (\d+).*model.context is 64"):
        soar("train", written(tmp_path, context=64), "-o", tmp_path / "out", "--dry-run", "--device", "cpu")
    assert [file.name for file in tmp_path.iterdir()] == ["recipe.toml"]


@pytest.mark.parametrize(("family", "task"), [("llada", MiniSums()), ("dreamon", MiniInfill())])
def test_the_context_that_is_asked_for_is_the_least_that_validation_needs(
    family: str, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = list(islice(task.problems("validation"), 2))
    monkeypatch.setattr("soar_dlm.train.validation._held_out", lambda name, count: (task, problems))
    recipe = replace(tiny(family), data=DataRecipe(tasks={task.name: 1}))
    tokenizer = train_tokenizer(["def f(xs): return xs"], recipe.model.layout, 400)
    files.write_text(RunFolder(made(tmp_path)).tokenizer_file, tokenizer.to_str())

    def within(context: int) -> Recipe:
        return replace(recipe, model=replace(recipe.model, context=context))

    with pytest.raises(SettingsError, match="Increase it to") as told:
        check_fits(within(30), tokenizer)
    needed = int(str(told.value).split("Increase it to ")[1].split(",")[0])
    for context, error in ((needed, None), (needed - 1, PromptTooLong)):
        Trainer(within(context), tmp_path, device="cpu").write()
        with nullcontext() if error is None else pytest.raises(error):
            validate(tmp_path, within(context), 1, torch.device("cpu"))


def made(path: Path) -> Path:
    RunFolder(path).make()
    return path


def test_training_data_that_is_all_too_long_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text(json.dumps({"text": "word " * 300}) + "\n")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(context=64, task="x").replace("[data.tasks]\nx", '[data.files]\n"long.jsonl"'))
    for more in (["--dry-run"], []):
        with pytest.raises(SettingsError, match="No training example fits"):
            soar("train", recipe, "-o", tmp_path / "out", "--device", "cpu", *more)
    assert not (tmp_path / "out").exists()


def test_training_runs_what_the_model_writes_only_with_consent(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--allow-code-execution"):
        soar("train", written(tmp_path, task="mini-code"), "-o", tmp_path / "out", "--device", "cpu")
    assert not (tmp_path / "out").exists()


def test_samples_are_shown_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    """What a model writes while it learns can move no cursor and is not markup."""
    _show(Validation(4, 1, {"mini-sums": 0.5}, {}, ("[/x] ", "\x1b[2J[bold]done")), None, screen())
    assert capsys.readouterr().err == "step 4; held-out mini-sums 50.0%\n[/x] \u241b[2J[bold]done\n\n"


def test_a_card_is_written_whatever_the_log_says(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.prepare(tiny())
    for line in ('{"validation": {"a": 1}}', '{"step": 1, "validation": {"a": 1}, "problems": "x"}'):
        files.append_line(folder.log, line)
    write_card(folder, tiny(), 5, 1)
    assert "Held-out" not in (tmp_path / "README.md").read_text()


def test_two_runs_do_not_train_in_one_folder(tmp_path: Path) -> None:
    late = Trainer(tiny(), tmp_path, device="cpu")
    first = Trainer(tiny(), tmp_path, device="cpu").run(until=2)
    next(first)
    with pytest.raises(InputFileError, match=f"in use: process {os.getpid()}"):
        next(Trainer(tiny(), tmp_path, device="cpu").run())
    list(first)
    with pytest.raises(SettingsError, match="meanwhile"):
        next(late.run())
    assert not (tmp_path / files.LOCK).exists()
    assert RunFolder(tmp_path).state() is not None


def test_a_full_disk_stops_training_with_a_sentence_and_keeps_what_was_saved(tmp_path: Path) -> None:
    trainer = Trainer(tiny(), tmp_path, device="cpu")
    list(trainer.run(until=2))
    before = contents(tmp_path)
    with files_up_to(20_000):
        for write in (trainer.write, trainer._save):
            with pytest.raises(InputFileError, match="Cannot write"):
                write()
    assert contents(tmp_path) == before


def test_weights_are_replaced_in_one_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written when the process dies is another file than the one that was there."""
    save_weights(tmp_path, {"a": torch.ones(3)})
    place = (tmp_path / "model.safetensors").stat().st_ino

    def killed(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("soar_dlm.files.os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            save_weights(tmp_path, {"a": torch.zeros(3)})
    assert (tmp_path / "model.safetensors").stat().st_ino == place
    assert weights(tmp_path)["a"].tolist() == [1, 1, 1]
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_damaged_files_of_a_run_are_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.prepare(tiny())
    for file, error in (
        (folder.tokenizer_file, CheckpointError),
        (folder.state_file, CheckpointError),
        (folder.recipe_file, InputFileError),
    ):
        kept = file.read_bytes() if file.exists() else None
        for content in (b"", b"{}", b"[1]", b"\xff", b"[" * 100_000):
            if file == folder.recipe_file and content == b"{}":
                continue  # a recipe without settings is another recipe
            file.write_bytes(content)
            with pytest.raises(error):
                Trainer(tiny(), tmp_path, device="cpu")
        file.unlink()
        if kept is not None:
            file.write_bytes(kept)
    torch.save({"step": 1, "model": {}}, folder.state_file)
    with pytest.raises(CheckpointError, match="Delete it"):
        Trainer(tiny(), tmp_path, device="cpu")


def test_a_damaged_line_of_the_log_stays_where_it_is(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.prepare(tiny())
    folder.log.write_bytes(b'{"step": 1}\n[1]\n{"step": "x"}\n{"step": 3}\n{"step": 9}\n{"st')
    assert list(folder.entries()) == [{"step": 1}, {"step": 3}, {"step": 9}]
    folder.cut_log(4)
    assert folder.log.read_bytes() == b'{"step": 1}\n[1]\n{"step": "x"}\n{"step": 3}\n'


@pytest.mark.parametrize(
    "line",
    [
        'model.family = ["llada"]',
        "model.width = 1000000000",
        "model.layers = 1000000",
        "model.context = 18446744073709551616",
        "tokenizer.texts = 1000000000",
        "tokenizer.vocabulary = 1000000000",
        "data.longest_canvas = 1000000000",
        "data.tasks = 5",
        'data.tasks = ["mini-sums"]',
        "data.tasks = {mini-sums = 1e308, mini-gsm = 1e308}",
        "data.tasks = {mini-sums = inf}",
        'training.loss = ["mean"]',
        "training.steps = 1e3",
        "report.problems = 1000000000",
        'report.strategy = "sore"',
        "report.strategy = []",
        "seed = 18446744073709551616",
        "about = 5",
        "license = []",
        "stages = [{steps = 1, tasks = 5}]",
        "stages = 5",
        "name = 1979-05-27",
        f"seed = {'9' * 5000}",
        f"seed = {'[' * 5000}",
        'about = "\\uD800"',
    ],
)
def test_a_mistake_in_a_recipe_is_a_sentence(tmp_path: Path, line: str) -> None:
    path = tmp_path / "recipe.toml"
    data = "" if line.startswith("data.tasks") else 'data.tasks = {"mini-sums" = 1}\n'
    path.write_text(("" if line.startswith("name") else 'name = "x"\n') + data + line + "\n")
    with pytest.raises(SoarError):
        read_recipe(path)
