"""From logits to tokens and confidences: the most likely token of each position, or one drawn at a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from soar_dlm.search.candidate import Floats, Ints
from soar_dlm.search.confidence import Metric, most_likely
from soar_dlm.search.question import Wanted
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


@dataclass(frozen=True, eq=False)
class Extras:
    """What is read besides tokens and confidences: ``floats`` [S, F], ``ids`` [S, top], all log probabilities [S, V].

    :func:`read_more` puts the columns together and :func:`named` takes them apart.
    """

    floats: Tensor
    ids: Tensor
    distribution: Tensor | None


def read_more(logits: Tensor, tokens: Tensor, metric: Metric, wanted: Wanted, given: Tensor | None) -> Extras:
    """Everything else that can be wanted: logits [S, V], the tokens read [S], given ones [S]. Keeps ``logits``.

    The floats, as far as they are wanted: entropy; log p of the token read, of the top tokens, and the confidence in
    each of these; log p of the given token.
    """
    log_p = logits.log_softmax(-1)
    columns: list[Tensor] = []
    ids = tokens.new_empty(len(tokens), 0)
    if wanted.entropy:
        columns.append(-(log_p.exp() * log_p).sum(-1, keepdim=True))
    if wanted.top:
        best, ids = log_p.topk(min(wanted.top, log_p.shape[-1]))
        columns += [log_p.gather(-1, tokens.unsqueeze(-1)), best, metric.measure_several(log_p, ids)]
    if given is not None:
        columns.append(log_p.gather(-1, given.unsqueeze(-1)))
    floats = torch.cat(columns, -1) if columns else log_p.new_empty(len(tokens), 0)
    return Extras(floats, ids, log_p if wanted.distribution else None)


def named(floats: Floats, ids: Ints, wanted: Wanted, given: bool) -> dict[str, Any]:
    """The columns of :func:`read_more` by their names in a Reading."""
    found: dict[str, Any] = {}
    left = floats
    if wanted.entropy:
        found["entropy"], left = left[:, 0], left[:, 1:]
    if wanted.top:
        top = ids.shape[1]
        found |= {"log_p": left[:, 0], "top_tokens": ids, "top_log_p": left[:, 1 : top + 1]}
        found["top_confidence"], left = left[:, top + 1 : 2 * top + 1], left[:, 2 * top + 1 :]
    if given:
        found["given_log_p"] = left[:, 0]
    return found
