"""How much more memory than before some work has taken at its peak."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """The peak since this was made, above what was in use then. None where the system does not tell.

    On an accelerator it is what PyTorch has allocated there; on a CPU it is the memory of the process, which Linux
    tells, and where the process may reset its peak.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device if device.type == "cuda" else None
        if self._cuda is not None:
            torch.cuda.reset_peak_memory_stats(self._cuda)
            self._before: int | None = torch.cuda.memory_allocated(self._cuda)
        else:
            _give_back()
            self._before = _in_use("VmRSS") if device.type == "cpu" and _reset() else None

    def bytes(self) -> int | None:
        if self._before is None:
            return None
        peak = _in_use("VmHWM") if self._cuda is None else torch.cuda.max_memory_allocated(self._cuda)
        return None if peak is None else max(0, peak - self._before)


def _give_back() -> None:
    """Return what earlier work has freed to the system, where the C library can: else it would hide what is taken."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def _reset() -> bool:
    """Let the process's peak start from what is in use now."""
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def _in_use(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
