"""Sudoku grids of any box shape: solving, random full grids, minimal puzzles, and the symmetries of the grid.

The solver sees a puzzle as one integer with a bit for every (digit, cell) that is still possible. Every rule of
sudoku is then the same rule: some group of ``side`` bits must come down to exactly one. A group is the digits of a
cell, or the places of a digit in a row, a column or a box. All groups of a kind are counted at once by shifting the
integer over itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, permutations, product

Grid = tuple[int, ...]
"""The cells row by row; 0 is an empty cell."""


@dataclass(frozen=True)
class Kind:
    """Groups of bits of one kind: each group has its first bit in ``anchors``, the others at ``shifts`` from it."""

    anchors: int
    shifts: tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """A grid whose boxes are ``height`` rows by ``width`` columns."""

    height: int
    width: int

    @property
    def side(self) -> int:
        """How many digits there are, and how many cells in a row, a column or a box."""
        return self.height * self.width

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The groups of which each must hold exactly one true bit; the cells come first."""
        side, cells = self.side, self.side**2
        lines = range(side)
        box_corners = [row * side + column for row in lines[:: self.height] for column in lines[:: self.width]]
        in_box = tuple(row * side + column for row in range(self.height) for column in range(self.width))
        per_digit = [
            ([row * side for row in lines], tuple(lines)),
            (list(lines), tuple(row * side for row in lines)),
            (box_corners, in_box),
        ]
        kinds = [Kind((1 << cells) - 1, tuple(digit * cells for digit in lines))]
        for firsts, shifts in per_digit:
            kinds.append(Kind(sum(1 << (digit * cells + first) for digit in lines for first in firsts), shifts))
        return tuple(kinds)

    @cached_property
    def compatible(self) -> tuple[int, ...]:
        """For every bit, the bits that may be true together with it, itself included."""
        everything = (1 << self.side**3) - 1
        excluded = [0] * self.side**3
        for kind in self.kinds:
            group = sum(1 << shift for shift in kind.shifts)
            for anchor in bits(kind.anchors):
                for bit in bits(group << anchor):
                    excluded[bit] |= group << anchor
        return tuple(everything & ~others | 1 << bit for bit, others in enumerate(excluded))

    @cached_property
    def row_orders(self) -> tuple[tuple[int, ...], ...]:
        """Every order of the rows that keeps boxes whole."""
        return line_orders(self.width, self.height)

    @cached_property
    def column_orders(self) -> tuple[tuple[int, ...], ...]:
        """Every order of the columns that keeps boxes whole."""
        return line_orders(self.height, self.width)


def line_orders(bands: int, lines: int) -> tuple[tuple[int, ...], ...]:
    """Every order of ``bands`` bands of ``lines`` lines in which the lines of a band stay together."""
    inside = tuple(permutations(range(lines)))
    return tuple(
        tuple(band * lines + line for band, order in zip(outer, orders, strict=True) for line in order)
        for outer in permutations(range(bands))
        for orders in product(inside, repeat=bands)
    )


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits set in ``mask``, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def possibilities(shape: Shape, grid: Sequence[int]) -> int:
    """The bits that the digits of ``grid`` leave possible."""
    cells, compatible = shape.side**2, shape.compatible
    possible = (1 << shape.side**3) - 1
    for cell, digit in enumerate(grid):
        if digit:
            possible &= compatible[(digit - 1) * cells + cell]
    # Digits that clash have ruled each other out, and with them a whole group: the solver finds no solution.
    return possible


def settled(shape: Shape, possible: int) -> tuple[int, int] | None:
    """Follow every forced bit; None if some group has no bit left.

    Returns the bits still possible, and the bits of a smallest group to try one by one: 0 when all is solved.
    """
    compatible, done = shape.compatible, 0
    while True:
        before, pair = possible, 0
        for kind in shape.kinds:
            anchors, shifts = kind.anchors, kind.shifts
            once = twice = thrice = 0
            for shift in shifts:
                here = possible >> shift & anchors
                thrice |= twice & here
                twice |= once & here
                once |= here
            if once != anchors:
                return None
            if single := once & ~twice:
                forced = 0
                for shift in shifts:
                    forced |= single << shift
                forced &= possible & ~done
                done |= forced
                for bit in bits(forced):
                    possible &= compatible[bit]
            if not pair and (two := twice & ~thrice):
                pair = sum([(two & -two) << shift for shift in shifts])
        if possible == before:
            break
    if possible.bit_count() == shape.side**2:
        return possible, 0
    return possible, possible & pair or smallest_cell(shape, possible)


