"""The authors' own code is the referee: its logits and its decodings, token for token."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.lm import LM, load
from soar_dlm.models.masked_lm import Rows
from soar_dlm.options import Options
from soar_dlm.search.freedave import FreeDave
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy

GOLDENS = Path(__file__).parent / "goldens"
MODELS = ("llada-1", "llada-2", "dream-1", "dream-2")
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("llada_released.jsonl", "dream_released.jsonl")
    for line in (GOLDENS / name).read_text().splitlines()
]


@functools.cache
def model(name: str, attention: str = "sdpa") -> LM:
    return load(str(GOLDENS / name), device="cpu", attn_implementation=attention)


def strategy(row: dict[str, Any]) -> Strategy:
    if row["strategy"] == "greedy":
        return Greedy(metric=row["metric"])
    if row["strategy"] == "position_beam":
        return PositionBeam(beam=row["beam"], metric=row["metric"])
    return Soar(row["beam"], row["threshold"], metric=row["metric"], released=row["model"].split("-")[0])


def canvas(lm: LM, row: dict[str, Any]) -> list[int]:
    return [*row["prompt"], *[lm.model.facts.mask_id] * row["gen_length"]]


def decoded(rows: Sequence[dict[str, Any]], name: str) -> list[list[int]]:
    """Rows of one strategy and block length in one call of the public function."""
    lm = model(name)
    results = lm.decode(
        [canvas(lm, row) for row in rows], strategy(rows[0]), block_length=rows[0]["block_length"], early_exit=False
    )
    return [result.token_ids[len(row["prompt"]) :] for row, result in zip(rows, results, strict=True)]


def test_there_are_144_golden_rows() -> None:
    assert len(ROWS) == 144


def logit_difference(name: str, padding: int, attention: str = "sdpa") -> float:
    """The largest difference from the published code's logits, with this many pads on the left.

    Dream's expected logits are as its model returns them; they are shifted to their positions here.
    """
    expected = load_file(GOLDENS / name / "expected_logits.safetensors")
    ids, logits = expected["input_ids"], expected["logits"]
    if name.startswith("dream"):
        logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
    rows, length = ids.shape
    lm = model(name, attention).model
    padded = torch.cat([torch.full((rows, padding), lm.facts.pad_id), ids], dim=1)
    row = torch.arange(rows).repeat_interleave(length)
    column = torch.arange(length).repeat(rows) + padding
    pads = torch.full((rows,), padding) if padding else None
    found = lm.logits(lm.hidden(Rows(padded, pads, row, column))).view_as(logits)
    return float((found - logits).abs().max())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_logits_equal_the_published_code(name: str, padding: int, attention: str) -> None:
    assert logit_difference(name, padding, attention) <= 1e-4


def rows_of(name: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["model"] == name]


def decoded_together(name: str) -> list[list[int]]:
    """All rows of a model at once: different prompts, lengths, blocks, strategies, beams, thresholds and metrics."""
    lm = model(name)
    rows = rows_of(name)
    engine = Engine(lm.model, EngineSettings(max_rows=1000))
    for row in rows:
        ids = canvas(lm, row)
        options = Options(block_length=row["block_length"], early_exit=False)
        engine.add(Request(ids, range(len(row["prompt"]), len(ids)), strategy(row), options))
    outputs = {event.ticket: event.decoding.tokens for event in engine.run() if event.decoding is not None}
    return [list(outputs[place][len(row["prompt"]) :]) for place, row in enumerate(rows)]


@pytest.mark.parametrize("name", MODELS)
def test_decodings_one_at_a_time(name: str) -> None:
    assert [decoded([row], name)[0] for row in rows_of(name)] == [row["output"] for row in rows_of(name)]


@pytest.mark.parametrize("name", MODELS)
def test_decodings_in_one_batch(name: str) -> None:
    assert decoded_together(name) == [row["output"] for row in rows_of(name)]


@pytest.mark.parametrize("drafts", [2, 6])
def test_lossless_drafts_give_the_greedy_goldens(drafts: int) -> None:
    rows = [row for row in ROWS if row["strategy"] == "greedy"]
    assert rows
    for row in rows:
        lm = model(row["model"])
        options: Any = {"block_length": row["block_length"], "early_exit": False}
        found = lm.decode([canvas(lm, row)], FreeDave(drafts=drafts, metric=row["metric"]), **options)[0]
        assert found.token_ids[len(row["prompt"]) :] == row["output"]


def test_the_paper_and_the_released_code_do_differ() -> None:
    """The presets are not the default under another name: on about half of these rows the two part ways."""
    rows = [row for row in ROWS if row["strategy"] == "soar"]
    same = 0
    for row in rows:
        lm = model(row["model"])
        paper = Soar(row["beam"], row["threshold"], metric=row["metric"])
        result = lm.decode([canvas(lm, row)], paper, block_length=row["block_length"], early_exit=False)[0]
        same += result.token_ids[len(row["prompt"]) :] == row["output"]
    assert 0.3 < same / len(rows) < 0.8
