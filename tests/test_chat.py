"""``soar chat``: turns, commands, and a context that fills up."""

from __future__ import annotations

from typing import Any

import pytest

from soar_dlm.errors import PromptError
from soar_dlm.lm import LM, load
from tests.command import invoke

BASE = ["chat", "-m", "random-llada", "-n", "10"]


def user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def test_each_line_is_a_turn_that_the_next_one_knows() -> None:
    lm = load("random-llada")
    first = lm.generate([user("hello")], max_new_tokens=10).text
    second = lm.generate([user("hello"), assistant(first), user("and?")], max_new_tokens=10).text
    alone = lm.generate([user("and?")], max_new_tokens=10).text
    assert invoke(*BASE, stdin="hello\n\nand?\n").stdout == f"{first}\n{second}\n"
    assert invoke(*BASE, stdin="hello\n/reset\nand?\n").stdout == f"{first}\n{alone}\n"
    assert invoke(*BASE, stdin="hello\n/exit\nand?\n").stdout == f"{first}\n"
    wrong = invoke(*BASE, stdin="/rest\nhello\n")
    assert "There is no command /rest" in wrong.stderr
    assert wrong.stdout == f"{first}\n"


def test_system_message_and_options_reach_the_model() -> None:
    messages = [{"role": "system", "content": "Be brief."}, user("hello")]
    expected = load("random-llada").generate(messages, "greedy", max_new_tokens=10, temperature=0.5, seed=2).text
    options = ["--system", "Be brief.", "-s", "greedy", "--temperature", "0.5", "--seed", "2"]
    assert invoke(*BASE, *options, stdin="hello").stdout == f"{expected}\n"
    assert invoke(*BASE, *options, "--watch", stdin="hello").stdout == f"{expected}\n", "without a terminal"


def test_the_oldest_turns_make_room_for_new_ones() -> None:
    lm = load("random-llada")
    long, second = "x" * 500, "y" * 480
    run = invoke(*BASE, stdin=f"{long}\n{second}\n{'z' * 2000}\nshort\n")
    assert run.stderr.count("the oldest turn is dropped") == 2
    assert "error:" in run.stderr, "a message that is too long by itself"
    assert run.exit_code == 1
    answer = lm.generate([user(second)], max_new_tokens=10).text
    assert run.stdout.splitlines()[1] == answer
    assert run.stdout.splitlines()[2] == lm.generate([user("short")], max_new_tokens=10).text


def test_a_failed_turn_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load("random-llada")
    real = LM.generate

    def interrupted(self: LM, prompt: Any, *args: Any, **options: Any) -> Any:
        if prompt[-1]["content"] == "stop me":
            raise KeyboardInterrupt
        return real(self, prompt, *args, **options)

    monkeypatch.setattr(LM, "generate", interrupted)
    run = invoke(*BASE, stdin="stop me\nhello\n")
    assert "Stopped." in run.stderr
    assert run.stdout == real(lm, [user("hello")], max_new_tokens=10).text + "\n"


def test_a_model_without_a_chat_template_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load("random-llada")
    lm.tokenizer.chat_template = None
    monkeypatch.setattr("soar_dlm.lm.load", lambda *_, **__: lm)
    with pytest.raises(PromptError, match="has no chat template"):
        invoke(*BASE, stdin="hello")
