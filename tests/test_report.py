"""A report is one page that says what the results say, holds everything it needs, and takes nothing as markup."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import soar_dlm as soar
from soar_dlm.cli.main import app
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.results import ResultFolder
from soar_dlm.evals.runs import read_runs
from soar_dlm.evals.traces import TraceFile
from soar_dlm.report import Drawing, report_page
from soar_dlm.report.tables import MINUS, NOTHING, TIMES
from tests.command import runner
from tests.report_runs import Made, run_of, small_run, write


@pytest.fixture(scope="module")
def run(random_llada: soar.LM) -> Made:
    return small_run(random_llada)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def chunk_of(page: str, number: int) -> Any:
    found = re.search(f'<script type="text/plain" id="chunk-{number}">(.*?)</script>', page)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1]), -zlib.MAX_WBITS))


def words(page: str) -> str:
    """The page without its data and markup, as a reader without scripts would have it."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_folders_become_a_page_that_is_the_same_every_time(run: Made, tmp_path: Path) -> None:
    folder = write(run, tmp_path / "results" / "sums")
    page = report_page(read_runs([tmp_path]))
    assert page == report_page(read_runs([folder]))


def test_the_tables_compare_with_greedy(run: Made) -> None:
    told = words(report_page([run]))
    assert "random-llada" in told
    assert "a processor, 2 cores, 1 thread" in told
    assert "sums 4 problems · length 12" in told
    forwards = sum(one.forwards for one in run.records["SOAR"]) / 4
    plain = told.replace(MINUS, "-").replace(TIMES, "x").replace(NOTHING, "?")
    assert re.search(rf"SOAR 50\.0% 15\.0% to 85\.0% {forwards:.1f} \S+ x1\.00 \+1 -1 1\.000", plain)
    assert re.search(r"Greedy 50\.0% 15\.0% to 85\.0% 12\.0 1\.00 \? \? \? \?", plain)


