"""Wrong values at the public doors: each is answered by a sentence, before anything is built."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import soar_dlm as soar
from soar_dlm import checks
from soar_dlm.doors import answered, door, guarded, theirs
from soar_dlm.errors import PromptError, PromptTooLong, SettingsError, SoarError, UnexpectedError, UnknownName, shown
from soar_dlm.lm import LM
from soar_dlm.models.masked_lm import ModelFacts
from soar_dlm.search.metrics import get_metric
from soar_dlm.search.sampling import Sampling
from tests.crafted import CraftedLM

UNHASHABLE: tuple[Any, ...] = ([], {}, np.zeros(2), {"a": []})


class Broken:
    """Fails at whatever it is asked."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


def test_a_list_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MANY", 1000)
    with pytest.raises(SettingsError, match="of at most 1000 entries"):
        soar.GenerateOptions(stop=itertools.repeat("x"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*UNHASHABLE, None, 5, Broken()], ids=lambda name: type(name).__name__)
def test_a_name_of_any_type_is_looked_up_without_a_crash(name: Any, random_llada: LM) -> None:
    """Prevents TypeError: unhashable type, wherever a name is looked up in a table."""
    lookups: list[Callable[[], object]] = [
        lambda: get_metric(name),
        lambda: soar.STRATEGIES.get(name),
        lambda: soar.make_strategy(name),
        lambda: soar.make_task(name),
        lambda: soar.METRICS.register(name, get_metric("margin")),
        lambda: soar.Soar(metric=name),
        lambda: soar.Deliberate(drafts=[name]),
        lambda: soar.make_strategy("soar", metric=name),
        lambda: random_llada.generate("x", soar.make_strategy("deliberate", draft={"strategy": name})),
        lambda: soar.load("random-llada", dtype=[name]),
        lambda: random_llada.strategy("soar", metric=name),
    ]
    if name is not None:
        lookups += [lambda: soar.Soar(released=name), lambda: random_llada.strategy(name)]
        lookups += [lambda: soar.load(torch.nn.Linear(1, 1), family=name)]
    for lookup in lookups:
        with pytest.raises(SoarError):
            lookup()


