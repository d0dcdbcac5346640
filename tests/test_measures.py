"""Average confidence, AR-ness and modes over progress, on traces worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

import soar_dlm as soar
from soar_dlm.engine.scene import Scene
from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.evals.measures import average_confidence, confidences, global_ar_ness, mode_shares
from soar_dlm.search.candidate import Mode
from tests.test_playback import STRATEGIES

PIECES = {0: "", 1: "Two", 2: " and", 3: " two", 4: "\n", 5: "####", 6: " 4"}
FIRST = 10


def commit(
    step: int, positions: list[int], tokens: list[int], confidence: list[float], mode: Mode = "search", **more: Any
) -> StepRecord:
    """A step of a beam of one that commits tokens."""
    entry = BeamEntry(
        mode, 0, tuple(positions), tuple(tokens), tuple(confidence), 0.0, 99, (1,) * len(positions), step - 1
    )
    return StepRecord(step, 1, (entry,))


def traced(size: int, *steps: StepRecord) -> Trace:
    return Trace(steps, Scene(("prompt", ""), ((FIRST, size),), PIECES, (0,), 0))


def example() -> Trace:
    """Step 1 writes the line break, "#### 4" and an end; the others the reasoning, "Two and two"."""
    return traced(
        7,
        commit(1, [13, 14, 15, 16], [4, 5, 6, 0], [0.9, 0.99, 0.98, 1.0], "parallel"),
        commit(2, [11], [2], [0.6]),
        commit(3, [10, 12], [1, 3], [0.8, 0.7], "parallel"),
    )


def test_average_confidence_is_that_of_the_tokens_before_the_keyword() -> None:
    """By hand: "Two" 0.8, " and" 0.6, " two" 0.7, line break 0.9: 3.0 / 4."""
    assert average_confidence(example(), "####") == pytest.approx(0.75)


def test_without_a_keyword_the_whole_text_counts_but_not_its_end_token() -> None:
    """By hand: 0.8, 0.6, 0.7, 0.9, 0.99, 0.98, and not the 1.0 of the end token: 4.97 / 6."""
    assert average_confidence(example()) == pytest.approx(4.97 / 6)
    assert average_confidence(example(), "answer") == pytest.approx(4.97 / 6)


def test_a_token_that_holds_part_of_the_keyword_does_not_count() -> None:
    assert average_confidence(example(), "\n####") == pytest.approx(2.1 / 3)
    assert average_confidence(example(), "wo\n") == pytest.approx(1.4 / 2)


def test_a_text_without_tokens_has_no_average() -> None:
    assert average_confidence(traced(1, commit(1, [10], [0], [0.9])), "####") is None
    assert global_ar_ness(traced(1)) is None


def test_left_to_right_has_an_ar_ness_of_one() -> None:
    steps = [commit(number + 1, [FIRST + number], [1], [0.5]) for number in range(8)]
    for k in (1, 2, 5):
        assert global_ar_ness(traced(8, *steps), k) == 1.0


def test_right_to_left_has_an_ar_ness_of_what_is_left() -> None:
    """By hand, 8 positions, k = 5: the last 5 steps have at most 5 masks, so these 5 of 8 count."""
    steps = [commit(number + 1, [FIRST + 7 - number], [1], [0.5]) for number in range(8)]
    assert global_ar_ness(traced(8, *steps), 5) == pytest.approx(5 / 8)
    assert global_ar_ness(traced(8, *steps), 1) == pytest.approx(1 / 8)


def test_a_step_with_several_tokens_counts_by_their_share() -> None:
    """By hand, k = 2. Step 1: of 10, 11, 16 two are among the first two masks. Step 2: 13 is, after 12. Step 3: all."""
    trace = traced(
        7,
        commit(1, [10, 11, 16], [1, 1, 1], [0.5] * 3, "parallel"),
        commit(2, [13], [1], [0.5]),
        commit(3, [12, 14], [1, 1], [0.5] * 2, "parallel"),
        commit(4, [15], [1], [0.5]),
    )
    assert global_ar_ness(trace, 2) == pytest.approx((2 / 3 + 1 + 1 + 1) / 4)


def test_positions_that_have_moved_count_where_they_are() -> None:
    """An expand at 10 makes two masks of it, so 11 is still among the first two."""
    grown = BeamEntry("search", 0, (10,), (1,), (0.5,), 0.0, 3, (2,), 0)
    trace = traced(2, StepRecord(1, 1, (grown,)), commit(2, [11], [1], [0.5]), commit(3, [12], [1], [0.5]))
    assert global_ar_ness(trace, 1) == pytest.approx((1 + 0 + 0) / 3)
    assert global_ar_ness(trace, 2) == 1.0


def test_modes_over_progress() -> None:
    """By hand: before the keyword step 1 writes one token, step 2 one, step 3 two; so S = 3, and the progress of their
    tokens is 1/3, 2/3 and 1: in six bins the second, the fourth and the last.
    """
    found = mode_shares([example(), example()], bins=6, mark="####")
    assert [(one.search, one.parallel) for one in found] == [(0, 0), (0, 2), (0, 0), (2, 0), (0, 0), (0, 4)]
    assert [one.parallel_share for one in found] == [None, 1.0, None, 0.0, None, 1.0]
    assert (found[0].low, found[-1].high) == (0.0, 1.0)


def test_as_many_bins_as_steps_have_a_step_each() -> None:
    """7 / 25 * 25 is more than 7 in floating point, which put the seventh step into the eighth bin."""
    steps = [commit(number + 1, [FIRST + number], [1], [0.5]) for number in range(25)]
    assert [one.search for one in mode_shares([traced(25, *steps)], bins=25)] == [1] * 25


def test_confidences_of_all_tokens() -> None:
    assert confidences([example(), example()], "####") == pytest.approx([0.6, 0.6, 0.7, 0.7, 0.8, 0.8, 0.9, 0.9])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_the_measures_hold_for_every_strategy(strategy: soar.Strategy) -> None:
    lm = soar.load("random-llada")
    result = lm.generate("once", strategy, max_new_tokens=10, suppress_tokens=lm.end_token_ids)
    cells = confidences([result.trace])
    assert len(cells) == len(result.tokens)
    assert average_confidence(result.trace) == pytest.approx(
        sum(sure for sure in result.token_confidence if sure is not None) / len(result.tokens), abs=1e-5
    )
    ar_ness = global_ar_ness(result.trace)
    assert ar_ness is not None
    assert 0 <= ar_ness <= 1
    assert sum(one.search + one.parallel for one in mode_shares([result.trace])) == len(result.tokens)
