from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
import torch

from soar_dlm.engine.settings import EngineSettings
from soar_dlm.errors import PromptTooLong, SettingsError
from soar_dlm.evals.likelihood import Pair, log_likelihoods, would_be_written
from soar_dlm.lm import LM, load
from soar_dlm.models.families import DREAM
from soar_dlm.models.masked_lm import Rows
from soar_dlm.models.random_checkpoint import write_dream
from soar_dlm.search.greedy import Greedy
from tests.test_model_objects import published

PROMPT, ANSWER = [5, 9, 14, 7], [21, 8, 30]


def hidden_log_probability(lm: LM, pair: Pair, hidden: tuple[int, ...]) -> float:
    """The log-probability of some answer tokens while just they are masked, by the plainest forward."""
    ids = torch.tensor([[*pair.prompt, *pair.answer]])
    columns = torch.tensor(hidden) + len(pair.prompt)
    targets = ids[0, columns].clone()
    ids[0, columns] = lm.model.facts.mask_id
    states = lm.model.hidden(Rows(ids, None, torch.zeros_like(columns), columns))
    return float(lm.model.logits(states).log_softmax(-1).gather(1, targets[:, None]).sum())


@pytest.mark.parametrize("name", ["random-llada", "random-dream"])
def test_one_token_is_measured_exactly(name: str) -> None:
    lm = load(name)
    pair = Pair(PROMPT, [21])
    with torch.inference_mode():
        exact = hidden_log_probability(lm, pair, (0,))
    assert log_likelihoods(lm, [pair], samples=3) == pytest.approx([exact], rel=1e-4)


def test_a_model_that_runs_whole_is_measured_alike(tmp_path: Path) -> None:
    """It takes no padding, so pairs of different length are measured apart."""
    by_name = load(write_dream(tmp_path), device="cpu")
    whole = load(published(tmp_path, DREAM))
    pairs = [Pair(PROMPT, ANSWER), Pair([3], [4, 4]), Pair(PROMPT, ANSWER, [7, 7])]
    expected = log_likelihoods(by_name, pairs, samples=5)
    assert log_likelihoods(whole, pairs, samples=5) == pytest.approx(expected, rel=1e-4)


def test_the_estimate_has_the_right_mean(random_llada: LM) -> None:
    """Over all subsets, sizes weighted alike, each subset's log-probability times L over its size."""
    pair = Pair(PROMPT, ANSWER)
    means = []
    with torch.inference_mode():
        for size in (1, 2, 3):
            found = [hidden_log_probability(random_llada, pair, chosen) for chosen in combinations(range(3), size)]
            means.append(3 / size * sum(found) / len(found))
    exact = sum(means) / 3
    assert log_likelihoods(random_llada, [pair], samples=900) == pytest.approx([exact], rel=0.01)
    assert log_likelihoods(random_llada, [pair], samples=9) != pytest.approx([exact], rel=1e-6)


def test_an_estimate_does_not_depend_on_what_shares_the_batch(random_llada: LM) -> None:
    pairs = [Pair(PROMPT, ANSWER), Pair([3], [4, 4, 4, 4, 4, 4]), Pair(PROMPT[:2], ANSWER), Pair(PROMPT, [])]
    together = log_likelihoods(random_llada, pairs, samples=16, seed=2)
    alone = [log_likelihoods(random_llada, [pair], samples=16, seed=2)[0] for pair in pairs]
    narrow = load("random-llada", engine=EngineSettings(max_rows=3, head_budget=1))
    assert together == pytest.approx(alone, rel=1e-4)
    assert together == pytest.approx(log_likelihoods(narrow, pairs, samples=16, seed=2), rel=1e-4)
    assert together[3] == 0.0
    assert together[0] != pytest.approx(log_likelihoods(random_llada, pairs, samples=16, seed=3)[0], rel=1e-6)


def test_what_greedy_would_write(random_llada: LM) -> None:
    mask = random_llada.model.facts.mask_id
    written = random_llada.decode([[*PROMPT, mask, mask, mask]], Greedy(), early_exit=False)[0].token_ids[4:]
    other = [*written[:2], (written[2] + 1) % 50]
    assert would_be_written(random_llada, [Pair(PROMPT, written), Pair(PROMPT, other), Pair(PROMPT, [])]) == [
        True,
        False,
        True,
    ]


def test_what_cannot_be_measured_is_said(random_llada: LM) -> None:
    too_long = [3] * (random_llada.model.facts.context or 0)
    with pytest.raises(PromptTooLong, match="takes"):
        log_likelihoods(random_llada, [Pair(too_long, ANSWER)])
    with pytest.raises(SettingsError, match="samples"):
        log_likelihoods(random_llada, [Pair(PROMPT, ANSWER)], samples=0)
