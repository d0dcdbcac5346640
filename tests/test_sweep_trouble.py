"""``soar sweep`` and ``soar tune`` on full disks, with bad paths, beside other processes: nothing is lost."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from soar_dlm import files
from soar_dlm.errors import InputFileError, MissingExtra, SettingsError
from soar_dlm.evals.results import MANIFEST, RESULTS
from soar_dlm.lm import LM
from soar_dlm.models.random_checkpoint import write_llada
from soar_dlm.presets import read_preset
from tests.closeness import about
from tests.command import invoke, soar
from tests.disks import contents, files_up_to

QUICK = ["-t", "mini-sums", "-n", "6", "--thresholds", "0.3,0.6", "--chunk", "4", "--device", "cpu"]
SWEEP = ["sweep", "-m", "random-llada", *QUICK, "--limit", "8"]
LATER = ["sweep", "-m", "no/such/model", *QUICK]
"""Fails when the model is loaded, if nothing fails before."""


@pytest.fixture(scope="module")
def swept(random_llada: LM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept") / "sweep"
    invoke(*SWEEP, "-o", str(folder))
    return folder


def timeless(folder: Path) -> list[Any]:
    return [{**json.loads(line), "seconds": None} for line in (folder / RESULTS).read_text().splitlines()]


def test_a_sweep_that_finds_the_disk_full_keeps_whole_lines_and_resumes(swept: Path, tmp_path: Path) -> None:
    room = max(len((swept / MANIFEST).read_bytes()), len((swept / RESULTS).read_bytes()) // 2)
    with files_up_to(room), pytest.raises(InputFileError, match=r"Cannot write .*results\.jsonl: File too large"):
        invoke(*SWEEP, "-o", str(tmp_path))
    done = contents(tmp_path)
    assert done.keys() == {MANIFEST, RESULTS}
    assert done[RESULTS].endswith(b"\n"), "no part of a line"
    assert len(done[RESULTS].splitlines()) >= 4, "a whole turn was kept"
    invoke(*SWEEP, "-o", str(tmp_path))
    assert timeless(tmp_path) == about(timeless(swept))


def test_a_sweep_that_cannot_even_write_its_manifest_leaves_nothing(random_llada: LM, tmp_path: Path) -> None:
    with files_up_to(300), pytest.raises(InputFileError, match=r"Cannot write .*manifest\.json: File too large"):
        invoke(*SWEEP, "-o", str(tmp_path / "new" / "sweep"))
    assert not list(tmp_path.iterdir()), "no empty folders either"


def test_a_figure_that_does_not_fit_leaves_the_old_one_and_the_results(swept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(swept, tmp_path / "sweep"))
    figure = tmp_path / "figure.svg"
    figure.write_text("precious")
    before = contents(tmp_path)
    with files_up_to(3000), pytest.raises(InputFileError, match=r"Cannot write .*figure\.svg: File too large"):
        invoke(*SWEEP, "-o", str(folder), "--figure", str(figure))
    assert contents(tmp_path) == before
    invoke(*SWEEP, "-o", str(folder), "--figure", str(figure))
    assert figure.read_text().startswith("<?xml")
    assert contents(folder) == contents(swept)


@pytest.mark.parametrize(
    ("name", "told"), [("figure.doc", "ends in .svg, .png, .pdf"), ("null/figure.svg", "no folder")]
)
def test_a_figure_that_cannot_be_drawn_is_told_before_the_model_is_loaded(
    name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*LATER, "-o", str(tmp_path / "sweep"), "--figure"]
    with pytest.raises(SettingsError, match=told):
        invoke(*arguments, str(tmp_path / name))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'soar-dlm\[plots\]'"):
        invoke(*arguments, str(tmp_path / "figure.svg"))
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("command", ["sweep", "eval"])
@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
def test_a_folder_that_cannot_be_made_is_told_before_the_model_is_loaded(
    command: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    arguments = LATER if command == "sweep" else ["eval", "-m", "no/such/model", "-t", "mini-sums"]
    with pytest.raises(InputFileError, match="Cannot write"):
        invoke(*arguments, "--limit", "1", "-o", str(tmp_path / name))
    assert contents(tmp_path) == {"file": b""}


def test_a_folder_that_is_in_use_is_told_before_the_model_is_loaded(swept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(swept, tmp_path / "mini-sums"))
    with files.locked(folder):
        for arguments in (
            [*LATER, "-o", str(folder)],
            ["eval", "-m", "no/such/model", "-t", "mini-sums", "-o", str(tmp_path)],
        ):
            with pytest.raises(InputFileError, match="in use: process"):
                invoke(*arguments)
    assert contents(folder) == contents(swept)


def test_a_place_that_nobody_may_write_to_is_a_sentence(random_llada: LM, swept: Path) -> None:
    with pytest.raises(InputFileError, match="Cannot write /proc/sweep"):
        invoke(*SWEEP, "-o", "/proc/sweep")
    with pytest.raises(InputFileError, match=r"Cannot write /proc/preset\.toml"):
        invoke("tune", str(swept), "--forwards", "9", "-o", "/proc/preset.toml")


@pytest.mark.parametrize("name", ["missing/x", "file/x", "x" * 300, "."])
def test_a_preset_that_cannot_be_written_is_a_sentence(name: str, swept: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for overwrite in ([], ["--overwrite"]) if name != "." else (["--overwrite"],):
        with pytest.raises(InputFileError, match="Cannot write"):
            invoke("tune", str(swept), "--forwards", "9", "-o", str(tmp_path / name), *overwrite)
    assert contents(tmp_path) == {"file": b""}


def test_a_preset_is_replaced_whole_or_stays_as_it_was(swept: Path, tmp_path: Path) -> None:
    preset, results = tmp_path / "preset.toml", contents(swept)
    preset.write_text("precious")
    tune = ["tune", str(swept), "--forwards", "9", "-o", str(preset), "--overwrite"]
    with files_up_to(50), pytest.raises(InputFileError, match=r"Cannot write .*preset\.toml: File too large"):
        invoke(*tune)
    assert contents(tmp_path) == {"preset.toml": b"precious"}
    invoke(*tune)
    assert read_preset(preset).strategy == "soar"
    assert contents(swept) == results


def test_a_checkpoint_gets_its_defaults_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    model, sweep = write_llada(tmp_path / "model"), tmp_path / "sweep"
    config = model / "generation_config.json"
    config.write_text(json.dumps({"precious": "." * 300}))
    invoke("sweep", "-m", str(model), *QUICK, "--limit", "4", "-o", str(sweep))
    tune = ["tune", str(sweep), "--forwards", "9", "--save-to-model", str(model)]
    before = contents(tmp_path)
    with files_up_to(300), pytest.raises(InputFileError, match=r"Cannot write .*_config\.json: File too large"):
        invoke(*tune)
    with files.locked(model), pytest.raises(InputFileError, match="in use: process"):
        invoke(*tune)
    assert contents(tmp_path) == before
    invoke(*tune)
    assert json.loads(config.read_text()).keys() == {"precious", "soar_dlm"}
    assert contents(tmp_path).keys() == before.keys()


def test_a_damaged_sweep_is_neither_tuned_nor_changed(swept: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(swept, tmp_path / "sweep"))
    lines = (folder / RESULTS).read_bytes().splitlines(keepends=True)
    (folder / RESULTS).write_bytes(b"".join([*lines[:2], b"{}\n", *lines[3:]]))
    before = contents(tmp_path)
    for arguments in (["tune", str(folder), "-o", str(tmp_path / "preset.toml")], [*SWEEP, "-o", str(folder)]):
        with pytest.raises(InputFileError, match=r"line 3, is damaged.*--repair"):
            invoke(*arguments)
    assert contents(tmp_path) == before
    with pytest.warns(UserWarning, match="moved to"):
        invoke(*SWEEP, "-o", str(folder), "--repair")
    assert timeless(folder) == about(timeless(swept))


def test_a_user_sees_one_sentence_and_an_exit_code(swept: Path, tmp_path: Path) -> None:
    sweep = ["sweep", "-m", "mini-llada", *QUICK, "--limit", "1", "-o", str(tmp_path / "sweep")]
    with files_up_to(300):
        swept_so_far = soar(*sweep, code=1)
        tuned = soar("tune", str(swept), "--forwards", "9", "-o", str(tmp_path / "x" / "preset.toml"), code=1)
    assert swept_so_far.stderr.strip().splitlines()[-1].endswith("manifest.json: File too large.")
    assert tuned.stderr.strip().splitlines()[-1].startswith("error: Cannot write")
    assert contents(tmp_path) == {}
