"""What notebooks show: the canvas, its colours, the order of writing, and never markup of a model's making."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from soar_dlm.engine.scene import Scene
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import SettingsError
from soar_dlm.evals.tables import grid, read_table, rendered
from soar_dlm.lm import LM
from soar_dlm.notebook.player import packed
from soar_dlm.notebook.spans import HUE, LEVELS, Span, level, opacity, spans
from soar_dlm.notebook.strip import Mark, strip
from soar_dlm.playback import Playback
from tests.test_measures import commit, example
from tests.test_tables import run
from tests.test_watch import luminance

EVIL = "<script>alert('x')</script>\"><b>&amp;#soar-%ID%"


class Page(HTMLParser):
    """The tags, the text of the canvas, and the hints of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.hints: dict[str, str] = {}
        self.canvas, self._depth, self._hint = "", 0, ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self._hint = found.get("title") or ""
        self._depth += 1 if self._depth or found.get("class") == "soar-canvas" else 0

    def handle_endtag(self, tag: str) -> None:
        self._depth -= 1 if self._depth else 0

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.canvas += data
            self.hints[data] = self._hint


def html_of(shown: Any) -> str:
    return str(shown._repr_html_())


def long_trace(size: int) -> Trace:
    """A token in each step, from the right to the left."""
    steps = tuple(commit(step, [size - step], [step], [1 - step / (2 * size)]) for step in range(1, size + 1))
    pieces = {step: f" word{step}" for step in range(1, size + 1)}
    return Trace(steps, Scene(("A prompt of some words.", ""), ((0, size),), pieces, (9999,), 9999))


def test_the_finished_canvas_stands_by_itself() -> None:
    page = Page(re.sub("<script.*?</script>", "", html_of(example()), flags=re.DOTALL))
    assert page.canvas == "promptTwo and two\n#### 4∎"
    assert page.hints[" and"] == "step 2, search, confidence 0.600"
    assert page.hints["####"] == "step 1, parallel, confidence 0.990"
    assert page.hints["∎"] == "end of text, step 1"
    assert "svg" in page.tags


def test_the_slider_shows_the_canvas_of_every_step() -> None:
    trace = example()
    playback = Playback(trace)
    frames = [spans(playback.canvas(place), playback.scene) for place in playback.standings()]
    styles, distinct, changes, lines = json.loads(packed(frames, ["a", "b", "c", "d"]))
    before: list[int] = []
    for frame, (first, middle, last) in zip(frames, changes, strict=True):
        before = [*before[:first], *middle, *before[len(before) - last :]]
        shown = [distinct[one] for one in before]
        texts = ["░" * text if isinstance(text, int) else text for text, _, _ in shown]
        assert texts == [span.text for span in frame]
        assert [(styles[style], hint) for _, style, hint in shown] == [(span.style, span.hint) for span in frame]
    assert [span.text for span in frames[0]] == ["prompt", "░" * 7]
    assert lines == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", ["greedy", "soar", "deliberate", "core", "freedave"])
def test_every_kind_of_search_can_be_shown(random_llada: LM, name: str) -> None:
    result = random_llada.generate("hello", name, max_new_tokens=12)
    page = Page(html_of(result))
    assert page.canvas.startswith("hello")
    assert f"{result.steps} steps, {result.forwards} forwards" in html_of(result)


def test_what_a_model_writes_stays_text() -> None:
    trace = example()
    assert trace.scene is not None
    scene = replace(trace.scene, around=(EVIL, EVIL), pieces=dict.fromkeys(trace.scene.pieces, EVIL))
    html = html_of(replace(trace, scene=scene))
    page = Page(html)
    assert html.count("<script") == html.count("</script") == 1
    assert page.canvas == f"{EVIL}{EVIL * 6}∎{EVIL}"
    assert "b" not in page.tags
    assert f"#{page.ids[0]}:not" in html
    assert EVIL.replace("<", "\\u003c").replace('"', '\\"') in html


def test_characters_that_a_page_cannot_hold_are_replaced() -> None:
    trace = example()
    assert trace.scene is not None
    scene = replace(trace.scene, pieces={**trace.scene.pieces, 2: "\x00\ud800\u202e\t\n"})
    html = html_of(replace(trace, scene=scene))
    html.encode()
    assert "Two\ufffd\ufffd\ufffd\t\n two" in Page(html).canvas


