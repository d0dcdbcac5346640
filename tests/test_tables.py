from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from soar_dlm.cli.table import show
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.evals.comparison import Summary
from soar_dlm.evals.curves import NOTE, Area, areas
from soar_dlm.evals.manifest import RecordedMethod
from soar_dlm.evals.paper import Figure, paper_figure
from soar_dlm.evals.results import Record, Results
from soar_dlm.evals.tables import Column, Row, grid, markdown, notes, rendered

LLADA = "GSAI-ML/LLaDA-8B-Base"


def run(task: str, methods: dict[str, tuple[str, str, int, int]], model: str = LLADA, problems: int = 10) -> Results:
    """``methods``: name -> label, metric, length, problems right; the first ones are. Greedy takes twice the time."""
    told = {
        name: {"label": label, "metric": metric, "length": length, "strategy": "", "beam": None, "threshold": None}
        for name, (label, metric, length, _) in methods.items()
    }
    records = [
        Record(
            place, name, "", "", place < right, 8, 8, 1.0, 0.5, "stop", 2.0 if label == "Greedy" else 1.0, "", place < 2
        )
        for name, (label, _, _, right) in methods.items()
        for place in range(problems)
    ]
    order: dict[str, Any] = {"order": list(methods), "problems": problems, "chunk": problems, "methods": told}
    return Results({"model": model, "task": task, "canvas": 8, **order}, {}, records, len(methods), 0)


GSM = run(
    "gsm8k",
    {
        "Greedy at 256": ("Greedy", "probability", 256, 5),
        "SOAR at 256": ("SOAR", "probability", 256, 6),
        "Greedy at 512": ("Greedy", "probability", 512, 5),
        "SOAR at 512": ("SOAR", "probability", 512, 4),
    },
)


def test_the_papers_figures() -> None:
    assert paper_figure(LLADA, "gsm8k", 256, "SOAR", "probability") == Figure(71.3, 1.18)
    assert paper_figure("Dream-org/Dream-v0-Base-7B", "humaneval", 512, "SOAR", "neg_entropy") == Figure(57.9, 1.14)
    assert paper_figure("x/DreamOn-v0-7B", "humaneval-infilling-single", 16, "Greedy", "neg_entropy") == Figure(57.4)
    assert paper_figure(LLADA, "mini-gsm", 256, "SOAR", "probability") is None


def test_a_table_has_methods_as_rows_and_lengths_as_columns() -> None:
    found = grid([GSM])
    assert found.rows == (Row("Greedy", "probability"), Row("SOAR", "probability"))
    assert found.columns == (Column("gsm8k", 256), Column("gsm8k", 512))
    cell = found.cells[found.rows[1], found.columns[0]]
    assert (cell.measured.correct, cell.measured.gained, cell.measured.lost, cell.measured.speed_up) == (6, 1, 0, 2.0)
    assert cell.complete
    assert cell.paper == Figure(71.3, 1.18)
    assert markdown(found).splitlines() == [
        "| method | gsm8k 256 | gsm8k 512 |",
        "|---|---|---|",
        "| Greedy | 50.0 [70.4] (23.7 to 76.3) | 50.0 [70.9] (23.7 to 76.3) |",
        "| *Tokens/forward* | 1.00 | 1.00 |",
        "| SOAR | 60.0 [71.3] (31.3 to 83.2) | 40.0 [71.5] (16.8 to 68.7) |",
        "| *SpeedUp* | x2.00 [x1.18] | x2.00 [x1.43] |",
        "| *Tokens/forward* | 1.00 | 1.00 |",
        "| *AUP*, Greedy | 50.0 | 50.0 |",
        "| *AUP*, SOAR | 60.0 | 40.0 |",
        "",
        "95% intervals in parentheses.",
        "SpeedUp is greedy's wall time over the method's, in the same run.",
        NOTE,
        "The paper's figures are in brackets.",
        "Problems: gsm8k 10.",
    ]


def test_every_metric_is_held_to_its_own_greedy() -> None:
    methods = {
        "g": ("Greedy", "probability", 8, 3),
        "gm": ("Greedy", "margin", 8, 9),
        "sm": ("SOAR", "margin", 8, 9),
    }
    found = grid([run("t", methods, "m")])
    assert found.cells[Row("SOAR", "margin"), Column("t", 8)].measured.gained == 0
    assert [row.metric for row in grid([run("t", methods, "m")], metrics=["margin"]).rows] == ["margin", "margin"]
    assert markdown(found).startswith("| metric | method | t 8 |")


def test_exact_match_is_another_judge() -> None:
    found = grid([GSM], "exact")
    assert {cell.measured.correct for cell in found.cells.values()} == {2}


def test_signs_tell_significant_gains_from_losses() -> None:
    """A star marked both alike."""
    methods = {"g": ("Greedy", "probability", 8, 40), "s": ("SOAR", "probability", 8, 60)}
    table = grid([run("t", {**methods, "p": ("PBS", "probability", 8, 20)}, "m", 100)])
    assert "| SOAR | 60.0↑ (50.2 to 69.1) |" in markdown(table)
    assert "| PBS | 20.0↓ (13.3 to 28.9) |" in markdown(table)
    assert r"SOAR & 60.0$\uparrow$ (50.2 to 69.1) \\" in rendered(table, "latex")
    assert r"PBS & 20.0$\downarrow$ (13.3 to 28.9) \\" in rendered(table, "latex")
    console = Console(record=True, width=120, file=io.StringIO())
    show(table, console)
    assert "60.0↑" in console.export_text()


