"""What clients are answered: OpenAI's objects, and beside them what the search took."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional

from pydantic import BaseModel

from soar_dlm.engine.stopping import cut
from soar_dlm.lm import LM
from soar_dlm.results import Result

_NEAR = 8
"""A character has at most four bytes, and so at most four tokens."""

Finish = Literal["stop", "length"]


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Took(BaseModel):
    """What all searches of a request took; ``rows`` counts those of forwards, two each with guidance."""

    forwards: int
    rows: int
    steps: int
    tokens_per_forward: float
    mean_confidence: float
    seed: int


class CompletionLogprobs(BaseModel):
    """``steps`` is an addition: the step in which each token was committed; null for an alternative of a search."""

    tokens: list[str]
    token_logprobs: list[Optional[float]]
    top_logprobs: None = None
    text_offset: list[int]
    steps: Optional[list[Optional[int]]]


class TokenLogprob(BaseModel):
    """``step`` is an addition: that in which the token was committed. An unknown ``logprob`` is null."""

    token: str
    logprob: Optional[float]
    bytes: list[int]
    top_logprobs: list[Any] = []
    step: Optional[int]


class ChatLogprobs(BaseModel):
    content: list[TokenLogprob]
    refusal: None = None


class CompletionChoice(BaseModel):
    index: int
    text: str
    finish_reason: Finish
    logprobs: Optional[CompletionLogprobs] = None


class Whole(BaseModel):
    """What every answer has besides its choices."""

    id: str
    created: int
    model: str
    usage: Usage
    soar: Took


class Completion(Whole):
    object: Literal["text_completion"] = "text_completion"
    choices: list[CompletionChoice]


class Answer(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    index: int
    message: Answer
    finish_reason: Finish
    logprobs: Optional[ChatLogprobs] = None


class ChatCompletion(Whole):
    object: Literal["chat.completion"] = "chat.completion"
    choices: list[ChatChoice]


@dataclass(frozen=True)
class Written:
    """A text as it is answered: up to a stop string also where it fills a blank."""

    text: str
    tokens: Sequence[int]
    confidence: Sequence[float | None]
    steps: Sequence[int | None] | None
    finish: Finish

    @classmethod
    def of(cls, lm: LM, result: Result, stop: Sequence[str], logprobs: bool) -> Written:
        text, tokens = result.text, result.tokens
        kept = cut(text, stop)
        if kept is not None:
            text = kept
            counts = range(len(tokens))
            tokens = tokens[: bisect_left(counts, True, key=lambda count: lm.text_of(tokens[:count]).startswith(text))]
        stopped = kept is not None or result.finish_reason == "stop"
        steps: list[int | None] | None = None
        if logprobs and result.trace.steps:
            known = result.trace.steps_at()
            steps = [known.get(result.prompt_length + place) for place in range(len(tokens))]
        sure = result.token_confidence[: len(tokens)]
        return cls(text, tokens, sure, steps, "stop" if stopped else "length")

    def _logs(self) -> list[float | None]:
        """The logarithm of each confidence, which is a probability; null where a token was not committed by itself."""
        return [None if sure is None else math.log(max(sure, 1e-38)) for sure in self.confidence]

    def completion_logprobs(self, lm: LM) -> CompletionLogprobs:
        pieces = lm.pieces(self.tokens)
        offsets = _offsets(lm, self.tokens)
        steps = None if self.steps is None else [*self.steps]
        return CompletionLogprobs(tokens=pieces, token_logprobs=self._logs(), text_offset=offsets, steps=steps)

    def chat_logprobs(self, lm: LM) -> ChatLogprobs:
        steps = self.steps or [None] * len(self.tokens)
        return ChatLogprobs(
            content=[
                TokenLogprob(token=piece, logprob=log, bytes=list(piece.encode()), step=step)
                for piece, log, step in zip(lm.pieces(self.tokens), self._logs(), steps, strict=True)
            ]
        )


def _offsets(lm: LM, tokens: Sequence[int]) -> list[int]:
    """Where in the text each token begins.

    What a token adds to a text depends on the few before it, with which it may share a character. To read all of them
    each time would take minutes for a long text, in which nobody else is answered.
    """
    offsets = [0]
    for place in range(len(tokens) - 1):
        near = tokens[max(0, place - _NEAR) : place + 1]
        offsets.append(offsets[-1] + len(lm.text_of(near)) - len(lm.text_of(near[:-1])))
    return offsets[: len(tokens)]


def usage(results: Iterable[Result], written: Iterable[Written], each: int) -> Usage:
    """The tokens of the prompts, each counted once though ``each`` searches start from it, and of all texts."""
    prompts = sum(result.usage["prompt_tokens"] for place, result in enumerate(results) if place % each == 0)
    tokens = sum(len(one.tokens) for one in written)
    return Usage(prompt_tokens=prompts, completion_tokens=tokens, total_tokens=prompts + tokens)


def took(results: Sequence[Result], seed: int, guided: bool) -> Took:
    forwards = sum(result.forwards for result in results)
    tokens = sum(result.tokens_per_forward * result.forwards for result in results)
    return Took(
        forwards=forwards,
        rows=forwards * (2 if guided else 1),
        steps=sum(result.steps for result in results),
        tokens_per_forward=tokens / max(forwards, 1),
        mean_confidence=sum(result.mean_confidence for result in results) / len(results),
        seed=seed,
    )
