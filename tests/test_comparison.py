from __future__ import annotations

import json
import random
import shutil
import subprocess
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import soar_dlm
from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.evals.breakdown import Gain, by_kind, gains
from soar_dlm.evals.comparison import compare, summary, weights_fingerprint
from soar_dlm.evals.provenance import library
from soar_dlm.evals.results import MANIFEST, RESULTS, Record, ResultFolder
from soar_dlm.lm import LM, load
from soar_dlm.models.defaults import DecodingDefaults, write_defaults
from soar_dlm.models.random_checkpoint import write_llada
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.search.strategy import Strategy
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.task import Task
from tests.closeness import about

METHODS: dict[str, Strategy] = {
    "greedy": Greedy(),
    "two": Greedy(tokens_per_step=2),
    "soar": Soar(beam=2, threshold=0.5),
}


class Sums(Task):
    """Right if the text has an even number of characters, which nonsense has about half of the time."""

    name, about, canvas = "sums", "sums of two numbers", 8

    def draw(self, rng: random.Random) -> Problem:
        a, b = rng.randrange(50), rng.randrange(50)
        return Problem(f"{a}+{b}=", str(a + b), f"{a} {b}", "large" if a + b > 50 else "small")

    def correct(self, problem: Problem, text: str) -> bool:
        return len(text) % 2 == 0


PROBLEMS = Sums().distinct("test", 7)


class Interrupted(Exception):
    pass


def timeless(folder: Path) -> list[Any]:
    lines = [json.loads(line) for line in (folder / RESULTS).read_text().splitlines()]
    return [json.loads((folder / MANIFEST).read_text()), *({**line, "seconds": None} for line in lines)]


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / "results"))


def interrupted_run(lm: LM, folder: Path, after: int) -> None:
    """A run that is interrupted after this many records."""
    seen = 0

    def stop(_: Record) -> None:
        nonlocal seen
        seen += 1
        if seen == after:
            raise Interrupted

    with pytest.raises(Interrupted):
        compare(lm, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder, on_record=stop)


@pytest.fixture(scope="module")
def whole(random_llada: LM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "deeper" / "results"
    compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder)
    return folder


def test_one_record_for_each_problem_and_method(random_llada: LM, whole: Path) -> None:
    found = ResultFolder(whole).read()
    assert found.complete
    assert {(record.index, record.method) for record in found.records} == {(i, m) for i in range(7) for m in METHODS}
    for record in found.records:
        alone = random_llada.generate(PROBLEMS[record.index].prompt, METHODS[record.method], max_new_tokens=8)
        assert (record.text, record.steps, record.forwards) == (alone.text, alone.steps, alone.forwards)
        assert record.tokens_per_forward == alone.tokens_per_forward
        assert record.mean_confidence == pytest.approx(alone.mean_confidence, abs=1e-5)
        assert record.correct == (len(alone.text) % 2 == 0)
        assert record.kind == PROBLEMS[record.index].kind
        assert record.prompt_sha256 == sha256(PROBLEMS[record.index].prompt.encode()).hexdigest()
        assert record.finish_reason == alone.finish_reason
        assert record.seconds >= 0


def test_methods_take_turns_and_the_order_rotates(random_llada: LM, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Strategy, int]] = []
    real = LM.generate_as_completed

    def noted(self: LM, prompts: Any, strategy: Any = None, **options: Any) -> Any:
        calls.append((strategy, len(prompts)))
        return real(self, prompts, strategy, **options)

    monkeypatch.setattr(LM, "generate_as_completed", noted)
    records = compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3)
    greedy, two, soar = METHODS.values()
    warm_up = [(greedy, 4), (two, 4), (soar, 4)]
    chunks = [(greedy, 3), (two, 3), (soar, 3), (two, 3), (soar, 3), (greedy, 3), (soar, 1), (greedy, 1), (two, 1)]
    assert calls == warm_up + chunks
    assert [record.method for record in records[::3]][:6] == ["greedy", "two", "soar", "two", "soar", "greedy"]


