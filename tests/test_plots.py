"""The paper's figures: what they show follows from results and traces alone."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import soar_dlm as soar
from soar_dlm.errors import SoarError
from soar_dlm.evals.comparison import Method, compare
from soar_dlm.evals.measures import average_confidence, global_ar_ness
from soar_dlm.evals.runs import Run, read_runs
from soar_dlm.plots import FIGURES
from soar_dlm.plots.catalogue import MAKERS, pictures
from soar_dlm.plots.figure import Picture, panel, read_csv
from soar_dlm.plots.labels import Box, Points, labelled, named, placed
from soar_dlm.plots.method import CUT, LEAST, TOKEN, fitted
from soar_dlm.plots.runs import NothingToDraw, traces_of
from soar_dlm.plots.style import Theme, adaptive
from soar_dlm.plots.sweep import sweep_picture
from tests.command import invoke

Figure = pytest.importorskip("matplotlib.figure").Figure


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison, a sweep and blanks of several lengths, on a few problems each."""
    folder = tmp_path_factory.mktemp("results")
    lm, task = soar.load("mini-llada"), soar.make_task("mini-gsm")
    problems = task.distinct("test", 6)
    methods = {
        label: Method(strategy, 56, label=label)
        for label, strategy in {
            "Greedy": soar.Greedy(3),
            "Adaptive Parallel": soar.AdaptiveParallel(0.95),
            "PBS": soar.PositionBeam(2, 3),
            "SOAR": soar.Soar(2, 0.95),
            "Deliberate": soar.Deliberate(0.95, accept=-0.01, tries=1),
        }.items()
    }
    compare(lm, task, problems, methods, chunk=6, folder=folder / "gsm", traces=True)
    swept = {"Greedy": Method(soar.Greedy(3), 56, label="Greedy")}
    for tau in (0.9, 0.99):
        for beam in (1, 2):
            swept[f"SOAR, tau={tau}, K={beam}"] = Method(soar.Soar(beam, tau), 56, label=f"SOAR, {tau}, {beam}")
    compare(lm, task, problems, swept, chunk=6, folder=folder / "sweep")
    infill = soar.make_task("mini-infill")
    lengths = {
        f"{name} at {size}": Method(strategy, size, label=name)
        for size in (8, 16)
        for name, strategy in {"Greedy": soar.Greedy(3), "SOAR": soar.Soar(2)}.items()
    }
    compare(soar.load("mini-dreamon"), infill, infill.distinct("test", 4), lengths, chunk=4, folder=folder / "infill")
    return folder


@pytest.fixture(scope="module")
def compared(results: Path) -> Run:
    (run,) = read_runs([results / "gsm"])
    return run


@pytest.fixture(scope="module")
def drawn(results: Path) -> dict[str, Picture]:
    found = pictures(FIGURES, read_runs([results]))
    return {name: one for name, one in found.items() if isinstance(one, Picture)}


def test_every_figure_of_the_paper_can_be_drawn(drawn: dict[str, Picture]) -> None:
    assert {name.split("-")[0] for name in drawn} == set(FIGURES) == set(MAKERS)


def test_a_caption_names_model_task_problems_and_settings(drawn: dict[str, Picture]) -> None:
    for name, picture in drawn.items():
        task = name.partition("-")[2]
        model = "mini-dreamon" if task == "mini-infill" else "mini-llada"
        assert f"{model} on {task}, " in picture.caption
        assert re.search(r"\d problems, canvas \d", picture.caption)
        assert re.search(r"(K = \d.*, tau = 0\.\d|\w\(.*metric='\w+')", picture.caption), name
    assert "Soar(beam=2, threshold=0.95" in drawn["modes-mini-gsm"].caption


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figures_are_the_same_bytes_every_time(drawn: dict[str, Picture], kind: str) -> None:
    picture = drawn["confidence-mini-gsm"]
    first = picture.drawn(kind, Theme())
    assert first == picture.drawn(kind, Theme())
    assert first != picture.drawn(kind, Theme("dark"))
    assert first.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[kind])


