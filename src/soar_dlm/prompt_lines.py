"""The door for JSON lines: bytes in, checked prompts or errors out."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, BinaryIO

from soar_dlm.errors import InputFileError, PromptError
from soar_dlm.options import GenerateOptions
from soar_dlm.strict_json import read_json

LONGEST = 16 * 2**20
"""The most bytes of a line."""

SHOWN = 1_000
"""How many characters the record of a line that is too long keeps."""

FIGURES = (
    "finish_reason",
    "steps",
    "forwards",
    "tokens_per_forward",
    "mean_confidence",
    "prompt_tokens",
    "completion_tokens",
    "seed",
)
"""The figures of a result that its record has."""

OWN = frozenset({"index", "input", "text", "choices", "error", "details", *FIGURES})
"""The fields of a record that the command writes itself."""

_BLANK = b" \t\r\n"


@dataclass(frozen=True)
class Line:
    """One line of the input: what to decode, or the error, and the fields that its record keeps."""

    index: int
    prompt: str | list[dict[str, Any]]
    kept: Mapping[str, Any]
    error: PromptError | None = None


def read_lines(file: BinaryIO) -> list[Line]:
    """The lines that are not blank, counted from 0. A line ends at a line feed and nowhere else.

    A byte-order mark before the first line and a carriage return before a line feed belong to no line. A line that
    cannot be read has an error; the lines after it are read all the same.
    """
    return [read_line(index, raw) for index, (_, raw) in enumerate(raw_lines(file))]


def option_names(lines: Sequence[Line]) -> list[str]:
    """Fields of the lines that are named like options, which somebody may take them for."""
    places = (place for line in lines for place in (line.kept, line.kept.get("input")) if isinstance(place, dict))
    return sorted({entry.name for entry in fields(GenerateOptions)} & {name for place in places for name in place})


def raw_lines(file: BinaryIO, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Each line that is not blank from byte ``start`` on, where the file is: the byte it starts at, and its content.

    The content has no line end; of a line that is too long it is the first ``LONGEST`` + 1 bytes.
    """
    while raw := file.readline(LONGEST + 1):
        size, rest = len(raw), raw
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(2**20)
            size += len(rest)
        content = raw.removesuffix(b"\n") if start else raw.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n")
        if content.strip(_BLANK):
            yield start, content
        start += size


def read_line(index: int, raw: bytes) -> Line:
    """The line with these bytes; one that cannot be read is kept in its record as a string."""
    if len(raw) > LONGEST:
        start = _text(raw[: 4 * SHOWN])[:SHOWN]
        return _bad(index, {"input": start}, f"This line has more than {LONGEST:,} bytes; only its start is kept.")
    try:
        entry = read_json(raw.strip(_BLANK))
    except InputFileError as error:
        return _bad(index, {"input": _text(raw.strip(_BLANK))}, f"This line cannot be read. {error}")
    return line_of(index, entry)


def line_of(index: int, entry: Any) -> Line:
    """An object with "prompt" (a string) or "messages" (a list); the other is left out or null.

    Its record keeps all of its fields; those with the name of a field that we write go into an object "input". A line
    that is not an object is kept there as it is.
    """
    if not isinstance(entry, dict):
        return _bad(index, {"input": entry}, 'A line must be an object such as {"prompt": "..."}.')
    taken = {name: value for name, value in entry.items() if name in OWN}
    kept = {name: value for name, value in entry.items() if name not in OWN} | ({"input": taken} if taken else {})
    prompt, messages = entry.get("prompt"), entry.get("messages")
    if prompt is not None and messages is not None:
        return _bad(index, kept, 'This line has both "prompt" and "messages"; leave one out.')
    if isinstance(prompt, str):
        return Line(index, prompt, kept)
    if isinstance(messages, list) and all(isinstance(one, dict) for one in messages):
        return Line(index, messages, kept)
    return _bad(index, kept, 'A line must have "prompt" (a string) or "messages" (a list of role and content).')


def _bad(index: int, kept: Mapping[str, Any], message: str) -> Line:
    return Line(index, "", kept, PromptError(message))


def _text(raw: bytes) -> str:
    """Bytes as text; those that are not UTF-8 become escapes."""
    return raw.decode("utf-8", errors="backslashreplace")
