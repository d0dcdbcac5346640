"""One forward for all candidates of all requests, and one transfer back to the host."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from soar_dlm.engine.memory import OutOfRoom, out_of_room
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.engine.transfer import HostPart, Slice, to_host
from soar_dlm.errors import OutOfMemory, SoarError
from soar_dlm.models.masked_lm import MaskedLM, Rows
from soar_dlm.search.candidate import Ints
from soar_dlm.search.metrics import get_metric
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
    """A question of a request, and how that request reads logits."""

    question: Question
    settings: ReadSettings

    @property
    def size(self) -> int:
        return int(self.question.positions.size)

    def unconditional(self, mask_id: int) -> Ints:
        """The row with its prompt masked, for classifier-free guidance."""
        candidate = self.question.candidate
        return np.where(candidate.blank >= 0, candidate.tokens, mask_id)


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

    1. Rows are sorted by how they are read and left-padded to the longest; guided rows have an unconditional twin.
    2. The backbone runs once, or once for every ``max_rows`` rows.
    3. The head runs on the positions asked for, in slices that keep logits and what is made of them in the budget.
    4. Each slice is reduced to a token and a confidence per position at once, and to what else a question wants; the
       vocabulary never leaves the device.
    5. What was read of the whole batch comes to the host in one transfer.
    6. Where the backbone runs out of memory, its rows are halved, and later forwards are kept as small: memory grows
       with rows times length, so that product is what is remembered. Where the head does, its budget is halved. A
       question that does not fit even so is answered by an error.
    """

    def __init__(self, model: MaskedLM, settings: EngineSettings) -> None:
        self.model, self.head_budget, self.max_rows = model, settings.head_budget, settings.max_rows
        self._logits = torch.empty(0)
        self._most_tokens: float = math.inf

    @torch.inference_mode()
    def read(self, asked: Sequence[Asked]) -> list[Reading | SoarError]:
        """The answer to each question."""
        groups: dict[ReadSettings, int] = {}
        group_of = [groups.setdefault(one.settings, len(groups)) for one in asked]
        order = sorted(range(len(asked)), key=group_of.__getitem__)
        answers = dict(zip(order, self._answers([asked[place] for place in order]), strict=True))
        return [answers[place] for place in range(len(asked))]

    def _answers(self, asked: Sequence[Asked]) -> list[Reading | SoarError]:
        """The answers to questions sorted by their settings."""
        groups = [list(members) for _, members in groupby(asked, key=lambda one: one.settings)]
        parts = [_Part.of(members, self.model.device) for members in groups]
        guided = [place for place, one in enumerate(asked) if one.settings.cfg_scale]
        owner = [*range(len(asked)), *guided]
        hidden, lost = self._hidden(self._rows(asked), [asked[place].size for place in owner])
        errors: dict[int, SoarError] = {owner[row]: _too_long(asked[owner[row]], why) for row, why in lost.items()}
        if hidden is None:
            return [errors[place] for place in range(len(asked))]
        try:
            on_host = self._read(parts, hidden)
        except OutOfRoom as error:
            return [_no_head(error) for _ in asked]
        answers: list[Reading | SoarError] = []
        for members, part in zip(groups, on_host, strict=True):
            start = 0
            for one in members:
                span, settings = slice(start, start + one.size), one.settings
                read_there = part.reading(one.question, span, settings.wanted, settings.given)
                answers.append(errors.get(len(answers)) or read_there)
                start += one.size
        return answers

    def _hidden(self, rows: Rows, places: Sequence[int]) -> tuple[Tensor | None, dict[int, str]]:
        """The states of all places, and the rows that do not fit into memory alone, with the reason.

        ``places`` [R] counts the places of each row. The states of a row that does not fit are zeros; there are no
        states at all if no row fits.
        """
        count, length = rows.ids.shape
        ends = [0, *np.cumsum(places).tolist()]
        states: list[Tensor | int] = []
        lost: dict[int, str] = {}
        start = 0
        while start < count:
            stop = min(count, start + self.max_rows, start + int(max(1, min(count, self._most_tokens // length))))
            try:
                with out_of_room(self.model.device):
                    states.append(self.model.hidden(rows if stop - start == count else _some(rows, start, stop, ends)))
            except OutOfRoom as error:
                if stop - start > 1:
                    self._most_tokens = (stop - start) * length / 2
                    continue
                lost[start] = str(error)
                states.append(places[start])
            start = stop
        real = next((state for state in states if isinstance(state, Tensor)), None)
        if real is None:
            return None, lost
        if len(states) == 1:
            return real, lost
        whole = [state if isinstance(state, Tensor) else real.new_zeros(state, real.shape[1]) for state in states]
        return torch.cat(whole), lost

    def _read(self, parts: Sequence[_Part], hidden: Tensor) -> list[HostPart]:
        """What is read of each part; the budget shrinks until there is room, or one place has none."""
        while True:
            try:
                with out_of_room(hidden.device):
                    return to_host(list(self._slices(parts, hidden)))
            except OutOfRoom:
                self._logits = torch.empty(0)
                if all(self._slice_size(part.settings) == 1 for part in parts):
                    raise
                self.head_budget //= 2

    def _slice_size(self, settings: ReadSettings) -> int:
        """How many positions the head reads at a time."""
        return max(1, self.head_budget // (4 * self.model.facts.vocab_size * settings.buffers))

    def _rows(self, asked: Sequence[Asked]) -> Rows:
        guided = [one for one in asked if one.settings.cfg_scale]
        canvases = [one.question.candidate.tokens for one in asked]
        canvases += [one.unconditional(self.model.facts.mask_id) for one in guided]
        columns = [one.question.positions for one in (*asked, *guided)]
        return Rows.packed(canvases, columns, self.model.facts.pad_id, self.model.device)

    def _slices(self, parts: Sequence[_Part], hidden: Tensor) -> Iterator[list[Slice]]:
        """The slices of each part, in the order of the questions' positions."""
        start, twin = 0, sum(part.size for part in parts)
        for part in parts:
            guided = bool(part.settings.cfg_scale)
            beside = hidden[twin : twin + part.size] if guided else None
            yield list(self._part_slices(part, hidden[start : start + part.size], beside))
            start += part.size
            twin += part.size if guided else 0

    def _part_slices(self, part: _Part, hidden: Tensor, twin: Tensor | None) -> Iterator[Slice]:
        settings = part.settings
        own = (part.banned, part.uniforms, part.full, part.given)
        banned, uniforms, full, given = (values.to(hidden.device) for values in own)
        metric = get_metric(settings.metric)
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


def _some(rows: Rows, start: int, stop: int, ends: Sequence[int]) -> Rows:
    """A range of the rows with the places asked for in them, without the padding that all of them have."""
    places = slice(ends[start], ends[stop])
    ids, row, column = rows.ids[start:stop], rows.row[places] - start, rows.column[places]
    if rows.padding is None:
        return Rows(ids, None, row, column)
    padding = rows.padding[start:stop]
    common = int(padding.min())
    padding = padding - common
    return Rows(ids[:, common:], padding if bool(padding.any()) else None, row, column - common)


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
