from __future__ import annotations

import functools
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import PromptError, PromptTooLong, SettingsError, SoarError, UnknownName
from soar_dlm.lm import LM, load
from soar_dlm.options import DecodeKeywords, GenerateKeywords, Options
from soar_dlm.results import MASK_SIGN, Result
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from tests.closeness import about

PROMPTS = ["a", "a longer prompt than the first", "Ünïcode ✓", "x" * 40]


def tokens(results: list[Result]) -> list[list[int]]:
    return [result.token_ids for result in results]


def test_one_text_gives_a_result_and_a_list_gives_a_list(random_llada: LM) -> None:
    one = random_llada.generate("hello", Greedy(), max_new_tokens=10, early_exit=False)
    assert isinstance(one, Result)
    assert (len(one.token_ids), one.steps, one.forwards, one.tokens_per_forward) == (10, 10, 10, 1.0)
    assert 0 < one.mean_confidence < 1
    assert one.finish_reason in ("stop", "length")
    assert len(one.trace) == 10
    assert random_llada.generate(["hello"], Greedy(), max_new_tokens=10, early_exit=False) == about([one])
    assert random_llada.generate(list[str]()) == []


def test_an_empty_prompt_is_a_canvas_of_its_own(random_llada: LM) -> None:
    result = random_llada.generate("", Greedy(), max_new_tokens=5, early_exit=False)
    assert (result.prompt_length, result.steps) == (0, 5)


@pytest.mark.parametrize("lm_name", ["random_llada", "random_dream"])
@pytest.mark.parametrize("strategy", ["greedy", "adaptive", "pbs", "pbs-parallel", "soar", "soar-llada", "soar-dream"])
def test_prompts_of_different_length_do_not_disturb_each_other(
    lm_name: str, strategy: str, request: pytest.FixtureRequest
) -> None:
    lm: LM = request.getfixturevalue(lm_name)
    options: Any = {"max_new_tokens": 12, "block_length": 8}
    alone = [lm.generate(prompt, strategy, **options).token_ids for prompt in PROMPTS]
    assert tokens(lm.generate(PROMPTS, strategy, **options)) == alone
    assert tokens(lm.generate(PROMPTS[::-1], strategy, **options)) == alone[::-1]


@pytest.mark.parametrize("strategy", [Greedy(), PositionBeam(3), Soar(2, 0.6)])
def test_the_last_event_of_a_stream_is_what_generate_returns(random_llada: LM, strategy: Any) -> None:
    options: Any = {"max_new_tokens": 16, "temperature": 0.4, "seed": 7}
    events = list(random_llada.stream("hello", strategy, **options))
    result = random_llada.generate("hello", strategy, **options)
    assert events[-1].result == about(result)
    assert events[-1].text == result.text
    assert events[-1].token_ids == result.token_ids
    assert events[-1].forwards == result.forwards
    assert [event.result for event in events[:-1]] == [None] * (len(events) - 1)
    assert [event.step for event in events] == list(range(1, result.steps + 1))
    left = [sum(event.masked) for event in events]
    assert left[-1] == 0
    assert all(event.text.count(MASK_SIGN) == sum(event.masked) for event in events[:-1])


def test_decode_returns_the_whole_canvas(random_llada: LM) -> None:
    mask = random_llada.model.facts.mask_id
    canvas = [5, mask, 6, mask, mask]
    result = random_llada.decode([canvas], Greedy(), early_exit=False)[0]
    assert len(result.token_ids) == 5
    assert (result.token_ids[0], result.token_ids[2]) == (5, 6)
    assert mask not in result.token_ids
    assert random_llada.decode([torch.tensor(canvas)], Greedy(), early_exit=False) == about([result])  # type: ignore[list-item]
    some = random_llada.decode([canvas], Greedy(), fill=[[3]], early_exit=False)[0]
    assert some.token_ids[1] == some.token_ids[4] == mask, "only the named positions are filled"
    assert random_llada.decode([], Greedy()) == []


