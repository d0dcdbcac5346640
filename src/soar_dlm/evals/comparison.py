"""Methods compared on the same problems, in turns, with result files that survive interruptions."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch

from soar_dlm import checks, files
from soar_dlm.errors import SettingsError
from soar_dlm.evals.manifest import Turn, turns
from soar_dlm.evals.provenance import versions
from soar_dlm.evals.record import Record
from soar_dlm.evals.replay import Course, check_replayable
from soar_dlm.evals.results import DAMAGED, RESULTS, TRACED, ResultFolder
from soar_dlm.evals.statistics import mcnemar, wilson_interval
from soar_dlm.evals.traces import Decoded
from soar_dlm.lm import LM
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.results import Result
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.strategy import Strategy
from soar_dlm.solving import solved_as_completed
from soar_dlm.tasks.infilling import InfillingTask
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task

WARM_UP = 4
"""How many prompts each method decodes before the first timed chunk."""


@dataclass(frozen=True)
class Method:
    """A strategy, and the length of the canvas or blank it starts from.

    ``length`` is the task's by default; "right" is that of the answer. ``options`` are those of ``generate`` or
    ``infill``. ``label`` is the name in tables. With ``replay`` the records of a deliberation keep what its other
    settings would have answered.
    """

    strategy: Strategy
    length: int | Literal["right"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    replay: bool = False

    def __post_init__(self) -> None:
        if self.replay:
            check_replayable(self.strategy)


def compare(
    lm: LM,
    task: Task,
    problems: Sequence[Problem],
    methods: Mapping[str, Strategy | Method],
    *,
    chunk: int = 50,
    folder: Path | None = None,
    seed: int = 0,
    on_record: Callable[[Record], None] | None = None,
    repair: bool = False,
    traces: bool = False,
) -> list[Record]:
    """Decode every problem with every method; returns a record for each pair, in the order they were made.

    1. Methods take turns: each chunk of problems is decoded by all methods, each in one batch. The order of the
       methods rotates by one from chunk to chunk, so that changes in the machine's speed affect all of them alike.
    2. Only decoding is timed, not judging. Before the first chunk each method decodes a few prompts untimed.
    3. The options are the model's defaults unless a method has its own: temperature 0, no blocks, early exit.
       With early exit a text is done once its end token and everything before it are committed; the rest of the
       canvas costs no forwards. So greedy takes as many forwards as it commits positions, and ``tokens_per_forward``
       counts committed positions only. A forward is one evaluation of one candidate, however many share a batch.
    4. With a ``folder``, each record is written as it is made. Another call with the same settings resumes after the
       last complete turn; other settings are refused. An incomplete turn is decoded again from its start: what shares
       a batch can change the last digits of a confidence, and the file should be that of an uninterrupted run.
    5. A folder is used by one process at a time. A damaged line in it is refused; with ``repair`` such lines are moved
       aside, and only their problems are decoded again.

    6. With ``traces`` the folder also keeps how each problem was decoded (:mod:`soar_dlm.evals.traces`).

    ``on_record`` is called with every record, those read from the folder first.
    """
    if traces and folder is None:
        raise SettingsError("Traces are kept in a folder; name one.")
    contest = Contest.of(lm, task, problems, methods, chunk, seed, traces)
    settings = contest.settings

    with alone(folder) as store:
        note = store.traces.append if store is not None and traces else None

        def decode(turn: Turn, indices: Sequence[int]) -> Iterator[Record]:
            return contest.decode(turn.method, indices, note)

        if store is not None and repair:
            _repair(store, settings, decode)
        results = None if store is None else store.resume(settings)
        records = [] if results is None else list(results.records)
        for record in records:
            report(on_record, record)
        left = list(turns(settings))[0 if results is None else results.turns_done :]
        contest.warm_up(turn.method for turn in left)
        for turn in left:
            for record in decode(turn, range(turn.start, turn.stop)):
                if store is not None:
                    store.append(record)
                records.append(record)
                report(on_record, record)
    return records


@dataclass(frozen=True)
class Contest:
    """Methods of a model and the problems that they are compared on, in chunks of so many."""

    lm: LM
    task: Task
    problems: Sequence[Problem]
    methods: Mapping[str, Method]
    chunk: int
    seed: int
    traces: bool

    @classmethod
    def of(
        cls,
        lm: LM,
        task: Task,
        problems: Sequence[Problem],
        methods: Mapping[str, Strategy | Method],
        chunk: int,
        seed: int,
        traces: bool,
    ) -> Contest:
        checks.whole_number("chunk", chunk, 1)
        if not methods or not problems:
            raise SettingsError("Give at least one method to compare, and at least one problem.")
        bound = {name: _bound(method, lm) for name, method in methods.items()}
        return cls(lm, task, problems, bound, chunk, seed, traces)

    @property
    def settings(self) -> dict[str, Any]:
        """What the manifest says."""
        return settings_of(self.lm, self.task, self.problems, self.methods, self.chunk, self.seed, self.traces)

    def warm_up(self, names: Iterable[str]) -> None:
        """Have these methods decode a few prompts, before anything is timed."""
        for name in dict.fromkeys(names):
            for _ in _answers(self.lm, self.task, self.problems[:WARM_UP], self.methods[name], self.seed):
                pass

    def decode(
        self, name: str, indices: Sequence[int], note: Callable[[Decoded], None] | None = None
    ) -> Iterator[Record]:
        """The records of some problems in their order, each as soon as it and those before it are done.

        The clock stops while an answer is judged and its record is used. With ``note``, each trace goes there first.
        """
        method = self.methods[name]
        own = [self.problems[index] for index in indices]
        done: dict[int, Result] = {}
        due, seconds, started = 0, 0.0, time.perf_counter()
        for place, result in _answers(self.lm, self.task, own, method, self.seed, note is not None):
            seconds += time.perf_counter() - started
            done[place] = result
            while due in done:
                ready = done.pop(due)
                record = _record(self.task, own[due], ready, indices[due], name, seconds)
                known = {record.text: record.correct}
                course = course_of(self.lm, self.task, own[due], ready, known) if method.replay else None
                if note is not None:
                    note(Decoded(indices[due], name, own[due].answer, ready.trace))
                yield replace(record, course=course)
                due, seconds = due + 1, 0.0
            started = time.perf_counter()


@contextmanager
def alone(folder: Path | None) -> Iterator[ResultFolder | None]:
    """The folder of the results, made if need be and used by this process alone."""
    if folder is None:
        yield None
        return
    with files.made_folder(folder), files.locked(folder):
        files.remove_leftovers(folder)
        yield ResultFolder(folder)


def _repair(
    store: ResultFolder, settings: Mapping[str, Any], decode: Callable[[Turn, Sequence[int]], Iterator[Record]]
) -> None:
    done = store.repair(settings, decode)
    if done.moved or done.decoded:
        warnings.warn(
            f"Lines of {store.path / RESULTS} moved to {DAMAGED}: {done.moved}; problems decoded again: "
            f"{done.decoded}.",
            stacklevel=3,
        )


def _bound(method: Strategy | Method, lm: LM) -> Method:
    """The method with an open threshold set to the model's default, so that the manifest records its value."""
    whole = Method(method) if isinstance(method, Strategy) else method
    return replace(whole, strategy=whole.strategy.bound(lm.model.facts.thresholds))


