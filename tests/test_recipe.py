from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.errors import InputFileError, SettingsError, SoarError, UnknownName
from soar_dlm.train.recipe import DataRecipe, ModelRecipe, ReportRecipe, StageRecipe, TrainingRecipe, read_recipe

RECIPES = Path(__file__).parent.parent / "recipes"


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text)
    return path


def test_a_short_recipe_gets_the_defaults(tmp_path: Path) -> None:
    recipe = read_recipe(written(tmp_path, 'name = "a"\n[data.tasks]\nmini-gsm = 1\n[training]\nsteps = 7\n'))
    assert (recipe.name, recipe.seed, recipe.training.steps) == ("a", 0, 7)
    assert recipe.model == ModelRecipe()
    assert recipe.report == ReportRecipe()
    assert recipe.as_dict()["data"]["tasks"] == {"mini-gsm": 1}


def test_stages_follow_the_first(tmp_path: Path) -> None:
    text = (
        'name = "a"\n[data.tasks]\nmini-gsm = 1\n[training]\nsteps = 7\n[[stages]]\nsteps = 3\n[[stages]]\nsteps = 2\n'
    )
    recipe = read_recipe(written(tmp_path, text + "[stages.tasks]\nmini-sums = 1\n"))
    assert recipe.steps == 12
    assert [recipe.stage_at(step) for step in (0, 6, 7, 9, 10, 11)] == [
        (0, 0),
        (0, 0),
        (1, 7),
        (1, 7),
        (2, 10),
        (2, 10),
    ]
    assert [dict(recipe.data_of(stage).tasks) for stage in range(3)] == [
        {"mini-gsm": 1},
        {"mini-gsm": 1},
        {"mini-sums": 1},
    ]
    assert json.loads(json.dumps(recipe.as_dict())) == recipe.as_dict(), "a folder compares it with what it wrote"


def test_files_of_a_recipe_lie_next_to_it(tmp_path: Path) -> None:
    recipe = read_recipe(written(tmp_path, 'name = "a"\n[data.files]\n"mine.jsonl" = 1\n'))
    assert dict(recipe.data.files) == {str(tmp_path / "mine.jsonl"): 1}


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_committed_recipes_can_be_read(path: Path) -> None:
    assert read_recipe(path).name == path.stem


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("name = ", InputFileError, "not a TOML file"),
        ("seed = 1\n[data.tasks]\nmini-gsm = 1", SettingsError, "lacks name"),
        ('name = "a"', SettingsError, "nothing to train on"),
        ('name = "a"\nmodel = 3', SettingsError, "model must be a table"),
        ('name = "a"\n[data.tasks]\nmini-gsm = 1\n[training]\nstep = 3', UnknownName, "'training.steps'"),
        ('name = "a"\n[data.tasks]\nmini-gsm = 1\n[models]\nwidth = 3', UnknownName, "'model'"),
        ('name = "a"\n[data.tasks]\nmini-gsm = 1\n[stages]\nsteps = 3', SettingsError, r"under \[\[stages\]\]"),
        ('name = "a"\n[data.tasks]\nmini-gsm = 1\n[[stages]]\nstep = 3', UnknownName, "'stages.steps'"),
        ('name = ""\n[data.tasks]\nmini-gsm = 1', SettingsError, "needs a name"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said(tmp_path: Path, text: str, error: type[SoarError], told: str) -> None:
    with pytest.raises(error, match=told):
        read_recipe(written(tmp_path, text))


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="Cannot read the recipe"):
        read_recipe(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        (ModelRecipe, {"width": 100, "heads": 6}),
        (ModelRecipe, {"heads": 6, "kv_heads": 4}),
        (ModelRecipe, {"layers": 0}),
        (ModelRecipe, {"inner": 0}),
        (ModelRecipe, {"rope_theta": 0.5}),
        (ModelRecipe, {"number_waves": "yes"}),
        (ModelRecipe, {"family": "lada"}),
        (DataRecipe, {"tasks": {"a": 0.0}}),
        (DataRecipe, {"tasks": {"a": "much"}}),
        (DataRecipe, {"tasks": {"a": 1}, "full_canvas": 1.5}),
        (StageRecipe, {"steps": 0}),
        (StageRecipe, {"steps": 1, "rate": 0.0}),
        (StageRecipe, {"steps": 1, "tasks": {"a": -1}}),
        (TrainingRecipe, {"steps": 0}),
        (TrainingRecipe, {"muon_rate": 0}),
        (TrainingRecipe, {"decay": 2.0}),
        (TrainingRecipe, {"loss": "sum"}),
        (TrainingRecipe, {"precision": "int8"}),
        (TrainingRecipe, {"compile": 1}),
        (ReportRecipe, {"log": 0}),
    ],
    ids=str,
)
def test_impossible_values_are_refused(part: type[Any], wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        part(**wrong)
