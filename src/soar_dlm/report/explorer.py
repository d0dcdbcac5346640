"""What the explorer of a report shows: the problems of each run, and how each method decoded them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from soar_dlm.engine.packing import MODES
from soar_dlm.engine.scene import Scene
from soar_dlm.evals.manifest import GREEDY, RecordedMethod
from soar_dlm.evals.record import Record
from soar_dlm.evals.runs import Run
from soar_dlm.report.chunks import Chunks
from soar_dlm.report.columns import SCALE, columns

CHUNK = 8
"""How many problems share a chunk: more take less space, fewer open faster."""
SOAR = "SOAR"


def explorer(runs: Sequence[Run], chunks: Chunks) -> dict[str, Any]:
    """What the page needs at once. The rest goes into ``chunks``, which it names by number."""
    pieces = {model: chunks.add(_pieces([run for run in runs if run.model == model])) for model in _models(runs)}
    groups = [_group(run, pieces[run.model], chunks) for run in runs if run.problems]
    return {"modes": MODES, "scale": SCALE, "perChunk": CHUNK, "groups": groups}


def _models(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.model for run in runs))


def _pieces(runs: Sequence[Run]) -> dict[int, str]:
    """The text of every token in the traces of one model."""
    found: dict[int, str] = {}
    for run in runs:
        for decoded in run.traces.values():
            found |= _scene(decoded.trace.scene).pieces
    return dict(sorted(found.items()))


def _group(run: Run, pieces: int, chunks: Chunks) -> dict[str, Any]:
    problems = next(iter(run.records.values()))
    kinds = sorted({record.kind for record in problems})
    return {
        "name": run.name,
        "methods": list(run.methods),
        "pair": _default_pair(list(run.methods.values())),
        "indices": [record.index for record in problems],
        "kinds": kinds,
        "kind": [kinds.index(record.kind) for record in problems],
        "right": ["".join(str(int(one.correct)) for one in own) for own in run.records.values()],
        "texts": chunks.add(_texts(run)),
        "pieces": pieces,
        "traced": run.traced,
        **(_traces(run, chunks) if run.traced else {}),
    }


def _default_pair(methods: Sequence[RecordedMethod]) -> tuple[int, int]:
    """The places of Greedy and SOAR by the same metric and length where there are; else of the first two methods."""
    labels = [method.label for method in methods]
    first = labels.index(GREEDY) if GREEDY in labels else 0
    alike = [(one.metric, one.length) == (methods[first].metric, methods[first].length) for one in methods]
    others = [place for place in range(len(methods)) if place != first] or [first]
    return first, max(others, key=lambda place: (alike[place] and labels[place] == SOAR, labels[place] == SOAR, -place))


def _texts(run: Run) -> dict[str, Any]:
    """What the list of problems is searched in, and the figures of each answer; columns by method, then by problem."""
    records = list(run.records.values())
    asked = [run.traces.get((record.method, record.index)) for record in records[0]]
    return {
        "around": [None if one is None else _scene(one.trace.scene).around for one in asked],
        "answers": [None if one is None else one.answer for one in asked],
        "texts": [[one.text for one in own] for own in records],
        "forwards": [[one.forwards for one in own] for own in records],
        "finish": [[one.finish_reason for one in own] for own in records],
    }


def _traces(run: Run, chunks: Chunks) -> dict[str, Any]:
    """The chunks with the traces of all methods on some problems, and the readings that their scenes share."""
    readings: dict[tuple[Any, ...], int] = {}
    numbers = []
    for start in range(0, run.problems, CHUNK):
        problems = zip(*(own[start : start + CHUNK] for own in run.records.values()), strict=True)
        numbers.append(chunks.add([_problem(run, one, readings) for one in problems]))
    return {"chunks": numbers, "readings": list(readings)}


def _problem(run: Run, records: Sequence[Record], readings: dict[tuple[Any, ...], int]) -> list[Any]:
    """For each method: its reading, blanks and columns, and the text around the blanks if the first has another."""
    found = []
    for record in records:
        trace = run.traces[record.method, record.index].trace
        scene = _scene(trace.scene)
        first = _scene(run.traces[records[0].method, record.index].trace.scene)
        reading = readings.setdefault((scene.ends, scene.filler, scene.low, scene.high), len(readings))
        around = [scene.around] if scene.around != first.around else []
        found.append([reading, scene.blanks, columns(trace), *around])
    return found


def _scene(scene: Scene | None) -> Scene:
    assert scene is not None, "a run refuses traces without one"
    return scene
