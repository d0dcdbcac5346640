"""The page in a browser: what is decoded is seen as it comes, and afterwards step by step."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

import soar_dlm as soar
from soar_dlm.engine.trace import Trace
from soar_dlm.playback import Playback
from soar_dlm.serve.settings import ServeSettings
from tests.browser import CHROMIUM, opened_browser
from tests.command import invoke
from tests.report_runs import TEMPLATE
from tests.serving import served

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")

PROMPT = "Eva wins 10 stickers. Eva finds 18 more stickers. How many stickers does Eva have now?"
EVIL = "</span><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><b>bold</b>"
CELLS = """box => [...box.querySelectorAll('.cell')].map(cell => cell.textContent)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def lm(random_llada: soar.LM) -> soar.LM:
    return random_llada


@pytest.fixture(scope="module")
def llada(lm: soar.LM) -> Iterator[str]:
    with served(lm) as server:
        yield server.url


@pytest.fixture(scope="module")
def mini() -> Iterator[str]:
    """A model that knows some tasks, and takes a while."""
    with served(soar.load("mini-llada", device="cpu")) as server:
        yield server.url


@pytest.fixture(scope="module")
def dreamon() -> Iterator[str]:
    with served(soar.load("mini-dreamon", device="cpu")) as server:
        yield server.url


