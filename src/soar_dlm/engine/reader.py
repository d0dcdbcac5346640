"""One forward for all candidates of all requests, and one transfer back to the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from soar_dlm.models.masked_lm import MaskedLM, Rows
from soar_dlm.search.candidate import Bools, Floats, Ints, Reading
from soar_dlm.search.confidence import get_metric
from soar_dlm.search.sampling import BANNED, Sampling, ban, read

CACHE = 2 * 2**20
"""Bytes of logits that a CPU core keeps close."""


@dataclass(frozen=True)
class ReadSettings:
    """How logits become tokens and confidences; positions with equal settings are read together."""

    metric: str
    sampling: Sampling
    cfg_scale: float
    banned: tuple[int, ...]
    expand_id: int | None = None

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
    full: Bools | None = None

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
    2. The backbone runs once.
    3. The head runs on the positions asked for, in slices that keep logits and what is made of them in the budget.
    4. Each slice is reduced to a token and a confidence per position at once; the vocabulary never leaves the device.
    5. Tokens and confidences of the whole batch come to the host in one transfer.
    """

    def __init__(self, model: MaskedLM, head_budget: int) -> None:
        self.model, self.head_budget = model, head_budget
        self._logits = torch.empty(0)

    @torch.inference_mode()
    def read(self, questions: Sequence[Question]) -> list[Reading]:
        groups: dict[ReadSettings, int] = {}
        group_of = [groups.setdefault(question.settings, len(groups)) for question in questions]
        order = sorted(range(len(questions)), key=group_of.__getitem__)
        asked = [questions[place] for place in order]
        parts = [
            _Part.of(list(members), self.model.device)
            for _, members in groupby(asked, key=lambda question: question.settings)
        ]
        hidden = self.model.hidden(self._rows(asked))
        tokens, confidence = self._to_host(list(self._slices(parts, hidden)))
        ends = np.cumsum([question.columns.size for question in asked])
        readings: dict[int, Reading] = {}
        for place, question, end in zip(order, asked, ends, strict=True):
            part = slice(end - question.columns.size, end)
            readings[place] = Reading(question.columns, tokens[part].astype(np.int64), confidence[part])
        return [readings[place] for place in range(len(questions))]

    def _rows(self, asked: Sequence[Question]) -> Rows:
        guided = [question for question in asked if question.settings.cfg_scale]
        canvases = [question.tokens for question in asked]
        canvases += [question.unconditional(self.model.facts.mask_id) for question in guided]
        columns = [question.columns for question in (*asked, *guided)]
        longest = max(canvas.size for canvas in canvases)
        padding = np.array([longest - canvas.size for canvas in canvases])
        ids = np.full((len(canvases), longest), self.model.facts.pad_id, dtype=np.int64)
        for row, canvas in enumerate(canvases):
            ids[row, padding[row] :] = canvas
        device = self.model.device
        return Rows(
            ids=torch.from_numpy(ids).to(device),
            padding=torch.from_numpy(padding).to(device) if padding.any() else None,
            row=torch.from_numpy(np.repeat(np.arange(len(columns)), [part.size for part in columns])).to(device),
            column=torch.from_numpy(
                np.concatenate([part + pad for part, pad in zip(columns, padding, strict=True)])
            ).to(device),
        )

    def _slices(self, parts: Sequence[_Part], hidden: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Tokens and confidences, slice by slice, in the order of the questions' positions."""
        start, twin = 0, sum(part.size for part in parts)
        for part in parts:
            settings = part.settings
            banned, uniforms, full = (given.to(hidden.device) for given in (part.banned, part.uniforms, part.full))
            metric = get_metric(settings.metric)
            step = max(1, self.head_budget // (4 * self.model.facts.vocab_size * settings.buffers))
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