def test_a_table_with_a_setting_called_name_or_with_keys_that_are_no_names_is_refused() -> None:
    """Prevents TypeError: got multiple values for argument 'name'."""
    from soar_dlm.search.catalogue import as_strategy

    with pytest.raises(UnknownName, match="called 'name'"):
        as_strategy({"strategy": "soar", "name": "x"})
    with pytest.raises(SettingsError, match="must map names to values"):
        as_strategy({"strategy": "soar", 5: 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("tokens", [5, None, "12", b"12", [2**64], [-1], [1.5], [True], [[1]], {1: 2}, np.array(3)])
def test_token_ids_that_are_none_are_refused(tokens: Any, random_llada: LM) -> None:
    """Prevents TypeError: 'int' object is not iterable for suppress_tokens=5."""
    for name in ("suppress_tokens", "stop_token_ids"):
        with pytest.raises(SettingsError, match=name):
            soar.Options(**{name: tokens})
    for call in (random_llada.pieces, random_llada.text_of, lambda ids: random_llada.decode([ids])):
        with pytest.raises(PromptError):
            call(tokens)


def test_token_ids_may_be_numpy_s_or_torch_s(random_llada: LM) -> None:
    for ids in ([1, 2], (1, 2), np.array([1, 2]), torch.tensor([1, 2]), [np.int64(1), torch.tensor(2)], range(1, 3)):
        assert soar.Options(suppress_tokens=ids).suppress_tokens == (1, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "temperature", [1e-46, 5e-324, 1e-31, 1e31, 10**5000, float("nan"), float("inf"), -1, True, "1"], ids=range(10)
)
def test_a_temperature_that_logits_cannot_be_divided_by_is_refused(temperature: Any) -> None:
    """Prevents an index out of bounds (on a GPU a device assert), where 1e-46 is 0 in 32 bits."""
    for make in (Sampling, lambda temperature: soar.GenerateOptions(temperature=temperature)):
        with pytest.raises(SettingsError, match="temperature must be"):
            make(temperature)


@pytest.mark.parametrize("temperature", [1e-30, 10**30, np.float32(0.5), 1])
def test_every_temperature_in_range_draws_a_token(temperature: Any, random_llada: LM) -> None:
    assert len(random_llada.generate("a", "greedy", temperature=temperature, max_new_tokens=4).token_ids) == 4


def test_numbers_of_numpy_become_python_s_and_too_large_ones_are_refused() -> None:
    made = soar.Soar(beam=np.int64(3), threshold=np.float64(0.5), defer_end=np.bool_(True))  # type: ignore[arg-type]
    assert made == soar.Soar(3, 0.5, defer_end=True)
    assert {type(made.beam), type(made.threshold), type(made.defer_end)} == {int, float, bool}
    for keywords in ({"seed": 2**64}, {"block_length": 2**63}, {"top_k": 2**64}, {"seed": True}, {"seed": -1}):
        with pytest.raises(SettingsError, match=next(iter(keywords))):
            soar.Options(**keywords)
    assert soar.Options(seed=2**64 - 1).seed == 2**64 - 1
    for settings in ({"beam": 10**9}, {"beam": 1.0}, {"threshold": 10**400}):
        with pytest.raises(SettingsError):
            soar.Soar(**settings)
    with pytest.raises(SettingsError, match="parts must be"):
        soar.Deliberate(parts=10**9)


def test_a_canvas_is_measured_before_it_is_built(random_llada: LM, random_dreamon: LM) -> None:
    """Prevents 120 seconds and 8 GB for -n 1000000000."""
    huge = 10**9
    calls: list[Callable[[], object]] = [
        lambda: random_llada.generate("a", max_new_tokens=huge),
        lambda: next(iter(random_llada.stream("a", max_new_tokens=huge))),
        lambda: random_llada.infill("a", "b", length=huge),
        lambda: random_llada.infill_template(f"a{{blank:{huge - 1}}}b"),
        lambda: random_dreamon.infill("a", "b", max_length=huge),
        lambda: random_dreamon.generate("a", max_new_tokens=huge, length=2),
        lambda: random_dreamon.infill_template("{blank:2} a {blank:2}", max_length=2**62),
    ]
    for call in calls:
        with pytest.raises(PromptTooLong, match="context is 1024"):
            call()
    with pytest.raises(SettingsError, match="n must be a whole number of at most"):
        random_llada.generate("a", n=huge, temperature=1.0)
    for canvas, fill in (([range(10**12)], None), ([[5]], [range(10**12)]), (range(10**12), None)):
        with pytest.raises(PromptError, match="at most"):
            random_llada.decode(canvas, fill=fill)  # type: ignore[arg-type]
    (place, error), *_ = random_llada.generate_as_completed(["a"], max_new_tokens=huge)
    assert place == 0
    assert isinstance(error, PromptTooLong)


def test_a_model_without_a_context_has_a_longest_canvas_all_the_same() -> None:
    from soar_dlm.engine.request import check_length

    unlimited = ModelFacts(vocab_size=9, mask_id=8, pad_id=0, filler_id=0)
    check_length(checks.LONGEST, 1, unlimited)
    with pytest.raises(PromptTooLong, match="more than memory could hold"):
        check_length(checks.LONGEST + 1, 1, unlimited)
    engine = soar.Engine(CraftedLM(lambda tokens, position: [0.0] * 9, 9))
    with pytest.raises(PromptTooLong, match="more than memory could hold"):
        engine.add(soar.Request(range(10**12), [0], soar.Greedy()))


def test_samples_at_temperature_zero_are_refused_before_the_second_is_made(random_llada: LM) -> None:
    with pytest.raises(SettingsError, match="same text each time"):
        random_llada.generate(itertools.repeat("a"), "greedy", n=2)


def test_a_prompt_of_endless_token_ids_is_refused_before_it_is_read(random_llada: LM) -> None:
    """It was looked through to its last id, to see whether all are whole numbers."""
    with pytest.raises(PromptError, match="at most"):
        random_llada.generate(range(10**12))  # type: ignore[call-overload]
    with pytest.raises(PromptError, match="'a' is not one"):
        random_llada.generate([1, "a"])  # type: ignore[arg-type]


def test_a_call_that_does_not_fit_a_signature_is_a_sentence(random_llada: LM) -> None:
    makers: tuple[Any, ...] = (random_llada.generate, soar.Soar, soar.Greedy)
    for make, args, keywords in zip(makers, ((), (), (1, 2, 3, 4, 5)), ({}, {"beem": 2}, {}), strict=True):
        with pytest.raises(SettingsError):
            make(*args, **keywords)


def test_values_are_shown_short_and_whatever_their_repr_does() -> None:
    assert shown("a" * 10_000).endswith("...")
    assert shown(10**5000) == "a value of type int"
    assert shown(Broken()) == "a value of type Broken"
    with pytest.raises(UnknownName, match="There is no metric"):
        get_metric("a" * 10_000_000)


def test_what_no_check_foresaw_leaves_a_door_as_a_soar_error_with_its_cause() -> None:
    @door
    def fails(error: BaseException) -> None:
        raise error

    @door
    def fails_later() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    for error in (KeyError("x"), RecursionError(), MemoryError()):
        with pytest.raises(UnexpectedError, match=type(error).__name__) as caught:
            fails(error)
        assert caught.value.__cause__ is error
    for passing in (KeyboardInterrupt(), SystemExit(3), SettingsError("mine")):
        with pytest.raises(type(passing)) as kept:
            fails(passing)
        assert kept.value is passing
    steps = fails_later()
    assert next(steps) == 1
    with pytest.raises(UnexpectedError, match="ZeroDivisionError"):
        next(steps)
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(UnexpectedError, match="PanicException"), answered("Reading"):
        raise panic


def test_what_the_caller_s_own_iterator_raises_is_the_caller_s(random_llada: LM) -> None:
    def prompts() -> Iterator[str]:
        yield "a"
        raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own"):
        random_llada.generate(prompts(), max_new_tokens=2)  # type: ignore[call-overload]
    with pytest.raises(LookupError, match="the caller's own"):
        list(random_llada.generate_as_completed(prompts(), max_new_tokens=2))
    with pytest.raises(LookupError, match="the caller's own"):
        list(theirs(prompts()))


def test_a_prompt_that_fails_in_an_unforeseen_way_fails_alone(
    random_llada: LM, monkeypatch: pytest.MonkeyPatch
) -> None:
    from soar_dlm.jobs import Jobs

    encoded = Jobs._encoded

    def breaks(self: Jobs, prompt: Any, options: Any) -> Any:
        if prompt == "bad":
            raise ZeroDivisionError
        return encoded(self, prompt, options)

    monkeypatch.setattr(Jobs, "_encoded", breaks)
    found = dict(random_llada.generate_as_completed(["a", "bad", "b"], max_new_tokens=2))
    assert isinstance(found[1], UnexpectedError)
    assert len(found[0].token_ids) == len(found[2].token_ids) == 2


def test_guarded_dataclasses_keep_their_signature_and_survive_pickling() -> None:
    import inspect
    import pickle
    from dataclasses import replace

    assert list(inspect.signature(soar.Soar).parameters) == ["beam", "threshold", "metric", "released", "defer_end"]
    made = soar.Soar(beam=3)
    assert pickle.loads(pickle.dumps(made)) == made
    assert replace(made, beam=2) == soar.Soar()
    assert guarded.__doc__


@pytest.mark.parametrize(
    "trace", [5, None, [5], [{}], "[" * 5000, '{"trace": [{"step": []}]}', np.zeros((2, 2)), b"\xff"]
)
def test_what_is_no_trace_is_refused(trace: Any) -> None:
    with pytest.raises(SoarError, match="not a trace"):
        soar.Trace.from_json(trace)
