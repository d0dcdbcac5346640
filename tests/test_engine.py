from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from soar_dlm.engine import reader
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.live import LiveRequest
from soar_dlm.engine.reader import Reader
from soar_dlm.engine.request import Request, StepEvent, empty_canvas
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import NonFiniteLogits, PromptError, PromptTooLong, SettingsError
from soar_dlm.models.masked_lm import ModelFacts, Rows
from soar_dlm.options import Options
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.beam import finished
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from tests.closeness import about
from tests.crafted import CraftedLM, OnCpu, canvas_request, decode, decode_one, random_lm, scripted_lm


def test_every_live_candidate_is_a_row_of_one_forward() -> None:
    model = random_lm(0)
    engine = Engine(model, EngineSettings(max_rows=99))
    for n in (1, 3, 5):
        engine.add(canvas_request(model, [1] * n, 4, PositionBeam(beam=2)))
    engine.step()
    engine.step()
    assert [tuple(ids.shape) for ids in model.seen] == [(3, 9), (6, 9)]


def test_rows_are_padded_on_the_left() -> None:
    model = random_lm(0)
    decode(model, [canvas_request(model, [1, 2, 3], 1, Greedy()), canvas_request(model, [4], 1, Greedy())])
    assert model.seen[0].tolist() == [[1, 2, 3, 8], [0, 0, 4, 8]]


def test_requests_wait_until_their_rows_fit() -> None:
    model = random_lm(0)
    engine = Engine(model, EngineSettings(max_rows=4))
    requests = [canvas_request(model, [1], 3, PositionBeam(beam=2)) for _ in range(4)]
    finished = [event.ticket for event in engine.run(requests) if event.final]
    assert finished == [0, 1, 2, 3]
    assert max(len(ids) for ids in model.seen) == 4


def test_a_request_wider_than_max_rows_runs_alone() -> None:
    model = random_lm(0)
    narrow = EngineSettings(max_rows=2)
    requests = [canvas_request(model, [1], 4, PositionBeam(beam=5)) for _ in range(2)]
    events = list(Engine(model, narrow).run(requests))
    assert sum(event.decoding is not None for event in events) == 2


def test_requests_are_taken_in_as_there_is_room() -> None:
    model = random_lm(0)
    taken = 0

    def source() -> object:
        nonlocal taken
        for _ in range(10):
            taken += 1
            yield canvas_request(model, [1], 3, Greedy())

    events = Engine(model, EngineSettings(max_rows=2)).run(source())  # type: ignore[arg-type]
    next(events)
    assert taken == 2
    assert sum(event.final for event in events) == 10


def test_an_error_in_place_of_a_request_takes_its_ticket() -> None:
    model = random_lm(0)
    request, refused = canvas_request(model, [1], 2, Greedy()), SettingsError("not like this")
    final = {event.ticket: event for event in Engine(model).run([request, refused, request]) if event.final}
    assert final[1].error is refused
    assert (final[1].best, final[1].record) == (None, None), "it never started"
    assert [ticket for ticket, event in sorted(final.items()) if event.decoding is not None] == [0, 2]


def test_nothing_to_fill_ends_at_once_without_a_forward() -> None:
    model = random_lm(0)
    decoding = decode(model, [Request([1, 2, 3], [], Greedy())])[0]
    assert (decoding.tokens, decoding.steps, decoding.forwards) == ((1, 2, 3), 0, 0)
    assert model.seen == []
    (event,) = Engine(model).run([Request([1, 2, 3], [], Greedy())])
    assert event.best is not None
    assert event.best.last.mode == "start"


def test_a_prompt_that_contains_the_mask_token_is_left_alone() -> None:
    model = random_lm(0)
    decoding = decode_one(model, [8, 8, 1], 2, Soar(threshold=0.5))
    assert decoding.tokens[:3] == (8, 8, 1)
    assert 8 not in decoding.tokens[3:]


def test_positions_to_fill_are_masked_first_whatever_they_hold() -> None:
    model = random_lm(0)
    one = decode(model, [Request([1, 2, 3, 4], [1, 3], Greedy())])
    two = decode(model, [Request([1, 8, 3, 8], [3, 1], Greedy())])
    assert one == about(two)


