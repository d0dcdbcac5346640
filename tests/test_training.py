"""Whole runs of tiny recipes: what they write, how they stop and go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from soar_dlm.cli.main import app
from soar_dlm.errors import CheckpointError, InputFileError, NonFiniteLogits, SettingsError
from soar_dlm.lm import load
from soar_dlm.train import processor
from soar_dlm.train.folder import RunFolder
from soar_dlm.train.recipe import (
    DataRecipe,
    ModelRecipe,
    Recipe,
    ReportRecipe,
    StageRecipe,
    TokenizerRecipe,
    TrainingRecipe,
    read_recipe,
)
from soar_dlm.train.trainer import Progress, Trainer
from soar_dlm.train.validation import Validation
from tests.closeness import about

ROOT = Path(__file__).parent.parent


def tiny(family: str = "llada", **training: Any) -> Recipe:
    return Recipe(
        name="tiny",
        seed=4,
        model=ModelRecipe(family=family, width=32, layers=1, heads=2, context=128),
        tokenizer=TokenizerRecipe(vocabulary=400, texts=200),
        data=DataRecipe(tasks={"mini-sums": 1}, longest_canvas=48),
        training=TrainingRecipe(
            **{"steps": 8, "batch_tokens": 512, "warmup": 2, "precision": "float32", **training},
        ),
        report=ReportRecipe(log=2, validate=4, problems=2, save=2),
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return found


def identical(first: Any, second: Any) -> bool:
    """Whether two saved states are the same to the last bit: for what was only copied."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(identical(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(identical, first, second))
    return torch.equal(first, second) if isinstance(first, torch.Tensor) else bool(first == second)


def losses(events: Iterable[Progress | Validation]) -> dict[int, float]:
    """Step -> loss.

    Runs are compared by these and not by their weights: Muon gives every direction of a gradient the same length, so
    where there is hardly any gradient, rounding decides where the weights go, and the loss does not care.
    """
    return {event.step: event.loss for event in events if isinstance(event, Progress)}


@pytest.mark.parametrize("family", ["llada", "dream"])
def test_a_run_writes_a_checkpoint_that_loads(family: str, tmp_path: Path) -> None:
    trainer = Trainer(tiny(family), tmp_path, device="cpu")
    events = list(trainer.run())
    assert [event.step for event in events if isinstance(event, Progress)] == list(range(1, 9))
    found = [event for event in events if isinstance(event, Validation)]
    assert [event.step for event in found] == [4, 8]
    assert found[-1].accuracy.keys() == {"mini-sums"}
    assert found[-1].sample is not None
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == {"llada": "llada", "dream": "Dream"}[family]
    names = weights(tmp_path).keys()
    assert ("model.transformer.blocks.0.ff_proj.weight" if family == "llada" else "lm_head.weight") in names
    lm = load(tmp_path)
    assert lm.family.name == family
    assert len(lm.generate("Sum 1 + 2", max_new_tokens=8).token_ids) == 8
    card = (tmp_path / "README.md").read_text()
    assert f"{trainer.parameters:,} parameters" in card
    assert "8 steps on mini-sums" in card
    assert f"on {trainer.recipe.report.problems} validation problems of each task" in card
    entries = list(trainer.folder.entries())
    assert entries[0]["parameters"] == trainer.parameters
    assert [entry["step"] for entry in entries[1:] if "loss" in entry] == [2, 4, 6, 8]


@pytest.mark.parametrize("family", ["llada", "dream"])
def test_the_logits_that_are_trained_are_those_that_are_decoded_from(family: str, tmp_path: Path) -> None:
    """Dream's right shift must be the same in training and decoding."""
    from soar_dlm.models.masked_lm import Rows
    from soar_dlm.train.objective import hide

    trainer = Trainer(tiny(family), tmp_path, device="cpu")
    list(trainer.run(until=2))  # layers add nothing before the first step
    ids = torch.randint(0, 200, (2, 9), generator=torch.Generator().manual_seed(0))
    canvas = torch.arange(9).expand(2, 9) >= 3
    batch = hide(ids, canvas, trainer.config["mask_token_id"], 0.3, torch.Generator().manual_seed(1))
    with torch.no_grad():
        trained = trainer._logits(batch)
    model = load(tmp_path, device="cpu").model
    decoded = model.logits(model.hidden(Rows(batch.inputs, None, batch.row, batch.column)))
    assert torch.allclose(trained, decoded, atol=1e-4)


