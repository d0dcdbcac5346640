"""From what a user asks for to a request, and from what the engine returns to results and events."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby, pairwise
from math import isinf
from numbers import Integral
from typing import Any, TypeVar, Union

import numpy as np

from soar_dlm import checks
from soar_dlm.engine.request import Decoding, Request, StepEvent, check_length
from soar_dlm.engine.scene import Scene
from soar_dlm.engine.stopping import cut
from soar_dlm.engine.trace import StepRecord, Trace
from soar_dlm.errors import CheckpointError, NoTokenizer, PromptError, SettingsError, shown
from soar_dlm.models.defaults import DecodingDefaults
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.models.text import Text
from soar_dlm.options import DEFAULT_LENGTH, GenerateOptions, InfillOptions, Options, make_options
from soar_dlm.results import MASK_SIGN, Event, Infilling, Result
from soar_dlm.samples import Samples
from soar_dlm.search.agreement import agreed
from soar_dlm.search.catalogue import as_strategy
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.strategy import Strategy
from soar_dlm.template import Template

Message = dict[str, str]
"""A turn of a conversation: its "role" and its "content"."""
Prompt = Union[str, Sequence[Message], Sequence[int]]
"""A text to continue, a conversation, or the token ids of a text."""
AnyStrategy = Union[Strategy, str, None]
"""A strategy, the name of one, or None for the model's default."""
_Kind = TypeVar("_Kind", bound=Options)

MAX_LENGTH = 64
"""How far a blank may grow by default, as in the paper."""

_OF_ONE_CALL = ("seed", "trace", "runners_up", "length")
"""Options that no checkpoint can have a default for."""


@dataclass(frozen=True)
class Job:
    """A request with what is needed to turn its decoding into a result; ``first`` is the length of its prompt."""

    request: Request
    first: int
    template: Template | None = None
    whole_canvas: bool = False


