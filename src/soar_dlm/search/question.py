"""What a search asks of the model, and what it is told: questions out, readings in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from soar_dlm.search.candidate import Bools, Candidate, Floats, Ints

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read at a position besides its token and the confidence in it.

    ``top``: this many most likely tokens, each with its log probability and the confidence in it, and the log
    probability of the token read. ``entropy``: that of the distribution, in nats. ``distribution``: all log
    probabilities, left on the model's device.
    """

    top: int = 0
    entropy: bool = False
    distribution: bool = False


ONLY_TOKENS = Wanted()


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One row of a forward: a canvas, and the positions to read on it.

    ``uniforms`` [W] decide the draws when tokens are sampled; without them the most likely token is read. ``full`` [W]
    says where a canvas that can grow offers no expand. ``given`` [W] are tokens whose log probability is wanted.
    """

    candidate: Candidate
    positions: Ints
    wanted: Wanted = ONLY_TOKENS
    uniforms: Floats | None = None
    full: Bools | None = None
    given: Ints | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for questions with the same answer."""
        arrays = (self.positions, self.uniforms, self.full, self.given)
        canvas = self.candidate
        return (*canvas.key, canvas.base, self.wanted, *(None if part is None else part.tobytes() for part in arrays))


class RunnerUp(NamedTuple):
    """The likeliest token besides the one that was committed, and its probability."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Likeliest:
    """The two most likely tokens of each position [W, 2], and their log probabilities."""

    tokens: Ints
    log_p: Floats

    def besides(self, picks: NDArray[np.intp], tokens: Ints) -> tuple[RunnerUp, ...]:
        """For each of these places, the likelier of the two that is not the token committed there."""
        second = (self.tokens[picks, 0] == tokens).astype(np.intp)
        chosen, log_p = self.tokens[picks, second], self.log_p[picks, second].astype(np.float64)
        return tuple(map(RunnerUp, chosen.tolist(), np.exp(log_p).tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What one forward says of one canvas at the positions read, left to right; arrays are [W], or [W, top].

    ``ends`` tells where the token would end the text. ``base`` is what the engine has stored for canvases that grow
    from it. ``likeliest`` is there if the request notes runners-up, the rest if the question wanted it.
    """

    positions: Ints
    tokens: Ints
    confidence: Floats
    ends: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    entropy: Floats | None = None
    log_p: Floats | None = None
    top_tokens: Ints | None = None
    top_log_p: Floats | None = None
    top_confidence: Floats | None = None
    given_log_p: Floats | None = None
    distribution: Tensor | None = None
    base: int = 0
    likeliest: Likeliest | None = None

    def __len__(self) -> int:
        return int(self.positions.size)

    def at(self, places: NDArray[np.intp]) -> Reading:
        """The reading of some of the positions."""
        names = ("positions", "tokens", "confidence", "ends", "entropy", "log_p")
        tables = ("top_tokens", "top_log_p", "top_confidence", "given_log_p")
        cut = {name: value[places] for name in (*names, *tables) if (value := getattr(self, name)) is not None}
        likeliest = self.likeliest
        if likeliest is not None:
            likeliest = Likeliest(likeliest.tokens[places], likeliest.log_p[places])
        distribution = None if self.distribution is None else self.distribution[places]
        return replace(self, **cut, likeliest=likeliest, distribution=distribution)

    def noting(self, top: int) -> Reading:
        """The reading with its two likeliest tokens put aside, and only ``top`` left of those it was read with."""
        assert self.top_tokens is not None
        assert self.top_log_p is not None
        noted = replace(self, likeliest=Likeliest(self.top_tokens[:, :2], self.top_log_p[:, :2]))
        if not top:
            return replace(noted, log_p=None, top_tokens=None, top_log_p=None, top_confidence=None)
        tables = ("top_tokens", "top_log_p", "top_confidence")
        return replace(noted, **{name: getattr(self, name)[:, :top] for name in tables})


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a search returns: the canvas it settled on, and whatever it counted or measured on the way.

    ``others`` are other full canvases that it ended with, best first; None stands for those that it reported last.
    """

    candidate: Candidate
    details: Mapping[str, float] = field(default_factory=dict)
    others: Sequence[Candidate] | None = None


class Place(NamedTuple):
    """Where a trace has the candidates of a report: the step, and the place of the first in that step's beam."""

    step: int
    first: int


Search = Generator[Sequence[Question], Sequence[Reading], Union[Answer, Candidate]]
"""A search: yields questions, is sent their readings in the same order, and returns its answer."""

Report = Callable[..., Place]
