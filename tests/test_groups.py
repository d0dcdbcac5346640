"""The options of a command come from the dataclasses of options; none is written twice."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from soar_dlm.cli import options as opt
from soar_dlm.cli.generate import generate
from soar_dlm.cli.groups import Group, group_of, takes
from soar_dlm.options import GenerateOptions, InfillOptions


def run(group: Group, *args: str) -> Any:
    """The dict that a command with these options receives."""
    received: list[dict[str, Any]] = []

    @takes(decoding=group)
    def command(*, decoding: dict[str, Any]) -> None:
        received.append(decoding)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(args))
    assert result.exit_code == 0, result.output
    return received[0]


@pytest.mark.parametrize(("kind", "group"), [(GenerateOptions, opt.GENERATE), (InfillOptions, opt.INFILL)])
def test_every_option_of_a_request_is_an_option_of_the_command(kind: Any, group: Group) -> None:
    offered = {entry.name for entry in fields(kind) if entry.metadata["command"]}
    assert set(group) == offered
    assert {entry.name for entry in fields(kind)} - offered == {"trace", "runners_up"}


def test_only_what_was_given_is_passed_on() -> None:
    """A default that is passed on would hide the one that the checkpoint carries."""
    assert run(opt.GENERATE) == {}
    assert run(opt.GENERATE, "--temperature", "0", "--early-exit") == {"temperature": 0.0, "early_exit": True}


def test_values_have_the_types_of_their_fields() -> None:
    args = [
        "-n",
        "5",
        "--no-early-exit",
        "--chat",
        "--stop",
        "a",
        "--stop",
        "b",
        "--suppress-token",
        "3",
        "--top-p",
        "1",
    ]
    assert run(opt.GENERATE, *args, "--seed", "4", "--block-length", "2") == {
        "max_new_tokens": 5,
        "early_exit": False,
        "chat": True,
        "stop": ["a", "b"],
        "suppress_tokens": [3],
        "top_p": 1.0,
        "seed": 4,
        "block_length": 2,
    }
    assert run(opt.GENERATE, "--seed", "random") == {"seed": None}


def test_a_new_option_needs_no_change_of_the_command() -> None:
    @dataclass(frozen=True)
    class More:
        depth: int = field(default=3, metadata={"help": "How deep.", "flags": (), "command": True, "metavar": None})
        hidden: int = field(default=3, metadata={"help": "", "flags": (), "command": False, "metavar": None})

    assert run(group_of(More, "Decoding"), "--depth", "4") == {"depth": 4}


def test_the_signature_of_a_command_has_each_option_once() -> None:
    names = list(inspect.signature(generate).parameters)
    assert len(names) == len(set(names))
    assert {"max_new_tokens", "device", "beam", "prompt", "n"} <= set(names)
    assert not {"decoding", "loading", "method"} & set(names)