def smallest_cell(shape: Shape, possible: int) -> int:
    """The possible bits of the open cell that has the fewest."""
    column = sum(1 << shift for shift in shape.kinds[0].shifts)
    choices = (possible & column << cell for cell in range(shape.side**2))
    return min((choice for choice in choices if choice.bit_count() > 1), key=int.bit_count)


def search(shape: Shape, possible: int, rng: random.Random | None = None) -> Iterator[int]:
    """Every solution within ``possible``, as its bits; with ``rng`` the guesses are made in random order."""
    found = settled(shape, possible)
    if found is None:
        return
    possible, choice = found
    if not choice:
        yield possible
        return
    guesses = list(bits(choice))
    if rng is not None:
        rng.shuffle(guesses)
    for bit in guesses:
        yield from search(shape, possible & shape.compatible[bit], rng)


def as_grid(shape: Shape, solution: int) -> Grid:
    """The full grid of a solution's bits."""
    cells = shape.side**2
    grid = [0] * cells
    for bit in bits(solution):
        grid[bit % cells] = bit // cells + 1
    return tuple(grid)


def solutions(shape: Shape, puzzle: Sequence[int]) -> Iterator[Grid]:
    """Every full grid that agrees with the givens of ``puzzle``, in a fixed order."""
    return (as_grid(shape, solution) for solution in search(shape, possibilities(shape, puzzle)))


def count_solutions(shape: Shape, puzzle: Sequence[int], limit: int = 2) -> int:
    """How many solutions ``puzzle`` has, counting to ``limit`` at most."""
    return sum(1 for _ in islice(search(shape, possibilities(shape, puzzle)), limit))


def random_grid(shape: Shape, rng: random.Random) -> Grid:
    """A full grid; every grid is possible, though not all are equally likely."""
    first_row = rng.sample(range(1, shape.side + 1), shape.side)
    return as_grid(shape, next(search(shape, possibilities(shape, first_row), rng)))


def dig(shape: Shape, solution: Grid, rng: random.Random) -> Grid:
    """A minimal puzzle of ``solution``: it has no other solution, but would have if any given were removed."""
    cells = shape.side**2
    puzzle = list(solution)
    for cell in rng.sample(range(cells), cells):
        puzzle[cell] = 0
        known = 1 << (solution[cell] - 1) * cells + cell
        # Any other solution must differ in this cell, or the puzzle would not have been unique before.
        if next(search(shape, possibilities(shape, puzzle) & ~known), None) is not None:
            puzzle[cell] = solution[cell]
    return tuple(puzzle)


@dataclass(frozen=True)
class Symmetry:
    """A transformation that keeps a grid a sudoku: cell i of the new grid is cell ``cells[i]`` with its digit renamed.

    ``digits[d]`` is the new name of digit d; an empty cell stays empty, so ``digits[0]`` is 0.
    """

    cells: tuple[int, ...]
    digits: tuple[int, ...]

    def __call__(self, grid: Grid) -> Grid:
        digits = self.digits
        return tuple([digits[grid[cell]] for cell in self.cells])


def random_symmetry(shape: Shape, rng: random.Random) -> Symmetry:
    """A symmetry that moves bands, stacks, rows, columns and digits; all are equally likely."""
    side = shape.side
    rows, columns = rng.choice(shape.row_orders), rng.choice(shape.column_orders)
    cells = tuple([row * side + column for row in rows for column in columns])
    return Symmetry(cells, (0, *rng.sample(range(1, side + 1), side)))


def first_row_in_order(shape: Shape, solution: Grid) -> Grid:
    """``solution`` with its digits renamed so that its first row counts 1, 2, 3 and so on."""
    names = {digit: name for name, digit in enumerate(solution[: shape.side], 1)}
    return tuple([names[digit] for digit in solution])
