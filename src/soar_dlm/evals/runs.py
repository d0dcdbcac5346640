"""Runs as figures and reports take them: the results of folders, and the traces beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from soar_dlm.errors import InputFileError
from soar_dlm.evals.manifest import RecordedMethod, recorded_methods
from soar_dlm.evals.record import Record
from soar_dlm.evals.results import ResultFolder, Results, result_folders
from soar_dlm.evals.traces import Decoded


@dataclass(frozen=True)
class Run:
    """The ``results`` of a folder, under a ``name`` that no other run has that was read with it.

    Its problems and records are those of the chunks that all methods have decoded.
    """

    name: str
    folder: Path
    results: Results

    @property
    def model(self) -> str:
        return str(self.results.settings["model"])

    @property
    def task(self) -> str:
        return str(self.results.settings["task"])

    @property
    def mark(self) -> str | None:
        """What separates the reasoning of an answer from its conclusion; None if nothing does."""
        return self.results.settings.get("answer_mark")

    @property
    def traced(self) -> bool:
        return self.results.traced

    @cached_property
    def methods(self) -> dict[str, RecordedMethod]:
        """By name, in the order of the run."""
        return recorded_methods(self.results.settings)

    @cached_property
    def records(self) -> dict[str, list[Record]]:
        """By method, in the order of the run; those of a method in the order of the problems."""
        found: dict[str, list[Record]] = {name: [] for name in self.methods}
        for record in sorted(self.results.whole_chunks(), key=lambda record: record.index):
            found[record.method].append(record)
        return found

    @property
    def problems(self) -> int:
        return len(next(iter(self.records.values())))

    @cached_property
    def traces(self) -> dict[tuple[str, int], Decoded]:
        """By method and problem, one for each record; empty if the run kept none. Read when first asked for."""
        if not self.traced:
            return {}
        folder = ResultFolder(self.folder)
        found = folder.traced(self.results)
        if any(decoded.trace.scene is None for decoded in found.values()):
            raise InputFileError(
                f"{folder.traces.path} has traces that do not say what their tokens mean. Make them again with "
                "'soar eval --traces' in another folder."
            )
        return found


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in some folders and inside them."""
    folders = result_folders(paths)
    found = [ResultFolder(folder).read() for folder in folders]
    names = _names([str(results.settings["task"]) for results in found], folders)
    return [Run(*parts) for parts in zip(names, folders, found, strict=True)]


def _names(tasks: Sequence[str], folders: Sequence[Path]) -> Iterator[str]:
    """Each run by its task; those of the same task also by the folder they are in, or else by a number."""
    often = Counter(tasks)
    wanted = [
        task if often[task] == 1 else f"{task} ({folder.resolve().parent.name})"
        for task, folder in zip(tasks, folders, strict=True)
    ]
    seen: Counter[str] = Counter()
    for name in wanted:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} {seen[name]}"
