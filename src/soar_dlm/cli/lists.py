"""Options that hold several values with commas between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from soar_dlm.errors import SettingsError

T = TypeVar("T")


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers_of(text: str, kind: Callable[[str], T]) -> list[T]:
    """The numbers in a list; ``kind`` is int or float."""
    try:
        return [kind(part) for part in listed(text)]
    except ValueError as error:
        raise SettingsError(f"{text!r} is not a list of numbers separated by commas.") from error
