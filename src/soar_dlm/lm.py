"""The public face: text in, text out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from operator import index
from typing import Any, TypedDict, Union, overload

import numpy as np
from typing_extensions import Unpack

from soar_dlm import checks
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Decoding, Request, StepEvent
from soar_dlm.engine.settings import EngineSettings, Options
from soar_dlm.errors import NoTokenizer, PromptError, SettingsError, SoarError, UnknownName
from soar_dlm.models.loading import Checkpoint, load_checkpoint
from soar_dlm.models.text import Text
from soar_dlm.results import Event, Result
from soar_dlm.search.catalogue import as_strategy
from soar_dlm.search.strategy import Strategy

Message = dict[str, str]
Prompt = Union[str, Sequence[Message]]
AnyStrategy = Union[Strategy, str, None]

MASK_SIGN = "░"
"""How a position that is still masked reads in the text of an :class:`Event`."""


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
    prompt into the model's chat template as the user's turn.
    """

    max_new_tokens: int
    stop: str | Sequence[str] | None
    chat: bool


@dataclass(frozen=True)
class _Job:
    """A request with what is needed to turn its decoding into a result."""

    request: Request
    first: int
    stop: tuple[str, ...]
    whole_canvas: bool = False


class LM:
    """A diffusion language model ready to write. Made by :func:`load`."""

    def __init__(self, checkpoint: Checkpoint, engine: EngineSettings | None = None) -> None:
        self.name, self.family, self.model = checkpoint.name, checkpoint.family, checkpoint.model
        self._text = checkpoint.text
        self.engine_settings = engine or EngineSettings()

    def __repr__(self) -> str:
        return f"<LM {self.name!r}, {self.family.title}, on {self.model.device}>"

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer, or None."""
        return self._text.tokenizer if self._text is not None else None

    @overload
    def generate(self, prompt: str, strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]) -> Result: ...
    @overload
    def generate(
        self, prompt: list[Message], strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]
    ) -> Result: ...
    @overload
    def generate(
        self, prompt: list[str] | list[list[Message]], strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]
    ) -> list[Result]: ...

    def generate(self, prompt: Any, strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]) -> Any:
        """Continue a text, a conversation (a list of messages), or a list of these: a Result, or a list of them.

        All prompts are checked before the first is decoded.
        """
        single = isinstance(prompt, str) or _is_conversation(prompt)
        if not single and (not isinstance(prompt, Iterable) or isinstance(prompt, Mapping)):
            raise PromptError(f"generate takes a string, a list of messages, or a list of these, not {prompt!r}.")
        jobs = [self._job(one, strategy, options, place) for place, one in enumerate([prompt] if single else prompt)]
        results = self._run(jobs)
        return results[0] if single else results

    def generate_as_completed(
        self, prompts: Iterable[Prompt], strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]
    ) -> Iterator[tuple[int, Result | SoarError]]:
        """Continue many prompts; yields (index, result) as each is done, or (index, error) for one that fails.

        Prompts are taken from the iterable as there is room in the batch, so it may be long or slow.
        """
        self._settings(options, 0)  # what is wrong for every prompt is raised, not yielded
        chosen = as_strategy(strategy)
        self._need_text()
        engine = Engine(self.model, self.engine_settings)
        running: dict[int, tuple[int, _Job]] = {}
        source = enumerate(prompts)
        exhausted = False
        while running or not exhausted:
            while engine.hungry and not exhausted:
                place, prompt = next(source, (-1, ""))
                if place < 0:
                    exhausted = True
                    break
                try:
                    job = self._job(prompt, chosen, options, place)
                    running[engine.add(job.request)] = (place, job)
                except SoarError as error:
                    yield place, error
            for event in engine.step():
                if event.decoding is not None:
                    place, job = running.pop(event.ticket)
                    yield place, self._result(job, event.decoding)
                elif event.error is not None:
                    yield running.pop(event.ticket)[0], event.error

    def stream(
        self, prompt: Prompt, strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]
    ) -> Iterator[Event]:
        """Continue one text, yielding an :class:`Event` per step; the last one carries the result."""
        job = self._job(prompt, strategy, options, 0)
        engine = Engine(self.model, self.engine_settings)
        engine.add(job.request)
        return self._events(job, engine)

    def decode(
        self,
        canvases: Sequence[Sequence[int]],
        strategy: AnyStrategy = None,
        *,
        fill: Sequence[Sequence[int]] | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[Result]:
        """Fill canvases of token ids; ``fill`` names the positions of each, by default where it holds the mask id.

        Blocks are counted from the first such position. ``token_ids`` of a result is the whole canvas.
        """
        chosen = as_strategy(strategy)
        rows = _listed(canvases, "decode takes a list of canvases")
        places = None if fill is None else _listed(fill, "fill takes a list of positions for each canvas")
        if places is not None and len(places) != len(rows):
            raise PromptError(f"fill has {len(places)} entries for {len(rows)} canvases; give one per canvas.")
        jobs = []
        for place, canvas in enumerate(rows):
            ids = _whole_numbers(canvas, "decode takes a list of canvases, each a list of token ids")
            masked = [at for at, token in enumerate(ids) if token == self.model.facts.mask_id]
            named = masked if places is None else _whole_numbers(places[place], "fill takes a list of positions each")
            request = Request(ids, sorted(set(named)), chosen, _checked(dict(options), place))
            jobs.append(_Job(request, min(named, default=len(ids)), (), whole_canvas=True))
        return self._run(jobs)

    def pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Each id as text of its own, special tokens included."""
        text = self._need_text()
        return [text.decode([token], keep_special=True) for token in token_ids]

    def _run(self, jobs: Sequence[_Job]) -> list[Result]:
        engine = Engine(self.model, self.engine_settings)
        tickets = {engine.add(job.request): place for place, job in enumerate(jobs)}
        results: dict[int, Result] = {}
        for event in engine.run():
            if event.error is not None:
                raise event.error
            if event.decoding is not None:
                place = tickets[event.ticket]
                results[place] = self._result(jobs[place], event.decoding)
        return [results[place] for place in range(len(jobs))]

    def _events(self, job: _Job, engine: Engine) -> Iterator[Event]:
        forwards = 0
        for event in engine.run():
            if event.error is not None:
                raise event.error
            forwards += event.record.forwards if event.record is not None else 0
            yield self._event(job, event, forwards)

    def _event(self, job: _Job, event: StepEvent, forwards: int) -> Event:
        fill = list(job.request.fill)
        tokens, masked = event.best.tokens[fill].tolist(), event.best.open[fill].tolist()
        result = self._result(job, event.decoding) if event.decoding is not None else None
        return Event(
            step=event.record.step if event.record is not None else 0,
            forwards=forwards,
            text=result.text if result is not None else self._partial_text(tokens, masked),
            token_ids=tokens,
            masked=masked,
            positions=fill,
            record=event.record,
            result=result,
        )

    def _partial_text(self, tokens: Sequence[int], masked: Sequence[bool]) -> str:
        text = self._need_text()
        edges = [0, *(np.flatnonzero(np.diff(masked)) + 1).tolist(), len(tokens)]
        runs = [(low, high) for low, high in pairwise(edges) if low < high]
        return "".join(MASK_SIGN * (high - low) if masked[low] else text.decode(tokens[low:high]) for low, high in runs)

    def _need_text(self) -> Text:
        if self._text is None:
            raise NoTokenizer(
                f"{self.name!r} has no tokenizer files, so it cannot read or write text. "
                "Add them to the folder, or use decode() with token ids."
            )
        return self._text

    def _settings(self, options: GenerateOptions, place: int) -> tuple[int, tuple[str, ...], bool, Options]:
        """Length, stop strings, chat or not, and the options of the request at this place of a list."""
        given: dict[str, Any] = dict(options)
        length = given.pop("max_new_tokens", 128)
        stop = given.pop("stop", None) or ()
        chat = given.pop("chat", False)
        checks.whole_number("max_new_tokens", length, 1)
        stops = (stop,) if isinstance(stop, str) or not isinstance(stop, Iterable) else tuple(stop)
        if not all(isinstance(one, str) and one for one in stops):
            raise SettingsError(f"stop must be a non-empty string or a list of them, not {stop!r}.")
        return length, stops, chat, _checked(given, place, also=("max_new_tokens", "stop", "chat"))

    def _job(self, prompt: Prompt, strategy: AnyStrategy, options: GenerateOptions, place: int) -> _Job:
        text = self._need_text()
        length, stops, chat, checked = self._settings(options, place)
        before, after = self._encode(text, prompt, chat)
        canvas = [*before, *[self.model.facts.mask_id] * length, *after]
        fill = range(len(before), len(before) + length)
        stopped = (lambda ids: _cut(text.decode(text.until_end(ids)), stops) is not None) if stops else None
        return _Job(Request(canvas, fill, as_strategy(strategy), checked, stopped), len(before), stops)

    def _encode(self, text: Text, prompt: Prompt, chat: bool) -> tuple[list[int], list[int]]:
        if isinstance(prompt, str) and not chat:
            return text.encode(prompt)
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        if not _is_conversation(messages):
            raise PromptError(
                f"A prompt is a string or a list of messages with 'role' and 'content', not {type(prompt).__name__}."
            )
        if not text.has_chat_template:
            raise PromptError(f"{self.name!r} has no chat template; give plain text and leave out chat.")
        return text.encode_chat(messages)

    def _result(self, job: _Job, decoding: Decoding) -> Result:
        generated = [decoding.tokens[place] for place in job.request.fill]
        text = ""
        if self._text is not None:
            text = self._text.decode(self._text.until_end(generated))
            cut = _cut(text, job.stop)
            text = text if cut is None else cut
        return Result(
            text=text,
            token_ids=list(decoding.tokens) if job.whole_canvas else generated,
            steps=decoding.steps,
            forwards=decoding.forwards,
            tokens_per_forward=decoding.committed / max(decoding.forwards, 1),
            mean_confidence=decoding.mean_confidence,
            finish_reason=decoding.finish_reason,
            trace=decoding.trace,
            prompt_length=job.first,
        )


