"""From logits to tokens and confidences: the most likely token of each position, or one drawn at a temperature."""

from __future__ import annotations

import torch
from torch import Tensor

from soar_dlm.search.confidence import Metric, most_likely
from soar_dlm.search.sampling import Sampling

BANNED = -1e30


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
    peak, tokens = most_likely(logits)
    finite = peak.isfinite() & logits.amin(-1).isfinite()  # a sum could overflow
    shifted = logits.sub_(peak.unsqueeze(-1))
    if sampling.temperature > 0:
        assert uniforms is not None
        tokens = torch.where(finite, draw(shifted, uniforms, sampling), tokens)
    return tokens, torch.where(finite, metric.measure(shifted, tokens), torch.nan)
