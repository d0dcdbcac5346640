"""The arena: who enters, which settings are chosen, what the page says, that it follows from compact results."""

from __future__ import annotations

import json
import random
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from benchmarks.arena import __main__ as command
from benchmarks.arena import accumulate, pareto, report
from benchmarks.arena.accumulate import ROWS, known, save, timed_methods
from benchmarks.arena.choice import CAREFUL, Trial, chosen
from benchmarks.arena.compact import (
    Origin,
    Run,
    Standing,
    TaskResult,
    Validation,
    choice_of,
    entering,
    read_result,
    write_result,
)
from benchmarks.arena.entrants import (
    BASELINE,
    CONTESTS,
    DELIBERATE,
    SOAR_2,
    Contest,
    Entrant,
    Grid,
    contest,
    grids,
    parts_of,
)
from benchmarks.arena.files import locked
from benchmarks.arena.places import TEST, VALIDATION, compact_file, report_lock, strategy_folder
from benchmarks.arena.stages import Bout, Counts
from benchmarks.arena.tallies import Tally, tallies

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


def test_deliberate_enters_with_drafts_alone_and_with_searches() -> None:
    (grid,) = (grid for grid in grids(CONTESTS["mini-code"]) if grid.strategy == DELIBERATE)
    settings = {entrant.setting: entrant.method for entrant in grid.entrants}
    assert settings["tau=0.99, draft alone"] == Deliberate(threshold=0.99, skip=0.0)
    assert settings["tau=0.99, accept=-0.2, tries=4"] == Deliberate(threshold=0.99, accept=-0.2, tries=4)


# Which settings are chosen


