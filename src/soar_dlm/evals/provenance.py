"""Where results come from: the machine, and the library's own version and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import soar_dlm

CODE = "src"
"""The folder of a checkout that holds the library; changes elsewhere, such as in docs, change no result."""


def machine() -> dict[str, Any]:
    """The processor, the number of its cores, the accelerator if there is one, and the system."""
    import torch

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": name, "cores": os.cpu_count(), "accelerator": accelerator, "system": platform.platform()}


def machine_line() -> str:
    """The machine as figures and tables name it: the processor, the threads in use, and the versions that matter."""
    import torch

    found = machine()
    name = found["cpu"] if found["accelerator"] is None else f"{found['accelerator']} beside {found['cpu']}"
    threads = torch.get_num_threads()
    return (
        f"{name}, {threads} thread{'' if threads == 1 else 's'}, PyTorch {torch.__version__}, "
        f"Python {platform.python_version()}"
    )


def library(checkout: Path | None = None) -> dict[str, Any]:
    """The version, and where it runs from a git checkout, the commit and whether its code was modified since."""
    root = checkout or Path(soar_dlm.__file__).resolve().parents[2]
    commit = _git(root, "rev-parse", "HEAD") if (root / ".git").exists() else None
    changes = _git(root, "status", "--porcelain", "--", CODE) if commit else None
    modified = None if changes is None else bool(changes)
    return {"version": soar_dlm.__version__, "commit": commit, "modified": modified}


def versions() -> dict[str, str]:
    """The versions of everything that results depend on."""
    import numpy as np
    import torch
    import transformers

    return {
        "soar_dlm": soar_dlm.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
    }


def _git(root: Path, *arguments: str) -> str | None:
    """What git answers; None where it is not installed or refuses."""
    try:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
