"""The options of a request, in one place: names, defaults, checks and help.

``Options`` are those of every request, ``GenerateOptions`` and ``InfillOptions`` add what belongs to texts and to
blanks. The command derives its options from these classes; a new option is one field here and one line in the
matching ``...Keywords``, which tell type checkers what :class:`soar_dlm.LM` accepts.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict, TypeVar

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.search.sampling import Sampling

STRONGEST = 1e6
"""The greatest guidance: beyond it, logits of 32 bits are no longer finite."""

CACHES = ("prefix", "dual")
"""What is stored: everything before the block that is being filled, or everything outside it."""

DEFAULT_LENGTH = 16
"""How many masks a blank starts with unless it says so itself."""


def _option(default: Any, text: str, *flags: str, command: bool = True, metavar: str | None = None) -> Any:
    """A field with its help; ``flags`` are its names on the command line, ``command=False`` keeps it off there."""
    return field(default=default, metadata={"help": text, "flags": flags, "command": command, "metavar": metavar})


@guarded
@dataclass(frozen=True, kw_only=True)
class Options:
    """How one request is decoded, whatever the strategy.

    With ``cfg_scale``, logits are u + (1 + cfg_scale) * (c - u), where u comes from a row with its prompt masked.
    ``seed=None`` draws a fresh seed, which the result reports. Once an end token is committed and everything before it
    is filled, ``early_exit`` fills the rest of the canvas with EOS; False decodes the full canvas, as in the paper.

    A ``cache`` stores keys and values at the start of each block, and again after ``refresh_every`` steps: of what
    comes before the block ("prefix"), or of everything outside it ("dual"). ``suffix_window`` leaves out what comes
    later than that many positions after the block, but for the last position. Both change what the model sees, and so
    they may change the text.

    ``runners_up`` notes in the trace which token came second wherever one was committed; the text stays the same.
    """

    block_length: int | None = _option(
        None, "Fill blocks of this length from left to right; the last may be shorter. Default: the whole canvas."
    )
    cache: str | None = _option(
        None, "Store keys and values of what precedes a block ('prefix') or of all outside it ('dual').", metavar="KIND"
    )
    refresh_every: int | None = _option(
        None, "With a cache: store again after this many steps. Default: once for each block."
    )
    suffix_window: int | None = _option(
        None, "Leave out what comes later than this many positions after the block. Default: nothing."
    )
    temperature: float = _option(0.0, "0 takes the most likely token.")
    top_k: int | None = _option(None, "Sample from this many most likely tokens.")
    top_p: float = _option(1.0, "Sample from the fewest tokens that reach this probability.")
    cfg_scale: float = _option(0.0, "Classifier-free guidance; 0 is off.")
    seed: int | None = _option(0, "Seed of sampling; a request's draws depend on nothing else.")
    suppress_tokens: Sequence[int] = _option(
        (), "Never predict this token id; repeatable.", "--suppress-token", metavar="ID"
    )
    stop_token_ids: Sequence[int] = _option(
        (), "End the text at this token id too; repeatable.", "--stop-token", metavar="ID"
    )
    early_exit: bool = _option(
        True, "Stop once the text has ended, or decode the full canvas as in the paper.", "--early-exit/--no-early-exit"
    )
    trace: bool = _option(True, "Keep every step of the search in the result.", command=False)
    runners_up: bool = _option(False, "Note in every step which token came second at each position.", command=False)

    def __post_init__(self) -> None:
        checks.field(self, "block_length", checks.whole_number, 1, optional=True)
        checks.field(self, "cache", _cache, optional=True)
        checks.field(self, "refresh_every", checks.whole_number, 1, optional=True)
        checks.field(self, "suffix_window", checks.whole_number, 0, optional=True)
        if self.refresh_every is not None and self.cache is None:
            raise SettingsError("refresh_every needs a cache: give cache='prefix' or cache='dual' as well.")
        checks.field(self, "cfg_scale", checks.real_number, 0.0, STRONGEST)
        checks.field(self, "seed", checks.seed, optional=True)
        for name in ("suppress_tokens", "stop_token_ids"):
            checks.field(self, name, _token_ids)
        for name in ("early_exit", "trace", "runners_up"):
            checks.field(self, name, checks.true_or_false)
        drawn = self.sampling
        for name in ("temperature", "top_k", "top_p"):
            object.__setattr__(self, name, getattr(drawn, name))

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p)


@guarded
@dataclass(frozen=True, kw_only=True)
class GenerateOptions(Options):
    """Options of a text that continues a prompt.

    With ``length``, a model that has expand and delete tokens starts from that many masks and changes the length
    itself, up to ``max_new_tokens``. ``truncate_prompt`` drops the beginning of a prompt that is too long for the
    model's context, with a warning, instead of refusing it.
    """

    max_new_tokens: int = _option(128, "Length of the canvas.", "--max-new-tokens", "-n")
    length: int | None = _option(
        None, "Start with this many masks and let the model change it, up to --max-new-tokens (expand and delete)."
    )
    stop: Sequence[str] = _option((), "End the text before this string; repeatable.", metavar="TEXT")
    chat: bool = _option(False, "Put the prompt into the model's chat template.", "--chat")
    add_special_tokens: bool = _option(
        True, "Add what the tokenizer puts around a prompt, such as BOS.", "--special-tokens/--no-special-tokens"
    )
    truncate_prompt: bool = _option(
        False, "Drop the beginning of a prompt that is too long for the model.", "--truncate-prompt"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "max_new_tokens", checks.whole_number, 1)
        checks.field(self, "length", checks.whole_number, 1, optional=True)
        if self.length is not None and self.length > self.max_new_tokens:
            raise SettingsError(f"length is {self.length}, more than max_new_tokens, {self.max_new_tokens}.")
        for name in ("chat", "add_special_tokens", "truncate_prompt"):
            checks.field(self, name, checks.true_or_false)
        checks.field(self, "stop", checks.strings)


@guarded
@dataclass(frozen=True, kw_only=True)
class InfillOptions(Options):
    """Options of blanks in a text.

    A model with expand and delete tokens changes the length of a blank, up to ``max_length`` (None: 64, or the initial
    length if that is more). ``fixed`` keeps the length; so does every other model.
    """

    length: int = _option(DEFAULT_LENGTH, "Masks a blank starts with unless it says so itself.", "--length", "-n")
    max_length: int | None = _option(
        None, "The most a blank may grow to (models with expand and delete tokens). Default: 64."
    )
    fixed: bool = _option(False, "Keep the length of blanks even if the model could change it.", "--fixed")

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.field(self, "length", checks.whole_number, 1)
        checks.field(self, "max_length", checks.whole_number, 1, optional=True)
        checks.field(self, "fixed", checks.true_or_false)


def in_blocks(options: Mapping[str, Any]) -> str:
    """How a canvas is decoded, in words, such as "blocks of 8, dual cache"; nothing for the whole canvas without one.

    ``options`` are those of a request by name; only blocks, caches and windows are told.
    """
    block, cache, often, window = map(options.get, ("block_length", "cache", "refresh_every", "suffix_window"))
    words = [
        "" if block is None else f"blocks of {block}",
        "" if cache is None else f"{cache} cache",
        "" if often is None else f"refreshed every {often} steps",
        "" if window is None else f"suffix window {window}",
    ]
    return ", ".join(word for word in words if word)


class DecodeKeywords(TypedDict, total=False):
    """Keywords of :meth:`LM.decode`, the fields of :class:`Options`; ``seed`` may be a list with one per request."""

    block_length: int | None
    cache: str | None
    refresh_every: int | None
    suffix_window: int | None
    temperature: float
    top_k: int | None
    top_p: float
    cfg_scale: float
    seed: int | Sequence[int] | None
    suppress_tokens: Sequence[int]
    stop_token_ids: Sequence[int]
    early_exit: bool
    trace: bool
    runners_up: bool


class GenerateKeywords(DecodeKeywords, total=False):
    """Keywords of :meth:`LM.generate` and :meth:`LM.stream`, the fields of :class:`GenerateOptions`."""

    max_new_tokens: int
    length: int | None
    stop: str | Sequence[str] | None
    chat: bool
    add_special_tokens: bool
    truncate_prompt: bool


class InfillKeywords(DecodeKeywords, total=False):
    """Keywords of the infilling methods, the fields of :class:`InfillOptions`."""

    length: int
    max_length: int | None
    fixed: bool


_Kind = TypeVar("_Kind", bound=Options)


def make_options(kind: type[_Kind], keywords: Mapping[str, Any], place: int = 0, sample: int = 0) -> _Kind:
    """The options of the request at ``place`` of a list, refusing unknown names.

    A list of seeds has one for each request. Sample i of a request takes its seed plus i.
    """
    known = [entry.name for entry in fields(kind)]
    for name in keywords:
        if not isinstance(name, str) or name not in known:
            raise _unknown(name, known)
    given = dict(keywords)
    seeds = given.get("seed")
    if isinstance(seeds, Sequence) and not isinstance(seeds, (str, bytes)):
        if place >= len(seeds):
            raise SettingsError(f"seed has {len(seeds)} entries, too few. Give one number, or one for each prompt.")
        given["seed"] = seeds[place]
    made = kind(**given)
    if made.seed is None:
        return replace(made, seed=secrets.randbits(32))
    return replace(made, seed=made.seed + sample) if sample else made


def _cache(name: str, value: Any) -> str:
    return checks.known_name("cache called", value, CACHES)


def _token_ids(name: str, value: Any) -> tuple[int, ...]:
    return checks.whole_numbers(f"{name} must be a list of token ids", value)


_OTHER_WORDS = {
    **dict.fromkeys(
        ("gen_length", "max_tokens", "max_gen_toks", "max_completion_tokens", "max_output_tokens"),
        "The length of the canvas is max_new_tokens here.",
    ),
    "max_length": "generate takes max_new_tokens, the length of the canvas without the prompt.",
    "steps": "The strategy decides how many steps there are: soar.Greedy(tokens_per_step=n) takes max_new_tokens / n, "
    "soar.Soar() and soar.AdaptiveParallel() fewer where the model is sure.",
    "remasking": "Positions are chosen by the strategy's metric: LLaDA's 'low_confidence' is "
    "soar.Greedy(metric='probability'); 'random' is not offered.",
    "alg": "Positions are chosen by the strategy's metric: Dream's 'maskgit_plus' is "
    "soar.Greedy(metric='probability'), 'topk_margin' is 'margin' and 'entropy' is 'neg_entropy'.",
    "alg_temp": "The order of positions is searched, not drawn; leave alg_temp out.",
    "block_size": "Blocks are set with block_length here.",
    **dict.fromkeys(("use_cache", "dual_cache", "past_key_values"), "Caches are cache='prefix' or cache='dual' here."),
    "cfg": "Classifier-free guidance is cfg_scale here.",
    "do_sample": "Sampling is on when temperature is above 0.",
    "num_beams": "Beams belong to the strategy: pass soar.Soar(beam=4) or soar.PositionBeam(beam=4).",
    "num_return_sequences": "The number of texts per prompt is n here.",
    "stop_strings": "Strings that end a text are stop here.",
    "eos_token_id": "Further tokens that end a text are stop_token_ids here.",
    "streamer": "Use lm.stream(prompt), which yields an event per step.",
    **dict.fromkeys(
        ("mask_id", "mask_token_id"),
        "The mask token is the model's; pass mask_token_id to soar.load where a checkpoint does not name it.",
    ),
}
"""What other libraries call things, answered by what they are here."""

_STRATEGY_SETTINGS = ("beam", "threshold", "metric", "tokens_per_step", "released")


def _unknown(name: Any, known: Sequence[str]) -> SettingsError:
    if not isinstance(name, str):
        return UnknownName("option", name, known)
    if name in _STRATEGY_SETTINGS:
        return SettingsError(
            f"{name} is a setting of the strategy, not an option of a request. Pass it there, as in "
            f"soar.Soar({name}=...) or soar.make_strategy('pbs', {name}=...)."
        )
    if name in _OTHER_WORDS:
        return SettingsError(f"There is no option {name!r}. {_OTHER_WORDS[name]}")
    return UnknownName("option", name, known)
