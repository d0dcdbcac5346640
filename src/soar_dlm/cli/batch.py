"""Many prompts: JSON lines in, JSON lines out, each written when it is done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from soar_dlm.cli.files import Output
from soar_dlm.errors import PromptError, SoarError

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Result


def parse_line(line: str) -> tuple[Any, Any]:
    """Prompt and id of one input line: an object with "prompt" (a string) or "messages" (a list), and maybe "id"."""
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise PromptError(f"This line is not JSON: {error}.") from error
    if not isinstance(entry, dict):
        raise PromptError('A line must be a JSON object such as {"prompt": "..."}.')
    prompt = entry.get("prompt", entry.get("messages"))
    if prompt is None:
        raise PromptError('A line must have "prompt" (a string) or "messages" (a list of role and content).')
    return prompt, entry.get("id")


def summary(result: Result) -> dict[str, Any]:
    """The figures of a result, as they stand in output files."""
    return {
        "finish_reason": result.finish_reason,
        "steps": result.steps,
        "forwards": result.forwards,
        "tokens_per_forward": round(result.tokens_per_forward, 4),
        "mean_confidence": round(result.mean_confidence, 6),
    }


def trace_record(index: int, prompt: Any, result: Result) -> dict[str, Any]:
    """One line of a trace file: canvas positions count from the start of the prompt."""
    return {
        "index": index,
        "prompt": prompt,
        "text": result.text,
        "token_ids": result.token_ids,
        "prompt_length": result.prompt_length,
        **summary(result),
        "trace": result.trace.to_json(),
    }


class BatchWriter:
    """Writes one record per prompt, in the order they are done, each flushed at once; counts the failures."""

    def __init__(self, output: Output, trace: Output | None) -> None:
        self._output, self._trace = output, trace
        self.done = self.failed = 0

    def result(self, index: int, prompt: Any, identity: Any, result: Result) -> None:
        self._write({"prompt": prompt, "text": result.text, **summary(result)}, index, identity)
        if self._trace is not None:
            self._trace.write_json(trace_record(index, prompt, result))

    def error(self, index: int, identity: Any, error: SoarError) -> None:
        self.failed += 1
        self._write({"error": {"type": type(error).__name__, "message": str(error)}}, index, identity)

    def _write(self, record: dict[str, Any], index: int, identity: Any) -> None:
        self.done += 1
        named = {} if identity is None else {"id": identity}
        self._output.write_json({"index": index, **named, **record})


def run_batch(lm: LM, lines: Sequence[str], writer: BatchWriter, decoding: dict[str, Any]) -> Iterator[Result | None]:
    """Decode every line and write its record; a line that is bad or fails gets an error record and the others go on.

    Yields once per line when its record is written: the result, or None for an error.
    """
    prompts: list[tuple[int, Any, Any]] = []
    for index, line in enumerate(lines):
        try:
            prompt, identity = parse_line(line)
            prompts.append((index, prompt, identity))
        except PromptError as error:
            writer.error(index, None, error)
            yield None
    for place, outcome in lm.generate_as_completed((prompt for _, prompt, _ in prompts), **decoding):
        index, prompt, identity = prompts[place]
        if isinstance(outcome, SoarError):
            writer.error(index, identity, outcome)
            yield None
        else:
            writer.result(index, prompt, identity, outcome)
            yield outcome
