from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # no test may need a network
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines announce AMX and forbid it

from typing import Any

import pytest
from hypothesis import settings

from soar_dlm.lm import LM, load
from soar_dlm.registry import Registry
from soar_dlm.search.catalogue import STRATEGIES
from soar_dlm.search.metrics import METRICS
from soar_dlm.tasks.catalogue import TASKS

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60, print_blob=False)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def names_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    registries: tuple[Registry[Any], ...] = (STRATEGIES, METRICS, TASKS)
    for registry in registries:
        registry.names()  # what installed packages add stays
        monkeypatch.setattr(registry, "_loaders", dict(registry._loaders))


@pytest.fixture(scope="session")
def random_llada() -> LM:
    return load("random-llada", device="cpu")


@pytest.fixture(scope="session")
def random_dreamon() -> LM:
    return load("random-dreamon", device="cpu")


@pytest.fixture(scope="session")
def random_dream() -> LM:
    return load("random-dream", device="cpu")
