"""From what a user asks for to a request, and from its decoding back to a result."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Union

from soar_dlm import checks
from soar_dlm.engine.request import Decoding, Request
from soar_dlm.engine.settings import Options
from soar_dlm.errors import PromptError, SettingsError, UnknownName
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.models.text import Text
from soar_dlm.results import Infilling, Result
from soar_dlm.search.strategy import Strategy
from soar_dlm.template import Template

Message = dict[str, str]
Prompt = Union[str, Sequence[Message]]

MAX_LENGTH = 64
"""How far a blank may grow where nothing else is said, as in the paper."""


class DecodeOptions(TypedDict, total=False):
    """Keywords of :meth:`LM.decode`; :class:`soar_dlm.engine.settings.Options` says what they do.

    ``seed`` may be a list with one for each prompt or canvas.
    """

    block_length: int | None
    temperature: float
    top_k: int | None
    top_p: float
    cfg_scale: float
    seed: int | Sequence[int]
    suppress_tokens: Sequence[int]
    early_exit: bool


class GenerateOptions(DecodeOptions, total=False):
    """Keywords of :meth:`LM.generate` and :meth:`LM.stream`.

    ``max_new_tokens`` is the length of the canvas; ``stop`` strings end the text before them; ``chat`` puts a plain
    prompt into the model's chat template as the user's turn; ``add_special_tokens=False`` leaves out what the tokenizer
    puts around a plain prompt, for one that has it already; with ``truncate_prompt`` a prompt that is too long for the
    model's context loses its beginning, with a warning, where it would be refused otherwise. With ``length``, a model
    with expand and delete tokens starts from so many masks and changes the length as it sees fit, up to
    ``max_new_tokens``.
    """

    max_new_tokens: int
    stop: str | Sequence[str] | None
    chat: bool
    add_special_tokens: bool
    truncate_prompt: bool
    length: int | None


class InfillOptions(DecodeOptions, total=False):
    """Keywords of the infilling methods.

    ``length`` is the number of masks a blank starts with. A model with expand and delete tokens changes it as it sees
    fit, up to ``max_length`` (64); with ``fixed=True``, and with every other model, it stays.
    """

    length: int
    max_length: int | None
    fixed: bool


@dataclass(frozen=True)
class Job:
    """A request with what is needed to turn its decoding into a result; ``first`` is the length of its prompt."""

    request: Request
    first: int
    stop: tuple[str, ...] = ()
    template: Template | None = None
    whole_canvas: bool = False


def generate_job(
    text: Text, facts: ModelFacts, name: str, prompt: Prompt, strategy: Strategy, options: GenerateOptions, place: int
) -> Job:
    """A prompt and the masks that continue it."""
    given, checked = generate_settings(options, place)
    before, after = _encoded(text, name, prompt, given)
    length, most = given.max_new_tokens, None
    if given.length is not None:
        length, most = given.length, given.max_new_tokens
        if isinstance(prompt, str) and not given.chat and given.add_special_tokens:
            before, after = _start(text, facts, prompt)
    if given.truncate_prompt and facts.context is not None:
        before = _last(before, facts.context - length - len(after), facts.context)
    canvas = [*before, *[facts.mask_id] * length, *after]
    fill = range(len(before), len(before) + length)
    stops = given.stop
    stopped = (lambda ids: _cut(text.decode(text.until_end(ids)), stops) is not None) if stops else None
    return Job(Request(canvas, fill, strategy, checked, stopped, most), len(before), stops)


def infill_job(
    text: Text, facts: ModelFacts, template: Template, strategy: Strategy, options: InfillOptions, place: int
) -> Job:
    """A template with masks in its blanks.

    1. A text that goes on behind its last blank cannot end inside one, so end tokens are not offered there; one that
       doubles as delete is, while the length is free.
    2. A model with expand and delete tokens reads whole texts, from BOS to EOS, as DreamOn does: without the EOS it
       could not know that a text ends right behind a blank.
    """
    given: dict[str, Any] = dict(options)
    given.pop("length", None)  # already in the template
    max_length, fixed = given.pop("max_length", None), given.pop("fixed", False)
    variable = facts.expand_id is not None and facts.delete_id is not None and not fixed
    if max_length is not None and not variable:
        why = "fixed=True was given" if fixed else "this model has no expand and delete tokens"
        raise SettingsError(f"max_length says how far a blank may grow, but {why}; leave it out.")
    if variable and max_length is None:
        max_length = max(MAX_LENGTH, *template.lengths)
    if template.pieces[-1].strip():
        ends = [token for token in facts.end_ids if not (variable and token == facts.delete_id)]
        given["suppress_tokens"] = (*given.get("suppress_tokens", ()), *ends)
    checked = checked_options(given, place, also=("length", "max_length", "fixed"))
    ids, after = _start(text, facts, template.pieces[0])
    first = len(ids)
    fill: list[int] = []
    for length, piece in zip(template.lengths, template.pieces[1:], strict=True):
        fill += range(len(ids), len(ids) + length)
        between = text.encode(piece, framed=False)[0]
        ids += [facts.mask_id] * length + between
        if not between and len(fill) < sum(template.lengths):
            raise PromptError("Two blanks stand side by side with no text between them; make them one.")
    return Job(Request([*ids, *after], fill, strategy, checked, max_length=max_length), first, template=template)


def result_of(job: Job, decoding: Decoding, text: Text | None) -> Result:
    blanks = [[decoding.tokens[place] for place in blank] for blank in decoding.blanks]
    generated = [token for blank in blanks for token in blank]
    told: dict[str, Any] = {
        "token_ids": list(decoding.tokens) if job.whole_canvas else generated,
        "steps": decoding.steps,
        "forwards": decoding.forwards,
        "tokens_per_forward": decoding.written / max(decoding.forwards, 1),
        "mean_confidence": decoding.mean_confidence,
        "finish_reason": decoding.finish_reason,
        "trace": decoding.trace,
        "prompt_length": job.first,
    }
    if text is None:
        return Result(text="", **told)
    if job.template is not None:
        texts = [text.decode(text.until_end(blank)) for blank in blanks]
        return Infilling(text="".join(texts), blanks=texts, whole=job.template.filled(texts), **told)
    written = text.decode(text.until_end(generated))
    cut = _cut(written, job.stop)
    return Result(text=written if cut is None else cut, **told)


def is_conversation(prompt: Any) -> bool:
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in prompt)
    )


@dataclass(frozen=True)
class GenerateSettings:
    """What :class:`GenerateOptions` says beyond the options of a request."""

    max_new_tokens: int = 128
    stop: tuple[str, ...] = ()
    chat: bool = False
    add_special_tokens: bool = True
    truncate_prompt: bool = False
    length: int | None = None

    def __post_init__(self) -> None:
        checks.whole_number("max_new_tokens", self.max_new_tokens, 1)
        if self.length is not None:
            checks.whole_number("length", self.length, 1)
            if self.length > self.max_new_tokens:
                raise SettingsError(f"length is {self.length}, more than max_new_tokens, {self.max_new_tokens}.")
        given: Any = self.stop or ()
        stops = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
        if not all(isinstance(one, str) and one for one in stops):
            raise SettingsError(f"stop must be a non-empty string or a list of them, not {given!r}.")
        object.__setattr__(self, "stop", stops)


def generate_settings(options: GenerateOptions, place: int) -> tuple[GenerateSettings, Options]:
    """The settings of the text, and the options of the request at this place of a list."""
    own = [entry.name for entry in fields(GenerateSettings)]
    given: dict[str, Any] = dict(options)
    settings = GenerateSettings(**{name: given.pop(name) for name in own if name in given})
    return settings, checked_options(given, place, also=own)


def checked_options(given: Mapping[str, Any], place: int, also: Sequence[str] = ()) -> Options:
    """The options of one request; a list of seeds has one for each."""
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise UnknownName("option", name, [*known, *also])
    seed = given.get("seed", 0)
    if isinstance(seed, Sequence) and not isinstance(seed, str):
        if place >= len(seed):
            raise SettingsError(f"seed has {len(seed)} entries, too few for the prompts; give one number or one each.")
        return Options(**{**given, "seed": seed[place]})
    return Options(**given)


def _last(ids: list[int], room: int, context: int) -> list[int]:
    """The end of a prompt that has room; all of it where that is none at all, to be refused as too long."""
    if len(ids) <= room or room < 1:
        return ids
    warnings.warn(f"Prompts too long for the model's context of {context} lose their beginning.", stacklevel=2)
    return ids[-room:]


def _start(text: Text, facts: ModelFacts, piece: str) -> tuple[list[int], list[int]]:
    """The ids of the first piece of a text with blanks, and what belongs behind the last."""
    return text.encode(piece) if facts.expand_id is None else text.whole(piece)


def _encoded(text: Text, name: str, prompt: Prompt, given: GenerateSettings) -> tuple[list[int], list[int]]:
    if isinstance(prompt, str) and not given.chat:
        return text.encode(prompt, given.add_special_tokens)
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not is_conversation(messages):
        raise PromptError(
            f"A prompt is a string or a list of messages with 'role' and 'content', not {type(prompt).__name__}."
        )
    if not text.has_chat_template:
        raise PromptError(f"{name!r} has no chat template; give plain text and leave out chat.")
    return text.encode_chat(messages)


def _cut(text: str, stops: Sequence[str]) -> str | None:
    """The text before the first stop string in it; None if it has none."""
    found = [text.index(stop) for stop in stops if stop in text]
    return text[: min(found)] if found else None
