"""What a run's results depend on, as its manifest.json records it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soar_dlm.errors import InputFileError, told
from soar_dlm.evals.fields import Damaged, Fields, uncapitalised
from soar_dlm.options import in_blocks
from soar_dlm.strict_json import read_json

DEEPEST = 20
"""The most objects and lists of a manifest inside one another: more than any setting has."""

GREEDY = "Greedy"
"""The label of the method that others are compared with."""


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
class RecordedMethod:
    """A method of a run: its ``name`` there, and what the manifest says of it.

    ``decoding`` tells blocks and caches in words (:func:`soar_dlm.options.in_blocks`); empty for the whole canvas.
    """

    name: str
    label: str
    strategy: str
    metric: str
    beam: int | None
    threshold: float | None
    length: int | str
    decoding: str = ""

    @property
    def kind(self) -> str:
        """The class of its strategy."""
        return self.strategy.partition("(")[0]

    def baseline_among(self, methods: Iterable[RecordedMethod]) -> RecordedMethod | None:
        """Greedy by the same metric from the same length, decoded in the same way."""
        return next((one for one in methods if one.label == GREEDY and one._compared == self._compared), None)

    @property
    def _compared(self) -> tuple[str, int | str, str]:
        return self.metric, self.length, self.decoding

    @property
    def strategy_name(self) -> str:
        """What it is called without the settings that sweeps write after it."""
        return self.label.partition(",")[0]


def recorded_methods(settings: Mapping[str, Any]) -> dict[str, RecordedMethod]:
    """The methods of a run by name, in their order; one that names no length has the task's canvas."""
    known = {name: settings["methods"][name] for name in settings["order"]}
    return {
        name: RecordedMethod(
            name=name,
            label=one["label"],
            strategy=one["strategy"],
            metric=one["metric"],
            beam=one["beam"],
            threshold=one["threshold"],
            length=settings["canvas"] if one["length"] is None else one["length"],
            decoding=in_blocks({**settings.get("default_options", {}), **one.get("options", {})}),
        )
        for name, one in known.items()
    }


def length_order(length: int | str) -> tuple[bool, int | str]:
    """What lengths are sorted by: numbers first, then "right", the length of the answer."""
    return isinstance(length, str), length


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
            raise InputFileError(
                f"There are no results in {path.parent}: {path.name} cannot be read ({why}). Name a folder with a "
                f"{path.name} in it."
            ) from error
        try:
            return cls._checked(Fields(read_json(content, DEEPEST)))
        except (Damaged, InputFileError) as error:
            raise InputFileError(
                f"{path} is not the manifest of a run: {uncapitalised(told(error))}. Restore it from a copy, or name "
                "another folder."
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
    if "default_options" in found.content:
        found.inside("default_options")
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
