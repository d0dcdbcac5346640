"""The fields of a JSON object from :func:`~soar_dlm.strict_json.read_json`, each checked as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST = 2**53
"""The greatest whole number: what every reader of JSON has exactly, and what can be added up without overflow."""
LARGEST = 1e15
"""The greatest size of any other number."""


def uncapitalised(sentence: str) -> str:
    """What one of our errors says of a file ("It is not JSON"), to follow a colon."""
    return sentence[:1].lower() + sentence[1:]


class Damaged(ValueError):
    """Content that no run has written; the message says what is wrong with it, but not where it was read."""


class Fields:
    """An object whose fields are read by name and kind; a field that is missing or of another kind is Damaged."""

    def __init__(self, content: Any, where: str = "") -> None:
        if not isinstance(content, dict):
            raise Damaged(f"{where or 'it'} is not an object")
        self.content, self._within = content, f"{where}." if where else ""

    def lacks(self, name: str) -> bool:
        """Whether a field that may be left out is left out or null."""
        return self.content.get(name) is None

    def text(self, name: str) -> str:
        value = self._value(name)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        return value

    def texts(self, name: str) -> list[str]:
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise self._wrong(name, "a list of texts")
        return values

    def flag(self, name: str) -> bool:
        value = self._value(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def whole(self, name: str, low: int = 0) -> int:
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= MOST:
            raise self._wrong(name, f"a whole number of at least {low}")
        return value

    def number(self, name: str, low: float = -LARGEST) -> float:
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= LARGEST:
            raise self._wrong(name, "a finite number" if low < 0 else f"a number of at least {low:g}")
        return value

    def inside(self, name: str) -> Fields:
        return Fields(self._value(name), f"{self._within}{name}")

    def each_inside(self, name: str) -> list[Fields]:
        return [Fields(value, f"{self._within}{name}") for value in self._list(name)]

    def items(self) -> Iterator[tuple[str, Fields]]:
        """The fields that are objects themselves, as all must be."""
        for name in self.content:
            yield name, self.inside(name)

    def _value(self, name: str) -> Any:
        if name not in self.content:
            raise Damaged(f"{self._within}{name} is missing")
        return self.content[name]

    def _list(self, name: str) -> list[Any]:
        value = self._value(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def _wrong(self, name: str, wanted: str) -> Damaged:
        return Damaged(f"{self._within}{name} is not {wanted}")
