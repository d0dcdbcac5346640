"""One forward for all candidates of all requests, and one transfer back to the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from soar_dlm.engine.bases import Run
from soar_dlm.engine.forwards import Forwards, Row
from soar_dlm.engine.measuring import checked_metric
from soar_dlm.engine.memory import OutOfRoom, out_of_room
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.transfer import HostPart, Slice, to_host
from soar_dlm.errors import OutOfMemory, SoarError, StrategyError
from soar_dlm.models.masked_lm import MaskedLM, Stored
from soar_dlm.search.candidate import Ints
from soar_dlm.search.question import ONLY_TOKENS, Question, Reading, Wanted
from soar_dlm.search.reading import BANNED, ban, read, read_more
from soar_dlm.search.sampling import Sampling

CACHE = 2 * 2**20
"""Bytes of logits that a CPU core keeps close."""


@dataclass(frozen=True)
class ReadSettings:
    """How logits become readings; positions with equal settings are read together.

    ``given`` says that the log probability of a given token is wanted at each position.
    """

    metric: str
    sampling: Sampling
    cfg_scale: float
    banned: tuple[int, ...]
    expand_id: int | None
    wanted: Wanted = ONLY_TOKENS
    given: bool = False

    @property
    def rows(self) -> int:
        """Rows of a forward that one question takes: guidance adds a twin."""
        return 2 if self.cfg_scale else 1

    @property
    def more(self) -> bool:
        """Whether anything is wanted besides tokens and confidences."""
        return self.given or self.wanted != ONLY_TOKENS

    @property
    def buffers(self) -> int:
        """float32 copies of the logits alive at once: what the head itself needs, guidance, and the reading."""
        return 1 + self.sampling.buffers + (1 if self.cfg_scale else 0) + (5 if self.more else 0)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question of a request, how that request reads logits, and how it is run: None runs all columns."""

    question: Question
    settings: ReadSettings
    run: Run | None = None

    @property
    def size(self) -> int:
        return int(self.question.positions.size)

    def rows(self, mask_id: int) -> list[Row]:
        """The canvas and, for classifier-free guidance, its twin, the same canvas with its prompt masked."""
        canvas = self.question.candidate
        made = [self._row(canvas.tokens, 0)]
        if self.settings.cfg_scale:
            made.append(self._row(np.where(canvas.blank >= 0, canvas.tokens, mask_id), 1))
        return made

    def _row(self, tokens: Ints, number: int) -> Row:
        run = self.run
        if run is None:
            return Row(tokens, self.question.positions)
        read = np.searchsorted(run.columns, self.question.positions)
        stored = run.stored[number] if run.stored else None
        return Row(tokens[run.columns], read, run.columns, stored, run.keep_indices())


@dataclass(frozen=True, eq=False)
class Answered:
    """What was read, or why nothing could be; and what was stored of each row of the question."""

    reading: Reading | SoarError
    kept: Sequence[Stored | None] = ()


@dataclass(frozen=True, eq=False)
class _Part:
    """Neighbouring questions with the same settings: how many positions, and what reading them takes.

    Made before the forward is started, so that nothing has to wait for it.
    """

    settings: ReadSettings
    size: int
    banned: Tensor
    uniforms: Tensor
    full: Tensor
    given: Tensor

    @classmethod
    def of(cls, asked: Sequence[Asked], device: torch.device) -> _Part:
        settings = asked[0].settings

        def joined(name: str) -> Tensor:
            parts = [part for one in asked if (part := getattr(one.question, name)) is not None]
            return torch.from_numpy(np.concatenate(parts)).to(device) if parts else torch.empty(0, device=device)

        return cls(
            settings,
            size=sum(one.size for one in asked),
            banned=torch.tensor(settings.banned, dtype=torch.int64, device=device),
            uniforms=joined("uniforms"),
            full=joined("full"),
            given=joined("given"),
        )


