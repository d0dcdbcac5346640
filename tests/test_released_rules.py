"""``released=`` against a plain transcript of the released rules, on models and problems that nobody chose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from soar_dlm.options import Options
from soar_dlm.search.candidate import Candidate, Pool
from soar_dlm.search.soar import Soar
from tests import released_rules
from tests.crafted import CraftedLM, decode_one, neighbourly_lm, random_lm

SEEDS = range(500)
"""Each is a model of its own, decoded by both presets with blocks of 3, 5 and 8 or none and beams of 1 to 4."""


def setting(seed: int) -> dict[str, Any]:
    """A random setting; thresholds are where confidences of these models are often on either side."""
    rng = random.Random(seed)
    metric = rng.choice(["probability", "probability", "margin", "neg_entropy"])
    thresholds = {"probability": (0.7, 0.9, 0.95, 0.97), "margin": (0.6, 0.8, 0.9), "neg_entropy": (-0.5, -0.2, -0.1)}
    return {
        "prompt": [rng.randrange(8) for _ in range(rng.randint(1, 4))],
        "length": rng.randint(8, 24),
        "released": rng.choice(["llada", "llada", "dream"]),
        "beam_size": rng.choice([1, 2, 2, 3, 3, 4, 4]),
        "threshold": rng.choice(thresholds[metric]),
        "metric": metric,
        "block_length": rng.choice([3, 5, 8, None]),
        "scale": rng.choice([1.5, 2.5, 4.0]),
        "pull": rng.choice([None, 1.5, 2.5]),
    }


def made_model(chosen: dict[str, Any], seed: int) -> CraftedLM:
    """Predictions that have nothing to do with each other, or that neighbours shift."""
    if chosen["pull"] is None:
        return random_lm(seed, scale=chosen["scale"])
    return neighbourly_lm(seed, len(chosen["prompt"]) + chosen["length"], scale=chosen["scale"], pull=chosen["pull"])


def probabilities(model: CraftedLM) -> released_rules.Distribution:
    def distribution(row: list[int], position: int) -> Any:
        logits = np.asarray(model.rule(row, position), dtype=np.float64)
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    return distribution


def library_and_transcript(chosen: dict[str, Any], seed: int) -> tuple[list[int], list[int]]:
    model = made_model(chosen, seed)
    if chosen["released"] == "dream":
        chosen = {**chosen, "block_length": None}  # the released Dream code has no blocks
    soar = Soar(chosen["beam_size"], chosen["threshold"], metric=chosen["metric"], released=chosen["released"])
    options = Options(block_length=chosen["block_length"], early_exit=False)
    ours = decode_one(model, chosen["prompt"], chosen["length"], soar, options)
    names = ("released", "beam_size", "threshold", "metric", "block_length")
    theirs = released_rules.decode(
        chosen["prompt"],
        chosen["length"],
        probabilities(model),
        model.mask,
        **{name: chosen[name] for name in names},
    )
    return list(ours.tokens[len(chosen["prompt"]) :]), theirs


@pytest.mark.parametrize("part", range(10))
def test_the_library_decodes_as_the_transcript_does(part: int) -> None:
    for seed in SEEDS[part::10]:
        chosen = setting(seed)
        ours, theirs = library_and_transcript(chosen, seed)
        assert ours == theirs, f"seed {seed}: {chosen}"


def test_the_random_settings_cover_what_they_should() -> None:
    found = [setting(seed) for seed in SEEDS]
    llada = {(one["block_length"], one["beam_size"]) for one in found if one["released"] == "llada"}
    assert llada == {(block, beam) for block in (3, 5, 8, None) for beam in (1, 2, 3, 4)}
    assert {one["beam_size"] for one in found if one["released"] == "dream"} == {1, 2, 3, 4}


def k_best(ranked: Sequence[Candidate], previous: Candidate, any_parallel: bool) -> Pool:
    new = [candidate for candidate in ranked if candidate.last.mode != "kept"][:2]
    return Pool(ranked, previous, any(candidate.last.mode == "parallel" for candidate in new))


def test_counting_only_the_best_new_candidates_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soar_dlm.search.beam.Pool", k_best)
    settings = ((seed, setting(seed)) for seed in SEEDS)
    chosen = [(seed, one) for seed, one in settings if one["released"] == "llada" and one["beam_size"] > 1]
    results = (library_and_transcript(one, seed) for seed, one in chosen)
    assert any(ours != theirs for ours, theirs in results)
