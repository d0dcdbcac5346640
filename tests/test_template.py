from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from soar_dlm.errors import PromptError, SettingsError
from soar_dlm.template import Template


def test_blanks_are_marked_in_the_text() -> None:
    found = Template.parse("def f(x):\n    y = {blank:8}\n    return {y}{blank}", length=5)
    assert found == Template(("def f(x):\n    y = ", "\n    return {y}", ""), (8, 5))
    assert found.filled(["x", " + 1"]) == "def f(x):\n    y = x\n    return {y} + 1"


@pytest.mark.parametrize("sign", ["{blank}", "{blank:8}", "# TODO"])
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a\n    SIGN\nb\n", ("a\n", "b\n")),
        ("a\n\tSIGN \t\r\nb\n", ("a\n", "b\n")),
        ("SIGN\nb", ("", "b")),
        ("a\n  SIGN", ("a\n", "")),
        ("a\nx SIGN\nb", ("a\nx ", "\nb")),
        ("a\nSIGN;\nb", ("a\n", ";\nb")),
        ("a\n\nSIGN\n\nb", ("a\n\n", "\nb")),
        ("a\nSIGN SIGN\nb", ("a\n", " ", "\nb")),
    ],
)
def test_a_sign_alone_on_its_line_stands_for_the_line(text: str, pieces: tuple[str, ...], sign: str) -> None:
    marker = sign if sign == "# TODO" else None
    found = Template.parse(text.replace("SIGN", sign), 5, marker)
    assert found == Template(pieces, (8 if sign == "{blank:8}" else 5,) * (len(pieces) - 1))


def test_a_marker_takes_the_place_of_the_braces() -> None:
    assert Template.parse("{blank} ?? {{blank}}", 3, "??") == Template(("{blank} ", " {{blank}}"), (3,))
    with pytest.raises(PromptError, match="does not contain the marker"):
        Template.parse("{blank}", 3, "??")
    with pytest.raises(SettingsError, match="must not be empty"):
        Template.parse("{blank}", 3, "")


@pytest.mark.parametrize("marker", ["# TODO\n# more", "# TODO\r\n# more"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_marker_of_several_lines_is_found_whichever_line_ends_it_has(marker: str, end: str) -> None:
    """A marker with LF used to be missed in a file with CRLF, and the other way round."""
    text = f"a{end}  # TODO{end}# more{end}b"
    assert Template.parse(text, 3, marker) == Template((f"a{end}", "b"), (3,))
    assert Template.parse(f"a{end}x = # TODO{end}# more{end}b", 3, marker).pieces == (f"a{end}x = ", f"{end}b")


@pytest.mark.parametrize(("text", "marker"), [(5, None), (b"{blank}", None), ("a ?? b", 5)])
def test_what_is_no_text_is_no_template(text: object, marker: object) -> None:
    with pytest.raises(PromptError, match="is a string"):
        Template.parse(text, 3, marker)  # type: ignore[arg-type]


def test_a_marker_can_be_written_itself() -> None:
    assert Template.parse("{{blank}} {{blank:3}} {blank}").pieces == ("{blank} {blank:3} ", "")


@given(st.lists(st.text("ab{}:8", max_size=6), min_size=2, max_size=4), st.integers(1, 9))
def test_inside_a_line_the_pieces_are_the_text_between_the_signs(pieces: list[str], length: int) -> None:
    text = "{blank:7}".join(pieces)
    assume("{{" not in text and "}}" not in text and any(pieces))
    assert Template.parse(text, length) == Template(tuple(pieces), (7,) * (len(pieces) - 1))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Template.parse("no blank"), PromptError),
        (lambda: Template.parse("{blank:0}"), SettingsError),
        (lambda: Template(("a",), (1,)), PromptError),
        (lambda: Template(("a", 3), (1,)), PromptError),  # type: ignore[arg-type]
        (lambda: Template(("a", "b"), (1,)).filled(["x", "y"]), PromptError),
        (lambda: Template(("a", "b"), (1,)).filled([3]), PromptError),  # type: ignore[list-item]
        (lambda: Template(("a", "b"), (1,)).filled("x"), PromptError),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_template_is_refused(make: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()  # type: ignore[operator]
