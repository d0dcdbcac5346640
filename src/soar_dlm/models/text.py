"""A tokenizer that survives whatever a model predicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from soar_dlm.errors import PromptError, told

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_PROBE = "a"


class Text:
    """Text to ids and back for one model.

    Ids that the tokenizer does not know (the head of a model often has more rows than there are tokens) become U+FFFD.
    """

    def __init__(self, tokenizer: Any, end_ids: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self._ends = frozenset(end_ids)
        self._known = frozenset(tokenizer.get_vocab().values())
        self._probe: list[int] = tokenizer(_PROBE, add_special_tokens=False)["input_ids"]
        self._before, self._after = self._frame()
        self._pieces: dict[int, str] = {}

    def _frame(self) -> tuple[list[int], list[int]]:
        """What the tokenizer puts before and after a text, such as [CLS] and [SEP]."""
        probe = self._probe
        framed = self.tokenizer(_PROBE)["input_ids"]
        for start in range(len(framed) - len(probe) + 1):
            if framed[start : start + len(probe)] == probe:
                return framed[:start], framed[start + len(probe) :]
        return [], []

    def encode(self, text: str, framed: bool = True) -> tuple[list[int], list[int]]:
        """Ids of a prompt, and the ids that follow the text that continues it (such as [SEP]).

        With ``framed=False`` the tokenizer adds nothing, before or after.
        """
        if not framed:
            return self._ids(text), []
        return [*self._before, *self._ids(text)], list(self._after)

    def whole(self, text: str) -> tuple[list[int], list[int]]:
        """Ids of a complete text, starting with BOS, and the ids that follow it, ending with EOS."""
        named = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        bos, eos = ([] if token is None else [token] for token in named)
        return [*(self._before or bos), *self._ids(text)], self._after or eos

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> tuple[list[int], list[int]]:
        """Ids of a conversation in the model's chat template, ready for the assistant's turn."""
        try:
            rendered = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates are programs and raise what they like
            raise PromptError(f"The model's chat template rejects these messages: {told(error)}.") from error
        return self._ids(rendered), []

    def _ids(self, text: str) -> list[int]:
        try:
            ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        except Exception as error:  # the Rust side raises bare Exceptions
            raise PromptError(f"The tokenizer rejects this text: {told(error)}.") from error
        return ids

    @property
    def has_chat_template(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def until_end(self, ids: Sequence[int]) -> list[int]:
        """Ids before the first end token."""
        for place, token in enumerate(ids):
            if token in self._ends:
                return list(ids[:place])
        return list(ids)

    def decode(self, ids: Sequence[int], *, keep_special: bool = False) -> str:
        """The text of ids, with special tokens only if ``keep_special``."""
        pieces = []
        for known, run in groupby(ids, self._known.__contains__):
            tokens = list(run)
            decoded = (
                self.tokenizer.decode(tokens, skip_special_tokens=not keep_special) if known else UNKNOWN * len(tokens)
            )
            pieces.append(decoded)
        return "".join(pieces)

    def piece(self, token: int) -> str:
        """What one id adds to a text, special tokens included.

        Some tokenizers drop the space of a text's first token, so the id is read after another one. Of a character that
        takes several tokens each is U+FFFD.
        """
        if token not in self._pieces:
            both = self.decode([*self._probe, token], keep_special=True)
            alone = self.decode([token], keep_special=True)
            self._pieces[token] = both[len(_PROBE) :] if both.startswith(_PROBE) else alone
        return self._pieces[token]
