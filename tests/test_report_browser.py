"""The page of a report in a browser: its canvases are those of a playback, and a reader gets everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import soar_dlm as soar
from soar_dlm.engine.scene import Scene
from soar_dlm.evals.runs import Run
from soar_dlm.playback import Playback
from soar_dlm.report import Drawing, report_page
from soar_dlm.results import Event
from soar_dlm.search.question import Place
from soar_dlm.web import asset
from tests.browser import CHROMIUM, opened_browser
from tests.report_runs import STRATEGIES, TEMPLATE, run_of, small_run

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")

END, TIMES, MINUS = "\N{END OF PROOF}", "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"

CANVASES = """() => [...document.querySelectorAll('.canvas')].map(box => {
    const found = [];
    for (const cell of box.querySelectorAll('.cell')) {
        const last = found[found.length - 1], at = Number(cell.dataset.at);
        if (last && last[0] === at) last[1] += cell.textContent;
        else found.push([at, cell.textContent, cell.classList.contains('fresh')]);
    }
    return found;
})"""
"""Of both canvases: position, text and whether it is outlined, for each cell."""

ALL_STEPS = f"""() => {{
    const found = [], canvases = {CANVASES}, slider = document.getElementById('slider');
    document.getElementById('to-start').click();
    for (;;) {{
        const said = [...document.querySelectorAll('.said')].map(line => line.textContent);
        found.push({{cells: canvases(), said}});
        if (slider.value === slider.max) return found;
        document.getElementById('forward').click();
    }}
}}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened_browser() as found:
        yield found


