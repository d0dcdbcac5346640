"""Data of a page that the browser unpacks when it is needed: JSON, deflated, in base64."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any


def compact(value: Any) -> str:
    """JSON in ASCII that can stand inside a script element: nothing in it is read as markup."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class Chunks:
    """Values that go into the page apart, each under a number."""

    def __init__(self) -> None:
        self._packed: list[str] = []

    def add(self, value: Any) -> int:
        """Pack a value; its number."""
        deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
        self._packed.append(base64.b64encode(deflate.compress(compact(value).encode()) + deflate.flush()).decode())
        return len(self._packed) - 1

    def elements(self) -> Iterator[str]:
        """The chunks as elements that a browser does not run."""
        for number, packed in enumerate(self._packed):
            yield f'<script type="text/plain" id="chunk-{number}">{packed}</script>'
