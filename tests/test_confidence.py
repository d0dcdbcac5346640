from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from soar_dlm.errors import SettingsError, UnknownName
from soar_dlm.search.confidence import BLOCK, most_likely
from soar_dlm.search.metrics import METRICS, get_metric
from soar_dlm.search.reading import BANNED, ban, draw, read
from soar_dlm.search.sampling import Sampling

GREEDY = Sampling()
LOGITS = torch.log(torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [1.0, 1e-30, 1e-30]]))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("probability", [0.6, 0.6, 1.0]),
        ("margin", [0.3, 0.4, 1.0]),
        ("neg_entropy", [-0.897946, -0.950271, 0.0]),
    ],
)
def test_metrics_on_known_distributions(metric: str, expected: list[float]) -> None:
    tokens, confidence = read(LOGITS.clone(), get_metric(metric), GREEDY)
    assert tokens.tolist() == [0, 2, 0]
    assert confidence.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("metric", METRICS.names())
def test_suppressed_tokens_count_for_nothing(metric: str) -> None:
    full = torch.randn(4, 10, generator=torch.Generator().manual_seed(0))
    more = torch.cat([full, torch.full((4, 3), 99.0)], dim=1)
    expected = read(full.clone(), get_metric(metric), GREEDY)
    ban(more, torch.tensor([10, 11, 12]))
    found = read(more, get_metric(metric), GREEDY)
    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1])


@pytest.mark.parametrize("metric", METRICS.names())
@pytest.mark.parametrize("quickly", [True, False], ids=["its own way", "one by one"])
def test_several_tokens_are_measured_as_each_alone(metric: str, quickly: bool) -> None:
    logits = torch.randn(6, 40, generator=torch.Generator().manual_seed(1)) * 3
    logits[0, 3:] = logits[0, :37].clone()  # ties
    ban(logits, torch.tensor([7, 39]))
    tokens = logits.topk(4).indices.flip(-1)
    own = get_metric(metric)
    log_p = logits.log_softmax(-1)
    kept = log_p.clone()
    found = (own if quickly else replace(own, several=None)).measure_several(log_p, tokens)
    assert torch.equal(log_p, kept), "what else is read of them must not change"
    shifted = logits - logits.amax(-1, keepdim=True)
    each = torch.stack([own.measure(shifted.clone(), column) for column in tokens.unbind(-1)], -1)
    torch.testing.assert_close(found, each, atol=1e-5, rtol=1e-4)


@given(st.integers(0, 2**31), st.sampled_from([1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5]))
def test_most_likely_is_max(seed: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(-3, 4, (5, columns), generator=generator).float()  # many ties
    peak, column = most_likely(logits)
    assert torch.equal(peak, logits.amax(-1))
    assert torch.equal(column, logits.argmax(-1)), "ties go to the lowest token id"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("metric", METRICS.names())
def test_rows_with_non_finite_logits_read_as_nan_and_spoil_no_other(metric: str, bad: float) -> None:
    logits = torch.zeros(3, 300)
    ban(logits, torch.tensor([5]))
    logits[1, 290] = bad
    for sampling in (GREEDY, Sampling(temperature=1.0, top_p=0.9)):
        _, confidence = read(logits.clone(), get_metric(metric), sampling, torch.rand(3))
        assert confidence.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("temperature", [1e-30, 1.0, 1e30])
def test_banned_tokens_are_never_drawn(temperature: float) -> None:
    logits = torch.randn(500, 6, generator=torch.Generator().manual_seed(0))
    ban(logits, torch.tensor([0, 3]))
    uniforms = torch.arange(500).float() / 500
    tokens, _ = read(logits, get_metric("margin"), Sampling(temperature=temperature), uniforms)
    assert not set(tokens.tolist()) & {0, 3}


def test_draws_follow_the_distribution() -> None:
    uniforms = torch.arange(1000).float() / 1000
    shifted = torch.log(torch.tensor([0.1, 0.2, 0.3, 0.4])).expand(1000, 4)
    tokens = draw(shifted, uniforms, Sampling(temperature=1.0))
    assert torch.bincount(tokens, minlength=4).tolist() == pytest.approx([100, 200, 300, 400], abs=2)


def test_temperature_sharpens_and_flattens() -> None:
    uniforms = torch.arange(1000).float() / 1000
    shifted = torch.log(torch.tensor([0.4, 0.6])).expand(1000, 2)
    cold = draw(shifted, uniforms, Sampling(temperature=0.5)).float().mean().item()
    hot = draw(shifted, uniforms, Sampling(temperature=100.0)).float().mean().item()
    assert cold == pytest.approx(0.36 / 0.52, abs=0.01)
    assert hot == pytest.approx(0.5, abs=0.01)
    assert draw(shifted - 0.5, uniforms, Sampling(temperature=1e-30)).tolist() == [1] * 1000


@given(st.integers(0, 2**31), st.integers(1, 20), st.floats(0.01, 1.0))
def test_draws_stay_inside_top_k_and_top_p(seed: int, top_k: int, top_p: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(8, 20, generator=generator)
    uniforms = torch.rand(8, generator=generator)
    tokens = draw(logits, uniforms, Sampling(1.0, top_k, top_p))
    for row, token in zip(logits, tokens.tolist(), strict=True):
        order = row.argsort(descending=True, stable=True).tolist()
        rank = order.index(token)
        kept = row.softmax(-1)[order[:top_k]] / row.softmax(-1)[order[:top_k]].sum()
        assert rank < top_k
        assert kept[:rank].sum().item() < top_p + 1e-5, "tokens before it had not reached top_p yet"


def test_what_top_p_leaves_is_drawn_in_proportion() -> None:
    """A share that was cut off belongs to all tokens that are left, not to the last of them."""
    uniforms = torch.arange(700).float() / 700
    shifted = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3])).expand(700, 4)
    tokens = draw(shifted, uniforms, Sampling(temperature=1.0, top_p=0.6))
    assert torch.bincount(tokens, minlength=4).tolist() == pytest.approx([0, 400, 0, 300], abs=2)


