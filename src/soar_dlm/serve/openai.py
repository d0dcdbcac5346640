"""OpenAI's routes: completions, infilling and chat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Request, Response

from soar_dlm import checks
from soar_dlm.async_lm import AsyncLM
from soar_dlm.jobs import Prompt
from soar_dlm.options import DEFAULT_LENGTH
from soar_dlm.serve import answers
from soar_dlm.serve.body import StrictRoute
from soar_dlm.serve.exchange import Exchange
from soar_dlm.serve.failures import Refused, refused
from soar_dlm.serve.fields import SETTINGS, given, given_options
from soar_dlm.serve.models import served
from soar_dlm.serve.requests import ChatRequest, Common, CompletionRequest, FimRequest
from soar_dlm.serve.work import Work, planned
from soar_dlm.template import Template

router = APIRouter(tags=["OpenAI"], route_class=StrictRoute)
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer, or with stream its chunks.", "content": {"text/event-stream": {}}}
}


@router.post("/v1/completions", response_model=answers.Completion, responses=_STREAMED)
async def completions(body: CompletionRequest, request: Request) -> Response:
    """Continue texts; with ``suffix``, write what is missing between prompt and suffix."""
    with _naming(body):
        prompts = _prompts(body.prompt)
        if body.suffix is None:
            return await _answered(request, body, prompts, body.max_tokens, chat=False)
        if not all(isinstance(prompt, str) for prompt in prompts):
            raise Refused(400, "With a suffix, prompt must be text, not token ids.", "prompt")
        return await _infilled(request, body, [str(prompt) for prompt in prompts], body.suffix)


@router.post("/v1/fim/completions", response_model=answers.Completion, responses=_STREAMED)
async def fim(body: FimRequest, request: Request) -> Response:
    """Write what is missing between prompt and suffix, as editors ask for it."""
    with _naming(body):
        return await _infilled(request, body, [body.prompt], body.suffix or "")


@router.post("/v1/chat/completions", response_model=answers.ChatCompletion, responses=_STREAMED)
async def chat(body: ChatRequest, request: Request) -> Response:
    """Answer a conversation."""
    with _naming(body):
        return await _answered(request, body, [[turn.plain() for turn in body.messages]], body.most, chat=True)


@contextmanager
def _naming(body: Common) -> Iterator[None]:
    """Whatever goes wrong becomes a refusal that names the field it is about."""
    try:
        yield
    except Exception as error:
        raise refused(error, type(body).model_fields) from error


def _prompts(prompt: Any) -> list[Prompt]:
    """The prompts of a completion: one text, one list of token ids, or a list of either."""
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    if not prompt or not all(one or isinstance(one, str) for one in prompt):
        raise Refused(400, "prompt is empty; give a text, or token ids.", "prompt")
    return list(prompt)


async def _answered(request: Request, body: Common, prompts: list[Prompt], most: int | None, chat: bool) -> Response:
    options = given_options(body, blanks=False)
    if most is not None:
        options["max_new_tokens"] = most
    stop = checks.strings("stop", body.stop)
    if stop:
        options["stop"] = stop
    return await _exchanged(request, body, prompts, options, stop, chat)


async def _infilled(request: Request, body: Common, prefixes: list[str], suffix: str) -> Response:
    """``max_tokens`` is how far a blank may grow, or its length, where the model cannot change it."""
    facts = request.app.state.lm.lm.model.facts
    options = given_options(body, blanks=True)
    grows = facts.expand_id is not None and facts.delete_id is not None and not options.get("fixed", False)
    name = "max_length" if grows else "length"
    if body.max_tokens is not None:
        if options.setdefault(name, body.max_tokens) != body.max_tokens:
            raise Refused(400, f"max_tokens and {name} are the same for a blank here; send one of them.", "max_tokens")
        if grows:
            options.setdefault("length", min(body.max_tokens, DEFAULT_LENGTH))
    length = checks.whole_number("length", options.get("length", DEFAULT_LENGTH), 1)
    templates = [Template.between(prefix, suffix, length) for prefix in prefixes]
    return await _exchanged(request, body, templates, options, checks.strings("stop", body.stop), chat=False)


async def _exchanged(
    request: Request, body: Common, prompts: Any, options: dict[str, Any], stop: tuple[str, ...], chat: bool
) -> Response:
    lm: AsyncLM = request.app.state.lm
    settings = request.app.state.settings
    if body.model is not None:
        served(lm, body.model)
    for name in ("stream_options", "diffusing"):
        if getattr(body, name) and not body.stream:
            raise Refused(400, f"{name} is for streams; send stream as well, or leave it out.", name)
    strategy = lm.lm.strategy(body.strategy, **given(body, SETTINGS))
    logprobs = body.logprobs is not None and body.logprobs is not False
    if logprobs and strategy.metric != "probability":
        raise Refused(
            400,
            f"logprobs are the logarithms of confidences, which are no probabilities in the metric "
            f"{strategy.metric!r}; send metric='probability', or leave logprobs out.",
            "logprobs",
        )
    options |= {name: value for name in ("temperature", "top_p") if (value := getattr(body, name)) is not None}
    options["trace"] = logprobs
    work: Work = planned(
        lm,
        prompts,
        strategy,
        options,
        n=body.n,
        seed=body.seed,
        most_choices=settings.max_choices,
        timeout=settings.timeout,
    )
    log = request.state.log
    if settings.log_prompts:
        log["prompts"] = body.model_dump(include={"prompt", "suffix", "messages"}, exclude_none=True)
    diffusing = bool(body.diffusing)
    exchange = Exchange(lm, work, body.stream_options, stop, chat, logprobs, diffusing, len(prompts), log)
    if body.stream:
        return await exchange.streamed(request)
    return await exchange.answered(request)
