"""Drafts, verdicts and branches: against the rule written out plainly, and property by property."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from soar_dlm.engine.request import Decoding, Request
from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.options import Options
from soar_dlm.search.adaptive_parallel import AdaptiveParallel
from soar_dlm.search.candidate import Proposal
from soar_dlm.search.core import Core
from soar_dlm.search.deliberate import Deliberate
from soar_dlm.search.entropy_bound import EntropyBound
from soar_dlm.search.freedave import FreeDave
from soar_dlm.search.greedy import Greedy
from soar_dlm.search.klass import Klass
from soar_dlm.search.lopa import Lopa
from soar_dlm.search.position_beam import PositionBeam
from soar_dlm.search.question import Search
from soar_dlm.search.soar import Soar
from soar_dlm.search.start import Start
from soar_dlm.search.strategy import Strategy
from tests.crafted import CraftedLM, canvas_request, decode, decode_one, neighbourly_lm, random_lm, scripted_lm
from tests.deliberate_rule import Plain

PROMPT, LENGTH = [1, 2], 7


def model_with_ends(seed: int) -> CraftedLM:
    """Beliefs that neighbours shift, with an end token."""
    model = neighbourly_lm(seed, len(PROMPT) + LENGTH, vocab_size=8, scale=2.0, pull=1.2)
    model._facts = replace(model.facts, end_ids=(3,), filler_id=3)
    return model


def deliberated(model: CraftedLM, strategy: Deliberate, options: Options | None = None) -> Decoding:
    return decode_one(model, PROMPT, LENGTH, strategy, options or Options())


BOTH = ("open", "plain")
SETTINGS: list[dict[str, Any]] = [
    {"threshold": 0.9, "accept": 0.0, "tries": 6},
    {"threshold": 0.7, "accept": -0.8, "tries": 4},
    {"threshold": 0.8, "accept": -0.3, "tries": 8, "kinds": ("open",), "parts": 2, "hidden": 1, "span": 1},
    {"threshold": 0.6, "accept": -0.5, "tries": 3, "kinds": ("plain",), "skip": 0.5, "hidden": 1, "span": 3},
    {"threshold": 0.99, "accept": -0.1, "tries": 0},
    {"threshold": 0.9, "accept": 0.0, "tries": 12, "least": -1.5, "choices": 2, "parts": 4, "hidden": 3},
]


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_the_rule_written_out_plainly_gives_the_same_answers(number: int) -> None:
    settings = SETTINGS[number]
    own = {"drafts" if name == "kinds" else name: value for name, value in {"kinds": BOTH, **settings}.items()}
    for seed in range(25):
        model = model_with_ends(100 * number + seed)
        for early_exit in (True, False):
            plain = Plain(model, PROMPT, LENGTH, early_exit=early_exit, **settings)
            text, score = plain.run()
            found = deliberated(model, Deliberate(**own), Options(early_exit=early_exit))
            assert found.tokens == text
            assert found.forwards == plain.forwards
            assert found.details.get("score") == pytest.approx(score, abs=1e-4)


def pseudo_log_likelihood(model: CraftedLM, text: tuple[int, ...], parts: int = 3) -> float:
    plain = Plain(model, PROMPT, LENGTH, 0.9, 0.0, 0, parts=parts)
    return plain.verify(text, -math.inf, at_once=True)


def test_the_answer_is_never_worse_than_the_draft() -> None:
    better = 0
    for seed in range(40):
        model = model_with_ends(seed)
        draft = decode_one(model, PROMPT, LENGTH, AdaptiveParallel(threshold=0.9), Options())
        found = deliberated(model, Deliberate(threshold=0.9, accept=0.0, tries=8, drafts=["plain"]))
        before, after = (pseudo_log_likelihood(model, one.tokens) for one in (draft, found))
        assert after >= before - 1e-5
        assert found.details["score"] == pytest.approx(after, abs=1e-4)
        better += after > before + 1e-3
    assert better > 10


@pytest.mark.parametrize(
    ("settings", "size", "rows"),
    [
        ({}, 8, ["0 1 2 3 6 7", "2 3 4 5", "0 1 4 5 6 7"]),
        ({}, 12, ["0 1 2 3 6 7 8 9", "2 3 4 5 8 9 10 11", "0 1 4 5 6 7 10 11"]),
        ({}, 4, ["0 1 3", "1 2", "0 2 3"]),
        ({}, 2, ["1", "0"]),
        ({}, 1, ["0"]),
        ({"hidden": 1, "span": 1}, 5, ["0 3", "1 4", "2"]),
        ({"hidden": 1, "span": 1}, 2, ["0", "1"]),
        ({"parts": 2, "hidden": 1, "span": 3}, 7, ["0 1 2 6", "3 4 5"]),
        ({"parts": 4, "hidden": 3, "span": 1}, 4, ["0 1 2", "1 2 3", "0 2 3", "0 1 3"]),
    ],
)
def test_what_a_verification_masks(settings: dict[str, int], size: int, rows: list[str]) -> None:
    found = Deliberate(**settings).hidden_rows(size)  # type: ignore[arg-type]
    assert [" ".join(map(str, row)) for row in found] == rows


def test_what_is_accepted_at_once_costs_a_draft_and_its_verification() -> None:
    model = scripted_lm({2: {1: 0.9}, 3: {2: 0.8}, 4: {4: 0.7}})
    found = decode_one(model, PROMPT, 3, Deliberate(threshold=0.95, accept=-1.0, tries=5))
    assert found.details == {"score": pytest.approx(math.log(0.9 * 0.8 * 0.7) / 3, abs=1e-5)} | {
        "drafts": 1,
        "branches": 0,
        "verifications": 1,
    }
    assert found.forwards == 3 + 3


def test_a_draft_that_was_sure_enough_is_not_verified() -> None:
    model = scripted_lm({2: {1: 0.9}, 3: {2: 0.8}, 4: {4: 0.7}})
    found = decode_one(model, PROMPT, 3, Deliberate(threshold=0.95, skip=0.69))
    assert found.details == {"drafts": 1, "branches": 0, "verifications": 0}
    assert found.forwards == 3
    found = decode_one(model, PROMPT, 3, Deliberate(threshold=0.95, skip=0.71, accept=-9.0))
    assert found.details["verifications"] == 1


def test_a_branch_finds_the_text_that_holds_together() -> None:
    """The draft starts with the likelier token 1, after which nothing fits; after token 2 everything does."""

    def rule(tokens: list[int], position: int) -> list[float]:
        first = tokens[1]
        if position == 1:
            others = tokens[2]
            log_p = {1: 0.55, 2: 0.45} if others == 8 else {1: 0.2, 2: 0.8} if others == 4 else {1: 0.5, 2: 0.5}
        else:
            log_p = {3: 0.4, 4: 0.3, 5: 0.3} if first == 1 else {4: 0.98} if first == 2 else {3: 0.3, 4: 0.3}
        rest = (1 - sum(log_p.values())) / (8 - len(log_p)) + 1e-6
        return [*np.log([log_p.get(token, rest) for token in range(8)]).tolist(), -30.0]

    model = CraftedLM(rule, 9)
    greedy = decode_one(model, [0], 2, Greedy())
    assert greedy.tokens[1] == 1
    found = decode_one(model, [0], 2, Deliberate(threshold=0.9, accept=-0.2, tries=4))
    assert found.tokens == (0, 2, 4)
    assert found.details["branches"] >= 1
    path = found.trace.path()
    assert [entry.mode for entry in path if entry.mode == "branch"] == ["branch"]
    assert path[0].mode in ("branch", "search")
    assert path[-1].verdict == pytest.approx(found.details["score"])


def test_the_trace_tells_dives_branches_and_verdicts() -> None:
    dives = 0
    for seed in range(20):
        found = deliberated(model_with_ends(seed), Deliberate(threshold=0.9, accept=0.0, tries=5))
        entries = [entry for record in found.trace for entry in record.beam]
        assert len(found.trace) == found.steps
        assert sum(record.forwards for record in found.trace) == found.forwards
        assert sum(entry.mode == "branch" for entry in entries) == found.details["branches"]
        assert sum(entry.verdict is not None for entry in entries) == found.details["verifications"]
        verdicts = [entry.verdict for entry in entries if entry.verdict is not None]
        assert max(verdicts) == pytest.approx(found.details["score"])
        dives = max(dives, *(entry.dive for entry in entries))
        committed = {at: sure for at, sure in enumerate(found.confidence) if sure is not None}
        assert found.trace.confidence_at() == pytest.approx(committed, abs=1e-6)
        for record in found.trace:
            for entry in record.beam:
                assert 0 <= entry.after <= record.step
                if entry.after:
                    assert 0 <= entry.origin < len(found.trace.steps[entry.after - 1].beam)
    assert dives >= 2


@pytest.mark.parametrize("abreast", [2, 3, 8])
def test_branches_can_be_followed_side_by_side(abreast: int) -> None:
    fewer = 0
    for seed in range(15):
        model = model_with_ends(seed)
        one = deliberated(model, Deliberate(threshold=0.9, accept=0.0, tries=6))
        several = deliberated(model, Deliberate(threshold=0.9, accept=0.0, tries=6, abreast=abreast))
        assert several.details["branches"] <= 6
        assert several.details["score"] == pytest.approx(pseudo_log_likelihood(model, several.tokens), abs=1e-4)
        fewer += several.steps < one.steps
    assert fewer >= 10


@pytest.mark.parametrize("budget", [1, 9, 12, 14, 20, 30])
def test_the_budget_bounds_forwards_but_the_first_draft_is_finished(budget: int) -> None:
    for seed in range(10):
        model = model_with_ends(seed)
        draft = decode_one(model, PROMPT, LENGTH, AdaptiveParallel(threshold=0.9, defer_end=True), Options())
        found = deliberated(model, Deliberate(threshold=0.9, accept=0.0, tries=9, budget=budget))
        assert found.forwards <= max(budget + 2, draft.forwards), "rows of a verification are asked together"
        assert model.mask not in found.tokens
        if budget == 1:
            assert found.tokens == draft.tokens
            assert "score" not in found.details


@pytest.mark.parametrize(
    "draft", [Soar(beam=2, threshold=0.9), PositionBeam(beam=3), EntropyBound(gamma=0.05), Greedy()]
)
def test_any_strategy_can_draft(draft: Any) -> None:
    better = 0
    for seed in range(12):
        model = model_with_ends(seed)
        alone = decode_one(model, PROMPT, LENGTH, draft, Options())
        found = deliberated(model, Deliberate(draft=draft, accept=0.0, tries=6, drafts=["plain"]))
        before, after = (pseudo_log_likelihood(model, one.tokens) for one in (alone, found))
        assert after >= before - 1e-5
        better += after > before + 1e-3
    assert better >= 2


def silent(start: Start) -> Any:
    """Left to right, without a report."""
    canvas = start.candidate
    while canvas.left:
        reading = yield from start.read_one(canvas)
        canvas = start.commit(canvas, reading, Proposal(np.array([0]), "search"))
    return canvas


@dataclass(frozen=True)
class Silent(Strategy):
    def search(self, start: Start) -> Search:
        found: Search = silent(start)
        return found


@pytest.mark.parametrize(
    "draft",
    [
        Lopa(threshold=0.9),
        FreeDave(),
        Core(every=2, weak=9),
        Klass(sure=0.5),
        Deliberate(threshold=0.9, accept=0.0, tries=2),
        Silent(),
    ],
)
def test_a_drafter_need_not_be_a_beam(draft: Strategy) -> None:
    """Survivors that are not the first, canvases masked for other reasons, and full ones used to confuse the dives."""
    branches = 0.0
    for seed in range(20):
        model = model_with_ends(seed)
        found = deliberated(model, Deliberate(draft=draft, accept=0.0, tries=6, drafts="plain"))
        assert found.details["score"] == pytest.approx(pseudo_log_likelihood(model, found.tokens), abs=1e-4)
        branches += found.details["branches"]
        if not isinstance(draft, Silent):
            committed = {at: sure for at, sure in enumerate(found.confidence) if sure is not None}
            assert found.trace.confidence_at() == pytest.approx(committed, abs=1e-6)
    assert branches > 40 or isinstance(draft, Silent)


def test_a_drafter_gets_its_threshold_from_the_model() -> None:
    bound = Deliberate(draft=Soar()).bound({"probability": 0.7})
    assert bound.draft == Soar(threshold=0.7)
    assert bound.threshold == 0.7


def test_a_drafter_without_a_threshold_of_its_own_has_that_of_the_strategy() -> None:
    bound = Deliberate(draft=Soar(), threshold=0.8).bound({"probability": 0.7})
    assert bound.draft == Soar(threshold=0.8)
    assert Deliberate(draft=Soar(threshold=0.6), threshold=0.8).bound({"probability": 0.7}).draft == Soar(threshold=0.6)


def test_a_drafter_reads_by_its_own_metric() -> None:
    """Its threshold on margins used to be compared with probabilities."""
    assert Deliberate(draft=Soar(metric="margin")).metric == "margin"


def test_a_drafter_by_name_or_table_is_that_strategy() -> None:
    assert Deliberate(draft="soar") == Deliberate(draft=Soar())
    table = {"strategy": "soar", "beam": 3, "threshold": 0.99}
    made = Deliberate(draft=table)
    assert made == Deliberate(draft=Soar(beam=3, threshold=0.99))
    assert table == {"strategy": "soar", "beam": 3, "threshold": 0.99}
    assert eval(repr(made), {"Deliberate": Deliberate, "Soar": Soar}) == made
    found, expected = (deliberated(model_with_ends(3), Deliberate(draft=one)) for one in ("pbs", PositionBeam()))
    assert (found.tokens, found.forwards) == (expected.tokens, expected.forwards)


def test_several_blanks_are_verified_together() -> None:
    model = neighbourly_lm(3, 9)
    tokens, fill = [1, 8, 8, 2, 2, 8, 8, 8, 1], [1, 2, 5, 6, 7]
    strategy = Deliberate(threshold=0.95, accept=0.0, tries=6)
    found = decode(model, [Request(tokens, fill, strategy, Options())])[0]
    rows = [[1, 2, 6, 7], [2, 5, 7], [1, 5, 6]]  # the parts 1 6, 2 7 and 5, two in a row
    plain = Plain(model, PROMPT, LENGTH, 0.9, 0.0, 0)
    total = 0.0
    for row in rows:
        masked = [8 if at in row else token for at, token in enumerate(found.tokens)]
        total += sum(float(plain.log_p(masked, at)[found.tokens[at]]) for at in row)
    assert found.details["score"] == pytest.approx(total / 10, abs=1e-4)
    assert [found.tokens[at] for at in (0, 3, 4, 8)] == [1, 2, 2, 1]


def test_a_canvas_that_changes_its_length() -> None:
    for seed in range(12):
        model = random_lm(seed, vocab_size=7, ends=(5,), expand=4, delete=5)
        strategy = Deliberate(threshold=0.9, accept=0.0, tries=6)
        request = Request([1, 6, 6, 6, 2], [1, 2, 3], strategy, Options(), max_length=5)
        found = decode(model, [request])[0]
        assert found.tokens[0] == 1
        assert found.tokens[-1] == 2
        assert 4 not in found.tokens[1:-1]
        assert len(found.tokens) <= 2 + 5
        assert len(found.tokens) == 2 or found.details["score"] < 0


def test_a_text_without_tokens_has_no_score() -> None:
    """It used to score minus infinity, which is no JSON."""
    model = random_lm(0, vocab_size=7, ends=(5,), expand=4, delete=5)
    rule = model.rule
    model.rule = lambda tokens, position: [*rule(tokens, position)[:5], 50.0, -50.0]
    request = Request([1, 6, 6, 2], [1, 2], Deliberate(threshold=0.9, accept=0.0, drafts=BOTH), Options(), max_length=4)
    found = decode(model, [request])[0]
    assert found.tokens == (1, 2)
    assert found.details == {"drafts": 2, "branches": 0, "verifications": 0}
    json.dumps(found.trace.to_json(), allow_nan=False)


@pytest.mark.parametrize("budget", [1, 8, 12])
def test_no_trace_has_a_number_that_json_has_not(budget: int) -> None:
    """A text that a budget left without a score was ranked minus infinity."""
    for seed in range(10):
        found = deliberated(model_with_ends(seed), Deliberate(threshold=0.9, accept=0.0, budget=budget))
        json.dumps([found.details, found.trace.to_json()], allow_nan=False)


@pytest.mark.parametrize("options", [Options(block_length=3), Options(cfg_scale=0.5), Options(temperature=0.7, seed=3)])
def test_options_of_a_request_hold_for_it(options: Options) -> None:
    for seed in range(8):
        model = model_with_ends(seed)
        strategy = Deliberate(threshold=0.9, accept=0.0, tries=4)
        alone = deliberated(model, strategy, options)
        assert model.mask not in alone.tokens[len(PROMPT) :]
        assert alone.details["score"] <= 0
        request = canvas_request(model, PROMPT, LENGTH, strategy, options)
        other = canvas_request(model, PROMPT, LENGTH, Soar(beam=3, threshold=0.9), Options())
        together = decode(model, [other, request, other])
        assert (together[1].tokens, together[1].forwards) == (alone.tokens, alone.forwards)


@pytest.mark.parametrize("metric", ["probability", "margin", "neg_entropy"])
def test_other_tokens_have_the_confidence_of_the_metric(metric: str) -> None:
    low, high = (-10.0, 0.0) if metric == "neg_entropy" else (-1.0, 1.0)
    threshold = -0.1 if metric == "neg_entropy" else 0.9
    seen = 0
    for seed in range(10):
        found = deliberated(model_with_ends(seed), Deliberate(threshold=threshold, accept=0.0, metric=metric))
        branched = [entry for record in found.trace for entry in record.beam if entry.mode == "branch"]
        seen += len(branched)
        assert all(low <= sure <= high for entry in branched for sure in entry.confidence)
    assert seen


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tries": -1}, "tries"),
        ({"parts": 1}, "parts"),
        ({"choices": 1}, "choices"),
        ({"least": 0.5}, "least"),
        ({"skip": 1.5}, "skip"),
        ({"abreast": 0}, "abreast"),
        ({"budget": 0}, "budget"),
        ({"drafts": []}, "at least one kind"),
        ({"hidden": 3}, "less than parts, 3"),
        ({"hidden": 0}, "hidden"),
        ({"span": 0}, "span"),
        ({"drafts": ["opne"]}, "Did you mean 'open'"),
        ({"draft": "sore"}, "Did you mean 'soar'"),
        ({"draft": 3}, "draft must be a name or a soar_dlm.Strategy"),
        ({"draft": {"beam": 2}}, "draft must name its strategy"),
        ({"draft": {"strategy": "soar", "beem": 2}}, "Did you mean 'beam'"),
        ({"draft": {"strategy": "soar", "beam": 0}}, "beam must be"),
        ({"draft": "deliberate"}, "Deliberate has no setting defer_end"),
        ({"draft": Soar(metric="margin"), "metric": "neg_entropy"}, "they must agree"),
        ({"accept": math.nan}, "accept"),
        ({"threshold": 2.0}, "threshold"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], words: str) -> None:
    with pytest.raises((SettingsError, UnknownName), match=words):
        Deliberate(**settings)
