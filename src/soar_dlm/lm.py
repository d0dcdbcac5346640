"""The public face: text in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

import torch
from typing_extensions import Unpack

from soar_dlm import checks
from soar_dlm.doors import answered, door, theirs
from soar_dlm.engine.engine import Engine
from soar_dlm.engine.request import Request
from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import PromptError, SoarError
from soar_dlm.jobs import AnyStrategy, Job, Jobs, Message, Prompt, blank_between, is_single
from soar_dlm.models.checkpoint import Checkpoint
from soar_dlm.models.loading import AnyModel, LoadOptions, load_checkpoint
from soar_dlm.options import DecodeKeywords, GenerateKeywords, InfillKeywords
from soar_dlm.results import Event, Infilling, Result
from soar_dlm.samples import ONE, Samples
from soar_dlm.search.strategy import Strategy
from soar_dlm.template import Template


class LM:
    """A diffusion language model ready to write. Made by :func:`load`.

    Where a call leaves out the strategy or an option, the checkpoint's own default applies if it has one
    (``lm.defaults``), and the library's otherwise.
    """

    @door
    def __init__(self, checkpoint: Checkpoint, engine: EngineSettings | None = None) -> None:
        checks.instance("checkpoint", checkpoint, Checkpoint, "what load() reads; call soar_dlm.load instead")
        self.name, self.family, self.model = checkpoint.name, checkpoint.family, checkpoint.model
        self.revision, self.defaults = checkpoint.revision, checkpoint.defaults
        self.engine_settings = EngineSettings() if engine is None else engine
        checks.instance("engine", self.engine_settings, EngineSettings, "soar_dlm.EngineSettings")
        self._jobs = Jobs(self.name, self.model.facts, checkpoint.text, self.defaults)

    def __repr__(self) -> str:
        return f"<LM {self.name!r}, {self.family.title}, on {self.device}>"

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer, or None."""
        return self._jobs.text.tokenizer if self._jobs.text is not None else None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    @property
    def context(self) -> int | None:
        """The longest canvas, prompt included; None if there is no limit."""
        return self.model.facts.context

    @property
    def mask_token_id(self) -> int:
        """The token that stands on a position that is not written yet."""
        return self.model.facts.mask_id

    @property
    def end_token_ids(self) -> tuple[int, ...]:
        """The tokens that end a text; the first is the EOS."""
        return self.model.facts.end_ids

    @door
    def close(self) -> None:
        """End the other processes of a model that ``tensor_parallel`` splits; other models have nothing to end.

        It is done at the end of the program, too, and when nothing refers to the model any more.
        """
        self.model.close()

    @door
    def strategy(self, name: str | None = None, /, **settings: Any) -> Strategy:
        """A strategy by name, or the model's default one, with these settings; the rest is as the checkpoint says."""
        return self.defaults.make(name, **settings)

    @overload
    def generate(
        self,
        prompt: str | list[Message] | list[int],
        strategy: AnyStrategy = None,
        *,
        progress: bool = False,
        **options: Unpack[GenerateKeywords],
    ) -> Result: ...
    @overload
    def generate(
        self,
        prompt: list[str] | list[list[Message]] | list[list[int]],
        strategy: AnyStrategy = None,
        *,
        progress: bool = False,
        **options: Unpack[GenerateKeywords],
    ) -> list[Result]: ...
    @overload
    def generate(
        self,
        prompt: Any,
        strategy: AnyStrategy = None,
        *,
        n: int,
        progress: bool = False,
        **options: Unpack[GenerateKeywords],
    ) -> Any: ...

    @door
    def generate(
        self,
        prompt: Any,
        strategy: AnyStrategy = None,
        *,
        n: int | None = None,
        progress: bool = False,
        **options: Unpack[GenerateKeywords],
    ) -> Any:
        """Continue a text, a conversation (a list of messages), token ids, or a list of these: a Result, or several.

        With ``n``, each prompt gets a list of results. At a temperature there are that many, and sample i starts from
        ``seed`` + i; at temperature 0 they are the texts that one search ended with, best first, which may be fewer.
        All prompts are checked before the first is decoded. ``progress`` shows a bar.
        """
        single = is_single(prompt)
        wanted = "generate takes a string, a list of messages or of token ids, or a list of these"
        prompts = iter([prompt]) if single else _offered(prompt, wanted)
        chosen = self._jobs.strategy(strategy)
        samples = self._jobs.samples(n, chosen, options)
        each = samples.requests
        jobs = [
            self._jobs.generate(one, chosen, options, place, sample)
            for place, one in enumerate(prompts)
            for sample in range(each)
        ]
        results: list[Any] = self._run(jobs, progress)
        texts = [samples.texts(results[start : start + each]) for start in range(0, len(results), each)]
        return texts[0] if single else texts

    @door
    def generate_as_completed(
        self,
        prompts: Iterable[Prompt],
        strategy: AnyStrategy = None,
        *,
        n: int | None = None,
        **options: Unpack[GenerateKeywords],
    ) -> Iterator[tuple[int, Any]]:
        """Continue many prompts; yields (index, result) as each is done, or (index, SoarError) for one that fails.

        Prompts are taken from the iterable as there is room in the batch, so it may be long or slow. ``n`` is
        that of :meth:`generate`.
        """
        self._jobs.check_generate(options)  # what is wrong for every prompt is raised, not yielded
        chosen = self._jobs.strategy(strategy)
        samples = self._jobs.samples(n, chosen, options)

        def make(prompt: Prompt, place: int, sample: int) -> Job:
            return self._jobs.generate(prompt, chosen, options, place, sample)

        return self._as_completed(_offered(prompts, "generate_as_completed takes a list of prompts"), make, samples)

    @door
    def stream(
        self, prompt: Prompt, strategy: AnyStrategy = None, **options: Unpack[GenerateKeywords]
    ) -> Iterator[Event]:
        """Continue one text, yielding an :class:`Event` per step; the last one carries the result."""
        return self._stream(self._jobs.generate(prompt, strategy, options))

    @door
    def decode(
        self,
        canvases: Sequence[Sequence[int]],
        strategy: AnyStrategy = None,
        *,
        fill: Sequence[Sequence[int]] | None = None,
        progress: bool = False,
        **options: Unpack[DecodeKeywords],
    ) -> list[Result]:
        """Fill canvases of token ids; ``fill`` lists the positions of each, by default where it holds the mask id.

        Blocks are counted from the first such position. ``token_ids`` of a result is the whole canvas.
        """
        rows = _own(canvases, "decode takes a list of canvases")
        places = None if fill is None else _own(fill, _PLACES)
        if places is not None and len(places) != len(rows):
            raise PromptError(f"fill has {len(places)} entries for {len(rows)} canvases; give one per canvas.")
        jobs = []
        for place, canvas in enumerate(rows):
            ids = list(checks.whole_numbers(_CANVASES, canvas, error=PromptError))
            named = [at for at, token in enumerate(ids) if token == self.mask_token_id]
            if places is not None:
                named = list(checks.whole_numbers(_PLACES, places[place], error=PromptError))
            jobs.append(self._jobs.canvas(ids, named, strategy, options, place))
        return self._run(jobs, progress)

    @overload
    def infill(
        self, prefix: str, suffix: str, strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> Infilling: ...
    @overload
    def infill(
        self, prefix: list[str], suffix: list[str], strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> list[Infilling]: ...

    @door
    def infill(self, prefix: Any, suffix: Any, strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]) -> Any:
        """Write what is missing between two texts, or between the texts of two lists."""
        if isinstance(prefix, str) and isinstance(suffix, str):
            return self.infill_template(blank_between(prefix, suffix, options), strategy, **options)
        wanted = "infill takes two strings or two lists of strings"
        before, after = _own(prefix, wanted), _own(suffix, wanted)
        if len(before) != len(after):
            raise PromptError(f"There are {len(before)} prefixes and {len(after)} suffixes; give one of each.")
        templates = [blank_between(*pair, options) for pair in zip(before, after, strict=True)]
        return self.infill_template(templates, strategy, **options)

    @overload
    def infill_template(
        self,
        template: str | Template,
        strategy: AnyStrategy = None,
        *,
        progress: bool = False,
        **options: Unpack[InfillKeywords],
    ) -> Infilling: ...
    @overload
    def infill_template(
        self,
        template: list[str] | list[Template],
        strategy: AnyStrategy = None,
        *,
        progress: bool = False,
        **options: Unpack[InfillKeywords],
    ) -> list[Infilling]: ...

    @door
    def infill_template(
        self,
        template: Any,
        strategy: AnyStrategy = None,
        *,
        progress: bool = False,
        **options: Unpack[InfillKeywords],
    ) -> Any:
        """Fill the blanks of a text, or of each text of a list; a blank is written ``{blank}`` or ``{blank:8}``."""
        single = isinstance(template, (str, Template))
        many = [template] if single else _own(template, "infill_template takes a text with blanks or a list of them")
        jobs = [self._jobs.infill(one, strategy, options, place) for place, one in enumerate(many)]
        results = self._run(jobs, progress)
        return results[0] if single else results

    @door
    def infill_as_completed(
        self, templates: Iterable[str | Template], strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> Iterator[tuple[int, Any]]:
        """Fill the blanks of many texts; yields (index, result) as each is done, or (index, SoarError)."""
        self._jobs.check_infill(options)
        chosen = self._jobs.strategy(strategy)
        offered = _offered(templates, "infill_as_completed takes a list of texts with blanks")
        return self._as_completed(offered, lambda one, place, _: self._jobs.infill(one, chosen, options, place))

    @door
    def stream_infill(
        self, template: str | Template, strategy: AnyStrategy = None, **options: Unpack[InfillKeywords]
    ) -> Iterator[Event]:
        """Fill the blanks of one text, yielding an :class:`Event` per step; the last one carries the result."""
        return self._stream(self._jobs.infill(template, strategy, options))

    @door
    def encode(self, prompt: str, add_special_tokens: bool = True) -> tuple[list[int], list[int]]:
        """Ids of a prompt as ``generate`` has them, and those after the text that continues it, such as [SEP]."""
        checks.string("A prompt", prompt, PromptError)
        framed = checks.true_or_false("add_special_tokens", add_special_tokens)
        return self._jobs.need_text().encode(prompt, framed)

    @door
    def pieces(self, token_ids: Sequence[int]) -> list[str]:
        """Each id as text of its own, special tokens included."""
        text = self._jobs.need_text()
        ids = checks.whole_numbers("pieces takes a list of token ids", token_ids, error=PromptError)
        return [text.decode([token], keep_special=True) for token in ids]

    @door
    def text_of(self, token_ids: Sequence[int], stop: Sequence[str] = ()) -> str:
        """The text of generated ids: what comes before the first end token and the first of the strings ``stop``."""
        self._jobs.need_text()
        ids = checks.whole_numbers("text_of takes a list of token ids", token_ids, error=PromptError)
        return self._jobs.text_of(ids, checks.strings("stop", stop))

    @door
    def engine(self) -> Engine:
        """A new engine for this model, for requests that come and go."""
        text = self._jobs.text
        return Engine(self.model, self.engine_settings, decode=None if text is None else text.decode)

    def _run(self, jobs: Sequence[Job], progress: bool = False) -> list[Any]:
        engine = self.engine()
        tickets = {engine.add(job.request): place for place, job in enumerate(jobs)}
        results: dict[int, Result] = {}
        with _bar(len(jobs), progress) as advance:
            for event in engine.run():
                if event.error is not None:
                    raise event.error
                if event.decoding is not None:
                    place = tickets[event.ticket]
                    results[place] = self._jobs.result(jobs[place], event.decoding)
                    advance()
        return [results[place] for place in range(len(jobs))]

    @door
    def _as_completed(
        self, items: Iterator[Any], make: Callable[[Any, int, int], Job], samples: Samples = ONE
    ) -> Iterator[tuple[int, Any]]:
        each = samples.requests
        jobs: dict[int, Job] = {}
        done: dict[int, dict[int, Result]] = {}
        failed: set[int] = set()

        def requests() -> Iterator[Request | SoarError]:
            for place, item in enumerate(items):
                for sample in range(each):
                    try:
                        with answered("Preparing this text"):
                            job = make(item, place, sample)
                    except SoarError as error:
                        yield error
                    else:
                        jobs[place * each + sample] = job
                        yield job.request

        for event in self.engine().run(requests()):
            place, sample = divmod(event.ticket, each)
            if event.error is not None:
                jobs.pop(event.ticket, None)
                if place not in failed:
                    failed.add(place)
                    yield place, event.error
            elif event.decoding is not None:
                found = done.setdefault(place, {})
                found[sample] = self._jobs.result(jobs.pop(event.ticket), event.decoding)
                if len(found) == each:
                    del done[place]
                    yield place, samples.texts([found[number] for number in range(each)])

    def _stream(self, job: Job) -> Iterator[Event]:
        engine = self.engine()
        engine.add(job.request)
        return self._events(job, engine)

    @door
    def _events(self, job: Job, engine: Engine) -> Iterator[Event]:
        forwards = 0
        for event in engine.run():
            if event.error is not None:
                raise event.error
            forwards += event.record.forwards if event.record is not None else 0
            yield self._jobs.event(job, event, forwards)


@contextmanager
def _bar(total: int, shown: bool) -> Iterator[Callable[[], Any]]:
    checks.true_or_false("progress", shown)
    if not shown:
        yield lambda: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit="text", desc="decoding") as bar:
        yield bar.update


_CANVASES = "decode takes a list of canvases, each a list of token ids"
_PLACES = "fill takes a list of positions for each canvas"


def _own(values: Any, wanted: str) -> list[Any]:
    return list(_offered(values, wanted))


def _offered(values: Any, wanted: str) -> Iterator[Any]:
    """What a list or an iterator of the caller's has, one by one; what the iterator raises is the caller's."""
    checks.not_too_many(wanted, values, checks.MANY, PromptError)
    return theirs(checks.iterated(wanted, values, PromptError))


@door
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
    - ``tensor_parallel`` splits every layer over that many devices, each with a process, which :meth:`LM.close` ends.
    - ``device_map``, ``quantization_config`` and ``attn_implementation`` go to transformers as they are, and so do
      ``revision``, ``token``, ``cache_dir`` and ``local_files_only``, for every file that is fetched from the Hub.
    - ``trust_remote_code`` is not needed: no code from a checkpoint is ever run.

    A model object keeps its place, type and weights, and can still be used. It is put into evaluation mode, and a
    causal class (Llama, Qwen2) is switched to attend in both directions, permanently. Give it a ``tokenizer``, without
    which only :meth:`LM.decode` works, and, if its config does not tell, its ``family``: "llada", "dream" or
    "masked-lm". A PEFT model runs with its adapter, without merging it.

    For both: ``mask_token_id`` for a model that does not name its mask token; ``tokenizer`` to use another one;
    ``compile`` to run it through torch.compile, which takes a minute or more and pays on some machines only.
    """
    known = [*LoadOptions.__optional_keys__, "device", "dtype", "engine"]
    if engine is not None:  # refused here already, before the weights are read
        checks.instance("engine", engine, EngineSettings, "soar_dlm.EngineSettings")
    for option in options:
        checks.known_name("option of load called", option, known)
    return LM(load_checkpoint(model, device=device, dtype=dtype, **options), engine)
