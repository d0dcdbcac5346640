"""Text with blanks in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.doors import door, guarded
from soar_dlm.errors import PromptError, SettingsError
from soar_dlm.options import DEFAULT_LENGTH

_SIGN = r"\{blank(?::(?P<length>\d{1,9}))?\}"


@guarded
@dataclass(frozen=True)
class Template:
    """``pieces`` of text with a blank between each two of them; blank i starts with ``lengths[i]`` masks."""

    pieces: tuple[str, ...]
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        pieces = tuple(checks.listed("The pieces of a template are a list of strings", self.pieces, PromptError))
        lengths = checks.listed("The lengths of blanks are a list of whole numbers", self.lengths, PromptError)
        if len(pieces) != len(lengths) + 1:
            raise PromptError(f"{len(lengths)} blanks need {len(lengths) + 1} pieces of text around them.")
        for piece in pieces:
            checks.string("A piece of a template", piece, PromptError)
        object.__setattr__(self, "pieces", pieces)
        object.__setattr__(
            self, "lengths", tuple(checks.whole_number("The length of a blank", length, 1) for length in lengths)
        )

    @classmethod
    @door
    def between(cls, prefix: str, suffix: str, length: int = DEFAULT_LENGTH) -> Template:
        """One blank between two texts."""
        return cls((prefix, suffix), (length,))

    @classmethod
    @door
    def parse(cls, text: str, length: int = DEFAULT_LENGTH, marker: str | None = None) -> Template:
        """A text in which ``{blank:8}`` is a blank of 8 masks and ``{blank}``, or ``marker``, one of ``length``.

        A sign alone on its line stands for the whole line, indentation and line break included. Other braces are text.
        Double braces, ``{{blank}}``, write the sign itself. A line break in a marker is one in the text, whichever way
        the two write it (LF or CRLF).
        """
        if not isinstance(text, str) or not isinstance(marker, (str, type(None))):
            raise PromptError("A template is a string, and so is the marker of its blanks.")
        if marker == "":
            raise SettingsError("The marker of a blank must not be empty.")
        sign = _SIGN if marker is None else r"\r?\n".join(re.escape(line) for line in re.split(r"\r?\n", marker))
        escaped = r"(?P<escaped>\{\{blank(?::\d+)?\}\})|" if marker is None else ""
        signs = re.compile(rf"{escaped}(?m:^[ \t]*(?:{sign})[ \t]*(?:\r?\n|\r?\Z))|{_anonymous(sign)}")
        pieces, lengths, start, piece = [], [], 0, ""
        for found in signs.finditer(text):
            piece += text[start : found.start()]
            start = found.end()
            groups = found.groupdict()
            if groups.get("escaped"):
                piece += found[0][1:-1]
                continue
            given = groups.get("length") or groups.get("inline")
            pieces.append(piece)
            lengths.append(length if given is None else int(given))
            piece = ""
        if not lengths:
            raise PromptError(
                "The template has no blank; mark one with {blank} or {blank:8}."
                if marker is None
                else f"The text does not contain the marker {marker!r}."
            )
        return cls((*pieces, piece + text[start:]), tuple(lengths))

    @door
    def filled(self, texts: list[str]) -> str:
        """The whole text with ``texts`` in its blanks."""
        given = checks.listed("The texts of blanks are a list of strings", texts, PromptError)
        if len(given) != len(self.lengths):
            raise PromptError(f"filled takes one text for each blank: {len(self.lengths)}, not {len(given)}.")
        for text in given:
            checks.string("The text of a blank", text, PromptError)
        return self.pieces[0] + "".join(text + piece for text, piece in zip(given, self.pieces[1:], strict=True))


def _anonymous(sign: str) -> str:
    """The same pattern with its group under another name, as a pattern may use a name only once."""
    return sign.replace("?P<length>", "?P<inline>")
