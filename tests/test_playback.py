"""A trace read back from its file shows the very canvases that decoding went through."""

from __future__ import annotations

import json
from typing import Any

import pytest

import soar_dlm as soar
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import SoarError
from soar_dlm.playback import Playback
from soar_dlm.results import Event
from tests.closeness import about

STRATEGIES: list[soar.Strategy] = [
    soar.Greedy(),
    soar.Greedy(3),
    soar.AdaptiveParallel(0.2),
    soar.PositionBeam(3),
    soar.Soar(3, 0.2),
    soar.Lopa(0.2),
    soar.FreeDave(3),
    soar.Core(every=3, weak=4),
    soar.Klass(),
    soar.Deliberate(0.2, accept=0.0, tries=3, least=-20.0),
    soar.Deliberate(0.2, accept=0.0, tries=4, abreast=2, least=-20.0),
]


def seen(event: Event) -> list[Any]:
    """What an event shows of the canvas; what a masked position holds does not matter."""
    cells = zip(event.positions, event.blanks, event.masked, event.token_ids, event.confidence, strict=True)
    return [event.step, event.forwards, [cell[:3] if cell[2] else cell for cell in cells]]


def check(events: list[Event], packed: bool) -> None:
    result = events[-1].result
    assert result is not None
    line = json.dumps(result.trace.to_line(packed))
    played = list(Playback(Trace.from_json(line)).events())
    assert [seen(event) for event in played] == about([seen(event) for event in events])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_every_strategy_is_played_back_as_it_was_streamed(strategy: soar.Strategy, packed: bool) -> None:
    lm = soar.load("random-llada")
    check(list(lm.stream("once upon a time", strategy, max_new_tokens=12, seed=1)), packed)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_blanks_that_change_their_length_are_played_back(strategy: soar.Strategy) -> None:
    lm = soar.load("mini-dreamon")
    text = "def double(x):\n    return {blank:2}\n\ndef half(x):\n    return {blank:9}\n"
    events = list(lm.stream_infill(text, strategy, max_length=12))
    check(events, packed=True)
    sizes = {size for event in events if event.record for entry in event.record.beam for size in entry.sizes}
    assert sizes & {0, 2}


def test_an_early_exit_fills_the_rest() -> None:
    lm = soar.load("mini-llada")
    question = "Eva wins 10 stickers. Eva finds 18 more stickers. How many stickers does Eva have now?"
    events = list(lm.stream(question, soar.Greedy(defer_end=True), max_new_tokens=56))
    check(events, packed=True)
    last = list(Playback(events[-1].result.trace).events())[-1]  # type: ignore[union-attr]
    assert not any(last.masked)
    assert None in last.confidence


def test_the_scene_says_what_tokens_mean() -> None:
    lm = soar.load("mini-llada")
    result = lm.generate("Eva wins 10 stickers. How many stickers does Eva have now?", max_new_tokens=24)
    scene = result.trace.scene
    assert scene is not None
    assert scene.around[0].startswith("Eva wins 10")
    assert "".join(scene.pieces[token] for token in result.tokens) == result.text
    assert scene.blanks == ((result.prompt_length, 24),)


def test_a_confidence_without_a_bound_has_a_share() -> None:
    result = soar.load("random-dreamon").infill("a", "b", soar.Greedy(metric="neg_entropy"))
    scene = result.trace.scene
    assert scene is not None
    assert (scene.low, scene.share(0.0)) == (None, 1.0)
    assert 0 < scene.share(-1.0) < scene.share(-0.5) < 1


def test_a_trace_without_a_scene_is_refused_with_a_sentence() -> None:
    trace = soar.load("random-llada").generate("a", max_new_tokens=3).trace
    with pytest.raises(SoarError, match="does not say what its tokens mean"):
        Playback(Trace.from_json(trace.to_json()))


@pytest.mark.parametrize(
    "damage",
    [
        {"around": ["a"]},
        {"blanks": [[0, 3], [2, 3]], "around": ["", "", ""]},
        {"blanks": [["x", 3]]},
        {"pieces": {"1": 5}},
        {"pieces": [1]},
        {"low": 2.0},
        {"ends": "x"},
        {"filler": -1},
    ],
    ids=repr,
)
def test_a_damaged_scene_is_refused(damage: dict[str, Any]) -> None:
    line = soar.load("random-llada").generate("a", max_new_tokens=3).trace.to_line()
    line["scene"] |= damage
    with pytest.raises(SoarError, match="not a trace"):
        Trace.from_json(json.dumps(line))


@pytest.mark.parametrize("damage", [{"format": 2}, {"steps": [[1]]}, {"steps": [[1, 0, [99, 1, 0, [], [], [], 0, 0]]]}])
def test_a_damaged_packing_is_refused(damage: dict[str, Any]) -> None:
    line = soar.load("random-llada").generate("a", max_new_tokens=3).trace.to_line(packed=True)
    line["trace"] |= damage
    with pytest.raises(SoarError, match="not a trace"):
        Trace.from_json(json.dumps(line))
