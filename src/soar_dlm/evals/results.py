"""A folder of results: a manifest with everything they depend on, and one line for each problem and method."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.provenance import library, machine
from soar_dlm.evals.replay import Course

MANIFEST, RESULTS = "manifest.json", "results.jsonl"


@dataclass(frozen=True)
class Record:
    """One problem decoded by one method.

    ``seconds`` is the time since the previous record of the same turn. Problems share batches, so only the sum over
    all of a method's records says how fast it is. ``prompt_sha256`` is the hash of prompt and suffix. ``exact`` says
    whether a blank got exactly the text that was taken out; it is None where a task has no blanks. ``course`` is what
    other settings of a deliberation would have answered; only sweeps of Deliberate have it.
    """

    index: int
    method: str
    kind: str
    prompt_sha256: str
    correct: bool
    steps: int
    forwards: int
    tokens_per_forward: float
    mean_confidence: float
    finish_reason: str
    seconds: float
    text: str
    exact: bool | None = None
    course: Course | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values; a course that there is not is left out."""
        return {name: value for name, value in asdict(self).items() if name != "course" or value is not None}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Record:
        """The record that :meth:`to_json` made plain; what a later version added is ignored."""
        known = {entry.name: content[entry.name] for entry in fields(cls) if entry.name in content}
        course = known.pop("course", None)
        return cls(**known, course=None if course is None else Course.from_json(course))


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
class Results:
    """What a folder holds; ``records`` are those of whole turns and take up ``size`` bytes of the file.

    ``libraries`` has an entry for each state of the library that the run was started or resumed with.
    """

    settings: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    turns_done: int
    size: int
    libraries: list[dict[str, Any]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return len(self.records) == int(self.settings["problems"]) * len(self.settings["order"])

    def whole_chunks(self) -> list[Record]:
        """The records of the chunks that every method has decoded, on which methods can be compared."""
        chunks = self.turns_done // len(self.settings["order"])
        last = chunks * int(self.settings["chunk"])
        return [record for record in self.records if record.index < last]


class ResultFolder:
    """Results on disk, written line by line. A run that is killed loses at most the turn it was in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resume(self, settings: Mapping[str, Any]) -> Results:
        """Make the folder ready for the next turn of a run with these settings.

        A folder with results of other settings is refused. Another commit of the library is not: it is recorded.
        """
        if not (self.path / RESULTS).exists():
            self.path.mkdir(parents=True, exist_ok=True)
            self._write_manifest(settings, machine(), [library()])
        elif not (self.path / MANIFEST).exists():
            raise InputFileError(f"{self.path} has a {RESULTS} but no {MANIFEST}. Name another folder.")
        found = self.read()
        differences = list(_differences(found.settings, settings))
        if differences:
            raise SettingsError(
                f"{self.path} has results of other settings: {'; '.join(differences)}. "
                "Use those settings, or name another folder."
            )
        current = library()
        if not found.complete and current not in found.libraries:
            found = replace(found, libraries=[*found.libraries, current])
            self._write_manifest(found.settings, found.machine, found.libraries)
        if (self.path / RESULTS).exists():
            os.truncate(self.path / RESULTS, found.size)
        return found

    def append(self, record: Record) -> None:
        with (self.path / RESULTS).open("a", encoding="utf-8") as target:
            target.write(json.dumps(record.to_json()) + "\n")
            target.flush()
            os.fsync(target.fileno())

    def _write_manifest(
        self, settings: Mapping[str, Any], made_on: Mapping[str, Any], libraries: Sequence[Mapping[str, Any]]
    ) -> None:
        content = {"settings": dict(settings), "machine": dict(made_on), "library": list(libraries)}
        _write_at_once(self.path / MANIFEST, content)

    def read(self) -> Results:
        """The results of whole turns; an unfinished turn at the end is left out."""
        try:
            manifest = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            settings, made_on, libraries = manifest["settings"], manifest["machine"], manifest.get("library", [])
            planned = list(turns(settings))
            _ = settings["model"], settings["task"], settings["methods"]
        except OSError as error:
            raise InputFileError(f"There are no results in {self.path}: {error.strerror}.") from error
        except (KeyError, TypeError, ValueError) as error:
            raise InputFileError(f"{self.path / MANIFEST} is not the manifest of a run.") from error
        results = self.path / RESULTS
        lines = results.read_bytes().splitlines(keepends=True) if results.exists() else []
        records: list[Record] = []
        done = 0
        for turn in planned:
            expected = [(turn.method, index) for index in range(turn.start, turn.stop)]
            found = [_parsed(line) for line in lines[len(records) : len(records) + len(expected)]]
            if [(record.method, record.index) for record in found if record is not None] != expected:
                break
            records += [record for record in found if record is not None]
            done += 1
        return Results(settings, made_on, records, done, sum(map(len, lines[: len(records)])), libraries)


def result_folders(paths: Sequence[Path]) -> list[Path]:
    """The result folders among ``paths`` and inside them."""
    found = [file.parent for path in paths for file in sorted(path.rglob(MANIFEST))]
    if not found:
        raise SettingsError(f"There are no results in {', '.join(map(str, paths))}; make some with 'soar eval'.")
    return found


def _parsed(line: bytes) -> Record | None:
    """The record on a line; None if the line is incomplete."""
    try:
        return Record.from_json(json.loads(line)) if line.endswith(b"\n") else None
    except (KeyError, TypeError, ValueError):
        return None


def _write_at_once(path: Path, content: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Each setting that differs, with both values."""
    for name in [*old, *(name for name in new if name not in old)]:
        then, now = old.get(name), new.get(name)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            yield from _differences(then, now, f"{within}{name}.")
        elif then != now:
            yield f"{within}{name} was {then!r}, is now {now!r}"