class Reader:
    """A page in the browser that must not complain, nor ask for anything."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.path = path
        self.complaints: list[str] = []
        self.page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", self._requested)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith("file:"):
            self.complaints.append(request.url)

    def open(self, *link: object) -> Any:
        """The page at a link, once it is ready."""
        address = f"file://{self.path}" + ("#" + "/".join(quote(str(part), safe="") for part in link) if link else "")
        self.page.goto("about:blank")  # another fragment alone would not load it again
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def close(self) -> None:
        self.page.context.close()
        assert self.complaints == []


def written(runs: list[Run], path: Path) -> Path:
    path.write_text(report_page(runs), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small(random_llada: soar.LM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written([small_run(random_llada)], tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def reader(browser: Any, small: Path) -> Iterator[Reader]:
    found = Reader(browser, small)
    yield found
    found.close()


def drawn(event: Event, scene: Scene) -> list[list[Any]]:
    """What a canvas should show of an event: position and text, neighbouring ends as one."""
    cells = list(zip(event.positions, event.blanks, event.masked, event.token_ids, strict=True))
    found: list[list[Any]] = []
    for (_, kind), run in groupby(
        cells, key=lambda cell: (cell[1], "mask" if cell[2] else "end" if cell[3] in scene.ends else "token")
    ):
        own = list(run)
        if kind == "end":
            found.append([own[0][0], END if len(own) == 1 else f"{END}{TIMES}{len(own)}"])
        else:
            found += [[at, "░" if masked else scene.pieces[token].replace("\n", "↵")] for at, _, masked, token in own]
    return found


def fresh(event: Event, playback: Playback, place: Place) -> set[int]:
    canvas = playback.canvas(place)
    found = {at for at, cell in canvas.items() if place.step == event.step and cell.step == event.step}
    entry = playback.trace.at(place) if place.step == event.step else None
    return found | (set(entry.positions) if entry is not None and entry.mode == "reopened" else set())


def check_sentence(said: str, event: Event, playback: Playback, place: Place) -> None:
    """The line below a canvas names the mode, the dive and the verdict."""
    if place.step != event.step:
        assert said == "Only read; wrote nothing"
        return
    entry = playback.trace.at(place)
    assert said.startswith(entry.mode)
    assert said.endswith(f", dive {entry.dive}") == bool(entry.dive)
    told = None if entry.verdict is None else f"verdict {entry.verdict:.4f}".replace("-", MINUS)
    assert told in said if told is not None else "verdict" not in said


def check_run(reader: Reader, run: Run) -> None:
    """Every step of every method shows what the playback of its trace has; two methods at a time."""
    methods = list(run.records)
    for pair in zip(methods[::2], methods[1::2], strict=True):
        page = reader.open(run.name, *pair, 0, 0)
        steps = page.evaluate(ALL_STEPS)
        for side, method in enumerate(pair):
            playback = Playback(run.traces[method, 0].trace)
            events = list(playback.events())
            assert len(steps) > len(events)
            standing = Place(0, 0)
            for event in events:
                assert event.record is not None
                standing = Place(event.step, event.record.best) if event.record.beam else standing
                cells, said = steps[event.step]["cells"][side], steps[event.step]["said"][side]
                check_sentence(said, event, playback, standing)
                assert [cell[:2] for cell in cells] == drawn(event, playback.scene), (method, event.step)
                outlined = {at for at, text, outlined in cells if outlined and not text.startswith(END)}
                ends = {at for at, cell in playback.canvas(standing).items() if cell.token in playback.scene.ends}
                assert outlined == fresh(event, playback, standing) - ends, (method, event.step)
            assert [cell[:2] for cell in steps[-1]["cells"][side]] == drawn(events[-1], playback.scene)


def check_script(page: Any, run: Run) -> None:
    """The script's canvas of every candidate, also of those that were dropped, is the playback's."""
    for decoded in run.traces.values():
        trace, playback = decoded.trace, Playback(decoded.trace)
        places = [Place(record.step, first) for record in trace for first in range(len(record.beam))]
        found = page.evaluate(
            f"([trace, places]) => {{{asset('playback.js').replace('export ', '')}"
            """
                const playback = new Playback({steps: trace.trace, scene: trace.scene});
                return places.map(([step, first]) => playback.canvas({step, first}).map(
                    cell => [cell.at, cell.blank, cell.token, cell.confidence, cell.step, cell.mode]));
            }""",
            [trace.to_line(), [list(place) for place in places]],
        )
        for place, cells in zip(places, found, strict=True):
            canvas = playback.canvas(place)
            expected = [[at, c.blank, c.token, c.confidence, c.step, c.mode] for at, c in canvas.items()]
            assert cells == expected, (decoded.method, place)


def test_every_strategy_is_shown_as_it_is_played_back(browser: Any, random_llada: soar.LM, tmp_path: Path) -> None:
    results = {
        repr(one): [random_llada.generate("once upon a time", one, max_new_tokens=12, seed=1, trace=True)]
        for one in STRATEGIES
    }
    run = run_of(results, dict.fromkeys(results, "1"))
    reader = Reader(browser, written([run], tmp_path / "report.html"))
    check_run(reader, run)
    check_script(reader.page, run)
    reader.close()


def test_blanks_that_change_their_length_are_shown(browser: Any, tmp_path: Path) -> None:
    lm = soar.load("mini-dreamon", device="cpu")
    results = {repr(one): [lm.infill_template(TEMPLATE, one, max_length=8, trace=True)] for one in STRATEGIES}
    traces = [own[0].trace for own in results.values()]
    entries = [entry for trace in traces for record in trace for entry in record.beam]
    assert {size for entry in entries for size in entry.sizes} == {0, 1, 2}
    run = run_of(results, dict.fromkeys(results, "0"), model="mini-dreamon")
    reader = Reader(browser, written([run], tmp_path / "report.html"))
    check_run(reader, run)
    check_script(reader.page, run)
    around = reader.page.locator(".canvas").first.locator(".around")
    assert traces[0].scene is not None
    assert tuple(around.all_text_contents()) == traces[0].scene.around
    reader.close()


def test_the_script_fills_the_rest_after_an_early_exit(reader: Reader, random_llada: soar.LM) -> None:
    run = small_run(random_llada)
    decoded = run.traces["Greedy", 0]
    *before, last = decoded.trace.steps[:4]
    early = replace(decoded.trace, steps=(*before, replace(last, beam=(replace(last.beam[0], left=0),))))
    assert None in [cell.confidence for cell in Playback(early).canvas(Place(4, 0)).values()]
    check_script(reader.open(), replace(run, made={("Greedy", 0): replace(decoded, trace=early)}))


def test_the_keyboard_moves_through_steps_and_problems(reader: Reader) -> None:
    page = reader.open("sums", "Greedy", "SOAR", 1, 5)
    step, title = page.locator("#step-text"), page.locator("#problem-title")
    for key, expected in [
        ("ArrowRight", "6 / 12"),
        ("ArrowLeft", "5 / 12"),
        ("ArrowLeft", "4 / 12"),
        ("End", "12 / 12"),
        ("ArrowRight", "12 / 12"),
        ("Home", "0 / 12"),
        ("ArrowLeft", "0 / 12"),
    ]:
        page.keyboard.press(key)
        assert step.text_content() == expected, key
    assert page.locator(".side").first.locator(".cell.mask").count() == 12
    for key, expected in [("j", "#2"), ("ArrowDown", "#3"), ("j", "#3"), ("k", "#2"), ("ArrowUp", "#1"), ("k", "#0")]:
        page.keyboard.press(key)
        sync_api.expect(title).to_have_text(f"Problem {expected}")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    assert page.locator("#play").text_content() == "Pause"
    sync_api.expect(step).to_have_text("12 / 12")
    assert page.locator("#play").text_content() == "Play"


def test_keys_in_a_search_field_are_letters(reader: Reader) -> None:
    page = reader.open()
    page.locator("#search").press_sequentially("jk ")
    assert page.locator("#search").input_value() == "jk "
    sync_api.expect(page.locator("#count")).to_have_text("No problem matches.")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("all", [0, 1, 2, 3]), ("gained", [0]), ("lost", [1]), ("right", [2]), ("wrong", [3])],
)
def test_problems_are_filtered_by_outcome(reader: Reader, outcome: str, expected: list[int]) -> None:
    page = reader.open()
    page.locator(f"#outcome-{outcome}").check()
    assert page.locator("#problems .index").all_text_contents() == [f"#{index}" for index in expected]
    sync_api.expect(page.locator("#problem-title")).to_have_text(f"Problem #{expected[0]}")
    assert page.locator(f"#outcome-{outcome}-count").text_content() == str(len(expected))


def test_problems_are_filtered_by_kind_and_text(reader: Reader) -> None:
    page = reader.open()
    page.locator("#kind").select_option(label="hard")
    assert page.locator("#problems .index").all_text_contents() == ["#1", "#3"]
    page.locator("#search").fill("IS FOUR")
    assert page.locator("#problems .index").all_text_contents() == ["#3"]
    page.locator("#kind").select_option(label="All kinds")
    page.locator("#search").fill("answer 2")
    assert page.locator("#problems .index").all_text_contents() == ["#2"]
    sync_api.expect(page.locator("#answer")).to_have_text("answer 2")
    sync_api.expect(page.locator("#prompt")).to_contain_text("what is three")


def test_a_link_leads_back_to_where_one_was(reader: Reader) -> None:
    page = reader.open()
    assert "#" not in page.url
    page.locator("#problems button").nth(2).click()
    sync_api.expect(page.locator("#problem-title")).to_have_text("Problem #2")
    page.locator(".side header select").first.select_option("SOAR")
    page.locator("#slider").fill("1")
    assert page.url.endswith("#sums/SOAR/SOAR/2/1")
    page = reader.open("sums", "SOAR", "Greedy", 3, 7)
    assert page.locator("#problem-title").text_content() == "Problem #3"
    assert page.locator("#step-text").text_content() == "7 / 12"
    chosen = page.locator(".side header select").evaluate_all("all => all.map(one => one.selectedOptions[0].text)")
    assert chosen == ["SOAR", "Greedy"]
    assert page.locator("#trouble").text_content() == ""


@pytest.mark.parametrize(
    "link",
    [
        ("other", "Greedy", "SOAR", 0, 0),
        ("sums", "Greedy", "none", 0, 0),
        ("sums", "Greedy", "SOAR", 99, 0),
        ("sums", "Greedy", "SOAR", 0, "x"),
        ("sums", "Greedy"),
    ],
    ids=repr,
)
def test_a_bad_link_is_ignored_with_a_note(reader: Reader, link: tuple[object, ...]) -> None:
    page = reader.open(*link)
    assert "ignored" in page.locator("#trouble").text_content()
    assert page.locator("#problem-title").text_content() == "Problem #0"


def test_a_token_says_when_and_how_surely_it_was_written(reader: Reader, random_llada: soar.LM) -> None:
    page = reader.open("sums", "Greedy", "SOAR", 0, 12)
    trace = small_run(random_llada).traces["Greedy", 0].trace
    record = trace.steps[4]
    (at,), (sure,) = record.beam[0].positions, record.beam[0].confidence
    side = page.locator(".side").first
    side.locator(f'.cell[data-at="{at}"]').first.hover()
    assert side.locator(".said").text_content().endswith(f": step 5, search, confidence {sure:.4f}")
    page.locator("#problem-title").hover()
    side.locator(".canvas").focus()
    page.keyboard.press("Shift+ArrowRight")
    assert ": step " in side.locator(".said").text_content()


def test_a_candidate_that_was_dropped_can_be_seen(reader: Reader, random_llada: soar.LM) -> None:
    run = small_run(random_llada)
    playback = Playback(run.traces["SOAR", 0].trace)
    step = next(record.step for record in playback.trace if len(record.beam) > 1 and record.step > 1)
    page = reader.open("sums", "Greedy", "SOAR", 0, 0)
    side = page.locator(".side").nth(1)
    side.locator(f'.lanes [data-key="{step}/1"]').dispatch_event("click")
    assert page.locator("#step-text").text_content().startswith(f"{step} /")
    assert side.locator(".choice").input_value() == "1"
    masked = sum(cell.token is None for cell in playback.canvas(Place(step, 1)).values())
    assert side.locator(".cell.mask").count() == masked
    assert side.locator(".lanes .shown").get_attribute("data-key") == f"{step}/1"
    page.keyboard.press("ArrowRight")
    assert side.locator(".choice").input_value() == "0"


def test_every_candidate_has_a_dot_and_a_line_from_its_parent(reader: Reader, random_llada: soar.LM) -> None:
    trace = small_run(random_llada).traces["SOAR", 0].trace
    page = reader.open()
    lanes = page.locator(".side").nth(1).locator(".lanes")
    entries = sum(len(record.beam) for record in trace)
    assert lanes.locator("[data-key]").count() == lanes.locator(".link").count() == entries
    keys = {f"{place.step}/{place.first}" for place in trace.places()}
    on_path = lanes.locator("[data-key].on-path").evaluate_all("all => all.map(one => one.dataset.key)")
    assert set(on_path) == keys
    assert lanes.locator(".strip rect").count() == len(trace)


EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><b>bold</b>"


def test_text_with_markup_stays_text(browser: Any, random_llada: soar.LM, tmp_path: Path) -> None:
    run = small_run(random_llada, name=EVIL, model=EVIL, kinds=[EVIL], labels={"Greedy": "Greedy", "SOAR": EVIL})
    traces = {}
    for key, decoded in run.traces.items():
        scene = decoded.trace.scene
        assert scene is not None
        pieces = dict.fromkeys(scene.pieces, EVIL)
        around = (EVIL, EVIL)
        trace = replace(decoded.trace, scene=replace(scene, around=around, pieces=pieces, ends=()))
        traces[key] = replace(decoded, answer=EVIL, trace=trace)
    records = [replace(record, text=EVIL) for record in run.results.records]
    evil = replace(run, results=replace(run.results, records=records), made=traces)
    reader = Reader(browser, written([evil], tmp_path / "report.html"))
    page = reader.open()
    assert page.locator("h1").text_content() == EVIL
    assert page.locator("#prompt").text_content().startswith(EVIL)
    assert page.locator("#answer").text_content() == EVIL
    assert page.locator(".side .text").first.text_content() == EVIL
    assert page.locator(".cell.token").first.text_content() == EVIL
    assert page.locator("img, b").count() == 0
    assert page.evaluate("window.hacked") is None
    page.locator(".cell.token").first.hover()
    page = reader.open(EVIL, "Greedy", "SOAR", 2, 4)
    assert page.locator("#problem-title").text_content() == "Problem #2"
    assert page.evaluate("window.hacked") is None
    reader.close()


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_the_readers_colours(browser: Any, small: Path, width: int, scheme: str) -> None:
    reader = Reader(browser, small, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = reader.open()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(paper) / 3 > 127) == (scheme == "light")
    reader.close()


def test_a_figure_stays_legible_on_a_phone(browser: Any, random_llada: soar.LM, tmp_path: Path) -> None:
    """Scaled down to a phone's width, its letters could not be read; it is moved sideways instead."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="518" height="200"><text y="20">label</text></svg>'
    path = tmp_path / "report.html"
    path.write_text(report_page([small_run(random_llada)], [Drawing("figure", "A figure.", svg)]), encoding="utf-8")
    reader = Reader(browser, path, viewport={"width": 390, "height": 800})
    page = reader.open()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".picture svg").evaluate("one => one.clientWidth") >= 518
    assert page.locator(".picture").evaluate("one => getComputedStyle(one).overflowX") == "auto"
    reader.close()


def test_without_traces_the_explorer_has_texts(browser: Any, random_llada: soar.LM, tmp_path: Path) -> None:
    run = small_run(random_llada).untraced()
    reader = Reader(browser, written([run], tmp_path / "report.html"))
    page = reader.open()
    assert page.locator(".side .text").first.text_content() == run.records["Greedy"][0].text.lstrip("\n")
    for gone in ("#player", "#prompt-box", ".side >> nth=0 >> .canvas", ".side >> nth=0 >> .lanes"):
        assert not page.locator(gone).is_visible()
    page.keyboard.press("j")
    reader.close()


def test_a_browser_that_cannot_unpack_says_so(browser: Any, small: Path) -> None:
    reader = Reader(browser, small)
    reader.page.add_init_script("delete window.DecompressionStream")
    reader.page.goto(f"file://{small}")
    sync_api.expect(reader.page.locator("#trouble")).to_contain_text("cannot unpack")
    assert not reader.page.locator("#workbench").is_visible()
    assert reader.page.locator("#tables table").is_visible()
    reader.close()
