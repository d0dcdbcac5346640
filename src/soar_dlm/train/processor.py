"""Processors that report matrix instructions which their virtual machine does not allow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SETTING, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
PROBE = "import torch; ones = torch.ones(64, 64, dtype=torch.bfloat16); ones @ ones"


def avoid_forbidden_instructions() -> bool:
    """Keep PyTorch from using AMX instructions if they would kill the process; True if that was needed.

    Some virtual machines report AMX and kill any process that uses it, as bfloat16 products (and so Muon) do. Only a
    separate process can find out; PyTorch reads the setting once, so this must run before PyTorch is imported.
    """
    if SETTING in os.environ or not _announces_amx():
        return False
    tried = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False)
    if tried.returncode >= 0:
        return False
    os.environ[SETTING] = WITHOUT_AMX
    return True


def _announces_amx() -> bool:
    try:
        return "amx_bf16" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
