"""How long the operations of a measurement would take at the processor's best rate, beside how long it took.

What is counted: two operations for each weight of a layer that a column meets, or of the head that a state meets, and
four for each number of a query that meets a column. Norms, exponentials and the search are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.pages import RESULTS, table
from soar_dlm.bench.shape import Shape
from soar_dlm.bench.workload import random_prompts
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.strict_json import read_json

SHAPE, PROMPT, BLOCK = Shape(), 512, 32
PRODUCTS = RESULTS / "products.md"
ROWS = {
    "PBS, K = 1": ("beam", "pbs, dual", 1),
    "PBS, K = 4": ("beam", "pbs, dual", 4),
    "16 requests one by one": ("requests", "greedy, dual, one by one", None),
    "16 requests in one batch": ("requests", "greedy, dual", None),
}
"""In words, where it was measured, with whom, and with which beam."""


@dataclass(frozen=True)
class Work:
    """Forwards of one row: ``full`` of all its ``columns``, the others of a block; a dual cache, blocks of 32."""

    columns: int
    forwards: int
    full: int

    @property
    def operations(self) -> float:
        states = self.forwards * (BLOCK + 1) / 2  # a block has 32 masks at first, and one at last
        over = self.full * self.columns + (self.forwards - self.full) * BLOCK
        layers = SHAPE.layers * SHAPE.hidden * (4 * SHAPE.hidden + 3 * SHAPE.inner)
        attention = self.columns * SHAPE.hidden * SHAPE.layers
        return over * (2 * layers + 4 * attention) + 2 * states * SHAPE.vocab * SHAPE.hidden


def works(settings: Mapping[str, Any], forwards: int, beam: int | None) -> list[Work]:
    """The work of each request; a beam has one candidate in the first block's first step, then all of them."""
    canvas, requests = settings["canvas"], settings["requests"]
    facts = ModelFacts(SHAPE.vocab, SHAPE.mask_id, pad_id=0, filler_id=0, context=SHAPE.context, thresholds={})
    prompts = random_prompts(facts, requests, PROMPT, requests > 1, settings["seed"])
    full = 1 + (beam or 1) * (canvas // BLOCK - 1)
    return [Work(len(before) + canvas, forwards // requests, full) for before, _ in prompts]


def best_rate(threads: str) -> float:
    """Operations per second, as benchmarks/products.py measured them."""
    section = PRODUCTS.read_text(encoding="utf-8").partition(f"\n## {threads} thread")[2]
    found = re.search(r"of the (\d+) that", section)
    assert found is not None, f"{PRODUCTS} has nothing of {threads} threads"
    return float(found[1]) * 1e9


def least(threads: Mapping[str, str]) -> str:
    rows = []
    for words, (where, entrant, beam) in ROWS.items():
        row: list[str] = []
        for count in threads:
            found = read_json((RESULTS / "bench" / f"{where}-{count}.json").read_bytes())
            lane = next(one for one in found["lanes"] if (one["entrant"], one["value"]) == (entrant, beam))
            operations = sum(work.operations for work in works(found["settings"], lane["forwards"], beam))
            row = row or [words, f"{operations / 1e12:.2f}"]
            at_best = operations / best_rate(count)
            row += [f"{at_best:.1f} s", f"{lane['median']:.1f} s ({at_best / lane['median']:.0%})"]
        rows.append(row)
    names = ["", "operations, 10¹²"]
    for words in threads.values():
        names += [f"at best, {words}", "measured"]
    return table(names, rows)
