"""The arena: who enters, which settings are chosen, what the page says, that it follows from compact results."""

from __future__ import annotations

import json
import random
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from benchmarks.arena import __main__ as command
from benchmarks.arena import pareto, report, stages
from benchmarks.arena.choice import Trial, chosen
from benchmarks.arena.entrants import (
    BASELINE,
    CONTESTS,
    DELIBERATE,
    SOAR_2,
    Contest,
    Entrant,
    Grid,
    contest,
    deliberate_points,
    grids,
    parts_of,
)
from benchmarks.arena.tallies import Tally, TaskResult, choice_of, read_result, tallies, write_result
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.comparison import compare, summary
from soar_dlm.evals.results import RESULTS
from soar_dlm.lm import LM, load
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.catalogue import STRATEGIES, make_strategy
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task
from tests.closeness import about

DOCS = Path(__file__).parent.parent / "docs"
COMMITTED = [task for task in CONTESTS if stages.compact_file(DOCS / "results" / "arena", task).exists()]


class Letters(Task):
    """Right if the text has an even number of characters, which nonsense has about half of the time."""

    name: ClassVar[str] = "mini-code"  # one that has a contest
    about: ClassVar[str] = "nonsense"
    canvas: ClassVar[int] = 6

    def draw(self, rng: random.Random) -> Problem:
        number = rng.randrange(10**6)
        return Problem(f"{number}=", "x", str(number), "any")

    def correct(self, problem: Problem, text: str) -> bool:
        return len(text) % 2 == 0


GRIDS = [
    Grid("Greedy", ("tokens_per_step",), [Greedy(1), Greedy(2), Greedy(3)]),
    Grid("Adaptive Parallel", ("threshold",), [AdaptiveParallel(tau) for tau in (0.01, 0.02, 0.5, 0.9)]),
    Grid(SOAR_2, ("threshold",), [Soar(2, tau) for tau in (0.01, 0.02, 0.5)]),
    Grid(DELIBERATE, ("threshold", "drafts"), [Deliberate(tau, tries=1) for tau in (0.01, 0.02)]),
]


# Who enters


@pytest.mark.parametrize("task", CONTESTS)
def test_every_strategy_of_the_library_enters_with_three_settings_or_more(task: str) -> None:
    found = grids(contest(task))
    assert all(len(grid.points) >= 3 for grid in found)
    kinds = {type(point) for grid in found for point in grid.points}
    assert kinds == {type(make_strategy(name)) for name in STRATEGIES.names() if _own(make_strategy(name))}
    assert any(point.defer_end for grid in found for point in grid.points if isinstance(point, AdaptiveParallel))
    assert any(point.released for grid in found for point in grid.points if isinstance(point, Soar))


def _own(strategy: Strategy) -> bool:
    return type(strategy).__module__.startswith("soar_dlm.")


@pytest.mark.parametrize("task", CONTESTS)
def test_names_tell_entrants_apart_and_can_be_taken_apart(task: str) -> None:
    entrants = [entrant for grid in grids(contest(task)) for entrant in grid.entrants]
    assert len({entrant.name for entrant in entrants}) == len(entrants)
    assert len({entrant.method for entrant in entrants}) == len(entrants)
    assert [parts_of(one.name) for one in entrants] == [(one.strategy, one.setting) for one in entrants]
    assert entrants[0] == Entrant("Greedy", "n=1", Greedy(metric=contest(task).metric))
    assert entrants[0].name == BASELINE


def test_deliberate_has_a_dozen_settings() -> None:
    points = deliberate_points(CONTESTS["mini-code"])
    assert len(points) == 12
    assert {point.drafts for point in points if isinstance(point, Deliberate)} == {("open", "plain"), ("open",)}


# Which settings are chosen


def test_each_bound_chooses_its_most_accurate_setting() -> None:
    trials = {
        "a": Trial(40, 300),  # fast: at most 300 of greedy's 900
        "b": Trial(50, 301),
        "c": Trial(60, 600),  # middle
        "d": Trial(55, 800),
        "e": Trial(61, 900),  # careful
        "f": Trial(99, 901),  # free
    }
    assert chosen(trials, 900) == {"a": ("fast",), "c": ("middle",), "e": ("careful",), "f": ("free",)}


def test_ties_go_to_fewer_forwards_then_to_the_first() -> None:
    trials = {"a": Trial(50, 500), "b": Trial(50, 400), "c": Trial(50, 400), "d": Trial(49, 100)}
    assert chosen(trials, 900) == {"d": ("fast",), "b": ("middle", "careful", "free"), "c": ()}