def test_suppressed_tokens_are_never_committed() -> None:
    model = scripted_lm({1: {1: 0.5, 2: 0.3}})
    assert decode_one(model, [0], 1, Greedy()).tokens == (0, 1)
    options = Options(suppress_tokens=[1])
    decoding = decode_one(model, [0], 1, Greedy(), options)
    assert decoding.tokens == (0, 2)
    assert decoding.mean_confidence == pytest.approx(0.6, abs=1e-5)


def test_guidance_moves_logits_away_from_the_unconditional_row() -> None:
    seen: list[list[int]] = []

    def rule(tokens: list[int], position: int) -> list[float]:
        seen.append(tokens)
        conditional = tokens[0] == 1
        return [2.0, 1.0, 0.0, 0.0] if not conditional else [2.0, 1.8, 0.0, 0.0]

    model = CraftedLM(rule, 4)
    plain = decode_one(model, [1], 1, Greedy())
    assert plain.tokens == (1, 0)
    guided = decode_one(model, [1], 1, Greedy(), Options(cfg_scale=1.0))
    assert guided.tokens == (1, 1), "2 + 2 * (2 - 2) = 2 against 1 + 2 * (1.8 - 1) = 2.6"
    assert guided.mean_confidence == pytest.approx(math.exp(2.6) / (math.exp(2) + math.exp(2.6) + 1), abs=1e-5)
    assert seen[-2:] == [[1, 3], [3, 3]], "the twin has its prompt masked"
    assert guided.forwards == 1, "forwards count candidates, not their twins"


def test_the_unconditional_row_keeps_what_is_committed() -> None:
    """Only the prompt is masked in it: a canvas that is masked too would be guided away from its own text."""
    seen: list[list[int]] = []

    def rule(tokens: list[int], position: int) -> list[float]:
        seen.append(tokens)
        return [2.0 + position, 1.0, 0.0, 0.0, 0.0]

    decode_one(CraftedLM(rule, 5), [1, 2], 3, Greedy(), Options(cfg_scale=1.0, early_exit=False))
    twins = [row for row in seen if row[:2] == [4, 4]]
    assert [4, 4, 4, 4, 4] in twins
    assert [4, 4, 4, 4, 0] in twins
    assert [4, 4, 4, 0, 0] in twins


def test_candidates_of_a_beam_draw_for_themselves() -> None:
    """Candidates that shared their draws would write the same token in a place, and the beam would search nothing."""
    model = random_lm(4)
    options = Options(temperature=1.0, seed=3, early_exit=False)
    live = LiveRequest(0, canvas_request(model, [1], 6, PositionBeam(beam=3), options), model)
    assert live.begin() is None
    for _ in range(2):
        live.absorb(Reader(model, EngineSettings()).read(live.questions()))
    draws = [uniforms for asked in live.questions() if (uniforms := asked.question.uniforms) is not None]
    assert len(draws) == 3
    assert all(numbers.dtype == np.float32 for numbers in draws), "some devices have no float64"
    numbers = np.concatenate(draws)
    assert np.unique(numbers).size == numbers.size


def test_requests_with_different_settings_share_a_forward() -> None:
    model = random_lm(3)
    settings = [
        (Greedy(), Options(cfg_scale=2.0)),
        (PositionBeam(beam=2, metric="margin"), Options()),
        (Greedy(metric="neg_entropy"), Options(temperature=0.5, seed=2)),
        (Greedy(), Options(cfg_scale=2.0, suppress_tokens=[1])),
        (Soar(threshold=0.4), Options(temperature=1.0, top_k=2, top_p=0.9)),
    ]
    requests = [canvas_request(model, [2] * n, 5, *setting) for n, setting in enumerate(settings, start=1)]
    alone = [decode(model, [request])[0] for request in requests]
    model.seen.clear()
    assert decode(model, requests) == about(alone)
    assert len(model.seen[0]) == 5 + 2, "two of them have an unconditional twin"


def spelled(ids: Sequence[int]) -> str:
    """Each id as its number."""
    return " ".join(map(str, ids))


