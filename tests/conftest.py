from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may need a network
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines announce AMX and forbid it

import pytest
from hypothesis import settings

from soar_dlm.lm import LM, load

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60, print_blob=False)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def random_llada() -> LM:
    return load("random-llada", device="cpu")


@pytest.fixture(scope="session")
def random_dreamon() -> LM:
    return load("random-dreamon", device="cpu")


@pytest.fixture(scope="session")
def random_dream() -> LM:
    return load("random-dream", device="cpu")
