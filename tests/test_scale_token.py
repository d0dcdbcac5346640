"""Clusters that ask for a token and clusters that do not."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from benchmarks.ray_nodes import nodes

from soar_dlm.errors import SettingsError
from soar_dlm.scale.cluster import connected, resources

pytest.importorskip("ray", reason="Ray is not installed: pip install 'soar-dlm[scale]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder without a token, and an environment that says nothing of one and is left as it was."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    before = _said()
    yield tmp_path
    assert _said() == before


def _said() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH")}


@pytest.fixture(scope="module")
def asking() -> Iterator[tuple[str, str]]:
    """A cluster that asks for a token, and the token."""
    with nodes(1) as cluster:
        token = os.environ.pop("RAY_AUTH_TOKEN")
        yield cluster.address, token
        os.environ["RAY_AUTH_TOKEN"] = token


def test_a_cluster_is_shown_the_token_it_asks_for(asking: tuple[str, str], home: Path) -> None:
    address, token = asking
    with pytest.raises(SettingsError, match="asks for a token, and this machine has none"), connected(address):
        pass
    place = home / ".ray" / "auth_token"
    place.parent.mkdir()
    place.write_text("f" * 64)
    with pytest.raises(SettingsError, match=r"another token than that of this machine.*~/\.ray"), connected(address):
        pass
    place.write_text(token)
    with connected(address):
        assert resources()["CPU"] == 1.0


def test_a_token_that_cannot_be_read_is_a_sentence(
    asking: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "missing"))
    with pytest.raises(SettingsError, match=r"token cannot be read.*missing"), connected(asking[0]):
        pass
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")


def test_a_cluster_of_our_own_leaves_no_token(home: Path) -> None:
    with connected(None):
        assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
        assert resources()["CPU"] > 0
    assert not list(home.iterdir())


def test_what_is_no_cluster_is_told_at_once() -> None:
    server = HTTPServer(("", 0), SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with (
            pytest.raises(SettingsError, match="what answers there is not one"),
            connected(f"127.0.0.1:{server.server_port}"),
        ):
            pass
    finally:
        server.shutdown()