def _record(task: Task, problem: Problem, result: Result, index: int, method: str, seconds: float) -> Record:
    return Record(
        index=index,
        method=method,
        kind=problem.kind,
        prompt_sha256=sha256((problem.prompt + problem.suffix).encode()).hexdigest(),
        correct=bool(task.correct(problem, result.text)),
        steps=result.steps,
        forwards=result.forwards,
        tokens_per_forward=result.tokens_per_forward,
        mean_confidence=result.mean_confidence,
        finish_reason=result.finish_reason,
        seconds=seconds,
        text=result.text,
        exact=task.exact(problem, result.text) if isinstance(task, InfillingTask) else None,
    )


def course_of(
    lm: LM, task: Task, problem: Problem, result: Result, judged: Mapping[str, bool] = MappingProxyType({})
) -> Course:
    """What the trace of a deliberation tells, each distinct text judged once; some may have been ``judged`` before."""
    verdicts = dict(judged)

    def judge(text: str) -> bool:
        if text not in verdicts:
            verdicts[text] = bool(task.correct(problem, text))
        return verdicts[text]

    stops = () if task.infills else task.stop
    return Course.of(result.trace, result.prompt_length, lambda tokens: lm.text_of(tokens, stops), judge)


def _answers(
    lm: LM, task: Task, problems: Sequence[Problem], method: Method, seed: int, trace: bool = False
) -> Iterator[tuple[int, Result]]:
    length: int | list[int] | None
    if method.length == "right":
        right = lm.tokenizer([problem.answer for problem in problems], add_special_tokens=False)["input_ids"]
        length = [max(len(ids), 1) for ids in right]
    else:
        length = method.length
    options = {**method.options, "seed": seed, "trace": trace or method.replay}
    return solved_as_completed(lm, task, problems, method.strategy, length, **options)


