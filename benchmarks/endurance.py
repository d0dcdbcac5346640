"""Does ``soar generate`` lose a line to a kill, and does memory grow with the number of calls?

    python -m benchmarks.endurance kills --kills 30        kills of a batch, resumed each time
    python -m benchmarks.endurance calls --calls 10000     resident memory over generate, stream and infill

``kills`` runs a batch with bad lines and a trace to its end, then once more with SIGKILL at random moments, resuming
each time, and compares the records and traces of the two. The moments are chosen so that about the given number of
kills fit into one run, some of them before its first line. It fails if anything differs, is missing or is there twice.

``calls`` makes the calls with ``mini-llada`` and ``mini-dreamon`` on small canvases, and prints the resident memory
ten times on the way. It fails if the memory after the last call is more than ``--growth`` MB above that after the
first tenth, when everything that is loaded once has been loaded.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from soar_dlm.strict_json import read_json

BAD = [b'{"prompt": "\\ud800"}', b"[" * 5000, b'{"prompt": "\xff"}', b'{"prompt": "a", "x": ' + b"9" * 5000 + b"}"]
"""Lines that get error records."""

KINDS = ("", "-trace")
NOISE = 1e-5
PAGE_MB = 4096 / 2**20


def write_prompts(path: Path, count: int) -> None:
    prompts = [json.dumps({"prompt": f"Tom has {number} apples.", "id": number}).encode() for number in range(count)]
    for place, bad in enumerate(BAD):
        prompts.insert(place * count // len(BAD), bad)
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(prompts) + b"\r\n")


def run(command: list[str], timeout: float | None = None) -> bool:
    """Whether a command came to its end by itself; after ``timeout`` seconds it is killed."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        said = process.communicate(timeout=timeout)[1].decode()
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False
    if process.returncode != 1 or "prompts failed" not in said:
        raise SystemExit(f"exit code {process.returncode}: {said}")
    return True


def kills(wanted: int, prompts: int, model: str, seed: int) -> bool:
    """Whether a batch that was killed and resumed is the same as one that was not."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "in.jsonl"
        write_prompts(source, prompts)
        base = [sys.executable, "-m", "soar_dlm", "generate", "-m", model, "-n", "24", "--max-rows", "4"]

        def command(kind: str) -> list[str]:
            files = ["-o", str(folder / f"{kind}.jsonl"), "--trace", str(folder / f"{kind}-trace.jsonl")]
            return [*base, "-i", str(source), *files, "--resume"]

        took, idle = (seconds(command("whole")) for _ in range(2))
        latest = idle + 2.2 * max(took - idle, 0) / wanted
        print(f"uninterrupted: {prompts + len(BAD)} lines in {took:.0f} s, {idle:.0f} s when all is done", flush=True)
        done = 0
        target = folder / "killed.jsonl"
        while done < wanted:
            moment = rng.uniform(0.6 * idle, latest)
            if run(command("killed"), moment):
                print("finished before the kill; starting again")
                target.unlink()
                (folder / "killed-trace.jsonl").unlink()
                continue
            done += 1
            found = target.read_bytes().count(b"\n") if target.exists() else 0
            print(f"kill {done} after {moment:4.1f} s: {found} lines", flush=True)
        run(command("killed"))
        pairs = [(records(folder / f"whole{kind}.jsonl"), records(folder / f"killed{kind}.jsonl")) for kind in KINDS]
        same = all(close(one, other) for one, other in pairs)
        left = sorted(one.name for one in folder.iterdir() if one.suffix != ".jsonl")
        verdict = "identical" if same else "DIFFERENT"
        print(f"after {done} kills: {len(pairs[0][1])} records and traces {verdict}, left over: {left or 'nothing'}")
    return same and not left


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    run(command)
    return time.perf_counter() - started


def records(path: Path) -> list[Any]:
    """The lines of a file by index; a batch writes them in the order of completion."""
    return sorted((read_json(line) for line in path.read_bytes().splitlines()), key=lambda record: record["index"])


def close(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for what a forward adds up in another order with other rows beside it."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= NOISE
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(close(value, other[name]) for name, value in one.items())
    return bool(one == other)


def calls(wanted: int, growth: float) -> bool:
    """Whether memory stays flat over many calls."""
    from soar_dlm.lm import load

    llada, dreamon = load("mini-llada", device="cpu"), load("mini-dreamon", device="cpu")
    ways: list[Callable[[int], object]] = [
        lambda number: llada.generate(f"Tom has {number} apples.", max_new_tokens=6),
        lambda number: list(llada.stream(f"{number} + 1 =", "pbs", max_new_tokens=4)),
        lambda number: list(islice(llada.stream(f"{number} + 2 =", max_new_tokens=4), 1)),  # one that is given up
        lambda number: dreamon.infill(f"def f{number}(x):\n", "    return y\n", length=4, max_length=8),
        lambda number: list(dreamon.stream_infill(f"x = {{blank:3}}\ny = {number}\n", max_length=6)),
        lambda number: llada.generate([f"{number}", "a"], "deliberate", max_new_tokens=4, trace=False),
    ]
    used: list[float] = []
    started = time.perf_counter()
    for number in range(wanted):
        ways[number % len(ways)](number)
        if (number + 1) % max(wanted // 10, 1) == 0:
            gc.collect()
            used.append(resident_mb())
            print(f"{number + 1:6} calls, {time.perf_counter() - started:5.0f} s: {used[-1]:7.1f} MB", flush=True)
    grown = used[-1] - used[0]
    print(f"after {wanted} calls: {grown:+.1f} MB since the first tenth, {'flat' if grown <= growth else 'GROWING'}")
    return grown <= growth


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    killing = kinds.add_parser("kills")
    killing.add_argument("--kills", type=int, default=30)
    killing.add_argument("--prompts", type=int, default=600)
    killing.add_argument("--model", default="mini-llada")
    killing.add_argument("--seed", type=int, default=0)
    calling = kinds.add_parser("calls")
    calling.add_argument("--calls", type=int, default=10_000)
    calling.add_argument("--growth", type=float, default=5.0, help="MB that memory may grow after the first tenth")
    given = parser.parse_args()
    if given.kind == "kills":
        passed = kills(given.kills, given.prompts, given.model, given.seed)
    else:
        passed = calls(given.calls, given.growth)
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()
