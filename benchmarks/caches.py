"""What caches cost in accuracy: the same problems decoded without a cache, with "prefix" and with "dual".

    python -m benchmarks.caches                                 everything, about three hours on a core
    python -m benchmarks.caches --tasks mini-gsm --blocks 8     a part
    python -m benchmarks.caches --show                          only report, from the results that are there

All methods of a part decode the same test problems in turns (soar_dlm.evals.comparison.compare); the thresholds are
those of table1, chosen on validation problems without a cache. Interrupt it whenever you like; the same command
resumes. The figures of a finished part are kept in docs/results/caches.json: a report does not need the folders.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.journal import BUILD
from benchmarks.pages import RESULTS, table
from soar_dlm.cli.lists import listed
from soar_dlm.cli.progress import bar
from soar_dlm.errors import SoarError
from soar_dlm.evals.comparison import Method, compare, summary
from soar_dlm.evals.reports import made_with, rate, significance
from soar_dlm.evals.results import ResultFolder, Results
from soar_dlm.evals.tables import sign
from soar_dlm.lm import load
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.catalogue import make_task

IN_BLOCKS: dict[str, Mapping[str, Any]] = {"none": {}, "prefix": {"cache": "prefix"}, "dual": {"cache": "dual"}}
WHOLE: dict[str, Mapping[str, Any]] = {
    "none": {},
    "prompt": {"cache": "prefix"},
    "prompt, every 8 steps": {"cache": "prefix", "refresh_every": 8},
}
"""Where the whole canvas is one block, both caches store the prompt and nothing else."""
SETTINGS = {"8": IN_BLOCKS, "16": IN_BLOCKS, "whole canvas": WHOLE}
"""Blocks, and the caches that are compared in them."""
THRESHOLDS = {"mini-gsm": (0.999, 0.98), "mini-code": (0.995, 0.98)}
"""Of Adaptive Parallel and of SOAR, as table1 chose them."""
PAGE, KEPT = RESULTS / "caches.md", RESULTS / "caches.json"


def strategies(task: str) -> dict[str, Strategy]:
    adaptive, soar = THRESHOLDS[task]
    return {
        "Greedy": Greedy(),
        "Adaptive Parallel": AdaptiveParallel(adaptive),
        "SOAR, K=2": Soar(beam=2, threshold=soar),
    }


def named(strategy: str, block: str, cache: str) -> str:
    return f"{strategy}, block {block}, cache {cache}"


def methods(task: str, block: str) -> dict[str, Method]:
    length = int(block) if block.isdigit() else None
    return {
        named(name, block, cache): Method(strategy, options={**options, "block_length": length})
        for name, strategy in strategies(task).items()
        for cache, options in SETTINGS[block].items()
    }


def figures(run: Results, block: str) -> dict[str, Any]:
    """Each method against the same strategy without a cache."""
    records = list(run.whole_chunks())
    rows = []
    for name in strategies(run.settings["task"]):
        mine = {named(name, block, cache): cache for cache in SETTINGS[block]}
        found = summary([one for one in records if one.method in mine], named(name, block, "none"))
        for method, cache in mine.items():
            one = found[method]
            test = "" if cache == "none" else significance(one)
            rows.append([name, cache, rate(one), f"{one.forwards:.1f}", f"{one.speed_up:.2f}", test, sign(one)])
    return {"made_with": made_with(run), "problems": run.settings["problems"], "rows": rows}


def page(kept: Mapping[str, Any]) -> str:
    lines = [
        "# What caches cost in accuracy",
        "",
        "`python -m benchmarks.caches`: the same test problems with and without a cache, in turns. Accuracy with",
        "its 95% interval, forwards per problem, time against that of the same strategy in the same blocks without a",
        "cache, and McNemar's exact test against the same, with the problems gained and lost. Where the whole canvas",
        "is one block, both caches store the prompt alone.",
    ]
    head = ["strategy", "cache", "accuracy", "forwards", "times as fast", "p (gained, lost)"]
    for task, block in ((task, block) for task in THRESHOLDS for block in SETTINGS):
        if found := kept.get(f"{task} {block}"):
            within = f"blocks of {block}" if block.isdigit() else block
            about = f"{found['made_with']} {found['problems']:,} problems."
            lines += ["", f"## {task}, {within}", "", about, "", table(head, [row[:-1] for row in found["rows"]])]
    return "\n".join(lines) + "\n"


def compact() -> str:
    """Accuracy alone, a line for each strategy; an arrow marks what differs from no cache with p < 0.05."""
    kept, rows = _kept(), []
    for task, block in ((task, block) for task in THRESHOLDS for block in SETTINGS if SETTINGS[block] is IN_BLOCKS):
        for name in strategies(task):
            own = [row for row in kept[f"{task} {block}"]["rows"] if row[0] == name]
            cells = [f"{right.partition(' ')[0]}{arrow}" for _, _, right, *_, arrow in own]
            rows.append([f"{task}, blocks of {block}", name, *cells])
    return table(["", "", *IN_BLOCKS], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(THRESHOLDS))
    parser.add_argument("--blocks", default=",".join(SETTINGS))
    parser.add_argument("--limit", type=int, default=1000, help="test problems of each task")
    parser.add_argument("--chunk", type=int, default=50, help="problems that a method decodes in one turn")
    parser.add_argument("--output", type=Path, default=BUILD / "caches", help="where the records go")
    parser.add_argument("--show", action="store_true", help="only report, from the results that are there")
    given = parser.parse_args()
    for task, block in ((task, block) for task in listed(given.tasks) for block in listed(given.blocks)):
        folder = given.output / task / block.replace(" ", "-")
        try:
            if not given.show:
                decode(task, block, given.limit, given.chunk, folder)
            if folder.exists():
                keep(task, block, figures(ResultFolder(folder).read(), block))
        except SoarError as error:
            raise SystemExit(f"caches: {error}") from error
    made = page(_kept())
    PAGE.write_text(made, encoding="utf-8")
    print(made)


def decode(name: str, block: str, limit: int, chunk: int, folder: Path) -> None:
    """Decode what the folder does not have yet."""
    task = make_task(name)
    problems, compared = task.distinct("test", limit), methods(name, block)
    with bar(f"{name}, {block}", limit * len(compared), Console(stderr=True, highlight=False)) as count:
        compare(load("mini-llada"), task, problems, compared, chunk=chunk, folder=folder, on_record=count)


def keep(task: str, block: str, found: Mapping[str, Any]) -> None:
    KEPT.write_text(json.dumps({**_kept(), f"{task} {block}": found}, indent=1) + "\n", encoding="utf-8")


def _kept() -> dict[str, Any]:
    return dict(json.loads(KEPT.read_text(encoding="utf-8"))) if KEPT.exists() else {}


if __name__ == "__main__":
    main()
