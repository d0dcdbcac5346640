"""One request while it is being decoded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from soar_dlm import checks
from soar_dlm.engine.reader import Question, ReadSettings
from soar_dlm.engine.request import Decoding, FinishReason, Request, StepEvent, check_canvas, empty_canvas
from soar_dlm.engine.stopping import Decode, Stopping
from soar_dlm.engine.trace import BeamEntry, StepRecord, Trace
from soar_dlm.errors import NonFiniteLogits, PromptTooLong, SettingsError, SoarError, StopError, StrategyError
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.options import Options
from soar_dlm.search.beam import advance
from soar_dlm.search.candidate import Candidate, Reading
from soar_dlm.search.lengths import Lengths
from soar_dlm.search.strategy import Strategy


class LiveRequest:
    """The search of one request: its beam and the record of its steps.

    Strategies are other people's code: whatever one raises ends this request, with an error that names the strategy.
    """

    def __init__(self, ticket: int, request: Request, facts: ModelFacts, decode: Decode | None = None) -> None:
        self.ticket, self.facts, self.options = ticket, facts, request.options
        if not isinstance(request.strategy, Strategy):
            raise SettingsError(f"strategy must be a soar_dlm.Strategy such as Soar(), not {request.strategy!r}.")
        try:
            self.strategy = request.strategy.bound(facts.thresholds)
            checks.whole_number("beam", self.strategy.beam, 1)
        except SoarError:
            raise
        except Exception as error:
            raise _blamed(request.strategy, error) from error
        tokens, fill = check_canvas(request.tokens, request.fill, facts)
        self.beam = [empty_canvas(tokens, fill, facts.mask_id, self.options.block_length)]
        self._lengths = self._growth(request.max_length)
        self._settings = self._read_settings(self.options)
        self._stopping = Stopping((*facts.end_ids, *self.options.stop_token_ids), request.stop, decode)
        self._random = np.random.default_rng(self.options.seed)
        self._records: list[StepRecord] = []
        self.forwards = self.steps = 0

    @property
    def rows(self) -> int:
        """The most rows this request can take up in a step."""
        return self.strategy.beam * self._settings.rows

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
        for name in ("suppress_tokens", "stop_token_ids"):
            if any(token >= self.facts.vocab_size for token in getattr(options, name)):
                raise SettingsError(f"{name} has an id outside the model's vocabulary of {self.facts.vocab_size}.")
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
        """What to ask the model about each candidate of the beam; None for one without a mask."""
        draws = None
        if self.options.temperature > 0:
            longest = max(candidate.tokens.size for candidate in self.beam)
            draws = self._random.random((len(self.beam), longest), dtype=np.float32)
        asked: list[Question | None] = []
        for place, candidate in enumerate(self.beam):
            columns = candidate.window()
            if not columns.size:
                asked.append(None)
                continue
            full = None
            if self._lengths is not None:
                full = self._lengths.room(candidate)[candidate.blank[columns]] == 0
            asked.append(
                Question(
                    candidate.tokens,
                    columns,
                    self._settings,
                    uniforms=None if draws is None else draws[place, columns],
                    to_fill=candidate.blank >= 0,
                    full=full,
                )
            )
        return asked

    def absorb(self, answers: Sequence[Reading | SoarError | None]) -> StepEvent:
        """Advance the search by one step, or end it with the error that stopped it."""
        try:
            readings = [self._usable(answer) for answer in answers]
        except SoarError as error:
            return self._failed(error)
        try:
            self.beam = advance(self.beam, readings, self.strategy, self._settle, self._lengths)
            entries = tuple(BeamEntry.of(candidate, self.strategy.rank(candidate)) for candidate in self.beam)
        except StopError as error:
            return self._failed(error)
        except Exception as error:
            return self._failed(_blamed(self.strategy, error))
        ran = sum(reading is not None for reading in readings)
        self.forwards += ran
        self.steps += 1
        record = StepRecord(self.steps, ran, entries)
        if self.options.trace:
            self._records.append(record)
        return self.finish(record) if self.finished else StepEvent(self.ticket, self.beam[0], record)

    def finish(self, record: StepRecord | None = None) -> StepEvent:
        """The last event of a request that needs no further step."""
        try:
            return StepEvent(self.ticket, self.beam[0], record, self._decoding())
        except StopError as error:
            return self._failed(error)

    def _usable(self, answer: Reading | SoarError | None) -> Reading | None:
        if isinstance(answer, SoarError):
            raise answer
        if answer is not None and np.isnan(answer.confidence).any():
            raise NonFiniteLogits(
                f"The model returned NaN or infinite logits at step {self.steps + 1}. Try dtype float32 or bfloat16 "
                "instead of float16, a lower cfg_scale, or check the checkpoint."
            )
        return answer

    def _failed(self, error: SoarError) -> StepEvent:
        return StepEvent(self.ticket, self.beam[0], error=error)

    def _settle(self, candidate: Candidate) -> Candidate:
        """Early exit: complete a candidate whose text has ended."""
        if not self.options.early_exit or not candidate.open.any():
            return candidate
        first_open = int(np.argmax(candidate.open))
        if candidate.last.positions.min() > first_open:
            return candidate  # the filled part before the first mask has not grown
        text = candidate.tokens[:first_open][candidate.blank[:first_open] >= 0]
        return candidate.filled(self.facts.filler_id) if self._stopping.ended(text) else candidate

    def _decoding(self) -> Decoding:
        best = self.beam[0]
        places = [np.flatnonzero(best.blank == blank) for blank in range(best.expansions.size)]
        return Decoding(
            tokens=tuple(best.tokens.tolist()),
            confidence=tuple(None if np.isnan(sure) else float(sure) for sure in best.confidence),
            blanks=tuple(tuple(place.tolist()) for place in places),
            lengths=tuple(self._stopping.length(best.tokens[place]) for place in places),
            steps=self.steps,
            forwards=self.forwards,
            written=best.written,
            mean_confidence=best.confidence_sum / max(best.committed, 1),
            finish_reason=self._finish_reason(best),
            trace=Trace(tuple(self._records)),
        )

    def _finish_reason(self, best: Candidate) -> FinishReason:
        if self._stopping.ended(best.tokens[best.blank >= 0]):
            return "stop"
        if self._lengths is None:
            return "length"
        if (best.expansions >= self._lengths.most).any():
            return "budget"
        return "stop" if self._lengths.room(best).all() else "length"


def _blamed(strategy: Strategy, error: Exception) -> StrategyError:
    """The error of a strategy's own code, with the strategy's name in it."""
    what = str(error) if isinstance(error, StrategyError) else f"{type(error).__name__}: {error}"
    blamed = StrategyError(f"The strategy {type(strategy).__name__} failed and ended its request. {what}")
    blamed.__cause__ = error
    return blamed
