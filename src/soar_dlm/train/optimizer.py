"""Muon for the matrices inside the transformer, AdamW for everything else, and one schedule for both."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from soar_dlm.train.recipe import Recipe, TrainingRecipe


class Optimizers:
    """Two optimizers behind one interface.

    Muon, which moves along the orthogonal matrix nearest to its momentum, gets the matrices inside the layers; AdamW
    gets embeddings, head, norms and biases.
    """

    def __init__(self, model: nn.Module, recipe: TrainingRecipe) -> None:
        self.recipe = recipe
        matrices: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for name, weight in model.named_parameters():
            outside = "embed_tokens" in name or "lm_head" in name
            (others if weight.ndim != 2 or outside else matrices).append(weight)
        muon = torch.optim.Muon(
            matrices, lr=recipe.muon_rate, weight_decay=recipe.weight_decay, momentum=recipe.momentum
        )
        adam = torch.optim.AdamW(others, lr=recipe.adam_rate, weight_decay=0.0, betas=(0.9, 0.98), eps=1e-8)
        self._parts = {"muon": (muon, recipe.muon_rate), "adam": (adam, recipe.adam_rate)}

    def step(self, share: float) -> None:
        """Take one step at this share of the peak rates, and clear the gradients."""
        for optimizer, rate in self._parts.values():
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Any]:
        return {name: optimizer.state_dict() for name, (optimizer, _) in self._parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        for name, (optimizer, _) in self._parts.items():
            optimizer.load_state_dict(state[name])


def rate_share(step: int, recipe: Recipe) -> float:
    """The share of the peak rate at a step, counted from 0.

    In the first stage it rises linearly, stays, and falls linearly; in a later one it falls from the stage's rate.
    """
    stage, first = recipe.stage_at(step)
    if stage:
        later = recipe.stages[stage - 1]
        return later.rate * (1 - (step - first) / later.steps)
    training = recipe.training
    rising = (step + 1) / (training.warmup + 1)
    falling = (training.steps - step) / max(training.decay * training.steps, 1)
    return max(min(rising, falling, 1.0), 0.0)
