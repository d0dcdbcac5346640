"""One problem decoded by one method: a line of a result file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from soar_dlm.errors import InputFileError, told
from soar_dlm.evals.fields import Damaged, Fields
from soar_dlm.evals.replay import Course
from soar_dlm.strict_json import json_line, read_json


@dataclass(frozen=True)
class Record:
    """One problem decoded by one method.

    ``seconds`` is the time since the previous record of the same turn. Problems share batches, so only the sum over
    all of a method's records says how fast it is. ``prompt_sha256`` is the hash of prompt and suffix. ``exact`` says
    whether a blank got exactly the text that was taken out; it is None where a task has no blanks. ``course`` is what
    other settings of a deliberation would have answered; only sweeps of Deliberate have it.
    """

    index: int
    method: str
    kind: str
    prompt_sha256: str
    correct: bool
    steps: int
    forwards: int
    tokens_per_forward: float
    mean_confidence: float
    finish_reason: str
    seconds: float
    text: str
    exact: bool | None = None
    course: Course | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``course`` is left out where there is none."""
        return {name: value for name, value in asdict(self).items() if name != "course" or value is not None}

    @property
    def line(self) -> str:
        """The record as a line, without its end."""
        return json_line(self.to_json())

    @classmethod
    def of_line(cls, line: bytes) -> Record:
        """The record on a line, which must have its end."""
        if not line.endswith(b"\n"):
            raise Damaged("its end is missing")
        try:
            content = read_json(line)
        except InputFileError as error:
            raise Damaged(told(error)) from error
        return cls.from_json(content)

    @classmethod
    def from_json(cls, content: Any) -> Record:
        """The record that :meth:`to_json` made plain; what a later version added is ignored."""
        found = Fields(content)
        return cls(
            index=found.whole("index"),
            method=found.text("method"),
            kind=found.text("kind"),
            prompt_sha256=found.text("prompt_sha256"),
            correct=found.flag("correct"),
            steps=found.whole("steps"),
            forwards=found.whole("forwards"),
            tokens_per_forward=found.number("tokens_per_forward", 0),
            mean_confidence=found.number("mean_confidence"),
            finish_reason=found.text("finish_reason"),
            seconds=found.number("seconds", 0),
            text=found.text("text"),
            exact=None if found.lacks("exact") else found.flag("exact"),
            course=None if found.lacks("course") else Course.read(found.inside("course")),
        )
