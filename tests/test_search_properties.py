"""What must hold for every model: hypothesis draws random models, canvases and settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Decoding, Request
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.options import Options
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from tests.closeness import about
from tests.crafted import CraftedLM, canvas_request, decode, decode_one, random_lm

SEEDS = st.integers(0, 10**6)
LENGTHS = st.integers(1, 8)
PROMPTS = st.lists(st.integers(0, 8), max_size=5)  # 8 is the mask token: a prompt may contain it
METRICS = st.sampled_from(["probability", "margin", "neg_entropy"])
BEAMS = st.integers(1, 4)
CHANCES = st.floats(0, 1)
STRATEGIES: st.SearchStrategy[Strategy] = st.one_of(
    st.builds(Greedy, tokens_per_step=st.integers(1, 3), metric=METRICS),
    st.builds(AdaptiveParallel, threshold=CHANCES, metric=st.sampled_from(["probability", "margin"])),
    st.builds(PositionBeam, beam=BEAMS, tokens_per_step=st.integers(1, 3), metric=METRICS),
    st.builds(Soar, beam=BEAMS, threshold=CHANCES, released=st.sampled_from([None, "llada", "dream"])),
    st.builds(Soar, beam=BEAMS, threshold=st.floats(-3, 0), metric=st.just("neg_entropy")),
)
OPTIONS = st.builds(
    Options,
    block_length=st.none() | st.integers(1, 9),
    early_exit=st.booleans(),
    temperature=st.sampled_from([0.0, 0.0, 0.7]),
    cfg_scale=st.sampled_from([0.0, 0.0, 1.5]),
    seed=st.integers(0, 5),
    suppress_tokens=st.lists(st.integers(0, 3), max_size=2, unique=True),
)


def same_course(one: Decoding, two: Decoding) -> bool:
    return (one.tokens, one.steps, one.forwards) == (two.tokens, two.steps, two.forwards)


@given(SEEDS, PROMPTS, LENGTHS, METRICS, st.integers(1, 3), OPTIONS)
def test_beam_one_without_threshold_is_greedy(
    seed: int, prompt: list[int], length: int, metric: str, n: int, options: Options
) -> None:
    model = random_lm(seed, ends=(3,))
    beam = decode_one(model, prompt, length, PositionBeam(beam=1, tokens_per_step=n, metric=metric), options)
    greedy = decode_one(model, prompt, length, Greedy(tokens_per_step=n, metric=metric), options)
    assert same_course(beam, greedy)
    assert beam.trace == about(greedy.trace)


@given(SEEDS, PROMPTS, LENGTHS, CHANCES, OPTIONS)
def test_soar_with_beam_one_is_adaptive_parallel(
    seed: int, prompt: list[int], length: int, threshold: float, options: Options
) -> None:
    model = random_lm(seed, ends=(3,))
    soar = decode_one(model, prompt, length, Soar(beam=1, threshold=threshold), options)
    adaptive = decode_one(model, prompt, length, AdaptiveParallel(threshold=threshold), options)
    assert same_course(soar, adaptive)
    assert soar.trace == about(adaptive.trace)


@given(SEEDS, PROMPTS, LENGTHS, BEAMS, METRICS, OPTIONS)
def test_threshold_above_every_confidence_is_position_beam(
    seed: int, prompt: list[int], length: int, beam: int, metric: str, options: Options
) -> None:
    model = random_lm(seed, ends=(3,))
    never = 0.0 if metric == "neg_entropy" else 1.0
    soar = decode_one(model, prompt, length, Soar(beam=beam, threshold=never, metric=metric), options)
    search = decode_one(model, prompt, length, PositionBeam(beam=beam, metric=metric), options)
    assert same_course(soar, search)
    assert soar.trace == about(search.trace)


@given(SEEDS, st.lists(st.integers(0, 8), min_size=2, max_size=9), STRATEGIES, OPTIONS, st.data())
def test_only_the_positions_to_fill_change_and_masks_never_grow(
    seed: int, canvas: list[int], strategy: Strategy, options: Options, data: st.DataObject
) -> None:
    fill = data.draw(st.lists(st.integers(0, len(canvas) - 1), unique=True, min_size=1))
    model = random_lm(seed, ends=(3,))
    engine = Engine(model)
    engine.add(Request(canvas, fill, strategy, options))
    left = len(fill)
    for event in engine.run():
        assert event.best is not None
        kept = [at for at in range(len(canvas)) if at not in fill]
        assert event.best.tokens[kept].tolist() == [canvas[at] for at in kept]
        assert not event.best.open[kept].any()
        assert event.record is not None
        most_masked = max(entry.left for entry in event.record.beam)
        assert most_masked <= left
        assert all(entry.left < left for entry in event.record.beam if entry.mode != "kept")
        left = most_masked
    assert event.best is not None
    assert not event.best.open.any()
    assert event.decoding is not None
    assert event.decoding.steps <= len(fill)


@given(SEEDS, st.lists(st.tuples(PROMPTS, LENGTHS, STRATEGIES, OPTIONS), min_size=2, max_size=6), st.data())
@settings(max_examples=40)
def test_batch_order_batch_size_and_padding_change_no_output(
    seed: int, specs: list[tuple[list[int], int, Strategy, Options]], data: st.DataObject
) -> None:
    model = random_lm(seed, ends=(3,))
    requests = [canvas_request(model, *spec) for spec in specs]
    alone = [decode(model, [request])[0] for request in requests]
    order = data.draw(st.permutations(range(len(requests))))
    rows = data.draw(st.integers(1, 20))
    together = decode(model, [requests[place] for place in order], max_rows=rows)
    assert together == about([alone[place] for place in order])


@given(SEEDS, PROMPTS, LENGTHS, STRATEGIES, OPTIONS)
def test_traces_tell_how_the_answer_came_about(
    seed: int, prompt: list[int], length: int, strategy: Strategy, options: Options
) -> None:
    model = random_lm(seed, ends=(3,))
    decoding = decode_one(model, prompt, length, strategy, options)
    canvas = [*prompt, *[None] * length]
    for entry in decoding.trace.path():
        for position, token in zip(entry.positions, entry.tokens, strict=True):
            assert canvas[position] is None
            canvas[position] = token
    filled = [token if token is not None else model.facts.filler_id for token in canvas]
    assert filled == list(decoding.tokens)
    confidence = decoding.trace.confidence_at()
    assert len(confidence) == decoding.written
    assert np.isclose(np.mean(list(confidence.values())), decoding.mean_confidence, atol=1e-5)
    assert sum(record.forwards for record in decoding.trace) == decoding.forwards
    assert len(decoding.trace) == decoding.steps


def best_order(model: CraftedLM, canvas: list[int], measure: Callable[[list[int], int], tuple[int, float]]) -> float:
    """The greatest mean confidence over all orders of filling the canvas, by trying every one."""
    masked = [at for at, token in enumerate(canvas) if token == model.mask]
    best = -np.inf
    for order in itertools.permutations(masked):
        tokens, total = list(canvas), 0.0
        for position in order:
            token, confidence = measure(tokens, position)
            tokens[position] = token
            total += confidence
        best = max(best, total / len(order))
    return best


@given(SEEDS, st.lists(st.integers(0, 6), max_size=2), st.integers(1, 4))
@settings(max_examples=25)
def test_a_wide_enough_beam_finds_the_best_scoring_order(seed: int, prompt: list[int], length: int) -> None:
    model = random_lm(seed, vocab_size=8)
    canvas = [*prompt, *[model.mask] * length]

    def measure(tokens: list[int], position: int) -> tuple[int, float]:
        logits = np.array(model.rule(tokens, position)[:-1], dtype=np.float64)
        weights = np.exp(logits - logits.max())
        return int(weights.argmax()), float(weights.max() / weights.sum())

    orders = int(np.prod(range(1, length + 1)))
    found = decode_one(model, prompt, length, PositionBeam(beam=orders))
    assert np.isclose(found.trace.steps[-1].beam[0].rank, best_order(model, canvas, measure), atol=1e-5)


@given(SEEDS, PROMPTS, st.integers(2, 8), STRATEGIES)
def test_sampling_repeats_with_its_seed_and_varies_with_another(
    seed: int, prompt: list[int], length: int, strategy: Strategy
) -> None:
    model = random_lm(seed, scale=0.3)
    first, again = (
        decode_one(model, prompt, length, strategy, Options(temperature=1.0, seed=3, early_exit=False))
        for _ in range(2)
    )
    assert first == about(again)
    others = {
        decode_one(model, prompt, length, strategy, Options(temperature=1.0, seed=s, early_exit=False)).tokens
        for s in range(8)
    }
    assert len(others) > 1


@given(SEEDS, st.lists(st.integers(0, 4), max_size=5), LENGTHS, STRATEGIES)
def test_early_exit_fills_the_rest_with_eos_and_costs_no_more(
    seed: int, prompt: list[int], length: int, strategy: Strategy
) -> None:
    model = random_lm(seed, vocab_size=5, ends=(1, 2))
    decoding = decode_one(model, prompt, length, strategy, Options())
    generated = list(decoding.tokens[len(prompt) :])
    ends = [at for at, token in enumerate(generated) if token in (1, 2)]
    assert decoding.finish_reason == ("stop" if ends else "length")
    assert decoding.steps <= length
    committed = decoding.trace.confidence_at()
    uncommitted = [at for at in range(length) if len(prompt) + at not in committed]
    assert all(generated[at] == 1 for at in uncommitted)
    assume(uncommitted)
    assert ends[0] < min(uncommitted), "only what comes after an end token may be filled in"


def test_joining_late_and_leaving_early_change_no_other_request() -> None:
    model = random_lm(5)
    strategy = PositionBeam(beam=3)
    requests = [canvas_request(model, [1] * n, 6, strategy) for n in (1, 4, 2)]
    alone = [decode(model, [request])[0] for request in requests]
    engine = Engine(model, EngineSettings(max_rows=99))
    engine.add(requests[0])
    engine.step()
    engine.step()
    second, third = engine.add(requests[1]), engine.add(requests[2])
    engine.step()
    engine.cancel(third)
    done = {event.ticket: event.decoding for event in engine.run() if event.decoding is not None}
    assert done == about({0: alone[0], second: alone[1]})