def _is_conversation(prompt: Any) -> bool:
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in prompt)
    )


def _listed(values: Any, wanted: str) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise PromptError(f"{wanted}, not {values!r}.")
    return list(values)


def _whole_numbers(values: Any, wanted: str) -> list[int]:
    """A list, array or tensor of whole numbers as a list."""
    try:
        numbers = [value if isinstance(value, bool) else index(value) for value in _listed(values, wanted)]
    except TypeError as error:
        raise PromptError(f"{wanted}, not {values!r}.") from error
    if any(isinstance(number, bool) for number in numbers):
        raise PromptError(f"{wanted}, not booleans.")
    return numbers


def _cut(text: str, stops: Sequence[str]) -> str | None:
    """The text before the first stop string in it; None if it has none."""
    found = [text.index(stop) for stop in stops if stop in text]
    return text[: min(found)] if found else None


def _checked(given: Mapping[str, Any], place: int, also: Sequence[str] = ()) -> Options:
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


def load(
    name: str | os.PathLike[str],
    device: Any = None,
    dtype: Any = None,
    *,
    engine: EngineSettings | None = None,
    **options: Any,
) -> LM:
    """Load a model by Hub id, local folder or embedded name.

    ``device`` and ``dtype`` default to the first accelerator and the checkpoint's type, or the CPU and float32.
    Further ``options``: device_map, quantization_config, revision, attn_implementation (to transformers as they are)
    and mask_token_id for a checkpoint that does not name its mask token.
    """
    known = ("device_map", "quantization_config", "revision", "attn_implementation", "mask_token_id")
    for option in options:
        if option not in known:
            raise UnknownName("option of load called", option, [*known, "device", "dtype", "engine"])
    return LM(load_checkpoint(name, device=device, dtype=dtype, **options), engine)
