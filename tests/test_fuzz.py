"""A short run of ``benchmarks/fuzz.py``, the same every time: every mistake is answered by a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fuzz import PARTS, chunks_of, fuzz
from benchmarks.journal import Journal
from benchmarks.malformed import commands
from benchmarks.malformed.chooser import Seeded
from benchmarks.malformed.parts import MAKERS
from benchmarks.malformed.room import Hung, NotSoar, Room, command
from benchmarks.malformed.tally import Tally, judged, shown
from benchmarks.malformed.worker import Chunk, run_chunk

from soar_dlm.errors import SettingsError, UnexpectedError


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return Room(tmp_path_factory.mktemp("room"))


@pytest.mark.parametrize(
    ("part", "size"),
    [
        ("api", 150),
        ("templates", 60),
        ("loading", 30),
        ("command", 30),
        ("lines", 20),
        ("presets", 30),
        ("recipes", 10),
        ("results", 16),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_malformed_calls_are_refused_by_a_soar_error_or_do_their_work(
    part: str, size: int, number: int, room: Room
) -> None:
    tally = Tally()

    def say(message: tuple[Any, ...]) -> None:
        if message[0] == "end":
            tally.add(*message[1:])

    run_chunk(Chunk(part, number, size), room, say)
    assert tally.calls >= size // 2, "hypothesis may run out of new examples, but not so soon"
    assert tally.refused > tally.calls // 4, "most of these calls are wrong"
    assert not tally.others, shown({part: tally})


def test_the_fuzzer_tells_what_must_not_be_from_what_may() -> None:
    def failing(error: BaseException) -> Callable[[], object]:
        def run() -> None:
            raise error

        return run

    assert judged(lambda: 5)[0] == "accepted"
    assert judged(failing(SettingsError("no")))[0] == "refused"
    assert judged(failing(UnexpectedError("no")))[0] == "unforeseen"
    assert judged(failing(Hung()))[0] == "hang"
    assert judged(failing(KeyError("x")))[0] == judged(failing(NotSoar("x")))[0] == "other"


def test_the_table_has_the_smallest_example_of_each_mistake() -> None:
    tally = Tally()
    tally.add("accepted", "", "fine")
    tally.add("other", "KeyError in x.py:1", "a longer example")
    tally.add("other", "KeyError in x.py:1", "example")
    tally.add("hang", "", "slow")
    assert "| api | 4 | 0 | 0 | 1 | 2 | 1 |" in shown({"api": tally})
    assert "OTHER KeyError in x.py:1: 'example'" in shown({"api": tally})


def test_a_command_that_shows_a_stack_trace_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("soar_dlm.cli.main.app", lambda: print("Traceback (most recent call last)\nOops"))
    with pytest.raises(NotSoar, match="Oops"):
        command("models")


def test_a_command_that_hangs_in_its_own_process_is_found(monkeypatch: pytest.MonkeyPatch, room: Room) -> None:
    """The part had no limit of its own: it waited for such a process, and left it running."""
    monkeypatch.setattr(commands, "LIMITED", "import resource\nresource.setrlimit(0, (1, 2))\nwhile True: pass")
    assert judged(commands.processes(Seeded("any"), room).run)[0] == "hang"
    monkeypatch.setattr(commands, "LIMITED", "raise KeyError")
    assert judged(commands.processes(Seeded("any"), room).run)[0] == "other"


def test_a_run_makes_every_call_once_and_continues_after_an_interruption(tmp_path: Path) -> None:
    chunks = chunks_of("templates", 120, 1)
    assert [tuple(chunk) for chunk in chunks] == [("templates", 1, 50), ("templates", 2, 50), ("templates", 3, 20)]
    journal = Journal(tmp_path / "fuzz.jsonl")
    journal.put(str(chunks[0]), asdict(Tally(calls=50, refused=7)))
    with journal.path.open("a") as file:
        file.write('["Chunk(part=')  # where a kill cut a line short
    again = Journal(journal.path)
    assert list(again.known) == [str(chunks[0])]
    tally = fuzz(chunks, 1, again)["templates"]
    assert (tally.clean, tally.calls) == (True, 120)
    assert 7 < tally.refused <= 77
    assert len(journal.path.read_text().splitlines()) == 3


def test_a_full_run_has_all_parts_and_enough_calls() -> None:
    assert set(PARTS) == set(MAKERS)
    assert sum(PARTS.values()) >= 50_000
