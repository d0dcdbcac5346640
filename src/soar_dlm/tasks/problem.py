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
    """One question, one right answer, and what a judge needs besides.

    ``key`` names what makes the problem the same problem whatever its wording: its structure and its numbers. The
    split hangs on the key alone, so no rewording of a test problem is ever trained on. ``kind`` is a label to group
    results by, such as "3 steps". ``checks`` holds what the judge needs besides the answer, as plain JSON values.
    ``suffix`` is the text behind the answer, where a blank is to be filled.
    """

    prompt: str
    answer: str
    key: str
    kind: str
    checks: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""

    @property
    def split(self) -> Split:
        """Where the hash of the key puts this problem."""
        part = int.from_bytes(blake2b(self.key.encode(), digest_size=8).digest(), "big") % PARTS
        return "test" if part == 0 else "validation" if part == 1 else "train"
