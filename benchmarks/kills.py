"""Is a run that is killed at any moment, and started again, the same as one that is not? Is a damaged file mended?

    python -m benchmarks.kills                              100 kills of soar eval, 30 of soar train, damaged lines
    python -m benchmarks.kills --eval 20 --train 6          fewer

Runs each command to its end, then once more with SIGKILL at random moments, resuming each time, and compares what the
two have written: result lines except for their times, or weights and log. Then two runs are started together on one
folder: the file must be that of a single one. At last, a file of results gets every kind of damage in every line: each
must be refused by its number, and ``--repair`` must restore the file.

After an interruption the same command continues with the next part. The exit code is 1 if anything differs. A run with
at least the usual numbers also writes its table to ``docs/results/kills.md``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.journal import BUILD, Journal
from benchmarks.killing import HEAD, Trial, close, killed_again_and_again, row, together
from benchmarks.pages import RESULTS as PAGES
from benchmarks.pages import conditions, table, write
from soar_dlm.errors import InputFileError
from soar_dlm.evals.results import RESULTS

SOAR = (sys.executable, "-m", "soar_dlm")
TASK = "mini-gsm"
LOG = "training/log.jsonl"
KILLS = {"eval": 100, "train": 30}
ROUND = 50
"""The most kills of a part, which starts from nothing after an interruption."""
RECIPE = """\
name = "kills"
[model]
width = 48
layers = 2
heads = 2
context = 160
[tokenizer]
vocabulary = 400
texts = 500
[data.tasks]
mini-sums = 1
[training]
steps = {steps}
batch_tokens = 2048
precision = "float32"
[report]
log = 5
validate = 40
problems = 4
save = 10
"""
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half of it": lambda line: line[: len(line) // 2] + b"\n",
    "not UTF-8": lambda line: line.replace(b'"text": "', b'"text": "\xff'),
    "NUL bytes": lambda line: bytes(len(line) - 1) + b"\n",
    "a wrong type": lambda line: line.replace(b'"correct": ', b'"correct": "yes", "was": '),
    "an unknown method": lambda line: line.replace(b'"method": "', b'"method": "no '),
    "nothing": lambda line: b"\n",
    "too deep": lambda line: b"[" * 100_000 + b"\n",
    "a number too long": lambda line: b"9" * 5000 + b"\n",
    "no end": lambda line: line[:-1],
}
"""What can become of a line that stays one line."""
MORE_DAMAGES: dict[str, Callable[[bytes], bytes]] = {"twice": lambda line: line * 2, "gone": lambda line: b""}
TORN = ("no end", "gone")
"""What happens to the last line of a run that is killed; there it is not damage."""


def evaluation(problems: int) -> Trial:
    def command(folder: Path) -> list[str]:
        measured = ("-s", "greedy,soar", "--chunk", "4", "-m", "mini-llada", "-t", TASK, "--limit", str(problems))
        return [*SOAR, "eval", *measured, "-o", str(folder)]

    return Trial("eval", command, lambda folder: timeless(folder / TASK), f"{TASK}/{RESULTS}")


def timeless(folder: Path) -> list[Any]:
    """The lines of a folder of results, without their times."""
    return [{**json.loads(line), "seconds": None} for line in (folder / RESULTS).read_text().splitlines()]


def training(steps: int, recipe: Path) -> Trial:
    recipe.write_text(RECIPE.format(steps=steps))

    def trained(folder: Path) -> tuple[bytes, str]:
        return (folder / "model.safetensors").read_bytes(), (folder / LOG).read_text()

    return Trial(
        "train",
        lambda folder: [*SOAR, "train", str(recipe), "-o", str(folder)],
        trained,
        LOG,
        idle=("--dry-run",),
        done=lambda code, said: code == 0 or "nothing is left to train" in said,
    )


def damaged_lines(folder: Path, problems: int) -> dict[str, Any]:
    """A row of the table: whether every damage to every line is refused by its number, and mended by a repair."""
    from soar_dlm import load
    from soar_dlm.evals.comparison import Method, compare
    from soar_dlm.search.catalogue import make_strategy
    from soar_dlm.tasks.catalogue import make_task

    lm, task = load("random-llada", device="cpu"), make_task("mini-sums")
    methods = {name: Method(make_strategy(name), 4) for name in ("greedy", "soar")}

    def again(place: Path, **options: Any) -> None:
        compare(lm, task, task.distinct("test", problems), methods, chunk=3, folder=place, **options)

    whole, copy = folder / "whole", folder / "copy"
    again(whole)
    lines = (whole / RESULTS).read_bytes().splitlines(keepends=True)
    damages, last, wrong = DAMAGES | MORE_DAMAGES, len(lines) - 1, []
    tried = [(place, kind) for place in range(len(lines)) for kind in damages if place < last or kind not in TORN]
    for place, kind in tried:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        (copy / RESULTS).write_bytes(b"".join([*lines[:place], damages[kind](lines[place]), *lines[place + 1 :]]))
        found = place + 1 + (kind == "twice")
        try:
            again(copy)
            refused = False
        except InputFileError as error:
            refused = f"line {found}, is damaged" in str(error)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again(copy, repair=True)
        if not refused or not close(timeless(copy), timeless(whole)):
            wrong.append(f"line {place + 1}: {kind}")
    print(f"damaged lines: {len(tried)} tried, wrong: {wrong or 'none'}", flush=True)
    result = "DIFFERENT" if wrong else "refused by number, then repaired"
    return row(f"a damaged line, each of {len(lines)}", len(tried), "", len(tried), result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=int, default=KILLS["eval"], help="kills of soar eval")
    parser.add_argument("--train", type=int, default=KILLS["train"], help="kills of soar train")
    parser.add_argument("--lines", type=int, default=8, help="problems of the file whose lines are damaged; 0: none")
    parser.add_argument("--problems", type=int, default=64, help="problems of the evaluation")
    parser.add_argument("--steps", type=int, default=400, help="steps of the training")
    parser.add_argument("--fresh", action="store_true", help="start anew after an interruption")
    given = parser.parse_args()
    journal = Journal(BUILD / "kills.jsonl", given.fresh)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], dict[str, Any]]] = {}
        trials = (evaluation(given.problems), given.eval), (training(given.steps, folder / "recipe.toml"), given.train)
        for trial, kills in trials:
            place = folder / trial.name
            for seed, first in enumerate(range(0, kills, ROUND)):
                count = min(ROUND, kills - first)
                parts[f"{trial.name}, {count} from {first}"] = partial(
                    killed_again_and_again, trial, count, place, seed
                )
            if kills:
                parts[f"{trial.name}, twice"] = partial(together, trial, place)
        if given.lines:
            parts[f"lines of {given.lines} problems"] = partial(damaged_lines, folder / "lines", given.lines)
        for part, make in parts.items():
            if part not in journal.known:
                journal.put(part, make())
    rows = [journal.known[part] for part in parts]
    journal.remove()
    found = table(HEAD, [list(one.values()) for one in rows])
    print(found)
    if given.eval >= KILLS["eval"] and given.train >= KILLS["train"] and given.lines:
        about = f"`python -m benchmarks.kills`. {conditions()}"
        write(PAGES / "kills.md", "Runs that are killed", "soar eval and soar train", f"{about}\n\n{found}")
    raise SystemExit(any(one["result"] == "DIFFERENT" for one in rows))


if __name__ == "__main__":
    main()
