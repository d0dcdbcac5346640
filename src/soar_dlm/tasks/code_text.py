"""From what a model wrote to the code in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:\n```|\Z)", re.DOTALL)


def first_block(text: str) -> str:
    """The first fenced block, or all of a text without one; a fence that closes a block opened before ends the text."""
    opened = _FENCED.search(text)
    closed = text.find("```")
    if opened is not None and (opened.start() == closed) and not _closes(text, closed):
        return opened[1]
    return text if closed < 0 else text[:closed]


def _closes(text: str, place: int) -> bool:
    """Whether the fence at ``place`` ends code that began before the text did: code stands before it, no language."""
    return bool(text[:place].strip()) and not re.match(r"```\w", text[place:])


def function_only(text: str, stops: Sequence[str]) -> str:
    """``text`` up to the first of the marks that show that the function is over."""
    found = [text.index(stop) for stop in stops if stop in text]
    return text[: min(found)] if found else text
