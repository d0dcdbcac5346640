from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.errors import PromptError, SettingsError
from soar_dlm.template import Template


def test_blanks_are_marked_in_the_text() -> None:
    found = Template.parse("def f(x):\n{blank:8}\n    return {y}{blank}", length=5)
    assert found == Template(("def f(x):\n", "\n    return {y}", ""), (8, 5))
    assert found.filled(["    y = x", " + 1"]) == "def f(x):\n    y = x\n    return {y} + 1"


def test_a_marker_can_be_written_itself() -> None:
    assert Template.parse("{{blank}} {{blank:3}} {blank}").pieces == ("{blank} {blank:3} ", "")


@given(st.lists(st.text("ab{}:8\n", max_size=6), min_size=2, max_size=4), st.integers(1, 9))
def test_what_parse_reads_is_what_stands_there(pieces: list[str], length: int) -> None:
    text = "{blank:7}".join(pieces)
    if "{{" in text or "}}" in text:
        return
    assert Template.parse(text, length) == Template(tuple(pieces), (7,) * (len(pieces) - 1))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Template.parse("no blank"), PromptError),
        (lambda: Template.parse("{blank:0}"), SettingsError),
        (lambda: Template(("a",), (1,)), PromptError),
        (lambda: Template(("a", 3), (1,)), PromptError),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_template_is_refused(make: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()  # type: ignore[operator]
