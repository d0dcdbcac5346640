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
from soar_dlm.errors import OutOfMemory, SoarError
from soar_dlm.models.masked_lm import MaskedLM, Rows
from soar_dlm.search.candidate import Bools, Floats, Ints, Reading
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.reading import BANNED, ban, read
from soar_dlm.search.sampling import Sampling

CACHE = 2 * 2**20
"""Bytes of logits that a CPU core keeps close."""


@dataclass(frozen=True)
class ReadSettings:
    """How logits become tokens and confidences; positions with equal settings are read together."""

    metric: str
    sampling: Sampling
    cfg_scale: float
    banned: tuple[int, ...]
    expand_id: int | None

    @property
    def rows(self) -> int:
        """Rows of a forward that one question takes: guidance adds a twin."""
        return 2 if self.cfg_scale else 1

    @property
    def buffers(self) -> int:
        """float32 copies of the logits alive at once: what the head itself needs, guidance, and the reading."""
        return 1 + self.sampling.buffers + (1 if self.cfg_scale else 0)


@dataclass(frozen=True, eq=False)
class Question:
    """One candidate's row and the masked positions to read, all in canvas coordinates.

    ``uniforms`` [W] decide the draws when tokens are sampled; ``to_fill`` [L] tells the prompt from the rest.
    ``full`` [W], on a canvas that can grow, says where expand is not offered.
    """

    tokens: Ints
    columns: Ints
    settings: ReadSettings
    uniforms: Floats | None
    to_fill: Bools
    full: Bools | None

    def unconditional(self, mask_id: int) -> Ints:
        """The row with its prompt masked, for classifier-free guidance."""
        return np.where(self.to_fill, self.tokens, mask_id)


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

    @classmethod
    def of(cls, questions: Sequence[Question], device: torch.device) -> _Part:
        settings = questions[0].settings
        drawn = [question.uniforms for question in questions if question.uniforms is not None]
        full = [question.full for question in questions if question.full is not None]
        return cls(
            settings,
            size=sum(question.columns.size for question in questions),
            banned=torch.tensor(settings.banned, dtype=torch.int64, device=device),
            uniforms=torch.from_numpy(np.concatenate(drawn)).to(device) if drawn else torch.empty(0, device=device),
            full=torch.from_numpy(np.concatenate(full)).to(device) if full else torch.empty(0, device=device),
        )