@dataclass(frozen=True)
class Jobs:
    """Makes the jobs of one model, and reads what comes of them.

    ``text`` is None for a model without a tokenizer, which decodes token ids only. ``defaults`` are the checkpoint's:
    they apply where the caller leaves a strategy or an option out.
    """

    name: str
    facts: ModelFacts
    text: Text | None
    defaults: DecodingDefaults

    def __post_init__(self) -> None:
        known = {entry.name for kind in (GenerateOptions, InfillOptions) for entry in fields(kind)} - {*_OF_ONE_CALL}
        for name in self.defaults.options:
            if name not in known:
                raise CheckpointError(
                    f"generation_config.json of {self.name!r} sets the option {name!r}, which has no default. "
                    f"Choose from: {', '.join(sorted(known))}."
                )
        try:
            for kind in (GenerateOptions, InfillOptions):
                self._options(kind, {}, 0)
        except SettingsError as error:
            raise CheckpointError(f"generation_config.json of {self.name!r}: {error}") from error

    def strategy(self, strategy: AnyStrategy) -> Strategy:
        """A strategy given as an object or by name, or the model's own: SOAR unless its checkpoint says otherwise."""
        if strategy is None or isinstance(strategy, str):
            return self.defaults.make(strategy)
        return as_strategy(strategy)

    def _options(self, kind: type[_Kind], keywords: Mapping[str, Any], place: int, sample: int = 0) -> _Kind:
        own = {entry.name for entry in fields(kind)}
        defaults = {name: value for name, value in self.defaults.options.items() if name in own}
        return make_options(kind, {**defaults, **keywords}, place, sample)

    def samples(self, n: int | None, strategy: Strategy, keywords: Mapping[str, Any]) -> Samples:
        """How to come by ``n`` texts for each prompt."""
        return Samples.of(n, strategy, self._options(GenerateOptions, keywords, 0).temperature)

    def check_generate(self, keywords: Mapping[str, Any]) -> None:
        """Raise what is wrong with these keywords for every prompt."""
        self.need_text()
        self._options(GenerateOptions, keywords, 0)

    def check_infill(self, keywords: Mapping[str, Any]) -> None:
        """Raise what is wrong with these keywords for every template."""
        self.need_text()
        self._options(InfillOptions, keywords, 0)

    def generate(
        self, prompt: Prompt, strategy: AnyStrategy, keywords: Mapping[str, Any], place: int = 0, sample: int = 0
    ) -> Job:
        """A prompt and the masks that continue it."""
        text, facts = self.need_text(), self.facts
        options = self._options(GenerateOptions, keywords, place, sample)
        length, most = options.max_new_tokens, None
        if options.length is not None:
            length, most = options.length, options.max_new_tokens
        check_length(length, length, facts)
        before, after = self._encoded(prompt, options)
        if options.length is not None and isinstance(prompt, str) and not options.chat and options.add_special_tokens:
            before, after = _framed(text, facts, prompt)
        if options.truncate_prompt and facts.context is not None:
            before = _last(before, facts.context - options.max_new_tokens - len(after), facts.context)
        check_length(len(before) + length + len(after), length, facts)
        canvas = [*before, *[facts.mask_id] * length, *after]
        fill = range(len(before), len(before) + length)
        return Job(Request(canvas, fill, self.strategy(strategy), options, options.stop, most), len(before))

    def infill(
        self, template: str | Template, strategy: AnyStrategy, keywords: Mapping[str, Any], place: int = 0
    ) -> Job:
        """A template with masks in its blanks.

        1. A text that continues after its last blank cannot end inside one, so end tokens are not offered there; one
           that doubles as delete is, while the length is free.
        2. A model with expand and delete tokens reads whole texts, from BOS to EOS, as DreamOn does: without the EOS it
           could not know that a text ends right after a blank.
        """
        text, facts = self.need_text(), self.facts
        options = self._options(InfillOptions, keywords, place)
        if isinstance(template, str):
            template = Template.parse(template, options.length)
        if not isinstance(template, Template):
            raise PromptError(f"A template is a string with {{blank}} in it, or a Template, not {shown(template)}.")
        check_length(sum(template.lengths), sum(template.lengths), facts)
        max_length = self._max_length(options, template, "max_length" in keywords)
        if template.pieces[-1].strip():
            ends = [token for token in facts.end_ids if max_length is None or token != facts.delete_id]
            suppressed = (*options.suppress_tokens, *ends)
            options = self._options(InfillOptions, {**keywords, "suppress_tokens": suppressed}, place)
        ids, after = _framed(text, facts, template.pieces[0])
        first = len(ids)
        fill: list[int] = []
        for length, piece in zip(template.lengths, template.pieces[1:], strict=True):
            fill += range(len(ids), len(ids) + length)
            between = text.encode(piece, framed=False)[0]
            ids += [facts.mask_id] * length + between
            if not between and len(fill) < sum(template.lengths):
                raise PromptError("Two blanks are side by side with no text between them; make them one.")
        request = Request([*ids, *after], fill, self.strategy(strategy), options, max_length=max_length)
        return Job(request, first, template=template)

    def _max_length(self, options: InfillOptions, template: Template, given: bool) -> int | None:
        """How far blanks may grow; None if their length is fixed."""
        variable = self.facts.expand_id is not None and self.facts.delete_id is not None and not options.fixed
        if not variable:
            if given and options.max_length is not None:
                why = "fixed=True was given" if options.fixed else "this model has no expand and delete tokens"
                raise SettingsError(f"max_length says how far a blank may grow, but {why}; leave it out.")
            return None
        return options.max_length if options.max_length is not None else max(MAX_LENGTH, *template.lengths)

    def canvas(
        self, ids: list[int], fill: list[int], strategy: AnyStrategy, keywords: Mapping[str, Any], place: int = 0
    ) -> Job:
        """A canvas of token ids with the positions to fill."""
        request = Request(ids, sorted(set(fill)), self.strategy(strategy), self._options(Options, keywords, place))
        return Job(request, min(fill, default=len(ids)), whole_canvas=True)

    def _encoded(self, prompt: Prompt, options: GenerateOptions) -> tuple[list[int], list[int]]:
        text = self.need_text()
        if is_token_ids(prompt):
            return list(
                checks.whole_numbers("A prompt of token ids is a list of whole numbers", prompt, error=PromptError)
            ), []
        if isinstance(prompt, str) and not options.chat:
            return text.encode(prompt, options.add_special_tokens)
        messages: Any = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        if not is_conversation(messages):
            raise PromptError(
                "A prompt is a string, a list of messages with 'role' and 'content', or a list of token ids, not "
                f"{shown(prompt)}."
            )
        if not text.has_chat_template:
            raise PromptError(f"{self.name!r} has no chat template; give plain text and leave out chat.")
        return text.encode_chat(messages)

    def result(self, job: Job, decoding: Decoding) -> Result:
        """What a finished request wrote, with other texts that its search ended with: each text once."""
        best = self._result(job, decoding)
        found = {self._read(best): best}
        for other in decoding.others:
            one = self._result(job, other)
            found.setdefault(self._read(one), one)
        best.alternatives.extend([*found.values()][1:])
        return best

    def _read(self, result: Result) -> Any:
        """Equal for results that read alike."""
        if isinstance(result, Infilling):
            return tuple(result.blanks)
        return tuple(result.token_ids) if self.text is None else result.text

    def _result(self, job: Job, decoding: Decoding) -> Result:
        blanks = [[decoding.tokens[place] for place in blank] for blank in decoding.blanks]
        texts = [blank[:length] for blank, length in zip(blanks, decoding.lengths, strict=True)]
        tokens = [token for part in texts for token in part]
        written = ""
        if self.text is not None and job.template is None:
            written, tokens = self._cut(tokens, job.request.stop)
        sure = [
            decoding.confidence[place]
            for blank, length in zip(decoding.blanks, decoding.lengths, strict=True)
            for place in blank[:length]
        ]
        generated = [token for blank in blanks for token in blank]
        around = len(decoding.tokens) - len(generated)
        seed = job.request.options.seed
        assert seed is not None
        if job.request.options.cache is not None and decoding.cache is None:
            warnings.warn(
                "What the cache would store does not fit into the engine's cache_budget: decoded without. Raise it: "
                "soar.load(..., engine=soar.EngineSettings(cache_budget=2**34)), or lower the beam.",
                stacklevel=2,
            )
        values: dict[str, Any] = {
            "token_ids": list(decoding.tokens) if job.whole_canvas else generated,
            "tokens": tokens,
            "token_confidence": sure[: len(tokens)],
            "steps": decoding.steps,
            "forwards": decoding.forwards,
            "tokens_per_forward": decoding.written / max(decoding.forwards, 1),
            "mean_confidence": decoding.mean_confidence,
            "finish_reason": decoding.finish_reason,
            "cache": decoding.cache,
            "details": dict(decoding.details),
            "trace": self._shown(job, decoding.trace),
            "prompt_length": job.first,
            "seed": seed,
            "usage": {
                "prompt_tokens": around,
                "completion_tokens": len(tokens),
                "total_tokens": around + len(tokens),
                "steps": decoding.steps,
                "forwards": decoding.forwards,
            },
            "alternatives": [],
        }
        if job.template is None or self.text is None:
            return Result(text=written, **values)
        filled = [self.text.decode(part) for part in texts]
        return Infilling(text="".join(filled), blanks=filled, whole=job.template.filled(filled), **values)

    def _shown(self, job: Job, trace: Trace) -> Trace:
        """The trace with its scene, if there is a tokenizer to read it with."""
        if self.text is None or not trace.steps:
            return trace
        return replace(trace, scene=replace(self.scene(job), pieces=self._pieces(trace)))

    def _pieces(self, records: Iterable[StepRecord]) -> dict[int, str]:
        """The text of every token that was written in these steps, or came second."""
        text, found = self.need_text(), set[int]()
        for entry in (entry for record in records for entry in record.beam):
            found.update(entry.tokens)
            found.update(token for token, _ in entry.runners_up)
        return {token: text.piece(token) for token in sorted(found)}

    def scene(self, job: Job) -> Scene:
        """What a job starts from; nothing is written yet, so there are no pieces."""
        text, request = self.need_text(), job.request
        runs = [list(run) for _, run in groupby(enumerate(request.fill), key=lambda pair: pair[1] - pair[0])]
        blanks = [(run[0][1], len(run)) for run in runs]
        ends = [0, *(first + size for first, size in blanks)]
        starts = [*(first for first, _ in blanks), len(request.tokens)]
        around = [text.decode(request.tokens[low:high]) for low, high in zip(ends, starts, strict=True)]
        metric = get_metric(request.strategy.metric)
        return Scene(
            around=tuple(around),
            blanks=tuple(blanks),
            pieces={},
            ends=self.facts.end_ids,
            filler=self.facts.filler_id,
            low=None if isinf(metric.low) else metric.low,
            high=metric.high,
        )

    def _cut(self, tokens: list[int], stops: Sequence[str]) -> tuple[str, list[int]]:
        """The text before the first stop string, and the fewest leading tokens that have all of it."""
        text = self.need_text()
        written = text.decode(tokens)
        kept = cut(written, stops)
        if kept is None:
            return written, tokens
        count = len(tokens)
        while count and text.decode(tokens[: count - 1]).startswith(kept):
            count -= 1
        return kept, tokens[:count]

    def text_of(self, tokens: Sequence[int], stops: Sequence[str]) -> str:
        """The text of generated ids: what comes before the first end token and the first stop string."""
        ends_text = {*self.facts.end_ids, *self._options(Options, {}, 0).stop_token_ids}
        ends = [place for place, token in enumerate(tokens) if token in ends_text]
        return self._cut(list(tokens[: ends[0]] if ends else tokens), stops)[0]

    def event(self, job: Job, step: StepEvent, forwards: int, missed: Sequence[StepRecord] = ()) -> Event:
        """A step of the engine as users see it; ``forwards`` counts those of all steps so far."""
        best = step.best
        assert best is not None
        fill = np.flatnonzero(best.blank >= 0)
        tokens, masked = best.tokens[fill].tolist(), best.open[fill].tolist()
        result = None if step.decoding is None else self.result(job, step.decoding)
        number = step.record.step if step.record is not None else 0
        records = [*missed, *([] if step.record is None else [step.record])]
        return Event(
            step=number,
            forwards=forwards,
            text=result.text if result is not None else self._partial_text(tokens, masked),
            token_ids=tokens,
            masked=masked,
            confidence=[None if np.isnan(sure) else float(sure) for sure in best.confidence[fill]],
            positions=fill.tolist(),
            blanks=best.blank[fill].tolist(),
            record=step.record,
            result=result,
            settled=agreed(step.live),
            missed=tuple(missed),
            scene=self.scene(job) if number <= 1 else None,
            pieces=self._pieces(records),
        )

    def _partial_text(self, tokens: Sequence[int], masked: Sequence[bool]) -> str:
        text = self.need_text()
        edges = [0, *(np.flatnonzero(np.diff(masked)) + 1).tolist(), len(tokens)]
        runs = [(low, high) for low, high in pairwise(edges) if low < high]
        return "".join(MASK_SIGN * (high - low) if masked[low] else text.decode(tokens[low:high]) for low, high in runs)

    def need_text(self) -> Text:
        if self.text is None:
            raise NoTokenizer(
                f"{self.name!r} has no tokenizer files, so it cannot read or write text. "
                "Add them to the folder, or use decode() with token ids."
            )
        return self.text