class Reader:
    """Runs the model and reads its logits.

    1. Questions are sorted by how they are read; guided ones have a second row, their unconditional twin.
    2. The backbone runs all rows, in as few forwards as fit (:class:`Forwards`).
    3. The head runs on the positions asked for, in slices that keep logits and what is made of them in the budget.
    4. Each slice is reduced to a token and a confidence per position at once, and to what else a question wants; the
       vocabulary never leaves the device.
    5. What was read of the whole batch comes to the host in one transfer.
    6. Where the head runs out of memory, its budget is halved. A question that does not fit even so, or whose row
       does not, is answered by an error.
    7. Where a metric fails, the questions that are read with it are read again one by one, and only those on which it
       fails are answered by its error.
    """

    def __init__(self, model: MaskedLM, settings: EngineSettings) -> None:
        self.model, self.head_budget = model, settings.head_budget
        self._forwards = Forwards(model, settings.max_rows)
        self._logits = torch.empty(0)

    @torch.inference_mode()
    def read(self, asked: Sequence[Asked]) -> list[Answered]:
        """The answer to each question."""
        groups: dict[ReadSettings, int] = {}
        group_of = [groups.setdefault(one.settings, len(groups)) for one in asked]
        order = sorted(range(len(asked)), key=group_of.__getitem__)
        answers = dict(zip(order, self._answers([asked[place] for place in order]), strict=True))
        return [answers[place] for place in range(len(asked))]

    def _answers(self, asked: Sequence[Asked]) -> list[Answered]:
        """The answers to questions sorted by their settings."""
        groups = [list(members) for _, members in groupby(asked, key=lambda one: one.settings)]
        parts = self._parts(groups)
        rows = [one.rows(self.model.facts.mask_id) for one in asked]
        guided = [place for place, own in enumerate(rows) if len(own) > 1]
        outcome = self._forwards.run([*(own[0] for own in rows), *(rows[place][1] for place in guided)])
        owner = [*range(len(asked)), *guided]
        errors: dict[int, SoarError] = {
            owner[row]: _too_long(asked[owner[row]], why) for row, why in outcome.lost.items()
        }
        if outcome.states is None:
            return [Answered(errors[place]) for place in range(len(asked))]
        try:
            on_host = self._read(parts, outcome.states)
            failed = [isinstance(part, StrategyError) for part in on_host]
            if any(failed):
                groups = [own for members, alone in zip(groups, failed, strict=True) for own in _split(members, alone)]
                on_host = self._read(self._parts(groups), outcome.states)
        except OutOfRoom as error:
            return [Answered(_no_head(error)) for _ in asked]
        kept: list[list[Stored | None]] = [[] for _ in asked]
        for place, stored in zip(owner, outcome.kept, strict=True):
            kept[place].append(stored)
        answers: list[Answered] = []
        for members, part in zip(groups, on_host, strict=True):
            start = 0
            for one in members:
                span, settings = slice(start, start + one.size), one.settings
                place = len(answers)
                if isinstance(part, StrategyError):
                    read_there: Reading | SoarError = part
                else:
                    read_there = part.reading(one.question, span, settings.wanted, settings.given)
                answers.append(Answered(errors.get(place) or read_there, kept[place]))
                start += one.size
        return answers

    def _parts(self, groups: Sequence[Sequence[Asked]]) -> list[_Part]:
        return [_Part.of(members, self.model.device) for members in groups]

    def _read(self, parts: Sequence[_Part], hidden: Tensor) -> list[HostPart | StrategyError]:
        """What is read of each part; the budget shrinks until there is room, or one place has none."""
        while True:
            try:
                with out_of_room(hidden.device):
                    slices = list(self._slices(parts, hidden))
                    read = iter(to_host([own for own in slices if not isinstance(own, StrategyError)]))
                    return [own if isinstance(own, StrategyError) else next(read) for own in slices]
            except OutOfRoom:
                self._logits = torch.empty(0)
                if all(self._slice_size(part.settings) == 1 for part in parts):
                    raise
                self.head_budget //= 2

    def _slice_size(self, settings: ReadSettings) -> int:
        """How many positions the head reads at a time."""
        return max(1, self.head_budget // (4 * self.model.facts.vocab_size * settings.buffers))

    def _slices(self, parts: Sequence[_Part], hidden: Tensor) -> Iterator[list[Slice] | StrategyError]:
        """The slices of each part, in the order of the questions' positions; or why its metric gave none."""
        start, twin = 0, sum(part.size for part in parts)
        for part in parts:
            guided = bool(part.settings.cfg_scale)
            beside = hidden[twin : twin + part.size] if guided else None
            try:
                yield list(self._part_slices(part, hidden[start : start + part.size], beside))
            except StrategyError as error:
                yield error
            start += part.size
            twin += part.size if guided else 0

    def _part_slices(self, part: _Part, hidden: Tensor, twin: Tensor | None) -> Iterator[Slice]:
        settings = part.settings
        own = (part.banned, part.uniforms, part.full, part.given)
        banned, uniforms, full, given = (values.to(hidden.device) for values in own)
        metric = checked_metric(settings.metric)
        step = self._slice_size(settings)
        for low in range(0, part.size, step):
            high = min(low + step, part.size)
            logits = self._memory(high - low, hidden.device)
            self.model.head(hidden[low:high], logits)
            if twin is not None:
                base = torch.empty_like(logits)
                self.model.head(twin[low:high], base)
                logits.sub_(base).mul_(1 + settings.cfg_scale).add_(base)
                del base
            ban(logits, banned)
            if settings.expand_id is not None:
                logits[:, settings.expand_id].masked_fill_(full[low:high], BANNED)
            for near in self._tiles(high - low, hidden.device):
                tile = logits[near]
                kept = tile.clone() if settings.more else tile
                tokens, confidence = read(kept, metric, settings.sampling, uniforms[low:high][near])
                extras = None
                if settings.more:
                    wanted_of = given[low:high][near] if settings.given else None
                    extras = read_more(tile, tokens, metric, settings.wanted, wanted_of)
                yield Slice(tokens, confidence, extras)

    def _memory(self, positions: int, device: torch.device) -> Tensor:
        """Where to put logits: the same memory in every step, as fresh pages cost a CPU more than reading them does."""
        if len(self._logits) < positions:
            self._logits = torch.empty(positions, self.model.facts.vocab_size, device=device)
        return self._logits[:positions]

    def _tiles(self, positions: int, device: torch.device) -> Iterator[slice]:
        """Positions read at a time: on a CPU as many as stay in its cache from the first pass to the last."""
        near = CACHE if device.type == "cpu" else self.head_budget
        size = max(1, near // (4 * self.model.facts.vocab_size))
        return (slice(low, low + size) for low in range(0, positions, size))


def _split(members: list[Asked], alone: bool) -> list[list[Asked]]:
    """The questions of a group together, or each alone."""
    return [[one] for one in members] if alone else [members]


def _too_long(asked: Asked, why: str) -> OutOfMemory:
    return OutOfMemory(
        f"A row of {asked.question.candidate.tokens.size} tokens does not fit into memory, not even alone ({why}). "
        "Shorten the prompt or the canvas, or load the model in a smaller dtype."
    )


def _no_head(error: OutOfRoom) -> OutOfMemory:
    return OutOfMemory(
        f"The logits of a single position do not fit into memory ({error}). Load the model in a smaller dtype, or free "
        "memory on the device."
    )
