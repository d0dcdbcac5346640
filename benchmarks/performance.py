"""What docs/performance.md shows: everything is measured by ``soar bench``, and its tables become those of the page.

    python -m benchmarks.performance                    all that has no results yet, two hours on a quiet machine
    python -m benchmarks.performance greedy-1 soar-1    these again
    python -m benchmarks.performance --show             only fill the page, from the results that are there

That page and the README are written by hand but for what is between ``<!-- table NAME -->`` and ``<!-- end -->``: there
goes the table of ``docs/results/bench/NAME.txt``, or the one that a function here makes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks import caches, precision
from benchmarks.least import least
from benchmarks.pages import RESULTS, table, table_of
from soar_dlm.strict_json import read_json

PAGE, FOLDER = RESULTS.parent / "performance.md", RESULTS / "bench"
PAGES = (PAGE, RESULTS.parents[1] / "README.md")
REGION = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FIGURES = PAGE.parent / "figures"
THREADS = {"1": "one thread", "2": "two threads"}

LONG = "--block-length 32 --prompt 512"
BOTH = {
    "greedy": f"{LONG} -n 128 -s greedy --caches none,prefix,dual --baseline --repeats 1",
    "soar": f"{LONG} -n 128 -s soar --beam 2 --threshold 0.5 --caches none,dual --baseline --repeats 1",
    "beam": f"{LONG} -n 128 -s pbs --over beam=1,2,4 --caches dual --repeats 3",
    "soar-beam": f"{LONG} -n 128 -s soar --threshold 0.5 --over beam=1,2,4 --caches dual --repeats 3",
    "requests": f"{LONG} -n 64 -s greedy --caches dual --requests 16 --mixed --one-by-one --repeats 2",
}
"""Measured with one thread and with two: what ``soar bench`` is asked."""
MEASURED = {
    **{f"{name}-{threads}": f"{asked} --threads {threads}" for threads in THREADS for name, asked in BOTH.items()},
    "prompt": "--block-length 32 -n 64 -s greedy --caches none,prefix,dual --over prompt=32,128,512,1024 --threads 1 "
    "--repeats 2",
    "canvas": f"{LONG} -s greedy --caches none,prefix,dual --over canvas=32,64,128 --threads 1 --repeats 1",
    "batch": f"{LONG} -n 32 -s greedy --caches none,dual --over requests=1,4,16 --threads 1 --repeats 1",
    "elsewhere": f"{BOTH['greedy']} --threads 2",  # as greedy-2, on a machine of another kind
    "memory": "--block-length 64 --prompt 64 -n 256 --requests 32 -s greedy --tokens-per-step 64 --caches none,dual "
    "--threads 1 --repeats 1",
}
"""Every measurement by name."""
DRAWN = {"beam-1": "bench-beam", "prompt": "bench-prompt", "canvas": "bench-canvas", "batch": "bench-batch"}
"""The figures of measurements over a variable."""

RATIOS: Mapping[str, tuple[str, str, str]] = {
    "Greedy, dual cache, over no cache": ("greedy", "greedy, dual", "greedy"),
    "Greedy, prefix cache, over no cache": ("greedy", "greedy, prefix", "greedy"),
    "Greedy, dual cache, over the plain loop with one": ("greedy", "greedy, dual", "plain-dual"),
    "Greedy, dual cache, over the plain loop without": ("greedy", "greedy, dual", "plain"),
    "SOAR, K = 2, dual cache, over no cache": ("soar", "soar, dual", "soar"),
    "SOAR, K = 2, dual cache, over the plain loop": ("soar", "soar, dual", "plain-soar"),
    "16 requests in one batch, dual cache, over one by one": (
        "requests",
        "greedy, dual",
        "greedy, dual, one by one",
    ),
}
"""In words, where it was measured, and by whose tokens per second over whose."""
WIDER: Mapping[str, tuple[str, str]] = {
    "PBS, dual cache: seconds with K = 4 over those with K = 1": ("beam", "pbs, dual"),
    "SOAR, dual cache: seconds with K = 4 over those with K = 1": ("soar-beam", "soar, dual"),
}
"""In words, where it was measured, and with whom."""


def lanes(name: str) -> dict[tuple[str, Any], Mapping[str, Any]]:
    """What was measured, by entrant and by the value of what varied."""
    found = read_json((FOLDER / f"{name}.json").read_bytes())
    return {(lane["entrant"], lane["value"]): lane for lane in found["lanes"]}


def ratios() -> str:
    """Every ratio, with as many threads as everything was measured with."""
    measured = [threads for threads in THREADS if all((FOLDER / f"{one}-{threads}.json").exists() for one in BOTH)]
    rows = [[words, *(_ratio(*how, threads) for threads in measured)] for words, how in RATIOS.items()]
    rows += [[words, *(_wider(*how, threads) for threads in measured)] for words, how in WIDER.items()]
    return table(["", *(THREADS[threads] for threads in measured)], rows)


def _ratio(where: str, one: str, other: str, threads: str) -> str:
    found = lanes(f"{where}-{threads}")
    return f"{found[one, None]['tokens_per_second'] / found[other, None]['tokens_per_second']:.2f}"


def _wider(where: str, entrant: str, threads: str) -> str:
    found = lanes(f"{where}-{threads}")
    return f"{found[entrant, 4]['median'] / found[entrant, 1]['median']:.2f}"


def prompts() -> str:
    """What each cache gains at each length of the prompt, in the same round."""
    found = lanes("prompt")
    caches = ("prefix", "dual")
    rows = []
    for length in sorted({value for _, value in found}):
        gains = [found[f"greedy, {cache}", length]["speed_up"] for cache in caches]
        rows.append([f"{length:,}", *(f"{gain:.2f}" for gain in gains)])
    return table(["prompt", *caches], rows)


def machines() -> Iterator[str]:
    """Every machine that something was measured on."""
    yield from sorted({read_json(path.read_bytes())["machine"]["line"] for path in FOLDER.glob("*.json")})


MADE: Mapping[str, Callable[[], str]] = {
    "ratios": ratios,
    "prompts": prompts,
    "least": lambda: least(THREADS),
    "caches": caches.compact,
    "precision-time": lambda: table_of(precision.PAGE, "Time, 1 thread"),
    "precision-accuracy": lambda: table_of(precision.PAGE, "Accuracy"),
    "machines": lambda: "\n".join(f"- {line}" for line in machines()),
}


def filled(page: str) -> str:
    """The page with all its tables as measured."""

    def region(found: re.Match[str]) -> str:
        name = found[2]
        own = MADE[name]() if name in MADE else (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n\n")[0]
        return f"{found[1]}\n{own}\n\n{found[3]}"

    return REGION.sub(region, page)


def measure(name: str) -> None:
    """Run ``soar bench``, and keep its table, its data and its figure."""
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "soar_dlm", "bench", *MEASURED[name].split(), "--format", "markdown"]
    command += ["--json", str(FOLDER / f"{name}.json")]
    command += ["--figure", str(FIGURES / f"{DRAWN[name]}.svg")] if name in DRAWN else []
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    (FOLDER / f"{name}.txt").write_text(made, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURED))
    parser.add_argument("--show", action="store_true", help="measure nothing")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in MEASURED]:
        parser.error(f"there is no measurement called {unknown[0]}; choose from {', '.join(MEASURED)}")
    missing = [name for name in MEASURED if not (FOLDER / f"{name}.txt").exists()]
    for name in [] if given.show else given.names or missing:
        print(name, flush=True)
        measure(name)
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
