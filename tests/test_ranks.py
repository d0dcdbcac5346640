"""How many processes there are."""

from __future__ import annotations

import pytest

from soar_dlm.errors import SettingsError
from soar_dlm.evals.ranks import Ranks


def test_a_launcher_that_tells_no_number_of_processes_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "abc")
    with pytest.raises(SettingsError, match="not 'abc'; unset it"):
        Ranks()
    monkeypatch.delenv("WORLD_SIZE")
    assert Ranks().first
