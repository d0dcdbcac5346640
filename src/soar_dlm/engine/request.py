"""One request and its search while it is being decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from soar_dlm.engine.reader import Question, ReadSettings
from soar_dlm.engine.settings import Options
from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.errors import NonFiniteLogits, PromptError, PromptTooLong, SettingsError, SoarError
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.search.beam import advance
from soar_dlm.search.candidate import Candidate, Ints, Reading
from soar_dlm.search.strategy import Strategy

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Request:
    """A canvas to fill.

    ``tokens`` is the whole row; ``fill`` names the positions to decode, everything else stays as it is. ``stop`` gets
    the filled tokens before the first masked position and says whether the text may end there.
    """

    tokens: Sequence[int]
    fill: Sequence[int]
    strategy: Strategy
    options: Options = field(default_factory=Options)
    stop: Callable[[list[int]], bool] | None = None


@dataclass(frozen=True)
class Decoding:
    """A finished request: the whole canvas and how it came about.

    ``forwards`` counts candidate evaluations, ``steps`` denoising steps; ``committed`` counts the tokens that the model
    committed, not those an early exit filled in; ``mean_confidence`` is over these tokens.
    """

    tokens: tuple[int, ...]
    steps: int
    forwards: int
    committed: int
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
    """The search of one request: its beam, the window being filled, and the record of its steps.

    Blocks are counted from the first position to fill. A window is finished when no candidate in the beam has a masked
    position in it; the beam then moves to the next window with its scores.
    """

    def __init__(self, ticket: int, request: Request, facts: ModelFacts) -> None:
        self.ticket, self.facts, self.options = ticket, facts, request.options
        self.strategy = request.strategy.bound(facts.thresholds)
        tokens, fill = check_canvas(request.tokens, request.fill, facts)
        self.fill = fill
        self.stop = request.stop
        is_open = np.zeros(tokens.size, dtype=np.bool_)
        is_open[fill] = True
        self._to_fill = is_open.copy()
        tokens[fill] = facts.mask_id
        self.beam = [Candidate(tokens, is_open)]
        self.forwards = 0
        self.records: list[StepRecord] = []
        self._random = np.random.default_rng(self.options.seed)
        self._settings = self._read_settings(request.options)
        self._ends = np.array(facts.end_ids, dtype=np.int64)
        length = tokens.size if self.options.block_length is None else self.options.block_length
        self._window = (int(fill[0]), int(fill[0]) + length) if fill.size else (0, 0)
        self._block = length

    def _read_settings(self, options: Options) -> ReadSettings:
        banned = set(options.suppress_tokens)
        if any(token >= self.facts.vocab_size for token in banned):
            raise SettingsError(f"suppress_tokens has an id outside the model's vocabulary of {self.facts.vocab_size}.")
        if self.strategy.rules.bans_mask:
            banned.add(self.facts.mask_id)
        if len(banned) >= self.facts.vocab_size:
            raise SettingsError("suppress_tokens leaves no token to predict.")
        return ReadSettings(self.strategy.metric, options.sampling, options.cfg_scale, tuple(sorted(banned)))

    @property
    def finished(self) -> bool:
        deciding = self.beam[:1] if self.strategy.rules.ends_with_best else self.beam
        return not any(candidate.open.any() for candidate in deciding)

    def questions(self) -> list[Question | None]:
        """What to ask the model about each candidate of the beam; None where the window is filled."""
        low, high = self._window
        draws = None
        if self.options.temperature > 0:
            draws = self._random.random((len(self.beam), self._to_fill.size), dtype=np.float32)
        asked: list[Question | None] = []
        for place, candidate in enumerate(self.beam):
            columns = np.flatnonzero(candidate.open[low:high]) + low
            uniforms = None if draws is None else draws[place, columns]
            question = Question(candidate.tokens, columns, self._settings, uniforms, self._to_fill)
            asked.append(question if columns.size else None)
        return asked

    def absorb(self, readings: Sequence[Reading | None]) -> StepEvent:
        """Move the search one step on."""
        step = len(self.records) + 1
        ran = [reading for reading in readings if reading is not None]
        self.forwards += len(ran)
        if any(np.isnan(reading.confidence).any() for reading in ran):
            return StepEvent(self.ticket, self.beam[0], error=self._non_finite(step))
        self.beam = advance(self.beam, readings, self.strategy, self._settle)
        self._move_window()
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
        text = candidate.tokens[:first_open][self._to_fill[:first_open]]
        ended = self._has_end(text) or (self.stop is not None and self.stop(text.tolist()))
        return candidate.filled(self.facts.filler_id) if ended else candidate

    def _has_end(self, tokens: Ints) -> bool:
        return bool((tokens[:, None] == self._ends).any())

    def _move_window(self) -> None:
        while not self.finished:
            low, high = self._window
            unfilled = [bool(candidate.open[low:high].any()) for candidate in self.beam]
            if self.strategy.rules.ends_with_best and not unfilled[0]:
                self.beam = [candidate for candidate, left in zip(self.beam, unfilled, strict=True) if not left]
            elif any(unfilled):
                return
            self._window = (high, high + self._block)

    def decoding(self) -> Decoding:
        best = self.beam[0]
        text = best.tokens[self.fill]
        ended = self._has_end(text) or (self.stop is not None and self.stop(text.tolist()))
        return Decoding(
            tokens=tuple(best.tokens.tolist()),
            steps=len(self.records),
            forwards=self.forwards,
            committed=best.committed,
            mean_confidence=best.confidence_sum / max(best.committed, 1),
            finish_reason="stop" if ended else "length",
            trace=Trace(tuple(self.records)),
        )


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
