"""Stored keys and values: when they change nothing, what is shared, and what they cost."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

import soar_dlm as soar
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.forwards import LITTLE, PADDING, Forwards, Row
from soar_dlm.engine.request import Decoding, Request, empty_canvas
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError
from soar_dlm.models.masked_lm import Ints, Past, Rows, Stored
from soar_dlm.models.running import TransformersLM
from soar_dlm.options import Options
from soar_dlm.search.question import Search
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy
from tests.cache_reference import cached_beam
from tests.crafted import CraftedCachingLM, CraftedLM, decode, random_lm

EVERY_STRATEGY: list[Strategy] = [
    soar.Greedy(),
    soar.Greedy(3),
    soar.AdaptiveParallel(0.3),
    soar.PositionBeam(3),
    soar.PositionBeam(2, 2),
    soar.Soar(2, 0.6),
    soar.Soar(4, 0.8),
    soar.Factor(0.8),
    soar.Frechet(0.3),
    soar.EntropyBound(0.8),
    soar.Klass(0.5, 0.5),
    soar.Lopa(0.7, 2),
    soar.FreeDave(3),
    soar.Core(every=3, weak=4),
    soar.Deliberate(0.7, accept=0.0, tries=3, least=-20.0),
    soar.Deliberate(0.7, accept=0.0, tries=4, abreast=2, least=-20.0),
]
CACHED = st.fixed_dictionaries(
    {"cache": st.sampled_from(["prefix", "dual"]), "refresh_every": st.none() | st.integers(1, 4)}
)
OPTIONS = st.fixed_dictionaries(
    {
        "block_length": st.none() | st.integers(1, 7),
        "early_exit": st.booleans(),
        "temperature": st.sampled_from([0.0, 0.0, 0.7]),
        "cfg_scale": st.sampled_from([0.0, 0.0, 1.5]),
    }
)
CANVASES = st.lists(st.booleans(), min_size=1, max_size=14).filter(any)
"""Which positions of a canvas are to fill: blanks may be anywhere."""


def crafted(seed: int, **facts: Any) -> CraftedCachingLM:
    model = random_lm(seed, kind=CraftedCachingLM, **facts)
    assert isinstance(model, CraftedCachingLM)
    return model


def canvas(
    model: CraftedLM, is_blank: Sequence[bool], strategy: Strategy, options: dict[str, Any], most: int | None = None
) -> Request:
    fill = [place for place, blank in enumerate(is_blank) if blank]
    return Request([place % 5 for place in range(len(is_blank))], fill, strategy, Options(**options), max_length=most)


def written(found: Sequence[Decoding]) -> list[tuple[tuple[int, ...], int]]:
    return [(one.tokens, one.steps) for one in found]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(EVERY_STRATEGY),
    OPTIONS,
    st.lists(st.tuples(CANVASES, CACHED), min_size=1, max_size=16),
)
def test_a_model_that_stores_only_tokens_decodes_as_without_a_cache(
    seed: int, strategy: Strategy, options: dict[str, Any], requests: list[tuple[list[bool], dict[str, Any]]]
) -> None:
    """What is stored is what the canvas still shows, where it still shows it, for every strategy, blank and block."""
    model = crafted(seed, ends=(3,))
    plain = decode(model, [canvas(model, where, strategy, options) for where, _ in requests])
    cached = decode(model, [canvas(model, where, strategy, {**options, **own}) for where, own in requests])
    assert written(cached) == written(plain)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(EVERY_STRATEGY),
    OPTIONS,
    st.lists(st.tuples(CANVASES, CACHED), min_size=1, max_size=6),
)
def test_columns_that_an_edit_moved_are_not_taken_from_the_store(
    seed: int, strategy: Strategy, options: dict[str, Any], requests: list[tuple[list[bool], dict[str, Any]]]
) -> None:
    model = crafted(seed, expand=6, delete=7)
    plain = decode(model, [canvas(model, where, strategy, options, 14) for where, _ in requests])
    cached = decode(model, [canvas(model, where, strategy, {**options, **own}, 14) for where, own in requests])
    assert written(cached) == written(plain)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["random-llada", "random-dream"]),
    st.sampled_from(EVERY_STRATEGY),
    st.sampled_from([None, 3, 8]),
    st.sampled_from([0.0, 1.0]),
    st.lists(st.integers(0, 20), min_size=1, max_size=16),
)
def test_refreshed_in_every_step_it_writes_the_tokens_of_no_cache(
    models: dict[str, soar.LM], name: str, strategy: Strategy, block: int | None, guidance: float, prompts: list[int]
) -> None:
    lm = models[name]
    own: dict[str, Any] = {"block_length": block, "cfg_scale": guidance, "early_exit": False, "max_new_tokens": 10}
    texts = ["ab" * length for length in prompts]
    plain = lm.generate(texts, strategy, **own)
    for cache in ("prefix", "dual"):
        cached = lm.generate(texts, strategy, cache=cache, refresh_every=1, **own)
        assert [one.token_ids for one in cached] == [one.token_ids for one in plain]


@pytest.fixture(scope="module")
def models() -> dict[str, soar.LM]:
    return {name: soar.load(name, device="cpu") for name in ("random-llada", "random-dream")}


@pytest.mark.parametrize("kind", ["prefix", "dual"])
@pytest.mark.parametrize("refresh_every", [None, 3])
@pytest.mark.parametrize(
    "strategy", [soar.Greedy(), soar.PositionBeam(3), soar.PositionBeam(2, 2), soar.Soar(3, 0.05), soar.Soar(2, 0.02)]
)
@pytest.mark.parametrize("name", ["random-llada", "random-dream"])
def test_beams_equal_a_reference_in_which_every_candidate_has_its_own_cache(
    models: dict[str, soar.LM], name: str, strategy: Strategy, refresh_every: int | None, kind: str
) -> None:
    model = models[name].model
    assert isinstance(model, TransformersLM)
    rng = np.random.default_rng(len(str(strategy)) + len(kind))
    requests: list[Request] = []
    expected: list[list[int]] = []
    for size in (12, 20, 17):
        tokens = rng.integers(0, 250, size=size)
        fill = np.sort(rng.choice(size - 3, size=9, replace=False) + 3)
        options = Options(block_length=5, cache=kind, refresh_every=refresh_every, early_exit=False)
        requests.append(Request(tokens.tolist(), fill.tolist(), strategy, options))
        start = empty_canvas(tokens, fill, model.facts.mask_id, 5)
        expected.append(cached_beam(model, strategy, start, kind, refresh_every).tokens.tolist())
    done = {event.ticket: event.decoding for event in Engine(model).run(requests) if event.decoding is not None}
    assert [list(done[place].tokens) for place in range(len(requests))] == expected
    assert {one.cache for one in done.values()} == {kind}


def test_a_cache_changes_what_a_model_sees(models: dict[str, soar.LM]) -> None:
    """Otherwise the tests above would compare nothing."""
    own: dict[str, Any] = {"block_length": 12, "early_exit": False, "max_new_tokens": 24}
    texts = [f"{place} apples and {place} pears" for place in range(8)]
    plain = models["random-llada"].generate(texts, soar.Greedy(), **own)
    changes: list[dict[str, Any]] = [{"cache": "prefix"}, {"cache": "dual"}, {"suffix_window": 0}]
    for more in changes:
        cached = models["random-llada"].generate(texts, soar.Greedy(), **own, **more)
        assert [one.token_ids for one in cached] != [one.token_ids for one in plain]


@pytest.mark.parametrize("name", ["random-llada", "random-dream"])
def test_over_stored_columns_that_have_not_changed_the_forward_is_the_same(
    models: dict[str, soar.LM], name: str
) -> None:
    """Windows, scattered columns, padding, and two rows over one base."""
    model = models[name].model
    assert isinstance(model, TransformersLM)
    rng = np.random.default_rng(0)
    canvases = [rng.integers(0, 250, size=size) for size in (23, 31, 23)]
    read = [np.arange(8, 14), np.arange(0, 5), np.array([3, 4, 17])]
    whole = model.hidden(Rows.packed(canvases, read, 0, "cpu"))
    run = [model.needed(columns) for columns in read]
    keep = [np.setdiff1d(np.arange(row.size), columns) for row, columns in zip(canvases, run, strict=True)]
    everything = Past([np.arange(row.size) for row in canvases], [None] * 3, keep)
    first, stored = model.hidden_over(Rows.packed(canvases, read, 0, "cpu"), everything)
    torch.testing.assert_close(first, whole)
    twice = [0, 1, 2, 0]
    windows = Rows.packed(
        [canvases[row][run[row]] for row in twice], [_places(run[row], read[row]) for row in twice], 0, "cpu"
    )
    again, nothing = model.hidden_over(
        windows, Past([run[row] for row in twice], [stored[row] for row in twice], [None] * 4)
    )
    torch.testing.assert_close(again, torch.cat([whole, whole[: read[0].size]]), rtol=1e-4, atol=1e-5)
    assert nothing == [None] * 4


def _places(columns: Ints, wanted: Ints) -> Ints:
    return np.searchsorted(columns, wanted)


def step_by_step(model: CraftedCachingLM, request: Request) -> list[Past]:
    """What each step ran."""
    engine = Engine(model)
    engine.add(request)
    while engine.busy:
        engine.step()
    return model.pasts


def test_a_block_is_run_in_full_once_and_then_alone() -> None:
    model = crafted(0)
    where = [False] * 3 + [True] * 6 + [False]
    pasts = step_by_step(model, canvas(model, where, soar.Greedy(), {"cache": "dual", "block_length": 3}))
    assert [past.places[0].tolist() for past in pasts] == [
        list(range(10)), [2, 3, 4, 5], [2, 3, 4, 5],
        list(range(10)), [5, 6, 7, 8], [5, 6, 7, 8],
    ]  # fmt: skip


def test_with_a_prefix_cache_everything_after_the_block_is_run_too() -> None:
    model = crafted(0)
    where = [False] * 3 + [True] * 6 + [False]
    pasts = step_by_step(model, canvas(model, where, soar.Greedy(), {"cache": "prefix", "block_length": 3}))
    assert [past.places[0][0] for past in pasts] == [0, 2, 2, 0, 5, 5]
    assert {int(past.places[0][-1]) for past in pasts} == {9}


def test_refresh_every_counts_steps() -> None:
    model = crafted(0)
    options = {"cache": "dual", "refresh_every": 2}
    pasts = step_by_step(model, canvas(model, [False] * 3 + [True] * 5, soar.Greedy(), options))
    assert [past.stored[0] is None for past in pasts] == [True, False, True, False, True]


def test_children_share_the_base_of_their_parent_and_a_collapse_frees_the_others() -> None:
    model = crafted(2)
    engine = Engine(model)
    options = {"cache": "dual", "block_length": 4, "early_exit": False}
    engine.add(canvas(model, [False] * 3 + [True] * 12, soar.PositionBeam(4), options))
    engine.step()
    engine.step()
    (base,) = {id(stored) for stored in model.pasts[-1].stored}
    assert len(model.pasts[-1].stored) == 4
    assert base
    alive: weakref.WeakSet[Stored] = weakref.WeakSet()
    while engine.busy:
        engine.step()
        alive.update(stored for stored in model.pasts[-1].stored if stored is not None)
        rows = len(model.pasts[-1].stored)
        model.pasts.clear()
        assert len(alive) <= 2 * rows
    assert not alive


def test_a_verification_runs_in_full_and_is_not_stored() -> None:
    model = crafted(1)
    strategy = soar.Deliberate(0.99, accept=-1e-9, tries=0)
    pasts = step_by_step(
        model, canvas(model, [False, False] + [True] * 6, strategy, {"cache": "dual", "early_exit": False})
    )
    verified = pasts[-1]
    assert len(verified.stored) > 1
    assert all(stored is None for stored in verified.stored)
    assert all(keep is None for keep in verified.keep)


@dataclass(frozen=True)
class Curious(soar.Strategy):
    """Asks about a place outside the block, and about a canvas that is full."""

    def search(self, start: Start) -> Search:
        (first,) = yield [start.question(start.candidate, np.array([0, start.candidate.tokens.size - 1]))]
        assert len(first) == 2
        candidate = start.candidate
        while candidate.left:
            reading = yield from start.read_one(candidate)
            candidate = start.commit(candidate, reading, self.propose(reading)[0])
        (again,) = yield [start.question(candidate, np.array([1]), candidate.tokens[[1]])]
        assert again.given_log_p is not None
        return candidate


@pytest.mark.parametrize("options", [{"cache": "dual"}, {"cache": "prefix"}, {"suffix_window": 0}])
def test_any_place_of_any_canvas_can_be_asked_about(models: dict[str, soar.LM], options: dict[str, Any]) -> None:
    own = Options(block_length=2, early_exit=False, **options)
    found = Engine(models["random-dream"].model).run([Request([1] * 12, range(4, 12), Curious(), own)])
    assert [event.error for event in found] == [None] * 10


def test_what_was_taken_back_is_read_over_the_same_base() -> None:
    """CORE masks weak tokens to look at them; that canvas grew from none, and the one it looks at keeps its base."""
    model = crafted(1)
    options = {"cache": "dual", "early_exit": False}
    pasts = step_by_step(model, canvas(model, [False, False] + [True] * 6, soar.Core(every=2, weak=2), options))
    assert [past.stored[0] is None for past in pasts][:5] == [True, False, True, False, False]


def test_a_window_of_the_suffix_leaves_out_the_rest_but_for_the_last(models: dict[str, soar.LM]) -> None:
    inner = models["random-llada"].model
    assert isinstance(inner, TransformersLM)
    model: TransformersLM = inner
    seen: list[list[int]] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(model, name)

        def hidden_over(self, rows: Rows, past: Past) -> Any:
            seen.append(past.places[0].tolist())
            return model.hidden_over(rows, past)

    options = Options(block_length=3, suffix_window=2, early_exit=False)
    request = Request([1] * 14, range(2, 14), soar.Greedy(3), options)
    assert len([event for event in Engine(Watched()).run([request]) if event.decoding is not None]) == 1
    assert seen[0] == [0, 1, 2, 3, 4, 5, 6, 13]
    assert seen[-2:] == [list(range(14)), list(range(14))]


def test_what_a_request_writes_does_not_depend_on_its_neighbours(models: dict[str, soar.LM]) -> None:
    lm = models["random-dream"]
    kinds: list[dict[str, Any]] = [
        {}, {"cache": "dual"}, {"cache": "prefix"}, {"cache": "dual", "refresh_every": 3}, {"suffix_window": 3},
        {"cache": "prefix", "suffix_window": 2}, {"cache": "dual", "cfg_scale": 1.0},
        {"cache": "dual", "temperature": 1.0},
    ]  # fmt: skip
    requests = [
        Request(
            [65 + place] * (3 + 5 * place) + [0] * 12,
            range(3 + 5 * place, 15 + 5 * place),
            strategy,
            Options(block_length=4, **kind),
        )
        for place, (kind, strategy) in enumerate(zip(kinds, EVERY_STRATEGY, strict=False))
    ]
    alone = [next(one.decoding for one in Engine(lm.model).run([request]) if one.decoding) for request in requests]
    together = {one.ticket: one.decoding for one in Engine(lm.model).run(requests) if one.decoding}
    assert [together[place].tokens for place in range(len(requests))] == [one.tokens for one in alone]


def test_a_cache_that_the_budget_could_never_hold_is_left_out_and_the_result_says_so() -> None:
    tight = soar.load("random-llada", engine=EngineSettings(cache_budget=1024 * 20))
    own: dict[str, Any] = {"max_new_tokens": 10, "early_exit": False}
    with pytest.warns(UserWarning, match="does not fit into the engine's cache_budget"):
        (short, long) = tight.generate(["abcdefghij", "abcdefghijk"], soar.Greedy(), cache="dual", **own)
    assert (short.cache, long.cache) == ("dual", None)
    assert long.token_ids == tight.generate("abcdefghijk", soar.Greedy(), **own).token_ids
    with pytest.warns(UserWarning, match="decoded without"):
        (wide,) = tight.generate(["abcdefghij"], soar.PositionBeam(2), cache="dual", **own)
    assert wide.cache is None, "each candidate may have a base of its own"


def test_requests_wait_until_what_they_store_fits() -> None:
    model = crafted(0)
    engine = Engine(model, EngineSettings(cache_budget=25))
    for _ in range(3):
        engine.add(canvas(model, [False] * 4 + [True] * 6, soar.Greedy(), {"cache": "dual", "early_exit": False}))
    assert [event.ticket for event in engine.step()] == [0, 1]
    finished = [event.ticket for event in engine.run() if event.final]
    assert finished == [0, 1, 2]


def test_requests_join_by_the_rows_that_are_live() -> None:
    """A beam that could be wider does not keep others out."""
    model = random_lm(0)
    engine = Engine(model, EngineSettings(max_rows=8))
    for _ in range(8):
        engine.add(canvas(model, [False] * 2 + [True] * 6, soar.Soar(4, 0.9), {"early_exit": False}))
    assert len(engine.step()) == 8
    while engine.busy:
        engine.step()
    assert max(len(ids) for ids in model.seen) == 8


class Shapes(CraftedLM):
    """Notes the area of every forward."""

    def hidden(self, rows: Rows) -> torch.Tensor:
        self.seen.append(rows.ids)
        return torch.zeros(len(rows.row), 1)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=60), st.integers(1, 40))
def test_padding_costs_less_than_a_tenth(lengths: list[int], max_rows: int) -> None:
    model = Shapes(lambda *_: [], 9)
    rows = [Row(np.zeros(length, dtype=np.int64), np.arange(1)) for length in lengths]
    outcome = Forwards(model, max_rows).run(rows)
    assert outcome.states is not None
    assert len(outcome.states) == len(lengths)
    assert sum(len(ids) for ids in model.seen) == len(lengths)
    left = sorted(lengths, reverse=True)
    for ids in model.seen:
        assert len(ids) <= max_rows
        own, left = left[: len(ids)], left[len(ids) :]
        assert ids.numel() - sum(own) <= max(LITTLE, PADDING * ids.numel())


SMALL = {"vocab_size": 40, "num_hidden_layers": 1, "num_attention_heads": 2}


def test_models_without_a_cache_interface_say_so() -> None:
    config = transformers.ModernBertConfig(**SMALL, hidden_size=16, intermediate_size=16, pad_token_id=0)
    model = soar.load(transformers.ModernBertForMaskedLM(config), mask_token_id=39)
    refused: list[dict[str, Any]] = [{"cache": "dual"}, {"suffix_window": 3}]
    for options in refused:
        with pytest.raises(SettingsError, match="leave cache and suffix_window out"):
            model.decode([[1, 39, 39]], soar.Greedy(), **options)
    with pytest.raises(SettingsError, match="leave cache"):
        Engine(random_lm(0)).add(canvas(random_lm(0), [True], soar.Greedy(), {"cache": "dual"}))


def test_a_masked_lm_with_a_cache_interface_stores_too() -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(**SMALL, hidden_size=16, intermediate_size=16)
    model = soar.load(transformers.BertForMaskedLM(config), mask_token_id=39)
    (found,) = model.decode([[1, 2, 3, 39, 39]], soar.Greedy(), cache="dual", early_exit=False)
    assert found.cache == "dual"


def test_a_model_that_rounds_its_activations_stores_too() -> None:
    """With int8 activations the trial's states moved by two percent, and the model was refused."""

    def rounded(module: torch.nn.Module, given: Any, made: torch.Tensor) -> torch.Tensor:
        step = made.abs().max() / 31
        return (made / step).round() * step

    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SMALL, hidden_size=16, intermediate_size=16, is_causal=False)
    llama = transformers.LlamaForCausalLM(config)
    for layer in llama.model.layers.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(rounded)
    model = soar.load(llama, mask_token_id=39, family="llada")
    (found,) = model.decode([[1, 2, 3, 39, 39]], soar.Greedy(), cache="dual", early_exit=False)
    assert found.cache == "dual"


def test_mistakes_in_the_options() -> None:
    with pytest.raises(SettingsError, match="refresh_every needs a cache"):
        Options(refresh_every=2)
    with pytest.raises(SettingsError, match="'dual'"):
        Options(cache="duall")
    with pytest.raises(SettingsError, match="cache='dual' here"):
        soar.load("random-llada").generate("a", use_cache=True)  # type: ignore[call-overload]