def is_conversation(prompt: Any) -> bool:
    return (
        isinstance(prompt, Sequence)
        and len(prompt) > 0
        and all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in prompt)
    )


def is_token_ids(prompt: Any) -> bool:
    """Whether this begins like a list of token ids; what else is in it is looked at when it is read."""
    if not isinstance(prompt, Sequence) or isinstance(prompt, (str, bytes)) or not len(prompt):
        return False
    return isinstance(prompt[0], Integral) and not isinstance(prompt[0], bool)


def is_single(prompt: Any) -> bool:
    """Whether this is one prompt, and not a list of them."""
    return isinstance(prompt, str) or is_conversation(prompt) or is_token_ids(prompt)


def blank_between(prefix: str, suffix: str, keywords: Mapping[str, Any]) -> Template:
    """One blank of the length that the keywords of an infilling give it."""
    return Template.between(prefix, suffix, keywords.get("length", DEFAULT_LENGTH))


def _last(ids: list[int], room: int, context: int) -> list[int]:
    """As much of the end of a prompt as there is room for; all of it if there is none, to be refused as too long."""
    if len(ids) <= room or room < 1:
        return ids
    warnings.warn(f"Prompts too long for the model's context of {context} lose their beginning.", stacklevel=2)
    return ids[-room:]


def _framed(text: Text, facts: ModelFacts, piece: str) -> tuple[list[int], list[int]]:
    """The ids of the first piece of a text with blanks, and those that belong after the last."""
    return text.encode(piece) if facts.expand_id is None else text.whole(piece)
