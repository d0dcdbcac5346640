"""The head on a CPU, laid out once for the kernels that multiply it.

A decoder reads few positions at a time, and a plain product with so few rows spends most of its time on rearranging the
matrix, again in every step. oneDNN can keep it rearranged. That takes the memory of the matrix once more.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 16 * 2**20
"""Bytes of a matrix that is worth it; a smaller one stays in the processor's caches."""
TILE = 16384
"""Tokens of the vocabulary in a product."""


class PackedHead:
    """The product of states [S, D] with a matrix [V, D], rearranged; :meth:`of` makes one where that is possible.

    The matrix is in tiles of some tokens each. Every tile is multiplied with all states at once, so that the matrix is
    read from memory once however many there are, and the product is small enough to be copied while it is close.
    """

    def __init__(self, matrix: Tensor) -> None:
        self._tiles: list[Tensor] = [
            torch.ops.mkldnn._reorder_linear_weight(tile, None) for tile in torch.split(matrix.detach(), TILE)
        ]

    @classmethod
    def of(cls, matrix: Tensor) -> PackedHead | None:
        """The packed matrix, if it is large, on a CPU, and this build of PyTorch can do it."""
        if matrix.device.type != "cpu" or matrix.nbytes < LEAST or not _has_onednn():
            return None
        if matrix.dtype not in (torch.float32, torch.bfloat16):
            return None
        try:
            packed = cls(matrix)
            packed.multiply(matrix.new_zeros(1, matrix.shape[1]), torch.empty(1, len(matrix)))
        except (AttributeError, RuntimeError, NotImplementedError):  # these operators are PyTorch's own, not promised
            return None
        return packed

    def multiply(self, states: Tensor, out: Tensor) -> None:
        """Write the product into ``out`` [S, V]."""
        for own, tile in zip(torch.split(out, TILE, dim=1), self._tiles, strict=True):
            own.copy_(torch.ops.mkldnn._linear_pointwise(states, tile, None, "none", [], ""))


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
