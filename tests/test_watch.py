"""``--watch``: what the terminal shows, in whichever size, colours and with whatever a model writes."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from rich.console import Console

from soar_dlm.cli.canvas import END, MASK, Drawing, Palette, Pieces, Window, clean, folded, joined
from soar_dlm.cli.watch import Pane, as_share, frame, show
from soar_dlm.engine.trace import BeamEntry, StepRecord
from soar_dlm.figures import Figures
from soar_dlm.lm import LM, load
from soar_dlm.results import Event
from soar_dlm.search.candidate import Mode
from soar_dlm.search.catalogue import STRATEGIES
from soar_dlm.search.confidence import Metric
from soar_dlm.search.metrics import get_metric
from tests.command import BASE, invoke
from tests.terminal import Screen, terminal

ENDS = (1, 2)


def an_event(tokens: Sequence[int | None], confidence: float | None = 0.9, step: int = 1) -> Event:
    """An event with these tokens; None is a mask."""
    return Event(
        step=step,
        forwards=step,
        text="",
        token_ids=[0 if token is None else token for token in tokens],
        masked=[token is None for token in tokens],
        confidence=[None if token is None else confidence for token in tokens],
        positions=list(range(len(tokens))),
        blanks=[0] * len(tokens),
        record=None,
        result=None,
    )


def a_drawing(console: Console, decode: Callable[[list[int]], str] | None = None) -> Drawing:
    """Tokens are code points unless ``decode`` says otherwise."""
    pieces = Pieces(decode or (lambda ids: "".join(map(chr, ids))))
    return Drawing(Palette(console), pieces, ENDS, lambda confidence: confidence)


def points(text: str) -> list[int | None]:
    return [None if character == MASK else ord(character) for character in text]


def plain(drawing: Drawing, event: Event) -> str:
    return joined(drawing.cells(event)).plain


def test_end_tokens_are_one_sign() -> None:
    """A canvas of end tokens used to be twenty lines of <|endoftext|>."""
    drawing = a_drawing(terminal())
    assert plain(drawing, an_event([*points("ab"), 1])) == f"ab{END}"
    assert plain(drawing, an_event([*points("a░b"), *[1] * 40, 2])) == f"a░b{END}\N{MULTIPLICATION SIGN}41"
    filler = an_event([*points("ab"), *[1] * 9], confidence=None)
    assert plain(drawing, filler) == f"ab{END}\N{MULTIPLICATION SIGN}9"


def test_a_character_of_several_tokens_is_drawn_whole() -> None:
    """Tokens that are parts of a character used to show as replacement characters."""

    def decode(ids: list[int]) -> str:
        return bytes(ids).decode("utf-8", errors="replace")

    drawing = a_drawing(terminal(), decode)
    encoded: list[int | None] = [*"aé😀b".encode()]
    assert plain(drawing, an_event(encoded)) == "aé😀b"
    half_written = [*encoded[:4], None, *encoded[5:]]
    assert plain(drawing, an_event(half_written)) == "aé\ufffd░\ufffd\ufffdb"


def test_pieces_depend_on_their_neighbours_where_the_tokenizer_does() -> None:
    """A tokenizer that puts spaces between words gives none for a word alone."""
    words = {10: "two", 11: "words"}
    pieces = Pieces(lambda ids: " ".join(words[token] for token in ids))
    assert pieces.of([10, 11, 10]) == ["two", " words", " two"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb", "a    b"),
        ("\x1b[2J\r\x00\x7f", "\u241b[2J\u240d\u2400\ufffd"),
        ("a\nb", "a\nb"),
        ("\x85\u2028\u2029", "\ufffd\ufffd\ufffd"),
        ("\u202eabc\u200b\ufeff", "abc"),
        ("\xa0x", " x"),
        ("\ud800", "\ufffd"),
        ("日本", "日本"),
    ],
)
def test_no_character_can_move_the_cursor(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_lines_are_folded_by_columns_and_broken_at_newlines() -> None:
    drawing = a_drawing(terminal())
    lines, fresh = folded(drawing.cells(an_event(points("日本語ab\n\nc"))), width=5)
    assert [line.plain for line in lines] == ["日本", "語ab", "", "c"]
    assert fresh == [0, 1, 2, 3]
    lines, fresh = folded(drawing.cells(an_event(points("日本語ab\n\nd"))), width=5)
    assert fresh == [3], "only what changed is fresh"


def test_the_window_follows_the_changes() -> None:
    window = Window()
    assert window.top(count=50, fresh=[3], height=10) == 0
    assert window.top(count=50, fresh=[9], height=10) == 0, "in view already"
    assert window.top(count=50, fresh=[20], height=10) == 11, "no further than needed"
    assert window.top(count=50, fresh=[12, 49], height=10) == 11
    assert window.top(count=50, fresh=[5], height=10) == 5
    assert window.top(count=8, fresh=[7], height=10) == 0, "the canvas became shorter"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 6), (10, 3)])
def test_a_frame_is_never_larger_than_the_terminal(size: tuple[int, int]) -> None:
    """A canvas of 240 tokens used to leave 1,071 lines in the scrollback."""
    width, height = size
    console = terminal(width, height)
    pane = Pane(a_drawing(console))
    text = "一 line of text\twith tabs\n" * 200
    for step in range(0, len(text), 613):
        event = an_event(points(text[:step] + MASK * 300), step=step)
        pane.follow(event)
        lines = console.render_lines(frame(pane, Palette(console), console), pad=False)
        assert len(lines) <= max(height, 4)
        assert all(sum(segment.cell_length for segment in line) <= width for line in lines)


def luminance(colour: tuple[int, int, int]) -> float:
    parts = [part / 255 for part in colour]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("system", ["truecolor", "256", "standard"])
def test_tokens_are_legible_on_any_background(system: str) -> None:
    """Yellow on white had a contrast of 1.7. Now ink and paper are both ours, whatever the terminal's own colours."""
    palette = Palette(terminal(colours=system))
    kinds = {"truecolor": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT, "standard": ColorSystem.STANDARD}

    def shown(colour: Color | None) -> float:
        assert colour is not None
        return luminance(colour.downgrade(kinds[system]).get_truecolor())

    for percent in range(101):
        style = palette.style(percent / 100)
        dark, light = sorted((shown(style.color), shown(style.bgcolor)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len({palette.style(share) for share in (0.0, 0.5, 1.0)}) == 3


def test_without_colours_confidence_still_shows() -> None:
    console = terminal(no_color=True)
    palette = Palette(console)
    unsure, between, sure = (palette.style(share) for share in (0.1, 0.5, 0.9))
    assert unsure.reverse
    assert between.underline
    assert not sure
    with console.capture() as captured:
        console.print(a_drawing(console).cells(an_event(points("a"), 0.1))[1].text, style=unsure)
        console.print(palette.legend())
    assert "\x1b[7m" in captured.get()
    assert "38;" not in captured.get()
    assert "unsure" in captured.get()


def test_a_share_of_any_metric_is_between_0_and_1() -> None:
    """A margin of exactly 0 used to count as sure."""
    for name in ("probability", "margin"):
        assert [as_share(get_metric(name))(value) for value in (0.0, 0.3, 1.0)] == [0.0, 0.3, 1.0]
    entropy = as_share(get_metric("neg_entropy"))
    assert entropy(0.0) == 1.0
    assert 0.0 < entropy(-3.0) < entropy(-0.1) < 1.0
    assert as_share(Metric("logit", -2.0, 2.0, lambda shifted, tokens: shifted[:, 0]))(1.0) == 0.75


def test_the_finished_text_is_left_once_and_nothing_else(random_llada: LM) -> None:
    console = terminal(60, 8)
    strategy = random_llada.strategy("greedy", tokens_per_step=16)
    options = {"max_new_tokens": 900, "early_exit": False, "suppress_tokens": random_llada.end_token_ids}
    result = show(random_llada, random_llada.stream("hi", strategy, **options), strategy, console)  # type: ignore[arg-type]
    output = console.file.getvalue()  # type: ignore[attr-defined]
    screen = Screen(output)
    text = "\n".join(screen.lines)
    assert text.count(clean(result.text)) == 1
    assert text.count("step ") == 1
    assert text.count("unsure") == 1
    assert MASK * 2 not in text


def test_the_last_frame_is_the_text_without_what_follows_its_end(random_llada: LM) -> None:
    for options in (
        {"max_new_tokens": 40, "early_exit": False},
        {"max_new_tokens": 40, "stop": "i"},
        {"max_new_tokens": 40, "temperature": 5.0},
    ):
        console = terminal(400)
        strategy = random_llada.strategy("soar")
        result = show(random_llada, random_llada.stream("hello", strategy, **options), strategy, console)
        screen = Screen(console.file.getvalue())  # type: ignore[attr-defined]
        shown = "\n".join(screen.lines).rpartition("\n\nstep")[0]
        assert shown.removesuffix(END) == clean(result.text)


def test_a_filled_template_is_shown_with_its_text_around(random_dreamon: LM) -> None:
    console = terminal(200)
    strategy = random_dreamon.strategy("soar")
    events = random_dreamon.stream_infill("a {blank:4} b {blank:5} c", strategy, max_length=8)
    result = show(random_dreamon, events, strategy, console, ("a ", " b ", " c"))
    screen = Screen(console.file.getvalue())  # type: ignore[attr-defined]
    assert "\n".join(screen.lines).startswith(clean(result.whole))  # type: ignore[attr-defined]


def test_edits_are_watched() -> None:
    console, lm = terminal(120, 30), load("mini-dreamon", device="cpu")
    strategy = lm.strategy("soar", threshold=0.1)
    prompt = 'def compute(nums):\n    """Find the sum, then replace it by its remainder mod 5."""\n'
    show(lm, lm.stream(prompt, strategy, length=40, max_new_tokens=48), strategy, console)
    assert "  delete " in console.file.getvalue()  # type: ignore[attr-defined]


def test_without_a_terminal_only_the_text_is_written() -> None:
    watched, unwatched = invoke(*BASE, "Hello", "--watch"), invoke(*BASE, "Hello")
    assert watched.stdout == unwatched.stdout
    assert watched.stderr == ""


def in_terminal(*args: str, stdout: Path | None = None) -> str:
    """What the command writes to a terminal of 60 columns and 12 lines."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES", "COLORTERM", "FORCE_COLOR"):
        environment.pop(name, None)
    with open(stdout, "wb") if stdout is not None else os.fdopen(os.dup(side), "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "soar_dlm", *args], stdin=side, stdout=out, stderr=side, env=environment
        )
    os.close(side)
    written = b""
    try:
        while chunk := os.read(main, 1 << 16):
            written += chunk
    except OSError:  # the other side is closed
        pass
    os.close(main)
    assert process.wait() == 0
    return written.decode()


def test_in_a_terminal_the_text_is_printed_once_and_loading_is_announced(tmp_path: Path, random_llada: LM) -> None:
    """The text used to be in the last frame and below it once more."""
    text = random_llada.generate("Hello", max_new_tokens=12).text
    assert text.isprintable()
    both = in_terminal(*BASE, "Hello", "--watch")
    assert "Loading PyTorch ..." in both
    assert "Loading random-llada ..." in both
    assert "\n".join(Screen(both).lines).count(text) == 1
    redirected = in_terminal(*BASE, "Hello", "--watch", stdout=tmp_path / "out.txt")
    assert text in "\n".join(Screen(redirected).lines)
    assert (tmp_path / "out.txt").read_text() == text + "\n"


def an_entry(mode: Mode, after: int, dive: int = 0, origin: int = 0, verdict: float | None = None) -> BeamEntry:
    return BeamEntry(mode, origin, (), (), (), 0.0, 0, (), after, dive, verdict)


def told(*steps: tuple[str, list[BeamEntry]]) -> list[str]:
    """The lines for steps that left this canvas and these entries, the last of them the best; without the counts."""
    figures, lines = Figures(), []
    for step, (canvas, entries) in enumerate(steps, 1):
        record = StepRecord(step, 1, tuple(entries), max(len(entries) - 1, 0))
        line = figures.line(replace(an_event(points(canvas), step=step), record=record))
        start = f"step {step}  forwards {step}  "
        assert line.startswith(start)
        lines.append(line.removeprefix(start))
    return lines


def test_the_line_of_a_beam_has_its_width_and_mode() -> None:
    assert told(("a░░", [an_entry("search", 0), an_entry("search", 0)]), ("abc", [an_entry("parallel", 1)])) == [
        "beam 2  search    2 masked",
        "beam 1  parallel  0 masked",
    ]


def test_the_line_of_a_step_that_left_no_candidate() -> None:
    """A step that only read used to end the watching with an IndexError."""
    assert told(("a░", [an_entry("search", 0)]), ("a░", []), ("░░", [an_entry("reopened", 1)])) == [
        "beam 1  search    1 masked",
        "reading  1 masked",
        "beam 1  taken back  2 masked",
    ]


def test_commits_in_a_row_in_one_step_are_no_beam() -> None:
    chain = [an_entry("search", 0), an_entry("search", 1, origin=0), an_entry("search", 1, origin=1)]
    assert told(("abc░", chain)) == ["beam 1  search    1 masked"]


def test_the_line_tells_drafts_branches_and_scores() -> None:
    lines = told(
        ("ab░", [an_entry("search", 0, dive=1)]),
        ("abc", [an_entry("parallel", 1, dive=1)]),
        ("a░░", [an_entry("verified", 2, dive=1, verdict=-0.5), an_entry("search", 0, dive=2)]),
        ("b░░", [an_entry("branch", 0, dive=3)]),
        ("bcd", [an_entry("parallel", 4, dive=3)]),
        ("bcd", []),
        ("c░░", [an_entry("verified", 5, dive=3, verdict=-0.25), an_entry("branch", 0, dive=4)]),
        ("cde", [an_entry("search", 7, dive=4), an_entry("search", 7, dive=4)]),
        ("cde", [an_entry("verified", 8, dive=4, verdict=-0.75)]),
    )
    assert lines == [
        "draft 1  search    1 masked",
        "draft 1  parallel  0 masked",
        "draft 1 scored -0.5000, now draft 2  2 masked  best -0.5000",
        "branch 1  other token  2 masked  best -0.5000",
        "branch 1  parallel  0 masked  best -0.5000",
        "branch 1  verifying  best -0.5000",
        "branch 1 scored -0.2500, now branch 2  2 masked  best -0.2500",
        "branch 2  beam 2  search    0 masked  best -0.2500",
        "branch 2 scored -0.7500  best -0.2500",
    ]


def test_a_deliberation_is_watched_to_its_answer(random_llada: LM) -> None:
    console = terminal(100, 12)
    strategy = random_llada.strategy("deliberate", accept=0.0, tries=3)
    result = show(random_llada, random_llada.stream("hi", strategy, max_new_tokens=12), strategy, console)
    output = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("draft 1", "draft 1 scored -", "branch 1", "branch 1  verifying"):
        assert words in output
    assert f", score {result.details['score']:.4f}\n" in "\n".join(Screen(output).lines)


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_every_strategy_can_be_watched(random_llada: LM, name: str) -> None:
    console, strategy = terminal(100, 12), random_llada.strategy(name)
    result = show(random_llada, random_llada.stream("hello", strategy, max_new_tokens=10), strategy, console)
    assert f"step {result.steps}  forwards {result.forwards}  " in console.file.getvalue()  # type: ignore[attr-defined]
