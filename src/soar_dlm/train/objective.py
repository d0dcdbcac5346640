"""The masked-diffusion objective: hide a random share of every answer and predict what was hidden."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Hidden:
    """A batch with some of its answers masked.

    ``inputs`` [R, L] holds the mask id at the hidden places; ``row`` and ``column`` [P] name these places, ``target``
    [P] is what was there; ``level`` [R] is the noise level of each row, ``size`` [R] the length of its canvas.
    """

    inputs: Tensor
    row: Tensor
    column: Tensor
    target: Tensor
    level: Tensor
    size: Tensor

    def to(self, device: torch.device) -> Hidden:
        return Hidden(*(getattr(self, entry.name).to(device) for entry in fields(self)))


def noise_levels(rows: int, lowest: float, generator: torch.Generator) -> Tensor:
    """One level per row, uniform in (lowest, 1): [R].

    The levels of a batch are evenly spaced from one random offset, in random order, so that every batch covers the
    whole range.
    """
    spread = (torch.arange(rows) + torch.rand(1, generator=generator)) / rows
    return lowest + (1 - lowest) * spread[torch.randperm(rows, generator=generator)]


def hide(ids: Tensor, canvas: Tensor, mask_id: int, lowest: float, generator: torch.Generator) -> Hidden:
    """Mask each place of the canvas with the probability given by its row's noise level, at least one per row.

    ``ids`` [R, L]; ``canvas`` [R, L] is True for answers: prompts are never hidden.
    """
    level = noise_levels(len(ids), lowest, generator)
    draws = torch.rand(ids.shape, generator=generator).masked_fill(~canvas, 2.0)
    hidden = draws <= torch.maximum(level, draws.amin(dim=1)).unsqueeze(1)
    row, column = hidden.nonzero(as_tuple=True)
    return Hidden(ids.masked_fill(hidden, mask_id), row, column, ids[row, column], level, canvas.sum(dim=1))


def already_hidden(ids: Tensor, canvas: Tensor, hidden: Tensor, mask_id: int) -> Hidden:
    """A batch for which ``hidden`` [R, L] decides what is masked; the noise level is the share that is."""
    row, column = hidden.nonzero(as_tuple=True)
    size = canvas.sum(dim=1)
    return Hidden(ids.masked_fill(hidden, mask_id), row, column, ids[row, column], hidden.sum(dim=1) / size, size)


def masked_loss(logits: Tensor, batch: Hidden, kind: str) -> Tensor:
    """The loss of logits [P, V] at the hidden places.

    "mean": the cross-entropy, averaged over the hidden tokens of the batch. "elbo": each token's cross-entropy divided
    by its row's noise level and canvas length, averaged over rows: a bound on the negative log-likelihood per token.
    """
    losses = cross_entropy(logits.float(), batch.target, reduction="none")
    if kind == "mean":
        return losses.mean()
    weight = 1.0 / (batch.level * batch.size)[batch.row]
    return (losses * weight).sum() / len(batch.inputs)
