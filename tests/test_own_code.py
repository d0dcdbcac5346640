"""A strategy is other people's code: what it does wrong ends its own request, with a sentence that names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from soar_dlm import METRICS, Candidate, Metric, Pool, Proposal, Strategy
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request, StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import SettingsError, SoarError, StopError, StrategyError, UnexpectedError
from soar_dlm.options import Options
from soar_dlm.search.confidence import PROBABILITY
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.question import Reading
from tests.crafted import CraftedLM, canvas_request, decode, random_lm, scripted_lm


@dataclass(frozen=True)
class Custom(Strategy):
    """Proposes, ranks and cuts as it is told; None leaves a rule as it is."""

    beam: int = 2
    proposals: Callable[[Reading], Any] | None = None
    ranks: Callable[[Candidate], Any] | None = None
    widths: Callable[[Pool], Any] | None = None

    def propose(self, reading: Reading) -> list[Proposal]:
        found: list[Proposal] = super().propose(reading) if self.proposals is None else self.proposals(reading)
        return found

    def rank(self, candidate: Candidate) -> float:
        found: float = super().rank(candidate) if self.ranks is None else self.ranks(candidate)
        return found

    def width(self, pool: Pool) -> int:
        found: int = super().width(pool) if self.widths is None else self.widths(pool)
        return found


def failing(*_: Any) -> Any:
    raise ZeroDivisionError("a bug of the author's")


def picking(picks: Any, mode: Any = "search") -> Callable[[Reading], Any]:
    return lambda reading: [Proposal(picks, mode)]


BROKEN = {
    "propose raises": (Custom(proposals=failing), "ZeroDivisionError: a bug of the author's"),
    "rank raises": (Custom(ranks=failing), "ZeroDivisionError"),
    "width raises": (Custom(widths=failing), "ZeroDivisionError"),
    "raises an error of ours": (Custom(proposals=lambda _: Options(seed=-1)), "seed must be"),
    "no proposals": (Custom(proposals=lambda _: []), "at least one Proposal"),
    "None": (Custom(proposals=lambda _: None), "at least one Proposal"),
    "no Proposal": (Custom(proposals=lambda _: [[0]]), "must return Proposals"),
    "an unknown mode": (Custom(proposals=picking(np.array([0]), "kept")), "must return Proposals"),
    "empty": (Custom(proposals=picking(np.array([], dtype=np.int64))), "non-empty array of indices"),
    "a list": (Custom(proposals=picking([0])), "non-empty array of indices"),
    "fractions": (Custom(proposals=picking(np.array([0.0]))), "non-empty array of indices"),
    "booleans": (Custom(proposals=picking(np.array([True]))), "non-empty array of indices"),
    "two dimensions": (Custom(proposals=picking(np.array([[0]]))), "non-empty array of indices"),
    "beyond the end": (Custom(proposals=picking(np.array([3]))), "there are 3 positions: 0 to 2"),
    "before the start": (Custom(proposals=picking(np.array([-1]))), "there are 3 positions: 0 to 2"),
    "doubled": (Custom(proposals=picking(np.array([1, 1]))), "picks a position twice"),
    "no width": (Custom(widths=lambda _: 0), "from 1 to the beam, 2, not 0"),
    "a width above the beam": (Custom(widths=lambda _: 3), "from 1 to the beam, 2, not 3"),
    "a width of 1.5": (Custom(widths=lambda _: 1.5), "from 1 to the beam, 2, not 1.5"),
    "a width of True": (Custom(widths=lambda _: True), "from 1 to the beam, 2, not True"),
    "a rank that is no number": (Custom(ranks=lambda _: "high"), "A rank must be a finite number, not 'high'"),
    "an infinite rank": (Custom(ranks=lambda _: float("-inf")), "A rank must be a finite number, not -inf"),
    "a rank of NaN": (Custom(ranks=lambda _: float("nan")), "A rank must be a finite number, not nan"),
}


def outcomes(engine: Engine) -> dict[int, StepEvent]:
    return {event.ticket: event for event in engine.run() if event.final}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_strategy_ends_its_own_request_and_no_other(case: str) -> None:
    strategy, words = BROKEN[case]
    model = random_lm(1)
    neighbour = canvas_request(model, [1, 2], 3, PositionBeam(beam=2))
    alone = Engine(model)
    alone.add(neighbour)
    expected = outcomes(alone)[0].decoding
    engine = Engine(model)
    engine.add(neighbour)
    engine.add(canvas_request(model, [3], 3, strategy))
    engine.add(neighbour)
    found = outcomes(engine)
    error = found[1].error
    assert isinstance(error, StrategyError)
    assert "Custom" in str(error)
    assert words in str(error)
    assert "StrategyError" not in str(error), "the sentence alone, where the sentence is ours"
    assert found[1].best is not None, "as far as it came"
    assert found[0].decoding is not None
    assert expected is not None
    assert found[0].decoding.tokens == expected.tokens
    assert not engine.busy


def test_the_cause_of_a_failure_is_kept() -> None:
    model = random_lm(1)
    engine = Engine(model)
    engine.add(canvas_request(model, [3], 3, Custom(proposals=failing)))
    assert isinstance(outcomes(engine)[0].error.__cause__, ZeroDivisionError)  # type: ignore[union-attr]


def test_a_strategy_that_fails_before_it_starts_is_refused_with_its_name() -> None:
    class Unbound(Strategy):
        def bound(self, thresholds: object) -> Any:
            raise RuntimeError("no thresholds for me")

    engine = Engine(random_lm(1))
    with pytest.raises(StrategyError, match=r"Unbound.*no thresholds for me"):
        engine.add(Request([1, 8], [1], Unbound()))
    with pytest.raises(SettingsError, match=r"must be a soar_dlm\.Strategy"):
        engine.add(Request([1, 8], [1], "greedy"))  # type: ignore[arg-type]


def test_a_metric_that_does_not_exist_is_refused_before_others_are_read_with_it() -> None:
    """It was looked up in the forward that all requests share, which ended all of them."""

    class Unmeasured(Strategy):
        metric = "nonsense"

    engine = Engine(random_lm(1))
    engine.add(Request([1, 8], [1], Greedy()))
    with pytest.raises(SettingsError, match="There is no metric 'nonsense'"):
        engine.add(Request([1, 8], [1], Unmeasured()))
    assert outcomes(engine)[0].decoding is not None


BROKEN_METRICS: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (failing, "ZeroDivisionError: a bug of the author's"),
    "returns nothing": (lambda values, tokens: None, "a tensor of real numbers, not None"),
    "returns a number": (lambda values, tokens: 0.5, "a tensor of real numbers, not 0.5"),
    "returns complex numbers": (lambda values, tokens: tokens * 1j, "a tensor of real numbers"),
    "returns one for all": (lambda values, tokens: values.sum(), "of shape [3] on cpu, not of shape [] on cpu"),
    "is wrong about shapes": (lambda values, tokens: values.view(7), "RuntimeError"),
}


@pytest.mark.parametrize("case", BROKEN_METRICS)
def test_a_metric_that_fails_while_reading_ends_its_own_request_and_no_other(case: str) -> None:
    """It failed in the forward that all requests share, which ended all of them."""
    measure, words = BROKEN_METRICS[case]
    METRICS.register("broken", Metric("broken", 0.0, 1.0, measure))
    model = random_lm(1)
    neighbour = canvas_request(model, [1, 2], 3, PositionBeam(beam=2))
    (expected,) = decode(model, [neighbour])
    engine = Engine(model)
    for request in (neighbour, canvas_request(model, [3], 3, Greedy(metric="broken")), neighbour):
        engine.add(request)
    found = outcomes(engine)
    assert isinstance(found[1].error, StrategyError)
    assert "The metric 'broken'" in str(found[1].error)
    assert words in str(found[1].error)
    assert found[0].decoding == found[2].decoding == expected
    assert not engine.busy


def test_a_metric_that_fails_on_one_of_its_requests_spares_the_others() -> None:
    """Requests with one metric are measured together, so one that it cannot measure ended the rest."""

    def measure(shifted: Tensor, tokens: Tensor) -> Tensor:
        assert not (tokens == 3).any(), "a token that this metric does not know"
        return PROBABILITY.measure(shifted, tokens)

    METRICS.register("choosy", Metric("choosy", 0.0, 1.0, measure))
    model = CraftedLM(lambda tokens, position: [5.0 * (token == tokens[0]) for token in range(9)], 9)
    engine = Engine(model)
    for first in (1, 3, 2):
        engine.add(canvas_request(model, [first], 3, Greedy(metric="choosy")))
    found = outcomes(engine)
    assert "a token that this metric does not know" in str(found[1].error)
    assert [found[ticket].decoding.tokens for ticket in (0, 2)] == [(1,) * 4, (2,) * 4]  # type: ignore[union-attr]


def test_a_metric_that_fails_on_several_tokens_ends_its_own_request() -> None:
    METRICS.register("half", Metric("half", 0.0, 1.0, PROBABILITY.measure, failing))
    model = random_lm(1)
    engine = Engine(model)
    engine.add(canvas_request(model, [3], 3, Deliberate(metric="half", threshold=0.9)))
    engine.add(canvas_request(model, [3], 3, Greedy(metric="half")))
    found = outcomes(engine)
    assert "The metric 'half' failed. ZeroDivisionError" in str(found[0].error)
    assert found[1].decoding is not None


def test_a_failing_decode_ends_only_requests_with_stop_strings() -> None:
    def decode(ids: Sequence[int]) -> str:
        raise UnicodeError("not today")

    model = random_lm(2)
    engine = Engine(model, decode=decode)
    engine.add(Request([1, 8, 8], [1, 2], Greedy(), stop=["x"]))
    engine.add(Request([1, 8, 8], [1, 2], Greedy()))
    found = outcomes(engine)
    assert isinstance(found[0].error, StopError)
    assert "not today" in str(found[0].error)
    assert found[1].decoding is not None


def test_a_decode_that_fails_on_the_way_ends_the_request_there() -> None:
    asked: list[list[int]] = []

    def decode(ids: Sequence[int]) -> str:
        asked.append(list(ids))
        raise UnicodeError("not today")

    model = scripted_lm({1: {1: 0.9}, 2: {2: 0.8}, 3: {3: 0.7}})
    engine = Engine(model, decode=decode)
    engine.add(Request([0, 8, 8, 8], [1, 2, 3], Greedy(), stop=["x"]))
    event = outcomes(engine)[0]
    assert isinstance(event.error, StopError)
    assert isinstance(event.error.__cause__, UnicodeError)
    assert asked == [[1]]


def test_stop_strings_need_a_way_to_read_tokens() -> None:
    with pytest.raises(SettingsError, match="Stop strings need a tokenizer"):
        Engine(random_lm(2)).add(Request([1, 8], [1], Greedy(), stop=["x"]))
    with pytest.raises(SettingsError, match="stop must be a non-empty string"):
        Engine(random_lm(2)).add(Request([1, 8], [1], Greedy(), stop=lambda ids: True))  # type: ignore[arg-type]


def test_a_model_that_breaks_breaks_the_step() -> None:
    """What is nobody's own code is not blamed on anyone."""

    def rule(tokens: list[int], position: int) -> list[float]:
        raise KeyError("a bug of the model's")

    engine = Engine(CraftedLM(rule, 9))
    engine.add(Request([1, 8], [1], Greedy()))
    with pytest.raises(UnexpectedError, match="a bug of the model's") as caught:
        engine.step()
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("guided", [False, True])
def test_no_forward_has_more_than_max_rows(guided: bool) -> None:
    """Whatever a strategy's width is, and however wide a single request."""
    model = random_lm(0)
    engine = Engine(model, EngineSettings(max_rows=3))
    wide = Custom(beam=8, widths=lambda pool: 8)
    for prompt in ([1], [2, 2]):
        engine.add(canvas_request(model, prompt, 4, wide, Options(cfg_scale=1.0 if guided else 0.0)))
    found = outcomes(engine)
    assert all(event.decoding is not None for event in found.values())
    assert max(len(ids) for ids in model.seen) <= 3


def test_errors_of_ours_are_soar_errors() -> None:
    assert issubclass(StrategyError, SoarError)
    assert issubclass(StopError, SoarError)