def test_all_figures_are_drawn_in_both_themes(drawn: dict[str, Picture]) -> None:
    for picture in drawn.values():
        for theme in ("light", "dark"):
            assert b"</svg>" in picture.drawn("svg", Theme(theme))


def test_a_figure_is_drawn_from_its_csv(drawn: dict[str, Picture]) -> None:
    for picture in drawn.values():
        rows = list(csv.DictReader(StringIO(picture.csv)))
        assert len(rows) == len(picture.rows)


def test_an_svg_turns_dark_with_its_reader() -> None:
    light = '<svg width="1"><path style="fill: #1f2328; stroke: #123456"/></svg>'
    made = adaptive(light)
    assert "fill: #1f2328; fill: var(--ink)" in made
    assert "stroke: #123456;" not in made
    assert "prefers-color-scheme: dark" in made
    hatch = '<svg><rect fill="#00845f"/></svg>'
    assert '<rect fill="#00845f" style="fill: var(--green)"/>' in adaptive(hatch)


def test_confidence_bins_hold_every_problem_once(compared: Run, drawn: dict[str, Picture]) -> None:
    greedy = compared.methods["Greedy"]
    rows = panel(drawn["confidence-mini-gsm"].rows, "bins")
    assert len(rows) == 6
    assert sum(row["problems"] for row in rows) == 6
    assert sum(row["right"] for row in rows) == sum(record.correct for record in compared.records["Greedy"])
    found = [average_confidence(trace, "####") for trace in traces_of(compared, greedy)]
    assert rows[0]["low"] == pytest.approx(min(one for one in found if one is not None))
    assert rows[-1]["high"] == pytest.approx(max(one for one in found if one is not None))


def test_order_has_the_measures_of_each_method(compared: Run, drawn: dict[str, Picture]) -> None:
    for row, method in zip(drawn["order-mini-gsm"].rows, compared.methods.values(), strict=True):
        order = [one for trace in traces_of(compared, method) if (one := global_ar_ness(trace, 5)) is not None]
        assert row["method"] == method.label
        assert row["ar_ness"] == pytest.approx(sum(order) / len(order))


def test_the_threshold_figure_has_greedys_tokens_and_every_point(drawn: dict[str, Picture]) -> None:
    rows = drawn["threshold-mini-gsm"].rows
    points = [(row["threshold"], row["beam"]) for row in panel(rows, "sweep") if row["threshold"] is not None]
    assert points == [(0.9, 1), (0.9, 2), (0.99, 1), (0.99, 2)]
    shares = [row["share"] for row in panel(rows, "tokens")]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    sure = [row["confidence"] for row in panel(rows, "tokens")]
    assert sure == sorted(sure)


@pytest.mark.parametrize(
    ("thresholds", "beams", "axes"),
    [
        ((0.9, 0.99), (1, 2), ["tau", "tau", "K", "K"]),
        ((0.9, 0.99), (2,), ["tau", "tau"]),
        ((0.9,), (1, 2), ["K", "K"]),
        ((0.9,), (2,), ["tau", "tau"]),
    ],
)
def test_a_sweep_is_drawn_over_each_setting_that_varies(
    results: Path, thresholds: tuple[float, ...], beams: tuple[int, ...], axes: list[str]
) -> None:
    (run,) = read_runs([results / "sweep"])
    order = ["Greedy", *(f"SOAR, tau={tau}, K={beam}" for tau in thresholds for beam in beams)]
    settings = run.results.settings | {"order": order}
    records = [record for record in run.results.records if record.method in order]
    part = replace(run, results=replace(run.results, settings=settings, records=records, turns_done=len(order)))
    picture = sweep_picture(part)
    figure = Figure()
    picture.draw(figure, picture.rows, Theme())
    assert [one.get_xlabel() for one in figure.axes] == axes
    assert picture.height == sweep_picture(run).height / 4 * len(axes)
    assert ("beam size" in picture.caption) == ("K" in axes)