def test_what_is_chosen_twice_enters_once_and_others_follow() -> None:
    trials = {"a": Trial(90, 10), "b": Trial(80, 20), "c": Trial(85, 2000), "d": Trial(70, 30)}
    assert chosen(trials, 900) == {"a": ("fast", "middle", "careful", "free"), "b": (), "c": ()}


def test_a_strategy_that_is_always_slower_than_greedy_enters_freely() -> None:
    trials = {"a": Trial(50, 1000), "b": Trial(60, 3000), "c": Trial(40, 2000)}
    assert chosen(trials, 900) == {"a": (), "c": (), "b": ("free",)}


def test_a_small_grid_enters_whole() -> None:
    assert chosen({"a": Trial(1, 5)}, 900) == {"a": ("fast", "middle", "careful", "free")}


# What a run leaves behind


def test_tallies_say_what_records_say(random_llada: LM) -> None:
    methods: dict[str, Strategy] = {"greedy": Greedy(), "soar": Soar(2, 0.02)}
    records = compare(random_llada, Letters(), Letters().distinct("test", 5), methods, chunk=3)
    expected, found = summary(records, "greedy"), tallies(reversed(records))
    for name in methods:
        whole = found[name].summary(found["greedy"])
        assert replace(whole, seconds=0, speed_up=0) == about(replace(expected[name], seconds=0, speed_up=0))
        assert whole.seconds == pytest.approx(expected[name].seconds, abs=1e-3)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a tiny run of all stages."""
    output, task = tmp_path_factory.mktemp("arena"), Letters()
    lm = load("random-llada", device="cpu")
    stages.run_validation(lm, task, GRIDS, 4, 4, output)
    stages.run_test(lm, task, GRIDS, 6, 3, output)
    for rows in stages.ROWS:
        stages.run_timing(load("random-llada", engine=EngineSettings(max_rows=rows)), task, GRIDS, 2, output)
    return output


def result_in(output: Path) -> TaskResult:
    result = stages.result_of(output, "mini-code")
    assert result is not None
    return result


def test_what_entered_is_what_the_validation_results_choose(ran: Path) -> None:
    result = result_in(ran)
    names = [f"{strategy}: {setting}" for strategy, settings in result.choice.items() for setting in settings]
    assert sorted(result.test) == sorted(names)
    assert next(iter(result.test)) == BASELINE
    assert {strategy: len(own) for strategy, own in result.trials.items()} == {
        grid.strategy: len(grid.points) for grid in GRIDS
    }
    assert (result.validation, result.problems) == (4, 6)
    assert result.trials["Greedy"]["n=1"].forwards >= result.trials["Greedy"]["n=3"].forwards


def test_the_timing_runs_have_greedy_soar_and_two_settings_of_deliberate(ran: Path) -> None:
    result = result_in(ran)
    assert list(result.timing) == [16, 1]
    for own in result.timing.values():
        assert next(iter(own)) == BASELINE
        assert {parts_of(name)[0] for name in own} <= {"Greedy", "Adaptive Parallel", SOAR_2, DELIBERATE}
        assert f"{DELIBERATE}: {next(iter(result.choice[DELIBERATE]))}" in own
        assert all(len(tally.solved) == 2 and tally.seconds > 0 for tally in own.values())


def test_the_quickest_and_the_careful_settings_are_timed() -> None:
    choice: dict[str, dict[str, tuple[str, ...]]] = {
        "Greedy": {"n=2": ("fast",), "n=1": ("careful",)},
        SOAR_2: {"a": ("fast",), "b": ("careful", "free")},
        DELIBERATE: {"q": ("middle",), "c": ("careful",), "f": ("free",)},
    }
    assert stages.timed_methods(choice) == [BASELINE, f"{SOAR_2}: b", f"{DELIBERATE}: q", f"{DELIBERATE}: c"]


def test_a_compact_file_holds_all_of_it(ran: Path, tmp_path: Path) -> None:
    result, file = result_in(ran), stages.compact_file(tmp_path, "mini-code")
    write_result(result, file)
    assert stages.result_of(tmp_path, "mini-code") == about(result)
    assert command.data([read_result(file)]) == command.data([result])
    assert report.markdown([read_result(file)]) == report.markdown([result])


def test_an_unfinished_test_run_is_reported_as_far_as_it_goes(ran: Path, tmp_path: Path) -> None:
    for source in sorted(ran.rglob("*.json*")):
        copy = tmp_path / source.relative_to(ran)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    results = stages.folder_of(tmp_path, "mini-code", stages.TEST) / RESULTS
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:-1]))
    assert result_in(tmp_path).problems == 3
    assert "3 of 6 test problems" in report.markdown([result_in(tmp_path)])
    results.write_bytes(lines[0])
    assert stages.result_of(tmp_path, "mini-code") is None
    write_result(result_in(ran), stages.compact_file(tmp_path, "mini-code"))
    assert result_in(tmp_path).problems == 6, "until there is a whole chunk, the compact file counts"
    stages.run_test(load("random-llada", device="cpu"), Letters(), GRIDS, 6, 3, tmp_path)
    assert {name: tally.solved for name, tally in result_in(tmp_path).test.items()} == {
        name: tally.solved for name, tally in result_in(ran).test.items()
    }


def test_nothing_is_chosen_before_validation_has_finished(random_llada: LM, tmp_path: Path) -> None:
    task = Letters()
    with pytest.raises(SettingsError, match="no validation results yet"):
        stages.run_test(random_llada, task, GRIDS, 2, 2, tmp_path)
    stages.run_validation(random_llada, task, GRIDS[:1], 2, 1, tmp_path)
    with pytest.raises(SettingsError, match="Adaptive Parallel, SOAR, K=2, Deliberate: not validated"):
        stages.run_test(random_llada, task, GRIDS, 2, 2, tmp_path)
    results = next(stages.folder_of(tmp_path, task.name, stages.VALIDATION).rglob(RESULTS))
    results.write_bytes(results.read_bytes()[:-1])
    with pytest.raises(SettingsError, match="has not finished"):
        stages.run_test(random_llada, task, GRIDS[:1], 2, 2, tmp_path)


def test_another_grid_for_one_strategy_is_refused_with_what_to_do(random_llada: LM, tmp_path: Path) -> None:
    task = Letters()
    stages.run_validation(random_llada, task, GRIDS[:2], 2, 2, tmp_path)
    other = [GRIDS[0], replace(GRIDS[1], points=[AdaptiveParallel(0.7)])]
    with pytest.raises(SettingsError, match=r"no longer in the grid. Remove the results of the strategy"):
        stages.run_test(random_llada, task, other, 2, 2, tmp_path)


# The page


def crafted(soar: str = "1" * 60 + "0" * 40, deliberate: str = "1" * 80 + "0" * 20) -> TaskResult:
    """100 problems, of which greedy solves the first 60."""
    greedy = "1" * 60 + "0" * 40
    trials = {
        "Greedy": {"n=1": Trial(60, 4000), "n=2": Trial(50, 2000), "n=3": Trial(40, 1400)},
        SOAR_2: {"tau=0.9": Trial(55, 1300), "tau=0.99": Trial(60, 2000), "tau=0.999": Trial(61, 4000)},
        "FreeDave": {"drafts=2": Trial(60, 5000)},
        DELIBERATE: {"tau=0.9": Trial(70, 2500), "tau=0.99": Trial(80, 3000)},
    }
    test = {
        BASELINE: Tally(greedy, 4000, 4000, 4000, 10.0),
        "Greedy: n=3": Tally("1" * 40 + "0" * 60, 4000, 1400, 1400, 3.5),
        "Greedy: n=2": Tally("1" * 50 + "0" * 50, 4000, 2000, 2000, 5.0),
        f"{SOAR_2}: tau=0.9": Tally("1" * 55 + "0" * 45, 4000, 1300, 1000, 4.0),
        f"{SOAR_2}: tau=0.99": Tally(greedy, 4000, 2000, 1600, 6.0),
        f"{SOAR_2}: tau=0.999": Tally(soar, 4000, 4000, 2500, 9.0),
        "FreeDave: drafts=2": Tally(greedy, 4000, 5000, 2600, 11.0),
        f"{DELIBERATE}: tau=0.9": Tally("0" * 30 + "1" * 70, 4000, 2500, 2000, 8.0),
        f"{DELIBERATE}: tau=0.99": Tally(deliberate, 4000, 3200, 2500, 9.5),
    }
    versions = {"torch": "2.9"}
    settings = {"task": "mini-code", "model": "m", "dtype": "d", "threads": 1, "versions": versions, "canvas": 44}
    timing = {16: {BASELINE: Tally("1", 40, 40, 40, 0.5), f"{DELIBERATE}: tau=0.9": Tally("1", 40, 20, 18, 0.3)}}
    machine = {"cpu": "a processor", "cores": 2}
    return TaskResult({**settings, "problems": 100}, machine, [], 100, trials, test, timing)


def test_the_page_shows_what_the_tallies_say() -> None:
    text = report.markdown([crafted()])
    assert "Model m (d); a processor, 2 cores, 1 threads; torch 2.9." in text
    assert (
        "| Greedy | n=1 | careful, free | 60.0% (50.2% to 69.1%) | 40.0 | 1.00 | 40.0 | 1.00 | 0.100 | 1.00 |  | 1.000"
        in text
    )
    assert (
        "|  | tau=0.99 | careful, free | 80.0% (71.1% to 86.7%)↑ | 32.0 | 1.28 | 25.0 | 1.25 | 0.095 | 1.05 |" in text
    )
    assert "2e-06 (+20/-0) | 2e-06 (+20/-0) |" in text
    assert "|  | tau=0.9 | fast | 55.0%" not in text, "a strategy is named in its first row"
    assert f"| {SOAR_2} | tau=0.9 | fast | 55.0%" in text
    assert f"| {DELIBERATE}: tau=0.9 | 0.50 | 0.60 |" in text


def test_in_short_there_is_the_careful_setting_of_each_strategy() -> None:
    lines = list(report.short_section([crafted()]))
    assert "| strategy | mini-code |" in lines
    assert f"| {SOAR_2} | 60.0% at 40.0 |" in lines
    assert f"| {DELIBERATE} | **80.0%↑** at 32.0 |" in lines
    assert "| Greedy | 60.0% at 40.0 |" in lines
    assert "| FreeDave |  |" in lines, "it has no setting within greedy's forwards"


def test_greedy_in_short_is_the_one_forwards_are_measured_by() -> None:
    result = crafted()
    better = {**result.trials, "Greedy": {**result.trials["Greedy"], "n=2": Trial(90, 2000)}}
    other = replace(result, trials=better)
    assert other.picked("Greedy", "careful") == "Greedy: n=2"
    assert "| Greedy | 60.0% at 40.0 |" in list(report.short_section([other]))


def test_p_against_soar_is_of_the_same_problems() -> None:
    figures = report.figures(crafted(soar="0" * 40 + "1" * 60))
    assert figures["soar"] == f"{SOAR_2}: tau=0.999"
    tested = figures["methods"][f"{DELIBERATE}: tau=0.99"]["against_soar"][f"{SOAR_2}: tau=0.999"]
    assert (tested["gained"], tested["lost"]) == (40, 20)
    assert tested["p_value"] == pytest.approx(0.0135, abs=1e-4)
    assert figures["timing"]["16"][f"{DELIBERATE}: tau=0.9"]["seconds_of_greedy"] == pytest.approx(0.6)


def test_aup_is_of_a_strategys_settings_against_the_best_of_all() -> None:
    found = report.aup(crafted())
    assert found["FreeDave"] == pytest.approx(0.8 * 60)
    assert found["Greedy"] == pytest.approx(60), "its faster settings are more than 5 points worse"
    assert found[DELIBERATE] == pytest.approx(1.25 * 80), "so is Deliberate's faster one"
    assert found[SOAR_2] > 2 * 60 * 0.5


def test_the_table_has_a_cell_for_every_column() -> None:
    rows = [line for line in report.markdown([crafted()]).splitlines() if line.startswith("|") and "%" in line]
    wide = [row for row in rows if " to " in row]
    assert len(wide) == 9
    assert {row.count("|") for row in wide} == {len(report.HEAD) + len(report.MORE) + 1}


# The figure


def test_the_front_is_what_nothing_beats() -> None:
    costs = {"a": (1, 50), "b": (2, 50), "c": (2, 60), "d": (3, 55), "e": (3, 60), "f": (4, 61)}
    points = [pareto.Point(name, *place) for name, place in costs.items()]
    assert [point.name for point in pareto.front(points)] == ["a", "c", "f"]
    assert [point.name for point in pareto.front(points[::-1])] == ["a", "c", "f"]


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 200)), max_size=12))
def test_labels_overlap_neither_each_other_nor_dots(anchors: list[tuple[float, float]]) -> None:
    area = pareto.Box(0, 0, 300, 200)
    dots = [pareto.Box(x - 3, y - 3, 6, 6) for x, y in anchors]
    found = pareto.placed(anchors, [(60, 10)] * len(anchors), area, dots)
    boxes = [box for box in found if box is not None]
    assert all(box.within(area) for box in boxes)
    assert not any(one.overlaps(dot) for one in boxes for dot in dots)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


def test_a_label_in_the_open_is_beside_its_dot() -> None:
    (box,) = pareto.placed([(150.0, 100.0)], [(60.0, 10.0)], pareto.Box(0, 0, 300, 200))
    assert box == pareto.Box(120.0, 105.0, 60.0, 10.0)
    assert pareto.placed([(150.0, 100.0)], [(400.0, 10.0)], pareto.Box(0, 0, 300, 200)) == [None]


def test_the_front_greedy_and_soar_are_labelled() -> None:
    forwards, _ = pareto.points_of(crafted())
    names = [point.name for point in pareto.labelled(forwards)]
    assert BASELINE in names
    assert f"{SOAR_2}: tau=0.99" in names
    assert f"{DELIBERATE}: tau=0.99" in names
    assert len(set(names)) == len(names)


def test_the_figure_is_an_svg_and_comes_out_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    for path in (first, second):
        pareto.draw(crafted(), path)
    assert first.read_bytes() == second.read_bytes()
    root = ElementTree.fromstring(first.read_text())
    assert root.tag.endswith("svg")
    text = first.read_text()
    for label in ("mini-code: 100 problems, m", "forwards per problem", "a processor", SOAR_2, DELIBERATE):
        assert label in text
    assert "dc:date" not in text
    pareto.draw(crafted(deliberate="1" * 90 + "0" * 10), second)
    assert first.read_bytes() != second.read_bytes()


# The command


def test_the_command_decodes_reports_and_shows_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All stages on a task of nonsense; then the page again, from the compact file alone."""
    few = [replace(grid, points=grid.points[:1]) for grid in GRIDS]
    monkeypatch.setitem(CONTESTS, "mini-code", Contest("mini-code", "random-llada"))
    monkeypatch.setattr(command, "grids", lambda event: few)
    monkeypatch.setattr(command, "make_task", lambda name: Letters())
    output, docs = tmp_path / "out", tmp_path / "docs"
    places = ["--output", str(output), "--docs", str(docs)]
    command.main(["--tasks", "mini-code", "--limit", "3", "--validation", "2", "--timing", "2", *places])
    page = (docs / "arena.md").read_text()
    assert capsys.readouterr().out == page + "\n"
    figures = json.loads((output / "arena.json").read_text())
    assert list(figures) == ["mini-code"]
    assert set(figures["mini-code"]["timing"]) == {"16", "1"}
    figure = docs / "figures" / "arena-mini-code.svg"
    assert f"(figures/{figure.name})" in page
    drawn = figure.read_bytes()
    (output / "results").rename(tmp_path / "elsewhere")
    figure.unlink()
    command.main(["--show", *places])
    assert (docs / "arena.md").read_text() == page
    assert figure.read_bytes() == drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "mini-cod"], "mini-code"),
        (["--stages", "tests"], "Did you mean 'test'"),
        (["--show"], "no test results"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=message):
        command.main([*arguments, "--output", str(tmp_path), "--docs", str(tmp_path)])