def test_stop_ends_a_text_as_soon_as_it_is_contiguous() -> None:
    model = scripted_lm({1: {1: 0.5}, 2: {2: 0.9}, 3: {3: 0.8}, 4: {4: 0.1}}, ends=(7,))
    request = canvas_request(model, [0], 4, Greedy(), Options())
    request = Request(request.tokens, request.fill, Greedy(), Options(), stop=["2"])
    decoding = decode(model, [request], decode=spelled)[0]
    assert decoding.tokens == (0, 1, 2, 3, 7), "3 was committed before 1, what is left becomes the EOS"
    assert (decoding.finish_reason, decoding.steps, decoding.written) == ("stop", 3, 3)


def test_a_parallel_step_that_reaches_the_end_token_ends_the_text_wherever_else_it_writes() -> None:
    model = scripted_lm({1: {7: 0.95}, 2: {2: 0.5}, 3: {3: 0.95}}, ends=(7,))
    decoding = decode_one(model, [0], 3, AdaptiveParallel(threshold=0.9), Options())
    assert (decoding.tokens, decoding.steps) == ((0, 7, 7, 3), 1)


def test_stop_is_asked_only_when_the_text_before_the_first_mask_has_grown() -> None:
    asked: list[list[int]] = []
    model = scripted_lm({1: {1: 0.5}, 2: {2: 0.9}, 3: {3: 0.8}})

    def read(ids: Sequence[int]) -> str:
        asked.append(list(ids))
        return spelled(ids)

    request = canvas_request(model, [0], 3, Greedy())
    decode(model, [Request(request.tokens, request.fill, Greedy(), Options(), ("never",))], decode=read)
    assert asked == [[1, 2, 3]], "once, at the end, for the finish reason"


def test_an_end_token_in_the_prompt_ends_nothing() -> None:
    model = scripted_lm({2: {1: 0.5}, 3: {2: 0.9}}, ends=(7,))
    assert decode_one(model, [7, 7], 2, Greedy(), Options()).finish_reason == "length"


def test_full_canvas_decoding_goes_on_after_the_end() -> None:
    model = scripted_lm({1: {7: 0.9}, 2: {2: 0.5}, 3: {3: 0.4}}, ends=(7,))
    full = decode_one(model, [0], 3, Greedy(), Options(early_exit=False))
    assert (full.tokens, full.steps, full.finish_reason) == ((0, 7, 2, 3), 3, "stop")
    early = decode_one(model, [0], 3, Greedy(), Options())
    assert (early.tokens, early.steps, early.finish_reason) == ((0, 7, 7, 7), 1, "stop")


@pytest.mark.parametrize("released", [None, "llada", "dream"])
def test_only_released_dream_ends_with_its_best_candidate(released: str | None) -> None:
    strategy = Soar(beam=2, threshold=0.5, released=released)
    model = random_lm(0)
    masked = empty_canvas(np.array([1, 8, 8]), np.array([1, 2]), model.mask, None)
    full, ends_with_best = masked.filled(3), strategy.rules.ends_with_best
    assert finished([full, masked], ends_with_best) == (released == "dream")
    assert not finished([masked, full], ends_with_best)
    assert finished([full, full], ends_with_best)


def test_released_dream_ends_when_its_best_candidate_is_complete_even_with_blocks() -> None:
    model = random_lm(11)
    for block in (None, 2, 3):
        options = Options(block_length=block, early_exit=False)
        decoding = decode_one(model, [1], 6, Soar(beam=3, threshold=0.5, released="dream"), options)
        assert 8 not in decoding.tokens[1:] or decoding.written == 6
        assert decoding.trace.steps[-1].beam[0].left == 0


def nan_after(step: int) -> CraftedLM:
    def rule(tokens: list[int], position: int) -> list[float]:
        poisoned = tokens[0] == 5 and sum(token == 8 for token in tokens) <= 4 - step
        return [math.nan if poisoned else 1.0, *[0.0] * 8]

    return CraftedLM(rule, 9)


