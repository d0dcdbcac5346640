"""A folder of results: a manifest with everything they depend on, and one line for each problem and method."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from soar_dlm import files
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.fields import Damaged, uncapitalised
from soar_dlm.evals.manifest import Manifest, Turn, turns
from soar_dlm.evals.provenance import library, machine
from soar_dlm.evals.record import Record
from soar_dlm.evals.traces import Decoded, TraceFile
from soar_dlm.strict_json import json_text, read_json

__all__ = ["DAMAGED", "MANIFEST", "RESULTS", "Record", "Repair", "ResultFolder", "Results", "result_folders"]

MANIFEST, RESULTS = "manifest.json", "results.jsonl"
DAMAGED = "results.damaged.jsonl"
"""Where a repair puts the lines that it takes out of the results; nothing is ever removed from it."""

TRACED = "traces"
"""The setting of a run that keeps traces."""

REPAIR = "Nothing was changed. To move such lines aside and decode only their problems again, add --repair to the run."


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
    def traced(self) -> bool:
        """Whether the run keeps traces beside its results."""
        return bool(self.settings.get(TRACED))

    @property
    def complete(self) -> bool:
        return len(self.records) == int(self.settings["problems"]) * len(self.settings["order"])

    def whole_chunks(self) -> list[Record]:
        """The records of the chunks that every method has decoded, on which methods can be compared."""
        chunks = self.turns_done // len(self.settings["order"])
        last = chunks * int(self.settings["chunk"])
        return [record for record in self.records if record.index < last]


@dataclass(frozen=True)
class Repair:
    """What a repair did: how many lines it moved aside, and how many problems it had to have decoded again."""

    moved: int
    decoded: int


class ResultFolder:
    """Results on disk, written line by line, by one process that has locked the folder.

    1. The lines are those of the run's turns, in order. A run that is killed loses at most the turn it was in.
    2. An unfinished turn at the end is left out when the file is read, and cut off when the run resumes. Its last line
       may be torn, that is, without its line feed.
    3. Any other line that is not the record that belongs there is refused by its number. A repair keeps all records
       that can be read, wherever they are, and moves the other lines to another file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.traces = path, TraceFile(path)

    def resume(self, settings: Mapping[str, Any]) -> Results:
        """Make the folder ready for the next turn of a run with these settings.

        A folder with results of other settings is refused. Another commit of the library is not: it is recorded.
        """
        manifest = self._manifest_for(settings)
        found = self.read()
        if found.traced:
            self.traces.resume()
            self.traced(found)
        if not found.complete:
            self._note_library(manifest)
        if self._has(RESULTS):
            with files.explained("write", self.path / RESULTS):
                os.truncate(self.path / RESULTS, found.size)
        return replace(found, libraries=manifest.libraries)

    def left(self, planned: Mapping[str, Any]) -> list[Turn]:
        """The turns that are not done yet; those of a run that has not begun are told by ``planned``."""
        if not self._has_lines():
            return list(turns(planned))
        found = self.read()
        return list(turns(found.settings))[found.turns_done :]

    def append(self, record: Record) -> None:
        files.append_line(self.path / RESULTS, record.line)

    def read(self) -> Results:
        """The results of whole turns; an unfinished turn at the end is left out."""
        manifest, lines = Manifest.read(self.path / MANIFEST), self._lines()
        records: list[Record] = []
        done = 0
        for turn in turns(manifest.settings):
            own = list(self._whole_turn(turn, lines, len(records)))
            if len(own) < turn.stop - turn.start:
                break
            records += own
            done += 1
        else:
            if len(lines) > len(records):
                raise self._refused(len(records), "it follows the last line of the run")
        size = sum(map(len, lines[: len(records)]))
        return Results(manifest.settings, manifest.machine, records, done, size, manifest.libraries)

    def traced(self, results: Results) -> dict[tuple[str, int], Decoded]:
        """The traces of these records by method and problem; a run that has kept none is refused."""
        if not results.traced:
            raise SettingsError(f"The run in {self.path} kept no traces; run it with --traces in another folder.")
        found = self.traces.read()
        missing = [record for record in results.records if (record.method, record.index) not in found]
        if missing:
            one = missing[0]
            raise InputFileError(
                f"{self.traces.path} has no trace of problem {one.index} by {one.method!r}, and of "
                f"{len(missing) - 1} others. {REPAIR}"
            )
        return {(record.method, record.index): found[record.method, record.index] for record in results.records}

    def repair(self, settings: Mapping[str, Any], decode: Callable[[Turn, Sequence[int]], Iterable[Record]]) -> Repair:
        """Keep every record that can be read, move the other lines aside, and ``decode`` what is missing.

        Every turn up to the last that has a record becomes whole. The file is replaced in one move after each turn, so
        that a repair that is killed resumes there.
        """
        manifest = self._manifest_for(settings)
        kept, bad = self._sorted_out(manifest)
        if manifest.settings.get(TRACED):
            traced = self.traces.repair()
            kept = {key: line for key, line in kept.items() if key in traced}
        for line in bad:
            files.append_line(self.path / DAMAGED, line.removesuffix(b"\n"))
        begun = list(_begun(manifest.settings, kept))
        if kept or bad:
            self._write(begun, kept)
        decoded = 0
        for turn in begun:
            holes = [index for index in range(turn.start, turn.stop) if (turn.method, index) not in kept]
            if holes:
                self._note_library(manifest)
                for record in decode(turn, holes):
                    kept[record.method, record.index] = record.line.encode() + b"\n"
                decoded += len(holes)
                self._write(begun, kept)
        return Repair(len(bad), decoded)

    def _sorted_out(self, manifest: Manifest) -> tuple[dict[tuple[str, int], bytes], list[bytes]]:
        """The lines that are records of the run, by method and problem, and all others; the first of two counts."""
        kept: dict[tuple[str, int], bytes] = {}
        bad = []
        for line in self._lines():
            try:
                record = Record.of_line(line)
            except Damaged:
                bad.append(line)
                continue
            key, settings = (record.method, record.index), manifest.settings
            if key in kept or record.method not in settings["order"] or record.index >= settings["problems"]:
                bad.append(line)
            else:
                kept[key] = line
        return kept, bad

    def _write(self, begun: Sequence[Turn], kept: Mapping[tuple[str, int], bytes]) -> None:
        keys = ((turn.method, index) for turn in begun for index in range(turn.start, turn.stop))
        with files.replacing(self.path / RESULTS) as fresh:
            fresh.write_bytes(b"".join(kept[key] for key in keys if key in kept))

    def _whole_turn(self, turn: Turn, lines: Sequence[bytes], first: int) -> Iterator[Record]:
        """The records of a turn that starts at line ``first`` (from 0), as far as they are there."""
        for place, index in enumerate(range(turn.start, turn.stop), start=first):
            if place == len(lines) or not lines[place].endswith(b"\n"):
                return
            try:
                record = Record.of_line(lines[place])
            except Damaged as error:
                raise self._refused(place, str(error)) from error
            if (record.method, record.index) != (turn.method, index):
                raise self._refused(
                    place,
                    f"it is problem {record.index} by {record.method!r} in the place of {index} by {turn.method!r}",
                )
            yield record

    def _refused(self, place: int, why: str) -> InputFileError:
        return InputFileError(f"{self.path / RESULTS}, line {place + 1}, is damaged: {uncapitalised(why)}. {REPAIR}")

    def _lines(self) -> list[bytes]:
        """The lines of the results with their line feeds, which only the last can lack."""
        if not self._has(RESULTS):
            return []
        with files.explained("read", self.path / RESULTS):
            content = (self.path / RESULTS).read_bytes()
        *whole, rest = content.split(b"\n")
        return [*(line + b"\n" for line in whole), *([rest] if rest else [])]

    def _has(self, name: str) -> bool:
        with files.explained("read", self.path / name):
            return os.path.lexists(self.path / name)

    def _has_lines(self) -> bool:
        """Whether there are any results; a run that was killed early may leave an empty file."""
        with files.explained("read", self.path / RESULTS):
            return self._has(RESULTS) and os.path.getsize(self.path / RESULTS) > 0

    def _manifest_for(self, settings: Mapping[str, Any]) -> Manifest:
        """The folder's manifest, made if it has no results yet; one of other settings is refused."""
        plain = _as_json(settings)
        if not self._has_lines():
            if self._has(MANIFEST):
                Manifest.read(self.path / MANIFEST)  # a file of another kind is not overwritten
            self._write_manifest(Manifest(plain, machine(), [library()]))
        elif not self._has(MANIFEST):
            raise InputFileError(f"{self.path} has a {RESULTS} but no {MANIFEST}. Name another folder.")
        found = Manifest.read(self.path / MANIFEST)
        changed = list(differences(found.settings, plain))
        if changed:
            raise SettingsError(
                f"{self.path} has results of other settings: {'; '.join(changed)}. "
                "Use those settings, or name another folder."
            )
        return found

    def _note_library(self, manifest: Manifest) -> None:
        current = library()
        if current not in manifest.libraries:
            manifest.libraries.append(current)
            self._write_manifest(manifest)

    def _write_manifest(self, manifest: Manifest) -> None:
        files.write_json(self.path / MANIFEST, manifest.to_json())


