"""What the processes do that torchrun starts for a command with a split model."""

from __future__ import annotations

import os

import pytest

from soar_dlm.cli.torchrun import nothing_to_do
from soar_dlm.errors import SettingsError

SPLIT = ["generate", "--tensor-parallel", "2", "text"]


def started(monkeypatch: pytest.MonkeyPatch, rank: str, machines: str = "1") -> None:
    told = {"TORCHELASTIC_RUN_ID": "none", "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"}
    for name, value in {**told, "GROUP_WORLD_SIZE": machines}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("args", [SPLIT, ["generate", "--tensor-parallel=2"]])
def test_the_first_process_is_alone_and_the_others_have_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    started(monkeypatch, "0")
    assert not nothing_to_do(args)
    assert "WORLD_SIZE" not in os.environ
    started(monkeypatch, "1")
    assert nothing_to_do(args)


def test_other_commands_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not nothing_to_do(SPLIT)  # without torchrun
    started(monkeypatch, "1")
    assert not nothing_to_do(["generate", "text"])
    assert os.environ["WORLD_SIZE"] == "2"


def test_several_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    started(monkeypatch, "0", machines="2")
    with pytest.raises(SettingsError, match="--nnodes 1"):
        nothing_to_do(SPLIT)
