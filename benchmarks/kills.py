"""Is a run that is killed at any moment, and started again, the same as one that is not?

    python -m benchmarks.kills                    ten kills of a run of mini-llada

Runs ``soar eval`` to its end, then once more with SIGKILL at random moments between the first second and the end, going
on each time; then compares the two result files, times aside.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from soar_dlm.evals.results import RESULTS

COMMAND = [sys.executable, "-m", "soar_dlm.cli.main", "eval", "-s", "greedy,soar", "--chunk", "8"]


def lines(folder: Path, task: str) -> list[dict[str, Any]]:
    text = (folder / task / RESULTS).read_text()
    return [{**json.loads(line), "seconds": None} for line in text.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada")
    parser.add_argument("--task", default="mini-gsm")
    parser.add_argument("--problems", type=int, default=64)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    command = [*COMMAND, "-m", asked.model, "-t", asked.task, "--limit", str(asked.problems), "-o"]
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        started = time.perf_counter()
        subprocess.run([*command, str(whole)], check=True, capture_output=True)
        took = time.perf_counter() - started
        print(f"uninterrupted: {len(lines(whole, asked.task))} lines in {took:.0f} s")
        done = 0
        while done < asked.kills:
            moment = rng.uniform(1, took)
            run = subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                run.wait(timeout=moment)
                print("finished before its moment; starting anew")
                for file in (killed / asked.task).iterdir():
                    file.unlink()
                continue
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
            done += 1
            there = killed / asked.task / RESULTS
            size = there.stat().st_size if there.exists() else 0
            print(f"kill {done} after {moment:4.1f} s: {size} bytes of results", flush=True)
        subprocess.run([*command, str(killed)], check=True, capture_output=True)
        same = lines(whole, asked.task) == lines(killed, asked.task)
        print(f"after {done} kills: {len(lines(killed, asked.task))} lines, {'identical' if same else 'DIFFERENT'}")
    raise SystemExit(not same)


if __name__ == "__main__":
    main()
