from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soar_dlm.tasks.catalogue import make_task
from soar_dlm.tasks.mini_sudoku import SHAPE, MiniSudoku, base_puzzle, written
from soar_dlm.tasks.problem import Problem, Split
from soar_dlm.tasks.sudoku_grids import (
    Grid,
    Shape,
    count_solutions,
    dig,
    first_row_in_order,
    random_grid,
    random_symmetry,
    solutions,
)


class FewBases(MiniSudoku):
    """The same task, quicker to make many problems of."""

    pool = 30


TASK = MiniSudoku()
SEEDS = st.integers(0, 2**32)


def sees(a: int, b: int) -> bool:
    """Whether two cells of a 6x6 grid share a row, a column or a box, in the plainest words."""
    (row, column), (other_row, other_column) = divmod(a, 6), divmod(b, 6)
    same_box = row // 2 == other_row // 2 and column // 3 == other_column // 3
    return a != b and (row == other_row or column == other_column or same_box)


SEEN_BY = [[b for b in range(36) if sees(a, b)] for a in range(36)]


def brute_force(grid: list[int], limit: int = 2) -> int:
    """Count solutions up to ``limit`` by trying digits in the cell with the fewest; shares no code with the solver."""
    choices = {
        cell: [digit for digit in range(1, 7) if all(grid[other] != digit for other in SEEN_BY[cell])]
        for cell in range(36)
        if grid[cell] == 0
    }
    if not choices:
        return 1
    cell = min(choices, key=lambda cell: len(choices[cell]))
    count = 0
    for digit in choices[cell]:
        grid[cell] = digit
        count += brute_force(grid, limit - count)
        grid[cell] = 0
        if count >= limit:
            break
    return count


def is_sudoku(grid: Grid) -> bool:
    return set(grid) == set(range(1, 7)) and all(grid[a] != grid[b] for a in range(36) for b in SEEN_BY[a])


def parsed(text: str) -> Grid:
    return tuple(0 if mark == "." else int(mark) for mark in text.split())


def puzzle_of(problem: Problem) -> Grid:
    return parsed(problem.prompt.removeprefix("Sudoku\n").removesuffix("Solution"))


def drawn(count: int, seed: int = 0) -> list[Problem]:
    rng = random.Random(seed)
    return [TASK.draw(rng) for _ in range(count)]


def test_drawn_puzzles_have_one_solution_and_it_is_the_answer() -> None:
    for problem in drawn(30):
        puzzle, solution = puzzle_of(problem), parsed(problem.answer)
        assert is_sudoku(solution)
        assert all(shown in (0, digit) for shown, digit in zip(puzzle, solution, strict=True))
        assert brute_force(list(puzzle)) == 1


def test_layout_of_the_text() -> None:
    for problem in drawn(20):
        lines = problem.prompt.split("\n")
        assert (lines[0], lines[7:]) == ("Sudoku", ["Solution"])
        assert all(len(line) == 11 and set(line[1::2]) == {" "} for line in lines[1:7] + problem.answer.split("\n")[1:])
        assert len(problem.answer.split("\n")) == 7
        # Every cell is a token, every row has a line break before it, and the last has the end token.
        assert len(problem.answer.split()) + 7 <= TASK.canvas
        assert problem.kind == f"{36 - puzzle_of(problem).count(0)} givens"


def test_written_marks_empty_cells() -> None:
    assert written((0, 3, 0, 1, 0, 5) + (0,) * 30) == ". 3 . 1 . 5\n" + "\n".join([". . . . . ."] * 5)


def test_base_puzzles_are_minimal() -> None:
    for index in range(12):
        puzzle, solution = base_puzzle(index)
        assert brute_force(list(puzzle)) == 1
        assert list(solutions(SHAPE, puzzle)) == [solution]
        for cell in range(36):
            if puzzle[cell]:
                assert brute_force([0 if other == cell else digit for other, digit in enumerate(puzzle)]) == 2


def test_numbers_of_givens_vary_and_most_puzzles_are_nearly_minimal() -> None:
    rng = random.Random(0)
    givens = Counter(36 - puzzle_of(FewBases().draw(rng)).count(0) for _ in range(400))
    assert len(givens) >= 6
    assert min(givens) >= 8
    assert 0.7 < sum(count for number, count in givens.items() if number <= 12) / 400 < 0.95


@pytest.mark.parametrize(("weights", "added"), [((1,), 0), ((0, 0, 1), 2), ((0,) * 12 + (1,), 12)])
def test_weights_set_how_many_cells_are_added(weights: tuple[float, ...], added: int) -> None:
    class OneBase(MiniSudoku):
        pool = 1
        added_weights = weights

    minimal = 36 - base_puzzle(0)[0].count(0)
    rng = random.Random(5)
    assert {OneBase().draw(rng).kind for _ in range(10)} == {f"{minimal + added} givens"}


def test_no_more_cells_are_added_than_are_empty() -> None:
    class Everything(MiniSudoku):
        added_weights = (0,) * 40 + (1,)

    problem = Everything().draw(random.Random(0))
    assert problem.kind == "36 givens"
    assert puzzle_of(problem) == parsed(problem.answer)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(0, 9))