def test_figures_of_several_models_have_names_of_their_own(compared: Run) -> None:
    """The figures of the second model replaced those of the first."""
    other = replace(compared, results=replace(compared.results, settings=compared.results.settings | {"model": "a/b"}))
    assert list(pictures(["pareto"], [compared])) == ["pareto-mini-gsm"]
    assert list(pictures(["pareto"], [compared, other])) == ["pareto-mini-gsm-mini-llada", "pareto-mini-gsm-a-b"]


def test_a_run_that_has_just_begun_is_no_figure(compared: Run) -> None:
    begun = replace(compared, results=replace(compared.results, records=[], turns_done=0))
    with pytest.raises(NothingToDraw, match="finished its first chunk"):
        pictures(["pareto"], [begun])
    assert list(pictures(["pareto"], [begun, compared])) == ["pareto-mini-gsm"]


def test_a_path_has_every_position_once(drawn: dict[str, Picture]) -> None:
    rows = drawn["path-mini-gsm"].rows
    greedy = [row for row in rows if row["method"] == "Greedy"]
    assert len({row["position"] for row in greedy}) == len(greedy)
    assert {row["mode"] for row in rows} <= {"search", "parallel", "branch"}


def test_the_schematic_forks_and_collapses(drawn: dict[str, Picture]) -> None:
    found = panel(drawn["method-mini-gsm"].rows, "candidates")
    widths = [sum(row["step"] == step for row in found) for step in dict.fromkeys(row["step"] for row in found)]
    assert (widths[0], widths[-1]) == (1, 1)
    assert max(widths) == 2


def test_the_schematic_shows_every_token_that_search_committed(drawn: dict[str, Picture]) -> None:
    rows = drawn["method-mini-gsm"].rows
    shown = {(row["step"], row["lane"]) for row in panel(rows, "cells") if row["mode"] == "search"}
    searched = {(row["step"], row["lane"]) for row in panel(rows, "candidates") if row["mode"] == "search"}
    assert searched
    assert shown == searched


def test_methods_are_compared_where_there_are_most_and_a_sweep_is_lines(results: Path) -> None:
    for folders in (["sweep", "gsm"], ["gsm", "sweep"]):
        found = pictures(["pareto"], read_runs([results / name for name in folders]))["pareto-mini-gsm"]
        assert isinstance(found, Picture)
        assert {"PBS", "Deliberate"} <= {row["method"] for row in found.rows}
    found = pictures(["pareto"], read_runs([results / "sweep"]))["pareto-mini-gsm"]
    assert isinstance(found, Picture)
    strategies = [row["strategy"] for row in panel(found.rows, "methods")]
    assert strategies == ["Greedy", *["SOAR, K = 1", "SOAR, K = 2"] * 2]
    assert [row["method"] for row in panel(found.rows, "aup")] == ["Greedy", "SOAR, K = 1", "SOAR, K = 2"]
    assert "arrows" not in found.caption


def test_a_label_keeps_clear_of_a_line() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for lines in ([], [((0.3, 0.53), (0.7, 0.53))]):
        for text in axes.texts:
            text.remove()
        labelled(axes, [(0.5, 0.5, "label")], "black", lines=lines)
        box = axes.texts[0].get_window_extent()
        low, high = (axes.transData.inverted().transform((0, y))[1] for y in (box.y0, box.y1))
        assert (low < 0.53 < high) != bool(lines)


def test_modes_count_tokens(drawn: dict[str, Picture]) -> None:
    rows = panel(drawn["modes-mini-gsm"].rows, "bins")
    assert len(rows) == 20
    assert sum(row["search"] + row["parallel"] for row in rows) > 0