def test_decode_counts_blocks_from_the_first_position_to_fill(random_llada: LM) -> None:
    mask = random_llada.model.facts.mask_id
    result = random_llada.decode([[1, 2, 3, *[mask] * 5]], Greedy(), block_length=2, early_exit=False)[0]
    order = [entry.positions[0] for entry in result.trace.path()]
    assert [sorted(order[i : i + 2]) for i in (0, 2, 4)] == [[3, 4], [5, 6], [7]]


def test_generate_is_decode_on_an_appended_canvas(random_dream: LM) -> None:
    ids = random_dream.tokenizer("some text")["input_ids"]
    canvas = [*ids, *[random_dream.model.facts.mask_id] * 9]
    by_text = random_dream.generate("some text", Soar(3, 0.7), max_new_tokens=9)
    by_ids = random_dream.decode([canvas], Soar(3, 0.7))[0]
    assert by_ids.token_ids == [*ids, *by_text.token_ids]
    assert (by_ids.text, by_ids.steps, by_ids.trace) == about((by_text.text, by_text.steps, by_text.trace))


def test_a_prompt_that_spells_the_mask_token_keeps_it(random_llada: LM) -> None:
    result = random_llada.generate("a<|mdm_mask|>b", Greedy(), max_new_tokens=4, early_exit=False)
    assert result.prompt_length == 3
    assert result.steps == 4


def test_stop_strings_end_the_text_before_them(random_llada: LM) -> None:
    full = random_llada.generate("hello", Greedy(), max_new_tokens=24, early_exit=False)
    stop = full.text[6:8]
    cut = full.text[: full.text.index(stop)]
    late = random_llada.generate("hello", Greedy(), max_new_tokens=24, early_exit=False, stop=stop)
    assert (late.text, late.finish_reason, late.steps) == (cut, "stop", 24)
    early = random_llada.generate("hello", Greedy(), max_new_tokens=24, stop=["never this", stop])
    assert (early.text, early.finish_reason) == (cut, "stop")
    assert early.steps < 24
    assert random_llada.model.facts.filler_id in early.token_ids, "what was still masked is filled"


def test_end_tokens_end_the_text(random_llada: LM) -> None:
    facts = random_llada.model.facts
    allowed = [*range(33, 40), *facts.end_ids]
    banned = [token for token in range(facts.vocab_size) if token not in allowed]
    result = random_llada.generate("q", Greedy(), max_new_tokens=40, suppress_tokens=banned)
    end = next(place for place, token in enumerate(result.token_ids) if token in facts.end_ids)
    assert result.finish_reason == "stop"
    assert len(result.text) == end
    assert set(result.token_ids[end + 1 :]) <= {*allowed}
    assert len(result.token_ids) == 40


def test_chat_prompts_use_the_models_template(random_llada: LM) -> None:
    messages = [{"role": "user", "content": "hi"}]
    by_messages = random_llada.generate(messages, "greedy", max_new_tokens=6)
    assert random_llada.generate("hi", "greedy", max_new_tokens=6, chat=True) == about(by_messages)
    twice = random_llada.generate([messages, messages], "greedy", max_new_tokens=6)
    assert tokens(twice) == [by_messages.token_ids] * 2
    rendered = random_llada.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert by_messages.prompt_length == len(random_llada.tokenizer(rendered)["input_ids"])


