"""``soar serve --ray`` on a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from soar_dlm.errors import SettingsError, SoarError
from soar_dlm.lm import load
from tests.command import invoke
from tests.ray_nodes import nodes
from tests.serving import Process, eventually, serve_process

pytest.importorskip("ray", reason="Ray is not installed: pip install 'soar-dlm[scale]'")

KEY = {"Authorization": "Bearer secret"}
PROMPT = "Tom has 3 apples. Tom buys 4 more apples."
LONG = {"prompt": PROMPT, "max_tokens": 100, "strategy": "greedy", "early_exit": False}
START = ("--replicas", "2", "--api-key", "secret", "--cpus-per-worker", "0.5")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with nodes(2) as cluster:
        yield cluster.address


@pytest.fixture(scope="module")
def server(address: str) -> Iterator[Process]:
    with serve_process("--ray", address, *START) as found:
        yield found


@pytest.fixture(scope="module")
def expected() -> str:
    text = load("mini-llada", device="cpu").generate(PROMPT, "greedy", max_new_tokens=100, early_exit=False).text
    assert text
    return text


def figures(server: Process, name: str, labels: str = "") -> dict[str, float]:
    """The values of a figure, by the names of the replicas that have one."""
    answer = httpx.get(f"{server.url}/metrics", headers=KEY, timeout=60)
    if answer.status_code != 200:  # a replica that has just been killed may have been asked
        return {}
    lines = re.findall(rf'^{name}{{{labels}replica="(\w+)"}} (\S+)$', answer.text, re.MULTILINE)
    return {replica: float(value) for replica, value in lines}


class Asking(threading.Thread):
    """A request whose answer is waited for elsewhere."""

    def __init__(self, server: Process, **more: Any) -> None:
        super().__init__()
        self._url, self._body = f"{server.url}/v1/completions", {**LONG, **more}
        self.answer: httpx.Response | None = None
        self.start()

    def run(self) -> None:
        self.answer = httpx.post(self._url, json=self._body, headers=KEY, timeout=120)

    def text(self) -> str | None:
        """The text, or None for an error that a client may answer by asking again."""
        self.join(120)
        assert self.answer is not None, "no answer"
        if self.answer.status_code == 503:
            assert int(self.answer.headers["retry-after"]) >= 1
            assert self.answer.json()["error"]["code"] == "replica_lost"
            return None
        assert self.answer.status_code == 200
        if "event-stream" not in self.answer.headers["content-type"]:
            return str(self.answer.json()["choices"][0]["text"])
        *chunks, last = [line.partition("data: ")[2] for line in self.answer.text.splitlines() if "data: " in line]
        if last != "[DONE]":
            assert json.loads(last)["error"]["code"] == "replica_lost"
            return None
        return "".join(choice["text"] for chunk in chunks for choice in json.loads(chunk)["choices"])


def test_requests_are_spread_over_replicas_and_answered_as_by_one_process(server: Process, expected: str) -> None:
    asked = [Asking(server, stream=number % 2 == 1) for number in range(6)]
    eventually(lambda: len([rows for rows in figures(server, "soar_rows_live").values() if rows]) == 2)
    assert [one.text() for one in asked] == [expected] * 6
    assert sum(figures(server, "soar_tokens_total").values()) == 600


def test_gates_errors_and_the_page_are_those_of_one_process(server: Process) -> None:
    refused = httpx.get(f"{server.url}/v1/models")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert httpx.get(f"{server.url}/", headers={"Host": "elsewhere.org"}).status_code == 403
    named = httpx.get(f"{server.url}/readyz", headers={"x-request-id": "mine"})
    assert named.headers.get_list("x-request-id") == ["mine"]
    assert named.headers["x-soar-replica"] in figures(server, "soar_rows_live")
    assert "<title>" in httpx.get(f"{server.url}/").text
    wrong = httpx.post(f"{server.url}/v1/completions", json={"prompt": "a", "beam": "wide"}, headers=KEY)
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "beam")


def test_a_client_that_leaves_frees_its_rows(server: Process) -> None:
    body = {**LONG, "max_tokens": 400, "stream": True, "diffusing": True}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=body, headers=KEY, timeout=60) as answer:
        lines = answer.iter_lines()  # is kept: without it the answer is closed
        next(lines)
        assert sum(figures(server, "soar_rows_live").values()) == 1
    eventually(lambda: sum(figures(server, "soar_rows_live").values()) == 0)
    assert sum(figures(server, "soar_searches_total", 'end="cancelled",').values()) == 1


def test_a_replica_that_is_killed_loses_its_own_requests_only_and_comes_back(server: Process, expected: str) -> None:
    asked = [Asking(server, stream=number % 2 == 1) for number in range(6)]
    eventually(lambda: len([rows for rows in figures(server, "soar_rows_live").values() if rows > 1]) == 2)
    text = httpx.get(f"{server.url}/metrics", headers=KEY, timeout=60).text
    lost, pid = re.findall(r'^soar_replica_info{.*pid="(\d+)",replica="(\w+)"', text, re.MULTILINE)[0][::-1]
    os.kill(int(pid), signal.SIGKILL)
    texts = [one.text() for one in asked]
    assert {*texts} == {None, expected}  # some were lost with it, and none of the others
    assert texts.count(None) < 6
    assert Asking(server).text() == expected
    eventually(lambda: len({*figures(server, "soar_rows_live")} - {lost}) == 2)


def test_an_update_that_cannot_start_leaves_what_runs(server: Process, address: str, expected: str) -> None:
    port = server.url.rpartition(":")[2]
    with pytest.raises(SoarError, match=r"^There is no folder '/no/model'\."):
        invoke("serve", "-m", "/no/model", "--ray", address, "--port", port, *START)
    assert Asking(server).text() == expected
    with pytest.raises(SettingsError, match=f"already listens on 127.0.0.1, port {port}"):
        invoke("serve", "--ray", address, "--port", "1", *START)
    assert server.process.poll() is None


def test_an_update_replaces_replicas_while_they_serve(server: Process, address: str, expected: str) -> None:
    """And ends what served before; a signal then finishes what runs, and ends Ray Serve. The last test of these."""
    before = {*figures(server, "soar_rows_live")}
    running = [Asking(server), Asking(server, stream=True)]
    with serve_process("--ray", address, *START, "--max-choices", "1") as updated:
        assert updated.url == server.url
        assert [one.text() for one in running] == [expected] * 2
        assert server.wait() == 0
        assert "replaced" in "".join(server.log)
        assert not before & {*figures(updated, "soar_rows_live")}
        several = httpx.post(f"{updated.url}/v1/completions", json={**LONG, "prompt": ["a", "b"]}, headers=KEY)
        assert several.status_code == 400

        running = [Asking(updated, stream=number == 0) for number in range(3)]
        eventually(lambda: sum(figures(updated, "soar_rows_live").values()) == 3)
        os.kill(updated.process.pid, signal.SIGTERM)
        eventually(lambda: httpx.get(f"{updated.url}/readyz").status_code == 503)
        refused = httpx.post(f"{updated.url}/v1/completions", json=LONG, headers=KEY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "no_replica")
        assert [one.text() for one in running] == [expected] * 3
        assert updated.wait() == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(updated.url)


def test_replicas_need_a_cluster_that_holds_them(address: str) -> None:
    with pytest.raises(SettingsError, match="add --ray"):
        invoke("serve", "--replicas", "2")
    with pytest.raises(SettingsError, match="--replicas takes a number"):
        invoke("serve", "--ray", address, "--replicas", "many")
    with pytest.raises(SettingsError, match="room for 2 workers with 1 CPU each, not for 3"):
        invoke("serve", "--ray", address, "--replicas", "3", "--port", "0")


def test_a_request_goes_where_the_rows_are_few() -> None:
    from soar_dlm.scale.routing import rows_now

    assert rows_now([({}, 0), ({}, 2)]) == [0, 2]  # nothing has been reported
    wide, narrow = {"rows": 32.0, "requests": 2}, {"rows": 4.0, "requests": 4}
    assert rows_now([(wide, 2), (narrow, 4)]) == [32, 4]
    assert rows_now([(wide, 0), (narrow, 5)]) == [0, 10]  # one that is new counts six rows, as all do on average


def test_figures_of_replicas_are_told_apart() -> None:
    from soar_dlm.scale.exposition import merged

    steps = CounterMetricFamily("soar_steps", "Steps.", 3)
    rows = GaugeMetricFamily("soar_rows_live", "Rows.", 1)
    text = merged({"b": [steps], "a": [steps, rows]}).decode()
    assert text.count("# TYPE soar_steps_total counter") == 1
    assert 'soar_steps_total{replica="a"} 3.0\nsoar_steps_total{replica="b"} 3.0\n' in text
    assert 'soar_rows_live{replica="a"} 1.0\n' in text


def mended(app: ASGIApp) -> httpx.Response:
    """What a client gets of an app's answer behind a proxy."""
    from soar_dlm.scale.proxy import Mended

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(Mended(app)), base_url="http://proxy") as http:
            return await http.get("/v1/models")

    return asyncio.run(ask())


@pytest.mark.parametrize(("theirs", "ours"), [(404, 503), (408, 504), (429, 429), (503, 503), (500, 503)])
def test_what_ray_says_is_said_in_the_shape_of_all_errors(theirs: int, ours: int) -> None:
    found = mended(PlainTextResponse("Ray says no", theirs))
    assert found.status_code == ours
    assert found.headers["retry-after"]
    assert found.json()["error"].keys() == {"message", "type", "param", "code"}


def test_an_answer_that_is_lost_before_its_body_is_an_error_as_a_whole() -> None:
    async def lost(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-soar-replica", b"a")]})

    assert mended(lost).json()["error"]["code"] == "replica_lost"
    assert mended(JSONResponse({"object": "list"}, headers={"x-soar-replica": "a"})).json() == {"object": "list"}