def test_each_bound_chooses_its_most_accurate_setting() -> None:
    trials = {
        "a": Trial(40, 300),  # fast: at most 300 of greedy's 900
        "b": Trial(50, 301),
        "c": Trial(60, 405),  # middle: at most 9/20
        "d": Trial(62, 406),
        "e": Trial(63, 900),  # careful
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


COUNTS = Counts(validation=4, test=6, timing=2, chunk=3)
NAMES = [grid.strategy for grid in GRIDS]


def bout(output: Path, grids: Sequence[Grid] = GRIDS, counts: Counts = COUNTS, again: bool = False) -> Bout:
    """A contest in nonsense."""
    return Bout(load("random-llada", device="cpu"), Letters(), grids, output, counts, again)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a tiny run of all stages; not to be changed."""
    output = tmp_path_factory.mktemp("arena")
    whole = bout(output)
    whole.validate(NAMES)
    whole.test(NAMES)
    for rows in ROWS:
        replace(whole, lm=load("random-llada", engine=EngineSettings(max_rows=rows))).time()
    return output


@pytest.fixture
def copy(ran: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    shutil.copytree(ran, tmp_path / "arena")
    return tmp_path / "arena"


def result_in(output: Path) -> TaskResult:
    result, _ = known(output, "mini-code")[0].comparable()
    assert result is not None
    return result


def solved(result: TaskResult) -> dict[str, str]:
    return {name: tally.solved for name, tally in result.test.items()}


def cut(folder: Path, lines: int) -> None:
    """Leave that many records of a run, as if it had been killed after them."""
    results = folder / RESULTS
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:lines]))


def test_what_entered_is_what_the_validation_results_choose(ran: Path) -> None:
    result = result_in(ran)
    names = [name for strategy, own in result.choice.items() for name in entering(strategy, own)]
    assert list(result.test) == names
    assert next(iter(result.test)) == BASELINE
    assert {name: list(own.validation.trials) for name, own in result.strategies.items()} == {
        grid.strategy: [entrant.setting for entrant in grid.entrants] for grid in GRIDS
    }
    assert (result.validation, result.baseline.done) == (4, 6)
    trials = result.strategies["Greedy"].validation.trials
    assert trials["n=1"].forwards >= trials["n=3"].forwards


def test_the_timing_runs_have_greedy_soar_and_two_settings_of_deliberate(ran: Path) -> None:
    result = result_in(ran)
    assert list(result.timing) == [16, 1]
    for run in result.timing.values():
        assert next(iter(run.tallies)) == BASELINE
        assert {parts_of(name)[0] for name in run.tallies} <= {"Greedy", "Adaptive Parallel", SOAR_2, DELIBERATE}
        assert f"{DELIBERATE}: {next(iter(result.choice[DELIBERATE]))}" in run.tallies
        assert all(len(tally.solved) == 2 and tally.seconds > 0 for tally in run.tallies.values())


def test_the_quickest_and_the_careful_settings_are_timed() -> None:
    choice: dict[str, dict[str, tuple[str, ...]]] = {
        "Greedy": {"n=2": ("fast",), "n=1": ("careful",)},
        SOAR_2: {"a": ("fast",), "b": ("careful", "free")},
        DELIBERATE: {"q": ("middle",), "c": ("careful",), "f": ("free",)},
    }
    assert timed_methods(choice) == [BASELINE, f"{SOAR_2}: b", f"{DELIBERATE}: q", f"{DELIBERATE}: c"]


def test_a_compact_file_holds_all_of_it(ran: Path, tmp_path: Path) -> None:
    result, file = result_in(ran), compact_file(tmp_path, "mini-code")
    write_result(result, file)
    assert result_in(tmp_path) == about(result)
    assert command.data([read_result(file)]) == command.data([result])
    assert report.markdown([read_result(file)]) == report.markdown([result])


def test_every_strategy_is_saved_as_soon_as_it_is_done(ran: Path) -> None:
    assert read_result(compact_file(ran, "mini-code")) == about(known(ran, "mini-code")[0])


# One strategy after the other


def test_two_processes_one_after_the_other_have_what_one_would_have(ran: Path, tmp_path: Path) -> None:
    """The second has its strategies in another order, and begins before greedy and the first are tested."""
    bout(tmp_path).validate([SOAR_2, "Greedy"])
    bout(tmp_path).validate([DELIBERATE])
    bout(tmp_path).test([DELIBERATE])
    found, notes = known(tmp_path, "mini-code")[0].comparable()
    assert (found, notes) == (None, ["mini-code is left out: greedy is not tested yet."])
    bout(tmp_path).test(["Greedy"])
    found, notes = known(tmp_path, "mini-code")[0].comparable()
    assert found is not None
    assert list(found.runs) == ["Greedy", DELIBERATE]
    assert notes == [f"mini-code: {SOAR_2} is left out: it is not tested yet."]
    bout(tmp_path).test([SOAR_2])
    all_but_one = {name: text for name, text in solved(result_in(ran)).items() if parts_of(name)[0] != NAMES[1]}
    assert solved(result_in(tmp_path)) == all_but_one, "in the order of tables"


def test_a_new_day_goes_on_from_the_compact_file(ran: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bout(tmp_path).validate(NAMES)
    bout(tmp_path).test(["Greedy"])
    shutil.rmtree(tmp_path / "results")
    capsys.readouterr()
    bout(tmp_path).validate(NAMES)
    bout(tmp_path).test(NAMES)
    said = capsys.readouterr().err
    assert said.count("validation, ") == said.count("done before") - 1 == len(NAMES)
    assert "mini-code, test, Greedy: done before, by the compact file" in said
    assert not strategy_folder(tmp_path, "mini-code", TEST, "Greedy").exists()
    assert solved(result_in(tmp_path)) == solved(result_in(ran))
    shutil.rmtree(tmp_path / "results")
    assert solved(result_in(tmp_path)) == solved(result_in(ran))


def test_again_decodes_what_is_known(copy: Path) -> None:
    before = result_in(copy)
    shutil.rmtree(copy / "results")
    bout(copy, again=True).test([SOAR_2])
    assert [path.name for path in (copy / "results" / "mini-code.test").iterdir()] == ["soar-k-2"]
    assert solved(result_in(copy)) == solved(before)
    assert result_in(copy).timing == about(before.timing)


def test_a_finished_folder_replaces_what_the_compact_file_says_of_the_strategy(copy: Path) -> None:
    file = compact_file(copy, "mini-code")
    result = read_result(file)
    wrong = {name: claimed(one, "1" * 6) for name, one in result.strategies.items()}
    write_result(replace(result, strategies=wrong), file)
    shutil.rmtree(strategy_folder(copy, "mini-code", TEST, SOAR_2))
    save(copy, "mini-code")
    found = solved(read_result(file))
    assert {text for name, text in found.items() if parts_of(name)[0] == SOAR_2} == {"1" * 6}, "has no folder"
    others = [name for name in found if parts_of(name)[0] != SOAR_2]
    assert [found[name] for name in others] == [result.test[name].solved for name in others]


def claimed(standing: Standing, answers: str) -> Standing:
    """The standing as if the strategy had solved these test problems."""
    assert standing.test is not None
    wrong = {name: replace(tally, solved=answers) for name, tally in standing.test.tallies.items()}
    return replace(standing, test=replace(standing.test, tallies=wrong))


def test_another_grid_is_validated_anew_and_drops_the_old_test(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = result_in(copy)
    shutil.rmtree(copy / "results")
    other = [GRIDS[0], replace(GRIDS[1], points=[AdaptiveParallel(0.7), AdaptiveParallel(0.02)]), *GRIDS[2:]]
    with pytest.raises(
        SettingsError, match=r"validated on mini-code with other settings \(methods\)\. Use those, or run"
    ):
        bout(copy, other).test(NAMES)
    bout(copy, other).validate(NAMES)
    said = capsys.readouterr().err
    assert said.count("done before") == len(NAMES) - 1
    assert f"validation, {NAMES[1]}: the compact file has other settings (methods); decoded anew" in said
    result, notes = read_result(compact_file(copy, "mini-code")), known(copy, "mini-code")[1]
    assert list(result.strategies[NAMES[1]].validation.trials) == ["tau=0.7", "tau=0.02"]
    assert result.strategies[NAMES[1]].test is None
    assert notes == [], "it is gone from the compact file as well"
    bout(copy, other).test(NAMES)
    found = result_in(copy)
    now = solved(found)
    assert [name for name in now if parts_of(name)[0] == NAMES[1]] == entering(NAMES[1], found.choice[NAMES[1]])
    assert {name: text for name, text in now.items() if parts_of(name)[0] != NAMES[1]} == {
        name: text for name, text in solved(before).items() if parts_of(name)[0] != NAMES[1]
    }


def test_a_setting_that_names_do_not_show_is_another_grid_too(copy: Path) -> None:
    shutil.rmtree(copy / "results")
    other = [*GRIDS[:3], replace(GRIDS[3], points=[Deliberate(tau, tries=2) for tau in (0.01, 0.02)])]
    assert [one.name for one in other[3].entrants] == [one.name for one in GRIDS[3].entrants]
    bout(copy, other).validate([DELIBERATE])
    assert read_result(compact_file(copy, "mini-code")).strategies[DELIBERATE].test is None


def test_a_folder_of_another_grid_is_refused_with_what_to_do(copy: Path) -> None:
    other = [GRIDS[0], replace(GRIDS[1], points=[AdaptiveParallel(0.7)])]
    with pytest.raises(SettingsError, match=r"Use those, or remove .*adaptive-parallel and run --stages validation"):
        bout(copy, other).test(NAMES[:2])
    with pytest.raises(SettingsError, match=r"adaptive-parallel has results of other settings \(methods\)"):
        bout(copy, other).validate(NAMES[:2])


def test_other_validation_problems_do_not_count(copy: Path) -> None:
    shutil.rmtree(copy / "results")
    more = replace(COUNTS, validation=5)
    with pytest.raises(SettingsError, match=r"other settings \(problems, problems_sha256\)"):
        bout(copy, counts=more).test(NAMES)
    bout(copy, counts=more).validate(["Greedy"])
    with pytest.raises(SettingsError, match=f"{NAMES[1]}: validated"):
        bout(copy, counts=more).test(NAMES)
    found, notes = known(copy, "mini-code")[0].comparable()
    assert found is not None
    assert list(found.runs) == ["Greedy"]
    expected = "it was validated with other settings than greedy (problems, problems_sha256)"
    assert notes == [f"mini-code: {name} is left out: {expected}." for name in NAMES[1:]]


def test_other_test_problems_are_not_compared(copy: Path) -> None:
    shutil.rmtree(copy / "results")
    bout(copy, counts=replace(COUNTS, test=5)).test([SOAR_2])
    found, notes = known(copy, "mini-code")[0].comparable()
    assert found is not None
    assert SOAR_2 not in found.runs
    assert notes == [
        f"mini-code: {SOAR_2} is left out: it was tested with other settings than greedy (problems, problems_sha256)."
    ]


def test_an_unfinished_test_counts_only_if_nothing_else_is_known(copy: Path) -> None:
    whole, folder = result_in(copy), strategy_folder(copy, "mini-code", TEST, SOAR_2)
    settings, file = len(whole.runs[SOAR_2].tallies), compact_file(copy, "mini-code")
    cut(folder, 3 * settings + 1)
    result, notes = known(copy, "mini-code")
    assert solved(result) == solved(whole)
    assert notes == [f"mini-code: the test of {SOAR_2} has not finished (3 of 6 problems); earlier results count."]
    untested = {**result.strategies, SOAR_2: replace(result.strategies[SOAR_2], test=None)}
    write_result(replace(result, strategies=untested), file)
    part, notes = known(copy, "mini-code")
    assert notes == []
    assert {name: run.done for name, run in part.unfinished.items()} == {SOAR_2: 3}
    assert solved(part) == {name: text[:3] if SOAR_2 in name else text for name, text in solved(whole).items()}
    save(copy, "mini-code")
    cut(folder, 1)
    assert solved(known(copy, "mini-code")[0]) == solved(part), "more problems count more"
    write_result(replace(result, strategies=untested), file)
    assert known(copy, "mini-code")[1] == [f"mini-code: the test of {SOAR_2} has just begun; it is left out."]
    bout(copy).test([SOAR_2])
    assert solved(result_in(copy)) == solved(whole), "resumed"


def test_an_unfinished_test_of_greedy_is_reported_as_far_as_it_goes(copy: Path) -> None:
    cut(strategy_folder(copy, "mini-code", TEST, "Greedy"), 3 * 3 + 2)
    compact_file(copy, "mini-code").unlink()
    result = result_in(copy)
    assert "3 of 6 test problems" in report.markdown([result])
    assert result.speed_up(f"{DELIBERATE}: {next(iter(result.choice[DELIBERATE]))}") is None
    gained = result.against(f"{SOAR_2}: {next(iter(result.choice[SOAR_2]))}", BASELINE)
    assert gained.gained + gained.lost <= 3


def test_nothing_is_chosen_before_validation_has_finished(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Greedy, Adaptive Parallel: not validated on mini-code yet"):
        bout(tmp_path).test(["Adaptive Parallel"])
    bout(tmp_path).validate(["Greedy"])
    with pytest.raises(SettingsError, match=r"SOAR, K=2, Deliberate: not .* --strategies soar-k-2,deliberate\."):
        bout(tmp_path).test([SOAR_2, DELIBERATE])
    compact_file(tmp_path, "mini-code").unlink()
    cut(strategy_folder(tmp_path, "mini-code", VALIDATION, "Greedy"), 3)
    assert known(tmp_path, "mini-code")[1] == ["mini-code: Greedy is left out: its validation has not finished."]
    with pytest.raises(SettingsError, match="Greedy: not validated"):
        bout(tmp_path).test(["Greedy"])


def test_a_strategy_is_decoded_by_one_process_at_a_time(tmp_path: Path) -> None:
    folder = strategy_folder(tmp_path, "mini-code", VALIDATION, "Greedy")
    with locked(folder / "lock"), pytest.raises(SettingsError, match="Another process is at mini-code, validation, Gr"):
        bout(tmp_path).validate(["Greedy"])
    bout(tmp_path).validate(["Greedy"])


def test_whoever_reports_holds_the_lock_from_reading_to_writing(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a process would write over what another has added since it read the file."""
    shutil.copytree(ran, tmp_path / "out")
    held: list[str] = []

    def watched(name: str) -> None:
        original = getattr(accumulate, name)

        def call(*arguments: object) -> object:
            with pytest.raises(SettingsError, match="held"), locked(report_lock(tmp_path / "out"), "held"):
                pass
            held.append(name)
            return original(*arguments)

        monkeypatch.setattr(accumulate, name, call)

    watched("read_result")
    watched("write_result")
    save(tmp_path / "out", "mini-code")
    command.write_report(tmp_path / "out", tmp_path / "docs")
    assert held == ["read_result", "write_result"] * 2


# The page


ORIGIN = Origin(
    settings={
        "task": "mini-code",
        "model": "m",
        "dtype": "d",
        "threads": 1,
        "versions": {"torch": "2.9"},
        "canvas": 44,
        "problems": 100,
    },
    machine={"cpu": "a processor", "cores": 2},
    library=[],
)


def crafted(soar: str = "1" * 60 + "0" * 40, deliberate: str = "1" * 80 + "0" * 20) -> TaskResult:
    """100 problems, of which greedy solves the first 60."""
    greedy = "1" * 60 + "0" * 40
    trials = {
        "Greedy": {"n=1": Trial(60, 4000), "n=2": Trial(50, 2000), "n=3": Trial(40, 1400)},
        SOAR_2: {"tau=0.9": Trial(55, 1300), "tau=0.99": Trial(60, 1800), "tau=0.999": Trial(61, 4000)},
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
    standings = {}
    for strategy, own in trials.items():
        run = Run(ORIGIN, {name: tally for name, tally in test.items() if parts_of(name)[0] == strategy})
        standings[strategy] = Standing(Validation(ORIGIN, own), run)
    timed = {BASELINE: Tally("1", 40, 40, 40, 0.5), f"{DELIBERATE}: tau=0.9": Tally("1", 40, 20, 18, 0.3)}
    timing = {16: Run(replace(ORIGIN, settings={**ORIGIN.settings, "problems": 1}), timed)}
    return TaskResult("mini-code", standings, timing)


def with_test(result: TaskResult, strategy: str, run: Run) -> TaskResult:
    """The result with another test of a strategy."""
    return replace(result, strategies={**result.strategies, strategy: replace(result.strategies[strategy], test=run)})


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
    assert not any(line.startswith("| FreeDave |") for line in lines), "it has no setting within greedy's forwards"
    half = lines[lines.index("The same of the middle settings, which are to keep to half of greedy's forwards:") :]
    assert f"| {SOAR_2} | **60.0%** at 20.0 |" in half
    assert not any(line.startswith(f"| {DELIBERATE} |") for line in half)


def test_greedy_in_short_is_the_one_forwards_are_measured_by() -> None:
    result = crafted()
    greedy = result.strategies["Greedy"]
    better = replace(greedy.validation, trials={**greedy.validation.trials, "n=2": Trial(90, 2000)})
    other = replace(result, strategies={**result.strategies, "Greedy": replace(greedy, validation=better)})
    assert other.picked("Greedy", "careful") == "Greedy: n=2"
    assert "| Greedy | 60.0% at 40.0 |" in list(report.short_section([other]))


def test_p_against_soar_is_of_the_same_problems() -> None:
    figures = report.figures(crafted(soar="0" * 40 + "1" * 60))
    assert figures["soar"] == f"{SOAR_2}: tau=0.999"
    tested = figures["methods"][f"{DELIBERATE}: tau=0.99"]["against_soar"][f"{SOAR_2}: tau=0.999"]
    assert (tested["gained"], tested["lost"]) == (40, 20)
    assert tested["p_value"] == pytest.approx(0.0135, abs=1e-4)
    assert figures["timing"]["16"]["methods"][f"{DELIBERATE}: tau=0.9"]["seconds_of_greedy"] == pytest.approx(0.6)


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


def test_times_are_compared_on_the_same_machine_only(tmp_path: Path) -> None:
    one = crafted()
    runs = one.runs
    elsewhere = replace(ORIGIN, machine={"cpu": "another", "cores": 2})
    other = with_test(one, SOAR_2, replace(runs[SOAR_2], origin=elsewhere))
    threads = replace(ORIGIN, settings={**ORIGIN.settings, "threads": 2})
    other = with_test(other, "FreeDave", replace(runs["FreeDave"], origin=threads))
    assert "Seconds were measured on" not in report.markdown([one])
    text = report.markdown([other])
    assert (
        "Seconds were measured on 3 machines: A (greedy's, a processor, 2 cores, 1 threads), "
        "B (another, 2 cores, 1 threads), C (a processor, 2 cores, 2 threads)."
    ) in " ".join(text.split())
    assert "| 40.0 | 1.00 | 0.100 (A) | 1.00 |  |" in text
    assert "| 16.0 | 2.00 | 0.060 (B) |  | 1.000" in text
    assert "| 26.0 | 0.80 | 0.110 (C) |  | 1.000" in text
    assert "Time beside forwards on 1 problems (a processor, 2 cores, 1 threads), decoded in turns" in text
    figures = report.figures(other)
    speeds = {name: own["speed_up"] for name, own in figures["methods"].items()}
    assert {parts_of(name)[0] for name, speed in speeds.items() if speed is None} == {SOAR_2, "FreeDave"}
    assert speeds[f"{DELIBERATE}: tau=0.9"] == pytest.approx(10 / 8)
    assert figures["origins"][SOAR_2]["machine"]["cpu"] == "another"
    forwards, seconds = pareto.points_of(other)
    assert [point.name for point in forwards] == list(other.test)
    assert {parts_of(point.name)[0] for point in seconds} == {"Greedy", DELIBERATE}
    pareto.draw(other, tmp_path / "figure.svg")
    assert "seconds per problem (a processor)" in (tmp_path / "figure.svg").read_text()


def test_what_has_not_finished_is_in_the_table_only() -> None:
    one = crafted()
    few = {name: replace(tally, solved=tally.solved[55:75]) for name, tally in one.runs[SOAR_2].tallies.items()}
    result = with_test(one, SOAR_2, replace(one.runs[SOAR_2], tallies=few))
    text = report.markdown([result])
    assert f"Not finished: {SOAR_2} (20 of 100). For these p compares the problems that both have decoded;" in text
    assert f"| {SOAR_2} | tau=0.9 | fast | 0.0% (0.0% to 16.1%)↓ |" in text
    assert "2e-06 (+0/-20) | " in text
    assert SOAR_2 not in report.aup(result)
    assert not any(line.startswith(f"| {SOAR_2} |") for line in report.short_section([result]))
    assert not any(parts_of(point.name)[0] == SOAR_2 for points in pareto.points_of(result) for point in points)
    assert result.speed_up(f"{SOAR_2}: tau=0.9") is None


# The figure


def test_the_front_is_what_nothing_beats() -> None:
    costs = {"a": (1, 50), "b": (2, 50), "c": (2, 60), "d": (3, 55), "e": (3, 60), "f": (4, 61)}
    points = [pareto.Point(name, *place) for name, place in costs.items()]
    assert [point.name for point in pareto.front(points)] == ["a", "c", "f"]
    assert [point.name for point in pareto.front(points[::-1])] == ["a", "c", "f"]


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


@pytest.fixture
def nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with a task of nonsense, and one setting of each strategy."""
    few = [replace(grid, points=grid.points[:1]) for grid in GRIDS]
    monkeypatch.setitem(CONTESTS, "mini-code", Contest("mini-code", "random-llada"))
    monkeypatch.setattr(command, "grids", lambda event: few)
    monkeypatch.setattr(command, "make_task", lambda name: Letters())


@pytest.mark.usefixtures("nonsense")
def test_the_command_decodes_reports_and_shows_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All stages; then the page again, from the compact file alone."""
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


@pytest.mark.usefixtures("nonsense")
def test_the_command_decodes_strategy_by_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A day for validation, one for two strategies, one for another; what is not tested is named."""
    output, docs = tmp_path / "out", tmp_path / "docs"
    given = ["--tasks", "mini-code", "--limit", "3", "--validation", "2"]
    given += ["--output", str(output), "--docs", str(docs)]
    command.main([*given, "--stages", "validation"])
    assert not (docs / "arena.md").exists()
    assert capsys.readouterr().out == ""
    shutil.rmtree(output / "results")
    command.main([*given, "--stages", "test", "--strategies", "soar-k-2"])
    said = capsys.readouterr()
    assert said.out == "", "there is nothing to compare with yet"
    assert "arena: mini-code is left out: greedy is not tested yet." in said.err
    command.main([*given, "--stages", "test", "--strategies", "SOAR, K=2,greedy"])
    said = capsys.readouterr()
    assert f"| {SOAR_2} | " in said.out
    assert f"| {DELIBERATE} | " not in said.out
    assert f"arena: mini-code: {DELIBERATE} is left out: it is not tested yet." in said.err
    shutil.rmtree(output / "results")
    command.main([*given, "--strategies", "deliberate"])
    said = capsys.readouterr()
    assert "validation, Deliberate: done before" in said.err
    assert all(f"| {strategy} | " in said.out for strategy in ("Greedy", SOAR_2, DELIBERATE))
    assert list(read_result(compact_file(output, "mini-code")).runs) == ["Greedy", SOAR_2, DELIBERATE]


def test_strategies_are_named_as_in_tables_or_as_their_folders() -> None:
    names = [grid.strategy for grid in grids(contest("mini-gsm"))]
    assert command.strategies_of(",".join(names), names) == names
    assert command.strategies_of("soar-k-4, frechet,SOAR,K=2", names) == ["SOAR, K=4", "Fréchet", SOAR_2]


def test_some_strategies_have_no_timing() -> None:
    assert command.stages_of(None, some=True) == ["validation", "test"]
    assert command.stages_of(None, some=False) == ["validation", "test", "timing"]
    assert command.stages_of("timing", some=False) == ["timing"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "mini-cod"], "mini-code"),
        (["--stages", "tests"], "Did you mean 'test'"),
        (["--show"], "no test results"),
        (["--strategies", "clas"], "Did you mean 'klass'"),
        (["--strategies", ","], "names none"),
        (["--strategies", "klass", "--stages", "timing"], "run them without --strategies"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=message):
        command.main([*arguments, "--output", str(tmp_path), "--docs", str(tmp_path)])


@pytest.mark.parametrize("content", ["{}", '{"settings": 1', "[]"])
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    compact_file(tmp_path, "mini-code").write_text(content)
    with pytest.raises(SystemExit, match=r"arena: .*mini-code\.json"):
        command.main(["--show", "--output", str(tmp_path), "--docs", str(tmp_path)])


@pytest.mark.parametrize(
    "strategies",
    [3, {"Greedy": {"validation": {"origin": {}, "trials": {}}, "test": None}}, {"Greedy": {"test": None}}],
)
def test_a_file_without_tallies_is_no_result(strategies: object, tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"task": "mini-code", "strategies": strategies, "timing": {}}))
    with pytest.raises(InputFileError, match="not a result of the arena"):
        read_result(path)


# What is committed


def committed(task: str) -> TaskResult | None:
    """What the page shows of a task; None if there is nothing yet."""
    file = compact_file(DOCS / "results" / "arena", task)
    return read_result(file).comparable()[0] if file.exists() else None


def test_the_committed_page_follows_from_the_committed_results() -> None:
    results = [result for task in CONTESTS if (result := committed(task)) is not None]
    if not results:
        pytest.skip("no results of the arena are committed yet")
    assert (DOCS / "arena.md").read_text() == report.markdown(results)
    assert (DOCS / "results" / "arena" / "arena.json").read_text() == command.data(results)


def test_the_readme_leads_with_the_table_in_short() -> None:
    results = [result for task in CONTESTS if (result := committed(task)) is not None]
    if not results:
        pytest.skip("no results of the arena are committed yet")
    text = (DOCS.parent / "README.md").read_text()
    assert "\n".join(report.short_table(results, CAREFUL)) in text
    assert "(docs/arena.md)" in text.split("```python")[0], "on the first screen"


@pytest.mark.parametrize("task", CONTESTS)
def test_what_entered_was_chosen_on_validation_problems(task: str) -> None:
    result = committed(task)
    if result is None:
        pytest.skip(f"no results of {task} are committed yet")
    choice = choice_of({strategy: standing.validation.trials for strategy, standing in result.strategies.items()})
    for strategy, run in result.runs.items():
        assert list(run.tallies) == entering(strategy, choice[strategy])
        assert {len(tally.solved) for tally in run.tallies.values()} == {run.done}
    assert (DOCS / "figures" / report.figure_name(task)).exists()
