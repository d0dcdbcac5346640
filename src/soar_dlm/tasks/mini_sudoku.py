"""Sudoku of six rows and six columns, with one solution each."""

from __future__ import annotations

import random
from functools import cache
from itertools import accumulate
from typing import ClassVar

from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.sudoku_grids import Grid, Shape, dig, first_row_in_order, random_grid, random_symmetry
from soar_dlm.tasks.task import Task

SHAPE = Shape(height=2, width=3)


@cache
def base_puzzle(index: int) -> tuple[Grid, Grid]:
    """Minimal puzzle number ``index`` and its solution; the same in every process."""
    rng = random.Random(f"mini-sudoku base {index}")
    solution = random_grid(SHAPE, rng)
    return dig(SHAPE, solution, rng), solution


def written(grid: Grid) -> str:
    """One line per row, one space between cells, a dot for an empty cell."""
    side = SHAPE.side
    marks = [str(digit) if digit else "." for digit in grid]
    return "\n".join([" ".join(marks[start : start + side]) for start in range(0, side * side, side)])


class MiniSudoku(Task):
    """Complete a grid of digits 1 to 6: each once in every row, column and box of 2 rows by 3 columns.

    A puzzle is a minimal one from a fixed pool, transformed by a random symmetry of the grid, with some cells of its
    solution added. ``pool`` is the number of minimal puzzles. ``added_weights[n]`` is the weight of adding n cells.

    The key is the solution with its digits renamed, so all puzzles with one solution are in the same split, whatever
    their digits and givens.
    """

    name: ClassVar[str] = "mini-sudoku"
    about: ClassVar[str] = "Sudoku of 6 rows and 6 columns with exactly one solution and few givens."
    canvas: ClassVar[int] = 44

    pool: ClassVar[int] = 2048
    added_weights: ClassVar[tuple[float, ...]] = (8, 4, 2, 1, 1)

    def draw(self, rng: random.Random) -> Problem:
        symmetry = random_symmetry(SHAPE, rng)
        puzzle, solution = map(symmetry, base_puzzle(rng.randrange(self.pool)))
        empty = [cell for cell, digit in enumerate(puzzle) if not digit]
        (added,) = rng.choices(range(len(self.added_weights)), cum_weights=list(accumulate(self.added_weights)))
        shown = list(puzzle)
        for cell in rng.sample(empty, min(added, len(empty))):
            shown[cell] = solution[cell]
        return Problem(
            prompt=f"Sudoku\n{written(tuple(shown))}\nSolution",
            answer=f"\n{written(solution)}",
            key="".join(map(str, first_row_in_order(SHAPE, solution))),
            kind=f"{len(shown) - shown.count(0)} givens",
        )

    def correct(self, problem: Problem, text: str) -> bool:
        """Whether the first six non-blank lines are the solution; the number of spaces does not matter."""
        lines = [line.strip(" ") for line in text.split("\n")]
        rows = [" ".join(filter(None, line.split(" "))) for line in lines if line]
        return "\n".join(rows[: SHAPE.side]) == problem.answer.strip()
