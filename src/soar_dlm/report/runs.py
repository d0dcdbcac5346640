"""What a report is made from: result folders, each with its traces if it kept any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from soar_dlm.errors import InputFileError
from soar_dlm.evals.record import Record
from soar_dlm.evals.results import ResultFolder, Results, result_folders
from soar_dlm.evals.traces import Decoded


@dataclass(frozen=True)
class Run:
    """The results of one folder under a ``name`` that no other run of the report has.

    ``traces`` has one for each record, by method and problem; it is empty if the run kept none.
    """

    name: str
    results: Results
    traces: Mapping[tuple[str, int], Decoded]

    @property
    def model(self) -> str:
        return str(self.results.settings["model"])

    @property
    def task(self) -> str:
        return str(self.results.settings["task"])

    def records(self) -> dict[str, list[Record]]:
        """The records of the problems that every method has decoded, by method, in the order of the problems."""
        found: dict[str, list[Record]] = {name: [] for name in self.results.settings["order"]}
        for record in sorted(self.results.whole_chunks(), key=lambda record: record.index):
            found[record.method].append(record)
        return found


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in some folders and inside them."""
    places = list(dict.fromkeys(result_folders(paths)))
    folders = [ResultFolder(place) for place in places]
    found = [folder.read() for folder in folders]
    names = _names([str(results.settings["task"]) for results in found], places)
    return [
        Run(name, results, _traces(folder, results) if results.traced else {})
        for name, folder, results in zip(names, folders, found, strict=True)
    ]


def _traces(folder: ResultFolder, results: Results) -> dict[tuple[str, int], Decoded]:
    traces = folder.traced(results)
    if any(decoded.trace.scene is None for decoded in traces.values()):
        raise InputFileError(
            f"{folder.traces.path} has traces that do not say what their tokens mean. Make them again with "
            "'soar eval --traces' in another folder."
        )
    return traces


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
