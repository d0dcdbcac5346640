"""Is a run that is killed at any moment, and started again, the same as one that is not?

    python -m benchmarks.kills                    ten kills of a run of mini-llada

Runs ``soar eval`` to its end, then once more with SIGKILL at random moments, resuming each time, and compares the two
result files except for their times. The moments are chosen so that about the given number of kills fit into one run,
some of them before its first line.
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


def seconds(command: list[str]) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mini-llada")
    parser.add_argument("--task", default="mini-gsm")
    parser.add_argument("--problems", type=int, default=128)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    command = [*COMMAND, "-m", given.model, "-t", given.task, "--limit", str(given.problems), "-o"]
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        took, idle = seconds([*command, str(whole)]), seconds([*command, str(whole)])
        latest = idle + 2.2 * max(took - idle, 0) / given.kills
        print(f"uninterrupted: {len(lines(whole, given.task))} lines in {took:.0f} s, {idle:.0f} s when all is done")
        done = 0
        while done < given.kills:
            moment = rng.uniform(0.6 * idle, latest)
            run = subprocess.Popen([*command, str(killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                run.wait(timeout=moment)
                print("finished before the kill; starting again")
                for file in (killed / given.task).iterdir():
                    file.unlink()
                continue
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
            done += 1
            there = killed / given.task / RESULTS
            size = there.stat().st_size if there.exists() else 0
            print(f"kill {done} after {moment:4.1f} s: {size} bytes of results", flush=True)
        subprocess.run([*command, str(killed)], check=True, capture_output=True)
        same = lines(whole, given.task) == lines(killed, given.task)
        print(f"after {done} kills: {len(lines(killed, given.task))} lines, {'identical' if same else 'DIFFERENT'}")
    raise SystemExit(not same)


if __name__ == "__main__":
    main()