def test_non_finite_logits_name_the_step_and_spare_the_neighbours() -> None:
    model = nan_after(2)
    engine = Engine(model)
    bad = engine.add(canvas_request(model, [5], 4, Greedy()))
    good = engine.add(canvas_request(model, [1], 4, Greedy()))
    final = {event.ticket: event for event in engine.run() if event.final}
    assert isinstance(final[bad].error, NonFiniteLogits)
    assert "step 3" in str(final[bad].error)
    assert final[good].decoding is not None


@pytest.mark.parametrize(
    ("tokens", "fill", "words"),
    [
        ([], [], "non-empty"),
        ([[1, 2]], [0], "flat"),
        ([1, 9], [0], "outside the model's vocabulary"),
        ([1, -1], [0], "outside the model's vocabulary"),
        ([1, 2], [2], "outside the canvas"),
        ([1, 2], [-1], "outside the canvas"),
        (["a"], [0], "whole numbers"),
    ],
)
def test_bad_canvases_are_refused(tokens: list[int], fill: list[int], words: str) -> None:
    with pytest.raises(PromptError, match=words):
        Engine(random_lm(0)).add(Request(tokens, fill, Greedy()))


def test_a_canvas_longer_than_the_context_is_refused() -> None:
    model = CraftedLM(lambda tokens, position: [0.0] * 9, 9, context=4)
    with pytest.raises(PromptTooLong, match="5 tokens, 2 of them to fill; the model's context is 4"):
        Engine(model).add(canvas_request(model, [1, 2, 3], 2, Greedy()))


@pytest.mark.parametrize(
    "settings",
    [
        {"block_length": 0},
        {"block_length": 1.5},
        {"cfg_scale": -1},
        {"seed": -1},
        {"suppress_tokens": 3},
        {"suppress_tokens": ["a"]},
        {"temperature": -0.1},
        {"top_k": 0},
    ],
)
def test_bad_options_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(settings))}"):
        Options(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"max_rows": 0}, {"head_budget": 0}])
def test_bad_engine_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(settings))} must be"):
        EngineSettings(**settings)


def test_guided_requests_count_twice_towards_max_rows() -> None:
    model = random_lm(0)
    guided = Options(cfg_scale=1.0, early_exit=False)
    requests = [canvas_request(model, [1], 2, Greedy(), guided) for _ in range(4)]
    decode(model, requests, max_rows=4)
    assert max(len(ids) for ids in model.seen) == 4


def test_suppressing_every_token_is_refused() -> None:
    with pytest.raises(SettingsError, match="leaves no token"):
        decode_one(random_lm(0), [1], 1, Greedy(), Options(suppress_tokens=range(8)))


def test_a_model_without_default_thresholds_asks_for_one() -> None:
    model = _BigHead(50)
    with pytest.raises(SettingsError, match="no default threshold"):
        Engine(model).add(Request([1, 2], [1], Soar()))


def test_suppressing_an_id_the_model_lacks_is_refused() -> None:
    with pytest.raises(SettingsError, match="vocabulary of 9"):
        decode_one(random_lm(0), [1], 1, Greedy(), Options(suppress_tokens=[9]))


