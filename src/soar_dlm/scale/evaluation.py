"""A comparison on Ray: each worker decodes whole rounds, the results are those of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from soar_dlm.errors import SettingsError
from soar_dlm.evals.comparison import Contest, alone, report
from soar_dlm.evals.manifest import Turn
from soar_dlm.evals.record import Record
from soar_dlm.evals.results import differences
from soar_dlm.evals.traces import Decoded
from soar_dlm.scale.pool import Pool, mapped

Make = Callable[[], Contest]
"""Loads model and problems; it is called where they are to be."""

ASK = "[]"
"""The round of no turns, which a worker answers as soon as it has its model."""


def compare_on_ray(
    make: Make,
    planned: Mapping[str, Any],
    pool: Pool,
    folder: Path,
    on_record: Callable[[Record], None] | None = None,
) -> None:
    """As :func:`soar_dlm.evals.comparison.compare` with a folder, on the workers of a pool.

    1. A round, which is a chunk of problems decoded by every method in turn, is one worker's: so a method's time is
       compared with that of others on the same machine.
    2. Rounds are written in their order, so the folder's lines are those of one process, and either resumes the
       other's run. A kill costs the rounds in work, and those that wait for one before them.
    3. What the manifest says is what the first worker finds: the process that asks needs neither model nor GPU, only
       what is ``planned``: the ``order`` of the methods, the ``chunk`` and the number of ``problems``.
    4. A worker whose results depend on something else than those of the first, such as another version of PyTorch or
       another device, ends the run.
    """
    with alone(folder) as store:
        assert store is not None
        rounds = [list(own) for _, own in groupby(store.left(planned), key=lambda turn: turn.start)]
        tasks = [[json.dumps([asdict(turn) for turn in own])] for own in rounds]
        with closing(mapped([[ASK], *tasks], partial(_Rounds, make), pool, 1, ordered=True)) as answers:
            settings, _ = next(answers)
            for record in store.resume(settings).records:
                report(on_record, record)
            for found, decoded in answers:
                _check_alike(settings, found)
                for record, trace in decoded:
                    if trace is not None:
                        store.traces.append(trace)
                    store.append(record)
                    report(on_record, record)


class _Rounds:
    """A contest that decodes the turns of a round. Its answer to any, and to none, says what they depend on."""

    def __init__(self, make: Make) -> None:
        self._contest = make()
        self._settings = self._contest.settings
        self._warm = False

    def __call__(self, text: str) -> tuple[dict[str, Any], list[tuple[Record, Decoded | None]]]:
        turns = [Turn(**turn) for turn in json.loads(text)]
        if turns and not self._warm:
            self._contest.warm_up(self._contest.methods)
            self._warm = True
        return self._settings, [one for turn in turns for one in _decoded(self._contest, turn)]


def _check_alike(first: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    changed = list(differences(first, other))
    if changed:
        raise SettingsError(
            f"The workers are not alike: {'; '.join(changed)} on another. Give all machines the same versions and "
            "devices, or fewer machines to the cluster. What was finished is kept."
        )


def _decoded(contest: Contest, turn: Turn) -> Iterator[tuple[Record, Decoded | None]]:
    traces: list[Decoded] = []
    note = traces.append if contest.traces else None
    for record in contest.decode(turn.method, range(turn.start, turn.stop), note):
        yield record, traces.pop() if traces else None
