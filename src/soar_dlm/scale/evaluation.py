"""A comparison on Ray: each worker decodes whole rounds, the results are those of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from soar_dlm.evals.comparison import Contest, alone, report
from soar_dlm.evals.manifest import Turn, turns
from soar_dlm.evals.record import Record
from soar_dlm.evals.traces import Decoded
from soar_dlm.scale.cluster import import_ray, told_plainly
from soar_dlm.scale.pool import Pool, mapped

Make = Callable[[], Contest]
"""Loads model and problems; it is called where they are to be."""


def compare_on_ray(make: Make, pool: Pool, folder: Path, on_record: Callable[[Record], None] | None = None) -> None:
    """As :func:`soar_dlm.evals.comparison.compare` with a folder, on the workers of a pool.

    1. A round, which is a chunk of problems decoded by every method in turn, is one worker's: so a method's time is
       compared with that of others on the same machine.
    2. Rounds are written in their order, so the folder's lines are those of one process, and either resumes the
       other's run. A kill costs the rounds in work, and those that wait for one before them.
    """
    with told_plainly():
        settings = _settings(make, pool)
        with alone(folder) as store:
            assert store is not None
            results = store.resume(settings)
            for record in results.records:
                report(on_record, record)
            left = list(turns(settings))[results.turns_done :]
            for decoded in _rounds(make, pool, left):
                for record, trace in decoded:
                    if trace is not None:
                        store.traces.append(trace)
                    store.append(record)
                    report(on_record, record)


def _settings(make: Make, pool: Pool) -> dict[str, Any]:
    """What the manifest says, as a worker finds it: the process that asks may have no model, and no GPU."""
    ray = import_ray()
    told = ray.remote(**pool.each)(lambda: make().settings).remote()
    found: dict[str, Any] = ray.get(told)
    return found


def _rounds(make: Make, pool: Pool, left: Sequence[Turn]) -> Iterator[list[tuple[Record, Decoded | None]]]:
    """What comes of the turns that are left, round by round, in their order."""
    rounds = [list(own) for _, own in groupby(left, key=lambda turn: turn.start)]
    tasks = [[json.dumps([asdict(turn) for turn in own])] for own in rounds]
    return mapped(tasks, partial(_Rounds, make), pool, 1, ordered=True) if tasks else iter(())


class _Rounds:
    """A contest that decodes the turns of a round."""

    def __init__(self, make: Make) -> None:
        self._contest = make()
        self._contest.warm_up(self._contest.methods)

    def __call__(self, text: str) -> list[tuple[Record, Decoded | None]]:
        return [one for turn in json.loads(text) for one in _decoded(self._contest, Turn(**turn))]


def _decoded(contest: Contest, turn: Turn) -> Iterator[tuple[Record, Decoded | None]]:
    traces: list[Decoded] = []
    note = traces.append if contest.traces else None
    for record in contest.decode(turn.method, range(turn.start, turn.stop), note):
        yield record, traces.pop() if traces else None
