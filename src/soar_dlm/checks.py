"""One-line checks of settings, worded for the person who set them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from soar_dlm.errors import SettingsError


def whole_number(name: str, value: Any, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < at_least:
        raise SettingsError(f"{name} must be a whole number of at least {at_least}, not {value!r}.")


def real_number(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    """``value`` must be finite and lie in [low, high], or in (low, high] with ``open_low``."""
    number = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    if not number or value > high or value < low or (open_low and value == low):
        raise SettingsError(f"{name} must be {_interval(low, high, open_low)}, not {value!r}.")


def true_or_false(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be true or false, not {value!r}.")


def _interval(low: float, high: float, open_low: bool) -> str:
    if math.isinf(low):
        return "a finite number" if math.isinf(high) else f"a number of at most {high:g}"
    if math.isinf(high):
        return f"a number {'above' if open_low else 'of at least'} {low:g}"
    return f"a number {'above' if open_low else 'from'} {low:g} {'and at most' if open_low else 'to'} {high:g}"