def test_ids_come_from_the_content() -> None:
    one, other = html_of(example()), html_of(long_trace(5))
    assert one == html_of(example())
    assert Page(one).ids != Page(other).ids
    assert [re.sub("[0-9a-f]{12}", "#", name) for name in Page(one).ids] == ["soar-#"]


def test_it_is_small() -> None:
    assert len(html_of(long_trace(56)).encode()) < 25_000
    assert len(html_of(long_trace(512)).encode()) < 300_000


def mixed(page: int, part: float) -> tuple[int, int, int]:
    red, green, blue = (round(part * one + (1 - part) * page) for one in HUE)
    return red, green, blue


@pytest.mark.parametrize(("ink", "page"), [(0x21, 0xFF), (0x33, 0xFF), (0xE0, 0x11), (0xCC, 0x1F)])
def test_colours_are_ordered_and_legible_on_light_and_dark_pages(ink: int, page: int) -> None:
    papers = [luminance(mixed(page, opacity(strength))) for strength in range(LEVELS + 1)]
    assert papers == sorted(papers, reverse=page == 0xFF)
    letters = luminance((ink, ink, ink))
    for paper in papers:
        dark, light = sorted((letters, paper))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    levels = [level(share / 100) for share in range(101)]
    assert levels == sorted(levels, reverse=True)
    assert (levels[0], levels[100]) == (LEVELS, 0)


def test_the_strip_has_a_box_for_each_position_and_step() -> None:
    drawn = strip([Mark(10, 1, 0.9), Mark(12, 2, 0.9), Mark(11, 2)], 2)
    paths = re.findall(r'<path d="(.*?)" fill="(.*?)"', drawn)
    assert [(path.count("M"), fill) for path, fill in paths] == [(1, "currentColor"), (2, f"rgb{HUE}".replace(" ", ""))]
    assert re.findall(r"M([\d.]+) ([\d.]+)", paths[1][0]) == [("0.0", "0.0"), ("18.0", "7.0")]
    assert strip([], 0) == ""


def test_without_a_trace_there_is_the_text(random_llada: LM, random_dreamon: LM) -> None:
    result = random_llada.generate("hello", max_new_tokens=8, trace=False)
    page = Page(html_of(result))
    assert "script" not in page.tags
    assert page.canvas.split() == result.text.split()
    filled = random_dreamon.infill("a", "b", trace=False)
    assert Page(html_of(filled)).canvas.split() == filled.whole.split()


def test_without_a_scene_there_are_ids() -> None:
    bare = Trace.from_json(example().to_json())
    page = Page(html_of(bare))
    assert page.canvas.split() == ["1", "2", "3", "4", "5", "6", "0"]
    assert page.hints["2 "] == "position 11, step 2, confidence 0.600"
    assert "script" not in page.tags
    assert "0 steps" in html_of(Trace(()))


def test_an_infilling_has_the_text_around_its_blanks(random_dreamon: LM) -> None:
    result = random_dreamon.infill_template("one {blank:3} two {blank:3} three", max_length=5)
    canvas = Page(html_of(result)).canvas
    assert canvas.startswith("one ")
    assert " two " in canvas
    assert canvas.endswith(" three")


def test_values_are_short_as_text() -> None:
    assert repr(example()) == "<Trace of 3 steps>"
    table = grid([run("gsm8k", {"a": ("Greedy", "probability", 256, 5), "b": ("SOAR", "margin", 256, 6)}, "m")])
    assert repr(table) == "<Grid of m: Greedy, SOAR (margin) on gsm8k 256>"


def test_a_table_shows_itself() -> None:
    methods = {"a": ("Greedy", "probability", 256, 5), "b": ("SOAR", "probability", 256, 6)}
    table = grid([run("gsm8k", methods, model="<m>")])
    html = html_of(table)
    assert "<caption>&lt;m&gt;</caption>" in html
    assert "50.0" in html
    assert "SpeedUp</span> x2.00" in html
    assert rendered(table, "html") == html


@pytest.mark.parametrize("folders", [(), (5,)])
def test_a_table_needs_folders(folders: tuple[Any, ...]) -> None:
    with pytest.raises(SettingsError, match="paths of folders"):
        read_table(*folders)


def test_a_span_without_a_style_has_none() -> None:
    assert Span("<").html == "<span>&lt;</span>"
