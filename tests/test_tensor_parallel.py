"""One model over two processes: it decodes as one process does, and no process is waited for or left behind in vain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
import torch

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError
from soar_dlm.lm import LM, load
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.parallel import FollowingLM, LeadingLM, _call
from soar_dlm.models.running import TransformersLM
from soar_dlm.options import Options
from tests.test_goldens import GOLDENS, MODELS, canvas, model, rows_of, strategy


@dataclass
class Pair:
    """A golden checkpoint over two processes, and in one."""

    name: str
    split: LM
    whole: LM

    @property
    def leader(self) -> LeadingLM:
        assert isinstance(self.split.model, LeadingLM)
        return self.split.model


@pytest.fixture(scope="module", params=MODELS)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    split = load(str(GOLDENS / request.param), device="cpu", tensor_parallel=2)
    yield Pair(request.param, split, model(request.param))
    split.close()


def outputs(lm: LM, rows: list[dict[str, Any]], caches: Sequence[Any] = (None,)) -> list[list[int]]:
    """Golden rows in one batch, with these caches in turns."""
    engine = Engine(lm.model, EngineSettings(max_rows=1000))
    for row, cache in zip(rows, cycle(caches), strict=False):
        ids = canvas(lm, row)
        own = Options(block_length=row["block_length"], early_exit=False, cache=cache)
        engine.add(Request(ids, range(len(row["prompt"]), len(ids)), strategy(row), own))
    found = {event.ticket: event.decoding.tokens for event in engine.run() if event.decoding is not None}
    return [list(found[place][len(row["prompt"]) :]) for place, row in enumerate(rows)]


def test_the_goldens_token_for_token(pair: Pair) -> None:
    """Every strategy, length, block, beam, threshold and metric."""
    rows = rows_of(pair.name)
    assert outputs(pair.split, rows) == [row["output"] for row in rows]


def test_caches_write_what_they_write_in_one_process(pair: Pair) -> None:
    """Every other row with each cache, and the other way round for the other model of the family."""
    rows = rows_of(pair.name)
    caches = ["prefix", "dual"] if pair.name.endswith("1") else ["dual", "prefix"]
    assert outputs(pair.split, rows, caches) == outputs(pair.whole, rows, caches)


def test_each_process_has_its_share_of_the_layers_and_of_what_is_stored(pair: Pair) -> None:
    whole, split = pair.whole.model, pair.leader
    assert isinstance(whole, TransformersLM)
    assert whole.column_bytes is not None
    assert split.column_bytes == whole.column_bytes // 2
    for layer, own in zip(whole.backbone.layers, split.backbone.layers, strict=True):
        assert own.mlp.down_proj.weight.to_local().numel() == layer.mlp.down_proj.weight.numel() // 2


def test_logits_and_padding_are_those_of_one_process(pair: Pair) -> None:
    rows = Rows.packed([np.arange(9), np.arange(4)], [np.arange(9), np.arange(4)], 0, "cpu")
    found, expected = (lm.model.logits(lm.model.hidden(rows)) for lm in (pair.split, pair.whole))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_backbone_alone_is_not_run(pair: Pair) -> None:
    """Prevents waiting five minutes for processes that were told nothing, as in plain loops that call it."""
    with pytest.raises(SettingsError, match="without tensor_parallel"):
        pair.leader.backbone(input_ids=torch.zeros(1, 4, dtype=torch.int64))
    with pytest.raises(SettingsError, match="cannot be compiled"):
        pair.leader.compile()


def test_threads_may_decode_at_the_same_time(pair: Pair) -> None:
    rows = rows_of(pair.name)[:2]

    def written(row: dict[str, Any]) -> list[int]:
        own: dict[str, Any] = {"block_length": row["block_length"], "early_exit": False}
        return pair.split.decode([canvas(pair.split, row)], strategy(row), **own)[0].token_ids[len(row["prompt"]) :]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(written, rows * 3)) == [row["output"] for row in rows * 3]


def test_a_process_that_runs_out_of_memory_is_not_waited_for(pair: Pair) -> None:
    """It fails in the middle of a forward; the other one is in a sum by then. The rows are halved and all goes on."""
    failures = iter([MemoryError("no room"), RuntimeError("DefaultCPUAllocator: can't allocate memory")])

    def fail(*_: Any) -> None:
        for error in failures:
            raise error

    hook = pair.leader.backbone.layers[1].mlp.register_forward_pre_hook(fail)
    rows = rows_of(pair.name)[:8]
    assert outputs(pair.split, rows) == [row["output"] for row in rows]
    hook.remove()
    assert list(failures) == []


def test_an_error_of_one_process_is_raised_and_the_model_can_still_be_used(pair: Pair) -> None:
    """The sums that are left are completed, so the next forward does not get what belongs to this one."""
    rows = Rows.packed([np.arange(9)], [np.arange(9)], 0, "cpu")

    def fail(*_: Any) -> None:
        raise ValueError("a bug")

    hook = pair.leader.backbone.layers[1].register_forward_pre_hook(fail)
    with pytest.raises(ValueError, match="a bug"):
        pair.leader.hidden(rows)
    hook.remove()
    with pytest.raises(IndexError):
        pair.leader.hidden(Rows.packed([np.array([10**6])], [np.arange(1)], 0, "cpu"))
    row = rows_of(pair.name)[0]
    own: dict[str, Any] = {"block_length": row["block_length"], "early_exit": False}
    found = pair.split.decode([canvas(pair.split, row)], strategy(row), **own)[0]
    assert found.token_ids[len(row["prompt"]) :] == row["output"]


def test_what_is_stored_goes_when_nothing_builds_on_it() -> None:
    lm = load(str(GOLDENS / "llada-1"), device="cpu")
    assert isinstance(lm.model, TransformersLM)
    follower = FollowingLM(lm.model)
    rows = Rows.packed([np.arange(5)], [np.arange(0)], 0, "cpu")
    plain = _call(rows)
    places = [np.arange(5)]
    follower.run(replace(plain, places=places, keep=[np.arange(3)], stored=[None], names=[1]))
    follower.run(replace(plain, places=[np.arange(3, 8)], keep=[np.arange(5)], stored=[(1, 2)], names=[2]))
    assert [own.size for own in follower._stored.values()] == [3, 5]
    follower.run(replace(plain, dropped=[1, 7]))
    assert list(follower._stored) == [2]