def test_what_is_missing_is_said(results: Path) -> None:
    (found,) = pictures(["confidence"], read_runs([results / "sweep"])).values()
    assert isinstance(found, NothingToDraw)
    assert "--traces" in str(found)
    (found,) = pictures(["beam"], read_runs([results / "gsm"])).values()
    assert "soar sweep" in str(found)


def test_texts_that_look_like_numbers_stay_texts() -> None:
    (row,) = read_csv("token,method,step,rank\n1e5,007,3,0.5\n")
    assert row == {"token": "1e5", "method": "007", "step": 3, "rank": 0.5}


def test_the_command_writes_figures_and_their_data(results: Path, tmp_path: Path) -> None:
    invoke("plot", "all", str(results), "-o", str(tmp_path / "new"), "--format", "svg,png")
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert {"pareto-mini-gsm.svg", "pareto-mini-gsm.png", "pareto-mini-gsm.csv"} <= names
    assert not [name for name in names if name.startswith(".")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paretto", "{results}"], "Did you mean 'pareto'"),
        (["pareto", "{results}", "--format", "gif"], "format called 'gif'"),
        (["pareto", "{results}/nothing"], "There are no results in"),
        (["lengths", "{results}/gsm"], "several lengths"),
    ],
)
def test_mistakes_are_answered_by_a_sentence(results: Path, words: list[str], message: str) -> None:
    with pytest.raises(SoarError, match=re.escape(message)):
        invoke("plot", *[word.format(results=results) for word in words])


def test_a_theme_that_there_is_not_is_refused() -> None:
    with pytest.raises(SoarError, match="theme"):
        Theme("sepia")


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 200)), max_size=12))
def test_labels_overlap_neither_each_other_nor_dots(anchors: list[tuple[float, float]]) -> None:
    area = Box(0, 0, 300, 200)
    dots = [Box(x - 3, y - 3, 6, 6) for x, y in anchors]
    found = placed(anchors, [(60, 10)] * len(anchors), area, dots)
    boxes = [box for box in found if box is not None]
    assert all(box.within(area) for box in boxes)
    assert not any(one.overlaps(dot) for one in boxes for dot in dots)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    for number, box in enumerate(found):
        others = anchors[:number] + anchors[number + 1 :]
        assert box is None or all(box.distance(anchors[number]) < box.distance(other) for other in others)


def test_a_label_in_the_open_is_beside_its_dot() -> None:
    (box,) = placed([(150.0, 100.0)], [(60.0, 10.0)], Box(0, 0, 300, 200))
    assert box == Box(120.0, 105.0, 60.0, 10.0)
    assert placed([(150.0, 100.0)], [(400.0, 10.0)], Box(0, 0, 300, 200)) == [None]


@pytest.mark.parametrize(("apart", "legends"), [(0.5, 0), (0.001, 1)])
def test_points_too_close_for_labels_are_named_by_a_legend(apart: float, legends: int) -> None:
    """Labels of crowded points stood beside each other's."""
    figure = Figure()
    axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    points = [(0.2 + apart * place, 0.5, name) for place, name in enumerate(("Parallel", "Adaptive Parallel"))]
    for x, y, name in points:
        axes.plot([x], [y], "o", label=name)
    named(figure, [Points(axes, points)], "black")
    assert len(figure.legends) == legends
    assert len(axes.texts) == (0 if legends else 2)


def test_a_token_fits_into_its_cell_or_is_cut_short() -> None:
    """A word of six letters touched both edges of its cell."""
    assert fitted("y", 20) == ("y", TOKEN)
    word, size = fitted("number", 20)
    assert (word, LEAST <= size < TOKEN) == ("number", True)
    word, size = fitted("characteristically", 20)
    assert word.endswith(CUT)
    assert "characteristically".startswith(word.rstrip(CUT))
    assert LEAST <= size <= TOKEN
    assert fitted("", 20) == ("", TOKEN)
