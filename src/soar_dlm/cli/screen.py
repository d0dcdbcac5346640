"""Where the command talks to its user: the terminal, or whatever takes its place."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from soar_dlm.cli.canvas import clean


def screen(stderr: bool = True) -> Console:
    """A console that shows text as it is: square brackets, which names of files may have, are not markup.

    Colours are left out where ``NO_COLOR`` is set or nothing shows them.
    """
    return Console(stderr=stderr, highlight=False, markup=False)


def say(word: str, message: str, style: str) -> None:
    """``word: message`` on standard error; the word has a colour in a terminal that shows colours."""
    screen().print(Text.assemble((f"{word}:", style), " ", clean(message)), soft_wrap=True)