class Reader:
    """Runs the model and reads its logits.

    1. Rows are sorted by how they are read and left-padded to the longest; guided rows have an unconditional twin.
    2. The backbone runs once, or once for every ``max_rows`` rows.
    3. The head runs on the positions asked for, in slices that keep logits and what is made of them in the budget.
    4. Each slice is reduced to a token and a confidence per position at once; the vocabulary never leaves the device.
    5. Tokens and confidences of the whole batch come to the host in one transfer.
    6. Where the backbone runs out of memory, its rows are halved, and later forwards are kept as small: memory grows
       with rows times length, so that product is what is remembered. Where the head does, its budget is halved. A
       question that does not fit even so is answered by an error.
    """

    def __init__(self, model: MaskedLM, settings: EngineSettings) -> None:
        self.model, self.head_budget, self.max_rows = model, settings.head_budget, settings.max_rows
        self._logits = torch.empty(0)
        self._most_tokens: float = math.inf

    @torch.inference_mode()
    def read(self, questions: Sequence[Question]) -> list[Reading | SoarError]:
        """The answer to each question."""
        groups: dict[ReadSettings, int] = {}
        group_of = [groups.setdefault(question.settings, len(groups)) for question in questions]
        order = sorted(range(len(questions)), key=group_of.__getitem__)
        answers = dict(zip(order, self._answers([questions[place] for place in order]), strict=True))
        return [answers[place] for place in range(len(questions))]

    def _answers(self, asked: Sequence[Question]) -> list[Reading | SoarError]:
        """The answers to questions sorted by their settings."""
        parts = [
            _Part.of(list(members), self.model.device)
            for _, members in groupby(asked, key=lambda question: question.settings)
        ]
        guided = [place for place, question in enumerate(asked) if question.settings.cfg_scale]
        owner = [*range(len(asked)), *guided]
        hidden, lost = self._hidden(self._rows(asked), [asked[place].columns.size for place in owner])
        errors: dict[int, SoarError] = {owner[row]: _too_long(asked[owner[row]], why) for row, why in lost.items()}
        if hidden is None:
            return [errors[place] for place in range(len(asked))]
        try:
            tokens, confidence = self._read(parts, hidden)
        except OutOfRoom as error:
            return [_no_head(error) for _ in asked]
        ends = np.cumsum([question.columns.size for question in asked])
        spans = [slice(end - question.columns.size, end) for question, end in zip(asked, ends, strict=True)]
        return [
            errors.get(place) or Reading(question.columns, tokens[span].astype(np.int64), confidence[span])
            for place, (question, span) in enumerate(zip(asked, spans, strict=True))
        ]

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

    def _read(self, parts: Sequence[_Part], hidden: Tensor) -> tuple[Ints, Floats]:
        """Tokens and confidences of all places; the budget shrinks until there is room, or one place has none."""
        while True:
            try:
                with out_of_room(hidden.device):
                    return self._to_host(list(self._slices(parts, hidden)))
            except OutOfRoom:
                self._logits = torch.empty(0)
                if all(self._slice_size(part.settings) == 1 for part in parts):
                    raise
                self.head_budget //= 2

    def _slice_size(self, settings: ReadSettings) -> int:
        """How many positions the head reads at a time."""
        return max(1, self.head_budget // (4 * self.model.facts.vocab_size * settings.buffers))

    def _rows(self, asked: Sequence[Question]) -> Rows:
        guided = [question for question in asked if question.settings.cfg_scale]
        canvases = [question.tokens for question in asked]
        canvases += [question.unconditional(self.model.facts.mask_id) for question in guided]
        columns = [question.columns for question in (*asked, *guided)]
        return Rows.packed(canvases, columns, self.model.facts.pad_id, self.model.device)

    def _slices(self, parts: Sequence[_Part], hidden: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Tokens and confidences, slice by slice, in the order of the questions' positions."""
        start, twin = 0, sum(part.size for part in parts)
        for part in parts:
            settings = part.settings
            banned, uniforms, full = (given.to(hidden.device) for given in (part.banned, part.uniforms, part.full))
            metric = get_metric(settings.metric)
            step = self._slice_size(settings)
            for low in range(0, part.size, step):
                high = min(low + step, part.size)
                logits = self._memory(high - low, hidden.device)
                self.model.head(hidden[start + low : start + high], logits)
                if settings.cfg_scale:
                    base = torch.empty_like(logits)
                    self.model.head(hidden[twin + low : twin + high], base)
                    logits.sub_(base).mul_(1 + settings.cfg_scale).add_(base)
                    del base
                ban(logits, banned)
                if settings.expand_id is not None:
                    logits[:, settings.expand_id].masked_fill_(full[low:high], BANNED)
                for near in self._tiles(high - low, hidden.device):
                    yield read(logits[near], metric, settings.sampling, uniforms[low:high][near])
            start += part.size
            twin += part.size if settings.cfg_scale else 0

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

    def _to_host(self, parts: Sequence[tuple[Tensor, Tensor]]) -> tuple[Ints, Floats]:
        tokens = torch.cat([part[0] for part in parts]).to(torch.int32)
        confidence = torch.cat([part[1] for part in parts]).to(torch.float32)
        packed = torch.stack([tokens, confidence.view(torch.int32)]).cpu().numpy()
        return packed[0], packed[1].view(np.float32)


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


def _too_long(question: Question, why: str) -> OutOfMemory:
    return OutOfMemory(
        f"A row of {question.tokens.size} tokens does not fit into memory, not even alone ({why}). "
        "Shorten the prompt or the canvas, or load the model in a smaller dtype."
    )


def _no_head(error: OutOfRoom) -> OutOfMemory:
    return OutOfMemory(
        f"The logits of a single position do not fit into memory ({error}). Load the model in a smaller dtype, or free "
        "memory on the device."
    )
