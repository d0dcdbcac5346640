"""What can be asked of the engine, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from soar_dlm import checks
from soar_dlm.doors import guarded
from soar_dlm.engine.trace import StepRecord, Trace
from soar_dlm.errors import PromptError, PromptTooLong, SoarError, shown, told
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.options import Options
from soar_dlm.search.candidate import Candidate, Ints
from soar_dlm.search.strategy import Strategy

FinishReason = Literal["stop", "length", "budget"]

_SHORTEN = "Shorten the text, or lower max_new_tokens or the length of the blanks."


@guarded
@dataclass(frozen=True)
class Request:
    """A canvas to fill; plain data that can be pickled and sent elsewhere.

    ``tokens`` is the whole row; ``fill`` lists the positions to decode, everything else stays as it is. The text ends
    before the first of the ``stop`` strings.

    With ``max_length`` the canvas can change its length, if the model has tokens for that: each unbroken run of
    positions to fill is a blank that may grow to this many positions, or shrink to none.
    """

    tokens: Sequence[int]
    fill: Sequence[int]
    strategy: Strategy
    options: Options = field(default_factory=Options)
    stop: Sequence[str] = ()
    max_length: int | None = None

    def __post_init__(self) -> None:
        checks.instance("strategy", self.strategy, Strategy, "a soar_dlm.Strategy such as Soar()")
        checks.instance("options", self.options, Options, "soar_dlm.Options")
        checks.field(self, "stop", checks.strings)
        checks.field(self, "max_length", checks.whole_number, 1, optional=True)

    @property
    def longest(self) -> int:
        """The most positions that the canvas can have."""
        if self.max_length is None:
            return len(self.tokens)
        places = sorted(self.fill)
        blanks = sum(after - before > 1 for before, after in pairwise([-2, *places]))
        return len(self.tokens) - len(places) + blanks * self.max_length

    @property
    def rows(self) -> int:
        """About how many rows of a forward the request takes."""
        return self.strategy.rows * (2 if self.options.cfg_scale else 1)


@dataclass(frozen=True)
class Decoding:
    """A finished request: the whole canvas and how it came about.

    ``confidence`` is that of each committed position of the canvas, None for the others. ``blanks`` are the positions
    of each blank, ``lengths`` how many of them are text: those before its first end token.
    ``forwards`` counts candidate evaluations, ``steps`` denoising steps; ``written`` counts the tokens that the model
    committed, not those an early exit filled in; ``mean_confidence`` is over everything it committed, expands and
    deletes included.

    ``finish_reason`` is "stop" at an end token or stop string, or if the canvas could have been longer; "length" if it
    was full; "budget" if a blank has used up its expansions. ``cache`` is the one that was used: None also where one
    was asked for that does not fit into the engine's ``cache_budget``. ``details`` is what the search counted or
    measured. ``others`` are the other canvases that the search ended with, best first; they have no trace.
    """

    tokens: tuple[int, ...]
    confidence: tuple[float | None, ...]
    blanks: tuple[tuple[int, ...], ...]
    lengths: tuple[int, ...]
    steps: int
    forwards: int
    written: int
    mean_confidence: float
    finish_reason: FinishReason
    cache: str | None
    details: Mapping[str, float]
    trace: Trace
    others: tuple[Decoding, ...] = ()


@dataclass(frozen=True)
class StepEvent:
    """What one step did to one request. The last event of a request carries its ``decoding`` or its ``error``.

    ``best`` is the best candidate so far; None for a request that was refused before it started. ``live`` are all
    candidates that the answer may come from, unless the search may take back what they have written.
    """

    ticket: int
    best: Candidate | None = None
    record: StepRecord | None = None
    live: Sequence[Candidate] = ()
    decoding: Decoding | None = None
    error: SoarError | None = None

    @property
    def final(self) -> bool:
        """Whether this is the last event of its request."""
        return self.decoding is not None or self.error is not None


def empty_canvas(tokens: Ints, fill: Ints, mask_id: int, block_length: int | None) -> Candidate:
    """The candidate a search starts from; each run of neighbouring positions to fill is a blank of its own.

    Blocks are counted from the first position to fill.
    """
    canvas = tokens.copy()
    canvas[fill] = mask_id
    is_open = np.zeros(tokens.size, dtype=np.bool_)
    is_open[fill] = True
    blank, block = np.full((2, tokens.size), -1, dtype=np.int64)
    blank[fill] = np.cumsum(np.diff(fill, prepend=fill[:1]) > 1)
    block[fill] = (fill - fill[:1]) // (block_length or tokens.size)
    expansions = np.zeros(int(blank.max()) + 1, dtype=np.int64)
    return Candidate(canvas, is_open, blank, block, expansions, np.full(tokens.size, np.nan, dtype=np.float32))


def check_canvas(tokens: Sequence[int], fill: Sequence[int], facts: ModelFacts) -> tuple[Ints, Ints]:
    """The canvas and the sorted positions to fill as arrays, or an error that says what is wrong with them."""
    canvas = _whole_numbers("A canvas", tokens, facts)
    places = np.unique(_whole_numbers("The positions to fill", fill, facts))
    if canvas.size == 0:
        raise PromptError("A canvas must be a flat, non-empty list of token ids.")
    if canvas.min() < 0 or canvas.max() >= facts.vocab_size:
        raise PromptError(f"A canvas has a token id outside the model's vocabulary (0 to {facts.vocab_size - 1}).")
    if places.size and (places[0] < 0 or places[-1] >= canvas.size):
        raise PromptError(f"A position to fill is outside the canvas (0 to {canvas.size - 1}).")
    check_length(canvas.size, places.size, facts)
    return canvas, places


def check_length(size: int, fill: int, facts: ModelFacts) -> None:
    """Refuse a canvas of ``size`` positions, ``fill`` of them to fill, if it is too long: ask before it is built."""
    if facts.context is not None and size > facts.context:
        raise PromptTooLong(
            f"Prompt and canvas are {size} tokens, {fill} of them to fill; the model's context is {facts.context}. "
            f"{_SHORTEN}"
        )
    if size > checks.LONGEST:
        raise PromptTooLong(
            f"Prompt and canvas are {size} tokens, more than memory could hold; the most is {checks.LONGEST}. "
            f"{_SHORTEN}"
        )


def _whole_numbers(name: str, values: Any, facts: ModelFacts) -> Ints:
    """Whole numbers as an array [L]; the length is looked at before the array is made."""
    wanted = f"{name} must be a flat list of whole numbers"
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
        raise PromptError(f"{wanted}, not {shown(values)}.")
    try:
        if len(values) > checks.LONGEST:
            check_length(len(values), len(values), facts)
        made = np.asarray(values)
    except SoarError:
        raise
    except Exception as error:  # ragged lists, tensors of other devices, arrays of somebody else's making
        raise PromptError(f"{wanted}: {told(error)}.") from error
    if made.ndim != 1 or (made.size and made.dtype.kind not in "iu"):
        raise PromptError(f"{wanted}, not {shown(values)}.")
    if made.size and int(made.max()) > checks.LARGEST:
        raise PromptError(f"{wanted} of at most 64 bits.")
    return made.astype(np.int64)
