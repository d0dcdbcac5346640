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
    exit filled in does not count) and ``mean_confidence`` the mean confidence of all it committed. ``finish_reason`` is
    "stop" at an end token or stop string, else "length". ``trace`` positions count from the start of the prompt, which
    is ``prompt_length`` tokens long.
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

    ``token_ids``, ``masked``, their canvas ``positions`` and the ``blanks`` they belong to speak of the generated part;
    ``text`` shows masked positions as ``soar_dlm.lm.MASK_SIGN``. ``record`` holds the whole beam. The last event has
    the ``result``.
    """

    step: int
    forwards: int
    text: str
    token_ids: list[int]
    masked: list[bool]
    positions: list[int]
    blanks: list[int]
    record: StepRecord | None
    result: Result | None
