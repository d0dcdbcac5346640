"""How likely one text is after another, for models that fill masks in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from soar_dlm import checks
from soar_dlm.errors import PromptTooLong
from soar_dlm.lm import LM
from soar_dlm.models.masked_lm import Rows
from soar_dlm.search.greedy import Greedy


@dataclass(frozen=True)
class Pair:
    """A prompt and a possible answer, as token ids; ``after`` follows both, such as BERT's [SEP]."""

    prompt: Sequence[int]
    answer: Sequence[int]
    after: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer) + len(self.after)


@dataclass(frozen=True)
class _Draw:
    """One masking of one pair: which answer tokens are hidden, and the weight of their log-probability."""

    pair: int
    hidden: np.ndarray[tuple[int], np.dtype[np.intp]]
    weight: float


def log_likelihoods(lm: LM, pairs: Sequence[Pair], samples: int = 128, seed: int = 0) -> list[float]:
    """LLaDA's Monte-Carlo estimate of log p(answer | prompt), on average a lower bound.

    1. For a pair with L answer tokens, each sample hides l of them. Over the samples, l runs evenly through 1 to L from
       a random start; which l tokens are hidden is random.
    2. A sample is the log-probability of the hidden tokens, times L / l.
    3. The estimate is the mean of the samples.

    A pair's draws depend only on the seed and its own tokens, so its estimate is the same in every batch and process.
    An empty answer has likelihood 1.
    """
    checks.whole_number("samples", samples, 1)
    for pair in pairs:
        _check_fits(lm, pair)
    draws = [draw for place, pair in enumerate(pairs) for draw in _draws(place, pair, samples, seed)]
    totals = np.zeros(len(pairs))
    for chosen in _batches(lm, pairs, draws):
        for draw, value in zip(chosen, _measured(lm, pairs, chosen), strict=True):
            totals[draw.pair] += value * draw.weight / samples
    return [float(total) for total in totals]


def _batches(lm: LM, pairs: Sequence[Pair], draws: Sequence[_Draw]) -> Iterator[list[_Draw]]:
    """Draws of similar length together; of equal length if the model takes no padding."""

    def length(draw: _Draw) -> int:
        return len(pairs[draw.pair])

    rows, by_length = lm.engine_settings.max_rows, sorted(draws, key=length)
    groups = [by_length] if lm.model.takes_padding else [list(group) for _, group in groupby(by_length, length)]
    for group in groups:
        for start in range(0, len(group), rows):
            yield group[start : start + rows]


def would_be_written(lm: LM, pairs: Sequence[Pair]) -> list[bool]:
    """Whether greedy decoding of a canvas as long as the answer gives the answer."""
    facts = lm.model.facts
    written = [place for place, pair in enumerate(pairs) if pair.answer]
    blanks = [slice(len(pairs[place].prompt), len(pairs[place].prompt) + len(pairs[place].answer)) for place in written]
    canvases = [
        [*pairs[place].prompt, *[facts.mask_id] * len(pairs[place].answer), *pairs[place].after] for place in written
    ]
    fill = [range(blank.start, blank.stop) for blank in blanks]
    results = lm.decode(canvases, Greedy(), fill=fill, early_exit=False)
    same = {
        place: result.token_ids[blank] == list(pairs[place].answer)
        for place, blank, result in zip(written, blanks, results, strict=True)
    }
    return [same.get(place, True) for place in range(len(pairs))]


def _draws(place: int, pair: Pair, samples: int, seed: int) -> Iterator[_Draw]:
    length = len(pair.answer)
    if length == 0:
        return
    rng = np.random.default_rng([seed, len(pair.prompt), *pair.prompt, *pair.answer])
    counts = 1 + (rng.integers(length) + np.arange(samples) * length // samples) % length
    for count in counts.tolist():
        yield _Draw(place, np.sort(rng.permutation(length)[:count]), length / count)


@torch.inference_mode()
def _measured(lm: LM, pairs: Sequence[Pair], draws: Sequence[_Draw]) -> list[float]:
    """The log-probability of what each draw hides."""
    facts = lm.model.facts
    canvases, places, targets = [], [], []
    for draw in draws:
        pair = pairs[draw.pair]
        ids = np.array([*pair.prompt, *pair.answer, *pair.after], dtype=np.int64)
        columns = len(pair.prompt) + draw.hidden
        targets.append(ids[columns])
        ids[columns] = facts.mask_id
        canvases.append(ids)
        places.append(columns)
    hidden = lm.model.hidden(Rows.packed(canvases, places, facts.pad_id, lm.model.device))
    target = torch.from_numpy(np.concatenate(targets))
    at_once = max(lm.engine_settings.head_budget // (8 * facts.vocab_size), 1)
    parts = zip(torch.split(hidden, at_once), torch.split(target, at_once), strict=True)
    losses = [_losses(lm.model.logits(states), wanted) for states, wanted in parts]
    borders = np.cumsum([len(columns) for columns in places])[:-1]
    return [-float(part.sum()) for part in np.split(torch.cat(losses).cpu().numpy(), borders)]


def _losses(logits: Tensor, wanted: Tensor) -> Tensor:
    """The cross-entropy of each wanted token [S] under its logits [S, V], which may be on a device of their own."""
    return cross_entropy(logits.float(), wanted.to(logits.device), reduction="none")


def _check_fits(lm: LM, pair: Pair) -> None:
    longest = lm.model.facts.context
    if longest is not None and len(pair) > longest:
        raise PromptTooLong(f"Prompt and answer are {len(pair)} tokens long; {lm.name!r} takes at most {longest}.")
