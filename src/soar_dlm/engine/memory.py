"""Running out of memory: how to tell, and what to give back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class OutOfRoom(Exception):
    """A computation ran out of memory; the message is the allocator's."""


@contextmanager
def out_of_room(device: torch.device) -> Iterator[None]:
    """Turn what allocators raise into :class:`OutOfRoom`, and return cached memory to the device."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        message = str(error).strip().partition("\n")[0] or type(error).__name__
    else:
        return
    # Outside the handler: the traceback would keep the failed computation's tensors alive.
    empty_cache = getattr(getattr(torch, device.type, None), "empty_cache", None)
    if empty_cache is not None:
        empty_cache()
    raise OutOfRoom(message)


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA and Python have a type for it; CPU and MPS allocators raise a RuntimeError that says so."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    message = str(error).lower()
    return any(sign in message for sign in ("out of memory", "can't allocate memory", "not enough memory"))
