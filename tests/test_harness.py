"""The library as a model of lm-evaluation-harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.tasks import TaskManager

from soar_dlm.errors import PromptTooLong, SettingsError, UnknownName
from soar_dlm.evals.harness import SoarModel
from soar_dlm.evals.harness_tasks import FOLDER, judged
from soar_dlm.evals.likelihood import Pair, log_likelihoods
from soar_dlm.lm import load
from soar_dlm.models.defaults import DecodingDefaults, write_defaults
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.models.random_checkpoint import write_llada
from soar_dlm.presets import Preset, write_preset
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.solving import solve
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.mini_code import MiniCode
from soar_dlm.tasks.mini_gsm import MiniGsm
from soar_dlm.tasks.mini_sums import MiniSums
from tests.test_masked_lms import write_masked_lm

MODEL: dict[str, Any] = {"pretrained": "random-llada", "device": "cpu"}
SUMS = MiniSums().distinct("test", 5)


@pytest.fixture(scope="module")
def model() -> SoarModel:
    return SoarModel(**MODEL, strategy="soar", beam=2, threshold=0.5, max_gen_toks=8, mc_num=4)


def asked(kind: str, *arguments: tuple[Any, ...]) -> list[Instance]:
    return [Instance(kind, {}, given, place) for place, given in enumerate(arguments)]


def task_folder(folder: Path) -> Path:
    """A task in the harness's own words, over a file."""
    lines = [json.dumps({"question": problem.prompt, "answer": problem.answer}) for problem in SUMS]
    (folder / "sums.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "sums.yaml").write_text(
        f"""\
task: soar_sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder / "sums.jsonl"}}}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["zz"], max_gen_toks: 8, do_sample: false}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
    )
    return folder


def test_settings_reach_strategy_and_engine(model: SoarModel, tmp_path: Path) -> None:
    assert model.strategy == Soar(beam=2, threshold=0.5)
    other = SoarModel(**MODEL, batch_size="7", max_batch_size=64, block_length=4)
    assert (other.lm.engine_settings.max_rows, other.decoding, other.strategy) == (7, {"block_length": 4}, Soar())
    cached = SoarModel(**MODEL, block_length=4, cache="dual", refresh_every=2, suffix_window=8)
    assert cached.decoding == {"block_length": 4, "cache": "dual", "refresh_every": 2, "suffix_window": 8}
    assert SoarModel(**MODEL, batch_size="auto:4").lm.engine_settings.max_rows == 32
    write_preset(tmp_path / "p.toml", Preset("greedy", {"tokens_per_step": 2}))
    assert SoarModel(**MODEL, preset=str(tmp_path / "p.toml")).strategy == Greedy(tokens_per_step=2)
    if not torch.cuda.is_available():
        assert SoarModel(pretrained="random-llada", device="cuda:0").lm.model.device.type != "cuda"
    with pytest.raises(UnknownName, match="bema"):
        SoarModel(**MODEL, bema=2)
    with pytest.raises(SettingsError, match="batch_size"):
        SoarModel(**MODEL, batch_size="many")


def test_without_a_strategy_the_checkpoint_decides(tmp_path: Path) -> None:
    write_llada(tmp_path)
    tuned = {"greedy": {"tokens_per_step": 2}}
    write_defaults(tmp_path, DecodingDefaults("soar", {"beam": 3}, {"probability": 0.7}, tuned=tuned))
    given: dict[str, Any] = {"pretrained": str(tmp_path), "device": "cpu"}
    assert SoarModel(**given).strategy == Soar(beam=3)
    assert SoarModel(**given, metric="margin").strategy == Soar(beam=3, metric="margin")
    assert SoarModel(**given, strategy="greedy").strategy == Greedy(tokens_per_step=2), "as it was tuned"
    with pytest.raises(UnknownName, match="bema"):
        SoarModel(**given, bema=2)


def test_texts_are_those_of_the_library(model: SoarModel) -> None:
    prompts = ["one plus", "two", "three plus four is"]
    settings = [
        {"until": ["x"], "max_gen_toks": 6},
        {"until": "x", "max_gen_toks": 6},
        {"until": [], "temperature": 0.0},
    ]
    found = model.generate_until(asked("generate_until", *zip(prompts, settings, strict=True)), disable_tqdm=True)
    strategy = Soar(beam=2, threshold=0.5)
    first = model.lm.generate(prompts[:2], strategy, max_new_tokens=6, stop=["x"])
    last = model.lm.generate(prompts[2], strategy, max_new_tokens=8)
    assert found == [*(one.text for one in first), last.text]


def test_sampling_is_what_the_task_asks_for(model: SoarModel) -> None:
    assert model._options({"do_sample": False, "temperature": 0.7})["temperature"] == 0.0
    assert model._options({"do_sample": True, "temperature": 0.7, "top_p": 0.9})["temperature"] == 0.7


def test_unknown_generation_settings_are_told(model: SoarModel, caplog: pytest.LogCaptureFixture) -> None:
    model._options({"num_beams": 4})
    assert "num_beams" in caplog.text


def ids(model: SoarModel, text: str) -> list[int]:
    found: Sequence[int] = model.lm.tokenizer(text)["input_ids"]
    return list(found)


def test_likelihoods_are_those_of_the_library(model: SoarModel) -> None:
    found = model.loglikelihood(asked("loglikelihood", ("one plus", " two"), ("one plus ", "two")), disable_tqdm=True)
    whole, start = ids(model, "one plus two"), ids(model, "one plus")
    expected = log_likelihoods(model.lm, [Pair(start, whole[len(start) :])], samples=4)
    assert [value for value, _ in found] == pytest.approx(expected * 2, rel=1e-4)  # the space belongs to what follows
    rolling = model.loglikelihood_rolling(asked("loglikelihood_rolling", ("one plus two",)), disable_tqdm=True)
    assert rolling == pytest.approx(log_likelihoods(model.lm, [Pair([], whole)], samples=4), rel=1e-4)


def test_a_context_that_is_too_long_loses_its_beginning(model: SoarModel, caplog: pytest.LogCaptureFixture) -> None:
    longest = model.lm.model.facts.context or 0
    pair = model._pair("one " * longest, "two")
    assert len(pair) == longest
    assert pair.answer == model._pair("one one", " two").answer
    assert "loses its first" in caplog.text
    with pytest.raises(PromptTooLong):
        model.loglikelihood(asked("loglikelihood", ("one", " two" * longest)), disable_tqdm=True)


def test_what_stands_behind_a_text_stays_there(tmp_path: Path) -> None:
    write_masked_lm(tmp_path, "fnet")
    bert = SoarModel(pretrained=str(tmp_path), device="cpu", mc_num=4)
    assert bert._pair("w1 w2", " w3 w4") == Pair([2, 6, 7], [8, 9], [3])
    requests = asked("loglikelihood", ("w1 w2", " w3 w4"), ("w1 w2 w5", " w3 w4"), ("w9", " w3"))
    together = model_values(bert, requests)
    alone = [value for one in requests for value in model_values(bert, [one])]
    assert together == pytest.approx(alone, rel=1e-4)
    rolling = bert.loglikelihood_rolling(asked("loglikelihood_rolling", ("w1 w2",)), disable_tqdm=True)
    assert rolling == pytest.approx(log_likelihoods(bert.lm, [Pair([], [2, 6, 7], [3])], samples=4), rel=1e-4)


def model_values(model: SoarModel, requests: list[Instance]) -> list[float]:
    return [value for value, _ in model.loglikelihood(requests, disable_tqdm=True)]


def test_a_rendered_conversation_gets_no_second_start(model: SoarModel) -> None:
    model.lm.tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    rendered = SoarModel(**MODEL, strategy="greedy", max_gen_toks=6)
    rendered.lm.tokenizer.chat_template = model.lm.tokenizer.chat_template
    text = rendered.apply_chat_template([{"role": "user", "content": "one"}])
    assert text == "<user>one<assistant>"
    found = rendered.generate_until(asked("generate_until", (text, {"until": []})), disable_tqdm=True)
    assert found == [rendered.lm.generate([[{"role": "user", "content": "one"}]], Greedy(), max_new_tokens=6)[0].text]
    assert rendered.chat_template() is None or "assistant" in str(rendered.chat_template(True))


def test_the_harness_runs_a_task(tmp_path: Path) -> None:
    found = simple_evaluate(
        model="soar",
        model_args={**MODEL, "strategy": "greedy"},
        tasks=["soar_sums"],
        task_manager=TaskManager(include_path=str(task_folder(tmp_path)), include_defaults=False),
        bootstrap_iters=0,
    )
    texts = [sample["resps"][0][0] for sample in found["samples"]["soar_sums"]]
    lm = SoarModel(**MODEL).lm
    assert texts == [one.text for one in lm.generate([p.prompt for p in SUMS], Greedy(), max_new_tokens=8, stop=["zz"])]
    assert found["results"]["soar_sums"]["exact_match,none"] == 0.0


@pytest.mark.parametrize("file", sorted(FOLDER.glob("[!_]*.yaml")), ids=lambda file: file.stem)
def test_task_files_say_what_the_tasks_say(file: Path) -> None:
    told = yaml.safe_load(file.read_text())
    task = make_task(told["dataset_kwargs"]["soar_task"])
    assert told["task"] == f"soar_{task.name.replace('-', '_')}" == f"soar_{file.stem}"
    assert told["generation_kwargs"] == {"until": list(task.stop), "max_gen_toks": task.canvas, "do_sample": False}
    assert told.get("unsafe_code", False) == task.runs_code
    assert not task.infills


def test_the_harness_judges_as_the_library_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (MiniGsm, MiniCode):
        monkeypatch.setattr(kind, "test_set", lambda self: self.distinct("test", 4))  # a thousand take long to decode
    found = simple_evaluate(
        model="soar",
        model_args={"pretrained": "mini-llada", "device": "cpu", "strategy": "greedy"},
        tasks=["soar_mini_gsm", "soar_mini_code"],
        task_manager=TaskManager(include_path=str(FOLDER), include_defaults=False),
        bootstrap_iters=0,
        confirm_run_unsafe_code=True,
    )
    lm = load("mini-llada", "cpu")
    for name in ("mini-gsm", "mini-code"):
        task = make_task(name)
        problems = task.distinct("test", 4)
        texts = [result.text for result in solve(lm, task, problems, Greedy())]
        samples = found["samples"][f"soar_{name.replace('-', '_')}"]
        assert [sample["resps"][0][0] for sample in samples] == texts
        assert [bool(sample["correct"]) for sample in samples] == task.all_correct(problems, texts)


def test_the_harness_runs_code_only_with_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MiniCode, "test_set", lambda self: self.distinct("test", 1))
    monkeypatch.setattr(MiniCode, "correct", lambda *_: pytest.fail("judged"))
    with pytest.raises(ValueError, match="soar_mini_code which is marked as unsafe"):
        simple_evaluate(
            model="soar",
            model_args={**MODEL, "strategy": "greedy"},
            tasks=["soar_mini_code"],
            task_manager=TaskManager(include_path=str(FOLDER), include_defaults=False),
        )


def test_the_harness_gets_no_code_problems_where_the_sandbox_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """It used to decode them all before the first answer could not be judged."""
    monkeypatch.setattr("soar_dlm.tasks.sandbox.consent.faults", lambda sandbox: ("a program can read your files",))
    with pytest.raises(SettingsError, match="a program can read your files"):
        judged.problems("mini-code")


def test_the_command_knows_the_model_and_splits_its_work(tmp_path: Path) -> None:
    """``lm_eval`` finds the model by itself; two processes give what one gives, in the same order."""
    folder = task_folder(tmp_path)
    weights = embedded_folder("random-llada")
    arguments = f"pretrained={weights},strategy=soar,beam=2,threshold=0.5"
    command = ["-m", "lm_eval", "--model", "soar", "--model_args", arguments, "--tasks", "soar_sums", "--device", "cpu"]
    command += ["--include_path", str(folder), "--log_samples", "--output_path"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    for name, start in (("one", [sys.executable]), ("two", [sys.executable, *launch])):
        done = subprocess.run(
            [*start, *command, str(tmp_path / name)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    one, two = (sorted((tmp_path / name).rglob("samples_*.jsonl")) for name in ("one", "two"))
    told = [
        [(line["doc_id"], line["resps"]) for line in map(json.loads, files[0].read_text().splitlines())]
        for files in (one, two)
    ]
    assert len(told[0]) == 5
    assert sorted(told[0]) == sorted(told[1])
