"""Readings of a whole batch from the device to the host, in one transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from soar_dlm.search.candidate import Floats, Ints
from soar_dlm.search.question import Question, Reading, Wanted
from soar_dlm.search.reading import Extras, named


@dataclass(frozen=True, eq=False)
class Slice:
    """What the head said of some positions: tokens and confidences [S], and what else was wanted."""

    tokens: Tensor
    confidence: Tensor
    extras: Extras | None = None


@dataclass(frozen=True, eq=False)
class HostPart:
    """All positions that were read with the same settings. A distribution stays on its device."""

    tokens: Ints
    confidence: Floats
    floats: Floats
    ids: Ints
    distribution: Tensor | None

    def reading(self, question: Question, span: slice, wanted: Wanted, given: bool) -> Reading:
        """The answer to a question about the positions of ``span``."""
        more = named(self.floats[span], self.ids[span], wanted, given) if self.floats.size or self.ids.size else {}
        if self.distribution is not None:
            more["distribution"] = self.distribution[span]
        return Reading(question.positions, self.tokens[span].astype(np.int64), self.confidence[span], **more)


def to_host(parts: Sequence[Sequence[Slice]]) -> list[HostPart]:
    """The slices of each part, put together: everything is packed into 32-bit words for the way."""
    if not parts:
        return []
    packed = [_packed(slices) for slices in parts]
    words = torch.cat([word.flatten() for own in packed for word in own]).cpu().numpy()
    ends = np.cumsum([word.numel() for own in packed for word in own])
    arrays = iter(np.split(words, ends[:-1]))
    read: list[HostPart] = []
    for slices, own in zip(parts, packed, strict=True):
        tokens, confidence, floats, ids = (next(arrays).reshape(tuple(word.shape)) for word in own)
        whole = [one.extras.distribution for one in slices if one.extras is not None]
        distributions = [part for part in whole if part is not None]
        read.append(
            HostPart(
                tokens,
                confidence.view(np.float32),
                floats.view(np.float32),
                ids.astype(np.int64),
                torch.cat(distributions) if distributions else None,
            )
        )
    return read


def _packed(slices: Sequence[Slice]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens [S], confidences [S], other floats [S, F] and ids [S, T] as 32-bit words."""
    tokens = torch.cat([one.tokens for one in slices]).to(torch.int32)
    confidence = torch.cat([one.confidence for one in slices]).to(torch.float32)
    extras = [one.extras for one in slices if one.extras is not None]
    empty = tokens.new_empty(len(tokens), 0)
    if not extras:
        return tokens, confidence.view(torch.int32), empty, empty
    floats = torch.cat([one.floats for one in extras]).to(torch.float32)
    ids = torch.cat([one.ids for one in extras]).to(torch.int32)
    return tokens, confidence.view(torch.int32), floats.view(torch.int32) if floats.numel() else empty, ids