def test_the_page_allows_only_its_own_script_and_style(run: Made) -> None:
    page = report_page([run])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    for element in ("script", "style"):
        own = re.findall(rf'<{element}(?: type="module")?>(.*?)</{element}>', page, flags=re.DOTALL)
        assert len(own) == 1
        assert f"'sha256-{base64.b64encode(sha256(own[0].encode()).digest()).decode()}'" in policy[1]
    outside = re.sub(r'<script type="module">.*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"\b(src|srcset|action|data)=|@import|url\(|\bstyle=", outside)
    assert set(re.findall(r'href=["\']?([^"\'>]+)', outside)) == {"#explorer-title"}


def test_what_others_wrote_is_never_markup(run: Made, random_llada: soar.LM) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    settings = {**run.results.settings, "model": evil, "task": evil}
    told = {name: {**one, "label": evil + name} for name, one in settings["methods"].items()}
    records = [replace(record, text=evil, kind=evil) for record in run.results.records]
    results = replace(run.results, settings={**settings, "methods": told}, records=records)
    bad = replace(run, name=evil, results=results)
    page = report_page([bad])
    assert page.count("<script") == report_page([run]).count("<script")
    assert "<img" not in page
    assert data_of(page)["groups"][0]["name"] == evil


def test_traces_are_shared_out_over_chunks(run: Made) -> None:
    page = report_page([run])
    group = data_of(page)["groups"][0]
    assert (group["methods"], group["pair"]) == (["Greedy", "SOAR"], [0, 1])
    assert group["right"] == ["0110", "1010"]
    assert [group["kinds"][kind] for kind in group["kind"]] == ["easy", "hard", "easy", "hard"]
    assert chunk_of(page, group["texts"])["answers"] == [f"answer {place}" for place in range(4)]
    traces = chunk_of(page, group["chunks"][0])
    trace = run.traces["SOAR", 2].trace
    reading, blanks, columns = traces[2][1]
    assert trace.scene is not None
    assert group["readings"][reading] == [list(trace.scene.ends), trace.scene.filler, trace.scene.low, trace.scene.high]
    assert blanks == [list(blank) for blank in trace.scene.blanks]
    entries = [entry for record in trace for entry in record.beam]
    assert columns[9] == [at for entry in entries for at in entry.positions]
    assert columns[11] == [round(one * 1e4) for entry in entries for one in entry.confidence]
    pieces = chunk_of(page, group["pieces"])
    assert {int(token) for token in pieces} >= {token for entry in entries for token in entry.tokens}


def test_without_traces_there_are_tables_and_texts_and_a_note(run: Made) -> None:
    page = report_page([run.untraced()])
    assert "Without traces: sums." in words(page)
    assert "50.0%" in words(page)
    group = data_of(page)["groups"][0]
    assert not group["traced"]
    assert chunk_of(page, group["texts"])["texts"][0][0] == run.results.records[0].text
    assert "Without traces" not in words(report_page([run]))


def test_an_unfinished_run_is_shown_as_far_as_all_methods_are(run: Made, tmp_path: Path) -> None:
    settings = {**run.results.settings, "problems": 8}
    begun = replace(run, results=replace(run.results, settings=settings))
    assert "sums 4 problems of 8, so far" in words(report_page([begun]))
    nothing = replace(run, results=replace(run.results, records=[], turns_done=0), made={})
    page = report_page([nothing])
    assert "No problems have been decoded by all methods yet." in words(page)
    assert data_of(page)["groups"] == []


def test_runs_of_one_task_have_names_of_their_own(run: Made, tmp_path: Path) -> None:
    for place in ("margin/sums", "probability/sums"):
        write(run, tmp_path / place)
    runs = read_runs([tmp_path, tmp_path / "margin"])
    assert [one.name for one in runs] == ["sums (margin)", "sums (probability)"]


def test_greedy_and_soar_are_compared_first_where_they_are_alike(random_llada: soar.LM) -> None:
    short = small_run(random_llada).untraced()
    methods = dict(short.results.settings["methods"])
    methods = {"SOAR long": {**methods["SOAR"], "label": "SOAR", "length": 99}, **methods}
    records = [replace(one, method="SOAR long") for one in short.results.records if one.method == "SOAR"]
    settings = {**short.results.settings, "methods": methods, "order": list(methods)}
    results = replace(short.results, settings=settings, records=[*records, *short.results.records], turns_done=3)
    group = data_of(report_page([replace(short, results=results)]))["groups"][0]
    assert [group["methods"][place] for place in group["pair"]] == ["Greedy", "SOAR"]


def test_traces_that_cannot_be_shown_are_refused(run: Made, tmp_path: Path) -> None:
    blind = {key: replace(one, trace=replace(one.trace, scene=None)) for key, one in run.traces.items()}
    write(replace(run, made=blind), tmp_path / "sums")
    with pytest.raises(InputFileError, match="do not say what their tokens mean"):
        report_page(read_runs([tmp_path]))


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90pt" height="60pt">'
    "<metadata>when</metadata><style>*{}</style><defs><clipPath id='c'><rect width='9' height='9'/></clipPath></defs>"
    "<g clip-path='url(#c)' style='fill: #123456; stroke: url(#c)' onclick='alert(1)'><use xlink:href='#c'/>"
    "<use xlink:href='http://example.org/#c'/><text fill='url(http://example.org)'>a &lt; b</text></g>{more}</svg>"
)


