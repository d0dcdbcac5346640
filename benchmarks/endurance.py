"""Does ``soar generate`` lose a line to a kill, and does memory grow with the number of calls?

    python -m benchmarks.endurance kills --kills 30        kills of a batch, resumed each time
    python -m benchmarks.endurance calls --calls 10000     resident memory over generate, stream and infill

``kills`` runs a batch with bad lines and a trace to its end, then once more with SIGKILL at random moments, resuming
each time, and compares the records and traces of the two. It fails if anything differs, is missing or is there twice.

``calls`` makes the calls with ``mini-llada`` and ``mini-dreamon`` on small canvases, and prints the resident memory
ten times on the way. It fails if the memory after the last call is more than ``--growth`` MB above that after the
first tenth, when everything that is loaded once has been loaded.

Each prints a table and, with at least the usual numbers, writes it to ``docs/results/endurance.md``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.killing import Trial, close, killed_again_and_again
from benchmarks.pages import RESULTS, conditions, table, write
from soar_dlm.strict_json import read_json

BAD = [b'{"prompt": "\\ud800"}', b"[" * 5000, b'{"prompt": "\xff"}', b'{"prompt": "a", "x": ' + b"9" * 5000 + b"}"]
"""Lines that get error records."""

OUTPUTS = ("out.jsonl", "trace.jsonl")
KILLS, CALLS = 30, 10_000
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


def write_prompts(path: Path, count: int) -> None:
    prompts = [json.dumps({"prompt": f"Tom has {number} apples.", "id": number}).encode() for number in range(count)]
    for place, bad in enumerate(BAD):
        prompts.insert(place * count // len(BAD), bad)
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(prompts) + b"\r\n")


def batch(prompts: Path, model: str) -> Trial:
    """A batch with a trace, which ends with exit code 1 because some of its lines are bad."""

    def command(folder: Path) -> list[str]:
        files = ("-o", str(folder / OUTPUTS[0]), "--trace", str(folder / OUTPUTS[1]), "--resume")
        decoding = ("-m", model, "-n", "24", "--max-rows", "4")
        return [sys.executable, "-m", "soar_dlm", "generate", *decoding, "-i", str(prompts), *files]

    return Trial(
        "generate",
        command,
        lambda folder: [records(folder / name) for name in OUTPUTS],
        OUTPUTS[0],
        done=lambda code, said: code == 1 and "prompts failed" in said,
        same=close,
    )


def records(path: Path) -> list[Any]:
    """The lines of a file by index; a batch writes them in the order of completion."""
    return sorted((read_json(line) for line in path.read_bytes().splitlines()), key=lambda record: record["index"])


def kills(wanted: int, prompts: int, model: str, seed: int) -> tuple[str, bool]:
    """The table, and whether a batch that was killed and resumed is the same as one that was not."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "in.jsonl"
        write_prompts(source, prompts)
        row = killed_again_and_again(batch(source, model), wanted, Path(name), seed)
    return table(list(row), [list(row.values())]), row["result"] == "identical"


def calls(wanted: int, growth: float) -> tuple[str, bool]:
    """The table, and whether memory stays flat over many calls."""
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
    rows: list[tuple[int, float, float]] = []
    started = time.perf_counter()
    for number in range(1, wanted + 1):
        ways[number % len(ways)](number)
        if number % max(wanted // 10, 1) == 0:
            gc.collect()
            rows.append((number, time.perf_counter() - started, resident_mb()))
            print("{} calls, {:.0f} s: {:.1f} MB".format(*rows[-1]), flush=True)
    grown = rows[-1][2] - rows[0][2]
    found = table(
        ("calls", "seconds", "MB"), [(f"{done:,}", f"{took:.0f}", f"{used:.1f}") for done, took, used in rows]
    )
    return f"{found}\n\nSince the first tenth: {grown:+.1f} MB.", grown <= growth


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    killing = kinds.add_parser("kills")
    killing.add_argument("--kills", type=int, default=KILLS)
    killing.add_argument("--prompts", type=int, default=600)
    killing.add_argument("--model", default="mini-llada")
    killing.add_argument("--seed", type=int, default=0)
    calling = kinds.add_parser("calls")
    calling.add_argument("--calls", type=int, default=CALLS)
    calling.add_argument("--growth", type=float, default=5.0, help="MB that memory may grow after the first tenth")
    given = parser.parse_args()
    if given.kind == "kills":
        found, passed = kills(given.kills, given.prompts, given.model, given.seed)
        section, usual = "soar generate, killed and resumed", given.kills >= KILLS
    else:
        found, passed = calls(given.calls, given.growth)
        section, usual = "Memory over many calls", given.calls >= CALLS
    print(found)
    if usual:
        about = f"`python -m benchmarks.endurance {given.kind}`. {conditions()}"
        write(RESULTS / "endurance.md", "Endurance", section, f"{about}\n\n{found}")
    raise SystemExit(not passed)


if __name__ == "__main__":
    main()