def test_judging_is_not_timed(random_llada: LM, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only judging and decoding move: what judging takes must not show in the seconds."""
    now = 0.0

    class SlowJudge(Sums):
        def correct(self, problem: Problem, text: str) -> bool:
            nonlocal now
            now += 1000.0
            return True

    real = LM.generate_as_completed

    def slow(self: LM, *given: Any, **options: Any) -> Any:
        nonlocal now
        now += 6.0
        return real(self, *given, **options)

    monkeypatch.setattr(LM, "generate_as_completed", slow)
    monkeypatch.setattr("soar_dlm.evals.comparison.time.perf_counter", lambda: now)
    records = compare(random_llada, SlowJudge(), PROBLEMS[:3], METHODS, chunk=3)
    for method in METHODS:
        assert sum(record.seconds for record in records if record.method == method) == 6.0


@pytest.mark.parametrize("after", [1, 3, 9, 10, 18, 20])
def test_resuming_gives_the_folder_of_an_uninterrupted_run(
    random_llada: LM, whole: Path, tmp_path: Path, after: int
) -> None:
    interrupted_run(random_llada, tmp_path, after)
    before = (tmp_path / RESULTS).read_text().splitlines()
    assert len(before) == after
    told: list[Record] = []
    records = compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=tmp_path, on_record=told.append)
    assert timeless(tmp_path) == about(timeless(whole))
    kept = after // 3 * 3 if after < 18 else after  # three problems to a turn, one in the last chunk
    assert (tmp_path / RESULTS).read_text().splitlines()[:kept] == before[:kept]
    assert records == told == ResultFolder(tmp_path).read().records


@pytest.mark.parametrize("left", ["half a line", "half a turn", "zeros", "no line", "nothing"])
def test_a_torn_end_is_redone(random_llada: LM, whole: Path, tmp_path: Path, left: str) -> None:
    folder = copied(whole, tmp_path)
    lines = (folder / RESULTS).read_bytes().splitlines(keepends=True)
    torn = {
        "half a line": b"".join(lines[:18]) + lines[18][:20],
        "half a turn": b"".join(lines[:14]),
        "zeros": b"".join(lines[:18]) + bytes(40),
        "no line": b"",
    }
    if left == "nothing":
        shutil.rmtree(folder)
    else:
        (folder / RESULTS).write_bytes(torn[left])
    compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder)
    assert timeless(folder) == about(timeless(whole))


def test_reading_leaves_a_torn_turn_out_and_comparing_a_torn_chunk(whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    lines = (folder / RESULTS).read_bytes().splitlines(keepends=True)
    (folder / RESULTS).write_bytes(b"".join(lines[:14]))
    found = ResultFolder(folder).read()
    assert not found.complete
    assert found.records == ResultFolder(whole).read().records[:12]
    assert found.whole_chunks() == ResultFolder(whole).read().records[:9]


def test_a_finished_folder_is_not_decoded_again(
    random_llada: LM, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(whole, tmp_path)
    monkeypatch.setattr(LM, "generate_as_completed", None)
    records = compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder)
    assert records == ResultFolder(whole).read().records


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"chunk": 2}, "chunk was 3, is now 2"),
        ({"problems": PROBLEMS[:6]}, "problems was 7, is now 6"),
        ({"problems": [replace(PROBLEMS[0], answer="1"), *PROBLEMS[1:]]}, "problems_sha256 was"),
        ({"methods": {**METHODS, "soar": Soar(beam=3, threshold=0.5)}}, r"methods\.soar\.beam was 2, is now 3"),
        ({"methods": dict(reversed(METHODS.items()))}, "order was"),
    ],
)
def test_changed_settings_refuse_to_resume(
    random_llada: LM, whole: Path, tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    folder = copied(whole, tmp_path)
    given: dict[str, Any] = {"problems": PROBLEMS, "methods": METHODS, "chunk": 3, **changed}
    with pytest.raises(SettingsError, match=told):
        compare(random_llada, Sums(), folder=folder, **given)
    assert (folder / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()


def test_files_of_another_kind_are_neither_read_nor_overwritten(random_llada: LM, tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text("my results\n")
    with pytest.raises(InputFileError, match=r"no manifest\.json"):
        compare(random_llada, Sums(), PROBLEMS, METHODS, folder=tmp_path)
    for content in ("my notes\n", "[1]\n", '{"settings": {}, "machine": {}}'):
        (tmp_path / MANIFEST).write_text(content)
        with pytest.raises(InputFileError, match="not the manifest"):
            compare(random_llada, Sums(), PROBLEMS, METHODS, folder=tmp_path)
        assert (tmp_path / MANIFEST).read_text() == content
    assert (tmp_path / RESULTS).read_text() == "my results\n"
    with pytest.raises(InputFileError, match="no results"):
        ResultFolder(tmp_path / "missing").read()


def test_the_manifest_has_the_thresholds_and_options_that_the_checkpoint_sets(tmp_path: Path) -> None:
    write_llada(tmp_path / "model")
    write_defaults(tmp_path / "model", DecodingDefaults(thresholds={"probability": 0.7}, options={"block_length": 4}))
    lm = load(tmp_path / "model", "cpu")
    methods: dict[str, Strategy] = {"greedy": Greedy(), "soar": Soar(), "own": Soar(threshold=0.5)}
    compare(lm, Sums(), PROBLEMS[:1], methods, folder=tmp_path / "results")
    settings = ResultFolder(tmp_path / "results").read().settings
    assert [settings["methods"][name]["threshold"] for name in methods] == [None, 0.7, 0.5]
    assert settings["default_options"] == {"block_length": 4}


def test_the_fingerprint_follows_the_weights(tmp_path: Path) -> None:
    one, same, other = (str(write_llada(tmp_path / str(place), seed=seed)) for place, seed in enumerate((1, 1, 2)))
    assert weights_fingerprint(one) == weights_fingerprint(same) != weights_fingerprint(other)
    assert weights_fingerprint("random-llada") is not None
    assert weights_fingerprint("owner/model") is None


def record(index: int, method: str, correct: bool, forwards: int, seconds: float) -> Record:
    return Record(index, method, "any", "", correct, forwards, forwards, 8 / forwards, 0.5, "stop", seconds, "")


def test_summary_by_hand() -> None:
    costs = [(3, True, 4), (2, True, 2), (1, True, 4), (0, False, 2)]
    records = [
        *(record(place, "greedy", right, 8, 2.0) for place, right in enumerate([True, True, False, False])),
        *(record(place, "fast", right, cost, 0.5) for place, right, cost in costs),
    ]
    found = summary(records, "greedy")
    assert list(found) == ["greedy", "fast"]
    fast = found["fast"]
    assert (fast.problems, fast.accuracy, fast.speed_up, fast.forwards, fast.steps) == (4, 0.75, 4.0, 3.0, 3.0)
    assert fast.tokens_per_forward == pytest.approx(32 / 12)
    assert (fast.gained, fast.lost, fast.p_value) == (2, 1, 1.0)
    assert fast.interval == pytest.approx((0.3006, 0.9544), abs=5e-5)
    assert (found["greedy"].speed_up, found["greedy"].gained, found["greedy"].lost) == (1.0, 0, 0)


def test_summary_needs_the_baseline_and_the_same_problems() -> None:
    with pytest.raises(SettingsError, match="baseline"):
        summary([record(0, "fast", True, 1, 1.0)], "greedy")
    with pytest.raises(SettingsError, match="same problems"):
        summary([record(0, "greedy", True, 1, 1.0), record(1, "fast", True, 1, 1.0)], "greedy")


def test_nothing_to_compare_is_refused(random_llada: LM) -> None:
    with pytest.raises(SettingsError, match="at least one method"):
        compare(random_llada, Sums(), PROBLEMS, {})
    with pytest.raises(SettingsError, match="chunk"):
        compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=0)


def test_another_commit_of_the_library_is_recorded_and_not_refused(
    random_llada: LM, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(whole, tmp_path)
    lines = (folder / RESULTS).read_bytes().splitlines(keepends=True)
    (folder / RESULTS).write_bytes(b"".join(lines[:9]))
    first = ResultFolder(folder).read().libraries
    assert first == [library()]
    later = {"version": "0.0", "commit": "abc", "modified": False}
    monkeypatch.setattr("soar_dlm.evals.results.library", lambda: later)
    compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder)
    assert ResultFolder(folder).read().libraries == [*first, later]
    monkeypatch.setattr("soar_dlm.evals.results.library", lambda: {**later, "commit": "def"})
    compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder)
    assert ResultFolder(folder).read().libraries == [*first, later], "a complete run is not decoded by another commit"


def test_manifests_without_a_library_are_still_read(random_llada: LM, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["library"]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    assert ResultFolder(folder).read().libraries == []


def test_the_library_names_its_commit_and_whether_its_code_was_modified(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    assert library(tmp_path) == {"version": soar_dlm.__version__, "commit": None, "modified": None}
    for name in ("src", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("one")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    found = library(tmp_path)
    assert len(found["commit"]) == 40
    assert found["modified"] is False
    (tmp_path / "docs" / "file").write_text("two")
    assert library(tmp_path) == found
    (tmp_path / "src" / "file").write_text("two")
    assert library(tmp_path) == {**found, "modified": True}


def test_gains_are_grouped_by_confidence() -> None:
    def written(index: int, correct: bool, confidence: float, text: str) -> Record:
        return replace(record(index, "any", correct, 8, 1.0), mean_confidence=confidence, text=text)

    greedy = [written(0, False, 0.5, "a"), written(1, True, 0.5, "a"), written(2, True, 0.5, "a")]
    beam = [written(2, True, 0.9, "a"), written(1, False, 0.4, "b"), written(0, True, 0.6, "b")]
    assert gains(beam, greedy) == [Gain(True, 1, 1, 0), Gain(False, 1, 0, 1)]


def test_kinds_are_in_the_order_of_their_numbers() -> None:
    kinds = ["10 steps", "9 steps", "10 steps"]
    records = [replace(record(place, "any", place == 0, 8, 1.0), kind=kind) for place, kind in enumerate(kinds)]
    assert list(by_kind(records).items()) == [("9 steps", (1, 0)), ("10 steps", (2, 1))]
