"""What no client of good will sends: it is refused in words, and costs the others nothing."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from soar_dlm.lm import LM
from soar_dlm.serve.answers import _offsets
from soar_dlm.serve.canvas import CanvasRequest
from soar_dlm.serve.requests import ChatRequest, CompletionRequest
from soar_dlm.serve.settings import ServeSettings
from tests.serving import Served, eventually, served

MANY = 10_000


@pytest.fixture(scope="module")
def server(random_llada: LM) -> Iterator[Served]:
    with served(random_llada) as found:
        yield found


def refused(answer: httpx.Response, status: int = 400) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


@pytest.mark.parametrize(
    ("path", "body", "param", "sentence"),
    [
        ("completions", {"prompt": None}, "prompt", "prompt must be a valid string or a valid list."),
        ("completions", {"prompt": [True]}, "prompt.0", "a valid string or a valid integer or a valid list."),
        ("completions", {"prompt": ["a", [1]]}, "prompt.1", "a valid string"),
        ("completions", {"prompt": "a", "stop": 5}, "stop", "a valid string or a valid list"),
        ("completions", {"prompt": "a", "stream_options": {"x": 1}}, "stream_options.x", "no field"),
        ("completions", {}, "prompt", "prompt is missing."),
        ("completions", [], None, "must be a JSON object"),
        ("chat/completions", {"messages": []}, "messages", "at least 1 item"),
        ("chat/completions", {"messages": [{"content": "a"}]}, "messages.0.role", "is missing"),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]},
            "messages.0.content.0.type",
            "must be 'text'",
        ),
        ("canvas", {"template": "{blank}", "max_tokens": 4}, "max_tokens", "max_tokens"),
        ("canvas", {"template": "no blank"}, "template", "{blank}"),
        ("canvas", {"prompt": "a", "max_length": 4}, "max_length", "with a blank"),
    ],
    ids=repr,
)
def test_an_error_names_the_field_and_not_what_pydantic_calls_its_kind(
    server: Served, path: str, body: Any, param: str | None, sentence: str
) -> None:
    """``prompt.str`` was the name of a prompt that is none, and only one of the kinds it may be of was told."""
    error = refused(httpx.post(f"{server.url}/v1/{path}", json=body))
    assert error["param"] == param
    assert sentence in error["message"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CompletionRequest, {"prompt": [-1] * MANY}),
        (CompletionRequest, {"prompt": [[-1]] * MANY}),
        (CompletionRequest, {"prompt": "a", "stop": [5] * MANY}),
        (CompletionRequest, {"prompt": "a", "suppress_tokens": ["a"] * MANY}),
        (CompletionRequest, {"prompt": "a", **{f"x{number}": 1 for number in range(MANY)}}),
        (ChatRequest, {"messages": [{"rule": "user"}] * MANY}),
        (ChatRequest, {"messages": [{"role": "user", "content": [{}] * MANY}]}),
        (CanvasRequest, {"prompt": "a", "stop": [5] * MANY}),
    ],
)
def test_one_mistake_is_found_where_there_are_a_million(kind: type[BaseModel], body: dict[str, Any]) -> None:
    """A body of 4 MB held the server up for half a minute and took 5 GB: each entry had its errors described."""
    with pytest.raises(ValidationError) as found:
        kind.model_validate(body)
    assert found.value.error_count() < 10


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "text/json"])
def test_a_body_that_is_not_said_to_be_json_is_not_read(server: Served, kind: str | None) -> None:
    """Such a body needs no leave of the server: pages of other sites can send it. FastAPI read those of no kind."""
    headers = {} if kind is None else {"content-type": kind}
    answer = httpx.post(f"{server.url}/v1/completions", content=b'{"prompt": "a", "max_tokens": 2}', headers=headers)
    assert "Content-Type: application/json" in refused(answer)["message"]


def test_a_body_that_does_not_come_is_not_waited_for(random_llada: LM) -> None:
    """The time of a request began when its body was there, which could take for ever."""
    head = (
        "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n"
    )
    with served(random_llada, ServeSettings(timeout=0.05)) as server:
        port = int(server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(f"{head}\r\n{{".encode())
            assert raw.recv(4096).startswith(b"HTTP/1.1 504")


def test_a_slash_too_many_leads_nowhere(server: Served) -> None:
    """It led to the address that the server knows itself by: behind a proxy for https, to http, and the key along."""
    answer = httpx.post(f"{server.url}/v1/completions/", json={"prompt": "a"})
    assert "nothing at /v1/completions/" in refused(answer, 404)["message"]


def test_a_host_that_is_none_breaks_nothing(random_llada: LM) -> None:
    with served(random_llada, ServeSettings(hosts=None)) as server, httpx.Client(base_url=server.url) as client:
        for host in ("[", "[::1", "[::1]x", "[::1]:x", "a/b", "a b", "a@b", "a:b:c", ""):
            for path, status in (("/healthz", 200), ("/nothing", 404), ("/docs/", 404)):
                assert client.get(path, headers={"host": host}).status_code == status, host


def test_who_leaves_the_queue_leaves_no_trace_in_it(random_llada: LM) -> None:
    body = json.dumps({"prompt": "a", "max_tokens": 400, "strategy": "greedy", "early_exit": False}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    message = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    rows = random_llada.engine_settings.max_rows
    with served(random_llada) as server, ExitStack() as clients:

        def ask() -> None:
            port = int(server.url.rpartition(":")[2])
            raw = clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            raw.sendall(message)

        for _ in range(rows):
            ask()
        eventually(lambda: server.lm.live_rows == rows)
        ask()
        eventually(lambda: server.lm.waiting == 1)
        clients.close()
        eventually(lambda: server.lm.waiting == 0 and server.lm.live_rows == 0)
        assert server.lm.counts.cancelled == rows + 1


def test_text_offsets_are_those_of_the_text_that_was_read_up_to_each_token(random_llada: LM) -> None:
    """Each was found by reading all tokens before: with 4,000 of them nobody else was answered for seven seconds."""
    draw = random.Random(0)
    for length in (0, 1, 60):
        text = "".join(draw.choice("aé€😀 \n中") for _ in range(length))
        tokens = draw.sample(random_llada.encode(text)[0], k=len(random_llada.encode(text)[0]))
        tokens = [token for token in tokens if token not in random_llada.end_token_ids]
        expected = [len(random_llada.text_of(tokens[:place])) for place in range(len(tokens))]
        assert _offsets(random_llada, tokens) == expected


def test_no_answer_is_promised_that_is_never_given(server: Served) -> None:
    """The schema had FastAPI's 422 for mistakes, which are told with 400."""
    schema = httpx.get(f"{server.url}/openapi.json").json()
    routes = [route for methods in schema["paths"].values() for route in methods.values()]
    assert not any("422" in route["responses"] for route in routes)
    assert not {"HTTPValidationError", "ValidationError"} & schema["components"]["schemas"].keys()
    assert "Validation Error" not in httpx.get(f"{server.url}/docs").text
