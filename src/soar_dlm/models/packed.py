"""Matrices on a CPU, laid out once for the kernels that multiply them.

A decoder reads few positions at a time, and over a cache it runs few columns. A plain product with so few rows spends
most of its time on rearranging the matrix, again in every step. oneDNN can keep it rearranged.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

LEAST = 16 * 2**20
"""Bytes of a head, or of all layers, that are worth it; what is smaller stays in the processor's caches."""
TILE = 16384
"""Tokens of the vocabulary in a product."""


def pack_layers(backbone: nn.Module) -> None:
    """Rearrange the matrices of all plain linear layers, if together they are large.

    The rearranged matrix takes the place of the plain one, whose parameter stays as a shape without memory (on "meta").
    So this is only for a backbone whose weights nobody else uses. A layer that cannot be rearranged stays as it is.
    """
    layers = [module for module in backbone.modules() if isinstance(module, nn.Linear) and _is_plain(module)]
    if sum(layer.weight.nbytes for layer in layers) < LEAST:
        return
    for layer in layers:
        if (packed := laid_out(layer.weight)) is not None:
            layer.forward = partial(multiply, packed=packed, bias=layer.bias)  # type: ignore[method-assign]
            layer.weight = nn.Parameter(layer.weight.to("meta"), requires_grad=False)


def _is_plain(layer: nn.Linear) -> bool:
    """Whether a layer is a matrix, and maybe a bias, and nothing else: not quantized, split, adapted or hooked."""
    return type(layer) is nn.Linear and type(layer.weight) is nn.Parameter and "forward" not in vars(layer)


class PackedHead:
    """The product of states [S, D] with a matrix [V, D], rearranged; :meth:`of` makes one where that is possible.

    It takes the memory of the matrix once more. The matrix is in tiles of some tokens each. Every tile is multiplied
    with all states at once, so that the matrix is read from memory once however many there are, and the product is
    small enough to be copied while it is close.
    """

    def __init__(self, tiles: list[Tensor]) -> None:
        self._tiles = tiles

    @classmethod
    def of(cls, matrix: Tensor) -> PackedHead | None:
        """The packed matrix, if it is large and can be packed."""
        if matrix.nbytes < LEAST:
            return None
        tiles = [laid_out(tile) for tile in torch.split(matrix, TILE)]
        packed = [tile for tile in tiles if tile is not None]
        return cls(packed) if len(packed) == len(tiles) else None

    def multiply(self, states: Tensor, out: Tensor) -> None:
        """Write the product into ``out`` [S, V]."""
        for own, tile in zip(torch.split(out, TILE, dim=1), self._tiles, strict=True):
            own.copy_(multiply(states, tile))


def laid_out(matrix: Tensor) -> Tensor | None:
    """The matrix [N, D], rearranged; None if this processor or this build of PyTorch cannot do it."""
    usable = matrix.device.type == "cpu" and matrix.dtype in (torch.float32, torch.bfloat16)
    if not usable or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    try:
        packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix.detach(), None)
        multiply(matrix.new_zeros(1, matrix.shape[1]), packed)
    except (AttributeError, RuntimeError, NotImplementedError):  # these operators are PyTorch's own, not promised
        return None
    return packed


def multiply(states: Tensor, packed: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product of states [..., D] with a rearranged matrix [N, D]: [..., N]."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(states.to(packed.dtype), packed, bias, "none", [], "")
    return found
