"""The tables of docs/performance.md, from what `make bench` and the other benchmarks wrote.

    python -m benchmarks.performance

The page is written by hand but for what is between ``<!-- table NAME -->`` and ``<!-- end -->``: there go the table of
``docs/results/bench/NAME.md``, or the one that a function here makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.pages import RESULTS, table
from soar_dlm.strict_json import read_json

PAGE, FOLDER = RESULTS.parent / "performance.md", RESULTS / "bench"
REGION = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
ONCE, TWICE = "1", "2"
"""How many threads."""

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


def lanes(name: str) -> dict[tuple[str, Any], Mapping[str, Any]]:
    """What was measured, by entrant and by the value of what varied."""
    found = read_json((FOLDER / f"{name}.json").read_bytes())
    return {(lane["entrant"], lane["value"]): lane for lane in found["lanes"]}


def ratios() -> str:
    """Every ratio with one thread and with two."""
    rows = [[words, *(_ratio(*how, threads) for threads in (ONCE, TWICE))] for words, how in RATIOS.items()]
    rows.append(["PBS, dual cache: seconds with K = 4 over those with K = 1", *map(_wider, (ONCE, TWICE))])
    return table(["", "one thread", "two threads"], rows)


def _ratio(where: str, one: str, other: str, threads: str) -> str:
    found = lanes(f"{where}-{threads}")
    return f"{found[one, None]['tokens_per_second'] / found[other, None]['tokens_per_second']:.2f}"


def _wider(threads: str) -> str:
    found = lanes(f"beam-{threads}")
    return f"{found['pbs, dual', 4]['median'] / found['pbs, dual', 1]['median']:.2f}"


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
    "machines": lambda: "\n".join(f"- {line}" for line in machines()),
}


def filled(page: str) -> str:
    """The page with all its tables as measured."""

    def region(found: re.Match[str]) -> str:
        name = found[2]
        own = MADE[name]() if name in MADE else (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n\n")[0]
        return f"{found[1]}\n{own}\n{found[3]}"

    return REGION.sub(region, page)


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
