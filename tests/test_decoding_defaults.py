"""The decoding defaults that a checkpoint carries in generation_config.json."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transformers

from soar_dlm.cli.method import Method
from soar_dlm.errors import CheckpointError, InputFileError, SettingsError, UnknownName
from soar_dlm.evals.protocol import methods
from soar_dlm.lm import load
from soar_dlm.models.defaults import DecodingDefaults, write_defaults
from soar_dlm.models.families import LLADA
from soar_dlm.models.loading import load_checkpoint
from soar_dlm.models.random_checkpoint import write_llada
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.soar import Soar
from soar_dlm.tasks.mini_sums import MiniSums
from soar_dlm.train.trainer import Trainer
from tests.test_model_objects import stock_object
from tests.test_training import tiny

FULL = DecodingDefaults(
    strategy="soar",
    settings={"beam": 2},
    thresholds={"probability": 0.99, "neg_entropy": -0.05},
    options={"block_length": 32, "max_new_tokens": 128},
    tuned={"deliberate": {"threshold": 0.98, "accept": -0.0033, "tries": 8, "drafts": ["open"]}},
)


def write(folder: Path, section: Any) -> None:
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 257, "soar_dlm": section}))


def test_a_checkpoint_that_says_nothing_has_the_papers_values(tmp_path: Path) -> None:
    checkpoint = load_checkpoint(write_llada(tmp_path))
    assert checkpoint.defaults == DecodingDefaults()
    assert checkpoint.model.facts.thresholds == LLADA.thresholds
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 257}')
    assert load_checkpoint(tmp_path).defaults == DecodingDefaults()


def test_what_is_written_is_read_and_everything_else_is_kept(tmp_path: Path) -> None:
    write_llada(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 257, "temperature": 0.5}')
    write_defaults(tmp_path, FULL)
    content = json.loads((tmp_path / "generation_config.json").read_text())
    assert (content["eos_token_id"], content["temperature"]) == (257, 0.5)
    assert content["soar_dlm"] == {
        "strategy": "soar",
        "settings": {"beam": 2},
        "thresholds": {"probability": 0.99, "neg_entropy": -0.05},
        "options": {"block_length": 32, "max_new_tokens": 128},
        "tuned": {"deliberate": {"threshold": 0.98, "accept": -0.0033, "tries": 8, "drafts": ["open"]}},
    }
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint.defaults == FULL
    assert checkpoint.model.facts.thresholds == {"probability": 0.99, "margin": 0.9, "neg_entropy": -0.05}
    write_defaults(tmp_path, DecodingDefaults(strategy="greedy"))
    assert json.loads((tmp_path / "generation_config.json").read_text())["soar_dlm"] == {"strategy": "greedy"}
    write_defaults(tmp_path, DecodingDefaults())
    assert json.loads((tmp_path / "generation_config.json").read_text()) == {"eos_token_id": 257, "temperature": 0.5}
    assert [path.name for path in tmp_path.glob("generation_config*")] == ["generation_config.json"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ([], "must be an object"),
        ({"strategy": "saor"}, "Did you mean 'soar'"),
        ({"strategy": 3}, "must be the name of a strategy"),
        ({"strategy": "soar", "settings": {"beem": 2}}, "Did you mean 'beam'"),
        ({"strategy": "soar", "settings": {"beam": 0}}, "beam"),
        ({"settings": {"beam": 2}}, "without a strategy"),
        ({"strategy": "soar", "settings": {"threshold": 0.9}}, "thresholds ="),
        ({"thresholds": {"probability": 1.5}}, "threshold"),
        ({"thresholds": {"probability": "high"}}, "threshold"),
        ({"thresholds": {"certainty": 0.5}}, "certainty"),
        ({"thresholds": 0.9}, "thresholds must map names to values"),
        ({"options": ["block_length"]}, "options must map names to values"),
        ({"treshold": {}}, "Did you mean 'thresholds'"),
        ({"tuned": ["deliberate"]}, "tuned must map names to values"),
        ({"tuned": {"deliberate": 0.98}}, r"tuned\['deliberate'\] must map names to values"),
        ({"tuned": {"deliberte": {}}}, "Did you mean 'deliberate'"),
        ({"tuned": {"deliberate": {"tires": 3}}}, "Did you mean 'tries'"),
        ({"tuned": {"deliberate": {"threshold": 1.5}}}, "threshold"),
        ({"strategy": "deliberate", "settings": {"metric": "x"}, "tuned": {"deliberate": {}}}, "metric"),
    ],
)
def test_a_mistake_is_reported_when_the_checkpoint_is_loaded(tmp_path: Path, section: Any, words: str) -> None:
    write_llada(tmp_path)
    write(tmp_path, section)
    with pytest.raises(CheckpointError, match=words) as caught:
        load_checkpoint(tmp_path)
    for place in (str(tmp_path), '"soar_dlm"', "generation_config.json", "remove the key"):
        assert place in str(caught.value)


def test_a_checkpoint_can_name_a_drafter_with_its_settings(tmp_path: Path) -> None:
    draft = {"strategy": "soar", "beam": 3}
    write_defaults(write_llada(tmp_path), DecodingDefaults("deliberate", {"draft": draft, "drafts": ["open"]}))
    assert load(str(tmp_path)).strategy() == Deliberate(draft=Soar(beam=3), drafts="open")


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    write_llada(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"soar_dlm": ')
    with pytest.raises(CheckpointError, match=r"generation_config\.json.*cannot be read as JSON"):
        load_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be read as JSON"):
        write_defaults(tmp_path, FULL)
    with pytest.raises(InputFileError, match="Cannot write"):
        write_defaults(tmp_path / "nowhere", FULL)
    (tmp_path / "generation_config.json").write_text('{"top_k": 3}')
    with pytest.raises(SettingsError, match="plain JSON values"):
        write_defaults(tmp_path, DecodingDefaults(options={"stop": object()}))
    assert (tmp_path / "generation_config.json").read_text() == '{"top_k": 3}'
    assert [path.name for path in tmp_path.glob("generation_config*")] == ["generation_config.json"]


def test_a_checkpoint_may_have_what_only_python_reads_as_json(tmp_path: Path) -> None:
    """NaN, Infinity and a name twice are not JSON, but other programs write and read them; what is there stays."""
    write_llada(tmp_path)
    config = (tmp_path / "config.json").read_text().rstrip().removesuffix("}")
    (tmp_path / "config.json").write_text(f'{config}, "limits": [0.0, Infinity], "rope": true, "rope": true}}')
    (tmp_path / "generation_config.json").write_text('{"max_time": Infinity, "other": NaN}')
    write_defaults(tmp_path, FULL)
    content = json.loads((tmp_path / "generation_config.json").read_text())
    assert content["max_time"] == float("inf")
    assert content["other"] != content["other"]
    assert load_checkpoint(tmp_path).defaults == FULL
    with pytest.raises(SettingsError, match="plain JSON values"):
        write_defaults(tmp_path, DecodingDefaults(options={"stop": float("nan")}))


def test_transformers_reads_the_file_and_keeps_the_section(tmp_path: Path) -> None:
    """A model that is saved and loaded by transformers must not lose its defaults, as an object either."""
    write_defaults(write_llada(tmp_path), FULL)
    assert transformers.GenerationConfig.from_pretrained(tmp_path).soar_dlm["strategy"] == "soar"
    model = stock_object(tmp_path, LLADA)
    checkpoint = load_checkpoint(model, family="llada", mask_token_id=259)
    assert checkpoint.defaults == FULL
    assert checkpoint.model.facts.thresholds["probability"] == 0.99
    model.save_pretrained(tmp_path / "again")
    saved = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    assert DecodingDefaults(**saved["soar_dlm"]) == FULL
    model.generation_config.soar_dlm = {"strategy": "saor"}
    with pytest.raises(CheckpointError, match="Did you mean 'soar'"):
        load(model, family="llada", mask_token_id=259)


def test_training_on_keeps_them(tmp_path: Path) -> None:
    list(Trainer(tiny(), tmp_path, device="cpu").run(until=2))
    write_defaults(tmp_path, FULL)
    list(Trainer(tiny(), tmp_path, device="cpu").run(until=4))
    assert load_checkpoint(tmp_path).defaults == FULL


def test_what_was_tuned_for_a_strategy_holds_where_it_is_named(tmp_path: Path) -> None:
    """Its threshold is its own: that of the other strategies does not change."""
    write_defaults(write_llada(tmp_path), FULL)
    lm = load(tmp_path, "cpu")
    tuned = Deliberate(threshold=0.98, accept=-0.0033, tries=8, drafts=["open"])
    assert lm.strategy("deliberate") == tuned
    assert lm.strategy("deliberate", tries=2) == replace(tuned, tries=2)
    assert lm.strategy("deliberate", threshold=None).threshold is None
    assert lm.strategy() == Soar(beam=2)
    assert lm.strategy("soar") == Soar()
    assert lm.model.facts.thresholds["probability"] == 0.99
    other = lm.strategy("deliberate", metric="margin")
    assert other == replace(tuned, metric="margin", threshold=None), "a threshold belongs to its metric"
    assert lm.strategy("deliberate", metric="probability") == tuned


def test_the_tuned_settings_decode(tmp_path: Path) -> None:
    """By name in the library, in the command and in an evaluation."""
    write_defaults(write_llada(tmp_path), DecodingDefaults(tuned={"deliberate": {"tries": 0, "skip": 0.0}}))
    lm = load(tmp_path, "cpu")
    for found in (
        lm.generate("ab", "deliberate", max_new_tokens=6),
        *(result for _, result in lm.generate_as_completed(["ab"], "deliberate", max_new_tokens=6)),
        lm.infill("a", "b", "deliberate", length=6),
    ):
        assert found.details == {"drafts": 1, "branches": 0, "verifications": 0}
    assert lm.generate("ab", Deliberate(tries=0), max_new_tokens=6).details["verifications"] > 0
    assert Method({"strategy": "deliberate"}).strategy(lm) == Deliberate(tries=0, skip=0.0)
    assert Method({"strategy": "deliberate", "settings": ["tries=3"]}).strategy(lm) == Deliberate(tries=3, skip=0.0)
    compared = methods(["deliberate", "soar"], [8], MiniSums(), defaults=lm.defaults, threshold=0.7)
    assert [method.strategy for method in compared.values()] == [
        Deliberate(threshold=0.7, tries=0, skip=0.0),
        Soar(threshold=0.7),
    ]


def test_the_default_strategy_takes_what_was_tuned_for_it_and_its_own_settings_first() -> None:
    tuned = {"deliberate": {"threshold": 0.98, "accept": -0.5, "tries": 8}}
    defaults = DecodingDefaults("deliberate", {"tries": 2}, tuned=tuned)
    assert defaults.make() == Deliberate(threshold=0.98, accept=-0.5, tries=2)
    assert defaults.make(accept=-0.1) == Deliberate(threshold=0.98, accept=-0.1, tries=2)
    assert defaults.make("deliberate") == Deliberate(threshold=0.98, accept=-0.5, tries=8)
    by_margin = DecodingDefaults("deliberate", {"metric": "margin"}, tuned=tuned)
    assert by_margin.make() == Deliberate(accept=-0.5, tries=8, metric="margin")
    with pytest.raises(UnknownName, match="strategy"):
        defaults.make("")