def test_errors_in_prompts_and_options(random_llada: LM) -> None:
    with pytest.raises(PromptTooLong, match="context is 1024"):
        random_llada.generate("x" * 1000, max_new_tokens=100)
    with pytest.raises(UnknownName, match="Did you mean 'max_new_tokens'"):
        random_llada.generate("x", max_new_token=3)  # type: ignore[call-overload]
    with pytest.raises(UnknownName, match="Did you mean 'block_length'"):
        random_llada.decode([[1]], block_lenght=3)  # type: ignore[call-arg]
    with pytest.raises(SettingsError, match="max_new_tokens must be a whole number of at least 1"):
        random_llada.generate("x", max_new_tokens=0)
    with pytest.raises(SettingsError, match="block_length"):
        random_llada.generate("x", block_length=0)
    with pytest.raises(SettingsError, match="stop must be"):
        random_llada.generate("x", stop=[""])
    with pytest.raises(UnknownName, match="Did you mean 'soar'"):
        random_llada.generate("x", "saor")
    with pytest.raises(PromptError, match="a list of token ids, not"):
        random_llada.generate([3.5])  # type: ignore[arg-type]
    for nonsense in (5, None, {"role": "user", "content": "hi"}):
        with pytest.raises(PromptError, match="a string, a list of messages or of token ids, or a list of these"):
            random_llada.generate(nonsense)  # type: ignore[call-overload]
    with pytest.raises(PromptError, match="a list of canvases, each a list of token ids"):
        random_llada.decode([1, 2, 3])  # type: ignore[list-item]
    with pytest.raises(PromptError, match="a list of canvases, each a list of token ids"):
        random_llada.decode(["abc"])  # type: ignore[list-item]
    with pytest.raises(PromptError, match="a list of positions for each canvas"):
        random_llada.decode([[1, 2]], fill=[1])  # type: ignore[list-item]
    with pytest.raises(PromptError, match="one per canvas"):
        random_llada.decode([[1, 2]], fill=[[0], [1]])


def test_ordinary_variants_of_input_are_taken(random_llada: LM) -> None:
    plain = random_llada.generate("x", PositionBeam(2), max_new_tokens=5, temperature=0.5)
    numbers: Any = {"max_new_tokens": np.int64(5), "temperature": np.float64(0.5), "stop": None}
    assert random_llada.generate("x", PositionBeam(np.int64(2)), **numbers) == about(plain)  # type: ignore[arg-type]
    in_a_tuple: Any = ("x",)
    assert random_llada.generate(in_a_tuple, PositionBeam(2), max_new_tokens=5, temperature=0.5) == about([plain])
    array: Any = np.arange(10)
    banned = random_llada.generate("x", "greedy", max_new_tokens=5, suppress_tokens=array)
    assert not set(banned.token_ids) & set(range(10))


def test_a_list_of_seeds_gives_each_prompt_its_own(random_llada: LM) -> None:
    options: Any = {"max_new_tokens": 12, "temperature": 1.0}
    same = random_llada.generate(["x"] * 3, "greedy", **options)
    assert len({result.text for result in same}) == 1
    drawn = random_llada.generate(["x"] * 3, "greedy", **options, seed=[4, 5, 6])
    alone = [random_llada.generate("x", "greedy", **options, seed=seed) for seed in (4, 5, 6)]
    assert tokens(drawn) == tokens(alone)
    assert len({result.text for result in drawn}) == 3
    with pytest.raises(SettingsError, match="seed has 1 entries"):
        random_llada.generate(["x", "y"], "greedy", seed=[4])


def test_positions_to_fill_may_come_in_any_order(random_llada: LM) -> None:
    mask = random_llada.model.facts.mask_id
    sorted_fill = random_llada.decode([[5, mask, mask, mask]], fill=[[1, 2, 3]])
    assert random_llada.decode([[5, mask, mask, mask]], fill=[[3, 1, 2, 1]]) == about(sorted_fill)
    with pytest.raises(PromptError, match="not booleans"):
        random_llada.decode([[5, mask]], fill=[[False, True]])
    with pytest.raises(PromptError, match="a list of canvases"):
        random_llada.decode(5)  # type: ignore[arg-type]


def test_a_stream_checks_its_prompt_when_it_is_made(random_llada: LM) -> None:
    with pytest.raises(PromptTooLong):
        random_llada.stream("x" * 2000)


