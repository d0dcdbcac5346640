"""Plain values as bytes, and back. Runs inside the sandbox and outside.

Reading bytes from a program gives exact types and nothing else, whatever they are: None, bool, int, float, complex,
str, bytes, list, tuple, set, frozenset, dict, Fraction and Decimal. Any other object stays where it is and crosses as a
number, which only its own process can turn back into the object.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Keep = Callable[[Any], int]
    Find = Callable[[int], Any]

GROUPS: dict[type, bytes] = {list: b"l", tuple: b"t", set: b"S", frozenset: b"Z", dict: b"d"}
SINGLE: dict[type, bytes] = {int: b"i", float: b"f", complex: b"c", str: b"s", bytes: b"b"}
BASES = (int, float, complex, str, bytes, list, tuple, set, frozenset, dict)


class NotPlain(Exception):
    """A value that cannot cross, or bytes that do not hold one."""


def pack(value: Any, keep: Keep | None = None, exact: bool = False) -> bytes:
    """``value`` as bytes; ``keep`` gives the number of an object that is not plain.

    An instance of a subclass crosses as the plain value it holds, unless types must be ``exact``.
    """
    out: list[bytes] = []
    _pack(value, out, keep, exact)
    return b"".join(out)


def _pack(value: Any, out: list[bytes], keep: Keep | None, exact: bool) -> None:
    kind = type(value)
    if value is None:
        out.append(b"N0:")
    elif kind is bool:
        out.append(b"T0:" if value else b"F0:")
    elif kind in SINGLE:
        text = _text(kind, value)
        out.append(b"%s%d:%s" % (SINGLE[kind], len(text), text))
    elif kind in GROUPS:
        items = [part for pair in value.items() for part in pair] if kind is dict else list(value)
        out.append(b"%s%d:" % (GROUPS[kind], len(items)))
        for item in items:
            _pack(item, out, keep, exact)
    else:
        _pack_other(value, out, keep, exact)


def _text(kind: type, value: Any) -> bytes:
    if kind is int:
        return hex(value).encode()  # decimal digits are limited in number
    if kind is float:
        return value.hex().encode()  # type: ignore[no-any-return]
    if kind is complex:
        return b"%s %s" % (_text(float, value.real), _text(float, value.imag))
    return value.encode("utf-8", "surrogatepass") if kind is str else value  # type: ignore[no-any-return]


def _pack_other(value: Any, out: list[bytes], keep: Keep | None, exact: bool) -> None:
    kind = type(value)
    if not exact:
        for base in BASES:
            if issubclass(kind, base):
                held = base.__pos__(value) if base in (int, float, complex) else _held(base, value)
                return _pack(held, out, keep, exact)
        if kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            return _pack(value.item(), out, keep, exact)
        if kind.__module__ in ("fractions", "decimal", "_decimal") and kind.__name__ in ("Fraction", "Decimal"):
            text = str(value).encode()
            return out.append(b"%s%d:%s" % (b"q" if kind.__name__ == "Fraction" else b"x", len(text), text))
    if keep is None:
        raise NotPlain
    number = b"%d" % keep(value)
    out.append(b"r%d:%s" % (len(number), number))
    return None


def _held(base: type, value: Any) -> Any:
    """What a subclass of str, bytes or a container holds, whatever its own methods say."""
    if base is str:
        return str.__str__(value)
    if base is bytes:
        return bytes.__getitem__(value, slice(None))
    return dict(dict.items(value)) if base is dict else base(base.__iter__(value))  # type: ignore[attr-defined]


def unpack(data: bytes, find: Find | None = None) -> Any:
    """The value that ``data`` holds; ``find`` gives the object of a number. Anything wrong is :class:`NotPlain`."""
    try:
        value, end = _unpack(data, 0, find)
    except (ValueError, TypeError, OverflowError, RecursionError, LookupError, ArithmeticError) as error:
        raise NotPlain from error
    if end != len(data):
        raise NotPlain
    return value


def _unpack(data: bytes, at: int, find: Find | None) -> tuple[Any, int]:
    colon = data.index(b":", at, at + 24)
    mark, size, at = data[at : at + 1], int(data[at + 1 : colon]), colon + 1
    if size < 0 or size > len(data):
        raise NotPlain
    if mark in b"NTF":
        return {b"N": None, b"T": True, b"F": False}[mark], at
    if mark in b"ltSZd":
        items = []
        for _ in range(size):
            item, at = _unpack(data, at, find)
            items.append(item)
        return _group(mark, items), at
    if at + size > len(data):
        raise NotPlain
    return _single(mark, data[at : at + size], find), at + size


def _group(mark: bytes, items: list[Any]) -> Any:
    if mark == b"d":
        return dict(zip(items[::2], items[1::2], strict=True))
    return items if mark == b"l" else {b"t": tuple, b"S": set, b"Z": frozenset}[mark](items)


def _single(mark: bytes, text: bytes, find: Find | None) -> Any:
    if mark == b"i":
        return int(text, 16)
    if mark == b"f":
        return float.fromhex(text.decode())
    if mark == b"c":
        real, imaginary = text.decode().split()
        return complex(float.fromhex(real), float.fromhex(imaginary))
    if mark == b"s":
        return text.decode("utf-8", "surrogatepass")
    if mark == b"b":
        return text
    if mark == b"r" and find is not None:
        return find(int(text))
    if mark == b"q":
        from fractions import Fraction

        return Fraction(*map(int, text.decode().split("/")))
    if mark == b"x":
        from decimal import Decimal

        return Decimal(text.decode())
    raise NotPlain
