"""Filling blanks of text, with models that keep the length and with one that changes it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from soar_dlm.engine.trace import Trace
from soar_dlm.errors import InputFileError, PromptError, SettingsError, UnknownName
from soar_dlm.lm import LM, load
from soar_dlm.results import MASK_SIGN, Infilling
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.soar import Soar
from soar_dlm.template import Template
from tests.closeness import about
from tests.command import invoke

PREFIX, SUFFIX = "def f(x):\n    ", "\n    return y\n"
FUNCTION = 'def compute(nums):\n    """Find the sum, then replace it by its remainder mod 5."""\n'


@pytest.mark.parametrize("name", ["random_llada", "random_dream", "random_dreamon"])
@pytest.mark.parametrize("strategy", ["greedy", "adaptive", "pbs", "pbs-parallel", "soar"])
def test_text_around_a_blank_stays_as_it_is(name: str, strategy: str, request: pytest.FixtureRequest) -> None:
    lm: LM = request.getfixturevalue(name)
    result = lm.infill(PREFIX, SUFFIX, strategy, length=6)
    assert isinstance(result, Infilling)
    assert result.whole == PREFIX + result.text + SUFFIX
    assert result.blanks == [result.text]


def test_the_length_stays_where_nothing_can_change_it(random_llada: LM, random_dreamon: LM) -> None:
    assert len(random_llada.infill(PREFIX, SUFFIX, length=7).token_ids) == 7
    fixed = random_dreamon.infill(PREFIX, SUFFIX, length=7, fixed=True)
    assert (len(fixed.token_ids), fixed.finish_reason) == (7, "length")
    lengths = {len(random_dreamon.infill(PREFIX, SUFFIX, length=length).token_ids) for length in range(1, 9)}
    assert len(lengths) > 1
    assert max(lengths) <= 64


def test_no_text_ends_inside_a_blank(random_llada: LM) -> None:
    result = random_llada.infill(PREFIX, SUFFIX, length=40)
    assert not set(result.token_ids) & set(random_llada.model.facts.end_ids)
    at_the_end = random_llada.infill(PREFIX, "", Greedy(), length=12)
    assert at_the_end.text == random_llada.generate(PREFIX, Greedy(), max_new_tokens=12).text


def test_several_blanks_are_filled_together(random_dreamon: LM, random_llada: LM) -> None:
    template = "a = {blank:3}\nb = {blank}\nc = {blank:2}\n"
    for lm in (random_llada, random_dreamon):
        result = lm.infill_template(template, length=4)
        assert result.whole == Template.parse(template, 4).filled(result.blanks)
        assert len(result.blanks) == 3
    assert [len(lm_blank) for lm_blank in random_llada.infill_template(template, length=4).blanks] == [3, 4, 2]


def test_a_list_gives_what_each_gives_alone(random_dreamon: LM) -> None:
    prefixes, suffixes = ["a", "def f(", "x" * 30], [" b", "):", "y\n"]
    pairs = list(zip(prefixes, suffixes, strict=True))
    alone = [random_dreamon.infill(prefix, suffix, Soar(beam=2, threshold=0.5), length=5) for prefix, suffix in pairs]
    together = random_dreamon.infill(prefixes, suffixes, Soar(beam=2, threshold=0.5), length=5)
    assert [result.token_ids for result in together] == [result.token_ids for result in alone]
    assert random_dreamon.infill([], []) == []


def test_a_stream_follows_a_canvas_that_changes_its_length() -> None:
    lm = load("mini-dreamon", device="cpu")
    events = list(lm.stream_infill(f"{FUNCTION}{{blank:4}}    return y % 5\n", Soar(beam=2, threshold=0.9)))
    result = lm.infill(FUNCTION, "    return y % 5\n", Soar(beam=2, threshold=0.9), length=4)
    assert result.text == "    y = sum(nums)\n"
    assert events[-1].result == about(result)
    assert len({len(event.token_ids) for event in events}) > 1
    assert MASK_SIGN in events[0].text
    assert all(len(event.blanks) == len(event.positions) == len(event.masked) for event in events)
    assert Trace.from_json(result.trace.to_json()) == result.trace
    assert any(size != 1 for entry in result.trace.path() for size in entry.sizes)


@pytest.mark.parametrize("length", [4, 40])
def test_a_text_with_nothing_behind_it_may_find_its_length_too(length: int) -> None:
    lm = load("mini-dreamon", device="cpu")
    generated = lm.generate(FUNCTION, Greedy(), length=length, max_new_tokens=48)
    assert generated.token_ids == lm.infill(FUNCTION, "", Greedy(), length=length, max_length=48).token_ids
    assert generated.text.startswith("    y = sum(nums)\n")
    assert any(size != 1 for entry in generated.trace.path() for size in entry.sizes)


def test_what_cannot_find_its_length_says_so(random_dreamon: LM, random_llada: LM) -> None:
    with pytest.raises(SettingsError, match="no expand and delete tokens"):
        random_llada.generate(PREFIX, length=3)
    with pytest.raises(SettingsError, match="more than max_new_tokens"):
        random_dreamon.generate(PREFIX, length=30, max_new_tokens=24)


def test_a_model_that_changes_lengths_reads_whole_texts(random_dreamon: LM, random_dream: LM) -> None:
    """DreamOn's own format: BOS, prefix, masks, suffix, EOS. Without the EOS the last line of a file has no end."""

    def framed(lm: LM) -> tuple[bool, bool]:
        job = lm._jobs.infill(Template.between(PREFIX, SUFFIX, 3), "greedy", {})
        ids = job.request.tokens
        return ids[0] == lm.tokenizer.bos_token_id, ids[-1] == lm.tokenizer.eos_token_id

    assert framed(random_dreamon) == (True, True)
    assert framed(random_dream) == (False, False)


