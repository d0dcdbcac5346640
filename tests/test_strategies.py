"""The rules of the search on crafted beliefs, one rule a test."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.options import Options
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.beam import advance, merge
from soar_dlm.search.candidate import Candidate, Commit, Mode, Pool
from soar_dlm.search.catalogue import STRATEGIES, as_strategy, make_strategy
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.question import Place, Reading
from soar_dlm.search.rules import PAPER, RELEASED
from soar_dlm.search.soar import Soar
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy
from tests.crafted import decode_one, reading_of, scripted_lm

BELIEFS = {2: {1: 0.8}, 3: {2: 0.97}, 4: {3: 0.6}, 5: {4: 0.99}}


def committed(strategy: Strategy, confidence: list[float]) -> list[tuple[str, list[int]]]:
    proposals = strategy.propose(reading_of(confidence))
    return [(proposal.mode, proposal.picks.tolist()) for proposal in proposals]


def test_greedy_takes_the_most_confident() -> None:
    assert committed(Greedy(), [0.2, 0.9, 0.9, 0.1]) == [("search", [1])]
    assert committed(Greedy(tokens_per_step=3), [0.2, 0.9, 0.9, 0.1]) == [("search", [1, 2, 0])]
    assert committed(Greedy(tokens_per_step=9), [0.2, 0.9]) == [("search", [1, 0])]


def test_parallel_mode_commits_all_strictly_above_the_threshold() -> None:
    assert committed(AdaptiveParallel(threshold=0.5), [0.5, 0.6, 0.4, 0.7]) == [("parallel", [1, 3])]
    assert committed(AdaptiveParallel(threshold=0.75), [0.5, 0.75, 0.4, 0.7]) == [("search", [1])]


def test_soar_searches_only_when_nothing_is_above_the_threshold() -> None:
    assert committed(Soar(beam=3, threshold=0.9), [0.5, 0.6, 0.4, 0.7]) == [
        ("search", [3]),
        ("search", [1]),
        ("search", [0]),
    ]
    assert committed(Soar(beam=3, threshold=0.55), [0.5, 0.6, 0.4, 0.7]) == [("parallel", [1, 3])]


@pytest.mark.parametrize("released", ["llada", "dream"])
def test_released_code_commits_at_most_five_in_parallel(released: str) -> None:
    confidence = [0.91, 0.99, 0.92, 0.98, 0.93, 0.97, 0.94]
    assert committed(Soar(threshold=0.9, released=released), confidence) == [("parallel", [1, 3, 4, 5, 6])]
    assert committed(Soar(threshold=0.9), confidence) == [("parallel", [0, 1, 2, 3, 4, 5, 6])]
    equals = [0.91] * 20 + [0.95] * 20
    assert committed(Soar(threshold=0.9, released=released), equals) == [("parallel", [20, 21, 22, 23, 24])]


def test_step_by_step_on_known_beliefs() -> None:
    model = scripted_lm(BELIEFS)
    greedy = decode_one(model, [0, 0], 4, Greedy())
    assert greedy.tokens == (0, 0, 1, 2, 3, 4)
    assert [entry.positions for entry in greedy.trace.path()] == [(5,), (3,), (2,), (4,)]
    adaptive = decode_one(model, [0, 0], 4, AdaptiveParallel(threshold=0.9))
    assert [entry.positions for entry in adaptive.trace.path()] == [(3, 5), (2,), (4,)]
    assert [entry.mode for entry in adaptive.trace.path()] == ["parallel", "search", "search"]
    assert adaptive.mean_confidence == pytest.approx((0.97 + 0.99 + 0.8 + 0.6) / 4, abs=1e-5)
    ranks = [record.beam[0].rank for record in adaptive.trace]
    assert ranks == pytest.approx([0.98, (0.98 + 0.8) / 2, (0.98 + 0.8 + 0.6) / 3], abs=1e-5)


def test_the_beam_narrows_after_a_parallel_step_and_widens_after_a_search_step() -> None:
    decoding = decode_one(scripted_lm(BELIEFS), [0, 0], 4, Soar(beam=2, threshold=0.9))
    assert [len(record.beam) for record in decoding.trace] == [1, 2, 1]
    assert decoding.forwards == 1 + 1 + 2
    assert decoding.steps == 3


def test_blocks_fill_from_the_left_and_the_last_may_be_shorter() -> None:
    options = Options(block_length=3, early_exit=False)
    decoding = decode_one(scripted_lm(BELIEFS), [0, 0], 4, Greedy(), options)
    assert [entry.positions for entry in decoding.trace.path()] == [(3,), (2,), (4,), (5,)]


def test_the_mask_token_is_never_committed() -> None:
    model = scripted_lm({1: {1: 0.3}})
    model.rule = lambda tokens, position: [0.0, 1.0, 0.0, 9.0]
    model._facts = type(model.facts)(4, 3, 0, 0)
    model.mask = 3
    decoding = decode_one(model, [0], 1, Greedy())
    assert decoding.tokens == (0, 1)
    e = math.e
    assert decoding.mean_confidence == pytest.approx(e / (e + 2), abs=1e-5), "and its share is not counted"
    for released in ("llada", "dream"):
        decoding = decode_one(model, [0], 1, Soar(threshold=1.0, released=released))
        assert decoding.tokens == (0, 3), "the released code does not ban it"


def candidate(tokens: list[int], score: float, steps: int, mode: Mode = "search", **more: float) -> Candidate:
    ids = np.array(tokens, dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    last = Commit(mode, 0, none, none, none.astype(np.float32), none)
    label = np.zeros_like(ids)
    sure = np.zeros_like(ids, dtype=np.float32)
    return Candidate(ids, ids == 9, label, label, none, sure, score, steps, last=last, **more)  # type: ignore[arg-type]


def test_merging_keeps_the_better_of_equal_sequences_and_the_earlier_on_ties() -> None:
    worse, better, tie = candidate([1, 9], 0.5, 1), candidate([1, 9], 1.4, 2), candidate([1, 9], 0.7, 1)
    other = candidate([2, 9], 0.1, 1)
    assert merge([worse, other, better, tie], PAPER.rank) == [better, other]


def test_an_open_mask_is_not_the_same_as_a_committed_mask_token() -> None:
    one, two = candidate([1, 9], 0.5, 1), candidate([1, 9], 0.5, 1)
    closed = replace(two, open=np.zeros(2, dtype=np.bool_))
    assert len(merge([one, closed], PAPER.rank)) == 2


@pytest.mark.parametrize(
    ("rules", "expected"), [(PAPER, 1.5 / 3), (RELEASED["llada"], 2.4), (RELEASED["dream"], 2.4 / 4)]
)
def test_ranks(rules: object, expected: float) -> None:
    tried = candidate([1, 2], 1.5, 3, confidence_sum=2.4, committed=4)
    assert rules.rank(tried) == pytest.approx(expected)  # type: ignore[attr-defined]
    first = candidate([1, 9], 0.7, 1, confidence_sum=0.7, committed=1)
    assert rules.rank(first) == pytest.approx(0.7)  # type: ignore[attr-defined]
    assert rules.rank(candidate([9, 9], 0, 0)) == 0, "nothing is committed yet"  # type: ignore[attr-defined]


def pool(*ranked: Candidate, any_parallel: bool | None = None) -> Pool:
    found = any(one.last.mode == "parallel" for one in ranked)
    return Pool(ranked, candidate([9, 9, 9], 0, 0), found if any_parallel is None else any_parallel)


def test_the_beam_collapses_when_the_best_new_candidate_is_parallel() -> None:
    searched, parallel = candidate([1, 9, 9], 0.9, 1), candidate([2, 9, 9], 0.8, 1, "parallel")
    kept = candidate([1, 2, 3], 0.99, 1, "kept")
    soar = Soar(beam=2, threshold=0.9)
    assert soar.width(pool(searched, parallel)) == 2
    assert soar.width(pool(parallel, searched)) == 1
    assert soar.width(pool(kept, parallel, searched)) == 1, "a kept candidate is not new, however good"
    assert soar.width(pool(kept, searched, parallel)) == 2
    assert soar.width(pool(kept)) == 2, "every new candidate merged into the kept one"


@pytest.mark.parametrize(("released", "needed"), [("llada", 1), ("dream", 2)])
def test_the_released_beams_collapse_when_any_is_parallel_and_the_best_has_gained(released: str, needed: int) -> None:
    soar = Soar(beam=2, threshold=0.9, released=released)
    parallel = candidate([2, 9, 9], 0.1, 1, "parallel")
    stuck, one, two = candidate([9, 9, 9], 0.9, 1), candidate([1, 9, 9], 0.9, 1), candidate([1, 2, 9], 0.9, 1)
    kept = candidate([1, 2, 3], 0.9, 1, "kept")
    for gained, best in enumerate((stuck, one, two)):
        assert soar.width(pool(best, one, one, parallel)) == (1 if gained >= needed else 2), "not only the K best count"
        assert soar.width(pool(best, one)) == 2, "nothing was parallel"
    assert soar.width(pool(kept, parallel)) == 1, "the best may be a kept one"
    assert soar.width(pool(two, any_parallel=True)) == 1, "a parallel candidate counts even if it merged into another"


def test_a_candidate_that_ends_early_has_no_open_position() -> None:
    filled = candidate([1, 9, 9], 0.9, 1).filled(7)
    assert (filled.tokens.tolist(), filled.open.tolist()) == ([1, 7, 7], [False, False, False])
    assert (filled.score, filled.steps) == (0.9, 1), "at no cost and no gain"


START = Start(candidate([9, 9], 0, 0), 9, lambda *_, **__: Place(0, 0))


def test_a_complete_candidate_keeps_its_rank_and_its_place() -> None:
    done, running = candidate([1, 1], 1.8, 2), candidate([1, 9], 0.9, 1)
    reading = Reading(np.array([1]), np.array([5]), np.array([0.3], dtype=np.float32))
    beam = advance([done, running], [None, reading], PositionBeam(beam=2), START)
    assert [entry.tokens.tolist() for entry in beam] == [[1, 1], [1, 5]]
    assert [entry.last.mode for entry in beam] == ["kept", "search"]
    assert [entry.last.positions.tolist() for entry in beam] == [[], [1]]
    assert [entry.last.confidence.size for entry in beam] == [0, 1]
    assert PAPER.rank(beam[0]) == PAPER.rank(done)


def test_a_step_whose_new_candidates_all_merge_into_complete_ones_goes_on() -> None:
    """Prevents a crash: the width rule used to look at the best new candidate when there was none left."""
    done, running = candidate([1, 5], 1.8, 2), candidate([1, 9], 0.3, 1)
    reading = Reading(np.array([1]), np.array([5]), np.array([0.3], dtype=np.float32))
    for strategy in (Soar(beam=2, threshold=0.2), Soar(threshold=0.2, released="llada"), PositionBeam()):
        beam = advance([done, running], [None, reading], strategy, START)
        assert [entry.tokens.tolist() for entry in beam] == [[1, 5]]


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (PositionBeam, {"beam": 0}, "beam must be a whole number of at least 1"),
        (PositionBeam, {"beam": 2.0}, "beam must be a whole number"),
        (PositionBeam, {"beam": True}, "beam must be a whole number"),
        (Greedy, {"tokens_per_step": 0}, "tokens_per_step"),
        (Soar, {"threshold": 1.5}, "from 0 to 1, not 1.5"),
        (Soar, {"threshold": "high"}, "threshold"),
        (Soar, {"threshold": math.nan}, "threshold"),
        (Soar, {"metric": "neg_entropy", "threshold": 0.9}, "at most 0, not 0.9"),
        (AdaptiveParallel, {"metric": "margin", "threshold": -0.1}, "from 0 to 1"),
        (Soar, {"metric": "margins"}, "Did you mean 'margin'"),
        (Soar, {"released": "lada"}, "Did you mean 'llada'"),
    ],
)
def test_bad_settings_are_refused_when_made(kind: type[Strategy], settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        kind(**settings)


@pytest.mark.parametrize(
    ("metric", "least", "most"), [("probability", 0, 1), ("margin", 0, 1), ("neg_entropy", -99, 0)]
)
def test_a_threshold_may_be_any_value_that_its_metric_takes(metric: str, least: float, most: float) -> None:
    for threshold in (least, most):
        assert Soar(metric=metric, threshold=threshold).threshold == threshold
    with pytest.raises(SettingsError, match=rf"^threshold \(metric {metric}\) must be"):
        Soar(metric=metric, threshold=most + 0.1)


def test_what_a_strategy_does_not_say_is_the_papers_choice() -> None:
    assert Soar() == Soar(beam=2, threshold=None, metric="probability", released=None)
    assert PositionBeam() == PositionBeam(beam=2, tokens_per_step=1, metric="probability")
    assert AdaptiveParallel() == AdaptiveParallel(threshold=None, metric="probability")
    assert Greedy() == Greedy(tokens_per_step=1, metric="probability")
    plain = Strategy()
    assert (plain.beam, plain.tokens_per_step, plain.threshold, plain.metric) == (1, 1, None, "probability")
    assert plain.rules is PAPER


def test_an_open_threshold_takes_the_models_value() -> None:
    values = {"probability": 0.95, "neg_entropy": -0.1}
    assert Soar().bound(values).threshold == 0.95
    assert Soar(metric="neg_entropy").bound(values).threshold == -0.1
    assert AdaptiveParallel(threshold=0.5).bound(values).threshold == 0.5
    assert PositionBeam().bound(values).threshold is None


def test_names_resolve_to_strategies() -> None:
    assert make_strategy("greedy", tokens_per_step=2) == Greedy(tokens_per_step=2)
    assert make_strategy("adaptive", threshold=0.8) == AdaptiveParallel(0.8)
    assert make_strategy("pbs", beam=4) == PositionBeam(4)
    assert make_strategy("pbs-parallel") == PositionBeam(2, tokens_per_step=2)
    assert make_strategy("soar", beam=3) == Soar(3)
    assert make_strategy("soar-llada", beam=3) == Soar(3, released="llada")
    assert make_strategy("soar-dream", beam=3) == Soar(3, released="dream")
    assert as_strategy(None) == Soar()
    assert as_strategy("greedy") == Greedy()
    assert set(STRATEGIES.names()) >= {"greedy", "adaptive", "pbs", "pbs-parallel", "soar", "soar-llada", "soar-dream"}


def test_a_registered_factory_must_make_a_strategy_and_has_only_the_settings_it_names() -> None:
    STRATEGIES.register("test-strategies-plain", lambda: Greedy(tokens_per_step=3))
    STRATEGIES.register("test-strategies-nothing", lambda: 3)  # type: ignore[arg-type, return-value]
    assert make_strategy("test-strategies-plain") == Greedy(tokens_per_step=3)
    with pytest.raises(UnknownName, match="setting of strategy 'test-strategies-plain' called 'beam'"):
        make_strategy("test-strategies-plain", beam=2)
    with pytest.raises(SettingsError, match=r"'test-strategies-nothing' is not a soar_dlm\.Strategy"):
        make_strategy("test-strategies-nothing")


def test_unknown_strategies_and_settings_suggest_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'greedy'"):
        make_strategy("gredy")
    with pytest.raises(UnknownName, match="Did you mean 'threshold'"):
        make_strategy("soar", treshold=0.9)
    with pytest.raises(UnknownName, match="tokens_per_step"):
        make_strategy("greedy", beam=2)
    with pytest.raises(SettingsError, match="must be a name or"):
        as_strategy(3)  # type: ignore[arg-type]
