"""``soar chat``: a conversation in the terminal, or one turn per line of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.console import Console

from soar_dlm.cli import options as opt
from soar_dlm.cli.groups import takes
from soar_dlm.cli.loading import import_library, loaded
from soar_dlm.cli.method import Method
from soar_dlm.cli.screen import say, screen
from soar_dlm.errors import PromptError, PromptTooLong, SoarError
from soar_dlm.options import GenerateOptions, make_options

if TYPE_CHECKING:
    from soar_dlm.lm import LM
    from soar_dlm.results import Result
    from soar_dlm.search.strategy import Strategy

HELP = "Type a message. /reset starts anew, /exit or Ctrl-D leaves, Ctrl-C stops an answer."

System = Annotated[Optional[str], typer.Option(help="What the model is told before the conversation.", metavar="TEXT")]


@takes(loading=opt.LOADING, method=opt.METHOD, decoding=opt.CHAT)
def chat(
    *,
    model: opt.Model,
    system: System = None,
    watch: opt.Watch = False,
    decoding: dict[str, Any],
    method: dict[str, Any],
    loading: dict[str, Any],
) -> None:
    """Talk to a model that has a chat template.

    For example: [cyan]soar chat -m GSAI-ML/LLaDA-8B-Instruct --watch[/cyan]

    Type /reset for a new conversation, and /exit or Ctrl-D to leave.

    Piped input is read as one message per line.
    """
    make_options(GenerateOptions, decoding)
    import_library()
    chosen = Method(method)
    lm = loaded(model, loading)
    if not getattr(lm.tokenizer, "chat_template", None):
        raise PromptError(
            f"{model!r} has no chat template, so it cannot hold a conversation. Use 'soar generate', or a model that "
            "was trained to chat, such as GSAI-ML/LLaDA-8B-Instruct."
        )
    console = screen()
    conversation = Conversation(lm, chosen.strategy(lm), {**decoding, "trace": False}, system, console, watch)
    failed = False
    if _at_a_keyboard():
        console.print(HELP, soft_wrap=True)
    for line in _messages():
        if line == "/exit":
            break
        if line == "/reset":
            conversation.reset()
            console.print("A new conversation.")
        elif line.startswith("/"):
            console.print(f"There is no command {line.split()[0]}. {HELP}", soft_wrap=True)
        elif line:
            failed |= not conversation.answer(line)
    if failed and not _at_a_keyboard():
        raise typer.Exit(1)


class Conversation:
    """The turns so far, and the answer to the next.

    When the model's context is full, the oldest turns are dropped; the system message stays.
    """

    def __init__(
        self, lm: LM, strategy: Strategy, options: dict[str, Any], system: str | None, console: Console, watch: bool
    ) -> None:
        self._lm, self._strategy, self._options = lm, strategy, options
        self._console, self._watch = console, watch
        self._system = [] if system is None else [{"role": "system", "content": system}]
        self.turns: list[tuple[str, str]] = []

    def reset(self) -> None:
        self.turns.clear()

    def answer(self, message: str) -> bool:
        """Answer a message and remember both; if there is no answer, the message is forgotten too."""
        try:
            self.turns.append((message, self._write(message)))
        except SoarError as error:
            say("error", str(error), "bold red")
            return False
        except KeyboardInterrupt:
            self._console.print("Stopped.")
            return False
        return True

    def _write(self, message: str) -> str:
        while True:
            try:
                return self._say(self._messages(message))
            except PromptTooLong:
                if not self.turns:
                    raise
                del self.turns[0]
                self._console.print("The model's context is full; the oldest turn is dropped.")

    def _messages(self, message: str) -> list[dict[str, str]]:
        earlier = [
            {"role": role, "content": content}
            for turn in self.turns
            for role, content in zip(("user", "assistant"), turn, strict=True)
        ]
        return [*self._system, *earlier, {"role": "user", "content": message}]

    def _say(self, messages: list[dict[str, str]]) -> str:
        """Decode and print the model's turn."""
        if self._watch:
            from soar_dlm.cli.watch import show, shown_on

            events = self._lm.stream(messages, self._strategy, **self._options)
            text = show(self._lm, events, self._strategy, self._console).text
            if not shown_on(self._console):
                print(text, flush=True)
            return text
        result: Result = self._lm.generate(messages, self._strategy, **self._options)
        print(result.text, flush=True)
        return result.text


def _at_a_keyboard() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _messages() -> Iterator[str]:
    """What the user types, line by line, until the end of the input."""
    if not _at_a_keyboard():
        for place, line in enumerate(sys.stdin or ()):
            yield line.removeprefix("\ufeff" if place == 0 else "").strip()
        return
    with suppress(ImportError):
        import readline  # noqa: F401  (lets the user edit the line and recall earlier ones)
    while True:
        try:
            yield input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return
