"""The real client of OpenAI's API against a real server."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from soar_dlm.lm import LM, load
from tests.serving import Served, eventually, served

QUESTION = (
    "Eva wins 10 stickers. Eva finds 18 more stickers. Eva sells 3 stickers. How many stickers does Eva have now?"
)
PREFIX, SUFFIX = "def add(a, b):\n    ", "\n    return total\n"
STRATEGIES = ("greedy", "adaptive", "pbs", "soar", "lopa", "core", "deliberate")


@pytest.fixture(scope="module")
def llada() -> LM:
    return load("mini-llada", device="cpu")


@pytest.fixture(scope="module")
def dreamon() -> LM:
    return load("mini-dreamon", device="cpu")


@pytest.fixture(scope="module")
def server(llada: LM) -> Iterator[Served]:
    with served(llada) as found:
        yield found


@pytest.fixture(scope="module")
def infilling(dreamon: LM) -> Iterator[Served]:
    with served(dreamon) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Served) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


@pytest.fixture(scope="module")
def editor(infilling: Served) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{infilling.url}/v1", api_key="any", max_retries=0)


def complete(client: openai.OpenAI, **more: Any) -> Any:
    return client.completions.create(**{"model": "mini-llada", "prompt": QUESTION, "max_tokens": 56, **more})


def test_a_completion_is_the_text_of_generate_with_what_it_took(client: openai.OpenAI, llada: LM) -> None:
    found = complete(client)
    expected = llada.generate(QUESTION, max_new_tokens=56)
    assert found.choices[0].text == expected.text
    assert found.choices[0].finish_reason == "stop"
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (
        expected.usage["prompt_tokens"],
        expected.usage["completion_tokens"],
    )
    took = found.soar
    assert (took["forwards"], took["steps"], took["rows"]) == (expected.forwards, expected.steps, expected.forwards)
    assert took["tokens_per_forward"] == pytest.approx(expected.tokens_per_forward)
    assert took["mean_confidence"] == pytest.approx(expected.mean_confidence, abs=1e-4)


def test_settings_come_in_the_extra_body(client: openai.OpenAI, llada: LM) -> None:
    extra = {"strategy": "pbs", "beam": 3, "block_length": 8, "cache": "dual", "cfg_scale": 0.5}
    expected = llada.generate(
        QUESTION, llada.strategy("pbs", beam=3), max_new_tokens=24, block_length=8, cache="dual", cfg_scale=0.5
    )
    found = complete(client, max_tokens=24, extra_body=extra)
    assert found.choices[0].text == expected.text
    assert found.soar["rows"] == 2 * found.soar["forwards"] == 2 * expected.forwards


def test_lists_of_prompts_and_token_ids_are_answered_in_order(client: openai.OpenAI, llada: LM) -> None:
    prompts = [QUESTION, "Tom has 3 apples."]
    expected = [one.text for one in llada.generate(prompts, max_new_tokens=20)]
    ids = [llada.encode(prompt)[0] for prompt in prompts]
    for given in (prompts, ids):
        assert [one.text for one in complete(client, prompt=given, max_tokens=20).choices] == expected
    assert complete(client, prompt=ids[1], max_tokens=20).choices[0].text == expected[1]


def test_n_gives_samples_or_finalists(client: openai.OpenAI, llada: LM) -> None:
    drawn = complete(client, n=3, seed=7, temperature=1.0, top_p=0.9, max_tokens=20)
    expected = llada.generate(QUESTION, n=3, seed=7, temperature=1.0, top_p=0.9, max_new_tokens=20)
    assert [one.text for one in drawn.choices] == [one.text for one in expected]
    assert drawn.soar["seed"] == 7
    wide = llada.strategy("pbs", beam=4)
    finalists = complete(client, n=4, max_tokens=9, extra_body={"strategy": "pbs", "beam": 4})
    best = llada.generate(QUESTION, wide, n=4, max_new_tokens=9)
    assert [one.text for one in finalists.choices] == [one.text for one in best]
    assert [one.index for one in finalists.choices] == list(range(len(best)))
    assert finalists.usage.prompt_tokens == best[0].usage["prompt_tokens"]


def test_stop_ends_a_text_before_it(client: openai.OpenAI) -> None:
    whole = complete(client).choices[0].text
    assert " = 28" in whole
    found = complete(client, stop=["zzz", " = 28"])
    assert found.choices[0].text == whole.partition(" = 28")[0]
    assert found.choices[0].finish_reason == "stop"


def test_logprobs_are_the_confidence_and_the_step_of_each_commit(client: openai.OpenAI, llada: LM) -> None:
    expected = llada.generate(QUESTION, max_new_tokens=56)
    found = complete(client, logprobs=0).choices[0].logprobs
    assert "".join(found.tokens) == expected.text
    logs = [math.exp(log) for log in found.token_logprobs]
    assert logs == pytest.approx(expected.token_confidence, abs=1e-4)
    steps = expected.trace.steps_at()
    assert found.steps == [steps[expected.prompt_length + place] for place in range(len(expected.tokens))]
    assert [expected.text[at:].startswith(piece) for at, piece in zip(found.text_offset, found.tokens, strict=True)]
    with pytest.raises(openai.BadRequestError, match="no probabilities"):
        complete(client, logprobs=0, extra_body={"metric": "margin"})


def test_chat_answers_a_conversation(client: openai.OpenAI, llada: LM) -> None:
    turns: Any = [
        {"role": "system", "content": "Count."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    plain = [{"role": "system", "content": "Count."}, {"role": "user", "content": QUESTION}]
    expected = llada.generate(plain, max_new_tokens=24)
    found: Any = client.chat.completions.create(
        model="mini-llada", messages=turns, max_completion_tokens=24, logprobs=True
    )
    assert found.choices[0].message.content == expected.text
    assert "".join(one.token for one in found.choices[0].logprobs.content) == expected.text
    pieces = client.chat.completions.create(model="mini-llada", messages=turns, max_tokens=24, stream=True)
    deltas = [chunk.choices[0].delta for chunk in pieces]  # as clients read a stream: every chunk has a choice
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == expected.text


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_pieces_of_a_stream_are_the_text(client: openai.OpenAI, llada: LM, strategy: str) -> None:
    expected = llada.generate(QUESTION, strategy, max_new_tokens=40, block_length=8, stop=["####"])
    extra = {"strategy": strategy, "block_length": 8}
    options: Any = {"max_tokens": 40, "stop": "####", "stream": True, "extra_body": extra}
    *chunks, last = complete(client, stream_options={"include_usage": True}, **options)
    assert "".join(chunk.choices[0].text for chunk in chunks) == expected.text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]
    assert last.choices == []
    assert last.usage.completion_tokens == expected.usage["completion_tokens"]
    assert chunks[-1].soar["forwards"] == expected.forwards
    if strategy in ("greedy", "adaptive"):
        assert len(chunks) > 3, "text comes before the end"


def test_a_diffusing_stream_replaces_the_whole_text(client: openai.OpenAI, llada: LM) -> None:
    events = list(llada.stream(QUESTION, max_new_tokens=56))
    chunks = list(complete(client, stream=True, extra_body={"diffusing": True}))
    texts = [chunk.choices[0].text for chunk in chunks]
    assert texts == [event.text for event in events]
    assert all(chunk.diffusion_meta == {"diffusion_content": True} for chunk in chunks)
    assert "░" in texts[0]
    assert "░" not in texts[-1]


def test_a_stream_of_several_choices_has_the_texts_of_each(client: openai.OpenAI, llada: LM) -> None:
    found: dict[int, str] = {}
    options: Any = {"n": 2, "seed": 3, "temperature": 1.0, "max_tokens": 16}
    for chunk in complete(client, stream=True, prompt=[QUESTION, "Tom"], **options):
        for choice in chunk.choices:
            found[choice.index] = found.get(choice.index, "") + choice.text
    whole = complete(client, prompt=[QUESTION, "Tom"], **options)
    assert [found[index] for index in sorted(found)] == [choice.text for choice in whole.choices]


def test_a_suffix_is_infilled_and_the_blank_finds_its_length(editor: openai.OpenAI, dreamon: LM) -> None:
    expected = dreamon.infill(PREFIX, SUFFIX, length=4, max_length=24)
    options: Any = {"model": "mini-dreamon", "prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 24}
    options["extra_body"] = {"length": 4}
    found = editor.completions.create(**options)
    assert found.choices[0].text == expected.text
    pieces = editor.completions.create(**options, stream=True)
    assert "".join(chunk.choices[0].text for chunk in pieces if chunk.choices) == expected.text


def test_editors_have_a_route_of_their_own(infilling: Served, dreamon: LM) -> None:
    body = {"prompt": PREFIX, "suffix": SUFFIX, "max_tokens": 12, "fixed": True}
    expected = dreamon.infill(PREFIX, SUFFIX, length=12, fixed=True)
    answer = httpx.post(f"{infilling.url}/v1/fim/completions", json=body)
    assert answer.json()["choices"][0]["text"] == expected.text
    stop = expected.text[2:4]
    cut = httpx.post(f"{infilling.url}/v1/fim/completions", json={**body, "stop": stop}).json()["choices"][0]
    assert cut == {"index": 0, "text": expected.text.partition(stop)[0], "finish_reason": "stop", "logprobs": None}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"echo": True}, "echo"),
    ({"best_of": 3}, "best_of"),
    ({"presence_penalty": 0.5}, "presence_penalty"),
    ({"logit_bias": {"5": 1}}, "logit_bias"),
    ({"logprobs": 3}, "logprobs"),
    ({"temperature": -1}, "temperature"),
    ({"top_p": 0}, "top_p"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"n": 2, "extra_body": {"strategy": "greedy"}}, "n"),
    ({"n": 1000}, "n"),
    ({"prompt": []}, "prompt"),
    ({"prompt": "a" * 5000}, "prompt"),
    ({"prompt": [99999999]}, "prompt"),
    ({"extra_body": {"nonsense": 1}}, "nonsense"),
    ({"extra_body": {"strategy": "soaring"}}, "strategy"),
    ({"extra_body": {"strategy": "greedy", "beam": 2}}, "beam"),
    ({"extra_body": {"beam": "4"}}, "beam"),
    ({"extra_body": {"beam": 0}}, "beam"),
    ({"extra_body": {"metric": "luck"}}, "metric"),
    ({"extra_body": {"cache": "all"}}, "cache"),
    ({"extra_body": {"refresh_every": 3}}, "refresh_every"),
    ({"stop": [""]}, "stop"),
    ({"suffix": "b", "max_tokens": None, "extra_body": {"length": 0}}, "length"),
    ({"suffix": "b", "max_tokens": 4, "extra_body": {"length": 5}}, "max_tokens"),
    ({"suffix": "b", "extra_body": {"max_length": 9}}, "max_length"),
    ({"suffix": "b", "extra_body": {"truncate_prompt": True}}, "truncate_prompt"),
    ({"extra_body": {"max_length": 9}}, "max_length"),
    ({"extra_body": {"fixed": True}}, "fixed"),
    ({"extra_body": {"diffusing": True}}, "diffusing"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
]


@pytest.mark.parametrize(("given", "param"), REFUSED)
def test_what_is_not_honoured_is_refused_by_name(client: openai.OpenAI, given: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        complete(client, **given)
    body: Any = refused.value.body
    assert body["param"] is not None
    assert body["param"].split(".")[0] == param
    assert body["type"] == "invalid_request_error"
    assert body["message"].endswith(".")


def test_what_clients_always_send_is_accepted(client: openai.OpenAI) -> None:
    neutral: Any = {
        "n": 1,
        "best_of": 1,
        "echo": False,
        "presence_penalty": 0,
        "frequency_penalty": 0.0,
        "logit_bias": {},
        "user": "me",
        "stop": None,
        "logprobs": None,
        "seed": 5,
    }
    assert complete(client, **neutral).choices[0].text == complete(client).choices[0].text


def test_another_model_and_another_place_are_not_found(client: openai.OpenAI, server: Served) -> None:
    with pytest.raises(openai.NotFoundError, match="this is 'mini-llada'"):
        complete(client, model="gpt-4")
    assert client.models.list().data[0].id == client.models.retrieve("mini-llada").id == "mini-llada"
    for method, path, status in (("GET", "/v2", 404), ("GET", "/v1/completions", 405), ("POST", "/v1/models", 405)):
        answer = httpx.request(method, server.url + path)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"prompt": NaN}', b'{"prompt": "a", "prompt": "b"}', b"[" * 5000, b'{"prompt": "\\ud800"}', b"\xff"],
)
def test_a_body_that_is_no_json_is_refused(server: Served, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{server.url}/v1/completions", content=body, headers=headers)
    assert answer.status_code == 400
    assert "The body cannot be read" in answer.json()["error"]["message"]


def test_a_page_of_another_site_cannot_send_a_form(server: Served) -> None:
    answer = httpx.post(
        f"{server.url}/v1/completions", content='{"prompt": "a"}', headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 400


def test_the_async_client_has_its_calls_answered_together(server: Served, llada: LM) -> None:
    prompts = [f"Tom has {number} apples." for number in range(6)]

    async def work() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
            calls = [client.completions.create(model="mini-llada", prompt=one, max_tokens=16) for one in prompts]
            texts = [found.choices[0].text for found in await asyncio.gather(*calls)]
            stream = await client.completions.create(model="mini-llada", prompt=prompts[0], max_tokens=16, stream=True)
            pieces = [chunk.choices[0].text async for chunk in stream if chunk.choices]
            return [*texts, "".join(pieces)]

    expected = [one.text for one in llada.generate(prompts, max_new_tokens=16)]
    assert asyncio.run(work()) == [*expected, expected[0]]


LONG: dict[str, Any] = {"max_tokens": 400, "extra_body": {"strategy": "greedy", "early_exit": False}}
STREAMED: dict[str, Any] = {**LONG, "stream": True, "extra_body": {**LONG["extra_body"], "diffusing": True}}


def test_a_client_that_leaves_a_stream_frees_its_rows(client: openai.OpenAI, server: Served) -> None:
    before = server.lm.counts.cancelled
    stream = complete(client, **STREAMED)
    next(iter(stream))
    assert server.lm.live_rows == 1
    stream.close()
    eventually(lambda: server.lm.live_rows == 0)
    assert server.lm.counts.cancelled == before + 1


def test_a_client_that_leaves_before_its_answer_frees_its_rows(server: Served) -> None:
    before = server.lm.counts.cancelled

    async def work() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
            call = asyncio.ensure_future(client.completions.create(model="mini-llada", prompt=QUESTION, **LONG))
            while server.lm.live_rows == 0 and not call.done():
                await asyncio.sleep(0.005)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(work())
    eventually(lambda: server.lm.live_rows == 0)
    assert server.lm.counts.cancelled == before + 1


def test_what_fails_in_the_middle_of_a_stream_is_an_event(client: openai.OpenAI, server: Served) -> None:
    engine = server.lm._engine.engine
    stream = iter(complete(client, **STREAMED))
    next(stream)
    for live in engine._live:
        assert live._search is not None
        live._search.close()  # as a strategy would that breaks down
    with pytest.raises(openai.APIError, match="failed and ended its request"):
        list(stream)
