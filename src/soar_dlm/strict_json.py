"""JSON as its standard has it: read from anybody without surprises, and written so that everybody can read it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NoReturn

from soar_dlm.errors import InputFileError

DEEPEST = 100
"""The most objects and lists that may be inside one another."""

LONGEST_NUMBER = 4_000
"""The most digits of a whole number; Python itself refuses to convert much longer ones."""

_ESCAPES = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029, *range(0xD800, 0xE000))}
"""Characters that JSON allows in a line but some readers take for its end, and halves that UTF-8 cannot hold."""


def read_json(source: str | bytes, deepest: int = DEEPEST) -> Any:
    """The value of a JSON text in UTF-8.

    Refused with a sentence: what is no JSON or no UTF-8, NaN and Infinity and numbers too large for a float, a whole
    number of very many digits, an object that has a name twice, half a character (a lone surrogate), and nesting
    deeper than ``deepest``. So whatever this returns can be written again.
    """
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        value = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputFileError(
            f"It is not UTF-8 text: byte {error.start + 1} is 0x{byte:02x} ({error.reason})."
        ) from error
    except RecursionError as error:
        raise _too_deep(deepest) from error
    except ValueError as error:
        raise InputFileError(f"It is not JSON: {error}.") from error
    _check(value, deepest)
    return value


def json_line(value: Any) -> str:
    """``value`` as JSON on one line, whatever a reader takes for the end of a line; see :func:`plain`."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES)


def plain(value: Any) -> Any:
    """``value`` in the types of JSON: null for NaN and Infinity, numbers of NumPy as ours, text for what has none."""
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


def _check(value: Any, deepest: int) -> None:
    """Refuse nesting that is too deep and strings that are no text."""
    level: list[Any] = [value]
    for _ in range(deepest + 1):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, str):
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
    raise ValueError(f"{name} is no number of JSON; write null")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole_number, parse_float=_real_number, parse_constant=_no_number
)
