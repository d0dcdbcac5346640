"""Result folders that were damaged, are in use, or cannot be written: nothing is lost, and every mistake is told."""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kills import DAMAGES, TORN

from soar_dlm import files
from soar_dlm.errors import InputFileError, SettingsError, SoarError
from soar_dlm.evals.comparison import WARM_UP, Method, compare
from soar_dlm.evals.deliberate_sweeps import deliberate_methods, is_deliberate, pooled_deliberate
from soar_dlm.evals.protocol import methods, named_presets
from soar_dlm.evals.results import DAMAGED, MANIFEST, RESULTS, ResultFolder, Results, result_folders
from soar_dlm.evals.sweeps import pooled, settings, sweep_methods
from soar_dlm.evals.tables import grid, rendered
from soar_dlm.lm import LM
from soar_dlm.presets import Preset, write_preset
from soar_dlm.tasks.gsm8k import Gsm8k
from soar_dlm.tasks.mini_sums import MiniSums
from tests.closeness import about
from tests.disks import files_up_to
from tests.test_comparison import METHODS, PROBLEMS, Sums, copied, interrupted_run, timeless

LINES = len(PROBLEMS) * len(METHODS)


@pytest.fixture(scope="module")
def whole(random_llada: LM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "results"
    compare(random_llada, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder)
    return folder


def again(lm: LM, folder: Path, **options: Any) -> None:
    compare(lm, Sums(), PROBLEMS, METHODS, chunk=3, folder=folder, **options)


def lines_of(folder: Path) -> list[bytes]:
    return (folder / RESULTS).read_bytes().splitlines(keepends=True)


@contextmanager
def decoding_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many prompts each call decodes."""
    counts: list[int] = []
    real = LM.generate_as_completed

    def noted(self: LM, prompts: Any, *given: Any, **options: Any) -> Any:
        counts.append(len(prompts))
        return real(self, prompts, *given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LM, "generate_as_completed", noted)
        yield counts


@pytest.mark.parametrize("place", range(LINES))
def test_a_damaged_line_drops_none_of_the_lines_after_it(
    random_llada: LM, whole: Path, tmp_path: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each position with a damage of its own kind: refused by its number, then only its problem is decoded again."""
    folder = copied(whole, tmp_path)
    lines = lines_of(folder)
    kinds = [kind for kind in DAMAGES if place < LINES - 1 or kind not in TORN]
    bad = DAMAGES[kinds[place % len(kinds)]](lines[place])
    damaged = b"".join([*lines[:place], bad, *lines[place + 1 :]])
    (folder / RESULTS).write_bytes(damaged)
    for attempt in (lambda: again(random_llada, folder), lambda: ResultFolder(folder).read()):
        with pytest.raises(InputFileError, match=rf"line {place + 1}, is damaged.*--repair"):
            attempt()
    assert (folder / RESULTS).read_bytes() == damaged
    with decoding_counted(monkeypatch) as counts, pytest.warns(UserWarning, match="moved to"):
        again(random_llada, folder, repair=True)
    merged = 2 if bad == lines[place][:-1] else 1  # without its end, a line takes the next one with it
    warm_up = WARM_UP if place == LINES - 1 else 0  # the only record of its turn, which begins anew
    assert sum(counts) == merged + warm_up
    assert timeless(folder) == about(timeless(whole))
    kept = lines_of(folder)
    assert [kept[at] for at in range(LINES) if not place <= at < place + merged] == [
        lines[at] for at in range(LINES) if not place <= at < place + merged
    ]
    assert (folder / DAMAGED).read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("end", [b"\n", b"\0\0\0\n", b"{\n"])
def test_only_a_last_line_without_its_line_feed_is_torn(
    random_llada: LM, whole: Path, tmp_path: Path, end: bytes
) -> None:
    """Blank lines and lines of zeros at the end used to be cut off like torn ones."""
    folder = copied(whole, tmp_path)
    damaged = b"".join(lines_of(folder)[:4]) + end
    (folder / RESULTS).write_bytes(damaged)
    with pytest.raises(InputFileError, match="line 5, is damaged"):
        again(random_llada, folder)
    assert (folder / RESULTS).read_bytes() == damaged
    (folder / RESULTS).write_bytes(damaged.removesuffix(b"\n"))
    again(random_llada, folder)
    assert timeless(folder) == about(timeless(whole))


def test_a_folder_without_a_manifest_is_told_what_it_lacks(tmp_path: Path) -> None:
    """It said that there is no such directory, of a folder that was there."""
    with pytest.raises(
        InputFileError, match=r"manifest\.json cannot be read \(No such file.*with a manifest\.json in it"
    ):
        ResultFolder(tmp_path).read()


def test_what_is_wrong_with_a_file_is_told_in_one_sentence(whole: Path, tmp_path: Path) -> None:
    """After the colon it began with a capital letter."""
    folder = copied(whole, tmp_path)
    (folder / RESULTS).write_bytes(b"oops\n")
    with pytest.raises(InputFileError, match=r"line 1, is damaged: it is not JSON"):
        ResultFolder(folder).read()
    (folder / MANIFEST).write_bytes(b"oops\n")
    with pytest.raises(InputFileError, match=r"not the manifest of a run: it is not JSON"):
        ResultFolder(folder).read()


def test_a_run_that_was_killed_before_its_first_line_may_start_again_with_other_settings(
    random_llada: LM, whole: Path, tmp_path: Path
) -> None:
    """An empty file used to count as results of the old settings."""
    folder = copied(whole, tmp_path)
    (folder / RESULTS).write_bytes(b"")
    assert len(compare(random_llada, Sums(), PROBLEMS[:1], METHODS, folder=folder)) == len(METHODS)


def test_nothing_to_decode_is_refused_and_leaves_no_manifest(random_llada: LM, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="at least one problem"):
        compare(random_llada, Sums(), [], METHODS, folder=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_folder_that_is_named_twice_is_shown_once(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``soar table results results/gsm8k`` used to be refused as two results of one method."""
    monkeypatch.chdir(whole)
    assert result_folders([whole, whole.parent, Path()]) == [whole]


def test_lines_twice_or_in_another_order_are_refused_and_none_is_decoded_again(
    random_llada: LM, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(whole)
    for number, (content, place) in enumerate(
        [
            ([*lines[:4], lines[3], *lines[4:]], 5),
            ([lines[1], lines[0], *lines[2:]], 1),
            ([*lines, lines[0]], LINES + 1),
            ([*lines[9:], *lines[:9]], 1),
        ]
    ):
        folder = copied(whole, tmp_path / str(number))
        (folder / RESULTS).write_bytes(b"".join(content))
        with pytest.raises(InputFileError, match=f"line {place}, is damaged"):
            again(random_llada, folder)
        with monkeypatch.context() as patch:
            patch.setattr(LM, "generate_as_completed", None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                again(random_llada, folder, repair=True)
        assert lines_of(folder) == lines


def test_a_repair_keeps_the_lines_of_an_unfinished_turn_and_goes_on(
    random_llada: LM, whole: Path, tmp_path: Path
) -> None:
    interrupted_run(random_llada, tmp_path, 11)
    lines = lines_of(tmp_path)
    (tmp_path / RESULTS).write_bytes(b"".join([*lines[:4], b"{}\n", *lines[5:]]) + b'{"index"')
    with pytest.warns(UserWarning, match="moved to"):
        again(random_llada, tmp_path, repair=True)
    assert timeless(tmp_path) == about(timeless(whole))
    assert [lines_of(tmp_path)[at] for at in (0, 3, 5, 9, 10)] == [lines[at] for at in (0, 3, 5, 9, 10)]
    assert (tmp_path / DAMAGED).read_bytes() == b'{}\n{"index"\n'
    (tmp_path / RESULTS).write_bytes(b"more\n" + (tmp_path / RESULTS).read_bytes())
    with pytest.warns(UserWarning, match="moved to"):
        again(random_llada, tmp_path, repair=True)
    assert (tmp_path / DAMAGED).read_bytes() == b'{}\n{"index"\nmore\n', "what was moved aside stays"


def test_two_runs_on_one_folder_do_not_mix_their_lines(random_llada: LM, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    before = lines_of(folder)
    with files.locked(folder), pytest.raises(InputFileError, match=f"in use: process {os.getpid()}"):
        again(random_llada, folder)
    assert lines_of(folder) == before
    again(random_llada, folder)
    assert {file.name for file in folder.iterdir()} == {MANIFEST, RESULTS}


def test_a_full_disk_leaves_whole_lines_and_the_run_goes_on(random_llada: LM, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "full"
    room = max(sum(map(len, lines_of(whole)[:7])) + 40, (whole / MANIFEST).stat().st_size)
    with files_up_to(room), pytest.raises(InputFileError, match=r"Cannot write .*results\.jsonl: File too large"):
        again(random_llada, folder)
    assert (folder / RESULTS).read_bytes().endswith(b"\n")
    assert len(lines_of(folder)) >= 6
    assert {file.name for file in folder.iterdir()} == {MANIFEST, RESULTS}
    again(random_llada, folder)
    assert timeless(folder) == about(timeless(whole))


def test_a_folder_that_cannot_be_made_is_a_sentence(random_llada: LM, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "a\0b", tmp_path / ("x" * 300)):
        with pytest.raises(InputFileError, match="Cannot write"):
            again(random_llada, place)
    with pytest.raises(InputFileError, match="Cannot write"):
        write_preset(tmp_path / "file" / "preset.toml", Preset("greedy"))
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_process_left_half_written_goes(random_llada: LM, whole: Path, tmp_path: Path) -> None:
    folder = copied(whole, tmp_path)
    for name in (".manifest.json.123.new", "mine.new", ".mine.new"):
        (folder / name).write_text("half")
    again(random_llada, folder)
    assert {file.name for file in folder.iterdir()} == {MANIFEST, RESULTS, "mine.new", ".mine.new"}


def test_a_manifest_that_is_no_runs_is_not_overwritten(random_llada: LM, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"name": "my web app"}')
    with pytest.raises(InputFileError, match="not the manifest of a run"):
        again(random_llada, tmp_path)
    assert (tmp_path / MANIFEST).read_text() == '{"name": "my web app"}'


def test_a_preset_named_like_a_method_does_not_replace_it() -> None:
    preset = Preset("greedy", {"tokens_per_step": 4})
    for name in ("SOAR", "soar", "Greedy", "Adaptive Parallel", "pbs", "klass"):
        with pytest.raises(SettingsError, match="a method has that name"):
            methods(["greedy", "soar"], [8], MiniSums(), presets={name: preset})
    assert len(methods(["greedy"], [8], MiniSums(), presets={"mine": preset})) == 2


def test_of_two_presets_with_one_file_name_none_is_lost(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "mine.toml" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        write_preset(path, Preset("greedy"))
    with pytest.raises(SettingsError, match="Two presets are called 'mine'"):
        named_presets(paths)
    assert list(named_presets(paths[:1])) == ["mine"]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("", "at least one"),
        ("\n\n", "at least one"),
        ("5\n", "a JSON object on each line"),
        ("{}\n", "no 'question'"),
        ('{"question": 5, "answer": null}\n', "not as it was published"),
        ("[" * 100_000 + "\n", "more than 100 levels deep"),
    ],
)
def test_an_empty_or_wrong_benchmark_file_is_an_error(tmp_path: Path, test: str, told: str) -> None:
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "train.jsonl").write_text('{"question": "a\u2028b", "answer": "#### 1"}\n' * 4)
    (tmp_path / "gsm8k" / "test.jsonl").write_text(test)
    with pytest.raises(InputFileError, match=told):
        Gsm8k(tmp_path).test_set()


def used(folder: Path) -> None:
    """Everything that table, sweep and tune do with results."""
    found: Results = ResultFolder(folder).read()
    for style in ("markdown", "latex", "json"):
        rendered(grid([found]), style)
    if is_deliberate(found):
        swept = pooled_deliberate([found])
        swept.within(forwards=9.0).most_accurate()
        swept.front()
    else:
        pooled([found]).within(forwards=9.0).cautious()


VALUES: list[Any] = [None, True, -1, 0, 1, 2, 10**30, 1e308, -1e-320, float("nan"), float("inf")]
VALUES += ["", "\ud800", "[/x]$|", "x" * 10_000, [], {}, [None], {"": {}}]


def mutated(value: Any, rng: random.Random) -> Any:
    """A JSON value with something in it replaced, taken out, added or nested."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.85:
        copy = value.copy()
        key = rng.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
        kind = rng.random()
        if kind < 0.75:
            copy[key] = mutated(copy[key], rng)
        elif kind < 0.9:
            del copy[key]
        elif isinstance(copy, dict):
            copy[rng.choice(["new", "", "replay", "course", "length"])] = rng.choice(VALUES)
        else:
            copy.append(copy[key])
        return copy
    return rng.choice([*VALUES, [value], {"a": value}])


def torn(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return rng.choice(
        [content[:at], content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :], content[:at] + content[at + 9 :]]
    )


def test_no_damage_of_a_result_folder_is_a_stack_trace(random_llada: LM, tmp_path: Path) -> None:
    """Mutations of manifests and lines; ``benchmarks/fuzz.py`` tries many more."""
    task, rng = MiniSums(), random.Random(17)
    points = {
        "soar": sweep_methods(settings([0.3, 0.6], [2]), "probability", 6),
        "deliberate": deliberate_methods([0.3, 0.6], 2, ["open"], "probability", 6),
    }
    told = 0
    for name, compared in points.items():
        good = tmp_path / name
        compare(random_llada, task, task.distinct("test", 2), compared, chunk=1, folder=good)
        used(good)
        manifest = json.loads((good / MANIFEST).read_text())
        lines = [json.loads(line) for line in (good / RESULTS).read_text().splitlines()]
        for number in range(250):
            bad = Path(shutil.copytree(good, tmp_path / f"{name} {number}"))
            kind = number % 4
            if kind == 0:
                (bad / MANIFEST).write_text(json.dumps(mutated(manifest, rng)))
            elif kind == 1:
                changed = mutated(lines, rng)
                whole_lines = changed if isinstance(changed, list) else [changed]
                (bad / RESULTS).write_text("".join(json.dumps(line) + "\n" for line in whole_lines))
            else:
                file = bad / (MANIFEST if kind == 2 else RESULTS)
                file.write_bytes(torn(file.read_bytes(), rng))
            try:
                used(bad)
            except SoarError:
                told += 1
            shutil.rmtree(bad)
    assert told > 250


def test_results_by_length_of_the_answer_or_of_the_task_are_shown_in_tables(random_llada: LM, tmp_path: Path) -> None:
    own = {str(length): Method(METHODS["greedy"], length, label="Greedy") for length in (None, 4)}
    compare(random_llada, Sums(), PROBLEMS[:1], own, folder=tmp_path)
    assert "| method | sums 4 | sums 8 |" in rendered(grid([ResultFolder(tmp_path).read()]), "markdown")
