"""What figures are drawn from: the results of some folders, and the traces beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from soar_dlm.engine.trace import Trace
from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Summary, summary
from soar_dlm.evals.record import Record
from soar_dlm.evals.results import ResultFolder, Results, result_folders
from soar_dlm.evals.traces import Decoded

GREEDY = "Greedy"


class NothingToDraw(SettingsError):
    """The results lack what a figure shows; the text says what is missing."""


@dataclass(frozen=True)
class Method:
    """A method of a run: its name there, and what the manifest says of it."""

    name: str
    label: str
    strategy: str
    metric: str
    beam: int | None
    threshold: float | None
    length: int | str

    @property
    def kind(self) -> str:
        """The class of its strategy."""
        return self.strategy.partition("(")[0]


class Run:
    """The results in a folder, of the problems that all methods have decoded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._results: Results = ResultFolder(folder).read()
        self.settings = self._results.settings
        self.records: list[Record] = self._results.whole_chunks()

    @property
    def task(self) -> str:
        return str(self.settings["task"])

    @property
    def mark(self) -> str | None:
        """What separates the reasoning of an answer from its conclusion; None if nothing does."""
        return self.settings.get("answer_mark")

    @property
    def traced(self) -> bool:
        return self._results.traced

    @property
    def problems(self) -> int:
        return len({record.index for record in self.records})

    @cached_property
    def methods(self) -> dict[str, Method]:
        """By name, in the order of the run."""
        known: dict[str, Any] = self.settings["methods"]
        return {
            name: Method(
                name,
                known[name]["label"],
                known[name]["strategy"],
                known[name]["metric"],
                known[name]["beam"],
                known[name]["threshold"],
                self.settings["canvas"] if known[name]["length"] is None else known[name]["length"],
            )
            for name in self.settings["order"]
        }

    @cached_property
    def traces(self) -> dict[tuple[str, int], Decoded]:
        """The traces by method and problem."""
        if not self._results.traced:
            raise NothingToDraw(f"{self.folder} has no traces; run soar eval with --traces in a new folder.")
        return ResultFolder(self.folder).traced(self._results)

    def traces_of(self, method: Method) -> list[Trace]:
        """The traces of a method, problem by problem."""
        own = [record for record in self.records if record.method == method.name]
        return [self.traces[one.method, one.index].trace for one in sorted(own, key=lambda one: one.index)]

    def records_of(self, method: Method) -> list[Record]:
        """The records of a method, problem by problem."""
        return sorted((one for one in self.records if one.method == method.name), key=lambda one: one.index)

    def against_greedy(self) -> dict[str, Summary]:
        """Each method compared with greedy by the same metric from the same length."""
        found: dict[str, Summary] = {}
        for name, method in self.methods.items():
            base = self.baseline(method)
            own = self.records_of(method)
            beside = [] if base.name == name else self.records_of(base)
            found[name] = summary([*beside, *own], base.name)[name]
        return found

    def baseline(self, method: Method) -> Method:
        """Greedy by the same metric from the same length."""
        same = (one for one in self.methods.values() if one.label == GREEDY and one.length == method.length)
        found = next((one for one in same if one.metric == method.metric), None)
        if found is None:
            raise NothingToDraw(f"{self.folder} has no greedy decoding to compare {method.label} with.")
        return found

    def first_of(self, *kinds: str) -> Method:
        """A method whose strategy is one of these, the first of them that is there."""
        for kind in kinds:
            for method in self.methods.values():
                if method.kind == kind:
                    return method
        raise NothingToDraw(f"{self.folder} has no results of {' or '.join(kinds)}.")

    def caption(self, *methods: Method) -> str:
        """The model, the task, the number of problems, and what the methods were."""
        lengths = {method.length for method in methods or self.methods.values()}
        canvas = ", ".join(map(str, sorted(lengths, key=lambda one: (isinstance(one, str), one))))
        what = f"{self.settings['model']} on {self.task}, {self.problems:,} problems, canvas {canvas}"
        settings = "; ".join(f"{method.label}: {method.strategy}" for method in methods)
        return f"{what}. {settings}." if settings else f"{what}."


def runs_of(paths: Sequence[Path]) -> list[Run]:
    """The runs in some folders and inside them; those without a whole chunk of problems have nothing to show."""
    found = [Run(folder) for folder in result_folders(paths)]
    shown = [run for run in found if run.records]
    if not shown:
        raise NothingToDraw("No run there has finished its first chunk of problems with all methods.")
    return shown