def test_training_learns(tmp_path: Path) -> None:
    trainer = Trainer(tiny(steps=60), tmp_path, device="cpu")
    found = list(losses(trainer.run()).values())
    assert sum(found[-10:]) / 10 < 0.7 * sum(found[:10]) / 10


def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = list(Trainer(tiny(), tmp_path / "whole", device="cpu").run())
    killed = Trainer(tiny(), tmp_path / "killed", device="cpu").run()
    before = [next(killed) for _ in range(5)]  # steps 1 to 4 and a validation; step 4 is not saved yet
    del killed
    saved = RunFolder(tmp_path / "killed").state()
    again = Trainer(tiny(), tmp_path / "killed", device="cpu")
    assert again.step == 2
    again._save()
    assert identical(again.folder.state(), saved), "everything that was saved is back"
    after = list(again.run())
    assert losses([*before, *after]) == about(losses(whole))
    logs = [list(RunFolder(tmp_path / name).entries()) for name in ("killed", "whole")]
    assert logs[0] == about(logs[1])


def test_a_run_stopped_early_keeps_its_schedule(tmp_path: Path) -> None:
    whole = losses(Trainer(tiny(), tmp_path / "whole", device="cpu").run())
    first = losses(Trainer(tiny(), tmp_path / "parts", device="cpu").run(until=3))
    assert {**first, **losses(Trainer(tiny(), tmp_path / "parts", device="cpu").run())} == about(whole)
    logs = [[entry for entry in RunFolder(tmp_path / name).entries() if "loss" in entry] for name in ("parts", "whole")]
    assert logs[0] == about(logs[1]), "a line of the log is the mean over a stop"


def test_a_later_stage_has_its_own_shares_and_goes_on_from_anywhere(tmp_path: Path) -> None:
    recipe = replace(
        tiny(steps=4), stages=(StageRecipe(steps=2, tasks={"mini-sudoku": 1}), StageRecipe(steps=2, rate=0.1))
    )
    whole = losses(Trainer(recipe, tmp_path / "whole", device="cpu").run())
    assert list(whole) == list(range(1, 9))
    for stop in (4, 5, 6):
        parts = tmp_path / f"stopped {stop}"
        first = losses(Trainer(recipe, parts, device="cpu").run(until=stop))
        assert {**first, **losses(Trainer(recipe, parts, device="cpu").run())} == about(whole)
    one = losses(Trainer(tiny(steps=4), tmp_path / "one", device="cpu").run())
    assert one == about({step: whole[step] for step in one}), "what comes later changes nothing before"
    trainer = Trainer(recipe, tmp_path / "whole", device="cpu")
    assert [{example.prompt.split()[0] for example in pools.pool(0)} for pools in trainer.examples] == [
        {"Sum"},
        {"Sudoku"},
        {"Sum"},
    ]


def test_bfloat16_and_the_likelihood_bound_train_too(tmp_path: Path) -> None:
    recipe = tiny(steps=3, precision="bfloat16", loss="elbo")
    assert len(losses(Trainer(recipe, tmp_path, device="cpu").run())) == 3
    assert weights(tmp_path)["model.transformer.wte.weight"].dtype is torch.float32


def test_another_recipe_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    next(Trainer(tiny(), tmp_path, device="cpu").run())
    with pytest.raises(SettingsError, match=r"seed, training\.steps differ"):
        Trainer(replace(tiny(steps=9), seed=5), tmp_path, device="cpu")
    Trainer(replace(tiny(), report=ReportRecipe(log=1)), tmp_path, device="cpu")


