"""What a strategy may return. It is other people's code, so whatever comes out of it is checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from soar_dlm.errors import StrategyError, shown
from soar_dlm.search.candidate import Candidate, Proposal
from soar_dlm.search.question import Answer, Question, Search


def checked_search(search: Any) -> Search:
    """A generator, ready to be started."""
    if not isinstance(search, Generator):
        raise StrategyError(f"search must be a generator that yields lists of questions, not {shown(search)}.")
    return search


def checked_questions(questions: Any) -> Sequence[Question]:
    """At least one question, each about positions of its own canvas."""
    if not isinstance(questions, Sequence) or not questions:
        raise StrategyError(f"search must yield a list of at least one Question, not {shown(questions)}.")
    for question in questions:
        if not isinstance(question, Question) or not isinstance(question.candidate, Candidate):
            raise StrategyError(f"search must yield Questions about Candidates, not {shown(question)}.")
        where, size = question.positions, question.candidate.tokens.size
        if not isinstance(where, np.ndarray) or where.ndim != 1 or where.dtype.kind not in "iu" or not where.size:
            raise StrategyError(
                f"The positions of a Question must be a non-empty array of indices, not {shown(where)}."
            )
        if where.min() < 0 or where.max() >= size:
            raise StrategyError(f"A Question asks about a position outside its canvas of {size}: {where.tolist()}.")
        for name in ("uniforms", "full", "given"):
            values = getattr(question, name)
            if values is not None and (not isinstance(values, np.ndarray) or values.shape != where.shape):
                raise StrategyError(f"{name} of a Question must be an array with a value for each position.")
    return questions


def checked_answer(answer: Any) -> Answer:
    """An answer whose canvas is full and whose details are numbers."""
    found = Answer(answer) if isinstance(answer, Candidate) else answer
    if not isinstance(found, Answer) or not isinstance(found.candidate, Candidate):
        raise StrategyError(f"search must return a Candidate or an Answer, not {shown(answer)}.")
    others = () if found.others is None else found.others
    if not isinstance(others, Sequence) or not all(isinstance(one, Candidate) for one in others):
        raise StrategyError(f"The others of an Answer must be a list of Candidates, not {shown(others)}.")
    for candidate in (found.candidate, *others):
        if candidate.left:
            raise StrategyError(f"search returned a canvas that still has {candidate.left} masks.")
    if not isinstance(found.details, Mapping):
        raise StrategyError(f"The details of an Answer must map names to numbers, not be {shown(found.details)}.")
    return replace(found, details={name: _checked_detail(name, value) for name, value in found.details.items()})


def _checked_detail(name: Any, value: Any) -> float:
    """A finite number, as Python has them: details are written as JSON."""
    if not isinstance(name, str) or not isinstance(value, Real) or not math.isfinite(value):
        raise StrategyError(
            f"The details of an Answer must be finite numbers with a name, not {shown(name)}: {shown(value)}."
        )
    return int(value) if isinstance(value, Integral) else float(value)


def checked_proposals(proposals: Any, size: int) -> list[Proposal]:
    """Proposals that can be committed to a reading of ``size`` positions, or an error that says what is wrong."""
    if not isinstance(proposals, Sequence) or not proposals:
        raise StrategyError(f"propose must return a list of at least one Proposal, not {shown(proposals)}.")
    for proposal in proposals:
        if not isinstance(proposal, Proposal) or proposal.mode not in ("search", "parallel"):
            raise StrategyError(f"propose must return Proposals of mode 'search' or 'parallel', not {shown(proposal)}.")
        picks = proposal.picks
        if not isinstance(picks, np.ndarray) or picks.ndim != 1 or picks.dtype.kind not in "iu" or not picks.size:
            raise StrategyError(f"The picks of a Proposal must be a non-empty array of indices, not {shown(picks)}.")
        if picks.min() < 0 or picks.max() >= size:
            raise StrategyError(f"A Proposal picks {picks.tolist()}, but there are {size} positions: 0 to {size - 1}.")
        if np.unique(picks).size < picks.size:
            raise StrategyError(f"A Proposal picks a position twice: {picks.tolist()}.")
    return list(proposals)


def checked_rank(value: Any, what: str = "rank") -> float:
    """A rank that candidates can be sorted by, or a verdict; traces are written as JSON, so it must be finite."""
    if not isinstance(value, Real) or not math.isfinite(value):
        raise StrategyError(f"A {what} must be a finite number, not {shown(value)}.")
    return float(value)


def checked_width(value: Any, beam: int) -> int:
    """A width from 1 to the beam."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= beam:
        raise StrategyError(f"width must return a whole number from 1 to the beam, {beam}, not {shown(value)}.")
    return int(value)