def test_runs_of_two_tasks_make_one_table_and_of_two_models_none() -> None:
    other = run("mbpp", {"Greedy at 256": ("Greedy", "probability", 256, 5)})
    assert [column.task for column in grid([GSM, other]).columns] == ["gsm8k", "gsm8k", "mbpp"]
    assert "| SOAR | 60.0 [71.3] (31.3 to 83.2) | 40.0 [71.5] (16.8 to 68.7) |  |" in markdown(grid([GSM, other]))
    with pytest.raises(SettingsError, match="one model"):
        grid([GSM, run("mbpp", {"g": ("Greedy", "probability", 8, 1)}, "another")])


def test_a_method_without_greedy_beside_it_has_no_speed_up() -> None:
    text = markdown(grid([run("t", {"s": ("SOAR", "probability", 8, 3)}, "m")]))
    assert "| SOAR | 30.0 (10.8 to 60.3) |\n| *SpeedUp* | ? |" in text
    assert "no greedy run" in text


def test_the_same_cell_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="Two of these results are Greedy by probability on gsm8k at 256"):
        grid([GSM, GSM])


def test_notes_say_what_is_there() -> None:
    many = run("t", {"g": ("Greedy", "probability", 8, 40), "s": ("SOAR", "probability", 8, 60)}, "m", 1000)
    unfinished = Results({**many.settings, "problems": 2000}, {}, many.records, 2, 0)
    assert notes(grid([unfinished], "exact")) == [
        "95% intervals in parentheses.",
        "SpeedUp is greedy's wall time over the method's, in the same run.",
        NOTE,
        "Problems: t 1,000 so far.",
        "An answer is right if it is exactly the text that was taken out.",
    ]
    assert "↑ better, ↓ worse than greedy with p < 0.05 (McNemar's exact test)." in notes(grid([many]))


def test_the_terminal_shows_the_papers_figures_beside_ours() -> None:
    console = Console(record=True, width=120, file=io.StringIO())
    show(grid([GSM]), console)
    text = console.export_text()
    assert "SOAR 60.0 [71.3] 40.0 [71.5] (31.3 to 83.2) (16.8 to 68.7)" in " ".join(text.split())
    assert "x2.00 [x1.18]" in text


def test_other_formats() -> None:
    table = grid([GSM])
    latex = rendered(table, "latex")
    assert latex.startswith(f"% {LLADA}\n% 95% intervals")
    assert r"\begin{tabular}{lcc}" in latex
    assert r"SOAR & 60.0 [71.3] (31.3 to 83.2) & 40.0 [71.5] (16.8 to 68.7) \\" in latex
    assert r"\textit{SpeedUp} & $\times$2.00 [$\times$1.18]" in latex
    cells = json.loads(rendered(table, "json"))["cells"]
    assert [cell["accuracy"] for cell in cells] == [0.5, 0.6, 0.5, 0.4]
    assert cells[1]["paper"] == {"accuracy": 71.3, "speed_up": 1.18}
    with pytest.raises(UnknownName, match="markdown"):
        rendered(table, "markdwon")


def test_runs_decoded_in_other_ways_are_columns_of_their_own() -> None:
    """They were refused as the same cell twice."""
    blocks = run("gsm8k", {"Greedy at 256": ("Greedy", "probability", 256, 4)})
    blocks.settings["methods"]["Greedy at 256"]["options"] = {"block_length": 8, "cache": "dual", "refresh_every": 4}
    found = grid([GSM, blocks])
    assert [column.title for column in found.columns] == [
        "gsm8k 256",
        "gsm8k 256, blocks of 8, dual cache, refreshed every 4 steps",
        "gsm8k 512",
    ]
    with pytest.raises(SettingsError, match=r"on gsm8k at 256 \(blocks of 8, dual cache"):
        grid([blocks, blocks])


def point(label: str, tokens: float, correct: int, beam: int = 1) -> tuple[RecordedMethod, Summary]:
    method = RecordedMethod(f"{label} K{beam} {tokens}", label, "", "probability", beam, None, 8)
    return method, Summary(100, correct, (0.0, 1.0), 8.0, 8.0, tokens, 1.0, 1.0, 0, 0, 1.0)


def test_aup_is_of_all_settings_with_one_beam() -> None:
    found = areas(
        dict(
            [
                point("Greedy", 1.0, 80),
                point("SOAR, tau=0.9, K=1", 4.0, 80),
                point("SOAR, tau=0.99, K=1", 2.0, 80),
                point("SOAR, tau=0.9, K=2", 2.0, 80, beam=2),
                point("SOAR, tau=0.99, K=2", 0.5, 80, beam=2),
            ]
        )
    )
    assert found == {
        "Greedy": Area(80.0, 1),
        "SOAR, K = 1": Area(4.0 * 80, 2),
        "SOAR, K = 2": Area(2.0 * 80, 2),
    }


def test_a_single_fast_setting_is_weighed_against_greedy() -> None:
    """Alone, 4 tokens per forward at an accuracy of 30 would have an AUP of 120, more than greedy's."""
    found = areas(dict([point("Greedy", 1.0, 80), point("Wild", 4.0, 30), point("Slow", 0.5, 80, beam=2)]))
    assert found == {"Greedy": Area(80.0, 1), "Wild": Area(80.0, 1, True), "Slow": Area(40.0, 1)}


def test_methods_that_wrote_nothing_have_no_aup() -> None:
    assert areas(dict([point("Greedy", 0.0, 0)])) == {}
    assert areas({}) == {}
