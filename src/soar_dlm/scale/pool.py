"""The workers of a job on Ray: how many, what each of them takes, and what they do."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from soar_dlm.errors import SoarError, UnexpectedError, told
from soar_dlm.scale.cluster import check_fits, import_ray, resources, room_for, told_plainly

T = TypeVar("T")

DEATHS = 20
"""How often a worker may die, and a task be in work when one does, before the run ends. By then it is not chance: a
model that fits no memory, and a prompt that kills whoever decodes it, must not be tried for ever."""


@dataclass(frozen=True)
class Pool:
    """How many workers there are, at least and at most, and what each of them takes."""

    least: int
    most: int
    cpus: float
    gpus: float

    @property
    def each(self) -> dict[str, float]:
        """What a worker takes, as Ray's decorators name it."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus}


def pool_of(workers: tuple[int, int] | None, cpus: float | None, gpus: float | None) -> Pool:
    """The workers that were asked for; by default one for each GPU, or for each CPU where there is no GPU."""
    threads = 1.0 if cpus is None else cpus
    own = float(resources().get("GPU", 0.0) > 0) if gpus is None else gpus
    each = {"CPU": threads, **({"GPU": own} if own else {})}
    if workers is None:
        workers = (max(1, room_for(each)),) * 2
    check_fits("workers", workers[0], each)
    return Pool(*workers, threads, own)


def mapped(
    tasks: Sequence[Sequence[str]], make: Callable[[], Callable[[str], T]], pool: Pool, calls: int, ordered: bool
) -> Generator[T, None, None]:
    """What workers say of the items of all tasks, each as soon as it is known.

    1. A worker is an actor of a Ray Data pipeline. It calls ``make`` once and what that returns for each item of its
       tasks: it has ``calls`` tasks in work, each in its own thread, and goes through the items of a task in order.
    2. ``ordered`` keeps the order of the items; else what is known first comes first.
    3. An error in a worker, while it starts or later, ends the run and is raised here. It travels as a result: of what
       a constructor raises Ray passes on the text alone, and of what a call raises sometimes nothing.
    4. Ray starts a worker that died again, and repeats the tasks that it had in work, so an item may be worked on
       twice. After ``DEATHS`` the run ends.
    """
    with told_plainly():
        results = _pipeline(tasks, make, pool, calls, ordered)
        with closing(iter(results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0))) as tables:
            for table in tables:
                for packed in table["told"].to_pylist():
                    yield _opened(packed)


def _pipeline(tasks: Sequence[Sequence[str]], make: Callable[[], Any], pool: Pool, calls: int, ordered: bool) -> Any:
    data = import_ray().data
    _silence()
    context = data.DataContext.get_current().copy()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = ordered
    context.target_max_block_size = 1  # a result does not wait for those of the items after it
    rows = [{"task": json.dumps(list(task))} for task in tasks]
    threads = data.ActorPoolStrategy(
        min_size=pool.least,
        max_size=pool.most,
        max_concurrent_calls_per_actor=calls,
        enable_true_multi_threading=True,
    )
    with data.DataContext.current(context), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how deaths are counted, until Ray 2.64
        return data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _Actor,
            fn_constructor_args=(make,),
            batch_size=1,
            compute=threads,
            max_restarts=DEATHS,
            max_task_retries=DEATHS,
            **pool.each,
        )


def _silence() -> None:
    """What Ray Data logs goes to its file alone: errors are told once, in our words."""
    logger = logging.getLogger("ray.data")
    logger.handlers = [one for one in logger.handlers if type(one).__name__ != "PlainRayHandler"]


class _Actor:
    """A worker as Ray Data wants it. It never raises: errors are results, too."""

    def __init__(self, make: Callable[[], Callable[[str], Any]]) -> None:
        self._broken: bytes | None = None
        try:
            self._work = make()
        except Exception as error:
            self._broken = _packed_error(error)

    def __call__(self, batch: Mapping[str, Any]) -> Iterator[dict[str, list[bytes]]]:
        (task,) = batch["task"]
        for item in json.loads(str(task)):
            done, packed = self._done(item)
            yield {"told": [packed]}
            if not done:
                return

    def _done(self, item: str) -> tuple[bool, bytes]:
        if self._broken is not None:
            return False, self._broken
        try:
            return True, pickle.dumps((self._work(item), None, ""))
        except Exception as error:
            return False, _packed_error(error)


def _packed_error(error: Exception) -> bytes:
    """An error, with where it was raised; one that is not ours as an :class:`UnexpectedError`."""
    where = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    own = error if isinstance(error, SoarError) else _unexpected(error)
    try:
        packed = pickle.dumps((None, own, where))
        pickle.loads(packed)
    except Exception:  # one that cannot be sent keeps its text
        packed = pickle.dumps((None, SoarError(str(own)), where))
    return packed


def _unexpected(error: Exception) -> UnexpectedError:
    return UnexpectedError(
        f"A worker failed in a way that no check foresaw ({type(error).__name__}: {told(error)}). Set SOAR_TRACEBACK=1 "
        "to see where, and please report it."
    )


class _RaisedElsewhere(Exception):
    """The traceback of a worker, as the cause of the error that is raised here."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


def _opened(packed: bytes) -> Any:
    value, error, where = pickle.loads(packed)
    if error is not None:
        raise error from _RaisedElsewhere(where)
    return value
