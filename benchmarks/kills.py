"""Is a run that is killed at any moment, and started again, the same as one that is not?

    python -m benchmarks.kills                              100 kills of soar eval, 30 of soar train
    python -m benchmarks.kills --eval 20 --train 6          fewer

Runs each command to its end, then once more with SIGKILL at random moments, resuming each time, and compares what the
two have written: result lines except for their times, or weights and log. The moments are chosen so that about the
given number of kills fit into one run, some of them before its first line. At last, two evaluations of one folder are
started together: the file must be that of a single one.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soar_dlm.evals.results import RESULTS

SOAR = [sys.executable, "-m", "soar_dlm.cli.main"]
TASK = "mini-gsm"
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


@dataclass(frozen=True)
class Trial:
    """A ``command`` that writes to the folder named after it; ``content`` is what a run must have written there.

    With the options ``idle`` it only does what comes before the work.
    """

    name: str
    command: list[str]
    content: Callable[[Path], Any]
    idle: tuple[str, ...] = ()


def evaluation(problems: int) -> Trial:
    def lines(folder: Path) -> list[Any]:
        text = (folder / TASK / RESULTS).read_text()
        return [{**json.loads(line), "seconds": None} for line in text.splitlines()]

    command = ["eval", "-s", "greedy,soar", "--chunk", "8", "-m", "mini-llada", "-t", TASK, "--limit", str(problems)]
    return Trial("eval", [*SOAR, *command, "-o"], lines)


def training(steps: int, recipe: Path) -> Trial:
    recipe.write_text(RECIPE.format(steps=steps))

    def trained(folder: Path) -> tuple[bytes, str]:
        return (folder / "model.safetensors").read_bytes(), (folder / "training" / "log.jsonl").read_text()

    return Trial("train", [*SOAR, "train", str(recipe), "-o"], trained, ("--dry-run",))


def seconds(command: list[str]) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def leftovers(folder: Path) -> list[str]:
    return [file.name for file in folder.rglob(".*")]


def killed_again_and_again(trial: Trial, kills: int, folder: Path, rng: random.Random) -> bool:
    """Whether a run that is killed this often writes what an uninterrupted one does, and leaves nothing else."""
    whole, killed = folder / "whole", folder / "killed"
    took, idle = seconds([*trial.command, str(whole)]), seconds([*trial.command, str(whole), *trial.idle])
    latest = idle + 2.2 * max(took - idle, 0) / kills
    print(f"{trial.name}, uninterrupted: {took:.0f} s, {idle:.0f} s when all is done", flush=True)
    done, finished = 0, 0
    same = True
    while done < kills:
        moment = rng.uniform(0.6 * idle, latest)
        run = subprocess.Popen([*trial.command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            run.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
            done += 1
            sizes = sum(file.stat().st_size for file in killed.rglob("*") if file.is_file())
            print(f"{trial.name}, kill {done} after {moment:4.1f} s: {sizes} bytes", flush=True)
            continue
        finished += 1  # before the kill: compared like the last one, and started anew
        same = same and trial.content(killed) == trial.content(whole)
        killed = folder / f"killed {finished}"
    last = subprocess.run([*trial.command, str(killed)], check=False, capture_output=True, text=True)
    if last.returncode and "nothing is left to train" not in last.stderr:
        print(last.stderr)
        return False
    same = same and trial.content(killed) == trial.content(whole) and not leftovers(killed)
    print(f"{trial.name}, {done} kills in {finished + 1} runs: {'identical' if same else 'DIFFERENT'}", flush=True)
    return same


def together(trial: Trial, folder: Path) -> bool:
    """Whether two runs that start at the same time on one folder leave what one would."""
    command = [*trial.command, str(folder / "both")]
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [run.communicate()[1] for run in runs]
    codes = sorted(run.returncode for run in runs)
    refused = [text.strip().splitlines()[-1] for text, run in zip(told, runs, strict=True) if run.returncode]
    same = codes[0] == 0 and trial.content(folder / "both") == trial.content(folder / "whole")
    print(
        f"{trial.name}, two at once: exit codes {codes}, {'identical' if same else 'DIFFERENT'}; {refused}", flush=True
    )
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=int, default=100, help="kills of soar eval")
    parser.add_argument("--train", type=int, default=30, help="kills of soar train")
    parser.add_argument("--problems", type=int, default=128, help="problems of the evaluation")
    parser.add_argument("--steps", type=int, default=400, help="steps of the training")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trials = [(evaluation(given.problems), given.eval), (training(given.steps, folder / "r.toml"), given.train)]
        verdicts = []
        for trial, kills in trials:
            if kills:
                verdicts.append(killed_again_and_again(trial, kills, folder / trial.name, rng))
                verdicts.append(together(trial, folder / trial.name))
    raise SystemExit(not all(verdicts))


if __name__ == "__main__":
    main()
