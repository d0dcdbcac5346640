"""Where a decoding first leaves the right answer."""

from __future__ import annotations

from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.evals.mistakes import Mistake, first_mistake
from soar_dlm.search.candidate import Mode

RIGHT = {5: 50, 6: 60, 7: 70}


def entry(commits: dict[int, tuple[int, float]], origin: int = 0, mode: Mode = "search") -> BeamEntry:
    tokens = tuple(token for token, _ in commits.values())
    confidence = tuple(sure for _, sure in commits.values())
    return BeamEntry(mode, origin, tuple(commits), tokens, confidence, rank=0.0, left=0, sizes=(1,) * len(tokens))


def trace(*beams: list[BeamEntry]) -> Trace:
    return Trace(tuple(StepRecord(step, len(beam), tuple(beam)) for step, beam in enumerate(beams, 1)))


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
