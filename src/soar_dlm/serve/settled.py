"""How much of a text that is being written can be shown for good."""

from __future__ import annotations

from collections.abc import Sequence

from soar_dlm.engine.stopping import cut
from soar_dlm.errors import UnexpectedError
from soar_dlm.lm import LM
from soar_dlm.models.text import UNKNOWN
from soar_dlm.results import Event


class SettledText:
    """The settled text of one stream, piece by piece; put together they are the text of its result.

    1. Only tokens that all candidates agree on, before the first mask of any, and only of searches that take nothing
       back: what :class:`Event` calls settled. Of other searches the whole text comes at the end.
    2. Nothing after the first end token or stop string. What may be the beginning of a stop string is held back, and
       so is a character whose bytes are not all there.
    3. A tokenizer that tidies up spaces as it decodes may change what is before a token; its text comes at the end.
    """

    def __init__(self, lm: LM, stop: Sequence[str], stop_token_ids: Sequence[int]) -> None:
        self._lm, self._stop = lm, stop
        self._ends = {*lm.end_token_ids, *stop_token_ids}
        self._tidies = bool(getattr(lm.tokenizer, "clean_up_tokenization_spaces", False))
        self._known = 0
        self._sent = ""

    def more(self, event: Event) -> str:
        """What can be shown in addition."""
        if event.settled == self._known or self._tidies:
            return ""
        self._known = event.settled
        return self._difference(self._shown(event.token_ids[: event.settled]))

    def rest(self, text: str) -> str:
        """What the finished text has in addition."""
        if not text.startswith(self._sent):
            raise UnexpectedError("A text that was settled has changed; please report this as a bug in soar-dlm.")
        return self._difference(text)

    def _difference(self, text: str) -> str:
        more = text[len(self._sent) :]
        self._sent += more
        return more

    def _shown(self, tokens: Sequence[int]) -> str:
        end = next((place for place, token in enumerate(tokens) if token in self._ends), len(tokens))
        text = self._lm.text_of(tokens[:end])
        kept = cut(text, self._stop)
        sure = text.rstrip(UNKNOWN) if kept is None and end == len(tokens) else text if kept is None else kept
        return sure[: min(len(sure), _first_beginning(text, self._stop))]


def _first_beginning(text: str, stops: Sequence[str]) -> int:
    """Where the first stop string may begin that is not all there yet."""
    longest = max(map(len, stops), default=0)
    for start in range(max(0, len(text) - longest + 1), len(text)):
        if any(stop.startswith(text[start:]) for stop in stops):
            return start
    return len(text)
