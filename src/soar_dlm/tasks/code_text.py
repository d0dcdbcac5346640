"""Finding the code in what a model wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:\n```|\Z)", re.DOTALL)


def first_block(text: str) -> str:
    """The first fenced block, or the whole text if it has none; a fence that only closes a block ends the text."""
    opened = _FENCED.search(text)
    closed = text.find("```")
    if opened is not None and (opened.start() == closed) and not _closes(text, closed):
        return opened[1]
    return text if closed < 0 else text[:closed]


def _closes(text: str, place: int) -> bool:
    """Whether the fence at ``place`` closes a block opened before the text: code precedes it, no language follows."""
    return bool(text[:place].strip()) and not re.match(r"```\w", text[place:])


def function_only(text: str, stops: Sequence[str]) -> str:
    """``text`` up to the first of the marks that end a function."""
    found = [text.index(stop) for stop in stops if stop in text]
    return text[: min(found)] if found else text
