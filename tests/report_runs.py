"""Runs for reports, made from a few decodings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import soar_dlm as soar
from soar_dlm import files
from soar_dlm.evals.manifest import Manifest
from soar_dlm.evals.record import Record
from soar_dlm.evals.results import MANIFEST, TRACED, ResultFolder, Results
from soar_dlm.evals.runs import Run
from soar_dlm.evals.traces import Decoded
from soar_dlm.results import Result

STRATEGIES: list[soar.Strategy] = [
    soar.Greedy(),
    soar.Greedy(3),
    soar.AdaptiveParallel(0.2),
    soar.PositionBeam(3),
    soar.Soar(3, 0.7),
    soar.Lopa(0.7),
    soar.FreeDave(3),
    soar.Core(every=3, weak=4),
    soar.Deliberate(0.7, accept=0.0, tries=3, least=-20.0),
    soar.Deliberate(0.7, accept=0.0, tries=4, abreast=2, least=-20.0),
]

TEMPLATE = (
    'def process(numbers):\n    """Keep the numbers above 3 and add them up."""\n'
    "    return {blank:2}(value for value in {blank:6} if value > 3)\n"
)
"""Two blanks that mini-dreamon makes longer and shorter."""


@dataclass(frozen=True)
class Made(Run):
    """A run that was made here and is in no folder."""

    made: Mapping[tuple[str, int], Decoded]

    @cached_property
    def traces(self) -> dict[tuple[str, int], Decoded]:
        return dict(self.made)

    def untraced(self) -> Made:
        settings = {name: value for name, value in self.results.settings.items() if name != TRACED}
        return replace(self, results=replace(self.results, settings=settings), made={})


def run_of(
    results: Mapping[str, Sequence[Result]],
    right: Mapping[str, str],
    *,
    name: str = "sums",
    model: str = "random-llada",
    kinds: Sequence[str] = ("easy", "hard"),
    labels: Mapping[str, str] | None = None,
) -> Made:
    """``results`` by method and problem; ``right`` has a 1 for each problem that a method solved."""
    count = len(next(iter(results.values())))
    records = [
        Record(
            index=place,
            method=method,
            kind=kinds[place % len(kinds)],
            prompt_sha256="",
            correct=right[method][place] == "1",
            steps=result.steps,
            forwards=result.forwards,
            tokens_per_forward=result.tokens_per_forward,
            mean_confidence=result.mean_confidence,
            finish_reason=result.finish_reason,
            seconds=1.0,
            text=result.text,
        )
        for method, own in results.items()
        for place, result in enumerate(own)
    ]
    traces = {
        (method, place): Decoded(place, method, f"answer {place}", result.trace)
        for method, own in results.items()
        for place, result in enumerate(own)
    }
    settings = settings_of(name, model, list(results), count, labels or {})
    machine = {"cpu": "a processor", "cores": 2, "accelerator": None, "system": "Linux"}
    library = [{"version": soar.__version__, "commit": "0123456789abcdef", "modified": False}]
    found = Results(settings, machine, records, len(results), 0, library)
    return Made(name, Path("nowhere"), found, traces)


def settings_of(name: str, model: str, methods: Sequence[str], count: int, labels: Mapping[str, str]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "strategy": "",
        "metric": "probability",
        "beam": None,
        "threshold": None,
        "length": 12,
        "options": {},
    }
    return {
        "model": model,
        "revision": None,
        "weights_sha256": None,
        "dtype": "torch.float32",
        "task": name,
        "canvas": 12,
        "problems": count,
        "problems_sha256": sha256(name.encode()).hexdigest(),
        "methods": {method: {**described, "label": labels.get(method, method)} for method in methods},
        "order": list(methods),
        "chunk": count,
        TRACED: True,
        "threads": 1,
        "versions": {"soar_dlm": soar.__version__, "torch": "2"},
    }


def write(run: Run, folder: Path) -> Path:
    """The run as a folder of results."""
    folder.mkdir(parents=True)
    results = run.results
    files.write_json(folder / MANIFEST, Manifest(results.settings, results.machine, results.libraries).to_json())
    store = ResultFolder(folder)
    for record in results.records:
        if run.traces:
            store.traces.append(run.traces[record.method, record.index])
        store.append(record)
    return folder


def small_run(lm: soar.LM, **told: Any) -> Made:
    """Four problems by greedy and SOAR: gained, lost, both right, both wrong."""
    prompts = ["what is one", "what is two", "what is three", "what is four"]
    results = {
        name: lm.generate(prompts, strategy, max_new_tokens=12, seed=1, trace=True)
        for name, strategy in (("Greedy", soar.Greedy()), ("SOAR", soar.Soar(3, 0.7)))
    }
    return run_of(results, {"Greedy": "0110", "SOAR": "1010"}, **told)
