"""What a run's results depend on, as its manifest.json records it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soar_dlm.errors import InputFileError, told
from soar_dlm.evals.fields import Damaged, Fields
from soar_dlm.strict_json import read_json

DEEPEST = 20
"""The most objects and lists of a manifest inside one another: more than any setting has."""


@dataclass(frozen=True)
class Turn:
    """One method decoding one chunk of problems, from ``start`` to before ``stop``."""

    start: int
    stop: int
    method: str


def turns(settings: Mapping[str, Any]) -> Iterator[Turn]:
    """All turns of a run in order; the order of the methods rotates by one from chunk to chunk."""
    names, chunk, problems = settings["order"], settings["chunk"], settings["problems"]
    for number, start in enumerate(range(0, problems, chunk)):
        shift = number % len(names)
        for name in [*names[shift:], *names[:shift]]:
            yield Turn(start, min(start + chunk, problems), name)


@dataclass(frozen=True)
class Manifest:
    """The ``settings`` of a run, its ``machine``, and each state of the library that it was started or resumed with.

    What :func:`soar_dlm.evals.comparison.settings_of` writes is there and of its kind; more may be there.
    """

    settings: dict[str, Any]
    machine: dict[str, Any]
    libraries: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"settings": self.settings, "machine": self.machine, "library": self.libraries}

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """The manifest in a file; anything that no run has written is refused."""
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputFileError(f"There are no results in {path.parent}: {why}.") from error
        try:
            return cls._checked(Fields(read_json(content, DEEPEST)))
        except (Damaged, InputFileError) as error:
            raise InputFileError(
                f"{path} is not the manifest of a run: {told(error)}. Restore it from a copy, or name another folder."
            ) from error

    @classmethod
    def _checked(cls, found: Fields) -> Manifest:
        settings, machine = found.inside("settings"), found.inside("machine")
        _check_settings(settings)
        libraries = [] if found.lacks("library") else found.each_inside("library")
        machine.text("cpu")
        if not machine.lacks("cores"):
            machine.whole("cores", 1)
        machine.content.setdefault("cores", None)
        return cls(settings.content, machine.content, [one.content for one in libraries])


def _check_settings(found: Fields) -> None:
    for name in ("model", "task", "dtype", "problems_sha256"):
        found.text(name)
    for name in ("revision", "weights_sha256", "answer_mark"):
        if not found.lacks(name):
            found.text(name)
    for name in ("problems", "chunk", "threads", "canvas"):
        found.whole(name, 1)
    for name in found.inside("versions").content:
        found.inside("versions").text(name)
    order = found.texts("order")
    methods = dict(found.inside("methods").items())
    if not order or len(set(order)) < len(order) or set(order) != methods.keys():
        raise Damaged("order does not name every method once")
    for method in methods.values():
        _check_method(method)
    for name in ("revision", "weights_sha256"):  # later readers compare them
        found.content.setdefault(name, None)


def _check_method(found: Fields) -> None:
    for name in ("label", "strategy", "metric"):
        found.text(name)
    if not found.lacks("beam"):
        found.whole("beam", 1)
    if not found.lacks("threshold"):
        found.number("threshold")
    if not found.lacks("length") and found.content["length"] != "right":
        found.whole("length", 1)
    for name in ("beam", "threshold", "length"):
        found.content.setdefault(name, None)
    found.inside("options")
    if "replay" in found.content:
        replay = found.inside("replay")
        replay.whole("tries")
        replay.texts("drafts")
