"""The workers of a job on Ray: how many, and what each of them takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from soar_dlm.errors import SoarError
from soar_dlm.scale.cluster import check_fits, import_ray, resources

T = TypeVar("T")


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
    """The workers that were asked for; by default as many as the cluster has GPUs, or CPUs where it has none."""
    found = resources()
    threads = 1.0 if cpus is None else cpus
    own = float(found.get("GPU", 0.0) > 0) if gpus is None else gpus
    if workers is None:
        room = found.get("GPU", 0.0) // own if own else found.get("CPU", 0.0) // (threads or 1.0)
        workers = (max(1, int(room)),) * 2
    check_fits("workers", workers[0], {"CPU": threads, **({"GPU": own} if own else {})})
    return Pool(*workers, threads, own)


def mapped(rows: Sequence[Any], kind: Any, argument: Any, pool: Pool, blocks: int, calls: int, ordered: bool) -> Any:
    """The rows of a Ray Data pipeline whose only stage has a pool of actors.

    Each actor is a ``kind`` made with ``argument`` and called with one row at a time, ``calls`` of them at once. Ray
    starts an actor that died anew and repeats what it had in work. ``ordered`` keeps the order of ``rows``.
    """
    data = import_ray().data
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_options.preserve_order = ordered
    return (
        data.from_items(list(rows), override_num_blocks=blocks)
        .map_batches(
            kind,
            fn_constructor_args=(argument,),
            batch_size=1,
            compute=data.ActorPoolStrategy(
                min_size=pool.least, max_size=pool.most, max_concurrent_calls_per_actor=calls
            ),
            **pool.each,
        )
        .iter_rows()
    )


class Made(Generic[T]):
    """What an actor makes when it starts. Calling it gives that, or raises what went wrong.

    Ray passes on what a call raises, but tells only as text what a constructor does, so the error waits for a call.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        try:
            self._made: T | SoarError = make()
        except SoarError as error:
            self._made = error

    def __call__(self) -> T:
        if isinstance(self._made, SoarError):
            raise self._made
        return self._made
