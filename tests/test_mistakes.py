"""Where a decoding first leaves the right answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.evals.mistakes import Mistake, first_mistake
from soar_dlm.options import Options
from soar_dlm.search.candidate import Mode
from soar_dlm.search.core import Core
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.freedave import FreeDave
from soar_dlm.search.lopa import Lopa
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.strategy import Strategy
from tests.crafted import decode_one, neighbourly_lm

RIGHT = {5: 50, 6: 60, 7: 70}


def entry(
    commits: dict[int, tuple[int, float]],
    origin: int = 0,
    mode: Mode = "search",
    after: int | None = None,
    left: int = 1,
) -> BeamEntry:
    """Committed tokens and confidences; by default after the step before."""
    tokens = tuple(token for token, _ in commits.values())
    confidence = tuple(sure for _, sure in commits.values())
    sizes = (1,) * len(tokens)
    return BeamEntry(mode, origin, tuple(commits), tokens, confidence, 0.0, left, sizes, -1 if after is None else after)


def trace(*beams: list[BeamEntry]) -> Trace:
    """What each step left, best first."""
    records = []
    for step, beam in enumerate(beams, 1):
        entries = tuple(replace(one, after=step - 1) if one.after < 0 else one for one in beam)
        records.append(StepRecord(step, len(beam), entries))
    return Trace(tuple(records))


def test_a_right_answer_has_none() -> None:
    steps = trace([entry({6: (60, 0.9)})], [entry({5: (50, 0.8), 7: (70, 0.8)}, mode="parallel")])
    assert first_mistake(steps, RIGHT) is None


def test_the_first_wrong_commit_counts_and_a_right_way_beside_it_is_seen() -> None:
    first = [entry({6: (60, 0.9)}), entry({5: (50, 0.7)})]
    second = [entry({5: (51, 0.6), 7: (71, 0.8)}, mode="parallel"), entry({6: (60, 0.5)}, origin=1)]
    steps = trace(first, second, [entry({}, mode="kept")])
    assert first_mistake(steps, RIGHT) == Mistake(2, 1, 2, "parallel", 0.8, beside=True)


def test_a_mistake_of_the_parent_is_a_mistake_of_its_children() -> None:
    """The beam's second candidate went wrong one step before the answer's way did."""
    first = [entry({6: (60, 0.9)}), entry({5: (51, 0.7)})]
    second = [entry({5: (51, 0.6)}), entry({6: (60, 0.5)}, origin=1)]
    found = first_mistake(trace(first, second, [entry({7: (70, 0.9)})]), RIGHT)
    assert found == Mistake(2, 1, 1, "search", 0.6, beside=False)


def test_a_token_that_was_taken_back_is_no_mistake() -> None:
    steps = trace(
        [entry({5: (51, 0.9)})],
        [entry({6: (60, 0.8)})],
        [entry({5: (51, 0.9)}, mode="reopened")],
        [entry({5: (50, 0.7)})],
        [entry({7: (71, 0.6)})],
    )
    assert first_mistake(steps, RIGHT) == Mistake(5, 2, 1, "search", 0.6, beside=False)
    assert first_mistake(Trace(steps.steps[:4]), RIGHT) is None


def test_steps_may_do_several_things_or_none() -> None:
    """A trace used to be taken for a beam's, with one entry of the path in each step."""
    both = [entry({5: (50, 0.9)}), entry({6: (61, 0.8)}, origin=0, after=1)]
    steps = trace(both, [], [entry({7: (70, 0.9)}, origin=1, after=1)])
    assert first_mistake(steps, RIGHT) == Mistake(1, 1, 1, "search", 0.8, beside=False), "its own parent is not beside"
    assert first_mistake(trace(both, []), RIGHT) is None, "the answer is the best of the last step that left any"


def test_a_right_text_that_was_completed_and_passed_over_counts_as_seen() -> None:
    draft = [entry({5: (50, 0.9)}), entry({6: (60, 0.9), 7: (70, 0.9)}, after=1, left=0)]
    branch = [entry({5: (51, 0.2)}, mode="branch", after=0)]
    steps = trace(draft, branch, [entry({6: (60, 0.9), 7: (70, 0.9)}, mode="parallel", left=0)])
    assert first_mistake(steps, RIGHT) == Mistake(2, 0, 1, "branch", 0.2, beside=True)
    without = trace([draft[0]], branch, [entry({6: (60, 0.9), 7: (70, 0.9)}, mode="parallel", left=0)])
    assert first_mistake(without, RIGHT) == Mistake(2, 0, 1, "branch", 0.2, beside=False)


@pytest.mark.parametrize(
    "strategy",
    [
        PositionBeam(beam=3),
        Lopa(threshold=0.9),
        FreeDave(drafts=3),
        Core(every=2, weak=3),
        Deliberate(threshold=0.9, accept=0.0, tries=6),
        Deliberate(threshold=0.9, accept=0.0, tries=6, abreast=3),
    ],
)
def test_of_any_search_a_mistake_is_found_exactly_if_the_answer_is_wrong(strategy: Strategy) -> None:
    for seed in range(8):
        model = neighbourly_lm(seed, 8)
        found = decode_one(model, [1, 2], 6, strategy, Options())
        answer = dict(enumerate(found.tokens))
        assert first_mistake(found.trace, answer) is None
        for position in range(2, 8):
            mistake = first_mistake(found.trace, answer | {position: (answer[position] + 1) % 8})
            assert mistake is not None
            assert mistake.confidence == pytest.approx(found.confidence[position])
