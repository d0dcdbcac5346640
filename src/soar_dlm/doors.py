"""The last check at every public door: whatever no other check foresaw leaves as a :class:`SoarError`.

``door`` is for functions and generators, ``guarded`` for dataclasses. What passes unchanged: errors of this package,
the end of the program (KeyboardInterrupt, SystemExit), and what the caller's own iterator raises (see ``theirs``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, TypeVar, cast

from soar_dlm.errors import SettingsError, SoarError, UnexpectedError, told

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
T = TypeVar("T")

_MARK = "_soar_dlm_theirs"
"""An attribute of errors that the caller's own code raised."""


def theirs(items: Iterable[T]) -> Iterator[T]:
    """The entries of an iterator of the caller's: what it raises goes out of every door as it is."""
    try:
        yield from items
    except Exception as error:
        with suppress(Exception):
            setattr(error, _MARK, True)
        raise


@contextmanager
def answered(doing: str) -> Iterator[None]:
    """Turn what is left into an :class:`UnexpectedError` that says what was being done and keeps the cause."""
    try:
        yield
    except SoarError:
        raise
    except Exception as error:
        if getattr(error, _MARK, False):
            raise
        raise _unexpected(doing, error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how the Rust of tokenizers and safetensors gives up
            raise
        raise _unexpected(doing, error) from error


def door(function: F) -> F:
    """A public function, method or generator that raises a :class:`SoarError` or what is the caller's own."""
    name = function.__qualname__.removesuffix(".__init__")
    has_steps = inspect.isgeneratorfunction(function)

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        with answered(name):
            try:
                made = function(*args, **keywords)
            except TypeError:
                _check_call(name, function, args, keywords)
                raise
        return _answered_steps(name, made) if has_steps else made

    return cast(F, call)


def guarded(kind: C) -> C:
    """A dataclass whose construction is a :func:`door`."""
    made = cast(Any, kind).__init__
    cast(Any, kind).__init__ = door(made)
    return kind


def _check_call(name: str, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Refuse a call that does not fit the function's signature."""
    try:
        inspect.signature(function).bind(*args, **keywords)
    except TypeError as error:
        raise SettingsError(f"{name}: {told(error)}.") from error


def _answered_steps(name: str, steps: Iterator[T]) -> Iterator[T]:
    with answered(name):
        yield from steps


def _unexpected(doing: str, error: BaseException) -> UnexpectedError:
    return UnexpectedError(
        f"{doing} failed with {type(error).__name__}: {told(error)}. Check the arguments; if they are as documented, "
        "please report this message as a bug in soar-dlm."
    )