@given(
    st.text(alphabet="abc \n", min_size=1, max_size=8),
    st.sampled_from([Greedy(2), PositionBeam(3), PositionBeam(2, 2), Soar(2, 0.6), Soar(3, 0.5, released="llada")]),
    st.integers(1, 12),
    st.none() | st.integers(1, 8),
    st.sampled_from([0.0, 0.8]),
    st.booleans(),
)
@settings(max_examples=25)
def test_the_last_event_of_any_stream_is_what_generate_returns(
    prompt: str, strategy: Any, length: int, block: int | None, temperature: float, early_exit: bool
) -> None:
    lm = small_model()
    options: Any = {
        "max_new_tokens": length,
        "block_length": block,
        "temperature": temperature,
        "early_exit": early_exit,
        "stop": "G",
    }
    *_, last = lm.stream(prompt, strategy, **options)
    assert last.result == about(lm.generate(prompt, strategy, **options))


@functools.cache
def small_model() -> LM:
    return load("random-llada")


def test_a_model_without_a_chat_template_says_so(random_llada: LM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_llada.tokenizer, "chat_template", None)
    with pytest.raises(PromptError, match="no chat template"):
        random_llada.generate("hi", chat=True)


def test_many_prompts_as_completed_survive_a_bad_one(random_llada: LM) -> None:
    prompts = ["a", "x" * 2000, "b", 7, "c"]
    outcomes = dict(random_llada.generate_as_completed(prompts, "greedy", max_new_tokens=5))  # type: ignore[arg-type]
    assert sorted(outcomes) == [0, 1, 2, 3, 4]
    assert isinstance(outcomes[1], PromptTooLong)
    assert isinstance(outcomes[3], SoarError)
    assert isinstance(outcomes[2], Result)
    assert outcomes[2].token_ids == random_llada.generate("b", "greedy", max_new_tokens=5).token_ids
    with pytest.raises(UnknownName):
        next(random_llada.generate_as_completed(["a"], "gredy"))


def test_prompts_are_taken_as_there_is_room(random_llada: LM) -> None:
    lm = load("random-llada", engine=EngineSettings(max_rows=2))
    taken = 0

    def source() -> Any:
        nonlocal taken
        for _ in range(8):
            taken += 1
            yield "x"

    outcomes = lm.generate_as_completed(source(), "greedy", max_new_tokens=3)
    next(outcomes)
    assert taken <= 4
    assert len(list(outcomes)) == 7


def test_guidance_and_sampling_change_the_text(random_llada: LM) -> None:
    plain = random_llada.generate("hello", "greedy", max_new_tokens=16)
    guided = random_llada.generate("hello", "greedy", max_new_tokens=16, cfg_scale=3.0)
    sampled = {
        random_llada.generate("hello", "greedy", max_new_tokens=16, temperature=1.5, seed=seed).text
        for seed in range(4)
    }
    assert plain.text != guided.text
    assert len(sampled) == 4


def test_keywords_of_the_public_methods_are_the_options() -> None:
    from dataclasses import fields

    assert set(get_type_hints(DecodeKeywords)) == {field.name for field in fields(Options)}
    assert set(get_type_hints(GenerateKeywords)) - set(get_type_hints(DecodeKeywords)) == {
        "max_new_tokens",
        "stop",
        "chat",
        "add_special_tokens",
        "truncate_prompt",
        "length",
    }


def test_a_prompt_that_is_too_long_may_lose_its_beginning(random_llada: LM) -> None:
    context = random_llada.model.facts.context or 0
    prompt = "one two three four " * context
    with pytest.raises(PromptTooLong):
        random_llada.generate(prompt, "greedy", max_new_tokens=4)
    with pytest.warns(UserWarning, match="lose their beginning"):
        result = random_llada.generate(prompt, "greedy", max_new_tokens=4, truncate_prompt=True)
    assert result.prompt_length == context - 4
    with pytest.raises(PromptTooLong):
        random_llada.generate(prompt, "greedy", max_new_tokens=context + 1, truncate_prompt=True)


def test_pieces_show_each_token(random_llada: LM) -> None:
    assert random_llada.pieces([66, 67, random_llada.model.facts.mask_id, 263]) == ["c", "d", "<|mdm_mask|>", "�"]
    assert "random-llada" in repr(random_llada)
