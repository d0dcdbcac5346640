"""The states a variable-length model is trained on: what they hide, and that decoding them gives the answer."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.train.objective import already_hidden
from soar_dlm.train.variable_length import FROM_LEFT, LONGEST, RIGHT_LENGTH, State, draw_state

EXPAND, DELETE, MASK = 900, 901, 902

answers = st.lists(st.integers(0, 50), min_size=1, max_size=40)


def drawn(answer: list[int], seed: int) -> State:
    return draw_state(answer, EXPAND, DELETE, random.Random(seed))


@given(answers, st.integers(0, 10**6))
def test_following_the_targets_writes_the_answer(answer: list[int], seed: int) -> None:
    state = drawn(answer, seed)
    written = [token for token in state.targets if token not in (EXPAND, DELETE)]
    if EXPAND in state.targets:  # the last mask stands for all that is missing, two tokens or more
        assert state.targets[-1] == EXPAND
        assert state.targets.count(EXPAND) == 1
        assert written == answer[: len(written)]
        assert len(answer) - len(written) >= 2
    else:
        assert written == answer
        assert state.targets == written + [DELETE] * (len(state.targets) - len(written))


@given(answers, st.integers(0, 10**6))
def test_something_is_hidden_and_edits_are_never_shown(answer: list[int], seed: int) -> None:
    state = drawn(answer, seed)
    assert any(state.hidden)
    assert len(state.hidden) == len(state.targets) <= LONGEST
    assert all(hidden for token, hidden in zip(state.targets, state.hidden, strict=True) if token in (EXPAND, DELETE))


def starts(length: int) -> list[State]:
    """States of an answer of this length of which nothing is shown."""
    answer = list(range(length))
    return [state for seed in range(6000) if all((state := drawn(answer, seed)).hidden)]


def test_a_blank_starts_at_the_right_length_in_a_third_of_the_states_and_at_any_other() -> None:
    states = starts(12)
    right = [state for state in states if state.targets == list(range(12))]
    assert len(right) / len(states) == pytest.approx(RIGHT_LENGTH + (1 - RIGHT_LENGTH) * 0.019, abs=0.03)
    lengths = {len(state.targets) for state in states}
    assert min(lengths) == 1
    assert max(lengths) >= 60


def test_the_number_of_masks_says_nothing_of_the_length_of_the_answer() -> None:
    def share(length: int) -> float:
        others = [state for state in starts(length) if len(state.targets) != length]
        return sum(len(state.targets) <= 8 for state in others) / len(others)

    assert share(10) == pytest.approx(share(40), abs=0.04)


def test_an_answer_is_often_shown_from_its_left_up_to_some_place() -> None:
    answer = list(range(12))
    states = [drawn(answer, seed) for seed in range(4000)]
    grown = [state for state in states if state.hidden[0] is False and state.hidden == sorted(state.hidden)]
    assert len(grown) / len(states) > FROM_LEFT * 0.85
    assert {state.hidden.count(False) for state in grown} == set(range(1, 13))


def test_settled_states_are_masked_as_told() -> None:
    ids = torch.tensor([[7, 1, 2, EXPAND, 8], [7, 3, DELETE, 8, 8]])
    canvas = torch.tensor([[0, 1, 1, 1, 0], [0, 1, 1, 0, 0]]).bool()
    hidden = torch.tensor([[0, 0, 1, 1, 0], [0, 0, 1, 0, 0]]).bool()
    batch = already_hidden(ids, canvas, hidden, MASK)
    assert batch.inputs.tolist() == [[7, 1, MASK, MASK, 8], [7, 3, MASK, 8, 8]]
    assert batch.target.tolist() == [2, EXPAND, DELETE]
    assert batch.level.tolist() == pytest.approx([2 / 3, 1 / 2])
