"""Settings of the engine, and settings of one request; both checked when they are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soar_dlm import checks
from soar_dlm.errors import SettingsError
from soar_dlm.search.sampling import Sampling


@dataclass(frozen=True)
class EngineSettings:
    """``max_rows`` rows at most share a forward; a request wider than that runs alone.

    A candidate is one row, or two with classifier-free guidance.

    ``head_budget`` bytes at most are used at a time for logits and what is computed from them.
    """

    max_rows: int = 32
    head_budget: int = 512 * 2**20

    def __post_init__(self) -> None:
        checks.whole_number("max_rows", self.max_rows, 1)
        checks.whole_number("head_budget", self.head_budget, 1)


@dataclass(frozen=True)
class Options:
    """How one request is decoded, whatever the strategy.

    block_length: fill blocks of so many positions from left to right, the last may be shorter; None: the whole canvas.
    temperature, top_k, top_p: see :class:`soar_dlm.search.sampling.Sampling`.
    cfg_scale: classifier-free guidance; logits are u + (1 + cfg_scale) * (c - u), u from a row with its prompt masked.
    seed: where draws start; a request's draws depend on its seed alone.
    suppress_tokens: ids that are never predicted.
    early_exit: once an end token is committed and all before it is filled, the rest of the canvas is the EOS token;
        False decodes the full canvas, as in the paper.
    """

    block_length: int | None = None
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    cfg_scale: float = 0.0
    seed: int = 0
    suppress_tokens: Sequence[int] = ()
    early_exit: bool = True

    def __post_init__(self) -> None:
        if self.block_length is not None:
            checks.whole_number("block_length", self.block_length, 1)
        checks.real_number("cfg_scale", self.cfg_scale, 0.0, float("inf"))
        checks.whole_number("seed", self.seed, 0)
        if not isinstance(self.suppress_tokens, Iterable):
            raise SettingsError(f"suppress_tokens must be a list of token ids, not {self.suppress_tokens!r}.")
        object.__setattr__(self, "suppress_tokens", tuple(self.suppress_tokens))
        for token in self.suppress_tokens:
            checks.whole_number("suppress_tokens: a token id", token, 0)
        _ = self.sampling

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p)
