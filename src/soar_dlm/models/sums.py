"""The sums over all processes in a forward of a split model."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.tensor import DTensor, Shard

from soar_dlm.errors import SettingsError, told


class OutOfStep(Exception):
    """The processes of a split model cannot go on together; the message is that of the library that sums."""


class Sums:
    """Keeps the processes of a split model in step.

    1. A layer whose matrix is split by its columns of inputs gives a part of its output in each process; the parts are
       summed at once. Such sums, two in each layer of Llama and Qwen2, are all that a forward exchanges.
    2. A process whose forward fails takes part in the sums that are left with zeros, so that nobody waits for it; then
       all are at the same place again, and what the others computed is dropped.
    3. Where a sum itself fails, nobody knows how far the others have come: :class:`OutOfStep`.
    """

    def __init__(self, backbone: nn.Module) -> None:
        self._split = [weight for module in backbone.modules() if (weight := _split_by_inputs(module)) is not None]
        self._done, self._together = 0, False
        backbone.register_forward_pre_hook(self._check)
        for module in backbone.modules():
            assert isinstance(module, nn.Linear) or not _is_split(module), "a sum that is not counted"
            if _split_by_inputs(module) is not None:
                module.register_forward_hook(self._count)

    def _check(self, module: nn.Module, inputs: Any) -> None:
        if not self._together:
            raise SettingsError(
                "The backbone of a split model cannot be called by itself: the other processes would not run theirs. "
                "Load the model without tensor_parallel for that."
            )

    def _count(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self._done += 1

    @contextmanager
    def completed(self, rows: int, width: int) -> Iterator[None]:
        """Run a forward [rows, width] inside; where it raises, its sums are completed first."""
        self._done, self._together = 0, True
        try:
            yield
        except Exception as error:
            if _in_a_sum(error):
                raise OutOfStep(told(error)) from error
            traceback.clear_frames(error.__traceback__)  # they hold the tensors of the forward
            self._complete(rows, width)
            raise
        finally:
            self._together = False

    def _complete(self, rows: int, width: int) -> None:
        try:
            for weight in self._split[self._done :]:
                distributed.all_reduce(_nothing(weight, rows, width), group=weight.device_mesh.get_group())
        except Exception as error:
            raise OutOfStep(told(error)) from error


def _in_a_sum(error: Exception) -> bool:
    """Whether an error was raised by the exchange between processes."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames[-1].startswith("torch.distributed"))


def _nothing(weight: DTensor, rows: int, width: int) -> Tensor:
    """A part of a layer's output [rows, width, D] that changes no sum."""
    own = weight.to_local()
    return torch.zeros(rows, width, own.shape[0], dtype=own.dtype, device=own.device)


def _is_split(module: nn.Module) -> bool:
    return any(isinstance(weight, DTensor) for weight in module.parameters(recurse=False))


def _split_by_inputs(module: nn.Module) -> DTensor | None:
    """The weight [D, N] of a linear layer of whose inputs each process has some; None for any other module."""
    weight = getattr(module, "weight", None)
    if not isinstance(module, nn.Linear) or not isinstance(weight, DTensor):
        return None
    (placement,) = weight.placements
    return weight if isinstance(placement, Shard) and placement.dim % weight.ndim == 1 else None
