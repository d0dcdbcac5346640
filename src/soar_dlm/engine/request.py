"""One request and its search while it is being decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from soar_dlm import checks
from soar_dlm.engine.reader import Question, ReadSettings
from soar_dlm.engine.settings import Options
from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.errors import NonFiniteLogits, PromptError, PromptTooLong, SettingsError, SoarError
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.search.beam import advance
from soar_dlm.search.candidate import Candidate, Ints, Reading
from soar_dlm.search.lengths import Lengths
from soar_dlm.search.strategy import Strategy

FinishReason = Literal["stop", "length", "budget"]


@dataclass(frozen=True)
class Request:
    """A canvas to fill.

    ``tokens`` is the whole row; ``fill`` names the positions to decode, everything else stays as it is. ``stop`` gets
    the filled tokens before the first masked position and says whether the text may end there.

    With ``max_length`` the canvas can change its length, if the model has tokens for that: each unbroken run of
    positions to fill is a blank that may grow to so many positions, or shrink to none.
    """

    tokens: Sequence[int]
    fill: Sequence[int]
    strategy: Strategy
    options: Options = field(default_factory=Options)
    stop: Callable[[list[int]], bool] | None = None
    max_length: int | None = None


@dataclass(frozen=True)
class Decoding:
    """A finished request: the whole canvas and how it came about.

    ``blanks`` are the positions of each blank on it. ``forwards`` counts candidate evaluations, ``steps`` denoising
    steps; ``written`` counts the tokens that the model committed, not those an early exit filled in;
    ``mean_confidence`` is over all it committed, expands and deletes included.

    ``finish_reason`` is "stop" at an end token, where the request's ``stop`` says so, or if the canvas could have been
    longer; "length" if it was full; "budget" if a blank has expanded as often as it may and is not full.
    """

    tokens: tuple[int, ...]
    blanks: tuple[tuple[int, ...], ...]
    steps: int
    forwards: int
    written: int
    mean_confidence: float
    finish_reason: FinishReason
    trace: Trace


@dataclass(frozen=True)
class StepEvent:
    """What one step did to one request. The last event of a request carries its ``decoding`` or its ``error``."""

    ticket: int
    best: Candidate
    record: StepRecord | None = None
    decoding: Decoding | None = None
    error: SoarError | None = None

    @property
    def final(self) -> bool:
        return self.decoding is not None or self.error is not None


class LiveRequest:
    """The search of one request: its beam, the block being filled, and the record of its steps.

    A block is finished when no candidate in the beam has a masked position in it; the beam then moves to the next one
    with its scores. A block grows and shrinks with the edits inside it.
    """

    def __init__(self, ticket: int, request: Request, facts: ModelFacts) -> None:
        self.ticket, self.facts, self.options = ticket, facts, request.options
        self.strategy = request.strategy.bound(facts.thresholds)
        tokens, fill = check_canvas(request.tokens, request.fill, facts)
        self.stop = request.stop
        self.beam = [empty_canvas(tokens, fill, facts.mask_id, self.options.block_length)]
        self._lengths = self._growth(request.max_length)
        self.forwards = 0
        self.records: list[StepRecord] = []
        self._random = np.random.default_rng(self.options.seed)
        self._settings = self._read_settings(request.options)
        ends = [token for token in facts.end_ids if self._lengths is None or token != facts.delete_id]
        self._ends = np.array(ends, dtype=np.int64)
        self._block = 0

    def _growth(self, max_length: int | None) -> Lengths | None:
        if max_length is None:
            return None
        facts, start = self.facts, self.beam[0]
        if facts.expand_id is None or facts.delete_id is None:
            raise SettingsError("This model has no expand and delete tokens; it cannot change the length of a canvas.")
        checks.whole_number("max_length", max_length, 1)
        sizes = np.bincount(start.blank[start.blank >= 0])
        if sizes.size and max_length < sizes.max():
            raise SettingsError(f"max_length is {max_length}, but a blank starts with {sizes.max()} positions.")
        longest = start.tokens.size + int((max_length - sizes).sum())
        if facts.context is not None and longest > facts.context:
            raise PromptTooLong(
                f"Text and blanks can grow to {longest} tokens; the model's context is {facts.context}. "
                "Shorten the text or lower max_length."
            )
        return Lengths(facts.expand_id, facts.delete_id, facts.mask_id, np.full(sizes.size, max_length))

    def _read_settings(self, options: Options) -> ReadSettings:
        banned = set(options.suppress_tokens)
        if any(token >= self.facts.vocab_size for token in banned):
            raise SettingsError(f"suppress_tokens has an id outside the model's vocabulary of {self.facts.vocab_size}.")
        if self.strategy.rules.bans_mask:
            banned.add(self.facts.mask_id)
        if self._lengths is None and self.facts.expand_id is not None:
            banned.add(self.facts.expand_id)  # on a canvas of fixed length it would be a word without meaning
        if len(banned) >= self.facts.vocab_size:
            raise SettingsError("suppress_tokens leaves no token to predict.")
        expand = None if self._lengths is None else self._lengths.expand_id
        return ReadSettings(self.strategy.metric, options.sampling, options.cfg_scale, tuple(sorted(banned)), expand)

    @property
    def finished(self) -> bool:
        deciding = self.beam[:1] if self.strategy.rules.ends_with_best else self.beam
        return not any(candidate.open.any() for candidate in deciding)

    def questions(self) -> list[Question | None]:
        """What to ask the model about each candidate of the beam; None where the block is filled."""
        draws = None
        if self.options.temperature > 0:
            longest = max(candidate.tokens.size for candidate in self.beam)
            draws = self._random.random((len(self.beam), longest), dtype=np.float32)
        asked: list[Question | None] = []
        for place, candidate in enumerate(self.beam):
            columns = np.flatnonzero(candidate.open & (candidate.block == self._block))
            uniforms = None if draws is None else draws[place, columns]
            full = None
            if self._lengths is not None:
                full = self._lengths.room(candidate)[candidate.blank[columns]] == 0
            question = Question(
                candidate.tokens, columns, self._settings, uniforms, to_fill=candidate.blank >= 0, full=full
            )
            asked.append(question if columns.size else None)
        return asked

    def absorb(self, readings: Sequence[Reading | None]) -> StepEvent:
        """Move the search one step on."""
        step = len(self.records) + 1
        ran = [reading for reading in readings if reading is not None]
        self.forwards += len(ran)
        if any(np.isnan(reading.confidence).any() for reading in ran):
            return StepEvent(self.ticket, self.beam[0], error=self._non_finite(step))
        self.beam = advance(self.beam, readings, self.strategy, self._settle, self._lengths)
        self._move_block()
        entries = tuple(BeamEntry.of(candidate, self.strategy.rank(candidate)) for candidate in self.beam)
        record = StepRecord(step, len(ran), entries)
        self.records.append(record)
        return StepEvent(self.ticket, self.beam[0], record, self.decoding() if self.finished else None)

    def _non_finite(self, step: int) -> NonFiniteLogits:
        return NonFiniteLogits(
            f"The model returned NaN or infinite logits at step {step}. Try dtype float32 or bfloat16 instead of "
            "float16, a lower cfg_scale, or check the checkpoint."
        )

    def _settle(self, candidate: Candidate) -> Candidate:
        """Early exit: complete a candidate whose text has ended, at an end token or by the request's ``stop``."""
        if not self.options.early_exit or not candidate.open.any():
            return candidate
        first_open = int(np.argmax(candidate.open))
        if candidate.last.positions.min() > first_open:
            return candidate  # the filled part before the first mask has not grown
        text = candidate.tokens[:first_open][candidate.blank[:first_open] >= 0]
        ended = self._has_end(text) or (self.stop is not None and self.stop(text.tolist()))
        return candidate.filled(self.facts.filler_id) if ended else candidate

    def _has_end(self, tokens: Ints) -> bool:
        return bool((tokens[:, None] == self._ends).any())

    def _move_block(self) -> None:
        while not self.finished:
            unfilled = [bool(candidate.open[candidate.block == self._block].any()) for candidate in self.beam]
            if self.strategy.rules.ends_with_best and not unfilled[0]:
                self.beam = [candidate for candidate, left in zip(self.beam, unfilled, strict=True) if not left]
            elif any(unfilled):
                return
            self._block += 1

    def decoding(self) -> Decoding:
        best = self.beam[0]
        places = (np.flatnonzero(best.blank == blank) for blank in range(best.expansions.size))
        return Decoding(
            tokens=tuple(best.tokens.tolist()),
            blanks=tuple(tuple(place.tolist()) for place in places),
            steps=len(self.records),
            forwards=self.forwards,
            written=best.written,
            mean_confidence=best.confidence_sum / max(best.committed, 1),
            finish_reason=self._finish_reason(best),
            trace=Trace(tuple(self.records)),
        )

    def _finish_reason(self, best: Candidate) -> FinishReason:
        text = best.tokens[best.blank >= 0]
        if self._has_end(text) or (self.stop is not None and self.stop(text.tolist())):
            return "stop"
        if self._lengths is None:
            return "length"
        if (best.expansions >= self._lengths.most).any():
            return "budget"
        return "stop" if self._lengths.room(best).all() else "length"


