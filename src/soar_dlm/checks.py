"""One check for each kind of value, worded for the person who gave it.

Every check takes the name that the value goes by and the value, whatever it is. It returns the value as plain Python
has it (NumPy's numbers become Python's), or raises a sentence; nothing a caller passes can make it raise anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from numbers import Integral, Real
from typing import Any, TypeVar

from soar_dlm.errors import SettingsError, SoarError, UnknownName, shown

T = TypeVar("T")

LARGEST = 2**63 - 1
"""The greatest whole number that arrays can hold."""
LAST_SEED = 2**64 - 1
EXACT = 2**53
"""Whole numbers up to this one are exact as floating-point numbers."""
LONGEST = 2**20
"""The most token ids of a canvas or a list: a row of more fits into no memory, whatever context a model names."""
MANY = 10**7
"""The most entries of any list."""
WIDEST = 65536
"""The most rows or samples that one request can ask for."""


def whole_number(
    name: str, value: Any, at_least: int, at_most: int = LARGEST, error: type[SoarError] = SettingsError
) -> int:
    """A whole number from ``at_least`` to ``at_most``; True and False do not count as numbers."""
    number = _whole(value)
    if number is None or number < at_least:
        raise error(f"{name} must be a whole number of at least {at_least}, not {shown(value)}.")
    if number > at_most:
        raise error(f"{name} must be a whole number of at most {at_most}, not {shown(value)}.")
    return number


def _whole(value: Any) -> int | None:
    if type(value) is int:  # what nearly all are; asking an abstract class takes ten times as long
        return value
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    try:
        return int(value)
    except Exception:  # an Integral of somebody else's making
        return None


def real_number(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    """A finite number in [low, high], or in (low, high] with ``open_low``."""
    number = _real(value)
    if number is None or number > high or number < low or (open_low and number == low):
        raise SettingsError(f"{name} must be {_interval(low, high, open_low)}, not {shown(value)}.")
    return number


def _real(value: Any) -> float | None:
    """The number as int or float: an int that a float cannot hold exactly becomes the nearest float."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        plain = float(value)
    except Exception:  # too large, or a Real of somebody else's making
        return None
    if not math.isfinite(plain):
        return None
    whole: Any = value
    return whole if type(whole) is int and abs(whole) <= EXACT else plain


def true_or_false(name: str, value: Any) -> bool:
    if not isinstance(value, bool) and not _is_numpy_bool(value):
        raise SettingsError(f"{name} must be true or false, not {shown(value)}.")
    return bool(value)


def _is_numpy_bool(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")


def seed(name: str, value: Any) -> int:
    return whole_number(name, value, 0, LAST_SEED)


def string(name: str, value: Any, error: type[SoarError] = SettingsError) -> str:
    if not isinstance(value, str):
        raise error(f"{name} must be a string, not {shown(value)}.")
    return value


def known_name(kind: str, value: Any, known: Collection[str]) -> str:
    """A name in a table; anything else, hashable or not, is refused with a list of the names there are."""
    if not isinstance(value, str) or value not in known:
        raise UnknownName(kind, value, known)
    return value


def listed(wanted: str, value: Any, error: type[SoarError] = SettingsError) -> list[Any]:
    """The entries of a list, tuple, array, tensor or iterator; strings, bytes and mappings do not count as lists.

    ``wanted`` begins the sentence, as in "stop takes a list of strings". What an iterator of the caller's own raises
    while it runs is the caller's and is not changed.
    """
    not_too_many(wanted, value, MANY, error)
    entries = list(islice(iterated(wanted, value, error), MANY + 1))
    if len(entries) > MANY:  # an iterator without end
        raise error(f"{wanted} of at most {MANY} entries.")
    return entries


def not_too_many(wanted: str, value: Any, most: int, error: type[SoarError] = SettingsError) -> None:
    """Refuse what says of itself that it has more entries than can be held, such as range(10**12)."""
    try:
        size = len(value)
    except Exception:  # an iterator has no length; what else is wrong shows when it is read
        return
    if size > most:
        raise error(f"{wanted} of at most {most} entries, not {size}.")


def iterated(wanted: str, value: Any, error: type[SoarError] = SettingsError) -> Iterator[Any]:
    """:func:`listed`, one by one."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise error(f"{wanted}, not {shown(value)}.")
    try:
        return iter(value)
    except TypeError as cause:  # an array or tensor without dimensions
        raise error(f"{wanted}, not {shown(value)}.") from cause


def whole_numbers(
    wanted: str, value: Any, at_most: int = LARGEST, error: type[SoarError] = SettingsError
) -> tuple[int, ...]:
    """A list, array or tensor of whole numbers from 0 on, such as token ids or positions."""
    made: list[int] = []
    not_too_many(wanted, value, LONGEST, error)
    for entry in iterated(wanted, value, error):
        if len(made) == LONGEST:
            raise error(f"{wanted} of at most {LONGEST} entries.")
        if isinstance(entry, bool):
            raise error(f"{wanted}, not booleans.")
        number = _index(entry)
        if number is None or not 0 <= number <= at_most:
            raise error(f"{wanted}; {shown(entry)} is not one.")
        made.append(number)
    return tuple(made)


def _index(value: Any) -> int | None:
    """A whole number, also one in an array or tensor of one entry without dimensions."""
    if type(value) is int or isinstance(value, Integral):
        return _whole(value)
    if getattr(value, "shape", None) != () or str(getattr(value, "dtype", "bool")).endswith("bool"):
        return None
    try:
        return int(value.__index__())
    except Exception:
        return None


def strings(name: str, value: Any) -> tuple[str, ...]:
    """One string that is not empty, several, or None for none."""
    wanted = f"{name} must be a non-empty string or a list of them"
    given = () if value is None else (value,) if isinstance(value, str) else tuple(listed(wanted, value))
    if not all(isinstance(one, str) and one for one in given):
        raise SettingsError(f"{wanted}, not {shown(value)}.")
    return given


def table(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping whose keys are names."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SettingsError(f"{name} must map names to values, not be {shown(value)}.")
    return value


def instance(name: str, value: Any, kind: type[T] | tuple[type[T], ...], wanted: str) -> T:
    if not isinstance(value, kind):
        raise SettingsError(f"{name} must be {wanted}, not {shown(value)}.")
    return value


def field(owner: Any, name: str, check: Callable[..., Any], *limits: Any, optional: bool = False, **more: Any) -> None:
    """Check a field of a frozen dataclass and keep what the check makes of it; with ``optional``, None may stay."""
    given = getattr(owner, name)
    if given is None and optional:
        return
    made = check(name, given, *limits, **more)
    if made is not given:
        object.__setattr__(owner, name, made)


def _interval(low: float, high: float, open_low: bool) -> str:
    if math.isinf(low):
        return "a finite number" if math.isinf(high) else f"a number of at most {high:g}"
    if math.isinf(high):
        return f"a number {'above' if open_low else 'of at least'} {low:g}"
    return f"a number {'above' if open_low else 'from'} {low:g} {'and at most' if open_low else 'to'} {high:g}"
