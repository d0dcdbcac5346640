"""The field's rules on beliefs for which their conditions can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from soar_dlm.engine.request import Request
from soar_dlm.errors import SettingsError
from soar_dlm.options import Options
from soar_dlm.search.catalogue import STRATEGIES, make_strategy
from soar_dlm.search.core import Core
from soar_dlm.search.entropy_bound import EntropyBound
from soar_dlm.search.factor import Factor
from soar_dlm.search.frechet import Frechet
from soar_dlm.search.freedave import FreeDave
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.klass import Klass, divergences
from soar_dlm.search.lopa import Lopa
from soar_dlm.search.strategy import Strategy
from tests.crafted import CraftedLM, decode, decode_one, neighbourly_lm, random_lm, reading_of, scripted_lm


def picked(strategy: Strategy, confidence: list[float], **more: Any) -> tuple[str, list[int]]:
    (proposal,) = strategy.propose(reading_of(confidence, **more))
    return proposal.mode, proposal.picks.tolist()


def test_factor_needs_surer_positions_for_more_of_them() -> None:
    """(n + 1)(1 - c_n) for 0.9, 0.8, 0.7, 0.5 is 0.2, 0.6, 1.2, 2.5."""
    confidence = [0.5, 0.9, 0.7, 0.8]
    assert picked(Factor(1.0), confidence) == ("parallel", [1, 3])
    assert picked(Factor(0.75), [0.875, 0.75]) == ("parallel", [0]), "strictly below"
    assert picked(Factor(0.76), [0.875, 0.75]) == ("parallel", [0, 1])
    assert picked(Factor(1.3), confidence) == ("parallel", [1, 2, 3])
    assert picked(Factor(9.0), confidence) == ("parallel", [0, 1, 2, 3])
    assert picked(Factor(0.1), confidence) == ("search", [1]), "at least one token"
    assert picked(Factor(1.0), [0.3, 0.3]) == ("search", [0]), "the lower position on ties"


def test_frechet_bounds_the_joint_probability_from_below() -> None:
    """The bounds for 0.9, 0.8, 0.7, 0.5 are 0.9, 0.7, 0.4, -0.1; less the doubt about the last 0.8, 0.5, 0.1, -0.6."""
    confidence = [0.5, 0.9, 0.7, 0.8]
    assert picked(Frechet(0.25), confidence) == ("parallel", [1, 3])
    assert picked(Frechet(0.05), confidence) == ("parallel", [1, 2, 3])
    assert picked(Frechet(0.6), confidence) == ("parallel", [1])
    assert picked(Frechet(0.85), confidence) == ("search", [1])
    assert picked(Frechet(-0.7), confidence) == ("parallel", [0, 1, 2, 3])


def test_the_entropy_bound_sums_all_entropies_but_the_largest() -> None:
    """By rising entropy 0.02, 0.05, 0.06, 0.4 the sums without the last are 0, 0.02, 0.07, 0.13."""
    sure, entropy = [0.1, 0.2, 0.3, 0.4], [0.4, 0.02, 0.06, 0.05]
    assert picked(EntropyBound(0.1), sure, entropy=entropy) == ("parallel", [1, 2, 3])
    assert picked(EntropyBound(0.05), sure, entropy=entropy) == ("parallel", [1, 3])
    assert picked(EntropyBound(0.01), sure, entropy=entropy) == ("search", [1]), "one is always within the bound"
    assert picked(EntropyBound(0.2), sure, entropy=entropy) == ("parallel", [0, 1, 2, 3])
    assert picked(EntropyBound(0.0), [0.5, 0.5], entropy=[0.3, 0.3]) == ("search", [0])
    assert picked(EntropyBound(0.0), [0.5, 0.5], entropy=[0.0, 0.0]) == ("parallel", [0, 1])


def test_the_entropy_bound_decides_by_entropy_not_by_confidence() -> None:
    """Position 1 has the likelier token, position 2 the smaller entropy."""

    def rule(tokens: list[int], position: int) -> list[float]:
        spread = [0.7, *[0.3 / 7] * 7] if position == 1 else [0.65, 0.35 - 6e-6, *[1e-6] * 6]
        return [*np.log(spread).tolist(), -30.0]

    path = decode_one(CraftedLM(rule, 9), [1], 2, EntropyBound(0.01)).trace.path()
    assert [entry.positions for entry in path] == [(2,), (1,)]
    assert [entry.positions for entry in decode_one(CraftedLM(rule, 9), [1], 2, Greedy()).trace.path()] == [(1,), (2,)]


def test_divergences() -> None:
    now, before = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]), torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    found = divergences(now.clamp(min=1e-38).log(), before.clamp(min=1e-38).log())
    assert found == pytest.approx([0, 0.25 * math.log(0.5) + 0.75 * math.log(1.5)], abs=1e-6)


def calming_lm() -> CraftedLM:
    """Position 1 is taken first; 2 and 3 are always as sure; 4 changes with every token that is committed."""

    def rule(tokens: list[int], position: int) -> list[float]:
        masks = sum(token == 8 for token in tokens)
        sure = {1: 0.99, 2: 0.95, 3: 0.95, 4: 0.91 + 0.01 * masks}.get(position, 0.5)
        rest = (1 - sure) / 7
        moving = [rest * (1 + 0.9 * (-1) ** masks * (-1) ** token) for token in range(1, 8)]
        others = moving if position == 4 else [rest] * 7
        return [*np.log([sure, *others]).tolist(), -30.0]

    return CraftedLM(rule, 9)


def test_klass_commits_what_is_sure_and_has_stopped_moving() -> None:
    """Two calm steps need three readings; position 4 moves in each."""
    model = calming_lm()
    path = decode_one(model, [1], 6, Klass(sure=0.9, divergence=0.002, history=2)).trace.path()
    assert [entry.positions for entry in path][:3] == [(1,), (4,), (2, 3)]
    assert [entry.mode for entry in path][:3] == ["search", "search", "parallel"]
    path = decode_one(model, [1], 6, Klass(sure=0.9, divergence=0.002, history=1)).trace.path()
    assert [entry.positions for entry in path][:2] == [(1,), (2, 3)]
    path = decode_one(model, [1], 6, Klass(sure=0.9, divergence=9.0, history=1)).trace.path()
    assert [entry.positions for entry in path][:2] == [(1,), (2, 3, 4)]
    path = decode_one(model, [1], 6, Klass(sure=0.96, divergence=0.002, history=1)).trace.path()
    assert [len(entry.positions) for entry in path] == [1] * 6, "calm, but not sure enough"


def test_klass_starts_its_history_anew_where_positions_move() -> None:
    for seed in range(10):
        model = random_lm(seed, vocab_size=7, ends=(5,), expand=4, delete=5)
        request = Request([1, 6, 6, 6, 2], [1, 2, 3], Klass(sure=0.0, divergence=9.0, history=1), max_length=5)
        found = decode(model, [request])[0]
        assert (found.tokens[0], found.tokens[-1]) == (1, 2)
        assert 6 not in found.tokens


def lookahead_lm(first: int) -> CraftedLM:
    """After position ``first`` is filled the model is sure of everything; before that, of little."""

    def rule(tokens: list[int], position: int) -> list[float]:
        belief = {1: 0.6, 2: 0.55, 3: 0.5, 4: 0.45}[position]
        sure = 0.99 if tokens[first] != 8 else belief
        return [*np.log([sure, *[(1 - sure) / 7] * 7]).tolist(), -30.0]

    return CraftedLM(rule, 9)


@pytest.mark.parametrize("first", [1, 2, 3])
def test_lopa_takes_the_branch_that_leaves_the_model_surest(first: int) -> None:
    """The anchor fills position 1; branches add 2 or 3. Where 1 already makes it sure, the anchor survives."""
    found = decode_one(lookahead_lm(first), [0], 4, Lopa(threshold=0.9, branches=2))
    path = found.trace.path()
    assert path[0].positions == ((1,) if first == 1 else (1, first))
    assert [entry.mode for entry in path] == ["search", "parallel"]
    assert found.steps == 2, "what was read of the survivor is used again"
    assert found.forwards == 1 + 3
    assert [len(record.beam) for record in found.trace] == [3, 1]


def test_lopa_with_everything_above_the_threshold_needs_one_reading() -> None:
    found = decode_one(scripted_lm({1: {1: 0.95}, 2: {2: 0.96}}), [0], 2, Lopa(threshold=0.9))
    assert (found.tokens, found.steps, found.forwards) == ((0, 1, 2), 1, 1)


def test_lopa_ends_with_a_branch_that_is_full() -> None:
    """Two positions left, one anchored and one added: the branch has nothing open and is as sure as can be."""
    found = decode_one(scripted_lm({1: {1: 0.6}, 2: {2: 0.5}}), [0], 2, Lopa(threshold=0.9, branches=1))
    assert (found.tokens, found.steps, found.forwards) == ((0, 1, 2), 2, 2)
    assert found.trace.path()[-1].positions == (1, 2)


@pytest.mark.parametrize("drafts", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("metric", ["probability", "margin", "neg_entropy"])
def test_freedave_equals_greedy_token_for_token(drafts: int, metric: str) -> None:
    fewer = 0
    for seed in range(12):
        model = neighbourly_lm(seed, 9, scale=2.0, pull=0.4)
        model._facts = replace(model.facts, end_ids=(3,), filler_id=3)
        for options in (Options(), Options(early_exit=False), Options(block_length=3, early_exit=False)):
            greedy = decode_one(model, [1, 2], 7, Greedy(metric=metric), options)
            found = decode_one(model, [1, 2], 7, FreeDave(drafts=drafts, metric=metric), options)
            assert found.tokens == greedy.tokens
            assert [entry.positions for entry in found.trace.path()] == [
                entry.positions for entry in greedy.trace.path()
            ]
            assert found.mean_confidence == pytest.approx(greedy.mean_confidence, abs=1e-6)
            assert found.steps <= greedy.steps
            assert found.forwards >= greedy.forwards
            fewer += found.steps < greedy.steps
    assert fewer > 20 if drafts > 1 else fewer == 0


def test_freedave_equals_greedy_where_the_canvas_changes_its_length() -> None:
    for seed in range(20):
        model = random_lm(seed, vocab_size=7, ends=(5,), expand=4, delete=5)
        canvas, fill = [1, 6, 6, 6, 2], [1, 2, 3]
        found = [
            decode(model, [Request(canvas, fill, strategy, max_length=6)])[0]
            for strategy in (Greedy(), FreeDave(drafts=4))
        ]
        assert found[0].tokens == found[1].tokens


def test_core_takes_back_the_token_that_fits_worst() -> None:
    """Token 1 is committed first, with little confidence; when 3 and 4 are filled, token 2 would fit better."""

    def rule(tokens: list[int], position: int) -> list[float]:
        early, late = tokens[1] == 8, tokens[3] != 8 and tokens[4] != 8
        sure = 0.5 if early and not late else 0.95
        beliefs = {1: {2: 0.9} if late else {1: 0.6}, 2: {3: 0.3}, 3: {4: sure}, 4: {5: sure}, 5: {6: 0.2}}
        belief = beliefs[position]
        rest = (1 - sum(belief.values())) / (8 - len(belief))
        return [*np.log([belief.get(token, rest) for token in range(8)]).tolist(), -30.0]

    model = CraftedLM(rule, 9)
    assert decode_one(model, [0], 5, Greedy()).tokens == (0, 1, 3, 4, 5, 6)
    found = decode_one(model, [0], 5, Core(every=3, weak=1))
    assert found.tokens == (0, 2, 3, 4, 5, 6)
    assert [entry.mode for entry in found.trace.path()] == [*["search"] * 3, "reopened", *["search"] * 3]
    assert found.trace.path()[3].positions == (1,)
    found = decode_one(model, [0], 5, Core(every=3, weak=3))
    assert found.tokens == (0, 1, 3, 4, 5, 6), "3 and 4 are masked with it, so nothing speaks against it"


def test_core_reopens_one_position_and_counts_it_as_not_written() -> None:
    for seed in range(10):
        model = neighbourly_lm(seed, 10)
        found = decode_one(model, [1], 9, Core(every=2, weak=3))
        path = found.trace.path()
        opened = [entry for entry in path if entry.mode == "reopened"]
        assert all(len(entry.positions) == 1 for entry in opened)
        assert len(opened) >= 3
        assert found.written == 9
        assert found.forwards == 9 + 2 * len(opened)
        committed = {at: sure for at, sure in enumerate(found.confidence) if sure is not None}
        assert found.trace.confidence_at() == pytest.approx(committed, abs=1e-6)


def test_core_takes_nothing_back_where_it_has_only_deleted() -> None:
    """Once, a canvas that had only lost masks when it was to be checked ended the request."""

    def rule(tokens: list[int], position: int) -> list[float]:
        token = 5 if len(tokens) > 4 else position  # delete until two masks are left, then write
        return [3.0 if one == token else 0.0 for one in range(7)]

    model = CraftedLM(rule, 7, ends=(5,), expand=4, delete=5)
    request = Request([1, 6, 6, 6, 6, 3], [1, 2, 3, 4], Core(every=2, weak=3), max_length=6)
    found = decode(model, [request])[0]
    assert found.tokens == (1, 1, 2, 3)
    assert [entry.mode for entry in found.trace.path()].count("reopened") == 0


NAMES = ("factor", "frechet", "entropy-bound", "klass", "lopa", "freedave", "core", "deliberate")


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_fills_the_canvas_whatever_the_options(name: str) -> None:
    strategy = make_strategy(name)
    for seed in range(4):
        model = random_lm(seed, ends=(3,))
        for options in (
            Options(),
            Options(block_length=2, early_exit=False),
            Options(temperature=1.0, seed=seed),
            Options(cfg_scale=0.5),
        ):
            found = decode_one(model, [1], 6, strategy, options)
            assert model.mask not in found.tokens
            assert len(found.trace) == found.steps
            committed = {at: sure for at, sure in enumerate(found.confidence) if sure is not None}
            assert found.trace.confidence_at() == pytest.approx(committed, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_explained_in_a_line(name: str) -> None:
    kind = STRATEGIES.get(name)
    assert kind.__doc__ is not None
    assert len(kind.__doc__.partition("\n")[0]) > 40


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Factor, {"factor": 0.0}),
        (Frechet, {"delta": 2.0}),
        (EntropyBound, {"gamma": -0.1}),
        (Klass, {"sure": 1.1}),
        (Klass, {"divergence": -1.0}),
        (Klass, {"history": 0}),
        (Lopa, {"branches": 0}),
        (FreeDave, {"drafts": 0}),
        (Core, {"every": 1}),
        (Core, {"weak": 0}),
    ],
)
def test_settings_of_rules_are_checked(kind: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        kind(**settings)
