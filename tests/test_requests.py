"""What can be asked of a model and what comes back: options, samples, results, defaults of a checkpoint."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import soar_dlm
from soar_dlm.engine.request import Request
from soar_dlm.engine.trace import Trace
from soar_dlm.errors import CheckpointError, InputFileError, PromptTooLong, SettingsError, SoarError, UnknownName
from soar_dlm.jobs import Jobs
from soar_dlm.lm import LM, load
from soar_dlm.models.defaults import DecodingDefaults, write_defaults
from soar_dlm.models.random_checkpoint import write_llada
from soar_dlm.options import (
    DecodeKeywords,
    GenerateKeywords,
    GenerateOptions,
    InfillKeywords,
    InfillOptions,
    Options,
    make_options,
)
from soar_dlm.results import Result
from soar_dlm.search.catalogue import STRATEGIES
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.soar import Soar
from tests.closeness import about


@pytest.mark.parametrize(
    ("kind", "keywords"),
    [(Options, DecodeKeywords), (GenerateOptions, GenerateKeywords), (InfillOptions, InfillKeywords)],
)
def test_keywords_and_options_are_the_same_names(kind: Any, keywords: Any) -> None:
    assert set(get_type_hints(keywords)) == {entry.name for entry in fields(kind)}
    assert all(entry.metadata["help"] for entry in fields(kind))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("steps", "The strategy decides how many steps there are"),
        ("gen_length", "max_new_tokens"),
        ("max_tokens", "max_new_tokens"),
        ("remasking", "'low_confidence' is soar.Greedy(metric='probability')"),
        ("alg", "'entropy' is 'neg_entropy'"),
        ("do_sample", "temperature is above 0"),
        ("num_beams", "soar.Soar(beam=4)"),
        ("beam", "beam is a setting of the strategy"),
        ("threshold", "soar.Soar(threshold=...)"),
        ("metric", "setting of the strategy"),
        ("block_size", "block_length"),
        ("num_return_sequences", "n here"),
    ],
)
def test_words_of_other_libraries_are_answered(random_llada: LM, name: str, words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)) as caught:
        random_llada.generate("a", **{name: 4})  # type: ignore[call-overload]
    assert "Did you mean" not in str(caught.value)


def test_a_misspelt_option_suggests_the_nearest_and_nonsense_suggests_nothing() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'temperature'"):
        make_options(GenerateOptions, {"temprature": 1})
    with pytest.raises(UnknownName) as caught:
        make_options(GenerateOptions, {"frobnicate": 1})
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["early_exit", "trace", "chat", "add_special_tokens", "truncate_prompt"])
@pytest.mark.parametrize("value", ["no", "False", 0, None])
def test_true_or_false_is_nothing_else(name: str, value: Any) -> None:
    """``early_exit="no"`` used to count as true."""
    with pytest.raises(SettingsError, match=f"{name} must be true or false"):
        GenerateOptions(**{name: value})


def test_n_gives_that_many_texts_from_seeds_in_a_row(random_llada: LM) -> None:
    options: Any = {"max_new_tokens": 6, "temperature": 1.5, "early_exit": False}
    three = random_llada.generate("hello", Greedy(), n=3, seed=5, **options)
    alone = [random_llada.generate("hello", Greedy(), seed=seed, **options) for seed in (5, 6, 7)]
    assert [one.token_ids for one in three] == [one.token_ids for one in alone]
    assert [one.seed for one in three] == [5, 6, 7]
    assert len({tuple(one.token_ids) for one in three}) == 3
    nested = random_llada.generate(["hello", "a"], Greedy(), n=2, seed=5, **options)
    assert [[one.seed for one in per_prompt] for per_prompt in nested] == [[5, 6], [5, 6]]
    assert nested[0][1].token_ids == three[1].token_ids
    assert isinstance(random_llada.generate("hello", Greedy(), n=1, **options), list)


def test_n_as_completed(random_llada: LM) -> None:
    options: Any = {"max_new_tokens": 4, "temperature": 1.0, "early_exit": False}
    prompts = ["one", "two", "x" * 5000, "three"]
    found = dict(random_llada.generate_as_completed(prompts, Greedy(), n=3, seed=2, **options))
    assert sorted(found) == [0, 1, 2, 3]
    assert isinstance(found[2], PromptTooLong)
    expected = random_llada.generate(["one", "two", "three"], Greedy(), n=3, seed=2, **options)
    for place, results in zip((0, 1, 3), expected, strict=True):
        assert [one.token_ids for one in found[place]] == [one.token_ids for one in results]


def test_several_samples_need_a_temperature(random_llada: LM) -> None:
    with pytest.raises(SettingsError, match="would give the same text each time"):
        random_llada.generate("a", Greedy(), n=2)
    with pytest.raises(SettingsError, match="n must be a whole number of at least 1"):
        random_llada.generate("a", n=0)


def test_no_seed_draws_a_fresh_one_that_can_be_used_again(random_llada: LM) -> None:
    options: Any = {"max_new_tokens": 8, "temperature": 2.0, "early_exit": False}
    results = [random_llada.generate("hello", Greedy(), seed=None, **options) for _ in range(3)]
    assert len({one.seed for one in results}) == 3
    again = random_llada.generate("hello", Greedy(), seed=results[0].seed, **options)
    assert again.token_ids == results[0].token_ids
    many = random_llada.generate("hello", Greedy(), n=3, seed=None, **options)
    assert len({one.seed for one in many}) == 3


def test_without_a_trace_nothing_of_the_steps_is_kept(random_llada: LM) -> None:
    kept = random_llada.generate("hello", Soar(2, 0.5), max_new_tokens=8)
    lean = random_llada.generate("hello", Soar(2, 0.5), max_new_tokens=8, trace=False)
    assert len(lean.trace) == 0
    assert len(kept.trace) == kept.steps > 0
    assert (lean.token_ids, lean.steps, lean.forwards) == (kept.token_ids, kept.steps, kept.forwards)
    assert lean.token_confidence == pytest.approx(kept.token_confidence, abs=1e-5)


def test_tokens_are_those_of_the_text(random_llada: LM) -> None:
    full = random_llada.generate("hello", Greedy(), max_new_tokens=24, early_exit=False)
    assert random_llada.tokenizer.decode(full.tokens) == full.text
    letter = full.text[5]
    cut = random_llada.generate("hello", Greedy(), max_new_tokens=24, early_exit=False, stop=letter)
    assert cut.text == full.text[: full.text.index(letter)]
    assert random_llada.tokenizer.decode(cut.tokens) == cut.text
    assert cut.token_ids == full.token_ids
    at = full.trace.confidence_at()
    expected = [at[full.prompt_length + place] for place in range(len(full.tokens))]
    assert full.token_confidence == pytest.approx(expected, abs=1e-5)
    assert len(cut.token_confidence) == len(cut.tokens)


def test_further_end_tokens(random_llada: LM) -> None:
    full = random_llada.generate("hello", Greedy(), max_new_tokens=16, early_exit=False)
    end = full.token_ids[4]
    first = full.token_ids.index(end)
    ended = random_llada.generate("hello", Greedy(), max_new_tokens=16, stop_token_ids=[end])
    assert ended.finish_reason == "stop"
    assert end not in ended.tokens
    whole = random_llada.generate("hello", Greedy(), max_new_tokens=16, stop_token_ids=[end], early_exit=False)
    assert whole.tokens == full.token_ids[:first]
    with pytest.raises(SettingsError, match="stop_token_ids has an id outside"):
        random_llada.generate("hello", stop_token_ids=[9999])


def test_usage_and_plain_values(random_llada: LM) -> None:
    result = random_llada.generate("hello", Greedy(), max_new_tokens=8, early_exit=False)
    assert result.usage == {
        "prompt_tokens": 5,
        "completion_tokens": len(result.tokens),
        "total_tokens": 5 + len(result.tokens),
        "steps": 8,
        "forwards": 8,
    }
    plain = json.loads(json.dumps(result.to_dict()))
    assert "trace" not in plain
    assert (plain["text"], plain["tokens"], plain["seed"]) == (result.text, result.tokens, 0)
    whole = json.loads(json.dumps(result.to_dict(trace=True)))
    assert Trace.from_json(whole) == result.trace
    filled = random_llada.infill("def f(x):\n", "\n    return y\n", Greedy(), length=6)
    assert json.loads(json.dumps(filled.to_dict()))["whole"] == filled.whole
    assert filled.usage["completion_tokens"] == len(filled.tokens)
    events = list(random_llada.stream("hello", Greedy(), max_new_tokens=4))
    assert json.loads(json.dumps(events[-1].to_dict()))["result"]["text"] == events[-1].text


def test_a_line_of_a_trace_file_is_read_back(random_llada: LM) -> None:
    """``Trace.from_json`` could not read what ``--trace`` writes."""
    trace = random_llada.generate("hello", PositionBeam(2), max_new_tokens=4).trace
    line = json.dumps({"index": 0, "prompt": "hello", "trace": trace.to_json()})
    assert Trace.from_json(line) == Trace.from_json(json.loads(line)) == Trace.from_json(trace.to_json()) == trace
    for bad in ("{", "{}", "[1]", '[{"step": 1}]', 3, {"trace": [{"step": 1, "forwards": 1, "beam": [{}]}]}):
        with pytest.raises(InputFileError, match="not a trace"):
            Trace.from_json(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"after": 1}, {"after": 7}, {"after": 1, "origin": 5}, {"verdict": "x"}], ids=str)
def test_a_trace_whose_paths_lead_nowhere_is_refused(random_llada: LM, changes: dict[str, Any]) -> None:
    """Following such a trace ended in an IndexError, or not at all."""
    steps = random_llada.generate("hello", Greedy(), max_new_tokens=2).trace.to_json()
    steps[0]["beam"][0].update(changes)
    with pytest.raises(InputFileError, match="not a trace"):
        Trace.from_json(steps)


def test_a_trace_that_lacks_its_first_steps_is_refused(random_llada: LM) -> None:
    steps = random_llada.generate("hello", Greedy(), max_new_tokens=3).trace.to_json()
    with pytest.raises(InputFileError, match="step 2 is in the place of step 1"):
        Trace.from_json(steps[1:])


def test_progress_is_shown_only_on_request(random_llada: LM, capsys: pytest.CaptureFixture[str]) -> None:
    random_llada.generate(["a", "b"], Greedy(), max_new_tokens=2)
    assert capsys.readouterr() == ("", "")
    random_llada.generate(["a", "b"], Greedy(), max_new_tokens=2, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_facts_of_a_model(random_llada: LM) -> None:
    assert random_llada.device.type == "cpu"
    assert random_llada.context == 1024
    assert random_llada.mask_token_id == random_llada.tokenizer.convert_tokens_to_ids("<|mdm_mask|>")
    assert random_llada.tokenizer.eos_token_id == random_llada.end_token_ids[0]


@pytest.mark.parametrize("strategy", [*STRATEGIES.names(), Deliberate(draft="soar")])
def test_a_request_can_be_pickled(random_llada: LM, strategy: Any) -> None:
    job = random_llada._jobs.generate("hello", strategy, {"stop": ["\n"], "max_new_tokens": 4})
    again: Request = pickle.loads(pickle.dumps(job.request))
    assert again == job.request
    engine = random_llada.engine()
    engine.add(again)
    assert sum(event.decoding is not None for event in engine.run()) == 1


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_whatever_a_strategy_tells_is_json(random_llada: LM, name: str) -> None:
    events = list(random_llada.stream("hello", name, max_new_tokens=6))
    for event in events:
        json.dumps(event.to_dict(), allow_nan=False)
    result = events[-1].result
    assert result is not None
    written = json.loads(json.dumps(result.to_dict(trace=True), allow_nan=False))
    assert written["details"] == result.details
    assert events[-1].to_dict()["result"]["details"] == result.details
    assert Trace.from_json(written) == about(result.trace)


def test_a_truncated_prompt_leaves_room_for_the_greatest_length(random_dreamon: LM) -> None:
    """It used to leave room for the initial length alone, and the request was refused."""
    context = random_dreamon.context or 0
    with pytest.warns(UserWarning, match="lose their beginning"):
        result = random_dreamon.generate(
            "one two " * context, Greedy(), length=2, max_new_tokens=20, truncate_prompt=True
        )
    assert result.prompt_length == context - 20 - 1, "the EOS comes after the text"


@pytest.fixture
def careful(tmp_path: Path) -> LM:
    """A checkpoint that carries decoding defaults."""
    folder = write_llada(tmp_path / "careful")
    write_defaults(
        folder,
        DecodingDefaults(
            "pbs", {"beam": 3}, {"probability": 0.5}, {"block_length": 4, "max_new_tokens": 6, "early_exit": False}
        ),
    )
    return load(folder, device="cpu")


def test_a_checkpoints_defaults_apply_where_a_call_says_nothing(careful: LM, random_llada: LM) -> None:
    same_weights = random_llada
    result = careful.generate("hello")
    expected = same_weights.generate("hello", PositionBeam(3), max_new_tokens=6, block_length=4, early_exit=False)
    assert (result.token_ids, result.forwards) == (expected.token_ids, expected.forwards)
    assert careful.generate("hello", "greedy", max_new_tokens=8, block_length=None).steps == 8
    soar = careful.generate("hello", "soar")
    expected = same_weights.generate("hello", Soar(2, 0.5), max_new_tokens=6, block_length=4, early_exit=False)
    assert (soar.token_ids, soar.forwards) == (expected.token_ids, expected.forwards)
    assert careful.strategy() == PositionBeam(3)
    assert careful.strategy(beam=4) == PositionBeam(4)
    assert careful.strategy("soar") == Soar()
    assert random_llada.strategy(beam=4) == Soar(4)
    infilled = careful.infill("def f(x):\n", "\n    return y\n", length=6)
    assert infilled.forwards > infilled.steps, "position beams, in blanks too"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 3}, "sets the option 'seed', which has no default"),
        ({"gen_length": 3}, "sets the option 'gen_length'"),
        ({"block_length": 0}, "block_length must be a whole number"),
    ],
)
def test_wrong_defaults_of_a_checkpoint_are_told_when_it_is_loaded(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    folder = write_llada(tmp_path / "wrong")
    write_defaults(folder, DecodingDefaults(options=options))
    with pytest.raises(CheckpointError, match=re.escape(words)):
        load(folder, device="cpu")


def test_metrics_can_be_registered(random_llada: LM) -> None:
    metric = soar_dlm.Metric("always-half", 0.0, 1.0, lambda shifted, tokens: shifted[:, 0] * 0 + 0.5)
    name = "test-requests-half"
    soar_dlm.METRICS.register(name, metric)
    result = random_llada.generate("hello", Greedy(metric=name), max_new_tokens=4, early_exit=False)
    assert result.token_confidence == pytest.approx([0.5] * len(result.tokens))
    assert result.trace.path()[0].positions == (5,), "equal confidences: the lower position first"
    with pytest.raises(SettingsError, match="no default threshold for the metric"):
        random_llada.generate("hello", Soar(metric=name))
    soar_dlm.METRICS.register("test-requests-nothing", 3)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"not a soar_dlm\.Metric"):
        Greedy(metric="test-requests-nothing")
    nonsense: list[Any] = [[], None, 3]
    for value in nonsense:
        with pytest.raises(UnknownName):
            Greedy(metric=value)


def test_the_public_names_are_enough_to_write_a_strategy() -> None:
    for name in ("Strategy", "Proposal", "Pool", "Candidate", "Commit", "Metric", "METRICS", "STRATEGIES"):
        assert name in soar_dlm.__all__


def test_jobs_refuse_text_without_a_tokenizer(random_llada: LM) -> None:
    bare = Jobs("bare", random_llada.model.facts, None, DecodingDefaults())
    with pytest.raises(SoarError, match="has no tokenizer files"):
        bare.check_generate({})
    result: Result = random_llada.decode([[66, random_llada.mask_token_id]], Greedy())[0]
    assert result.tokens == result.token_ids[1:]
