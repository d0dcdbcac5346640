"""Questions to a model that only running it can answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from soar_dlm.errors import CheckpointError, first_line
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.running import LoadedLM, device_of, run_whole


def padding_is_harmless(name: str, model: LoadedLM) -> bool:
    """Whether rows of different lengths can share a forward; an architecture that takes other inputs is refused."""
    row, longer = (np.full(length, model.facts.mask_id, dtype=np.int64) for length in (4, 7))
    every, none = np.arange(4), np.arange(0)
    try:
        plain = _states(model, [row], [every])
        padded = _states(model, [row, longer], [every, none])
        model.logits(plain[:1].to(model.dtype))
    except Exception as error:  # a forward may raise anything
        raise CheckpointError(f"{name!r} cannot be run as a masked language model: {first_line(error)}.") from error
    return bool((plain - padded).abs().max() <= 0.05 * plain.abs().max())


def looks_left_only(model: LoadedLM) -> bool:
    """Whether predictions depend on the tokens before a place but not on those after it."""
    row = np.zeros(4, dtype=np.int64)
    first, last = row.copy(), row.copy()
    first[0] = last[-1] = 1
    early, late = np.array([1]), np.array([3])
    states = _states(model, [row, last, row, first], [early, early, late, late])
    from_the_right, from_the_left = (states[[0, 2]] - states[[1, 3]]).abs().amax(dim=1)
    return bool(from_the_left > 0 and from_the_right <= 1e-3 * from_the_left)


def vocabulary_of(name: str, model: Any) -> int:
    """The number of logits a model gives per place; one that cannot be run whole is refused."""
    ids = torch.zeros(1, 4, dtype=torch.int64, device=device_of(model))
    try:
        with torch.inference_mode():
            places, size = run_whole(model, ids).shape[1:]
    except Exception as error:  # a forward may raise anything
        raise CheckpointError(
            f"{name!r} cannot be run: its forward must take input_ids and return an output with .logits; calling it "
            f"failed with {type(error).__name__}: {first_line(error)}."
        ) from error
    if places != 4:
        raise CheckpointError(f"{name!r} gives logits for {places} of 4 tokens; it must give them for every token.")
    return int(size)


def _states(model: LoadedLM, canvases: list[Any], columns: list[Any]) -> Tensor:
    return model.hidden(Rows.packed(canvases, columns, model.facts.pad_id, model.device)).float()
