"""The public face: text in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import index
from typing import Any, TypeVar, Union, overload

import numpy as np
from typing_extensions import Unpack

from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request, StepEvent
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import NoTokenizer, PromptError, SoarError, UnknownName
from soar_dlm.jobs import (
    DecodeOptions,
    GenerateOptions,
    InfillOptions,
    Job,
    Message,
    Prompt,
    checked_options,
    generate_job,
    generate_settings,
    infill_job,
    is_conversation,
    result_of,
)
from soar_dlm.models.loading import AnyModel, Checkpoint, LoadOptions, load_checkpoint
from soar_dlm.models.text import Text
from soar_dlm.results import Event, Infilling, Result
from soar_dlm.search.catalogue import as_strategy
from soar_dlm.search.strategy import Strategy
from soar_dlm.template import DEFAULT_LENGTH, Template

AnyStrategy = Union[Strategy, str, None]
_Given = TypeVar("_Given")

MASK_SIGN = "░"
"""How a position that is still masked reads in the text of an :class:`Event`."""


class LM:
    """A diffusion language model ready to write. Made by :func:`load`."""

    def __init__(self, checkpoint: Checkpoint, engine: EngineSettings | None = None) -> None:
        self.name, self.family, self.model = checkpoint.name, checkpoint.family, checkpoint.model
        self.revision = checkpoint.revision
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
        single = isinstance(prompt, str) or is_conversation(prompt)
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
        generate_settings(options, 0)  # what is wrong for every prompt is raised, not yielded
        chosen = as_strategy(strategy)
        self._need_text()
        return self._as_completed(prompts, lambda prompt, place: self._job(prompt, chosen, options, place))

    def stream(
        self, prompt: Prompt, strategy: AnyStrategy = None, **options: Unpack[GenerateOptions]
    ) -> Iterator[Event]:
        """Continue one text, yielding an :class:`Event` per step; the last one carries the result."""
        return self._stream(self._job(prompt, strategy, options, 0))

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
            request = Request(ids, sorted(set(named)), chosen, checked_options(dict(options), place))
            jobs.append(Job(request, min(named, default=len(ids)), whole_canvas=True))
        return self._run(jobs)

    @overload
    def infill(
        self, prefix: str, suffix: str, strategy: AnyStrategy = None, **options: Unpack[InfillOptions]
    ) -> Infilling: ...
    @overload
    def infill(
        self, prefix: list[str], suffix: list[str], strategy: AnyStrategy = None, **options: Unpack[InfillOptions]
    ) -> list[Infilling]: ...

    def infill(self, prefix: Any, suffix: Any, strategy: AnyStrategy = None, **options: Unpack[InfillOptions]) -> Any:
        """Write what stands between two texts, or between the texts of two lists."""
        if isinstance(prefix, str) and isinstance(suffix, str):
            return self.infill_template(_between(prefix, suffix, options), strategy, **options)
        wanted = "infill takes two strings or two lists of strings"
        before, behind = _listed(prefix, wanted), _listed(suffix, wanted)
        if len(before) != len(behind):
            raise PromptError(f"There are {len(before)} prefixes and {len(behind)} suffixes; give one of each.")
        templates = [_between(*pair, options) for pair in zip(before, behind, strict=True)]
        return self.infill_template(templates, strategy, **options)

    @overload
    def infill_template(
        self, template: str | Template, strategy: AnyStrategy = None, **options: Unpack[InfillOptions]
    ) -> Infilling: ...
    @overload
    def infill_template(
        self,
        template: list[str] | list[Template],
        strategy: AnyStrategy = None,
        **options: Unpack[InfillOptions],
    ) -> list[Infilling]: ...

    def infill_template(self, template: Any, strategy: AnyStrategy = None, **options: Unpack[InfillOptions]) -> Any:
        """Fill the blanks of a text, or of each text of a list; a blank is written ``{blank}`` or ``{blank:8}``."""
        single = isinstance(template, (str, Template))
        many = [template] if single else _listed(template, "infill_template takes a text with blanks or a list of them")
        results = self._run([self._infill_job(one, strategy, options, place) for place, one in enumerate(many)])
        return results[0] if single else results

    def infill_as_completed(
        self, templates: Iterable[str | Template], strategy: AnyStrategy = None, **options: Unpack[InfillOptions]
    ) -> Iterator[tuple[int, Result | SoarError]]:
        """Fill the blanks of many texts; yields (index, result) as each is done, or (index, error)."""
        chosen = as_strategy(strategy)
        self._need_text()
        return self._as_completed(templates, lambda one, place: self._infill_job(one, chosen, options, place))

    def stream_infill(
        self, template: str | Template, strategy: AnyStrategy = None, **options: Unpack[InfillOptions]
    ) -> Iterator[Event]:
        """Fill the blanks of one text, yielding an :class:`Event` per step; the last one carries the result."""
        return self._stream(self._infill_job(template, strategy, options, 0))

    def encode(self, prompt: str, add_special_tokens: bool = True) -> tuple[list[int], list[int]]:
        """Ids of a prompt as ``generate`` has them, and those behind the text that continues it, such as [SEP]."""
        return self._need_text().encode(prompt, add_special_tokens)

    def pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Each id as text of its own, special tokens included."""
        text = self._need_text()
        return [text.decode([token], keep_special=True) for token in token_ids]

    def _run(self, jobs: Sequence[Job]) -> list[Result]:
        engine = Engine(self.model, self.engine_settings)
        tickets = {engine.add(job.request): place for place, job in enumerate(jobs)}
        results: dict[int, Result] = {}
        for event in engine.run():
            if event.error is not None:
                raise event.error
            if event.decoding is not None:
                place = tickets[event.ticket]
                results[place] = result_of(jobs[place], event.decoding, self._text)
        return [results[place] for place in range(len(jobs))]

    def _as_completed(
        self, texts: Iterable[_Given], make: Callable[[_Given, int], Job]
    ) -> Iterator[tuple[int, Result | SoarError]]:
        engine = Engine(self.model, self.engine_settings)
        running: dict[int, tuple[int, Job]] = {}
        source = enumerate(texts)
        exhausted = False
        while running or not exhausted:
            while engine.hungry and not exhausted:
                following = next(source, None)
                if following is None:
                    exhausted = True
                    break
                place, given = following
                try:
                    job = make(given, place)
                    running[engine.add(job.request)] = (place, job)
                except SoarError as error:
                    yield place, error
            for event in engine.step():
                if event.decoding is not None:
                    place, job = running.pop(event.ticket)
                    yield place, result_of(job, event.decoding, self._text)
                elif event.error is not None:
                    yield running.pop(event.ticket)[0], event.error

    def _job(self, prompt: Prompt, strategy: AnyStrategy, options: GenerateOptions, place: int) -> Job:
        chosen = as_strategy(strategy)
        return generate_job(self._need_text(), self.model.facts, self.name, prompt, chosen, options, place)

    def _infill_job(self, template: str | Template, strategy: AnyStrategy, options: InfillOptions, place: int) -> Job:
        if isinstance(template, str):
            template = Template.parse(template, options.get("length", DEFAULT_LENGTH))
        if not isinstance(template, Template):
            raise PromptError(f"A template is a string with {{blank}} in it, or a Template, not {template!r}.")
        return infill_job(self._need_text(), self.model.facts, template, as_strategy(strategy), options, place)

    def _stream(self, job: Job) -> Iterator[Event]:
        engine = Engine(self.model, self.engine_settings)
        engine.add(job.request)
        return self._events(job, engine)

    def _events(self, job: Job, engine: Engine) -> Iterator[Event]:
        forwards = 0
        for event in engine.run():
            if event.error is not None:
                raise event.error
            forwards += event.record.forwards if event.record is not None else 0
            yield self._event(job, event, forwards)

    def _event(self, job: Job, event: StepEvent, forwards: int) -> Event:
        fill = np.flatnonzero(event.best.blank >= 0).tolist()
        tokens, masked = event.best.tokens[fill].tolist(), event.best.open[fill].tolist()
        result = result_of(job, event.decoding, self._text) if event.decoding is not None else None
        return Event(
            step=event.record.step if event.record is not None else 0,
            forwards=forwards,
            text=result.text if result is not None else self._partial_text(tokens, masked),
            token_ids=tokens,
            masked=masked,
            positions=fill,
            blanks=event.best.blank[fill].tolist(),
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


def _between(prefix: str, suffix: str, options: InfillOptions) -> Template:
    return Template.between(prefix, suffix, options.get("length", DEFAULT_LENGTH))


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


def load(
    model: AnyModel,
    device: Any = None,
    dtype: Any = None,
    *,
    engine: EngineSettings | None = None,
    **options: Unpack[LoadOptions],
) -> LM:
    """Load a model: a Hub id, a local folder, an embedded name, a PEFT adapter, or a transformers model in memory.

    By name:

    - ``device`` and ``dtype`` default to the first accelerator and the checkpoint's type, or the CPU and float32.
    - ``device_map``, ``quantization_config`` and ``attn_implementation`` go to transformers as they are, and so do
      ``revision``, ``token``, ``cache_dir`` and ``local_files_only``, for every file that is fetched from the Hub.
    - ``trust_remote_code`` is not needed: no code from a checkpoint is ever run.

    A model object keeps its place, type and weights, and can still be used. It is put into evaluation mode, and a
    causal class (Llama, Qwen2) is switched to attend in both directions, permanently. Give it a ``tokenizer``, without
    which only :meth:`LM.decode` works, and, if its config does not tell, its ``family``: "llada", "dream" or
    "masked-lm". A PEFT model runs with its adapter, without merging it.

    For both: ``mask_token_id`` for a model that does not name its mask token; ``tokenizer`` to use another one.
    """
    known = LoadOptions.__optional_keys__
    for option in options:
        if option not in known:
            raise UnknownName("option of load called", option, [*known, "device", "dtype", "engine"])
    return LM(load_checkpoint(model, device=device, dtype=dtype, **options), engine)
