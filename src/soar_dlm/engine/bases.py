"""What the canvases of a request build on: keys and values of a forward that an ancestor of theirs went through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from soar_dlm.models.masked_lm import Stored
from soar_dlm.options import Options
from soar_dlm.search.candidate import Candidate, Ints
from soar_dlm.search.question import Question

Needed = Callable[[Ints], Ints]


@dataclass(frozen=True, eq=False)
class Base:
    """Columns [C] stored when a canvas was run, left to right, and the tokens [C] they showed.

    ``block`` is the one it was about to fill; ``steps`` and ``edits`` count how often it had committed and how often
    its length had changed. ``rows`` are keys and values: those of the canvas and, with guidance, of its twin.
    """

    block: int
    steps: int
    edits: int
    columns: Ints
    tokens: Ints
    rows: Sequence[Stored]


@dataclass(frozen=True, eq=False)
class Run:
    """How a canvas is run: its ``columns`` [W], ``over`` [C] those stored in a base, 0 for none.

    ``stored`` has an entry for each row of the question. ``keep`` are the columns of a new base, for the canvases that
    grow from this one.
    """

    columns: Ints
    base: int = 0
    over: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    stored: Sequence[Stored] = ()
    keep: Ints | None = None

    def keep_indices(self) -> Ints | None:
        """The columns to keep, counted over those stored and then those run."""
        if self.keep is None:
            return None
        both = np.concatenate([self.over, self.columns])
        order = np.argsort(both, kind="stable")
        found: Ints = order[np.searchsorted(both, self.keep, sorter=order)]
        return found


class Bases:
    """The caches "prefix" and "dual", for all canvases of one request.

    1. A canvas that begins a block, or whose base is ``refresh_every`` steps old, is run in full. Then everything
       before the block is stored ("prefix"), or everything outside it ("dual"), as a base for what grows from it.
    2. A canvas that grew from a base is run in the columns that are not stored, over those that are. Children of one
       canvas share its base; the base itself never changes.
    3. Where the length of a canvas has changed since, the columns from the block on have moved. Those before it are
       still good; the others are run, and with "dual" they become part of a new base.
    4. A base goes when no canvas that is asked about builds on it: with a merge the survivor's stays, with a collapse
       those of the others go. Of more canvases at once than ``most``, only the first are stored.
    5. What grew from nothing, such as a text that is masked again to verify it, is run in full and not stored. So is
       what is asked about places outside the block.

    With ``suffix_window``, a canvas is run without the columns after that many after its block, but for the last.
    ``needed`` says which columns a model must run in order to predict some.
    """

    def __init__(self, options: Options, needed: Needed, most: int) -> None:
        self._options, self._needed, self._most = options, needed, most
        self._bases: dict[int, Base] = {}
        self._numbers = count(1)

    @property
    def kind(self) -> str | None:
        """The cache: "prefix", "dual", or None if columns are only left out."""
        return self._options.cache

    def plan(self, questions: Sequence[Question]) -> list[Run]:
        """How to run each question; bases that none of them builds on are gone before anything is run."""
        runs = [self._run(question) for question in questions]
        if any(question.candidate.base is not None for question in questions):
            used = {run.base for run in runs}
            self._bases = {number: base for number, base in self._bases.items() if number in used}
        room = self._most - len(self._bases)
        planned: list[Run] = []
        for run in runs:
            if run.keep is not None:
                room -= 1
            planned.append(replace(run, keep=None) if room < 0 else run)
        return planned

    def read(self, question: Question, run: Run, kept: Sequence[Stored | None]) -> int:
        """The number of the base for canvases that grow from what was read; 0 for none."""
        if run.keep is None:
            return run.base
        canvas = question.candidate
        number = next(self._numbers)
        rows = [row for row in kept if row is not None]
        tokens = canvas.tokens[run.keep]
        since = self._bases[run.base].steps if run.base else canvas.steps
        self._bases[number] = Base(block_of(canvas), since, edits(canvas), run.keep, tokens, rows)
        return number

    def _run(self, question: Question) -> Run:
        canvas = question.candidate
        whole = Run(np.arange(canvas.tokens.size))
        if canvas.base is None or not canvas.open.any():
            return whole
        inside = self._needed(np.flatnonzero(canvas.block == block_of(canvas)))
        if not np.isin(question.positions, inside).all():
            return whole
        seen = self._seen(canvas, int(inside[-1]))
        if self._options.cache is None:
            return Run(seen)
        again = seen[seen >= inside[0]] if self._options.cache == "prefix" else inside
        keep = np.setdiff1d(seen, again, assume_unique=True)
        base = self._bases.get(canvas.base)
        good = 0 if base is None else self._still_good(base, canvas, int(inside[0]))
        if base is None or not good:
            return Run(seen, keep=keep if keep.size else None)
        over = base.columns[:good]
        run = np.setdiff1d(seen, over, assume_unique=True)
        if good == base.columns.size:
            return Run(run, canvas.base, over, base.rows)
        return Run(run, canvas.base, over, [row.first(good) for row in base.rows], keep)

    def _still_good(self, base: Base, canvas: Candidate, first: int) -> int:
        """How many of a base's columns, counted from the left, this canvas can build on."""
        most = self._options.refresh_every
        if base.block != block_of(canvas) or (most is not None and canvas.steps - base.steps >= most):
            return 0
        moved = base.edits != edits(canvas)
        columns = base.columns[base.columns < (first if moved else canvas.tokens.size)]
        return columns.size if np.array_equal(base.tokens[: columns.size], canvas.tokens[columns]) else 0

    def _seen(self, canvas: Candidate, last: int) -> Ints:
        """The columns that are run or stored at all; ``last`` is the last of the block."""
        columns = np.arange(canvas.tokens.size)
        if self._options.suffix_window is None:
            return columns
        seen: Ints = columns[(columns <= last + self._options.suffix_window) | (columns == columns[-1])]
        return seen


def block_of(canvas: Candidate) -> int:
    """The block that a canvas fills next."""
    return int(canvas.block[canvas.open].min())


def edits(canvas: Candidate) -> int:
    """How often the length of a canvas has changed."""
    return canvas.committed - canvas.written
