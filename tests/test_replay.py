"""What one run of Deliberate tells about runs with other settings, against those runs themselves."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise, product
from typing import Any

import pytest

from soar_dlm.engine.request import Decoding, Request
from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.errors import SettingsError
from soar_dlm.evals.fields import Fields
from soar_dlm.evals.replay import NEVER, UNSCORED, Course, Outcome, check_replayable
from soar_dlm.lm import load
from soar_dlm.options import Options
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.strict_json import json_line, read_json
from soar_dlm.tasks.mini_gsm import MiniGsm
from soar_dlm.tasks.mini_infill import MiniInfill
from tests.crafted import CraftedLM, decode, random_lm
from tests.test_deliberate import PROMPT, deliberated, model_with_ends

MOST = 8


def up_to_end(model: CraftedLM, tokens: Sequence[int]) -> str:
    ends = [place for place, token in enumerate(tokens) if token in model.facts.end_ids]
    return str(list(tokens[: ends[0]] if ends else tokens))


def right(text: str) -> bool:
    """A verdict that half of the texts get."""
    return sum(map(ord, text)) % 2 == 0


def course_of(model: CraftedLM, run: Decoding, first: int = len(PROMPT)) -> Course:
    return Course.of(run.trace, first, lambda tokens: up_to_end(model, tokens), right)


def answered(model: CraftedLM, run: Decoding, first: int = len(PROMPT), last: int | None = None) -> Outcome:
    text = up_to_end(model, run.tokens[first:last])
    return Outcome(text, right(text), run.steps, run.forwards)


@pytest.mark.parametrize(
    ("drafts", "early_exit"),
    [(("open",), True), (("plain",), False), (("open", "plain"), True), (("plain", "open"), False)],
)
def test_a_replay_is_the_run_with_these_settings(drafts: tuple[str, ...], early_exit: bool) -> None:
    outcomes, stages = set(), 0
    for seed in range(5):
        model = model_with_ends(seed)
        full = Deliberate(threshold=0.9, accept=NEVER, tries=MOST, drafts=drafts)
        options = Options(early_exit=early_exit)
        course = course_of(model, deliberated(model, full, options))
        scores = sorted(stage.score for stage in course.stages)
        between = [(low + high) / 2 for low, high in pairwise(scores)]
        stages = max(stages, len(scores))
        for accept, tries in product((-99.0, *between, scores[-1], NEVER), (0, 1, 3, MOST)):
            run = deliberated(model, replace(full, accept=accept, tries=tries), options)
            assert course.outcome(accept, tries) == answered(model, run)
            outcomes.add((seed, run.tokens, run.forwards))
        alone = deliberated(model, replace(full, accept=-0.5, tries=3, skip=0.0), options)
        assert course.outcome(-0.5, 3, skip=0.0) == answered(model, alone)
    assert stages > 2, "there are texts to choose from"
    assert len(outcomes) > 20, "the settings matter"


def test_a_replay_on_a_canvas_that_changes_its_length() -> None:
    edits = 0
    for seed in range(6):
        model = random_lm(seed, vocab_size=7, ends=(5,), expand=4, delete=5)
        model._facts = replace(model.facts, end_ids=())
        full = Deliberate(threshold=0.9, accept=NEVER, tries=MOST)

        def run(strategy: Deliberate, model: CraftedLM = model) -> Decoding:
            return decode(model, [Request([1, 6, 6, 6, 2], [1, 2, 3], strategy, Options(), max_length=5)])[0]

        course = course_of(model, run(full), 1)
        scores = [stage.score for stage in course.stages if math.isfinite(stage.score)]
        for accept, tries in product((-99.0, *scores[-1:], NEVER), (0, 2, MOST)):
            found = run(replace(full, accept=accept, tries=tries))
            assert course.outcome(accept, tries) == answered(model, found, 1, -1)
            edits += len(found.tokens) != 5
    assert edits


def test_a_course_is_read_as_it_was_written() -> None:
    model = model_with_ends(3)
    course = course_of(model, deliberated(model, Deliberate(threshold=0.9, accept=NEVER, tries=MOST)))
    assert len(course.stages) > 1
    assert Course.read(Fields(json.loads(json.dumps(asdict(course))))) == course


@pytest.mark.parametrize("stop", [[], [" "]])
def test_the_texts_of_a_course_are_those_a_user_gets(stop: list[str]) -> None:
    lm = load("mini-llada", "cpu")
    full = Deliberate(threshold=0.9, accept=NEVER, tries=2)
    for problem in MiniGsm().distinct("validation", 2):
        result = lm.generate(problem.prompt, full, max_new_tokens=24, stop=stop, trace=True)
        course = Course.of(result.trace, result.prompt_length, lambda tokens: lm.text_of(tokens, stop), right)
        answer = Outcome(result.text, right(result.text), result.steps, result.forwards)
        assert course.outcome(NEVER, 2) == answer
        assert result.text


def test_the_texts_of_a_blank_that_grows_and_shrinks() -> None:
    lm = load("mini-dreamon", "cpu")
    full = Deliberate(threshold=0.9, accept=NEVER, tries=2)
    grown = 0
    for problem in MiniInfill().distinct("validation", 3):
        result = lm.infill(problem.prompt, problem.suffix, full, length=6, trace=True)
        course = Course.of(result.trace, result.prompt_length, lm.text_of, right)
        assert course.outcome(NEVER, 2) == Outcome(result.text, right(result.text), result.steps, result.forwards)
        grown += len(result.token_ids) != 6
    assert grown


@pytest.mark.parametrize(
    ("strategy", "told"),
    [
        (Soar(), "not those of Soar"),
        (Deliberate(accept=-0.1), "must accept nothing"),
        (Deliberate(accept=NEVER, abreast=2), "abreast"),
        (Deliberate(accept=NEVER, skip=0.5), "skip"),
        (Deliberate(accept=NEVER, budget=9), "budget"),
        (Deliberate(accept=NEVER, draft=Greedy()), "draft"),
    ],
)
def test_what_cannot_be_replayed_is_refused(strategy: Any, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        check_replayable(strategy)


def test_a_blank_that_stays_empty_has_a_course_too() -> None:
    """A text without tokens is not verified; a sweep used to end there with a failed assertion."""
    deleted = BeamEntry("search", 0, (3,), (9,), (0.8,), 0.8, 0, (0,))
    course = Course.of(
        Trace((StepRecord(1, 2, (deleted,)),)), 3, lambda tokens: f"{len(tokens)} tokens", lambda _: True
    )
    assert [stage.score for stage in course.stages] == [UNSCORED]
    for accept, skip in ((NEVER, None), (-5.0, None), (NEVER, 0.0)):
        assert course.outcome(accept, 4, skip) == Outcome("0 tokens", True, 1, 2)
    assert Course.read(Fields(read_json(json_line(asdict(course))))) == course


def test_a_first_draft_without_tokens_is_the_answer_until_a_branch_has_some() -> None:
    """The first text that was verified used to be the answer with no tries, too."""
    empty = BeamEntry("search", 0, (3,), (9,), (0.8,), 0.8, 0, (0,))
    branch = BeamEntry("branch", 0, (3,), (7,), (0.1,), 0.1, 0, (1,))
    verified = BeamEntry("verified", 1, (), (), (), -0.5, 0, (), after=1, verdict=-0.5)
    trace = Trace((StepRecord(1, 1, (empty, branch)), StepRecord(2, 3, (verified,))))
    course = Course.of(trace, 3, lambda tokens: f"{len(tokens)} tokens", lambda text: text != "0 tokens")
    assert course.outcome(NEVER, 0) == Outcome("0 tokens", False, 1, 1)
    assert course.outcome(NEVER, 0, skip=0.0) == Outcome("0 tokens", False, 1, 1)
    assert course.outcome(NEVER, 1) == Outcome("1 tokens", True, 2, 4)
    assert course.outcome(-1.0, 1) == Outcome("1 tokens", True, 2, 4)
