"""Runners-up: which token came second wherever one was committed, at no change to the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import soar_dlm as soar
from soar_dlm.engine.trace import StepRecord, Trace
from soar_dlm.errors import InputFileError
from soar_dlm.search.candidate import Proposal
from soar_dlm.search.question import Reading, Wanted
from tests.report_runs import STRATEGIES, TEMPLATE

SAMPLED = {"temperature": 0.8, "top_k": 20, "seed": 7}


def without(trace: Trace) -> list[StepRecord]:
    return [replace(one, beam=tuple(replace(entry, runners_up=()) for entry in one.beam)) for one in trace]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize(
    "options", [{}, {"block_length": 5, "cfg_scale": 0.5}, SAMPLED], ids=["plain", "guided", "drawn"]
)
def test_noting_them_changes_nothing_else(
    random_llada: soar.LM, strategy: soar.Strategy, options: dict[str, Any]
) -> None:
    if options is SAMPLED and isinstance(strategy, (soar.FreeDave, soar.Deliberate)):
        options = {}
    bare, noted = (
        random_llada.generate("hello there", strategy, max_new_tokens=12, runners_up=on, **options)
        for on in (False, True)
    )
    assert noted.token_ids == bare.token_ids
    assert noted.details == bare.details
    assert without(noted.trace) == list(bare.trace)
    for entry in (entry for record in noted.trace for entry in record.beam if entry.mode != "reopened"):
        assert len(entry.runners_up) == len(entry.positions)
        assert all(second.token != token for second, token in zip(entry.runners_up, entry.tokens, strict=True))


def test_they_are_what_the_model_thinks_likeliest_after_the_token(random_llada: soar.LM) -> None:
    read: list[Reading] = []

    class Curious(soar.Greedy):
        wanted = Wanted(top=2)

        def propose(self, reading: Reading) -> list[Proposal]:
            read.append(reading)
            return super().propose(reading)

    result = random_llada.generate("hello there", Curious(), max_new_tokens=6, runners_up=True)
    for reading, entry in zip(read, result.trace.path(), strict=True):
        (pick,) = np.flatnonzero(reading.positions == entry.positions[0])
        assert reading.top_tokens is not None
        assert reading.top_log_p is not None
        assert (entry.tokens[0], entry.runners_up[0].token) == tuple(reading.top_tokens[pick])
        assert entry.runners_up[0].probability == pytest.approx(np.exp(reading.top_log_p[pick, 1]))


def test_an_expand_can_come_second_and_has_a_text(random_dreamon: soar.LM) -> None:
    trace = random_dreamon.infill_template(TEMPLATE, soar.Soar(2), runners_up=True).trace
    assert trace.scene is not None
    nearly = {second.token for record in trace for entry in record.beam for second in entry.runners_up}
    assert nearly <= trace.scene.pieces.keys()


def test_a_trace_file_keeps_them_and_refuses_those_of_other_positions(random_llada: soar.LM) -> None:
    trace = random_llada.generate("hello", soar.Soar(2), max_new_tokens=4, runners_up=True).trace
    line = trace.to_line()
    assert Trace.from_json(line) == trace
    line["trace"][0]["beam"][0]["runners_up"] *= 2
    with pytest.raises(InputFileError, match="other positions"):
        Trace.from_json(line)


def test_a_trace_without_them_does_not_mention_them(random_llada: soar.LM) -> None:
    trace = random_llada.generate("hello", soar.Soar(2), max_new_tokens=4).trace
    assert all("runners_up" not in entry for step in trace.to_json() for entry in step["beam"])


def test_a_stream_tells_the_scene_at_once_and_the_text_of_every_token(random_llada: soar.LM) -> None:
    events = list(random_llada.stream("hello", soar.Soar(2), max_new_tokens=6, runners_up=True))
    result = events[-1].result
    assert result is not None
    assert result.trace.scene is not None
    assert [event.scene is not None for event in events] == [True] + [False] * (len(events) - 1)
    pieces = {token: piece for event in events for token, piece in event.pieces.items()}
    assert pieces == result.trace.scene.pieces
    assert replace(result.trace.scene, pieces={}) == events[0].scene
