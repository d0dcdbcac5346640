"""Methods compared on the same problems, in turns, with a record file that survives interruptions."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import transformers

import soar_dlm
from soar_dlm import checks
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.statistics import mcnemar, wilson_interval
from soar_dlm.lm import LM
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.results import Result
from soar_dlm.search.strategy import Strategy
from soar_dlm.solving import solve
from soar_dlm.tasks.infilling import InfillingTask
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

WARM_UP = 4
"""How many prompts each method decodes untimed before the first timed chunk."""


@dataclass(frozen=True)
class Method:
    """A strategy, and the length of canvas or blank it starts from: the task's by default, "right" for the answer's."""

    strategy: Strategy
    length: int | Literal["right"] | None = None


@dataclass(frozen=True)
class Record:
    """One problem decoded by one method; ``seconds`` is the time of its chunk over the size of its chunk.

    ``exact`` is whether the text is the very one that was taken out, where a task fills blanks.
    """

    index: int
    method: str
    kind: str
    correct: bool
    steps: int
    forwards: int
    tokens_per_forward: float
    mean_confidence: float
    seconds: float
    text: str
    exact: bool | None = None


@dataclass(frozen=True)
class RecordFile:
    """What a record file holds: its first line, and the records of its whole chunks, which take up ``size`` bytes."""

    settings: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    size: int

    @property
    def complete(self) -> bool:
        return len(self.records) == int(self.settings["problems"]) * len(self.settings["order"])


def compare(
    lm: LM,
    task: Task,
    problems: Sequence[Problem],
    methods: Mapping[str, Strategy | Method],
    *,
    chunk: int = 50,
    file: Path | None = None,
    on_record: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Decode every problem with every method; one record for each pair, in the order they were made.

    1. Methods take turns: each chunk of problems is decoded by all methods, one ``generate`` call each, and the order
       of the methods rotates by one from chunk to chunk, so that a change of the machine's speed meets all alike.
    2. The clock runs during ``generate`` only; answers are judged outside it. Before the first chunk each method
       decodes a few prompts untimed.
    3. The options of ``generate`` are its defaults: temperature 0, no blocks, and early exit. With early exit a text
       whose end token and all before it are committed is done, and the canvas behind it costs no forwards. So greedy
       takes as many forwards as it commits positions, at most the canvas, and ``tokens_per_forward`` counts
       committed positions only. A forward is one evaluation of one candidate, however many share a batch.
    4. With a ``file``, each chunk is appended when it is done. Another call with the same settings goes on after the
       last whole chunk; with other settings it is refused.

    ``on_record`` is called with every record, those read from the file first.
    """
    checks.whole_number("chunk", chunk, 1)
    if not methods:
        raise SettingsError("Give at least one method to compare.")
    settings = settings_of(lm, task, problems, methods, chunk)
    records = [] if file is None else _resume(file, settings)
    for record in records:
        _tell(on_record, record)
    done = len(records) // len(methods)
    if done < len(problems):
        for strategy in methods.values():
            _answers(lm, task, problems[:WARM_UP], strategy)
    for start in range(done, len(problems), chunk):
        fresh: list[Record] = []
        for name in turn(list(methods), start // chunk):
            part = problems[start : start + chunk]
            fresh += _decode(lm, task, part, start, name, methods[name])
        if file is not None:
            _append(file, fresh)
        records += fresh
        for record in fresh:
            _tell(on_record, record)
    return records


def turn(names: Sequence[str], chunk: int) -> list[str]:
    """The order of the methods in a chunk: rotated by one for each chunk before it."""
    shift = chunk % len(names)
    return [*names[shift:], *names[:shift]]


def _decode(
    lm: LM, task: Task, problems: Sequence[Problem], start: int, name: str, strategy: Strategy | Method
) -> Iterator[Record]:
    started = time.perf_counter()
    results = _answers(lm, task, problems, strategy)
    seconds = (time.perf_counter() - started) / len(problems)
    verdicts = task.all_correct(problems, [result.text for result in results])
    for place, (problem, result, correct) in enumerate(zip(problems, results, verdicts, strict=True)):
        yield Record(
            index=start + place,
            method=name,
            kind=problem.kind,
            correct=bool(correct),
            steps=result.steps,
            forwards=result.forwards,
            tokens_per_forward=result.tokens_per_forward,
            mean_confidence=result.mean_confidence,
            seconds=seconds,
            text=result.text,
            exact=task.exact(problem, result.text) if isinstance(task, InfillingTask) else None,
        )


def _answers(lm: LM, task: Task, problems: Sequence[Problem], method: Strategy | Method) -> list[Result]:
    if isinstance(method, Strategy):
        method = Method(method)
    if method.length == "right":
        right = lm.tokenizer([problem.answer for problem in problems], add_special_tokens=False)["input_ids"]
        return solve(lm, task, problems, method.strategy, [max(len(ids), 1) for ids in right])
    return solve(lm, task, problems, method.strategy, method.length)


def _tell(on_record: Callable[[Record], None] | None, record: Record) -> None:
    if on_record is not None:
        on_record(record)


def settings_of(
    lm: LM, task: Task, problems: Sequence[Problem], methods: Mapping[str, Strategy | Method], chunk: int
) -> dict[str, Any]:
    """All that the records depend on, as plain JSON values."""
    wording = json.dumps([_wording(problem) for problem in problems])
    return {
        "model": lm.name,
        "weights_sha256": weights_fingerprint(lm.name),
        "device": str(lm.model.device),
        "dtype": str(next(lm.model.backbone.parameters()).dtype),
        "engine": repr(lm.engine_settings),
        "task": task.name,
        "canvas": task.canvas,
        "problems": len(problems),
        "problems_sha256": sha256(wording.encode()).hexdigest(),
        "methods": {name: repr(strategy) for name, strategy in methods.items()},
        "order": list(methods),
        "chunk": chunk,
        "threads": torch.get_num_threads(),
        "versions": {
            "soar_dlm": soar_dlm.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "numpy": np.__version__,
        },
    }


def _wording(problem: Problem) -> list[Any]:
    behind = [problem.suffix] if problem.suffix else []
    return [problem.prompt, problem.answer, problem.kind, dict(problem.checks), *behind]


def weights_fingerprint(name: str) -> str | None:
    """The SHA-256 of a local or embedded model's weights files, by name and content; None for a model of the Hub."""
    files = sorted(Path(embedded_folder(name) or name).expanduser().glob("*.safetensors"))
    if not files:
        return None
    digest = sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0")
        with file.open("rb") as weights:
            while block := weights.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def machine() -> dict[str, Any]:
    """The processor's name and the number of its cores that are at hand."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return {"cpu": name, "cores": os.cpu_count()}


def read_records(file: Path) -> RecordFile:
    """A record file as far as its chunks are whole; a torn chunk at its end is left out."""
    try:
        lines = file.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise InputFileError(f"Cannot read the records in {file}: {error.strerror}.") from error
    try:
        first = json.loads(lines[0])
        settings, made_on = first["settings"], first["machine"]
        names, chunk, problems = settings["order"], settings["chunk"], settings["problems"]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputFileError(f"{file} does not begin with the settings of a comparison; is it another file?") from error
    records: list[Record] = []
    place = 1
    for start in range(0, problems, chunk):
        indices = range(start, min(start + chunk, problems))
        expected = [(name, index) for name in turn(names, start // chunk) for index in indices]
        found = [_parsed(line) for line in lines[place : place + len(expected)]]
        if [(record.method, record.index) for record in found if record is not None] != expected:
            break
        records += [record for record in found if record is not None]
        place += len(expected)
    return RecordFile(settings, made_on, records, sum(map(len, lines[:place])))


def _parsed(line: bytes) -> Record | None:
    """The record on a line; None if the line is torn."""
    try:
        return Record(**json.loads(line)) if line.endswith(b"\n") else None
    except (TypeError, ValueError):
        return None


def _resume(file: Path, settings: dict[str, Any]) -> list[Record]:
    """The records of whole chunks made with these settings; the file is then ready for the next chunk."""
    header = json.dumps({"settings": settings, "machine": machine()}) + "\n"
    content = file.read_bytes() if file.exists() else b""
    if b"\n" not in content and header.encode().startswith(content[:12]):  # new, or torn in its first line
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(header)
        return []
    found = read_records(file)
    differences = list(_differences(found.settings, settings))
    if differences:
        raise SettingsError(
            f"{file} was made with other settings: {'; '.join(differences)}. "
            "Go back to those, or remove the file to start over."
        )
    os.truncate(file, found.size)
    return found.records


def _append(file: Path, records: Sequence[Record]) -> None:
    with file.open("a") as target:
        target.write("".join(json.dumps(asdict(record)) + "\n" for record in records))
        target.flush()
        os.fsync(target.fileno())


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Each setting that differs, with its value then and now."""
    for name in [*old, *(name for name in new if name not in old)]:
        then, now = old.get(name), new.get(name)
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            yield from _differences(then, now, f"{within}{name}.")
        elif then != now:
            yield f"{within}{name} was {then!r}, is now {now!r}"


@dataclass(frozen=True)
class Summary:
    """A method over all its problems.

    ``interval`` is Wilson's at 95%; ``forwards`` and ``steps`` are means per problem; ``tokens_per_forward`` is all
    committed tokens over all forwards. Against the baseline: ``speed_up`` is its seconds over the method's,
    ``gained`` and ``lost`` count the problems that only the method or only the baseline got right, ``p_value`` is
    McNemar's.
    """

    problems: int
    correct: int
    interval: tuple[float, float]
    forwards: float
    steps: float
    tokens_per_forward: float
    seconds: float
    speed_up: float
    gained: int
    lost: int
    p_value: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.problems


def summary(records: Sequence[Record], baseline: str) -> dict[str, Summary]:
    """Every method's summary against ``baseline``, which comes first; all must have decoded the same problems."""
    by_method: dict[str, list[Record]] = {baseline: []}
    for record in sorted(records, key=lambda record: record.index):
        by_method.setdefault(record.method, []).append(record)
    reference = by_method[baseline]
    if not reference:
        raise SettingsError(f"There are no records of the baseline {baseline!r}.")
    indices = [record.index for record in reference]
    for name, own in by_method.items():
        if [record.index for record in own] != indices:
            raise SettingsError(f"{name!r} and {baseline!r} did not decode the same problems.")
    return {name: _summarized(own, reference) for name, own in by_method.items()}


def _summarized(own: Sequence[Record], reference: Sequence[Record]) -> Summary:
    count, correct = len(own), sum(record.correct for record in own)
    forwards, seconds = sum(record.forwards for record in own), sum(record.seconds for record in own)
    test = mcnemar([record.correct for record in own], [record.correct for record in reference])
    return Summary(
        problems=count,
        correct=correct,
        interval=wilson_interval(correct, count),
        forwards=forwards / count,
        steps=sum(record.steps for record in own) / count,
        tokens_per_forward=sum(record.tokens_per_forward * record.forwards for record in own) / max(forwards, 1),
        seconds=seconds,
        speed_up=sum(record.seconds for record in reference) / seconds,
        gained=test.first_only,
        lost=test.second_only,
        p_value=test.p_value,
    )
