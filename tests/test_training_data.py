from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from soar_dlm.errors import InputFileError, SettingsError
from soar_dlm.models.families import DREAM, DREAMON, LLADA, Family
from soar_dlm.models.layouts import SPECIAL_TOKENS, save_tokenizer
from soar_dlm.tasks.catalogue import TASKS, make_task
from soar_dlm.tasks.problem import Problem
from soar_dlm.tasks.published import PublishedTask
from soar_dlm.tasks.task import Task
from soar_dlm.train.batches import Batches, Position
from soar_dlm.train.examples import POOL, Example, Examples, read_examples
from soar_dlm.train.recipe import DataRecipe
from soar_dlm.train.tokenizer import train_tokenizer

MIX = DataRecipe(tasks={"mini-gsm": 0.5, "mini-sums": 0.25, "mini-sudoku": 0.25})

MADE_BY_CODE = [name for name in TASKS.names() if not isinstance(make_task(name), PublishedTask)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    examples = Examples(MIX, 0).pool(0)
    return train_tokenizer((one.prompt + one.answer for one in examples), LLADA, 1400)


def test_a_pool_is_a_function_of_seed_and_number() -> None:
    assert Examples(MIX, 3).pool(2) == Examples(MIX, 3).pool(2)
    assert Examples(MIX, 3).pool(2) != Examples(MIX, 3).pool(1)
    assert Examples(MIX, 3).pool(2) != Examples(MIX, 4).pool(2)


def test_a_pool_holds_the_sources_in_their_shares() -> None:
    pool = Examples(MIX, 0).pool(0)
    assert len(pool) == POOL
    assert sum(one.prompt.startswith("Sudoku") for one in pool) == POOL / 4
    assert sum(one.prompt.startswith("Sum") for one in pool) == POOL / 4


def test_a_source_of_the_smallest_share_is_in_every_pool() -> None:
    """A task of a small share was rounded away."""
    pool = Examples(DataRecipe(tasks={"mini-gsm": 1, "mini-sums": 1e-6}), 0).pool(0)
    assert sum(one.prompt.startswith("Sum") for one in pool) == 1


def test_an_answer_that_is_empty_is_not_trained_on(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """With nothing to hide between prompt and suffix, the whole row was hidden."""
    data = tmp_path / "data.jsonl"
    empty = json.dumps({"prompt": "a", "answer": "", "suffix": "b"})
    data.write_text(f'{empty}\n{{"prompt": "a", "answer": "c", "suffix": "b"}}\n')
    examples = Examples(DataRecipe(files={str(data): 1}), 0)
    for _, batch in islice(Batches(examples, tokenizer, 1, 512, 64).stream(Position()), 3):
        assert batch.canvas.sum(dim=1).tolist() == [1] * len(batch.ids)
    data.write_text(f"{empty}\n")
    with pytest.raises(SettingsError, match="every example has an empty answer"):
        Batches(Examples(DataRecipe(files={str(data): 1}), 0), tokenizer, 1, 512, 64).check()


def test_most_answers_get_the_whole_canvas_of_their_task() -> None:
    pool = Examples(DataRecipe(tasks={"mini-sums": 1}, full_canvas=0.75), 0).pool(0)
    full = sum(one.canvas == make_task("mini-sums").canvas for one in pool) / len(pool)
    assert 0.7 < full < 0.8


@pytest.mark.parametrize("name", MADE_BY_CODE)
def test_training_never_sees_a_test_problem(name: str) -> None:
    task = make_task(name)
    held_out = {problem.key for problem in task.distinct("test", 60)} | {
        problem.key for problem in task.distinct("validation", 60)
    }
    trained = {problem.key for problem in islice(task.problems("train", 5), 1500)}
    assert not held_out & trained


@pytest.mark.parametrize("name", MADE_BY_CODE)
def test_reference_answers_are_right_and_swapped_ones_wrong(name: str) -> None:
    task = make_task(name)
    problems = task.distinct("test", 12)
    assert all(task.all_correct(problems, [problem.answer for problem in problems]))
    turned = [*problems[1:], problems[0]]
    assert sum(task.all_correct(problems, [problem.answer for problem in turned])) <= 2


class FewProblems(Task):
    name, about, canvas = "few", "a hundred different problems", 4

    def draw(self, rng: random.Random) -> Problem:
        return Problem("", "", str(rng.randrange(100)), "only")

    def correct(self, problem: Problem, text: str) -> bool:
        return False


def test_more_problems_than_there_are_is_an_error() -> None:
    with pytest.raises(SettingsError, match="Ask for fewer"):
        FewProblems().distinct("test", 100)


def test_files_give_prompts_and_answers_or_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('\ufeff{"prompt": "a", "answer": "b"}\n\n{"text": "c"}\r\n', encoding="utf-8", newline="")
    assert read_examples(path) == [Example("a", "b"), Example("", "c")], "also with a mark, as Windows writes it"
    pool = Examples(DataRecipe(files={str(path): 1}), 0).pool(0)
    assert len(pool) == POOL
    assert {one.answer for one in pool} == {"b", "c"}
    first = [one.answer for one in pool[:2]]
    assert sorted(first) == ["b", "c"], "every pass shows each example once"


@pytest.mark.parametrize(
    "content", ["", "[1]\n", '{"prompt": "a"}\n', "not json\n", '{"text": 3}\n', '{"text": "\\ud800"}\n']
)
def test_bad_files_are_refused_with_their_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(content)
    with pytest.raises(InputFileError, match=r"one JSON object per line|line 1"):
        read_examples(path)
    with pytest.raises(InputFileError, match="Cannot read"):
        read_examples(tmp_path / "none.jsonl")


@given(st.text(max_size=40))
def test_any_text_survives_the_tokenizer(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_small_numbers_are_single_tokens_and_longer_ones_are_not(tokenizer: Tokenizer) -> None:
    for number in range(100):
        assert len(tokenizer.encode(f"{number}").ids) == 1
        assert len(tokenizer.encode(f" {number}").ids) == 1
    assert [tokenizer.decode([place]) for place in tokenizer.encode(" 1234").ids] == [" 1", "2", "34"]


@pytest.mark.parametrize("family", [LLADA, DREAM], ids=lambda family: family.name)
def test_special_tokens_come_last_and_the_files_read_back(family: Family, tmp_path: Path) -> None:
    import transformers

    texts = [one.prompt + one.answer for one in Examples(MIX, 0).pool(0)[:400]]
    made = train_tokenizer(texts, family, 500)
    special = [made.token_to_id(token) for token in SPECIAL_TOKENS[family.name]]
    assert special == list(range(made.get_vocab_size() - len(special), made.get_vocab_size()))
    save_tokenizer(tmp_path, family, made)
    read = getattr(transformers, family.tokenizer_class).from_pretrained(tmp_path)
    for text in [*texts[:40], "def f(x):\n    return x ** 2  # naïve ☃", "  two  spaces\t\n\n12345"]:
        assert read(text, add_special_tokens=False)["input_ids"] == made.encode(text).ids
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["eos_token"] == "<|endoftext|>"


def test_batches_hold_every_row_once_filled_with_eos(tokenizer: Tokenizer) -> None:
    examples = Examples(MIX, 0)
    eos = tokenizer.token_to_id("<|endoftext|>")
    assert eos is not None
    stream = Batches(examples, tokenizer, eos, 4096, 512).stream(Position())
    rows: list[tuple[str, str]] = []
    position = Position()
    while position.pool == 0:
        position, batch = next(stream)
        assert batch.ids.numel() <= 4096
        assert batch.ids.shape[1] % 16 == 0
        for ids, canvas in zip(batch.ids.tolist(), batch.canvas.tolist(), strict=True):
            start = canvas.index(True)
            assert all(canvas[start:])
            answer = ids[start:]
            end = answer.index(eos)
            assert set(answer[end:]) == {eos}
            rows.append((tokenizer.decode(ids[:start]), tokenizer.decode(answer[:end])))
    assert sorted(rows) == sorted((one.prompt, one.answer) for one in examples.pool(0))


def test_a_row_of_changing_length_stands_between_bos_and_eos() -> None:
    infill = Examples(DataRecipe(tasks={"mini-infill": 1}), 0)
    made = train_tokenizer((one.prompt + one.answer + one.suffix for one in infill.pool(0)[:400]), DREAMON, 600)
    bos, eos, expand = (made.token_to_id(name) for name in ("<|beginoftext|>", "<|endoftext|>", "<|expand|>"))
    assert bos is not None
    assert eos is not None
    assert expand is not None
    starts = {tuple(made.encode(one.prompt).ids) for one in infill.pool(0)}
    ends = {tuple(made.encode(one.suffix).ids) for one in infill.pool(0)}
    for _, batch in islice(Batches(infill, made, eos, 4096, 512, expand, bos).stream(Position()), 3):
        assert batch.hidden is not None
        for ids, canvas, hidden in zip(*map(torch.Tensor.tolist, (batch.ids, batch.canvas, batch.hidden)), strict=True):
            first, last = canvas.index(True), len(canvas) - canvas[::-1].index(True)
            behind = ids[last:]
            assert ids[0] == bos
            assert tuple(ids[1:first]) in starts
            assert tuple(behind[: behind.index(eos)]) in ends
            assert set(behind[behind.index(eos) :]) == {eos}
            assert not any(hidden[:first] + hidden[last:])


def test_a_stream_goes_on_from_any_position(tokenizer: Tokenizer) -> None:
    batches = Batches(Examples(MIX, 0), tokenizer, 0, 30_000, 512)
    whole = list(islice(batches.stream(Position()), 12))
    position = whole[6][0]
    for (_, expected), (_, found) in zip(whole[7:], batches.stream(position), strict=False):
        assert expected.ids.equal(found.ids)
        assert expected.canvas.equal(found.canvas)


def test_rows_longer_than_the_context_are_left_out(tokenizer: Tokenizer) -> None:
    short = Batches(Examples(MIX, 0), tokenizer, 0, 4096, 96)
    assert max(batch.ids.shape[1] for _, batch in islice(short.stream(Position()), 20)) <= 96
    with pytest.raises(SettingsError, match=r"model\.context"):
        next(Batches(Examples(MIX, 0), tokenizer, 0, 4096, 8).stream(Position()))
