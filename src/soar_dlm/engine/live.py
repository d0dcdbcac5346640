"""One request while it is being decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from soar_dlm import checks
from soar_dlm.engine.bases import Bases, Run
from soar_dlm.engine.journal import Journal
from soar_dlm.engine.reader import Answered, Asked, ReadSettings
from soar_dlm.engine.request import (
    Decoding,
    FinishReason,
    Request,
    StepEvent,
    check_canvas,
    check_length,
    empty_canvas,
)
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.stopping import Decode, Stopping
from soar_dlm.engine.trace import StepRecord, Trace
from soar_dlm.errors import NonFiniteLogits, PromptTooLong, SettingsError, SoarError, StopError, StrategyError, told
from soar_dlm.models.masked_lm import CachingLM, MaskedLM
from soar_dlm.options import Options
from soar_dlm.search.candidate import Candidate
from soar_dlm.search.contract import checked_answer, checked_questions, checked_search
from soar_dlm.search.lengths import Lengths
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.question import Answer, Question, Reading, Search
from soar_dlm.search.sampling import Sampling
from soar_dlm.search.start import Start, unsettled
from soar_dlm.search.strategy import Strategy

_MOST_LIKELY = Sampling()
_DEFAULT = EngineSettings()


class LiveRequest:
    """A request's search, what it is waiting for, and the journal of its steps.

    Strategies are other people's code: whatever one raises ends this request, with an error that names the strategy.
    """

    def __init__(
        self,
        ticket: int,
        request: Request,
        model: MaskedLM,
        settings: EngineSettings = _DEFAULT,
        decode: Decode | None = None,
    ) -> None:
        checks.instance("A request", request, Request, "a soar_dlm.Request")
        facts = model.facts
        self.ticket, self.facts, self.options = ticket, facts, request.options
        try:
            self.strategy = request.strategy.bound(facts.thresholds)
            checks.whole_number("rows", self.strategy.rows, 1)
            get_metric(self.strategy.metric)  # a forward that all requests share reads with it
        except SoarError:
            raise
        except Exception as error:
            raise _blamed(request.strategy, error) from error
        tokens, fill = check_canvas(request.tokens, request.fill, facts)
        self._canvas = empty_canvas(tokens, fill, facts.mask_id, self.options.block_length)
        self._lengths = self._growth(request.max_length)
        self._settings = self._read_settings(self.options)
        ends = (*facts.end_ids, *self.options.stop_token_ids)
        self._stopping = Stopping(ends, request.stop, decode, facts.filler_id)
        self._journal = Journal(self._canvas, self.strategy.rank, self.options.trace)
        self._start = Start(
            self._canvas,
            facts.mask_id,
            self._journal.report,
            settle=self._stopping.settled if self.options.early_exit else unsettled,
            lengths=self._lengths,
            end_ids=self._stopping.ends,
            random=np.random.default_rng(self.options.seed) if self.options.temperature > 0 else None,
        )
        self._search: Search | None = None
        self._asked: Sequence[Question] = ()
        self._runs: Sequence[Run] | None = None
        self.stored_bytes, self._bases = self._cache(model, settings)

    @property
    def rows(self) -> int:
        """How many rows this request takes up in the next step."""
        return max(1, len(self._asked)) * self._settings.rows

    def _cache(self, model: MaskedLM, settings: EngineSettings) -> tuple[int, Bases | None]:
        """What the request may store, in bytes, and where; a cache that the budget could never hold is left out."""
        options = self.options
        if options.cache is None and options.suffix_window is None:
            return 0, None
        per_column = getattr(model, "column_bytes", None)
        if per_column is None:
            raise SettingsError(
                "This model cannot store keys and values for some of its columns: leave cache and suffix_window out. "
                "Models like LLaDA and Dream can, with the attention 'sdpa' or 'eager'."
            )
        growing = options.cache == "dual" and self._lengths is not None
        most = self.strategy.rows * (2 if growing else 1)  # an edit makes a new base from the old one
        taken = most * self._settings.rows * self._longest * int(per_column)
        if options.cache is not None and taken > settings.cache_budget:
            if options.suffix_window is None:
                return 0, None
            taken, options = 0, replace(options, cache=None, refresh_every=None)
        bases = Bases(options, cast(CachingLM, model).needed, most)
        return (0 if options.cache is None else taken), bases

    @property
    def cache(self) -> str | None:
        """The cache in use."""
        return None if self._bases is None else self._bases.kind

    @property
    def _longest(self) -> int:
        """The most positions that the canvas can have."""
        start, lengths = self._canvas, self._lengths
        sizes = np.bincount(start.blank[start.blank >= 0])
        return int(start.tokens.size + (0 if lengths is None else (lengths.most - sizes).sum()))

    def _growth(self, max_length: int | None) -> Lengths | None:
        if max_length is None:
            return None
        facts, start = self.facts, self._canvas
        if facts.expand_id is None or facts.delete_id is None:
            raise SettingsError("This model has no expand and delete tokens; it cannot change the length of a canvas.")
        check_length(max_length, max_length, facts)
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
    def full(self) -> bool:
        """Whether there is nothing to fill, and so nothing to ask."""
        return not self._canvas.open.any()

    def begin(self) -> StepEvent | None:
        """Start the search, once; an event if it is over before its first question."""
        if self._search is not None:
            return None
        try:
            self._search = checked_search(self.strategy.search(self._start))
        except Exception as error:
            return self._failed(_blamed(self.strategy, error))
        try:
            answer = self._resume(None)
        except SoarError as error:
            return self._failed(error)
        return None if answer is None else self.finish(answer)

    def questions(self) -> list[Asked]:
        """What the search waits for, equal questions once."""
        distinct = self._distinct()
        if self._bases is None:
            return [Asked(question, self._settings_of(question)) for question in distinct]
        self._runs = self._bases.plan(distinct)
        runs = zip(distinct, self._runs, strict=True)
        return [Asked(question, self._settings_of(question), run) for question, run in runs]

    def _distinct(self) -> Sequence[Question]:
        if len(self._asked) == 1:
            return self._asked
        return list({question.key: question for question in self._asked}.values())

    def _settings_of(self, question: Question) -> ReadSettings:
        """How to read this question: tokens are drawn only where it brings the numbers that decide."""
        sampling = self._settings.sampling if question.uniforms is not None else _MOST_LIKELY
        given, wanted = question.given is not None, question.wanted
        if self.options.runners_up:
            wanted = replace(wanted, top=max(wanted.top, 2))
        return replace(self._settings, sampling=sampling, wanted=wanted, given=given)

    def absorb(self, answers: Sequence[Answered]) -> StepEvent:
        """Send the answers to :meth:`questions` to the search, or end it with the error that stopped it."""
        self._journal.open_step(len(answers))
        try:
            asked = zip(answers, self._distinct(), strict=True)
            readings = [self._usable(answer.reading, question) for answer, question in asked]
            if self._bases is not None:
                readings = self._based(readings, answers)
            if len(readings) < len(self._asked):
                keys = [question.key for question in self._distinct()]
                known = dict(zip(keys, readings, strict=True))
                readings = [known[question.key] for question in self._asked]
            answer = self._resume(readings)
        except SoarError as error:
            return self._failed(error)
        record = self._journal.close_step(len(answers))
        if answer is not None:
            return self.finish(answer, record)
        live = self._journal.live if self.strategy.settles else ()
        return StepEvent(self.ticket, self._journal.best, record, live)

    def _based(self, readings: Sequence[Reading], answers: Sequence[Answered]) -> list[Reading]:
        """The readings, each with the base for what grows from it."""
        assert self._bases is not None
        assert self._runs is not None
        told = zip(readings, self._distinct(), self._runs, answers, strict=True)
        return [replace(one, base=self._bases.read(question, run, two.kept)) for one, question, run, two in told]

    def _resume(self, readings: Sequence[Reading] | None) -> Answer | None:
        """Run the search to its next questions; its answer if it has one, or the error that ended it."""
        try:
            return self._ran(readings)
        except StopError:
            raise
        except Exception as error:
            raise _blamed(self.strategy, error) from error

    def _ran(self, readings: Sequence[Reading] | None) -> Answer | None:
        assert self._search is not None
        try:
            asked = next(self._search) if readings is None else self._search.send(readings)
        except StopIteration as stop:
            answer = checked_answer(stop.value)
            if answer.others is None:
                answer = replace(answer, others=self._journal.finalists(answer.candidate))
            self._journal.answered(answer.candidate)
            return answer
        self._asked = checked_questions(asked)
        self._journal.asked_about([question.candidate for question in self._asked])
        return None

    def finish(self, answer: Answer | None = None, record: StepRecord | None = None) -> StepEvent:
        """The last event of a request that needs no further step; without an answer, there was nothing to fill."""
        found = answer or Answer(self._canvas)
        try:
            others = tuple(self._decoding(other, found) for other in found.others or ())
            decoding = replace(self._decoding(found.candidate, found), trace=self._journal.trace(), others=others)
            return StepEvent(self.ticket, found.candidate, record, (found.candidate,), decoding)
        except StopError as error:
            return self._failed(error)

    def _usable(self, answer: Reading | SoarError, question: Question) -> Reading:
        if isinstance(answer, SoarError):
            raise answer
        if np.isnan(answer.confidence).any():
            raise NonFiniteLogits(
                f"The model returned NaN or infinite logits at step {self._journal.steps}. Try dtype float32 or "
                "bfloat16 instead of float16, a lower cfg_scale, or check the checkpoint."
            )
        noted = answer.noting(question.wanted.top) if self.options.runners_up else answer
        return replace(noted, ends=np.isin(noted.tokens, self._stopping.ends))

    def _failed(self, error: SoarError) -> StepEvent:
        return StepEvent(self.ticket, self._journal.best, error=error)

    def _decoding(self, best: Candidate, answer: Answer) -> Decoding:
        """One of the canvases of an answer; the trace leads to the first of them only."""
        places = [np.flatnonzero(best.blank == blank) for blank in range(best.expansions.size)]
        return Decoding(
            tokens=tuple(best.tokens.tolist()),
            confidence=tuple(None if np.isnan(sure) else float(sure) for sure in best.confidence),
            blanks=tuple(tuple(place.tolist()) for place in places),
            lengths=tuple(self._stopping.length(best.tokens[place]) for place in places),
            steps=self._journal.steps,
            forwards=self._journal.forwards,
            written=best.written,
            mean_confidence=best.confidence_sum / max(best.committed, 1),
            finish_reason=self._finish_reason(best),
            cache=self.cache,
            details=dict(answer.details),
            trace=Trace(()),
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
    what = str(error) if isinstance(error, StrategyError) else f"{type(error).__name__}: {told(error)}."
    blamed = StrategyError(f"The strategy {type(strategy).__name__} failed and ended its request. {what}")
    blamed.__cause__ = error
    return blamed
