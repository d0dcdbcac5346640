"""What the page is made of: the stream of a decoding's steps, what there is to choose from, and its files."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sse_starlette import ServerSentEvent

import soar_dlm as soar
from soar_dlm import web
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import NonFiniteLogits
from soar_dlm.options import InfillOptions
from soar_dlm.search.about import About
from soar_dlm.search.metrics import METRICS
from soar_dlm.serve.canvas import _sent, _steps
from soar_dlm.serve.facts import _settings
from soar_dlm.serve.page import POLICY
from soar_dlm.tasks.catalogue import make_task
from soar_dlm.template import Template
from tests.report_runs import TEMPLATE
from tests.serving import eventually, served

STRATEGIES: list[dict[str, Any]] = [
    {},
    {"strategy": "greedy", "tokens_per_step": 3},
    {"strategy": "soar", "beam": 3, "threshold": 0.7},
    {"strategy": "pbs", "beam": 2, "metric": "neg_entropy"},
    {"strategy": "deliberate", "threshold": 0.7, "accept": 0.0, "tries": 2},
    {"strategy": "core", "every": 3},
]
EVENT = re.compile(r"event: (\w+)\ndata: (.*)\n\n")


@pytest.fixture(scope="module")
def llada(random_llada: soar.LM) -> Iterator[httpx.Client]:
    with served(random_llada) as server, httpx.Client(base_url=server.url) as client:
        yield client


@pytest.fixture(scope="module")
def dreamon() -> Iterator[httpx.Client]:
    with served(soar.load("mini-dreamon", device="cpu")) as server, httpx.Client(base_url=server.url) as client:
        yield client


def streamed(client: httpx.Client, **body: Any) -> list[tuple[str, dict[str, Any]]]:
    answer = client.post("/v1/canvas", json=body, timeout=60.0)
    assert answer.status_code == 200, answer.text
    return [(name, json.loads(data)) for name, data in EVENT.findall(answer.text)]


def put_together(events: list[tuple[str, dict[str, Any]]]) -> Trace:
    """The trace that a reader of the stream has at its end."""
    scene = dict(events[0][1]["scene"])
    steps = [data for name, data in events if name == "step"]
    scene["pieces"] = {token: piece for step in steps for token, piece in step["pieces"].items()}
    return Trace.from_json({"trace": steps, "scene": scene})


def settings_of(body: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    return body.get("strategy"), {name: value for name, value in body.items() if name != "strategy"}


@pytest.mark.parametrize("body", STRATEGIES, ids=repr)
def test_the_steps_of_a_prompt_are_those_of_a_stream(
    llada: httpx.Client, random_llada: soar.LM, body: dict[str, Any]
) -> None:
    name, settings = settings_of(body)
    strategy = random_llada.strategy(name, **settings)
    last = list(random_llada.stream("once upon a time", strategy, max_new_tokens=12, runners_up=True))[-1]
    events = streamed(llada, prompt="once upon a time", max_tokens=12, runners_up=True, **body)
    assert last.result is not None
    assert [event for event, _ in events] == ["start", *["step"] * len(last.result.trace), "result"]
    found = put_together(events)
    assert found == last.result.trace
    assert found.scene == last.result.trace.scene
    assert events[-2][1]["forwards_so_far"] == last.forwards
    assert events[-1][1] == json.loads(json.dumps(last.result.to_dict()))


@pytest.mark.parametrize("body", STRATEGIES, ids=repr)
def test_the_steps_of_a_text_with_blanks_are_those_of_a_stream(dreamon: httpx.Client, body: dict[str, Any]) -> None:
    lm = soar.load("mini-dreamon", device="cpu")
    name, settings = settings_of(body)
    last = list(lm.stream_infill(TEMPLATE, lm.strategy(name, **settings), max_length=8))[-1]
    events = streamed(dreamon, template=TEMPLATE, max_length=8, **body)
    assert last.result is not None
    found = put_together(events)
    assert found == last.result.trace
    assert found.scene == last.result.trace.scene
    assert events[-1][1]["whole"] == json.loads(json.dumps(last.result.to_dict()))["whole"]


def test_a_step_has_only_what_is_new(llada: httpx.Client) -> None:
    events = streamed(llada, prompt="hello", strategy="greedy", max_tokens=8)
    steps = [data for name, data in events if name == "step"]
    tokens = [token for step in steps for token in step["pieces"]]
    assert len(tokens) == len(set(tokens))
    assert all(len(entry["positions"]) == 1 for step in steps for entry in step["beam"])
    assert "runners_up" not in steps[0]["beam"][0]


def test_the_steps_that_a_slow_reader_missed_come_with_the_next(random_llada: soar.LM) -> None:
    events = list(random_llada.stream("hello", soar.Soar(2, 0.7), max_new_tokens=8))
    records = [event.record for event in events if event.record is not None]
    pieces = {token: piece for event in events for token, piece in event.pieces.items()}
    steps = _steps(replace(events[-1], missed=tuple(records[1:-1]), pieces=pieces), {*events[0].pieces})
    assert [step["step"] for step in steps] == list(range(2, len(records) + 1))
    assert [step["forwards_so_far"] for step in steps] == [event.forwards for event in events[1:]]
    assert steps[0]["pieces"].keys() == {str(token) for token in pieces.keys() - events[0].pieces.keys()}
    assert all(not step["pieces"] for step in steps[1:])


def test_the_start_says_what_is_decoded_and_how(dreamon: httpx.Client) -> None:
    start = streamed(dreamon, template=TEMPLATE, strategy="soar", beam=3, block_length=4)[0][1]
    assert start["model"] == "mini-dreamon"
    assert start["strategy"] == "Soar: beam 3, threshold 0.99, metric probability"
    assert start["canvas"] == "blocks of 4"
    assert start["scene"]["around"] == list(Template.parse(TEMPLATE).pieces)


@pytest.mark.parametrize(
    ("body", "status", "param", "sentence"),
    [
        ({}, 400, "prompt", "one of the two"),
        ({"prompt": "a", "template": "{blank}"}, 400, "prompt", "one of the two"),
        ({"template": "no blank"}, 400, None, "{blank}"),
        ({"prompt": "a", "beam": 0}, 400, "beam", "at least 1"),
        ({"prompt": "a", "strategy": "greedy", "beam": 2}, 400, None, "beam"),
        ({"prompt": "a", "sterategy": "soar"}, 400, "sterategy", "no field"),
        ({"prompt": "a", "model": "gpt"}, 404, "model", "no model"),
        ({"template": "{blank}", "max_tokens": 4}, 400, None, "max_"),
    ],
    ids=repr,
)
def test_a_mistake_is_refused_before_the_stream_begins(
    llada: httpx.Client, body: dict[str, Any], status: int, param: str | None, sentence: str
) -> None:
    answer = llada.post("/v1/canvas", json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert sentence in error["message"]
    assert param is None or error["param"] == param


def test_what_fails_on_the_way_ends_the_stream_with_an_error(random_llada: soar.LM) -> None:
    first = next(random_llada.stream("hello", soar.Greedy(), max_new_tokens=4))

    async def failing() -> AsyncGenerator[Any, None]:
        for error in [NonFiniteLogits("The model returned NaN.")]:
            raise error
        yield

    async def sent() -> list[ServerSentEvent]:
        return [one async for one in _sent({}, first, failing())]

    events = asyncio.run(sent())
    assert [one.event for one in events] == ["start", "step", "error"]
    assert json.loads(str(events[-1].data))["error"]["message"] == "The model returned NaN."


def test_a_reader_who_leaves_takes_the_search_along() -> None:
    with served(soar.load("mini-llada", device="cpu")) as server, httpx.Client(base_url=server.url) as client:
        body = {"prompt": "Sudoku", "strategy": "pbs", "beam": 8, "max_tokens": 300, "early_exit": False}
        with client.stream("POST", "/v1/canvas", json=body) as answer:
            assert next(answer.iter_lines()) == "event: start"
        eventually(lambda: server.lm.live_rows == 0)
        assert server.lm.counts.cancelled == 1


def test_the_settings_offered_are_those_that_a_request_gets(dreamon: httpx.Client) -> None:
    lm = soar.load("mini-dreamon", device="cpu")
    facts = dreamon.get("/v1/strategies").json()
    assert facts["default"] == "soar"
    for one in facts["strategies"]:
        name = None if one["name"] == facts["default"] else one["name"]
        strategy = lm.strategy(name).bound(lm.model.facts.thresholds)
        for setting in one["settings"]:
            assert setting["default"] == getattr(strategy, setting["name"]), one["name"]
            assert setting["choices"] == ([] if setting["kind"] != "choice" else METRICS.names())
    offered = {one["name"]: one["default"] for one in facts["options"]}
    assert offered["temperature"] == InfillOptions.temperature
    assert offered["max_length"] == 64


def test_a_strategy_that_must_be_told_more_is_offered_all_the_same(random_llada: soar.LM) -> None:
    (setting,) = _settings(About("needy", "", {"beam": None}, soar.PositionBeam), random_llada)
    assert (setting.name, setting.kind, setting.default) == ("beam", "whole", None)


def test_a_model_of_fixed_length_offers_no_greatest_length(llada: httpx.Client) -> None:
    options = [one["name"] for one in llada.get("/v1/strategies").json()["options"]]
    assert "max_length" not in options
    assert "max_tokens" in options


def test_examples_are_problems_of_the_tasks_that_the_model_knows(llada: httpx.Client, dreamon: httpx.Client) -> None:
    assert llada.get("/v1/examples").json() == {"examples": []}
    (one,) = dreamon.get("/v1/examples?seed=4").json()["examples"]
    assert one == dreamon.get("/v1/examples?seed=4").json()["examples"][0]
    assert one["task"] == "mini-infill"
    problem = next(iter(make_task("mini-infill").problems("test", 4)))
    assert Template.parse(one["template"]).pieces == (problem.prompt, problem.suffix)
    assert one["answer"] == problem.answer.strip("\n")


def test_a_seed_that_is_none_is_refused(dreamon: httpx.Client) -> None:
    assert dreamon.get("/v1/examples?seed=-1").status_code == 400


def files(client: httpx.Client) -> dict[str, httpx.Response]:
    page = client.get("/")
    paths = re.findall(r'(?:href|src)="(page/[^"]+)"', page.text)
    found = {"/": page}
    while paths:
        path = f"/{paths.pop()}"
        if path not in found:
            found[path] = client.get(path)
            paths += [f"page/{name}" for name in re.findall(r'from "\./([\w.]+)"', found[path].text)]
    return found


def test_the_page_and_all_it_asks_for_are_there_under_a_strict_policy(llada: httpx.Client) -> None:
    found = files(llada)
    assert {f"/page/{name}" for name in (*web.STYLES, *web.SCRIPTS)} < found.keys()
    for path, answer in found.items():
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
        assert not re.search(
            r"https?://(?!www\.w3\.org)|innerHTML|insertAdjacentHTML|\beval\(|\bstyle=", answer.text
        ), path
    assert "unsafe" not in POLICY
    assert not re.search(r"<style|<script(?! type=\"module\" src=)|\bon\w+=", found["/"].text)


def test_a_file_that_is_known_is_not_sent_again(llada: httpx.Client) -> None:
    first = llada.get("/page/page.js")
    again = llada.get("/page/page.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert llada.get("/page/page.js", headers={"If-None-Match": '"other"'}).content == first.content


def test_nothing_else_of_the_package_is_served(llada: httpx.Client) -> None:
    for path in ("/page/page.py", "/page/../app.py", "/page/__init__.py", "/static/index.html"):
        assert llada.get(path).status_code == 404


def test_the_reference_has_every_route_and_field_and_no_script(llada: httpx.Client) -> None:
    page, schema = llada.get("/docs"), llada.get("/openapi.json").json()
    assert page.headers["content-security-policy"] == POLICY
    assert "<script" not in page.text
    for path in schema["paths"]:
        assert f" {path}</code></h2>" in page.text
    for kind in ("CompletionRequest", "FimRequest", "ChatRequest", "CanvasRequest"):
        for field in schema["components"]["schemas"][kind]["properties"]:
            assert f"<code>{field}</code>" in page.text
    for name in re.findall(r'href="(page/[^"]+)"', page.text):
        assert llada.get(f"/{name}").status_code == 200
    assert {*re.findall(r'href="#(\w+)"', page.text)} <= {*re.findall(r'id="(\w+)"', page.text)}


def test_the_pages_ask_for_nothing_by_a_path_from_the_root(llada: httpx.Client) -> None:
    """An app that is mounted below a path has its files and routes below it, too."""
    for path, answer in {**files(llada), "/docs": llada.get("/docs")}.items():
        assert not re.search(r"""(?:href|src|action)="/|["'`]/(?:v1|page)\b|url\(/""", answer.text), path
