"""Processors that announce matrix instructions which the system they run in forbids."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SETTING, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
PROBE = "import torch; ones = torch.ones(64, 64, dtype=torch.bfloat16); ones @ ones"


def avoid_forbidden_instructions() -> bool:
    """Keep PyTorch off the AMX instructions if using them would end the process; True if that was needed.

    Some virtual machines show AMX to their guests and kill whoever uses it, as bfloat16 products (and so Muon) would.
    Only a process can try; PyTorch reads the setting once, so this must come before it is imported.
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
