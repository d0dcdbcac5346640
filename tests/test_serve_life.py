"""A server process: how it begins, what a signal, a lost client and a dead engine do to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import soar_dlm.serve
from soar_dlm.errors import MissingExtra
from soar_dlm.lm import load
from tests.command import invoke
from tests.serving import Process, eventually, serve_process

LONG = {"prompt": "Tom", "max_tokens": 100, "strategy": "greedy", "early_exit": False}
DEADLY = 13
"""A canvas of so many masks makes the engine of :data:`FRAGILE` raise."""
FRAGILE = f"""
from soar_dlm.cli.main import main
from soar_dlm.engine.reader import Reader

read = Reader.read

def fragile(self, asked):
    if any(one.question.positions.size == {DEADLY} for one in asked):
        raise RuntimeError("the device is lost")
    return read(self, asked)

Reader.read = fragile
main()
"""


def live_rows(server: Process) -> float:
    for line in httpx.get(f"{server.url}/metrics").text.splitlines():
        if line.startswith("soar_rows_live "):
            return float(line.split()[1])
    raise AssertionError("no soar_rows_live")


def ask(server: Process, into: list[httpx.Response | httpx.HTTPError], **more: object) -> threading.Thread:
    def work() -> None:
        try:
            into.append(httpx.post(f"{server.url}/v1/completions", json={**LONG, **more}, timeout=120))
        except httpx.HTTPError as error:
            into.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with serve_process() as found:
        yield found


CLIENT = """
import json, sys, httpx
body = json.loads(sys.argv[2])
with httpx.stream("POST", sys.argv[1], json=body, timeout=60) as answer:
    for line in answer.iter_lines():
        print(line, flush=True)
"""


def test_a_client_that_is_killed_in_the_middle_leaves_nothing_behind(server: Process) -> None:
    body = json.dumps({**LONG, "max_tokens": 400, "stream": True, "diffusing": True})
    command = [sys.executable, "-c", CLIENT, f"{server.url}/v1/completions", body]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        client.stdout.readline()
        assert live_rows(server) == 1
        client.kill()
    eventually(lambda: live_rows(server) == 0)
    counted = httpx.get(f"{server.url}/metrics").text
    assert 'soar_searches_total{end="cancelled"} 1.0' in counted


def test_a_signal_finishes_what_runs_and_refuses_what_comes(server: Process) -> None:
    """The last test of this server, which it ends."""
    expected = load("mini-llada", device="cpu").generate("Tom", "greedy", max_new_tokens=100, early_exit=False).text
    answers: list[httpx.Response | httpx.HTTPError] = []
    late: list[httpx.Response | httpx.HTTPError] = []
    running = [ask(server, answers) for _ in range(3)] + [ask(server, answers, stream=True)]
    eventually(lambda: live_rows(server) == 4)
    os.kill(server.process.pid, signal.SIGTERM)
    eventually(lambda: not _accepts(server))
    refused = ask(server, late)
    for thread in [*running, refused]:
        thread.join(60)
    for answer in answers:
        assert isinstance(answer, httpx.Response)
        assert answer.status_code == 200
        assert _text(answer) == expected
    assert isinstance(late[0], httpx.HTTPError) or late[0].status_code == 503
    assert server.wait() == 0


def _accepts(server: Process) -> bool:
    try:
        return httpx.get(f"{server.url}/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def _text(answer: httpx.Response) -> str:
    if "event-stream" not in answer.headers["content-type"]:
        return str(answer.json()["choices"][0]["text"])
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    return "".join(choice["text"] for line in lines for choice in json.loads(line)["choices"])


def test_when_the_engine_dies_the_process_says_so_and_ends(tmp_path: Path) -> None:
    script = tmp_path / "fragile.py"
    script.write_text(FRAGILE)
    answers: list[httpx.Response | httpx.HTTPError] = []
    with serve_process(program=str(script)) as server:
        running = ask(server, answers, max_tokens=400)
        eventually(lambda: live_rows(server) == 1)
        ask(server, answers, max_tokens=DEADLY).join(60)
        running.join(60)
        for answer in answers:
            assert isinstance(answer, httpx.Response)
            assert answer.status_code == 503
            assert "the device is lost" in answer.json()["error"]["message"]
        assert server.wait() == 1
    assert "the device is lost" in server.log[-1]
    assert server.log[-1].startswith("error:")


def test_the_log_of_a_process_is_lines_of_json(server: Process) -> None:
    """Also after it has ended."""
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    assert lines
    assert all({"time", "level", "event"} <= line.keys() for line in lines)
    assert any(line.get("path") == "/v1/completions" and line["status"] == 200 for line in lines)
    assert not any("prompts" in line for line in lines)


def test_without_its_packages_the_command_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soar_dlm, "serve", soar_dlm.serve)  # is imported again, and put back afterwards
    for name in [name for name in sys.modules if name.startswith("soar_dlm.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtra, match=r"pip install 'soar-dlm\[serve\]'"):
        invoke("serve")
