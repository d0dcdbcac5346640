"""Sweeps of Deliberate, and the setting that is taken from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.evals.comparison import Method, compare, summary
from soar_dlm.evals.deliberate_sweeps import (
    DeliberateSweep,
    Point,
    accepts_among,
    deliberate_methods,
    is_deliberate,
    pooled_deliberate,
)
from soar_dlm.evals.measured import BASELINE
from soar_dlm.evals.model_defaults import with_tuned
from soar_dlm.evals.replay import NEVER, UNSCORED, Course, Spent, Stage
from soar_dlm.evals.results import Record, ResultFolder, Results
from soar_dlm.lm import LM, load
from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.models.embedded import embedded_folder
from soar_dlm.presets import read_preset
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.soar import Soar
from soar_dlm.tasks.mini_sudoku import MiniSudoku
from soar_dlm.tasks.mini_sums import MiniSums
from tests.test_evaluate import QUICK, soar
from tests.test_sweeps import measured
from tests.test_sweeps import run as soar_run

METHODS = deliberate_methods([0.9, 0.99], 2, ["open"], "probability", 8)
LOW, HIGH = "Deliberate, tau=0.9", "Deliberate, tau=0.99"


def test_a_sweep_has_greedy_and_deliberate_at_every_threshold() -> None:
    assert list(METHODS) == [BASELINE, LOW, HIGH]
    assert METHODS[LOW].strategy == Deliberate(threshold=0.9, accept=NEVER, tries=2, drafts=["open"])
    assert [method.replay for method in METHODS.values()] == [False, True, True]
    with pytest.raises(SettingsError, match="at least one threshold"):
        deliberate_methods([], 2, ["open"], "probability", 8)
    with pytest.raises(SettingsError, match="length"):
        deliberate_methods([0.9], 2, ["open"], "probability", 0)
    with pytest.raises(UnknownName, match="'open'"):
        deliberate_methods([0.9], 2, ["opne"], "probability", 8)


def course(*stages: tuple[float, int, int, bool], branches: Sequence[int] = (), end: int = 20) -> Course:
    """Stages are (score, branches, forwards, right); the draft takes 2 forwards less than its verification."""
    made = [Stage(score, tried, Spent(at, at), "", right) for score, tried, at, right in stages]
    drafted = Spent(stages[0][2] - 2, stages[0][2] - 2)
    return Course(drafted, tuple(made), tuple(Spent(at, at) for at in branches), Spent(end, end))


SURE = course((-0.001, 0, 6, True), branches=(6, 9), end=12)
HELPED = course((-0.5, 0, 8, False), (-0.002, 1, 14, True), branches=(8, 14), end=20)
MISLED = course((-0.3, 0, 8, True), (-0.1, 2, 16, False), branches=(8, 12), end=16)


def run(task: str, low: Sequence[Course], high: Sequence[Course], greedy: Sequence[bool] | None = None) -> Results:
    """A sweep with these courses at two thresholds; greedy takes 16 forwards."""
    methods: dict[str, Any] = {
        name: {"threshold": method.strategy.threshold, "beam": 1, "metric": "probability"}
        for name, method in METHODS.items()
    }
    for name in (LOW, HIGH):
        methods[name]["replay"] = {"tries": 2, "drafts": ["open"]}
    right = greedy or [True] * len(low)
    records = [Record(i, BASELINE, "", "", ok, 16, 16, 1.0, 0.5, "stop", 1.0, "") for i, ok in enumerate(right)]
    for name, courses in ((LOW, low), (HIGH, high)):
        records += [
            Record(i, name, "", "", own.outcome(NEVER, 2).correct, 1, 1, 1.0, 0.5, "stop", 1.0, "", course=own)
            for i, own in enumerate(courses)
        ]
    known = {"model": "m", "revision": None, "weights_sha256": "w", "task": task, "methods": methods}
    order = {"order": list(METHODS), "problems": len(low), "chunk": len(low)}
    return Results({**known, **order}, {}, records, len(METHODS), 0)


def test_every_point_is_replayed_on_every_problem() -> None:
    found = pooled_deliberate([run("t", [SURE, HELPED, MISLED], [SURE, SURE, SURE])])
    assert (found.model, found.metric, found.drafts) == ("m", "probability", ("open",))
    assert {point.threshold for point in found.points} == {0.9, 0.99}
    assert {point.tries for point in found.points} == {0, 1, 2}
    accept = max(point.accept for point in found.points if point.accept < -0.002)
    for point, correct, forwards in (
        (Point(0.9, skip=0.0), 2, 4 + 6 + 6),
        (Point(0.9, NEVER, 0), 2, 6 + 8 + 8),
        (Point(0.9, NEVER, 1), 3, 9 + 14 + 12),
        (Point(0.9, NEVER, 2), 2, 12 + 20 + 16),
        (Point(0.9, accept, 2), 2, 6 + 14 + 16),
        (Point(0.99, accept, 2), 3, 6 + 6 + 6),
    ):
        one = found.points[point]
        assert (one.problems, one.correct, one.lost) == (3, correct, 3 - correct)
        assert one.forwards == pytest.approx(forwards / 3)


def test_what_may_be_accepted_are_rounded_quantiles_of_the_scores() -> None:
    courses = [course((-number / 7, 0, 4, True)) for number in range(1, 101)]
    records = run("t", courses, courses).records
    found = accepts_among(records)
    assert len(found) == 20
    assert found == sorted(found)
    assert found[-1] == NEVER
    assert all(float(f"{value:.4g}") == value for value in found)
    assert found[0] == pytest.approx(-95.05 / 7, rel=1e-3)
    empty = course((UNSCORED, 0, 4, False))
    assert accepts_among(run("t", [empty], [empty]).records) == [NEVER]


def swept(points: Mapping[Point, Any], *tasks: Mapping[Point, Any]) -> DeliberateSweep:
    named = {f"task {number}": own for number, own in enumerate(tasks or (points,))}
    return DeliberateSweep("m", "probability", measured(9, 8.0), points, named, ("open",))


def test_the_most_accurate_within_the_budget_then_the_cheapest() -> None:
    draft, some, more, most = Point(0.9, skip=0.0), Point(0.9, -0.1, 1), Point(0.9, -0.1, 2), Point(0.9, NEVER, 2)
    sweep = swept({draft: measured(6, 2.0), more: measured(8, 5.0), some: measured(8, 4.0), most: measured(9, 9.0)})
    assert sweep.most_accurate() == most
    assert sweep.within(forwards=1.0).most_accurate() == some
    assert sweep.within(forwards=0.3).most_accurate() == draft
    assert sweep.cheapest(0.8) == some
    assert list(sweep.front()) == [draft, some, most]
    with pytest.raises(SettingsError, match=r"The least share of greedy's forwards is 0\.25"):
        sweep.within(forwards=0.2)
    with pytest.raises(SettingsError, match=r"the best has 90\.0%"):
        sweep.cheapest(0.95)


def test_no_task_may_pay_for_the_others() -> None:
    """The best on all problems together is far below the best of one task."""
    best, fair, worst = Point(0.9, NEVER, 2), Point(0.9, NEVER, 1), Point(0.9, NEVER, 0)
    together = {
        best: measured(150, problems=200),
        fair: measured(140, problems=200),
        worst: measured(100, problems=200),
    }
    first = {best: measured(95, problems=100), fair: measured(60, problems=100), worst: measured(20, problems=100)}
    second = {best: measured(55, problems=100), fair: measured(80, problems=100), worst: measured(80, problems=100)}
    assert swept(together).most_accurate() == best
    assert swept(together, second).most_accurate() == fair
    assert swept(together, first, second).most_accurate() == best, "no point is level on both, so all problems decide"


def test_sweeps_of_several_tasks_are_pooled() -> None:
    found = pooled_deliberate([run("a", [HELPED], [MISLED]), run("b", [HELPED, MISLED], [SURE, SURE], [True, False])])
    assert (found.greedy.correct, found.greedy.problems) == (2, 3)
    point = Point(0.9, NEVER, 1)
    assert (found.points[point].correct, found.points[point].gained) == (3, 1)
    assert [found.tasks[name][point].problems for name in ("a", "b")] == [1, 2]
    other = run("b", [HELPED], [MISLED])
    other.settings["methods"][LOW]["replay"] = {"tries": 2, "drafts": ["plain"]}
    with pytest.raises(SettingsError, match="other settings"):
        pooled_deliberate([run("a", [HELPED], [MISLED]), other])
    bare = run("b", [HELPED], [MISLED])
    bare.records[1] = replace(bare.records[1], course=None)
    with pytest.raises(SettingsError, match="make it again"):
        pooled_deliberate([bare])
    assert is_deliberate(other)
    assert not is_deliberate(soar_run("a", {}))


def test_a_course_is_kept_with_its_record_and_only_there(tmp_path: Path) -> None:
    """Files written before courses were kept, or by a later version, are read."""
    records = run("t", [HELPED], [SURE]).records
    lines = [record.to_json() for record in records]
    assert ["course" in line for line in lines] == [False, True, True]
    assert [Record.from_json(json.loads(json.dumps(line))) for line in lines] == records
    assert Record.from_json({**lines[0], "added later": 1}) == records[0]


def test_records_of_a_sweep_tell_what_other_settings_answer(random_llada: LM, tmp_path: Path) -> None:
    problems = MiniSums().distinct("validation", 3)
    full = Deliberate(threshold=0.02, accept=NEVER, tries=4)
    records = compare(random_llada, MiniSums(), problems, {"d": Method(full, 6, replay=True)}, folder=tmp_path)
    assert ResultFolder(tmp_path).read().records == records
    courses = [record.course for record in records]
    scores = [stage.score for own in courses if own is not None for stage in own.stages]
    chosen = [Deliberate(threshold=0.02, accept=scores[0] - 1e-3, tries=4), replace(full, tries=1)]
    for strategy in chosen:
        again = compare(random_llada, MiniSums(), problems, {"d": Method(strategy, 6)})
        for own, real in zip(courses, again, strict=True):
            assert own is not None
            found = own.outcome(strategy.accept, strategy.tries)
            assert (found.text, found.correct, found.forwards) == (real.text, real.correct, real.forwards)
    assert all(record.course is None for record in again)


def test_only_deliberations_that_accept_nothing_can_be_replayed() -> None:
    with pytest.raises(SettingsError, match="must accept nothing"):
        Method(Deliberate(accept=-0.1), replay=True)


def test_tuned_settings_join_the_defaults_of_a_checkpoint() -> None:
    """The threshold of SOAR stays as it is, and so does its place as the default."""
    known = DecodingDefaults("soar", {"beam": 2}, {"probability": 0.999})
    settings = {"threshold": 0.98, "accept": -0.01, "tries": 4}
    added = with_tuned(known, "deliberate", settings, as_default=False)
    assert added == replace(known, tuned={"deliberate": settings})
    first = with_tuned(known, "deliberate", settings, as_default=True)
    assert (first.strategy, first.settings) == ("deliberate", {})
    assert first.thresholds == known.thresholds
    own = DecodingDefaults("deliberate", {"tries": 9, "parts": 4})
    assert with_tuned(own, "deliberate", settings, as_default=False).settings == {"parts": 4}


def test_a_sweep_of_deliberate_is_tuned(tmp_path: Path) -> None:
    """What the command writes, decoded again, is what the sweep promised."""
    embedded = embedded_folder("mini-llada")
    assert embedded is not None
    folder = shutil.copytree(embedded, tmp_path / "model")
    command: list[str | Path] = [
        "sweep",
        "-m",
        folder,
        "--device",
        "cpu",
        "-t",
        "mini-sudoku",
        "-s",
        "deliberate",
        "--limit",
        "6",
    ]
    grid = ["--thresholds", "0.9,0.99", "--tries", "2", "--drafts", "open", "--protocol", "library"]
    shown = soar(*command, *grid, "-o", tmp_path / "s").stdout
    assert "no cheaper one" in shown
    assert "the draft" in shown
    found = pooled_deliberate([ResultFolder(tmp_path / "s").read()])
    preset = tmp_path / "my.toml"
    said = soar("tune", tmp_path / "s", "-o", preset, "--save-to-model", folder, "--forwards", "0.8").stdout
    assert "when deliberate is asked for" in said
    lm = load(folder, "cpu")
    strategy = read_preset(preset).make()
    assert lm.strategy("deliberate") == strategy
    assert lm.strategy() == Soar(beam=2)
    assert lm.strategy("soar").bound(lm.model.facts.thresholds).threshold == 0.999
    assert isinstance(strategy, Deliberate)
    assert strategy.threshold is not None
    chosen = Point(strategy.threshold, strategy.accept, strategy.tries, strategy.skip)
    assert found.points[chosen].forwards <= 0.8 * found.greedy.forwards
    accepts = sorted({point.accept for point in found.points})
    middle = accepts[len(accepts) // 2]
    problems = MiniSudoku().distinct("validation", 6)
    for point in (chosen, Point(0.9, middle, 2), Point(0.99, NEVER, 1)):
        method = Method(Deliberate(**found.settings_of(point)), options={"truncate_prompt": True})
        again = summary(compare(lm, MiniSudoku(), problems, {"again": method}), "again")["again"]
        assert again.correct == found.points[point].correct
        assert again.forwards == pytest.approx(found.points[point].forwards)
    said = soar("tune", tmp_path / "s", "--save-to-model", folder, "--as-default", "--accuracy", "0").stdout
    assert "by default" in said
    lm = load(folder, "cpu")
    assert lm.strategy() == Deliberate(threshold=0.9, accept=NEVER, tries=0, skip=0.0, drafts=["open"])


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    sweep: list[str | Path] = ["sweep", *QUICK, "-n", "4", "--thresholds", "0.3", "-o"]
    for more, told in (
        (["-s", "deliberate", "--beams", "2"], "--beams is not a setting of deliberate"),
        (["--tries", "2"], "--tries is not a setting of soar"),
        (["--drafts", "open"], "--drafts is not a setting of soar"),
        (["-s", "greedy"], "strategy that can be swept"),
        (["-s", "deliberate", "--figure", tmp_path / "f.svg"], "needs a sweep of soar"),
    ):
        with pytest.raises(SettingsError, match=told):
            soar(*sweep, tmp_path / "no", *more)
    assert not (tmp_path / "no").exists()
    soar(*sweep, tmp_path / "soar", "--beams", "1")
    soar(*sweep, tmp_path / "deliberate", "-s", "deliberate", "--tries", "1")
    to: list[str | Path] = ["-o", tmp_path / "p.toml"]
    for arguments, told in (
        ([tmp_path / "soar", tmp_path / "deliberate", *to], "one after the other"),
        ([tmp_path / "deliberate", *to, "--speed", "2"], "use --forwards"),
        ([tmp_path / "deliberate", *to, "--beam", "2"], "use --forwards"),
        ([tmp_path / "deliberate", *to, "--as-default"], "--save-to-model"),
        ([tmp_path / "deliberate", *to, "--forwards", "0.001"], "least share of greedy's forwards"),
    ):
        with pytest.raises(SettingsError, match=told):
            soar("tune", *arguments)
    assert not (tmp_path / "p.toml").exists()