def test_symmetries_keep_grids_valid_and_puzzles_unique(seed: int, index: int) -> None:
    puzzle, solution = base_puzzle(index)
    symmetry = random_symmetry(SHAPE, random.Random(seed))
    assert is_sudoku(symmetry(solution))
    assert list(solutions(SHAPE, symmetry(puzzle))) == [symmetry(solution)]
    assert symmetry(puzzle).count(0) == puzzle.count(0)


def test_symmetries_are_all_there() -> None:
    """3 bands of 2 rows and 2 stacks of 3 columns: 3! 2!^3 orders of the rows, 2! 3!^2 of the columns."""
    for orders, count, lines in [(SHAPE.row_orders, 48, 2), (SHAPE.column_orders, 72, 3)]:
        assert len(set(orders)) == len(orders) == count
        for order in orders:
            assert sorted(order) == list(range(6))
            assert all(order[i] // lines == order[i + 1] // lines for i in range(5) if i % lines != lines - 1)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.permutations(range(1, 7)))
def test_key_forgets_the_digits_but_not_the_grid(seed: int, names: list[int]) -> None:
    solution = random_grid(SHAPE, random.Random(seed))
    renamed = tuple(names[digit - 1] for digit in solution)
    key = first_row_in_order(SHAPE, solution)
    assert first_row_in_order(SHAPE, renamed) == key
    assert key[:6] == (1, 2, 3, 4, 5, 6)
    assert tuple(solution[digit - 1] for digit in key) == solution


def test_key_of_a_problem_is_its_relabelled_solution() -> None:
    for problem in drawn(20):
        assert tuple(map(int, problem.key)) == first_row_in_order(SHAPE, parsed(problem.answer))


def test_the_same_seed_draws_the_same_problems() -> None:
    assert drawn(20, seed=3) == drawn(20, seed=3)
    assert drawn(20, seed=3) != drawn(20, seed=4)
    assert base_puzzle.__wrapped__(7) == base_puzzle(7) != base_puzzle(8)


def test_splits_share_no_key() -> None:
    splits: tuple[Split, ...] = ("train", "validation", "test")
    keys = {split: {problem.key for problem in itertools.islice(FewBases().problems(split), 60)} for split in splits}
    assert all(len(found) > 20 for found in keys.values())
    assert all(keys[a].isdisjoint(keys[b]) for a, b in itertools.combinations(splits, 2))


def test_only_the_solution_is_correct() -> None:
    for problem in drawn(5):
        assert TASK.correct(problem, problem.answer)
        for place, mark in enumerate(problem.answer):
            for other in "123456.":
                if mark.isdigit() and mark != other:
                    assert not TASK.correct(problem, problem.answer[:place] + other + problem.answer[place + 1 :])


def test_spaces_blank_lines_and_what_follows_do_not_matter() -> None:
    (problem,) = drawn(1)
    rows = problem.answer.strip().split("\n")
    assert TASK.correct(problem, "\n" + "\n \n".join(f"  {row}  ".replace(" ", "  ") for row in rows) + "\n\nSudoku")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text.replace("\n", " "),
        lambda text: text.replace(" ", ""),
        lambda text: text.replace(" ", "\t"),
        lambda text: text + " 1",
        lambda text: "Solution\n" + text,
        lambda text: text[12:] + "\n" + text[:11],
        lambda text: text.replace("1", "\u0661"),
    ],
    ids=["empty", "cut", "one line", "no spaces", "tabs", "extra cell", "extra line", "rows turned", "other digits"],
)
def test_anything_else_is_wrong(spoil: Callable[[str], str]) -> None:
    for problem in drawn(3):
        assert not TASK.correct(problem, spoil(problem.answer))


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(0, 36))
def test_solver_counts_as_brute_force_does(seed: int, hidden: int) -> None:
    rng = random.Random(seed)
    grid = list(random_grid(SHAPE, rng))
    for cell in rng.sample(range(36), hidden):
        grid[cell] = 0
    assert count_solutions(SHAPE, grid, limit=20) == brute_force(grid, limit=20)


def test_solver_finds_no_solution_where_givens_clash_or_lead_nowhere() -> None:
    assert count_solutions(SHAPE, (1, 0, 0, 0, 0, 1) + (0,) * 30) == 0
    nowhere = (1, 2, 3, 4, 5, 0) + (0,) * 5 + (6,) + (0,) * 24
    assert count_solutions(SHAPE, nowhere) == 0


def test_solver_finds_all_grids_of_four() -> None:
    """There are 288 full grids of 4x4, a number known from the literature."""
    shape = Shape(2, 2)
    grids = list(solutions(shape, (0,) * 16))
    assert len(grids) == len(set(grids)) == 288
    assert count_solutions(shape, (0,) * 16, limit=7) == 7


def test_other_shapes_dig_too() -> None:
    for shape in (Shape(2, 2), Shape(3, 2), Shape(3, 3)):
        rng = random.Random(1)
        solution = random_grid(shape, rng)
        puzzle = dig(shape, solution, rng)
        assert list(solutions(shape, puzzle)) == [solution]
        assert puzzle.count(0) > shape.side**2 / 2


def test_the_catalogue_knows_the_task() -> None:
    assert isinstance(make_task("mini-sudoku"), MiniSudoku)
