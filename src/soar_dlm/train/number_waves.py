"""A head start in arithmetic: embeddings of number tokens that show their value from the first step."""

from __future__ import annotations

from math import pi, sqrt

import torch
from tokenizers import Tokenizer
from torch import Tensor

PERIODS = (100, 50, 25, 20, 10, 7, 5, 4, 3, 2)


def write_waves(embeddings: Tensor, tokenizer: Tokenizer) -> None:
    """Overwrite the first columns of every number token's embedding [V, D] with waves of its value.

    Columns 2k and 2k + 1 are the cosine and the sine of the value with period PERIODS[k], scaled to be as large on
    average as the normal numbers they replace. Adding then means rotating, which layers learn sooner than a table of
    sums.
    """
    periods = torch.tensor(PERIODS[: embeddings.shape[1] // 2])
    for token in range(tokenizer.get_vocab_size()):
        text = tokenizer.decode([token]).strip(" ")
        if text.isascii() and text.isdigit():
            angles = 2 * pi * int(text) / periods
            waves = torch.stack([angles.cos(), angles.sin()], dim=1).flatten()
            embeddings[token, : len(waves)] = sqrt(2) * waves