def report(on_record: Callable[[Record], None] | None, record: Record) -> None:
    if on_record is not None:
        on_record(record)


def settings_of(
    lm: LM,
    task: Task,
    problems: Sequence[Problem],
    methods: Mapping[str, Method],
    chunk: int,
    seed: int,
    traces: bool = False,
) -> dict[str, Any]:
    """Everything the records depend on, as plain JSON values."""
    return {
        "model": lm.name,
        "revision": lm.revision,
        "weights_sha256": weights_fingerprint(lm.name),
        "device": str(lm.model.device),
        "dtype": str(lm.model.dtype),
        "engine": repr(lm.engine_settings),
        "task": task.name,
        "canvas": task.canvas,
        "shots": task.shots,
        "stop": list(task.stop),
        "problems": len(problems),
        "problems_sha256": problems_fingerprint(problems),
        "methods": {name: _described(method) for name, method in methods.items()},
        "order": list(methods),
        **({"default_options": dict(lm.defaults.options)} if lm.defaults.options else {}),
        "chunk": chunk,
        "seed": seed,
        **({TRACED: True, "answer_mark": task.answer_mark} if traces else {}),
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def _described(method: Method) -> dict[str, Any]:
    """A method as the manifest records it."""
    strategy = method.strategy
    return {
        "label": method.label or repr(strategy),
        "strategy": repr(strategy),
        "metric": strategy.metric,
        "beam": strategy.beam,
        "threshold": strategy.threshold,
        "length": method.length,
        "options": dict(method.options),
        **({"replay": _replayed(strategy)} if method.replay else {}),
    }


def _replayed(strategy: Strategy) -> dict[str, Any]:
    """The settings of a deliberation that its records can be replayed with."""
    assert isinstance(strategy, Deliberate)
    return {"tries": strategy.tries, "drafts": list(strategy.drafts)}


def problems_fingerprint(problems: Sequence[Problem]) -> str:
    """The SHA-256 of everything about some problems that decoding or judging depends on, in their order."""
    texts = [
        [one.prompt, one.answer, one.kind, dict(one.checks), *([one.suffix] if one.suffix else [])] for one in problems
    ]
    return sha256(json.dumps(texts).encode()).hexdigest()


def weights_fingerprint(name: str) -> str | None:
    """The SHA-256 of the names and contents of a local or embedded model's weights; None for a model on the Hub."""
    folder = Path(embedded_folder(name) or name).expanduser()
    digest, found = sha256(), False
    with files.explained("read the weights in", folder):
        for file in sorted(folder.glob("*.safetensors")):
            found = True
            digest.update(file.name.encode() + b"\0")
            with file.open("rb") as weights:
                while block := weights.read(2**20):
                    digest.update(block)
    return digest.hexdigest() if found else None


@dataclass(frozen=True)
class Summary:
    """A method on all its problems.

    ``interval`` is Wilson's at 95%; ``forwards`` and ``steps`` are means per problem; ``tokens_per_forward`` is all
    committed tokens over all forwards. Compared with the baseline: ``speed_up`` is its seconds over the method's,
    ``gained`` and ``lost`` count the problems that only the method or only the baseline solved, and ``p_value`` is
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

    def as_dict(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, **asdict(self)}


def ratio(part: float, whole: float) -> float:
    """A quotient, infinite where there is nothing to divide by."""
    return part / whole if whole else inf


def summary(records: Sequence[Record], baseline: str) -> dict[str, Summary]:
    """Every method compared with ``baseline``, which comes first; all must have decoded the same problems."""
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
    return {name: against(own, reference) for name, own in by_method.items()}


def against(own: Sequence[Record], reference: Sequence[Record]) -> Summary:
    """A method compared with another on the same problems, both in their order."""
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
        speed_up=ratio(sum(record.seconds for record in reference), seconds),
        gained=test.first_only,
        lost=test.second_only,
        p_value=test.p_value,
    )