class Reader:
    """A page in the browser that must not complain, nor ask anybody else for anything."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.complaints: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", self._requested)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self.url, "blob:")):
            self.complaints.append(request.url)

    def open(self, **link: str) -> Any:
        """The page, once it is ready; at a link if there is one."""
        self.page.goto(self.url + (f"/#{urlencode(link)}" if link else ""))
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []


@pytest.fixture
def reader(browser: Any, llada: str) -> Iterator[Reader]:
    found = Reader(browser, llada)
    yield found
    found.close()


def says(page: Any, what: str) -> None:
    sync_api.expect(page.locator("#status")).to_contain_text(what, timeout=20_000)


def decode(page: Any, text: str, length: int = 24) -> None:
    page.locator("#text").fill(text)
    page.locator("#more").evaluate("fold => { fold.open = true; }")
    page.locator("#option-max_tokens").fill(str(length))
    page.locator("#run").click()
    says(page, "Done")


def figures(page: Any, side: int = 0) -> list[str]:
    found: list[str] = page.locator(".side").nth(side).locator(".figures dd").all_text_contents()
    return found


def canvas_after(page: Any, side: int = 0) -> list[str]:
    found: list[str] = page.locator(".side").nth(side).locator(".canvas").evaluate(CELLS)
    return found


def text_of(cells: list[str]) -> str:
    return "".join(cells).replace("↵", "\n").partition("∎")[0]


def test_a_prompt_is_decoded_as_the_library_does(reader: Reader, lm: soar.LM) -> None:
    result = lm.generate(PROMPT, lm.strategy(), max_new_tokens=24)
    page = reader.open()
    decode(page, PROMPT)
    assert text_of(canvas_after(page)) == result.text
    steps, forwards, rate, seconds = figures(page)
    assert (int(steps), int(forwards)) == (result.steps, result.forwards)
    assert rate == f"{result.tokens_per_forward:.2f}"
    assert float(seconds) > 0
    dots = sum(len(record.beam) for record in result.trace)
    assert page.locator(".lanes [data-key]").count() == dots
    assert page.locator(".lanes .strip rect").count() == len(result.trace)
    assert page.locator("#trouble").text_content() == ""


def test_two_strategies_decode_the_same_prompt_side_by_side(reader: Reader, lm: soar.LM) -> None:
    page = reader.open()
    assert not page.locator("#setups fieldset").nth(1).is_visible()
    page.locator("#compare").click()
    page.locator("#setups select.strategy").nth(1).select_option("pbs")
    page.locator("#second-beam").fill("3")
    decode(page, PROMPT)
    one = lm.generate(PROMPT, lm.strategy(), max_new_tokens=24)
    other = lm.generate(PROMPT, lm.strategy("pbs", beam=3), max_new_tokens=24)
    for side, result in enumerate((one, other)):
        assert text_of(canvas_after(page, side)) == result.text
        assert figures(page, side)[:2] == [str(result.steps), str(result.forwards)]
    left, right = page.locator(".side .canvas").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    page.locator("#compare").click()
    page.locator("#run").click()
    says(page, "Done")
    assert page.locator(".side").count() == 1


def test_the_steps_are_scrubbed_and_played_back(reader: Reader, lm: soar.LM) -> None:
    trace = lm.generate(PROMPT, lm.strategy("greedy"), max_new_tokens=12, early_exit=True).trace
    page = reader.open(text=PROMPT, a="greedy", max_tokens="12")
    page.locator("#run").click()
    says(page, "Done")
    playback = Playback(trace)
    for step in (0, 3, len(trace)):
        page.locator("#slider").fill(str(step))
        masked = sum(cell.token is None for cell in playback.canvas(playback.standings()[step]).values())
        assert page.locator(".canvas .cell.mask").count() == masked
        assert figures(page)[0] == str(step)
    page.locator("#play").click()
    assert page.locator("#play").text_content() == "Pause"
    sync_api.expect(page.locator("#play")).to_have_text("Play")
    assert page.locator("#step-text").text_content() == f"{len(trace)} / {len(trace)}"


def test_a_token_tells_its_step_its_confidence_and_what_came_second(reader: Reader, lm: soar.LM) -> None:
    trace = lm.generate(PROMPT, lm.strategy("greedy"), max_new_tokens=12, runners_up=True).trace
    page = reader.open(text=PROMPT, a="greedy", max_tokens="12")
    page.locator("#run").click()
    says(page, "Done")
    entry, scene = trace.steps[2].beam[0], trace.scene
    assert scene is not None
    cell = page.locator(f'.cell[data-at="{entry.positions[0]}"]').first
    cell.hover()
    tip = page.locator("#tip")
    sync_api.expect(tip).to_contain_text("step 3, search")
    sync_api.expect(tip).to_contain_text(f"confidence{entry.confidence[0]:.4f}")
    assert "second" in tip.text_content()
    page.locator("h1").hover()
    sync_api.expect(tip).to_be_hidden()
    page.locator(".canvas").focus()
    page.keyboard.press("Shift+ArrowRight")
    sync_api.expect(tip).to_be_visible()
    focused = page.evaluate("document.activeElement.getAttribute('aria-describedby')")
    assert focused == "tip"


def test_a_link_fills_the_form_and_runs_only_if_it_says_so(reader: Reader) -> None:
    page = reader.open()
    page.locator("#text").fill('Say "a & b = c"\n+ 100% #1')
    page.locator("#compare").click()
    page.locator("#first-beam").fill("3")
    page.locator("#setups select.strategy").nth(1).select_option("deliberate")
    page.locator("#setups fieldset").nth(1).locator("summary").click()
    page.locator("#second-tries").fill("2")
    page.locator("#more summary").click()
    page.locator("#option-max_tokens").fill("8")
    page.locator("#option-block_length").fill("4")
    page.locator("#option-cache").select_option("prefix")
    page.locator("#run").click()
    says(page, "Done")
    page.locator("#share").click()
    says(page, "The link is")
    link = page.url.partition("#")[2]
    assert "run" not in parse_qs(link)

    page.goto("about:blank")
    page.goto(f"{reader.url}/#{link}")
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#text").input_value() == 'Say "a & b = c"\n+ 100% #1'
    assert page.locator("#first-beam").input_value() == "3"
    assert page.locator("#second-tries").input_value() == "2"
    assert page.locator("#second-tries").is_visible()
    assert page.locator("#option-cache").input_value() == "prefix"
    assert page.locator("#status").text_content() == ""
    assert not page.locator("#stage").is_visible()

    page.goto("about:blank")
    page.goto(f"{reader.url}/#{link}&run=1")
    says(page, "Done")
    assert page.locator(".side").count() == 2


def test_a_link_to_a_strategy_that_is_not_there_says_so(reader: Reader) -> None:
    page = reader.open(text="hello", a="sour")
    sync_api.expect(page.locator("#trouble")).to_contain_text("no strategy “sour”")


def test_a_blank_is_seen_to_grow_and_to_shrink(browser: Any, dreamon: str) -> None:
    lm = soar.load("mini-dreamon", device="cpu")
    result = lm.infill_template(TEMPLATE, lm.strategy("pbs"), max_length=8)
    entries = [(record.step, entry) for record in result.trace if (entry := record.standing) is not None]
    reader = Reader(browser, dreamon)
    page = reader.open(text=TEMPLATE, a="pbs", max_length="8")
    assert page.locator("#option-max_tokens").is_disabled()
    page.locator("#run").click()
    says(page, "Done")
    assert page.locator(".canvas").text_content().replace("↵", "") == result.whole
    grown = next(step for step, entry in entries if 2 in entry.sizes)
    page.locator("#slider").fill(str(grown))
    assert page.locator(".cell.mask.grown").count() == 2
    sync_api.expect(page.locator(".cell.grown").first).to_have_css("animation-name", "grow")
    gone = next(step for step, entry in entries if 0 in entry.sizes)
    page.locator("#slider").fill(str(gone))
    sync_api.expect(page.locator(".gone").first).to_have_css("animation-name", "shrink")
    reader.close()


def test_an_example_shows_the_right_answer_afterwards(browser: Any, mini: str) -> None:
    reader = Reader(browser, mini)
    page = reader.open()
    assert page.locator("#examples button").all_text_contents() == ["Word problem", "Python function", "Sudoku"]
    with page.expect_response(re.compile("/v1/examples")):
        page.locator("#examples button").first.click()
    assert page.locator("#option-max_tokens").input_value() == "56"
    assert not page.locator("#answer-box").is_visible()
    page.locator("#run").click()
    says(page, "Done")
    sync_api.expect(page.locator("#answer")).to_contain_text("####")
    decode(page, PROMPT, 8)
    assert not page.locator("#answer-box").is_visible()
    reader.close()


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def test_a_trace_file_of_the_command_is_opened(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    invoke("generate", "-m", "random-llada", PROMPT, "-n", "12", "--strategy", "pbs", "--trace", str(path))
    line = json.loads(path.read_text())
    page = reader.open()
    page.locator("#trace-file").set_input_files(path)
    sync_api.expect(page.locator("#file-name")).to_have_text("trace.jsonl")
    trace = Trace.from_json(line)
    assert page.locator("#step-text").text_content() == f"{len(trace)} / {len(trace)}"
    assert page.locator("#given").text_content() == PROMPT
    assert text_of(canvas_after(page)) == line["text"]


def test_a_packed_and_compressed_file_of_an_evaluation_is_opened(reader: Reader, lm: soar.LM, tmp_path: Path) -> None:
    lines = [
        {"index": index, "method": name, **lm.generate(PROMPT, name, max_new_tokens=8).trace.to_line(packed=True)}
        for index in (5, 9)
        for name in ("greedy", "soar")
    ]
    path = tmp_path / "traces.jsonl.gz"
    path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))
    page = reader.open()
    page.locator("#trace-file").set_input_files(path)
    sync_api.expect(page.locator("#traces option")).to_have_text(["Number 5", "Number 9"])
    page.locator("#traces").select_option(label="Number 9")
    assert page.locator(".side h3").all_text_contents() == ["greedy", "soar"]
    trace = Trace.from_json(lines[2])
    assert page.locator(".lanes").first.locator("[data-key]").count() == sum(len(one.beam) for one in trace)


def test_what_was_decoded_is_saved_as_a_file_that_the_command_replays(reader: Reader, tmp_path: Path) -> None:
    page = reader.open()
    page.locator("#compare").click()
    decode(page, PROMPT, 12)
    before = [canvas_after(page, side) for side in (0, 1)]
    with page.expect_download() as saved:
        page.locator("#save").click()
    path = tmp_path / "saved.jsonl"
    saved.value.save_as(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["soar", "greedy"]
    assert all(line["prompt"] == PROMPT for line in lines)
    played = invoke("trace", str(path), "--method", "greedy", "--step", str(len(lines[1]["trace"])))
    assert played.exit_code == 0
    assert text_of(before[1]).strip() in played.output
    page.locator("#trace-file").set_input_files(path)
    sync_api.expect(page.locator("#opened")).to_be_visible()
    assert [canvas_after(page, side) for side in (0, 1)] == before


SCENE = {"around": ["a", ""], "blanks": [[1, 2]], "pieces": {}, "ends": [], "filler": 0, "low": 0, "high": 1}
DAMAGED = {
    "is empty": b"",
    "Line 1 of bad.jsonl is not JSON": b"not json\n",
    "Line 1 of bad.jsonl is not a trace": b'{"text": "no trace"}\n',
    "does not say what its tokens mean": b'{"trace": []}\n',
    "is damaged": gzip.compress(b"x" * 1000)[:20],
    "step 1 is not there": b'{"trace": [{"step": 2, "forwards": 1, "beam": []}], "scene": SCENE}',
    "lacks a list": b'{"trace": [{"step": 1, "forwards": 1, "beam": [{}]}], "scene": SCENE}',
    "its format is 7": b'{"trace": {"format": 7, "steps": []}, "scene": SCENE}',
}


def test_a_damaged_file_is_refused_in_words(reader: Reader, tmp_path: Path) -> None:
    page, path = reader.open(), tmp_path / "bad.jsonl"
    for sentence, content in DAMAGED.items():
        path.write_bytes(content.replace(b"SCENE", json.dumps(SCENE).encode()))
        page.locator("#trace-file").set_input_files(path)
        sync_api.expect(page.locator("#trouble")).to_contain_text(sentence)
    assert not page.locator("#stage").is_visible()


def test_the_legend_speaks_in_the_unit_of_the_metric(reader: Reader, tmp_path: Path) -> None:
    """It had probabilities for negative entropies, too."""
    page, first = reader.open(), {}
    for name, low in (("probability", 0.0), ("neg_entropy", None)):
        scene = {**SCENE, "low": low, "high": 1.0 if low == 0.0 else 0.0}
        line = {"index": 0, "method": name, "prompt": "a", "trace": [], "scene": scene}
        page.locator("#trace-file").set_input_files(written(tmp_path / f"{name}.jsonl", line))
        sync_api.expect(page.locator(".side h3").first).to_have_text(name)
        first[name] = page.locator(".scale .sure-0").text_content()
    assert first == {"probability": "\u2265 0.99", "neg_entropy": "\u2265 \u22120.01"}


def test_text_with_markup_in_it_stays_text(reader: Reader, lm: soar.LM, tmp_path: Path) -> None:
    trace = lm.generate("hello", "pbs", max_new_tokens=6, runners_up=True).trace
    assert trace.scene is not None
    scene = replace(trace.scene, around=(EVIL, EVIL), pieces=dict.fromkeys(trace.scene.pieces, EVIL), ends=())
    line = {"index": 0, "method": EVIL, "prompt": EVIL, **replace(trace, scene=scene).to_line()}
    page = reader.open()
    page.locator("#trace-file").set_input_files(written(tmp_path / "evil.jsonl", line))
    sync_api.expect(page.locator(".side h3").first).to_have_text(EVIL)
    assert page.locator(".cell.token").first.text_content() == EVIL
    page.locator(".cell.token").first.hover()
    assert EVIL in page.locator("#tip").text_content()
    decode(page, EVIL, 8)
    assert page.locator("img, b, main script").count() == 0
    assert page.evaluate("window.hacked") is None


def test_what_the_server_refuses_is_said_in_its_words(browser: Any, llada: str) -> None:
    reader = Reader(browser, llada)
    page = reader.open(text="hello", a="soar", **{"a.beam": "many", "a.threshold": "2"})
    page.locator("#run").click()
    sync_api.expect(page.locator("#trouble")).to_contain_text("beam")
    page.locator("#first-beam").fill("2")
    page.locator("#run").click()
    sync_api.expect(page.locator("#trouble")).to_contain_text("threshold")
    assert page.locator("#run").is_visible()
    page.locator("#first-threshold").fill("")
    decode(page, "hello", 8)
    assert page.locator("#trouble").text_content() == ""
    reader.context.close()


def test_a_server_that_is_gone_is_said_to_be(browser: Any, random_llada: soar.LM) -> None:
    with served(random_llada) as server:
        reader = Reader(browser, server.url)
        page = reader.open()
        page.locator("#text").fill("hello")
    page.locator("#run").click()
    sync_api.expect(page.locator("#trouble")).to_contain_text("cannot be reached")
    assert page.locator("#text").input_value() == "hello"
    reader.context.close()


def test_a_key_is_asked_for_only_where_the_server_wants_one(browser: Any, random_llada: soar.LM) -> None:
    with served(random_llada, ServeSettings(api_key="secret")) as server:
        reader = Reader(browser, server.url)
        page = reader.page
        page.goto(server.url)
        sync_api.expect(page.locator("#key")).to_be_focused()
        page.locator("#key").fill("wrong")
        page.keyboard.press("Enter")
        sync_api.expect(page.locator("#trouble")).to_contain_text("key")
        page.locator("#key").fill("secret")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready]")
        assert not page.locator("#key").is_visible()
        decode(page, "hello", 8)
        reader.context.close()


def test_a_decoding_can_be_stopped_and_what_came_of_it_stays(browser: Any, mini: str) -> None:
    reader = Reader(browser, mini)
    page = reader.open(text="Sudoku", a="pbs", max_tokens="300", **{"a.beam": "8"})
    assert not page.locator("#stop").is_visible()
    page.locator("#run").click()
    sync_api.expect(page.locator(".lanes [data-key]").first).to_be_visible()
    page.locator("#stop").click()
    says(page, "Stopped.")
    assert page.locator("#run").is_visible()
    last = int(page.locator("#slider").get_attribute("max"))
    assert 0 < last < 300
    page.locator("#to-start").click()
    assert page.locator(".canvas .cell.mask").count() == 300
    reader.close()


def test_everything_is_done_with_the_keyboard(reader: Reader) -> None:
    page = reader.open(a="greedy", text="", max_tokens="8")
    page.locator("#text").focus()
    page.keyboard.type("hello {there} j k")
    page.keyboard.press("Control+Enter")
    says(page, "Done")
    assert page.locator("#text").input_value() == "hello {there} j k"
    page.locator("#to-end").focus()
    step, last = page.locator("#step-text"), page.locator("#slider").get_attribute("max")
    for key, expected in [("Home", "0"), ("ArrowRight", "1"), ("ArrowRight", "2"), ("ArrowLeft", "1"), ("End", last)]:
        page.keyboard.press(key)
        assert step.text_content() == f"{expected} / {last}"
    page.locator(".canvas").focus()
    page.keyboard.press("Space")
    sync_api.expect(page.locator("#play")).to_have_text("Pause")
    page.keyboard.press("Space")
    sync_api.expect(page.locator("#play")).to_have_text("Play")


def test_every_control_has_a_name(reader: Reader) -> None:
    page = reader.open(text=PROMPT, a="deliberate", b="klass", max_tokens="8")
    page.locator("#run").click()
    says(page, "Done")
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, input:not([hidden]), select, textarea')]
        .filter(one => !(one.labels && one.labels.length) && !one.ariaLabel && !one.textContent.trim())
        .map(one => one.outerHTML)""")
    assert nameless == []
    assert page.locator("[role=status], [role=alert], [aria-live]").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_the_readers_colours(browser: Any, llada: str, scheme: str) -> None:
    reader = Reader(browser, llada, color_scheme=scheme)
    page = reader.open(text=PROMPT, a="soar", b="deliberate", max_tokens="24", run="1")
    says(page, "Done")
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    for width in (360, 768, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(paper) / 3 > 127) == (scheme == "light")
    reader.close()


def test_the_reference_fits_a_phone(browser: Any, llada: str) -> None:
    """Its second column was as wide as a letter."""
    reader = Reader(browser, llada, viewport={"width": 360, "height": 800})
    reader.page.goto(f"{llada}/docs")
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 360
    widths = reader.page.locator("td").evaluate_all("all => all.map(one => one.clientWidth)")
    assert min(widths) > 200
    reader.close()


def test_nothing_moves_for_readers_who_do_not_want_it(browser: Any, dreamon: str) -> None:
    reader = Reader(browser, dreamon, reduced_motion="reduce")
    page = reader.open(text=TEMPLATE, a="greedy", max_length="8", run="1")
    says(page, "Done")
    page.locator("#to-start").click()
    page.evaluate(
        "document.querySelector('.canvas').insertAdjacentHTML('beforeend', '<span class=\"cell grown\">a</span>')"
    )
    sync_api.expect(page.locator(".cell.grown").first).to_have_css("animation-name", "none")
    reader.close()