def empty_canvas(tokens: Ints, fill: Ints, mask_id: int, block_length: int | None) -> Candidate:
    """The candidate a search starts from; each run of neighbouring positions to fill is a blank of its own.

    Blocks are counted from the first position to fill.
    """
    canvas = tokens.copy()
    canvas[fill] = mask_id
    is_open = np.zeros(tokens.size, dtype=np.bool_)
    is_open[fill] = True
    blank, block = np.full((2, tokens.size), -1, dtype=np.int64)
    blank[fill] = np.cumsum(np.diff(fill, prepend=fill[:1]) > 1)
    block[fill] = (fill - fill[:1]) // (block_length or tokens.size)
    blanks = int(blank.max()) + 1
    return Candidate(canvas, is_open, blank, block, expansions=np.zeros(blanks, dtype=np.int64))


def check_canvas(tokens: Sequence[int], fill: Sequence[int], facts: ModelFacts) -> tuple[Ints, Ints]:
    """The canvas and the sorted positions to fill as arrays, or an error that says what is wrong with them."""
    try:
        canvas, places = np.array(tokens, dtype=np.int64), np.unique(np.array(fill, dtype=np.int64))
    except (TypeError, ValueError, OverflowError) as error:
        raise PromptError(f"A canvas and its positions to fill must be lists of whole numbers: {error}.") from error
    if canvas.ndim != 1 or canvas.size == 0:
        raise PromptError("A canvas must be a flat, non-empty list of token ids.")
    if canvas.min() < 0 or canvas.max() >= facts.vocab_size:
        raise PromptError(f"A canvas has a token id outside the model's vocabulary (0 to {facts.vocab_size - 1}).")
    if places.size and (places[0] < 0 or places[-1] >= canvas.size):
        raise PromptError(f"A position to fill is outside the canvas (0 to {canvas.size - 1}).")
    if facts.context is not None and canvas.size > facts.context:
        raise PromptTooLong(
            f"Prompt and canvas are {canvas.size} tokens, {places.size} of them to fill; the model's context is "
            f"{facts.context}. Shorten the prompt or lower max_new_tokens."
        )
    return canvas, places
