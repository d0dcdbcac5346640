"""The decoding defaults that a checkpoint carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DecodingDefaults:
    """How a checkpoint is decoded unless the caller says otherwise."""

    strategy: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
