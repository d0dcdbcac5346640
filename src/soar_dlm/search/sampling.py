"""Choosing a token per position: the most likely one, or one drawn at a temperature."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from soar_dlm import checks
from soar_dlm.search.confidence import Metric, most_likely

BANNED = -1e30


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn from a position's logits.

    1. ``temperature`` 0 takes the most likely token, and the other two settings change nothing.
    2. Otherwise logits are divided by ``temperature``,
    3. only the ``top_k`` most likely tokens are kept (None: all),
    4. then only the fewest most likely tokens whose probabilities reach ``top_p``,
    5. and the token is drawn from what is left.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        checks.real_number("temperature", self.temperature, 0.0, float("inf"))
        checks.real_number("top_p", self.top_p, 0.0, 1.0, open_low=True)
        if self.top_k is not None:
            checks.whole_number("top_k", self.top_k, 1)

    @property
    def buffers(self) -> int:
        """How many float32 copies of the logits are alive at the peak of :func:`read`."""
        if self.temperature == 0:
            return 3
        return 6 if self.top_p == 1.0 else 12  # sorting takes indices and room to work in


def draw(shifted: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """One token per row by inverting the cumulative distribution: [S, V], [S] in [0, 1) -> [S].

    ``shifted`` are logits minus their row maximum, so that no temperature can overflow them. One number per position
    decides, so a draw depends on nothing else in the batch.
    """
    logits = (shifted / sampling.temperature).masked_fill_(shifted < BANNED / 2, -torch.inf)
    if sampling.top_k is not None and sampling.top_k < logits.shape[-1]:
        least = logits.topk(sampling.top_k).values[:, -1:]
        logits.masked_fill_(logits < least, -torch.inf)
    probabilities = logits.softmax(-1)
    del logits
    if sampling.top_p < 1.0:
        ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
        surplus = ordered.cumsum(-1).sub_(ordered) >= sampling.top_p
        probabilities.scatter_(-1, order, ordered.masked_fill_(surplus, 0.0))
    cumulative = probabilities.cumsum(-1)
    targets = uniforms.unsqueeze(-1) * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, targets, right=True).squeeze(-1)
    last_possible = torch.searchsorted(cumulative, cumulative[:, -1:].contiguous()).squeeze(-1)
    return torch.minimum(tokens, last_possible)


def ban(logits: Tensor, tokens: Tensor) -> None:
    """Make these columns count for nothing: [S, V], [B].

    Their probability is exactly 0, as with minus infinity; a finite number tells them from a model's infinities.
    """
    logits.index_fill_(-1, tokens, BANNED)


def read(logits: Tensor, metric: Metric, sampling: Sampling, uniforms: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The token each position would commit and the confidence in it: [S, V] -> [S], [S]. Overwrites ``logits``.

    A row in which any logit is NaN or infinite comes back with confidence NaN.
    """
    finite = logits.sum(-1).isfinite()
    peak, tokens = most_likely(logits)
    shifted = logits.sub_(peak.unsqueeze(-1))
    if sampling.temperature > 0:
        assert uniforms is not None
        tokens = torch.where(finite, draw(shifted, uniforms, sampling), tokens)
    return tokens, torch.where(finite, metric.measure(shifted, tokens), torch.nan)
