"""Text with blanks in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.errors import PromptError

DEFAULT_LENGTH = 16
"""How many masks a blank starts with where nothing else is said."""

_BLANK = re.compile(r"\{\{blank(?::\d+)?\}\}|\{blank(?::(\d+))?\}")


@dataclass(frozen=True)
class Template:
    """``pieces`` of text with a blank between each two of them; ``lengths[i]`` masks are in blank i at the start."""

    pieces: tuple[str, ...]
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.lengths) + 1:
            raise PromptError(f"{len(self.lengths)} blanks need {len(self.lengths) + 1} pieces of text around them.")
        if not all(isinstance(piece, str) for piece in self.pieces):
            raise PromptError("The pieces of a template must be strings.")
        for length in self.lengths:
            checks.whole_number("length of a blank", length, 1)

    @classmethod
    def between(cls, prefix: str, suffix: str, length: int = DEFAULT_LENGTH) -> Template:
        """One blank between two texts."""
        return cls((prefix, suffix), (length,))

    @classmethod
    def parse(cls, text: str, length: int = DEFAULT_LENGTH) -> Template:
        """A text in which ``{blank:8}`` is a blank of 8 masks and ``{blank}`` one of ``length``.

        Other braces are text. Double braces, ``{{blank}}``, write the marker itself.
        """
        pieces, lengths, start, piece = [], [], 0, ""
        for found in _BLANK.finditer(text):
            piece += text[start : found.start()]
            start = found.end()
            if found[0].startswith("{{"):
                piece += found[0][1:-1]
                continue
            pieces.append(piece)
            lengths.append(length if found[1] is None else int(found[1]))
            piece = ""
        if not lengths:
            raise PromptError("The template has no blank; mark one with {blank} or {blank:8}.")
        return cls((*pieces, piece + text[start:]), tuple(lengths))

    def filled(self, texts: list[str]) -> str:
        """The whole text with ``texts`` in its blanks."""
        return self.pieces[0] + "".join(text + piece for text, piece in zip(texts, self.pieces[1:], strict=True))
