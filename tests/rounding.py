"""A pytest plugin that rounds differently each time, as processors do that are not at hand.

``pytest -p tests.rounding`` moves every logit of a model, every confidence and every logit that is trained on by a few
units in the last place, another few in every call. A test that fails with it and passes without it compares floats for
equality, or decides something between two numbers that are equal but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

LOGITS = 1e-6
"""Of the largest logit of a row: what a few layers of matrix products in float32 come to."""

CONFIDENCE = 2e-7
"""Of a confidence: what a softmax comes to."""


@pytest.fixture(autouse=True, scope="session")
def _round_differently() -> Iterator[None]:
    import torch  # not at the top: conftest sets what torch reads when it is imported

    from soar_dlm.engine import reader
    from soar_dlm.models.running import TransformersLM
    from soar_dlm.search.confidence import MARGIN, NEG_ENTROPY, PROBABILITY, Metric
    from soar_dlm.search.reading import read
    from soar_dlm.train.trainer import Trainer

    generator = torch.Generator().manual_seed(0)

    def moved(logits: torch.Tensor) -> torch.Tensor:
        noise = 2 * torch.rand(logits.shape, generator=generator) - 1
        largest = logits.detach().abs().amax(-1, keepdim=True)
        return logits + (noise * LOGITS * largest).to(logits.dtype)

    patch = pytest.MonkeyPatch()
    head, logits, trained = TransformersLM.head, TransformersLM.logits, Trainer._logits

    def rounded_head(self: Any, hidden: torch.Tensor, out: torch.Tensor) -> None:
        head(self, hidden, out)
        out.copy_(moved(out))

    def rounded_read(logits: torch.Tensor, metric: Metric, *given: Any) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, confidence = read(logits, metric, *given)
        if metric not in (PROBABILITY, MARGIN, NEG_ENTROPY):  # a test's own may be exact
            return tokens, confidence
        noise = torch.rand(confidence.shape, generator=generator)
        return tokens, confidence * (1 - CONFIDENCE * noise)  # towards zero, so that no confidence leaves its range

    patch.setattr(TransformersLM, "head", rounded_head)
    patch.setattr(TransformersLM, "logits", lambda self, hidden: moved(logits(self, hidden)))
    patch.setattr(Trainer, "_logits", lambda self, batch: moved(trained(self, batch)))
    patch.setattr(reader, "read", rounded_read)
    yield
    patch.undo()
