"""``--watch --compare``: strategies side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from soar_dlm.cli.canvas import MASK, Palette, clean
from soar_dlm.cli.compare import Side, compared, frame, show_compared
from soar_dlm.cli.watch import Pane, drawing_of
from soar_dlm.errors import SettingsError
from soar_dlm.lm import LM
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from tests.command import BASE, invoke
from tests.terminal import Screen, terminal


def sides_of(lm: LM, names: list[str], console: Console) -> list[Side]:
    palette, sides = Palette(console), []
    for name in names:
        strategy = lm.strategy(name)
        pane = Pane(drawing_of(lm, strategy, palette, ("", "")))
        sides.append(Side(name, lm.stream("hello", strategy, max_new_tokens=16), pane))
    return sides


def drawn(sides: list[Side], console: Console) -> list[str]:
    lines = console.render_lines(frame(sides, Palette(console), console), pad=False)
    assert len(lines) <= console.height
    assert all(sum(segment.cell_length for segment in line) <= console.width for line in lines)
    return ["".join(segment.text for segment in line) for line in lines]


def test_a_wide_terminal_has_columns_and_a_narrow_one_has_rows(random_llada: LM) -> None:
    for width, columns in ((80, True), (79, False)):
        console = terminal(width, 24)
        sides = sides_of(random_llada, ["greedy", "soar"], console)
        for side in sides:
            side.step()
        lines = drawn(sides, console)
        assert (lines[0].split() == ["greedy", "│", "soar"]) is columns
        assert [line.strip() for line in lines].count("soar") == (not columns)
        assert sum(line.count("forwards 1") for line in lines) == 2
        assert "unsure" in lines[-1]


def test_columns_that_would_be_too_narrow_become_rows(random_llada: LM) -> None:
    console = terminal(100, 30)
    sides = sides_of(random_llada, ["greedy", "soar", "pbs"], console)
    for side in sides:
        side.step()
    titles = [line.strip() for line in drawn(sides, console)]
    assert [line for line in titles if line in ("greedy", "soar", "pbs")] == ["greedy", "soar", "pbs"]


def test_one_that_is_done_stays(random_llada: LM) -> None:
    console = terminal(100, 20)
    slow, fast = sides_of(random_llada, ["greedy", "pbs-parallel"], console)
    while not fast.done:
        slow.step()
        fast.step()
    before = drawn([slow, fast], console)
    slow.step()
    after = drawn([slow, fast], console)
    assert before[0].split("│")[1].strip() == "pbs-parallel, done"
    assert [line.split("│")[1:] for line in after] == [line.split("│")[1:] for line in before]
    assert after != before


def test_texts_and_a_table_are_left(random_llada: LM) -> None:
    console = terminal(100, 20)
    strategies: dict[str, Any] = {"greedy": Greedy(), "soar": Soar(2, 0.2)}
    streams = {name: (one, random_llada.stream("hello", one, max_new_tokens=16)) for name, one in strategies.items()}
    results = show_compared(random_llada, streams, console)
    shown = "\n".join(Screen(console.file.getvalue()).lines)  # type: ignore[attr-defined]
    assert MASK * 2 not in shown
    for name, result in results.items():
        assert f"{name}\n{clean(result.text)}" in shown
        row = next(
            line for line in shown.splitlines() if line.split()[:3] == [name, str(result.steps), str(result.forwards)]
        )
        assert f"{result.tokens_per_forward:.2f}" in row
        assert f"{result.mean_confidence:.4f}" in row
        assert result == random_llada.generate("hello", strategies[name], max_new_tokens=16)


def test_settings_apply_to_the_strategies_that_have_them(random_llada: LM) -> None:
    given = {"beam": 3, "settings": ["tokens_per_step=2", "defer_end=true"]}
    made = {name: method.strategy(random_llada) for name, method in compared("greedy, soar", given).items()}
    assert (made["greedy"].tokens_per_step, made["greedy"].beam, made["greedy"].defer_end) == (2, 1, True)
    assert (made["soar"].tokens_per_step, made["soar"].beam, made["soar"].defer_end) == (1, 3, True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--compare", "greedy,soar"], "add --watch"),
        (["--compare", "soar", "--watch"], "two or more different"),
        (["--compare", "soar,soar", "--watch"], "two or more different"),
        (["--compare", "greedy,saor", "--watch"], "Did you mean 'soar'"),
        (["--compare", "greedy,soar", "--watch", "--set", "tries=3"], "None of the strategies greedy, soar"),
        (["--compare", "greedy,soar", "--watch", "-s", "pbs"], "leave out --strategy"),
        (["--compare", "greedy,soar", "--watch", "--stats"], "leave out --stats"),
        (["--compare", "greedy,soar", "--watch", "--n", "2"], "--watch shows one text"),
    ],
)
def test_mistakes_are_answered_by_a_sentence(options: list[str], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        invoke(*BASE, "Hello", *options)


def test_without_a_terminal_the_texts_are_written_like_several_samples(tmp_path: Path, random_llada: LM) -> None:
    path = tmp_path / "t.jsonl"
    run = invoke(*BASE, "Hello", "--watch", "--compare", "greedy,soar", "--trace", str(path))
    texts = [random_llada.generate("Hello", name, max_new_tokens=12).text for name in ("greedy", "soar")]
    assert run.stdout == "\n---\n".join(texts) + "\n"
    assert "tokens per forward" in run.stderr
    assert [json.loads(line)["method"] for line in path.read_text().splitlines()] == ["greedy", "soar"]
    assert invoke("trace", str(path), "--method", "soar").exit_code == 0


def test_blanks_are_compared(tmp_path: Path, random_dreamon: LM) -> None:
    (tmp_path / "f.txt").write_text("a {blank:4} b")
    base = ["infill", str(tmp_path / "f.txt"), "-m", "random-dreamon", "--watch", "--compare", "greedy,soar"]
    wholes = [random_dreamon.infill_template("a {blank:4} b", name).whole for name in ("greedy", "soar")]
    assert invoke(*base).stdout == "\n---\n".join(wholes) + "\n"
    with pytest.raises(SettingsError, match="leave out --write"):
        invoke(*base, "--write")