def test_traces_survive_json() -> None:
    import json

    trace = decode_one(random_lm(1), [1], 5, Soar(beam=3, threshold=0.6)).trace
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for each tensor copied to the host; any other way to read a tensor there is an error."""
    made: list[int] = []
    real = torch.Tensor.cpu

    def counting(self: torch.Tensor) -> torch.Tensor:
        made.append(self.numel())
        return real(self)

    def forbidden(self: torch.Tensor) -> None:
        raise AssertionError("a tensor was read on the host")

    monkeypatch.setattr(torch.Tensor, "cpu", counting)
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "nonzero"):
        monkeypatch.setattr(torch.Tensor, name, forbidden)
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_one_transfer_to_the_host_per_step(copies: list[int], temperature: float) -> None:
    engine = Engine(_BigHead(vocab_size=50), EngineSettings(head_budget=4000))
    for metric in ("probability", "margin", "neg_entropy"):
        options = Options(temperature=temperature, cfg_scale=1.0)
        engine.add(Request([1] * 12, range(1, 12), PositionBeam(beam=2, metric=metric), options))
    for step in range(1, 4):
        engine.step()
        assert len(copies) == step


@pytest.mark.parametrize("lm_name", ["random_llada", "random_dream"])
def test_one_transfer_with_real_models_and_padding(
    lm_name: str, request: pytest.FixtureRequest, copies: list[int]
) -> None:
    """Prevents a wait per forward: transformers looks into a padding mask that it is given as a vector."""
    engine = Engine(request.getfixturevalue(lm_name).model)
    for length in (3, 9):
        engine.add(Request([5] * length, range(2, length), Soar(threshold=0.9)))
    for step in range(1, 4):
        engine.step()
        assert len(copies) == step


class _BigHead(OnCpu):
    """A real matrix product as head, to see what reading it costs."""

    def __init__(self, vocab_size: int, width: int = 4) -> None:
        super().__init__(ModelFacts(vocab_size, vocab_size - 1, 0, 0, (), None, {}))
        self.weight = torch.randn(vocab_size, width, generator=torch.Generator().manual_seed(0))
        self.width = width
        self.slices: list[int] = []

    def hidden(self, rows: Rows) -> torch.Tensor:
        place = (rows.column + 7 * rows.row).float().unsqueeze(1)
        return torch.cos(place * torch.arange(1, self.width + 1))

    def head(self, hidden: torch.Tensor, out: torch.Tensor) -> None:
        self.slices.append(len(hidden))
        out.copy_(hidden @ self.weight.T)


def peak_memory(run: object) -> int:
    """The most bytes alive at once among those allocated during the run."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        run()  # type: ignore[operator]
    changes = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    alive = np.cumsum([event.nbytes() for event in sorted(changes, key=lambda event: event.start_ns())])
    return int(alive.max())


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(cfg_scale=1.0),
        Options(temperature=1.0),
        Options(temperature=1.0, top_k=50, top_p=0.9, cfg_scale=1.0),
    ],
    ids=["greedy", "guided", "sampled", "sampled, filtered, guided"],
)
@pytest.mark.parametrize("metric", ["probability", "margin", "neg_entropy"])
@pytest.mark.parametrize("cache", [2**20, 2**40], ids=["tiled", "whole slices, as on an accelerator"])
def test_reading_logits_stays_inside_the_budget(
    options: Options, metric: str, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "CACHE", cache)
    budget = 8 * 2**20
    model = _BigHead(vocab_size=50_000)
    engine = Engine(model, EngineSettings(head_budget=budget))
    engine.add(Request([1] * 201, range(1, 201), Greedy(metric=metric), options))
    peak = peak_memory(engine.step)
    full = 200 * 50_000 * 4
    assert peak <= budget < full
    assert len(model.slices) > 1


def test_slices_change_no_result() -> None:
    whole, sliced = _BigHead(997), _BigHead(997)
    requests = [Request([1] * 30, range(3, 30), Soar(threshold=0.1), Options(temperature=0.9, top_p=0.8))]
    many = list(Engine(whole).run(requests))[-1]
    few = list(Engine(sliced, EngineSettings(head_budget=1)).run(requests))[-1]
    assert max(sliced.slices) == 1 < max(whole.slices)
    assert many.decoding is not None
    assert few.decoding is not None
    assert many.decoding.tokens == few.decoding.tokens


def test_a_cancelled_request_that_waits_never_joins() -> None:
    model = random_lm(0)
    engine = Engine(model, EngineSettings(max_rows=1))
    tickets = [engine.add(canvas_request(model, [1], 2, Greedy())) for _ in range(3)]
    engine.step()
    engine.cancel(tickets[1])
    assert {event.ticket for event in engine.run()} == {tickets[0], tickets[2]}


def test_events_of_a_cancelled_request_stop() -> None:
    model = random_lm(0)
    engine = Engine(model)
    ticket = engine.add(canvas_request(model, [1], 4, Greedy()))
    first: list[StepEvent] = engine.step()
    engine.cancel(ticket)
    assert [event.ticket for event in first] == [ticket]
    assert not engine.busy
    assert engine.step() == []
