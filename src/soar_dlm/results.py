"""What decoding gives back: a finished text, and the steps on the way to it."""

from __future__ import annotations

from dataclasses import dataclass

from soar_dlm.engine.request import FinishReason
from soar_dlm.engine.trace import StepRecord, Trace


@dataclass(frozen=True)
class Result:
    """A finished text.

    ``token_ids``: the generated ids, or the whole canvas from ``LM.decode``. ``forwards`` counts candidate evaluations,
    ``steps`` denoising steps; ``tokens_per_forward`` is the tokens the model committed per evaluation (what an early
    exit filled in does not count) and ``mean_confidence`` their mean confidence. ``finish_reason`` is "stop" at an end
    token or stop string, else "length". ``trace`` positions count from the start of the prompt, which is
    ``prompt_length`` tokens long.
    """

    text: str
    token_ids: list[int]
    steps: int
    forwards: int
    tokens_per_forward: float
    mean_confidence: float
    finish_reason: FinishReason
    trace: Trace
    prompt_length: int


@dataclass(frozen=True)
class Event:
    """One denoising step as seen from outside: the best candidate so far.

    ``token_ids``, ``masked`` and their canvas ``positions`` speak of the generated part; ``text`` shows masked
    positions as ``soar_dlm.lm.MASK_SIGN``. ``record`` holds the whole beam. The last event has the ``result``.
    """

    step: int
    forwards: int
    text: str
    token_ids: list[int]
    masked: list[bool]
    positions: list[int]
    record: StepRecord | None
    result: Result | None
