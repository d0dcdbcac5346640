"""What decoding returns: a finished text, and the steps on the way to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from soar_dlm.engine.request import FinishReason
from soar_dlm.engine.scene import Scene
from soar_dlm.engine.trace import StepRecord, Trace
from soar_dlm.strict_json import plain

_APART = ("trace", "alternatives")
"""Parts of a result that :meth:`Result.to_dict` leaves out."""
_PARTS = ("record", "result", "scene", "missed")

MASK_SIGN = "░"
"""How a position that is still masked reads in the text of an :class:`Event`."""


@dataclass(frozen=True)
class Result:
    """A finished text.

    ``token_ids``: the generated ids, filler included, or the whole canvas from ``LM.decode``. ``tokens``: the ids of
    the text alone, up to its end token or stop string; ``token_confidence``: the confidence in each of them.
    ``forwards`` counts candidate evaluations, ``steps`` denoising steps; ``tokens_per_forward`` is the tokens the model
    committed per evaluation (what an early exit filled in does not count) and ``mean_confidence`` the mean confidence
    of everything it committed. ``finish_reason`` is "stop" at an end token or stop string, else "length". ``trace``
    positions count from the start of the prompt, which is ``prompt_length`` tokens long; without ``trace=True`` it is
    empty. ``cache`` is the one that was used; None also where the one asked for does not fit into the engine's
    ``cache_budget``. ``details`` is what the search counted or measured besides, such as the score of a verified text.
    ``seed`` is the one that sampling started from. ``usage`` counts tokens, steps and forwards. ``alternatives`` are
    the other texts that the search ended with, best first: the rest of a beam, or of Deliberate's verified texts. Their
    steps and forwards are those of the one search, and they have no trace.
    """

    text: str
    token_ids: list[int]
    tokens: list[int]
    token_confidence: list[float | None]
    steps: int
    forwards: int
    tokens_per_forward: float
    mean_confidence: float
    finish_reason: FinishReason
    cache: str | None
    details: dict[str, float]
    trace: Trace
    prompt_length: int
    seed: int
    usage: dict[str, int]
    alternatives: list[Result]

    def to_dict(self, trace: bool = False) -> dict[str, Any]:
        """All fields as plain JSON values, but for the alternatives; the trace only on request, as it is so large."""
        values = {entry.name: plain(getattr(self, entry.name)) for entry in fields(self) if entry.name not in _APART}
        return {**values, **plain(self.trace.to_line())} if trace else values

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from soar_dlm.notebook.html import result_html

        return result_html(self)


@dataclass(frozen=True)
class Infilling(Result):
    """A text whose blanks are filled: ``blanks`` one by one, ``text`` all of them, ``whole`` with the text around them.

    ``finish_reason`` is "length" if a blank is as long as it may be (always, where the length is fixed), "budget" if
    one has used up its expansions, and "stop" if the model chose all lengths itself.
    """

    blanks: list[str]
    whole: str


@dataclass(frozen=True)
class Event:
    """One denoising step as seen from outside: the best candidate so far.

    ``token_ids``, ``masked``, ``confidence``, their canvas ``positions`` and the ``blanks`` they belong to describe the
    generated part; ``confidence`` is None where nothing was committed. ``text`` shows masked positions as
    ``soar_dlm.results.MASK_SIGN``. ``record`` holds the whole beam, and ``pieces`` the text of every token in it. The
    first event has the ``scene`` that the decoding started from, the last one the ``result``.

    ``missed`` are the records of the steps just before, where their own events were left out because the reader of an
    :class:`AsyncLM` was slow: with them, the records of a stream are those of the trace. The first ``settled`` of
    ``token_ids`` stay as they are; of a search that may take tokens back, none do before the end.
    """

    step: int
    forwards: int
    text: str
    token_ids: list[int]
    masked: list[bool]
    confidence: list[float | None]
    positions: list[int]
    blanks: list[int]
    record: StepRecord | None
    result: Result | None
    settled: int = 0
    missed: tuple[StepRecord, ...] = ()
    scene: Scene | None = None
    pieces: Mapping[int, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain JSON values."""
        return {
            **{entry.name: plain(getattr(self, entry.name)) for entry in fields(self) if entry.name not in _PARTS},
            "record": None if self.record is None else self.record.to_json(),
            **({"missed": [record.to_json() for record in self.missed]} if self.missed else {}),
            "result": None if self.result is None else self.result.to_dict(),
            "scene": None if self.scene is None else self.scene.to_json(),
        }
