"""The other texts that a search ends with, and how much of a text is settled while it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm import Answer, Greedy, Start, Strategy
from soar_dlm.errors import SettingsError, StrategyError
from soar_dlm.lm import LM
from soar_dlm.search.question import Search
from soar_dlm.serve.settled import SettledText

SETTLING = ("greedy", "adaptive", "pbs", "pbs-parallel", "soar", "soar-dream", "lopa", "freedave", "klass", "factor")
TAKING_BACK = ("core", "deliberate")


def test_a_beam_ends_with_its_finalists_best_first(random_llada: LM) -> None:
    options: Any = {"max_new_tokens": 6, "early_exit": False}
    wide = random_llada.strategy("pbs", beam=4)
    found = random_llada.generate("hello", wide, n=4, **options)
    plain = random_llada.generate("hello", wide, **options)
    last = plain.trace.steps[-1].beam
    assert 1 < len(found) <= len(last) <= 4
    assert [one.text for one in found] == [plain.text, *(one.text for one in plain.alternatives)]
    assert len({one.text for one in found}) == len(found), "each text once"
    ranks = [entry.rank for entry in last]
    assert ranks == sorted(ranks, reverse=True)
    assert found[0].token_ids == plain.token_ids


def test_n_of_a_list_is_a_list_for_each(random_llada: LM) -> None:
    found = random_llada.generate(["a", "b"], "pbs", n=2, max_new_tokens=6, early_exit=False)
    done = dict(random_llada.generate_as_completed(["a", "b"], "pbs", n=2, max_new_tokens=6, early_exit=False))
    for place, one in enumerate(found):
        assert [result.text for result in one] == [result.text for result in done[place]]


def test_deliberate_ends_with_its_verified_texts(random_llada: LM) -> None:
    patient = random_llada.strategy("deliberate", accept=0.0, tries=4)
    result = random_llada.generate("hello", patient, max_new_tokens=8)
    assert result.details["verifications"] > 1
    assert result.alternatives
    assert len({result.text, *(one.text for one in result.alternatives)}) == 1 + len(result.alternatives)


def test_a_strategy_that_ends_with_one_text_needs_a_temperature_for_several(random_llada: LM) -> None:
    for name in ("greedy", "adaptive", "lopa", "freedave", "core"):
        with pytest.raises(SettingsError, match="would give the same text each time"):
            random_llada.generate("a", name, n=2)


def test_a_search_names_its_others_and_they_must_be_full(random_llada: LM) -> None:
    class Named(Greedy):
        full = True

        def search(self, start: Start) -> Search:
            canvas = yield from super().search(start)
            assert not isinstance(canvas, Answer)
            other = canvas.masked(np.flatnonzero(canvas.blank >= 0), start.mask_id)
            return Answer(canvas, others=[other.filled(70) if self.full else other])

    result = random_llada.generate("a", Named(), max_new_tokens=3)
    assert [one.token_ids for one in result.alternatives] == [[70, 70, 70]]
    Named.full = False
    with pytest.raises(StrategyError, match="still has 3 masks"):
        random_llada.generate("a", Named(), max_new_tokens=3)


def test_alternatives_of_blanks_have_texts_around_them(random_dreamon: LM) -> None:
    result = random_dreamon.infill("x =", "end", random_dreamon.strategy("pbs", beam=3), length=4, fixed=True)
    for one in result.alternatives:
        assert one.text != result.text
        assert getattr(one, "whole", "").startswith("x =")


@given(
    st.sampled_from(SETTLING),
    st.text(alphabet="abc é€", max_size=8),
    st.lists(st.text(alphabet="abcdefghij ", min_size=1, max_size=3), max_size=3),
    st.sampled_from(({}, {"block_length": 3}, {"temperature": 1.0}, {"early_exit": False})),
)
def test_settled_pieces_put_together_are_the_text(
    random_llada: LM, strategy: str, prompt: str, stop: list[str], more: dict[str, Any]
) -> None:
    settled = SettledText(random_llada, stop, ())
    shown = ""
    for event in random_llada.stream(prompt, strategy, max_new_tokens=10, stop=stop, **more):
        if event.result is not None:
            assert event.token_ids[: event.settled] == event.result.token_ids[: event.settled]
            shown += settled.rest(event.result.text)
            assert shown == event.result.text
        else:
            shown += settled.more(event)


@given(st.sampled_from(SETTLING), st.integers(1, 5), st.integers(5, 9))
def test_settled_tokens_stay_where_blanks_grow(random_dreamon: LM, strategy: str, length: int, most: int) -> None:
    events = list(random_dreamon.stream_infill(f"a {{blank:{length}}} b", strategy, max_length=most))
    final = events[-1].token_ids
    for before, event in zip([None, *events], events, strict=False):
        assert event.token_ids[: event.settled] == final[: event.settled]
        assert before is None or before.settled <= event.settled


def test_a_search_that_takes_tokens_back_settles_nothing_before_its_end(random_llada: LM) -> None:
    for name in TAKING_BACK:
        *events, last = random_llada.stream("hello", name, max_new_tokens=8)
        assert all(event.settled == 0 for event in events)
        assert last.settled == 8


def test_a_search_of_a_user_settles_nothing_unless_it_says_so(random_llada: LM) -> None:
    class Own(Greedy):
        def search(self, start: Start) -> Search:
            return (yield from super().search(start))

    assert not Own().settles
    assert Strategy().settles


def test_bytes_of_a_character_wait_for_each_other(random_llada: LM) -> None:
    text = SettledText(random_llada, (), ())
    ids = random_llada.encode("a€b", add_special_tokens=False)[0]
    assert len(ids) > 3, "this tokenizer writes the sign in several tokens"
    (event,) = [one for one in random_llada.stream("a", "greedy", max_new_tokens=1) if one.result is not None]
    shown = []
    for size in range(1, len(ids) + 1):
        shown.append(text.more(replace(event, token_ids=ids, settled=size)))
    assert "".join(shown) == "a€b"
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(shown)


def test_what_may_become_a_stop_string_is_held_back(random_llada: LM) -> None:
    ids = random_llada.encode("xabcz", add_special_tokens=False)[0]
    (event,) = [one for one in random_llada.stream("a", "greedy", max_new_tokens=1) if one.result is not None]
    text = SettledText(random_llada, ("abcd", "bc"), ())
    shown = [text.more(replace(event, token_ids=ids, settled=size)) for size in range(1, len(ids) + 1)]
    assert shown[:4] == ["x", "", "", ""], "abc may still become abcd, which begins before bc"
    assert "".join(shown) == "xa"