def test_facts_of_the_layout(random_dreamon: LM, random_dream: LM, tmp_path: Path) -> None:
    facts = random_dreamon.model.facts
    assert facts.expand_id == random_dreamon.tokenizer.convert_tokens_to_ids("<|expand|>")
    assert facts.delete_id == facts.end_ids[0], "the EOS doubles as delete"
    assert random_dream.model.facts.expand_id is None
    from soar_dlm.models.random_checkpoint import write_dream

    named = load(write_dream(tmp_path / "named", expand_token_id=40, delete_token_id=41), device="cpu").model.facts
    assert (named.expand_id, named.delete_id) == (40, 41)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda lm: lm.infill("a", "b", length=0), SettingsError, "length of a blank"),
        (lambda lm: lm.infill("a", "b", length=8, max_length=4), SettingsError, "a blank starts with 8"),
        (lambda lm: lm.infill("a", "b", fixed=True, max_length=4), SettingsError, "fixed=True was given"),
        (lambda lm: lm.infill("a", "b", max_new_tokens=4), UnknownName, "max_length"),
        (lambda lm: lm.infill("a", ["b"]), PromptError, "two strings or two lists"),
        (lambda lm: lm.infill(["a"], ["b", "c"]), PromptError, "1 prefixes and 2 suffixes"),
        (lambda lm: lm.infill_template("a"), PromptError, "has no blank"),
        (lambda lm: lm.infill_template(3), PromptError, "a text with blanks"),
        (lambda lm: lm.infill_template("a{blank:2}{blank:3}b"), PromptError, "side by side"),
    ],
)
def test_mistakes_are_told(random_dreamon: LM, call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(random_dreamon)


def test_a_model_without_expand_says_so(random_llada: LM) -> None:
    with pytest.raises(SettingsError, match="no expand and delete tokens"):
        random_llada.infill("a", "b", max_length=9)


COMMAND = ["infill", "-m", "random-dreamon", "-n", "5"]


def test_the_command_fills_a_file_and_can_write_it_back(tmp_path: Path) -> None:
    source = tmp_path / "code.py"
    source.write_bytes(b"x = {blank}\r\ny = 2\r\n")
    source.chmod(0o640)
    expected = load("random-dreamon").infill("x = ", "\r\ny = 2\r\n", length=5)
    assert invoke(*COMMAND, str(source)).stdout_bytes.decode() == expected.whole.removesuffix("\n") + "\n"
    assert invoke(*COMMAND, str(source), "--only").stdout.strip() == expected.text.strip()
    assert source.read_bytes() == b"x = {blank}\r\ny = 2\r\n", "untouched without --write"
    invoke(*COMMAND, str(source), "--write", "--trace", str(tmp_path / "trace.jsonl"), "--stats")
    assert source.read_bytes().decode() == expected.whole
    assert stat.S_IMODE(source.stat().st_mode) == 0o640
    assert (tmp_path / "trace.jsonl").exists()
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("tmp")] == []


def test_prefix_and_suffix_come_from_files_and_blanks_from_any_marker(tmp_path: Path) -> None:
    (tmp_path / "before").write_text("x = ")
    (tmp_path / "behind").write_text("\ny = 2\n")
    (tmp_path / "whole").write_text("x = # TODO\ny = 2\n")
    parts = invoke(*COMMAND, "--prefix", str(tmp_path / "before"), "--suffix", str(tmp_path / "behind"))
    marked = invoke(*COMMAND, str(tmp_path / "whole"), "--marker", "# TODO")
    assert parts.stdout == marked.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], SettingsError),
        (["--prefix", "a"], SettingsError),
        (["{file}", "--prefix", "a"], SettingsError),
        (["{file}", "--marker", "zzz"], PromptError),
        (["{file}", "--marker", ""], SettingsError),
        (["-", "--write"], SettingsError),
        (["{file}.gone"], InputFileError),
    ],
)
def test_mistakes_at_the_command_line(arguments: list[str], error: type[Exception], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a {blank} b")
    with pytest.raises(error):
        invoke(*COMMAND, *(argument.format(file=file) for argument in arguments), stdin="a {blank} b")
