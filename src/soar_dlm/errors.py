"""Every error a user can cause, each with a message that says what to do.

SoarError
├── SettingsError (ValueError)      a setting is out of range or of the wrong kind
│   ├── UnknownName                 no strategy, metric, model or option of that name; suggests the nearest
│   └── DuplicateName               two packages register the same name
├── PromptError (ValueError)        a prompt or canvas that cannot be decoded
│   └── PromptTooLong               prompt and canvas together exceed the model's context
├── CheckpointError                 a checkpoint that cannot be found, read or trusted
│   ├── WeightsMismatch             weights are missing, unexpected or of the wrong shape
│   ├── NoMaskToken                 the model names no mask token
│   └── NoTokenizer                 text was asked of a checkpoint without a tokenizer
├── StrategyError                   a strategy's own code failed or proposed what cannot be done
├── StopError                       the stop strings of a request could not be checked
├── NonFiniteLogits (ArithmeticError)   the model returned NaN or infinity
├── OutOfMemory (MemoryError)       not even one row fits into memory
├── Busy                            too many requests wait for the engine; says when to come back
├── EngineStopped                   the engine of an AsyncLM, or a process of a split model, is closed or has died
├── InputFileError                  a file cannot be read or written
├── MissingExtra (ImportError)      an optional dependency is not installed
└── UnexpectedError                 an error that no check foresaw, which is its cause
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST_SHOWN = 200
"""Characters of a value that a sentence repeats."""


def shown(value: object) -> str:
    """A value as messages repeat it: short and on one line, even if its own ``repr`` fails."""
    try:
        text = repr(value)
    except Exception:  # an int of 5,000 digits, an object whose repr is broken
        return f"a value of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def told(error: BaseException) -> str:
    """What an error says of itself, on one short line without a full stop; its type where it says nothing."""
    return _short(_text(error)) or type(error).__name__


def first_line(error: BaseException) -> str:
    """:func:`told`, but only the first line: some libraries add advice that does not apply here."""
    return _short(_text(error).strip().partition("\n")[0]) or type(error).__name__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= 2 * LONGEST_SHOWN else f"{line[: 2 * LONGEST_SHOWN]}...").rstrip(".")


class SoarError(Exception):
    """Base of all errors this package raises."""


class SettingsError(SoarError, ValueError):
    pass


class UnknownName(SettingsError):
    """``kind`` has no entry called ``name``; the message lists what there is and suggests the nearest."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        wanted = name[:LONGEST_SHOWN].lower() if isinstance(name, str) else ""
        near = difflib.get_close_matches(wanted, self.known, n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(f"There is no {kind} {shown(name)}.{hint} Choose from: {', '.join(self.known) or 'none'}.")

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, object, list[str]]]:
        return type(self), (self.kind, self.name, self.known)


class DuplicateName(SettingsError):
    pass


class PromptError(SoarError, ValueError):
    pass


class PromptTooLong(PromptError):
    pass


class CheckpointError(SoarError):
    pass


class WeightsMismatch(CheckpointError):
    pass


class NoMaskToken(CheckpointError):
    pass


class NoTokenizer(CheckpointError):
    pass


class StrategyError(SoarError):
    pass


class StopError(SoarError):
    pass


class NonFiniteLogits(SoarError, ArithmeticError):
    pass


class OutOfMemory(SoarError, MemoryError):
    pass


class Busy(SoarError):
    """``waiting`` requests wait for the engine already; there may be room in ``retry_after`` seconds."""

    def __init__(self, waiting: int, retry_after: int) -> None:
        self.waiting, self.retry_after = waiting, retry_after
        super().__init__(f"{waiting} requests are waiting already. Try again in {retry_after} s.")

    def __reduce__(self) -> tuple[type[Busy], tuple[int, int]]:
        return type(self), (self.waiting, self.retry_after)


class EngineStopped(SoarError):
    pass


class InputFileError(SoarError):
    pass


class MissingExtra(SoarError, ImportError):
    """An optional dependency is missing; the message is its install line."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        super().__init__(f"{purpose} needs the package {package!r}. Install it with: pip install 'soar-dlm[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.purpose)


class UnexpectedError(SoarError):
    """Something failed that no check foresaw; ``__cause__`` is what was raised."""
