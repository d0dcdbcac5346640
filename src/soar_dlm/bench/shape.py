"""A model with random weights of a given shape, for measuring speed without a checkpoint."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from math import sqrt

import torch
from transformers import LlamaForCausalLM

from soar_dlm import checks
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.models.checkpoint import Checkpoint
from soar_dlm.models.families import LLADA
from soar_dlm.models.loading import DTYPES, usable_device
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.models.running import TransformersLM
from soar_dlm.models.stock import stock_config

SPREAD = 0.27 * sqrt(512)
"""The standard deviation of logits: with it, confidences spread over (0, 1) as a trained model's do."""
SHARPNESS = 4.0
"""How much larger than usual the weights of queries and keys are: else all masks see the same and predict the same."""
SPECIAL = 128
"""How many ids at the end of the vocabulary are special; the first of them is the mask, as in LLaDA."""
LARGEST, MOST_LAYERS = 10**7, 1000


@dataclass(frozen=True)
class Shape:
    """The size of a model of LLaDA's kind. The default is small enough for a CPU, with the vocabulary of LLaDA-8B."""

    hidden: int = 512
    layers: int = 8
    heads: int = 8
    inner: int = 1536
    vocab: int = 126464
    context: int = 4096

    def __post_init__(self) -> None:
        for entry in fields(self):
            checks.field(self, entry.name, checks.whole_number, 1, LARGEST)
        checks.whole_number("vocab", self.vocab, 2 * SPECIAL)
        checks.whole_number("layers", self.layers, 1, MOST_LAYERS)
        if self.hidden % self.heads or self.hidden // self.heads % 2:
            raise SettingsError(
                f"A shape with hidden={self.hidden} cannot have heads={self.heads}: each head takes an equal, even "
                "share."
            )
        if (room := _memory()) is not None and 4 * self.parameters > room:
            raise SettingsError(
                f"The weights of this shape would take {4 * self.parameters / 1e9:,.0f} GB, more than this machine has."
            )

    @classmethod
    def read(cls, text: str) -> Shape:
        """The shape that a text such as ``hidden=512,layers=8`` describes; what it leaves out is as by default."""
        known = {entry.name for entry in fields(cls)}
        found: dict[str, int] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, equals, value = map(str.strip, part.partition("="))
            if not equals or not value.isdecimal():
                raise SettingsError(f"A shape is written like hidden=512,layers=8, not {text!r}.")
            if name not in known:
                raise UnknownName("part of a shape called", name, known)
            found[name] = int(value)
        return cls(**found)

    def __str__(self) -> str:
        return ",".join(f"{entry.name}={getattr(self, entry.name)}" for entry in fields(self))

    @property
    def mask_id(self) -> int:
        return self.vocab - SPECIAL

    @property
    def parameters(self) -> int:
        """About how many weights there are."""
        return 2 * self.vocab * self.hidden + self.layers * self.hidden * (4 * self.hidden + 3 * self.inner)


def _memory() -> int | None:
    """The bytes of memory of this machine; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def random_model(
    shape: Shape, seed: int, device: str | None = None, dtype: str | None = None, sharpness: float = SHARPNESS
) -> TransformersLM:
    """LLaDA at this shape; the same seed gives the same weights."""
    kind = torch.float32 if dtype is None else DTYPES[checks.known_name("dtype", dtype, DTYPES)]
    raw = {
        "d_model": shape.hidden,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "mlp_hidden_size": shape.inner,
        "embedding_size": shape.vocab,
        "max_sequence_length": shape.context,
        "rope_theta": 500000.0,
    }
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(checks.seed("seed", seed))
        model = LlamaForCausalLM(stock_config(LLADA, raw)).float()
        model.lm_head.weight.normal_(0.0, SPREAD / sqrt(shape.hidden))
        for name, weight in model.model.layers.named_parameters():
            if weight.dim() > 1:  # as large as at a hidden size of 512, where the usual ones are
                weight.mul_(sqrt(512 / shape.hidden) * (sharpness if "q_proj" in name or "k_proj" in name else 1.0))
    facts = ModelFacts(
        shape.vocab, shape.mask_id, pad_id=0, filler_id=0, context=shape.context, thresholds=LLADA.thresholds
    )
    return TransformersLM(model.to(usable_device(device), kind), facts, frozen=True)


def random_checkpoint(shape: Shape, seed: int, device: str | None = None, dtype: str | None = None) -> Checkpoint:
    """The model as loading gives one, without a tokenizer."""
    return Checkpoint(f"random weights ({shape})", LLADA, random_model(shape, seed, device, dtype), None)