def test_top_p_keeps_the_fewest_tokens_that_reach_it_and_the_lower_of_equals() -> None:
    uniforms = torch.arange(100).float() / 100
    tokens = draw(torch.zeros(100, 4), uniforms, Sampling(temperature=1.0, top_p=0.5))
    assert torch.bincount(tokens, minlength=4).tolist() == pytest.approx([50, 50, 0, 0], abs=1)


def test_a_top_p_of_one_drops_no_token() -> None:
    """Not even one that is lost in the sum of all the others."""
    shifted = torch.tensor([[-20.0, 0.0]])
    assert draw(shifted, torch.tensor([1e-9]), Sampling(temperature=1.0)).item() == 0


def test_only_sampling_with_top_p_pays_for_sorting() -> None:
    assert GREEDY.buffers < Sampling(1.0).buffers < Sampling(1.0, top_p=0.9).buffers


def test_the_largest_uniform_never_draws_an_impossible_token() -> None:
    shifted = torch.tensor([[0.0, -1.0, -torch.inf, -torch.inf]])
    assert draw(shifted, torch.tensor([1.0 - 2**-24]), Sampling(temperature=1.0)).item() == 1
    assert draw(shifted, torch.tensor([1.0]), Sampling(temperature=1.0)).item() == 1


def test_confidence_of_a_sampled_token_is_that_of_the_models_own_distribution() -> None:
    logits = torch.log(torch.tensor([[0.7, 0.2, 0.1]]))
    for metric, expected in (("probability", 0.2), ("margin", -0.5), ("neg_entropy", -0.801819)):
        token, confidence = read(logits.clone(), get_metric(metric), Sampling(temperature=5.0), torch.tensor([0.5]))
        assert token.item() == 1
        assert confidence.item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_p": 0},
        {"top_p": 1.1},
        {"top_k": 0},
    ],
)
def test_bad_sampling_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=f"^{next(iter(settings))} must be"):
        Sampling(**settings)  # type: ignore[arg-type]


def test_unknown_metric_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'neg_entropy'"):
        get_metric("entropy")


def test_tokens_that_cannot_come_add_nothing_to_the_entropy() -> None:
    """0 * log 0 is 0, also for the least numbers a model can put in."""
    lowest = torch.finfo(torch.float32).min
    for low in (BANNED, lowest, -1e4):
        logits = torch.tensor([[1.0, 0.0, low, low]])
        _, confidence = read(logits.clone(), get_metric("neg_entropy"), GREEDY)
        _, expected = read(logits[:, :2].clone(), get_metric("neg_entropy"), GREEDY)
        assert confidence.item() == pytest.approx(expected.item(), abs=1e-5)
