"""A folder of results: a manifest with everything they depend on, and one line per problem and method."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from soar_dlm.errors import InputFileError, SettingsError

MANIFEST, RESULTS = "manifest.json", "results.jsonl"


@dataclass(frozen=True)
class Record:
    """One problem decoded by one method; ``seconds`` is the time since the record before it in the same turn.

    Problems share batches, so only the sum over a method's records says how fast it is.

    ``prompt_sha256`` is that of prompt and suffix. ``exact`` is whether the text is the very one that was taken out,
    where a task fills blanks.
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


@dataclass(frozen=True)
class Turn:
    """A method's go at a chunk of problems."""

    start: int
    stop: int
    method: str


def turns(settings: Mapping[str, Any]) -> Iterator[Turn]:
    """Every turn of a run, in its order: the methods rotate by one from chunk to chunk."""
    names, chunk, problems = settings["order"], settings["chunk"], settings["problems"]
    for number, start in enumerate(range(0, problems, chunk)):
        shift = number % len(names)
        for name in [*names[shift:], *names[:shift]]:
            yield Turn(start, min(start + chunk, problems), name)


@dataclass(frozen=True)
class Results:
    """What a folder holds: settings, machine, and the records of whole turns, which take up ``size`` bytes."""

    settings: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    turns_done: int
    size: int

    @property
    def complete(self) -> bool:
        return len(self.records) == int(self.settings["problems"]) * len(self.settings["order"])

    def whole_chunks(self) -> list[Record]:
        """The records of the chunks that every method has decoded: what methods can be compared on."""
        chunks = self.turns_done // len(self.settings["order"])
        last = chunks * int(self.settings["chunk"])
        return [record for record in self.records if record.index < last]


class ResultFolder:
    """Results on disk, line by line as they come. A run killed at any moment loses at most the turn it was in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resume(self, settings: Mapping[str, Any]) -> Results:
        """Make the folder ready for the next turn of a run with these settings.

        Other settings than those of the lines that are there are refused; without a line there is nothing to lose.
        """
        if not (self.path / RESULTS).exists():
            self.path.mkdir(parents=True, exist_ok=True)
            _write_at_once(self.path / MANIFEST, {"settings": dict(settings), "machine": machine()})
        elif not (self.path / MANIFEST).exists():
            raise InputFileError(f"{self.path} has {RESULTS} but no {MANIFEST}; name another folder.")
        found = self.read()
        differences = list(_differences(found.settings, settings))
        if differences:
            raise SettingsError(
                f"{self.path} was made with other settings: {'; '.join(differences)}. "
                "Go back to those, or name another folder."
            )
        if (self.path / RESULTS).exists():
            os.truncate(self.path / RESULTS, found.size)
        return found

    def append(self, record: Record) -> None:
        with (self.path / RESULTS).open("a", encoding="utf-8") as target:
            target.write(json.dumps(asdict(record)) + "\n")
            target.flush()
            os.fsync(target.fileno())

    def read(self) -> Results:
        """The results as far as their turns are whole; a torn turn at the end is left out."""
        try:
            told = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            settings, made_on = told["settings"], told["machine"]
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
        return Results(settings, made_on, records, done, sum(map(len, lines[: len(records)])))


def machine() -> dict[str, Any]:
    """The processor's name, the number of its cores that are at hand, and the accelerator if there is one."""
    import torch

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": name, "cores": os.cpu_count(), "accelerator": accelerator, "system": platform.platform()}


def _parsed(line: bytes) -> Record | None:
    """The record on a line; None if the line is torn."""
    try:
        return Record(**json.loads(line)) if line.endswith(b"\n") else None
    except (TypeError, ValueError):
        return None


def _write_at_once(path: Path, content: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Each setting that differs, with its value then and now."""
    for name in [*old, *(name for name in new if name not in old)]:
        then, now = old.get(name), new.get(name)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            yield from _differences(then, now, f"{within}{name}.")
        elif then != now:
            yield f"{within}{name} was {then!r}, is now {now!r}"
