"""What a trace says about how an answer was written: the paper's measures (Section 4.4 and Appendix A)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from soar_dlm import checks
from soar_dlm.engine.trace import Trace
from soar_dlm.playback import Cell, Playback

WRITING = ("search", "parallel", "branch")
"""The modes that commit tokens."""


def reasoning(trace: Trace, mark: str | None = None) -> list[Cell]:
    """The tokens of the answer that the model committed before the ``mark``; all of its text without one.

    A token that holds the beginning of the mark does not count, even if it begins before it. A text that lacks the mark
    counts as a whole. Tokens that an early exit filled in do not count, because the model did not choose them.
    """
    playback = Playback(trace)
    cells = playback.answer()
    pieces = ["" if cell.token is None else playback.scene.pieces.get(cell.token, "") for cell in cells]
    end = -1 if mark is None else "".join(pieces).find(mark)
    kept, read = [], 0
    for cell, piece in zip(cells, pieces, strict=True):
        read += len(piece)
        if 0 <= end < read:
            break
        kept.append(cell)
    return [cell for cell in kept if cell.confidence is not None]


def average_confidence(trace: Trace, mark: str | None = None) -> float | None:
    """The mean confidence of the tokens before the answer's keyword, ``mark``; None if there are none.

    The paper takes the model's greatest probability at the moment a token is committed. That is what traces of methods
    that read the probability hold; those of other metrics hold their own confidence. A branch has the confidence of the
    token that it took, which was not the likeliest.
    """
    sure = [cell.confidence for cell in reasoning(trace, mark) if cell.confidence is not None]
    return fmean(sure) if sure else None


def global_ar_ness(trace: Trace, k: int = 5) -> float | None:
    """Global AR-ness@k (Gong et al., 2025): how much the order of filling resembles left to right; None without steps.

    Of each step on the way to the answer: does the token it commits lie within the first ``k`` masked positions? The
    measure is the mean over steps. A step that commits several tokens counts by the share of them that do, all judged
    by the masks before the step. So a decoder that goes from left to right has 1, however many tokens up to ``k`` it
    commits at a time. Steps that commit nothing do not count; in a search that commits several times in one step, each
    time counts.
    """
    checks.whole_number("k", k, 1)
    playback, shares = Playback(trace), []
    for place in trace.places():
        entry = trace.at(place)
        if entry.mode not in WRITING or not entry.positions:
            continue
        before = playback.canvas(entry.parent)
        masked = sorted(at for at, cell in before.items() if cell.token is None)
        earliest = set(masked[:k])
        shares.append(fmean(at in earliest for at in entry.positions))
    return fmean(shares) if shares else None


@dataclass(frozen=True)
class ModeShare:
    """The tokens committed in one stretch of decoding, from ``low`` to ``high`` of all steps, by mode."""

    low: float
    high: float
    search: int
    parallel: int

    @property
    def parallel_share(self) -> float | None:
        tokens = self.search + self.parallel
        return self.parallel / tokens if tokens else None


def mode_shares(traces: Iterable[Trace], bins: int = 20, mark: str | None = None) -> list[ModeShare]:
    """How many tokens each mode committed as decoding went on, over all traces.

    Only tokens before the ``mark`` count, as in the paper. The steps that committed any of them are numbered 1 to S;
    the progress of a token is the number of its step over S. A bin has what is above its lower end, up to its upper
    end. A token that was not the likeliest, as in a branch, counts as search.

    The paper divides by an "effective decoding length" and does not say whether that counts steps or tokens. Here it
    counts steps: a decoding that commits several tokens at a time takes fewer steps than tokens, so divided by tokens
    it would end long before 100%, and the last bins would hold only the decodings that searched most.
    """
    checks.whole_number("bins", bins, 1)
    search, parallel = [0] * bins, [0] * bins
    for trace in traces:
        cells = reasoning(trace, mark)
        steps = sorted({cell.step for cell in cells if cell.step is not None})
        number = {step: place for place, step in enumerate(steps, start=1)}
        for cell in cells:
            assert cell.step is not None
            place = (number[cell.step] * bins - 1) // len(steps)
            counts = parallel if cell.mode == "parallel" else search
            counts[place] += 1
    return [ModeShare(place / bins, (place + 1) / bins, search[place], parallel[place]) for place in range(bins)]


def confidences(traces: Iterable[Trace], mark: str | None = None) -> list[float]:
    """The confidence of every token before the mark, over all traces, in rising order."""
    return sorted(cell.confidence for trace in traces for cell in reasoning(trace, mark) if cell.confidence is not None)
