"""The processes of ``accelerate launch``, each with a share of the work."""

from __future__ import annotations

import os
from typing import Any

from soar_dlm.errors import MissingExtra, SettingsError


class Ranks:
    """A single process, or one of several that split the work and exchange results."""

    def __init__(self) -> None:
        self.rank, self.count, self.device = 0, 1, None
        self._accelerator: Any = None
        if _processes() > 1:
            try:
                from accelerate import Accelerator
            except ImportError as error:
                raise MissingExtra("accelerate", "accelerate", "Splitting the work over processes") from error
            self._accelerator = Accelerator()
            self.rank, self.count = self._accelerator.process_index, self._accelerator.num_processes
            self.device = self._accelerator.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def all_gather(self, tensor: Any) -> Any:
        """The tensors of all processes, one after the other."""
        return tensor if self._accelerator is None else self._accelerator.gather(tensor.to(self.device))

    def gather_objects(self, value: Any) -> list[Any] | None:
        """The values of all processes, in the first one; None in the others."""
        if self._accelerator is None:
            return [value]
        from torch import distributed

        found: list[Any] | None = [None] * self.count if self.first else None
        distributed.gather_object(value, found, dst=0)
        return found

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self._accelerator is not None:
            self._accelerator.wait_for_everyone()


def _processes() -> int:
    """How many processes the launcher says there are; one without a launcher."""
    told = os.environ.get("WORLD_SIZE", "1")
    try:
        return int(told)
    except ValueError as error:
        raise SettingsError(f"WORLD_SIZE must be the number of processes, not {told!r}; unset it for one.") from error