def test_a_broken_state_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.prepare(tiny())
    folder.state_file.write_bytes(b"torn")
    with pytest.raises(CheckpointError, match="Delete it"):
        Trainer(tiny(), tmp_path, device="cpu")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputFileError, match="Cannot write"):
        RunFolder(tmp_path / "file").prepare(tiny())


def test_a_torn_log_line_is_passed_over(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.prepare(tiny())
    folder.append_log({"step": 1, "loss": 1.0})
    folder.append_log({"step": 5, "loss": 1.0})
    with folder.log.open("a") as file:
        file.write('{"step": 6, "lo')
    assert [entry["step"] for entry in folder.entries()] == [1, 5]
    folder.cut_log(2)
    assert folder.log.read_text() == '{"step": 1, "loss": 1.0}\n'


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    trainer = Trainer(tiny(), tmp_path, device="cpu")
    with torch.no_grad():
        trainer.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(NonFiniteLogits, match=r"step 1.*muon_rate"):
        next(trainer.run())


def test_the_command_trains_goes_on_and_says_so(tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(
        'name = "tiny"\n[model]\nwidth = 32\nlayers = 1\nheads = 2\n[tokenizer]\nvocabulary = 400\ntexts = 200\n'
        '[data.tasks]\nmini-sums = 1\n[training]\nsteps = 4\nbatch_tokens = 512\nprecision = "float32"\n'
        "[report]\nvalidate = 2\nproblems = 2\nsave = 2\n"
    )
    run = [sys.executable, "-m", "soar_dlm.cli.main", "train", str(recipe), "-o", str(tmp_path / "out")]
    dry = subprocess.run([*run, "--dry-run"], capture_output=True, text=True, check=True)
    assert "parameters" in dry.stderr
    assert not (tmp_path / "out").exists(), "a dry run writes nothing at all"
    first = subprocess.run([*run, "--until", "2"], capture_output=True, text=True, check=True)
    assert "held-out mini-sums" in first.stderr
    second = subprocess.run([*run, "--device", "cpu"], capture_output=True, text=True, check=True)
    assert "resuming after step 2" in second.stderr
    assert "step 4" in second.stderr
    third = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (third.returncode, "nothing is left to train" in third.stderr) == (1, True)
    assert load(tmp_path / "out").generate("Sum", max_new_tokens=4).text is not None


def test_a_wrong_recipe_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["train", str(tmp_path / "none.toml"), "-o", str(tmp_path / "out")])
    assert isinstance(result.exception, InputFileError)
    assert not (tmp_path / "out").exists()


def test_forbidden_instructions_are_avoided_only_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(processor.SETTING, raising=False)
    monkeypatch.setattr(processor, "_announces_amx", lambda: False)
    assert not processor.avoid_forbidden_instructions()
    monkeypatch.setattr(processor, "_announces_amx", lambda: True)
    monkeypatch.setattr(processor, "PROBE", "pass")
    assert not processor.avoid_forbidden_instructions()
    monkeypatch.setattr(processor, "PROBE", "import os; os.abort()")
    assert processor.avoid_forbidden_instructions()
    assert os.environ[processor.SETTING] == processor.WITHOUT_AMX
    assert not processor.avoid_forbidden_instructions(), "what the user set stays"


@pytest.mark.parametrize("name", ["mini-llada", "mini-dreamon"])
def test_the_first_steps_of_a_shipped_model_come_out_again(tmp_path: Path, name: str) -> None:
    """The committed log belongs to the committed recipe and corpora; benchmarks/retrain.py goes 200 steps."""
    recipe = read_recipe(ROOT / "recipes" / f"{name}.toml")
    eager = replace(recipe, training=replace(recipe.training, compile=False))
    shipped = RunFolder(ROOT / "src" / "soar_dlm" / "models" / "shipped" / name)
    logged = {entry["step"]: entry["loss"] for entry in shipped.entries() if "loss" in entry}
    trainer = Trainer(eager, tmp_path, device="cpu")
    found = losses(islice(trainer.run(), 10))
    assert sum(found.values()) / 10 == pytest.approx(logged[10], abs=1e-3)