def test_figures_are_drawings_and_nothing_else(run: Made) -> None:
    hidden = report_page([run])
    assert re.search(r'<section id="figures"[^>]* hidden>', hidden)
    page = report_page([run], [Drawing("speed up", "Speed & accuracy", SVG.replace("{more}", ""))])
    assert not re.search(r'<section id="figures"[^>]* hidden>', page)
    found = re.search(r"<figure id='figure-speed-up'>.*?</figure>", page, flags=re.DOTALL)
    assert found is not None
    figure = found[0]
    assert "<figcaption>Speed &amp; accuracy</figcaption>" in figure
    assert 'viewBox="0 0 90 60"' in figure
    assert 'fill="#123456" stroke="url(#speed-up-c)"' in figure
    assert 'clip-path="url(#speed-up-c)"' in figure
    assert 'id="speed-up-c"' in figure
    assert 'href="#speed-up-c"' in figure
    assert "a &lt; b" in figure
    for gone in ("onclick", "example.org", "<style", "when", "style="):
        assert gone not in figure


@pytest.mark.parametrize("more", ["<script>alert(1)</script>", "<foreignObject/>", "<image href='x'/>", "<a/>"])
def test_figures_that_do_more_are_refused(run: Made, more: str) -> None:
    with pytest.raises(SettingsError, match="cannot show"):
        report_page([run], [Drawing("figure", "", SVG.replace("{more}", more))])


@pytest.mark.parametrize("svg", ["no markup", "<p/>"])
def test_figures_must_be_svg(run: Made, svg: str) -> None:
    with pytest.raises(SettingsError, match="is not SVG"):
        report_page([run], [Drawing("figure", "", svg)])


def test_the_command_writes_a_page_and_overwrites_only_on_request(run: Made, tmp_path: Path) -> None:
    results, page = write(run, tmp_path / "results"), tmp_path / "report.html"
    done = runner.invoke(app, ["report", str(results), "-o", str(page)])
    assert done.exit_code == 0
    shown = page.read_text(encoding="utf-8")
    assert '<h2 id="figures-title">' in shown
    assert "<svg" in shown
    again = runner.invoke(app, ["report", str(results), "-o", str(page)])
    assert isinstance(again.exception, SettingsError)
    assert "--overwrite" in str(again.exception)
    assert runner.invoke(app, ["report", str(results), "-o", str(page), "--overwrite"]).exit_code == 0
    assert page.read_text(encoding="utf-8") == shown


def test_the_command_reads_results_and_traces_once(run: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were read once for the tables and the explorer, and again for the figures."""
    results, read = write(run, tmp_path / "results"), []
    for kind in (ResultFolder, TraceFile):

        def counted(own: Any, kind: type[Any] = kind, original: Any = kind.read) -> Any:
            read.append(kind)
            return original(own)

        monkeypatch.setattr(kind, "read", counted)
    done = runner.invoke(app, ["report", str(results), "-o", str(tmp_path / "report.html")])
    assert done.exit_code == 0
    assert read == [ResultFolder, TraceFile]


def test_the_command_says_what_is_missing(run: Made, tmp_path: Path) -> None:
    results = write(run.untraced(), tmp_path / "results")
    done = runner.invoke(app, ["report", str(results), "-o", str(tmp_path / "report.html")])
    assert done.exit_code == 0
    assert "no traces of sums" in done.output
    nothing = runner.invoke(app, ["report", str(tmp_path / "none"), "-o", str(tmp_path / "other.html")])
    assert isinstance(nothing.exception, SettingsError)


def test_a_thousand_problems_by_five_methods_take_less_than_10_megabytes() -> None:
    """Extrapolated from the methods with the shortest and the longest traces, without what more problems would save."""
    lm = soar.load("mini-llada", device="cpu")
    names = ("Eva", "Tom", "Leila", "Dan")
    prompts = [
        f"{one} wins {place + 7} stickers. {one} gives {place + 2} away. How many are left?"
        for place, one in enumerate(names)
    ]
    results = {
        repr(strategy): lm.generate(prompts, strategy, max_new_tokens=56, trace=True)
        for strategy in (soar.Greedy(), soar.PositionBeam(2))
    }
    run = run_of(results, dict.fromkeys(results, "0000"))
    without, whole = report_page([run.untraced()]), report_page([run])
    longest = (len(whole) - len(without)) / (len(prompts) * len(results))
    assert len(without) + 5_000 * longest < 10e6