@pytest.mark.parametrize("content", ["{}", '{"settings": 1', "[]"])
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    stages.compact_file(tmp_path, "mini-code").write_text(content)
    with pytest.raises(SystemExit, match=r"arena: .*mini-code\.json"):
        command.main(["--show", "--output", str(tmp_path), "--docs", str(tmp_path)])


def test_a_file_without_tallies_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text(
        json.dumps({"settings": {}, "machine": {}, "library": [], "validation": 1, "trials": {}, "test": 3})
    )
    with pytest.raises(InputFileError, match="not a result of the arena"):
        read_result(path)


# What is committed


@pytest.mark.skipif(not COMMITTED, reason="no results of the arena are committed yet")
def test_the_committed_page_follows_from_the_committed_results() -> None:
    results = [read_result(stages.compact_file(DOCS / "results" / "arena", task)) for task in COMMITTED]
    assert (DOCS / "arena.md").read_text() == report.markdown(results)
    assert (DOCS / "results" / "arena" / "arena.json").read_text() == command.data(results)


@pytest.mark.parametrize("task", COMMITTED)
def test_what_entered_was_chosen_on_validation_problems(task: str) -> None:
    result = read_result(stages.compact_file(DOCS / "results" / "arena", task))
    choice = choice_of(result.trials)
    names = [f"{strategy}: {setting}" for strategy, settings in choice.items() for setting in settings]
    assert set(result.test) == {BASELINE, *names}
    assert all(len(tally.solved) == result.problems for tally in result.test.values())
    assert (DOCS / "figures" / report.figure_name(task)).exists()