def result_folders(paths: Sequence[Path]) -> list[Path]:
    """The result folders among ``paths`` and inside them, each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        with files.explained("read", path):
            for file in sorted(path.rglob(MANIFEST)):
                found.setdefault(file.resolve(), file.parent)
    if not found:
        raise SettingsError(f"There are no results in {', '.join(map(str, paths))}; make some with 'soar eval'.")
    return list(found.values())


def _begun(settings: Mapping[str, Any], kept: Mapping[tuple[str, int], bytes]) -> Iterator[Turn]:
    """The turns up to the last that has a record."""
    left = len(kept)
    for turn in turns(settings):
        if not left:
            return
        left -= sum((turn.method, index) in kept for index in range(turn.start, turn.stop))
        yield turn


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a manifest has them."""
    try:
        found: dict[str, Any] = read_json(json_text(dict(settings)))
    except InputFileError as error:
        raise SettingsError(f"The settings of a run in a folder must be plain JSON values. {error}") from error
    return found


def differences(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Each setting that differs, with both values."""
    for name in [*old, *(name for name in new if name not in old)]:
        then, now = old.get(name), new.get(name)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            yield from differences(then, now, f"{within}{name}.")
        elif then != now:
            yield f"{within}{name} was {then!r}, is now {now!r}"
