"""The processes of a split model: how they start, what happens when one fails or is killed, and that they end."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import transformers

from soar_dlm.errors import CheckpointError, EngineStopped, SettingsError, WeightsMismatch
from soar_dlm.lm import load
from soar_dlm.models import team
from soar_dlm.models.parallel import LeadingLM
from soar_dlm.models.random_checkpoint import write_llada
from tests.checkpoints import edit_json, edit_weights
from tests.command import BASE, soar
from tests.test_goldens import GOLDENS

LIMIT = 60_000
"""Milliseconds after which a process that should have ended counts as left behind."""


def ended(pids: list[int]) -> bool:
    """Whether these processes, children of whoever, have all ended, or do soon."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        gone = poll.poll(LIMIT)
        os.close(handle)
        if not gone:
            return False
    return True


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_llada(tmp_path / "model")


LITTLE_MEMORY = """
import torch
real = torch.nn.functional.silu
def silu(states, *args, **options):
    if len(states) > 3:
        raise torch.OutOfMemoryError("no room for the follower")
    return real(states, *args, **options)
torch.nn.functional.silu = silu
"""


def test_a_follower_that_runs_out_of_memory_makes_the_rows_fewer(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(LITTLE_MEMORY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    lm = load(small, device="cpu", tensor_parallel=2)
    assert isinstance(lm.model, LeadingLM)
    seen: list[int] = []
    lm.model.backbone.register_forward_pre_hook(
        lambda module, args, inputs: seen.append(len(inputs["input_ids"])), with_kwargs=True
    )
    prompts = ["one", "two", "six", "ten", "net", "now"]
    found = lm.generate(prompts, "greedy", max_new_tokens=4, early_exit=False)
    expected = load(small).generate(prompts, "greedy", max_new_tokens=4, early_exit=False)
    assert [one.token_ids for one in found] == [one.token_ids for one in expected]
    assert seen == [6] + [3] * 8


def test_a_follower_that_is_killed_ends_the_run_with_an_error(small: Path) -> None:
    lm = load(small, device="cpu", tensor_parallel=2)
    assert isinstance(lm.model, LeadingLM)
    (pid,) = lm.model.followers
    steps = lm.stream("hello", "greedy", max_new_tokens=300, early_exit=False)
    next(steps)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineStopped, match=r"Process 2 of 2, which had a part of .*, was killed by SIGKILL\. Load"):
        list(steps)
    for _ in range(2):
        with pytest.raises(EngineStopped, match="Load the model again"):
            lm.generate("hello")


def test_one_that_is_killed_inside_a_forward_does_too(small: Path) -> None:
    lm = load(small, device="cpu", tensor_parallel=2)
    assert isinstance(lm.model, LeadingLM)
    (pid,) = lm.model.followers
    lm.model.backbone.layers[1].register_forward_pre_hook(lambda *_: os.kill(pid, signal.SIGKILL))
    with pytest.raises(EngineStopped, match="was killed by SIGKILL"):
        lm.generate("hello")


def test_an_interrupted_forward_closes_the_model(small: Path) -> None:
    """Nobody knows how far each process has come; the next forward would add sums of different layers."""
    lm = load(small, device="cpu", tensor_parallel=2)
    assert isinstance(lm.model, LeadingLM)
    pids = lm.model.followers

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    lm.model.backbone.layers[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        lm.generate("hello")
    with pytest.raises(EngineStopped, match="interrupted in the middle of a forward"):
        lm.generate("hello")
    assert ended(pids)


def test_followers_end_with_the_model_and_a_process_has_one_at_a_time(small: Path) -> None:
    lm = load(small, device="cpu", tensor_parallel=2)
    assert isinstance(lm.model, LeadingLM)
    pids = lm.model.followers
    with pytest.raises(SettingsError, match=r"lm\.close\(\)"):
        load(small, device="cpu", tensor_parallel=2)
    del lm
    gc.collect()
    assert ended(pids)


LEADER = """
import sys
import soar_dlm
lm = soar_dlm.load(sys.argv[1], device="cpu", tensor_parallel=2)
print(*lm.model.followers, flush=True)
for event in lm.stream("hello", "greedy", max_new_tokens=900, early_exit=False):
    print("a step", flush=True)
"""


def test_followers_end_when_the_process_that_leads_is_killed(small: Path) -> None:
    """In the middle of a decoding, when they may be in a sum with it."""
    with subprocess.Popen([sys.executable, "-c", LEADER, str(small)], stdout=subprocess.PIPE, text=True) as leader:
        assert leader.stdout is not None
        pids = [int(pid) for pid in leader.stdout.readline().split()]
        assert len(pids) == 1
        assert leader.stdout.readline() == "a step\n"
        leader.kill()
    assert ended(pids)


def test_the_command_needs_no_launcher_and_leaves_nothing_behind() -> None:
    args = [*BASE, "Name three colours."]
    assert soar(*args, "--tensor-parallel", "2").stdout == soar(*args).stdout


def test_a_follower_that_cannot_start_says_why(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('no device for me')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineStopped, match=r"has ended with exit code 1 \(.*no device for me\)"):
        load(small, device="cpu", tensor_parallel=2)


def test_weights_that_do_not_fit_are_told_as_in_one_process(small: Path) -> None:
    edit_weights(small, lambda weights: weights.pop("model.transformer.blocks.1.up_proj.weight"))
    with pytest.raises(WeightsMismatch, match="1 missing"):
        load(small, device="cpu", tensor_parallel=2)


def test_what_cannot_be_split_is_refused_before_anything_starts(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team.Team, "_start", lambda *_: pytest.fail("started"))

    def refused(name: Any, why: str, processes: Any = 2, **options: Any) -> None:
        with pytest.raises((SettingsError, CheckpointError), match=why):
            load(name, tensor_parallel=processes, **options)

    refused(small, "whole number", 0)
    refused(small, "whole number", "two")
    refused(small, r"has 4 attention heads, and 4 of keys and values.*can be 2, 4\.", 3)
    refused(GOLDENS / "dream-1", r"4 attention heads, and 2 of keys and values.*can be 2\.", 4)
    refused(small, "device_map cannot be combined", device_map="auto")
    refused(small, "quantization_config cannot be combined", quantization_config={"quant_method": "bitsandbytes"})
    refused(load(small).model.backbone, "in memory already")  # type: ignore[attr-defined]
    edit_json(small / "config.json", quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True})
    refused(small, "is quantized")
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(f'{{"base_model_name_or_path": "{small}"}}')
    (adapter / "adapter_model.safetensors").touch()
    refused(adapter, "is an adapter")
    bert = transformers.BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertForMaskedLM(bert).save_pretrained(tmp_path / "bert")
    refused(tmp_path / "bert", "splits LLaDA and Dream")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused(small, "without torchrun")


def test_a_split_model_is_not_compiled() -> None:
    """Refused before its weights are read, and by the model itself."""
    with pytest.raises(SettingsError, match="cannot be compiled"):
        load("random-llada", device="cpu", tensor_parallel=2, compile=True)


def test_one_process_is_no_team(small: Path) -> None:
    assert not isinstance(load(small, tensor_parallel=1).model, LeadingLM)


def test_device_map_auto_places_the_model_on_what_there_is(small: Path) -> None:
    mapped = load(small, device_map="auto", dtype="float32")
    assert (
        mapped.generate("hello", max_new_tokens=5).token_ids
        == load(small).generate("hello", max_new_tokens=5).token_ids
    )
