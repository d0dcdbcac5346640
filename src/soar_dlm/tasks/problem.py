"""A problem, and the rule that decides which split it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

Split = Literal["train", "validation", "test"]

PARTS = 32
"""Keys are hashed into this many parts: part 0 is for testing, part 1 for validation, the rest for training."""


@dataclass(frozen=True)
class Problem:
    """A question, a right answer, and what else the judge needs.

    ``key`` identifies a problem whatever its wording: by its structure and its numbers. The split depends on the key
    alone, so no rewording of a test problem is ever trained on. ``kind`` is a label to group results by, such as
    "3 steps". ``checks`` holds what the judge needs besides the answer, as plain JSON values. ``suffix`` is the text
    after the answer, where a blank is to be filled.
    """

    prompt: str
    answer: str
    key: str
    kind: str
    checks: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""

    @property
    def split(self) -> Split:
        """The split that the hash of the key assigns."""
        part = int.from_bytes(blake2b(self.key.encode(), digest_size=8).digest(), "big") % PARTS
        return "test" if part == 0 else "validation" if part == 1 else "train"
