"""The one reader and the one writer of JSON: nothing surprising gets in, and what is written, everybody can read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NoReturn

from soar_dlm.errors import InputFileError

DEEPEST = 100
"""The most objects and lists that may be inside one another."""

DEEPEST_RECORD = DEEPEST + 10
"""The same for what we write around a value that was read: records and traces."""

LONGEST_NUMBER = 4_000
"""The most digits of a whole number; Python itself refuses to convert much longer ones."""

_ESCAPES = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029, *range(0xD800, 0xE000))}
"""Characters that JSON allows in a line but some readers take for its end, and halves that UTF-8 cannot hold."""


def read_json(source: str | bytes, deepest: int = DEEPEST, *, lenient: bool = False) -> Any:
    """The value of a JSON text in UTF-8.

    1. Refused with a sentence: anything but JSON in UTF-8, NaN, Infinity and numbers too large for a float, an object
       that has a name twice, half a character (a lone surrogate), a whole number of very many digits, and nesting
       deeper than ``deepest``. So whatever this returns can be written again.
    2. With ``lenient``, only the last two are refused of what Python's own reader accepts; of a name that is there
       twice, the last value counts. This is for files of checkpoints: other programs write them.
    """
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        value = (_LENIENT if lenient else _STRICT).decode(text)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputFileError(
            f"It is not UTF-8 text: byte {error.start + 1} is 0x{byte:02x} ({error.reason})."
        ) from error
    except RecursionError as error:
        raise _too_deep(deepest) from error
    except ValueError as error:
        raise InputFileError(f"It is not JSON: {error}.") from error
    _check(value, deepest, texts=not lenient)
    return value


def json_text(value: Any, *, lenient: bool = False) -> str:
    """``value`` as JSON for people and for files: indented, with a line feed at its end, and exact.

    What JSON cannot express, such as NaN, is refused rather than changed; use :func:`plain` first to change it. With
    ``lenient``, NaN and Infinity are written as Python reads them.
    """
    try:
        return json.dumps(value, indent=2, allow_nan=lenient) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise InputFileError(f"It cannot be written as JSON: {error}.") from error


def json_line(value: Any) -> str:
    """``value`` as JSON on one line, whatever a reader takes for the end of a line; see :func:`plain`."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES)


def plain(value: Any) -> Any:
    """``value`` in the types of JSON: null for NaN and Infinity, NumPy's numbers as Python's, else text."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):  # arrays and tensors
        return plain(value.tolist())
    return repr(value)


def _check(value: Any, deepest: int, texts: bool) -> None:
    """Refuse nesting that is too deep and, of the ``texts`` in the value, those that UTF-8 cannot hold."""
    level: list[Any] = [value]
    for _ in range(deepest + 1):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, str):
                if texts:
                    _check_text(one)
            elif isinstance(one, dict):
                inside += one.keys()
                inside += one.values()
            elif isinstance(one, list):
                inside += one
        if not inside:
            return
        level = inside
    raise _too_deep(deepest)


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise InputFileError(f"A string has half a character in it, {half} (a lone surrogate).") from error


def _too_deep(deepest: int) -> InputFileError:
    return InputFileError(f"It has objects or lists more than {deepest} levels deep.")


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"an object has the name {json.dumps(name)[:80]} twice")
        made[name] = value
    return made


def _whole_number(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits):,} digits, more than {LONGEST_NUMBER:,}")
    return int(digits)


def _real_number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write null")


_LENIENT = json.JSONDecoder(parse_int=_whole_number)
_STRICT = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole_number, parse_float=_real_number, parse_constant=_no_number
)
