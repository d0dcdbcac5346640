"""The head on a CPU, laid out once for the kernels that multiply it.

A decoder reads few positions at a time, and a plain product with so few rows spends most of its time on rearranging the
matrix, again in every step. oneDNN can keep it rearranged. That takes the memory of the matrix once more.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 16 * 2**20
"""Bytes of a matrix that is worth it; a smaller one stays in the processor's caches."""
ROWS = 32
"""Rows of a product at a time."""


class PackedHead:
    """The product of states [S, D] with a matrix [V, D], rearranged; :meth:`of` makes one where that is possible."""

    def __init__(self, matrix: Tensor) -> None:
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix.detach(), None)

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
        """Write the product into ``out`` [S, V], some rows at a time, so that it passes through the same memory."""
        for low in range(0, len(states), ROWS):
            made = torch.ops.mkldnn._linear_pointwise(states[low : low + ROWS], self._packed, None, "none", [], "")
            out[low : low + ROWS].copy_(made)


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
