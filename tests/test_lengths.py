"""Canvases that change their length: the edits themselves, and that decoding with them is bounded, local and exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.engine.request import Decoding, Request
from soar_dlm.errors import PromptTooLong, SettingsError
from soar_dlm.options import Options
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.beam import merge
from soar_dlm.search.candidate import Candidate, Commit, Proposal
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.lengths import Lengths
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.question import Reading
from soar_dlm.search.rules import mean_per_step
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from tests.closeness import about
from tests.crafted import CraftedLM, decode, random_lm

VOCABULARY = 9
EXPAND, DELETE, MASK = 6, 7, 8
STRATEGIES: tuple[Strategy, ...] = (
    Greedy(),
    Greedy(tokens_per_step=3),
    AdaptiveParallel(threshold=0.5),
    PositionBeam(beam=3),
    PositionBeam(beam=2, tokens_per_step=2),
    Soar(beam=2, threshold=0.6),
    Soar(beam=3, threshold=0.4, released="dream"),
)
any_strategy = st.sampled_from(STRATEGIES)
lengths = st.integers(1, 6)


def growing_lm(seed: int, scale: float = 3.0) -> CraftedLM:
    """Random predictions, expand and delete among them."""
    return random_lm(seed, VOCABULARY, scale, expand=EXPAND, delete=DELETE)


def constant_lm(choose: Sequence[int], context: int | None = None) -> CraftedLM:
    """Always surest of ``choose[length of the row % len(choose)]``, and of the leftmost position most."""

    def rule(tokens: list[int], position: int) -> list[float]:
        logits = [0.0] * VOCABULARY
        logits[choose[len(tokens) % len(choose)]] = 8.0 - position / 100
        return logits

    return CraftedLM(rule, VOCABULARY, context=context, expand=EXPAND, delete=DELETE)


def text_with_blanks(pieces: Sequence[Sequence[int]], sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """A canvas of the pieces with blanks between them, and the positions to fill."""
    canvas, fill = list(pieces[0]), list[int]()
    for size, piece in zip(sizes, pieces[1:], strict=True):
        fill += range(len(canvas), len(canvas) + size)
        canvas += [MASK] * size + list(piece)
    return canvas, fill


def infill(
    model: CraftedLM,
    pieces: Sequence[Sequence[int]],
    sizes: Sequence[int],
    strategy: Strategy,
    max_length: int | None,
    options: Options | None = None,
) -> Decoding:
    canvas, fill = text_with_blanks(pieces, sizes)
    return decode(model, [Request(canvas, fill, strategy, options or Options(), max_length=max_length)])[0]


def start(tokens: Sequence[int], blank: Sequence[int], expansions: Sequence[int] = (0,)) -> Candidate:
    ids, label = np.array(tokens), np.array(blank)
    sure = np.zeros(len(ids), dtype=np.float32)
    return Candidate(ids, (ids == MASK) & (label >= 0), label, np.minimum(label, 0), np.array(expansions), sure)


def reading(positions: Sequence[int], tokens: Sequence[int], confidence: Sequence[float]) -> Reading:
    return Reading(np.array(positions), np.array(tokens), np.array(confidence, dtype=np.float32))


def committed(candidate: Candidate, tokens: dict[int, int]) -> Candidate:
    """The candidate just after these commits, before the edits."""
    positions, values = np.array(list(tokens)), np.array(list(tokens.values()))
    canvas, is_open = candidate.tokens.copy(), candidate.open.copy()
    canvas[positions], is_open[positions] = values, False
    last = Commit("parallel", 0, positions, values, np.ones(len(tokens), np.float32), np.ones_like(positions))
    return replace(candidate, tokens=canvas, open=is_open, last=last)


def edit_one_by_one(tokens: list[int], commits: dict[int, int]) -> list[int]:
    """The same edits made by hand, right to left."""
    result = list(tokens)
    for position in sorted(commits, reverse=True):
        token = commits[position]
        result[position : position + 1] = {EXPAND: [MASK, MASK], DELETE: []}.get(token, [token])
    return result


@given(st.lists(st.sampled_from([1, 2, EXPAND, DELETE, None]), min_size=1, max_size=8))
def test_edits_of_one_step_are_those_made_right_to_left(choices: list[int | None]) -> None:
    commits = {place + 2: token for place, token in enumerate(choices) if token is not None}
    canvas = [1, 2, *[MASK] * len(choices), 3]
    blank = [-1, -1, *[0] * len(choices), -1]
    if not commits:
        return
    edited = Lengths(EXPAND, DELETE, MASK, np.array([99])).applied(committed(start(canvas, blank), commits))
    assert edited.tokens.tolist() == edit_one_by_one(canvas, commits)
    assert edited.tokens[edited.blank < 0].tolist() == [1, 2, 3], "the text around the blank only moves"
    assert edited.tokens[edited.open].tolist() == [MASK] * int(edited.open.sum())
    assert edited.expansions.tolist() == [list(commits.values()).count(EXPAND)]
    assert edited.last.sizes.tolist() == [{EXPAND: 2, DELETE: 0}.get(token, 1) for token in commits.values()]


def test_only_the_surest_expands_are_made_where_there_is_room_for_few() -> None:
    lengths = Lengths(EXPAND, DELETE, MASK, np.array([5, 9]))
    candidate = start([MASK, MASK, MASK, 1, MASK, MASK], [0, 0, 0, -1, 1, 1], [0, 0])
    found = reading([0, 1, 2, 4, 5], [EXPAND] * 5, [0.7, 0.9, 0.8, 0.6, 0.6])
    assert lengths.affordable(candidate, found, np.arange(5)).tolist() == [1, 2, 3, 4]
    spent = start([MASK, MASK, MASK, 1, MASK, MASK], [0, 0, 0, -1, 1, 1], [4, 0])
    assert lengths.room(spent).tolist() == [1, 7], "a blank expands only so often in all"
    assert lengths.affordable(spent, found, np.arange(5)).tolist() == [1, 3, 4]


def test_equally_sure_expands_are_made_from_the_left() -> None:
    lengths = Lengths(EXPAND, DELETE, MASK, np.array([45]))
    found = reading(range(40), [EXPAND] * 40, [0.5] * 20 + [0.6] * 20)
    assert lengths.affordable(start([MASK] * 40, [0] * 40), found, np.arange(40)).tolist() == [20, 21, 22, 23, 24]


def test_a_blank_that_was_deleted_whole_still_counts() -> None:
    lengths = Lengths(EXPAND, DELETE, MASK, np.array([5, 9]))
    assert lengths.room(start([MASK, MASK, 1], [0, 0, -1], [0, 1])).tolist() == [3, 8]


def test_candidates_of_different_history_and_equal_content_merge() -> None:
    grown = start([1, MASK, MASK, MASK, 2], [-1, 0, 0, 0, -1], [1])
    same = start([1, MASK, MASK, MASK, 2], [-1, 0, 0, 0, -1], [0])
    shorter = start([1, MASK, MASK, 2], [-1, 0, 0, -1])
    elsewhere = start([1, MASK, MASK, MASK, 2], [-1, 0, 0, 0, 0])
    assert merge([grown, same, shorter, elsewhere], mean_per_step) == [grown, shorter, elsewhere]


@given(st.integers(0, 200), any_strategy, st.lists(lengths, min_size=1, max_size=3), st.sampled_from([None, 2]))
def test_without_expand_and_delete_nothing_differs_from_a_fixed_length(
    seed: int, strategy: Strategy, sizes: list[int], block_length: int | None
) -> None:
    pieces = [[1], *[[place + 2] for place in range(len(sizes))]]
    options = Options(block_length=block_length, suppress_tokens=(EXPAND, DELETE))
    model = growing_lm(seed)
    variable = infill(model, pieces, sizes, strategy, max_length=12, options=options)
    fixed = infill(model, pieces, sizes, strategy, max_length=None, options=options)
    assert variable.tokens == fixed.tokens
    assert variable.trace == about(fixed.trace)


@given(st.integers(0, 300), any_strategy, st.lists(lengths, min_size=1, max_size=3), st.integers(0, 5))
def test_text_outside_stays_and_no_blank_outgrows_its_limit(
    seed: int, strategy: Strategy, sizes: list[int], more: int
) -> None:
    pieces = [[1, 2], *[[place % 4 + 1, EXPAND] for place in range(len(sizes))]]
    limit = max(sizes) + more
    unwritten = {EXPAND, DELETE, MASK} if strategy.rules.bans_mask else {EXPAND, DELETE}
    decoding = infill(growing_lm(seed), pieces, sizes, strategy, limit)
    inside = {place for blank in decoding.blanks for place in blank}
    outside = [token for place, token in enumerate(decoding.tokens) if place not in inside]
    assert outside == [token for piece in pieces for token in piece], "even where it holds the expand token"
    assert len(decoding.blanks) == len(sizes)
    for blank in decoding.blanks:
        assert len(blank) <= limit
        assert not {decoding.tokens[place] for place in blank} & unwritten
    assert decoding.steps <= sum(sizes) + 2 * limit * len(sizes)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("block_length", [None, 2])
@pytest.mark.parametrize(
    "choose", [[EXPAND], [DELETE], [EXPAND, DELETE], [EXPAND, EXPAND, DELETE]], ids=["expand", "delete", "turns", "two"]
)
def test_stubborn_models_come_to_an_end(choose: list[int], strategy: Strategy, block_length: int | None) -> None:
    limit, size = 10, 4
    options = Options(block_length=block_length)
    decoding = infill(constant_lm(choose), [[1], [2]], [size], strategy, limit, options)
    blocks = 1 if block_length is None else size // block_length
    assert decoding.steps <= size + 2 * limit * blocks
    assert len(decoding.blanks[0]) <= limit


def test_finish_reasons_say_why_a_blank_is_as_long_as_it_is() -> None:
    full = infill(constant_lm([EXPAND]), [[1], [2]], [2], Greedy(), 5)
    assert (full.finish_reason, len(full.blanks[0])) == ("length", 5)
    emptied = infill(constant_lm([DELETE]), [[1], [2]], [3], Greedy(), 5)
    assert (emptied.finish_reason, emptied.tokens) == ("stop", (1, 2))
    turning = infill(constant_lm([EXPAND, DELETE]), [[1], [2]], [2], Greedy(), 5)
    assert turning.finish_reason == "budget"


@pytest.mark.parametrize(("choose", "reason"), [([EXPAND], "length"), ([EXPAND, DELETE], "budget"), ([1], "stop")])
def test_the_finish_reason_of_several_blanks_is_that_of_the_one_that_could_not_grow(
    choose: list[int], reason: str
) -> None:
    def rule(tokens: list[int], position: int) -> list[float]:
        token = 3 if position == len(tokens) - 2 else choose[len(tokens) % len(choose)]
        return [8.0 if other == token else 0.0 for other in range(VOCABULARY)]

    model = CraftedLM(rule, VOCABULARY, expand=EXPAND, delete=DELETE)
    decoding = infill(model, [[1], [2], [4]], [2, 1], Greedy(), 5)
    assert decoding.finish_reason == reason
    assert len(decoding.blanks[1]) == 1, "the other blank has room"


@given(st.integers(0, 60), any_strategy, st.sampled_from([0.0, 1.0]))
def test_a_batch_gives_what_each_request_gives_alone(seed: int, strategy: Strategy, temperature: float) -> None:
    model = growing_lm(seed)
    requests = []
    for place in range(16):
        canvas, fill = text_with_blanks([[1] * (place % 5 + 1), [2]], [place % 4 + 1])
        options = Options(temperature=temperature, seed=place)
        requests.append(Request(canvas, fill, strategy, options, max_length=8))
    assert decode(model, requests) == about([decode(model, [request])[0] for request in requests])


@pytest.mark.parametrize("seed", range(3))
def test_candidates_that_differ_in_length_are_sampled_together(seed: int) -> None:
    options = Options(temperature=1.0, seed=seed, early_exit=False)
    decoding = infill(growing_lm(seed), [[1], [2]], [3], PositionBeam(beam=3), 8, options)
    assert len({sum(entry.sizes) for record in decoding.trace for entry in record.beam}) > 1, "some grew, some did not"
    assert not {EXPAND, DELETE, MASK} & {decoding.tokens[place] for place in decoding.blanks[0]}


@given(st.integers(0, 100), any_strategy)
def test_the_trace_replays_to_the_answer(seed: int, strategy: Strategy) -> None:
    canvas, fill = text_with_blanks([[1, 2], [3], [4]], [3, 2])
    decoding = decode(growing_lm(seed), [Request(canvas, fill, strategy, Options(early_exit=False), max_length=7)])[0]
    tokens = list(canvas)
    for entry in decoding.trace.path():
        assert entry.sizes == tuple({EXPAND: 2, DELETE: 0}.get(token, 1) for token in entry.tokens)
        tokens = edit_one_by_one(tokens, dict(zip(entry.positions, entry.tokens, strict=True)))
    assert tuple(tokens) == decoding.tokens
    inside = {place for blank in decoding.blanks for place in blank}
    assert set(decoding.trace.confidence_at()) == inside


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SettingsError, match="no expand and delete"):
        infill(random_lm(0), [[1], [2]], [2], Greedy(), 5)
    with pytest.raises(SettingsError, match="no expand and delete"):
        infill(random_lm(0, expand=EXPAND), [[1], [2]], [2], Greedy(), 5)
    with pytest.raises(SettingsError, match="max_length is 2, but a blank starts with 3"):
        infill(growing_lm(0), [[1], [2], [3]], [1, 3], Greedy(), 2)
    with pytest.raises(SettingsError, match=r"^max_length must be a whole number of at least 1"):
        infill(growing_lm(0), [[1], [2]], [1], Greedy(), 0)
    with pytest.raises(PromptTooLong, match="grow to 12 tokens"):
        infill(constant_lm([DELETE], context=10), [[1], [2]], [3], Greedy(), 10)


def test_expand_is_no_word_on_a_canvas_of_fixed_length() -> None:
    decoding = infill(constant_lm([EXPAND]), [[1], [2]], [3], Greedy(), None)
    assert EXPAND not in decoding.tokens


def test_edits_are_not_counted_as_written() -> None:
    """Tokens per forward is about text: neither an expand nor a delete writes any."""
    begin = start([1, MASK, MASK, MASK, 2], [-1, 0, 0, 0, -1])
    edits = Lengths(EXPAND, DELETE, MASK, np.array([9]))
    for token, written, kept in ((EXPAND, 0, 6), (DELETE, 0, 4), (3, 1, 5)):
        made = begin.commit(reading([1, 2, 3], [token] * 3, [0.5] * 3), Proposal(np.array([0]), "search"), 0)
        done = edits.applied(made)
        assert (done.written, done.committed, done.tokens.size) == (written, 1, kept)


def test_confidences_move_with_the_text_they_belong_to() -> None:
    begin = start([1, MASK, MASK, MASK, 2], [-1, 0, 0, 0, -1])
    edits = Lengths(EXPAND, DELETE, MASK, np.array([9]))
    said = reading([1, 2, 3], [EXPAND, DELETE, 3], [0.5, 0.25, 0.75])
    done = edits.applied(begin.commit(said, Proposal(np.array([0, 1, 2]), "parallel"), 0))
    assert done.tokens.tolist() == [1, MASK, MASK, 3, 2]
    assert np.isnan(done.confidence[1:3]).all()
    assert done.confidence[3] == 0.75
