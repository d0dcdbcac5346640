"""Who is let in, what is refused before it is read, and what is seen from outside."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from soar_dlm.async_lm import AsyncLM
from soar_dlm.errors import SettingsError
from soar_dlm.lm import LM
from soar_dlm.serve.app import make_app
from soar_dlm.serve.settings import ServeSettings
from soar_dlm.serve.watch import LOG, JsonLines
from tests.command import invoke
from tests.serving import Served, eventually, served

BODY = {"prompt": "a", "max_tokens": 4}
LONG = {"prompt": "a", "max_tokens": 200, "strategy": "greedy", "early_exit": False}


@pytest.fixture(scope="module")
def locked(random_llada: LM) -> Iterator[Served]:
    settings = ServeSettings(
        api_key="sesame", cors=["https://page.example"], max_body=1000, max_choices=3, log_prompts=True
    )
    with served(random_llada, settings) as found:
        yield found


def post(server: Served, body: Any = BODY, **headers: str) -> httpx.Response:
    known = {"authorization": "Bearer sesame", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.post(f"{server.url}/v1/completions", json=body, headers=known, timeout=60)


def error(answer: httpx.Response) -> Any:
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return body["error"]


def test_the_key_opens_the_api_and_pages_and_health_are_open(locked: Served) -> None:
    assert post(locked).status_code == 200
    for wrong in ("Bearer sesam", "Bearer sesam\xe9", "Basic sesame", ""):
        headers = {b"authorization": wrong.encode("latin-1")}
        answer = httpx.post(f"{locked.url}/v1/completions", json=BODY, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert error(answer)["code"] == "invalid_api_key"
    for path, status in (("/", 200), ("/healthz", 200), ("/readyz", 200), ("/metrics", 401), ("/v1/models", 401)):
        assert httpx.get(locked.url + path).status_code == status, path


def test_the_key_guards_an_app_that_is_mounted_too(random_llada: LM) -> None:
    """The gate looked at the whole path, so everything below /llm was open."""

    async def statuses() -> list[int]:
        async with AsyncLM(random_llada) as lm:
            outer = Starlette(routes=[Mount("/llm", app=make_app(lm, ServeSettings(api_key="sesame")))])
            async with httpx.AsyncClient(transport=httpx.ASGITransport(outer), base_url="http://localhost") as client:
                known = {"authorization": "Bearer sesame"}
                return [
                    (await client.get(f"/llm{path}", headers=headers)).status_code
                    for path in ("/v1/models", "/metrics", "/healthz")
                    for headers in ({}, known)
                ]

    assert asyncio.run(statuses()) == [401, 200, 401, 200, 200, 200]


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:9", "LOCALHOST"])
def test_names_of_this_machine_are_known(locked: Served, host: str) -> None:
    assert httpx.get(f"{locked.url}/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "[::2]:80", "localhost.evil.example"])
def test_a_page_whose_name_points_here_is_kept_out(locked: Served, host: str) -> None:
    answer = httpx.get(f"{locked.url}/healthz", headers={"host": host})
    assert answer.status_code == 403
    assert "--allow-host" in error(answer)["message"]


def test_only_pages_that_were_named_may_call_from_a_browser(locked: Served) -> None:
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    for origin, status in (("https://page.example", 200), ("https://other.example", 400)):
        answer = httpx.options(f"{locked.url}/v1/completions", headers={"origin": origin, **asking})
        assert answer.status_code == status
    assert post(locked, origin="https://page.example").headers["access-control-allow-origin"] == "https://page.example"
    assert "access-control-allow-origin" not in post(locked, origin="https://other.example").headers


def test_without_cors_no_page_is_named(random_llada: LM) -> None:
    with served(random_llada) as server:
        answer = httpx.get(f"{server.url}/healthz", headers={"origin": "https://page.example"})
        assert "access-control-allow-origin" not in answer.headers


def test_a_body_that_says_it_is_too_large_is_not_read(locked: Served) -> None:
    host, _, port = locked.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sesame\r\n"
        raw.sendall(f"{head}content-type: application/json\r\ncontent-length: 9999999\r\n\r\n".encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_body_that_grows_too_large_is_read_no_further(locked: Served) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    headers = {"authorization": "Bearer sesame", "content-type": "application/json"}
    answer = httpx.post(f"{locked.url}/v1/completions", content=parts(), headers=headers)
    assert answer.status_code == 413
    assert "1000 bytes" in error(answer)["message"]


def test_more_texts_than_allowed_are_refused(locked: Served) -> None:
    answer = post(locked, {**BODY, "prompt": ["a", "b"], "n": 2, "temperature": 1.0})
    assert answer.status_code == 400
    assert error(answer)["param"] == "n"


def test_a_request_that_takes_too_long_is_ended(random_llada: LM) -> None:
    with served(random_llada, ServeSettings(timeout=0.01)) as server:
        answer = post(server, LONG)
        assert answer.status_code == 504
        assert error(answer)["code"] == "timeout"
        streamed = post(server, {**LONG, "stream": True})
        assert streamed.status_code in (200, 504), "it depends on whether the first step was in time"
        assert "more than 0.01 s" in streamed.text
        eventually(lambda: server.lm.live_rows == 0)


def test_a_full_queue_says_when_to_come_back(random_llada: LM) -> None:
    async def work(url: str) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=60, limits=limits) as client:
            calls = [client.post(f"{url}/v1/completions", json={**LONG, "max_tokens": 60}) for _ in range(60)]
            return list(await asyncio.gather(*calls))

    with served(random_llada, queue=2) as server:
        answers = asyncio.run(work(server.url))
        busy = [answer for answer in answers if answer.status_code == 429]
        good = [answer for answer in answers if answer.status_code == 200]
        assert busy
        assert len(good) >= random_llada.engine_settings.max_rows
        assert len(busy) + len(good) == 60
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in busy)
        assert error(busy[0])["code"] == "queue_full"
        assert len({answer.json()["choices"][0]["text"] for answer in good}) == 1
        counted = httpx.get(f"{server.url}/metrics").text
        assert f'soar_answers_total{{route="/v1/completions",status="429"}} {float(len(busy))}' in counted
        assert f'soar_searches_total{{end="finished"}} {float(len(good))}' in counted
        assert "soar_requests_waiting 0.0" in counted


def test_an_id_goes_with_a_request_and_into_the_log(locked: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger=LOG.name):
        assert post(locked, x_request_id="mine-1").headers["x-request-id"] == "mine-1"
        assert post(locked, x_request_id="not good").headers["x-request-id"] != "not good"
        eventually(lambda: len([record for record in caplog.records if record.name == LOG.name]) >= 2)
    line = json.loads(JsonLines().format(next(record for record in caplog.records if record.name == LOG.name)))
    assert (line["id"], line["status"], line["path"]) == ("mine-1", 200, "/v1/completions")
    assert line["prompts"] == {"prompt": "a"}
    assert len(line["texts"]) == 1
    assert line["prompt_tokens"] == 1


def test_what_nobody_foresaw_is_counted_and_logged_as_500(random_llada: LM, caplog: pytest.LogCaptureFixture) -> None:
    """Its status was 0 there."""

    async def asked() -> tuple[httpx.Response, str]:
        async with AsyncLM(random_llada) as lm:
            app = make_app(lm)
            app.add_api_route("/broken", lambda: 1 // 0)
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get("/broken"), (await client.get("/metrics")).text

    with caplog.at_level(logging.INFO, logger=LOG.name):
        answer, counted = asyncio.run(asked())
    assert answer.status_code == 500
    assert "ZeroDivisionError" in error(answer)["message"]
    assert 'soar_answers_total{route="/broken",status="500"} 1.0' in counted
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records if record.name == LOG.name]
    assert [line["status"] for line in lines] == [500, 200]


def test_prompts_are_not_logged_unless_asked(random_llada: LM, caplog: pytest.LogCaptureFixture) -> None:
    with served(random_llada) as server, caplog.at_level(logging.INFO, logger=LOG.name):
        httpx.post(f"{server.url}/v1/completions", json={"prompt": "a secret", "max_tokens": 4})
        eventually(lambda: any(record.name == LOG.name for record in caplog.records))
    lines = [JsonLines().format(record) for record in caplog.records if record.name == LOG.name]
    assert not any("secret" in line for line in lines)


def test_settings_of_a_server_are_checked() -> None:
    for wrong in ({"max_body": 0}, {"timeout": 0}, {"api_key": ""}, {"api_key": 5}, {"cors": [""]}, {"hosts": 5}):
        with pytest.raises(SettingsError):
            ServeSettings(**wrong)


def test_a_port_that_is_taken_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsError, match="cannot listen"):
        invoke("serve", "--port", str(taken.getsockname()[1]))


def test_beyond_this_machine_it_needs_a_key_or_a_word() -> None:
    with pytest.raises(SettingsError, match="Whoever can reach"):
        invoke("serve", "--host", "0.0.0.0")
