"""What clients may send to OpenAI's routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional, Union

from pydantic import Field

from soar_dlm.serve.failures import Refused
from soar_dlm.serve.fields import Decoding, Many, Only, Strict

Tokens = Many[Annotated[int, Field(ge=0)]]
Count = Annotated[int, Field(ge=1)]


_LOGPROBS = "0 gives the log probability with which each token was committed."


class StreamOptions(Strict):
    include_usage: Optional[bool] = Field(None, description="A last chunk has the usage.")
    include_obfuscation: Annotated[Any, Only(False)] = None


class Common(Decoding):  # type: ignore[misc]
    """What all routes have in common."""

    model: Optional[str] = Field(None, description="The name of the model that is served.")
    max_tokens: Optional[Count] = Field(None, description="The most tokens to write. Default: the checkpoint's.")
    temperature: Optional[float] = Field(None, ge=0, description="0, the default, takes the most likely token.")
    top_p: Optional[float] = Field(None, gt=0, le=1)
    n: Optional[Count] = Field(
        None, description="Texts for each prompt: samples, or at temperature 0 what one search ends with."
    )
    seed: Optional[Annotated[int, Field(ge=0)]] = Field(None, description="Default: a fresh one.")
    stop: Optional[Union[str, Many[str]]] = Field(None, description="The text ends before any of these.")
    stream: Optional[bool] = Field(None, description="Send the text in chunks, as server-sent events.")
    stream_options: Optional[StreamOptions] = Field(None, description="Only with stream.")
    diffusing: Optional[bool] = Field(
        None, description="In a stream, every chunk has the whole text so far and replaces the last."
    )
    presence_penalty: Annotated[Any, Only(0)] = None
    frequency_penalty: Annotated[Any, Only(0)] = None
    logit_bias: Annotated[Any, Only({})] = None
    user: Optional[str] = Field(None, description="Changes nothing.")


class FimRequest(Common):
    """A text with a blank in it: what is before, and what comes after."""

    prompt: str = Field(description="What is before the blank.")
    suffix: Optional[str] = Field(None, description="What comes after it. Default: nothing.")
    logprobs: Optional[Literal[0]] = Field(None, description=_LOGPROBS)


class CompletionRequest(Common):
    """Texts to continue; with ``suffix``, the blank before it is filled."""

    prompt: Union[str, Many[str], Tokens, Many[Tokens]] = Field(
        description="A text, the token ids of one, or a list of either."
    )
    suffix: Optional[str] = Field(None, description="What comes after the blank that is to be filled.")
    logprobs: Optional[Literal[0]] = Field(None, description=_LOGPROBS)
    echo: Annotated[Any, Only(False)] = None
    best_of: Annotated[Any, Only(1)] = None


class Part(Strict):
    type: Literal["text"]
    text: str


class Turn(Strict):
    """A message: who speaks, and what. Chat templates take nothing else."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Union[str, Many[Part]]
    name: Annotated[Any, Only()] = None
    refusal: Annotated[Any, Only()] = None
    tool_calls: Annotated[Any, Only([])] = None
    function_call: Annotated[Any, Only()] = None
    audio: Annotated[Any, Only()] = None
    annotations: Annotated[Any, Only([])] = None

    def plain(self) -> dict[str, str]:
        """The message as chat templates know it."""
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class ChatRequest(Common):
    """A conversation to answer."""

    messages: Annotated[Many[Turn], Field(min_length=1)]
    max_completion_tokens: Optional[Count] = Field(None, description="The same as max_tokens.")
    logprobs: Optional[bool] = Field(None, description="The log probability with which each token was committed.")
    top_logprobs: Annotated[Any, Only(0)] = None
    response_format: Annotated[Any, Only({"type": "text"})] = None
    tools: Annotated[Any, Only([])] = None
    tool_choice: Annotated[Any, Only("none", "auto")] = None
    parallel_tool_calls: Annotated[Any, Only(True, False)] = None
    functions: Annotated[Any, Only([])] = None
    function_call: Annotated[Any, Only("none", "auto")] = None
    modalities: Annotated[Any, Only(["text"])] = None
    audio: Annotated[Any, Only()] = None
    prediction: Annotated[Any, Only()] = None
    reasoning_effort: Annotated[Any, Only("none")] = None
    verbosity: Annotated[Any, Only()] = None
    web_search_options: Annotated[Any, Only()] = None
    service_tier: Annotated[Any, Only("auto", "default")] = None
    store: Annotated[Any, Only(False)] = None
    metadata: Optional[dict[str, str]] = Field(None, description="Changes nothing.")
    safety_identifier: Optional[str] = Field(None, description="Changes nothing.")
    prompt_cache_key: Optional[str] = Field(None, description="Changes nothing.")

    @property
    def most(self) -> int | None:
        """The length that is asked for, by either name."""
        both = {self.max_tokens, self.max_completion_tokens} - {None}
        if len(both) > 1:
            raise Refused(400, "max_tokens and max_completion_tokens differ; send one of them.", "max_tokens")
        found: Any = next(iter(both), None)
        return None if found is None else int(found)
