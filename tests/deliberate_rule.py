"""Deliberation written out plainly and slowly, with lists and loops and no engine. The library is compared with it.

Only for a prompt followed by one blank of fixed length, at temperature 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.crafted import CraftedLM

Decision = tuple[tuple[int, ...], int, tuple[float, int]]
"""The canvas, the position, and the token that was taken with its log probability."""


@dataclass
class Plain:
    """The rule of the strategy on one canvas; ``forwards`` counts distinct rows."""

    model: CraftedLM
    prompt: Sequence[int]
    length: int
    threshold: float
    accept: float
    tries: int
    skip: float | None = None
    kinds: Sequence[str] = ("open", "plain")
    parts: int = 3
    hidden: int = 2
    span: int = 2
    least: float = -5.0
    choices: int = 3
    early_exit: bool = True
    forwards: int = 0
    known: dict[tuple[int, ...], dict[int, np.ndarray]] = field(default_factory=dict)
    heap: list[tuple[float, int, str, tuple[int, ...], int, int]] = field(default_factory=list)
    pushed: set[tuple[tuple[int, ...], int, int]] = field(default_factory=set)
    scores: dict[tuple[int, ...], float] = field(default_factory=dict)

    def log_p(self, canvas: Sequence[int], position: int) -> np.ndarray:
        logits = np.array(self.model.rule(list(canvas), position), dtype=np.float64)
        logits[self.model.mask] = -np.inf
        logits -= logits.max()
        return logits - math.log(np.exp(logits).sum())

    def read(self, canvas: tuple[int, ...]) -> dict[int, np.ndarray]:
        if canvas not in self.known:
            self.forwards += 1
            self.known[canvas] = {
                at: self.log_p(canvas, at) for at, token in enumerate(canvas) if self.is_open(canvas, at)
            }
        return self.known[canvas]

    def is_open(self, canvas: Sequence[int], at: int) -> bool:
        return at >= len(self.prompt) and canvas[at] == self.model.mask

    def settled(self, canvas: list[int]) -> tuple[int, ...]:
        """Early exit: a text whose filled beginning has an end token is full."""
        if self.early_exit:
            for at in range(len(self.prompt), len(canvas)):
                if canvas[at] == self.model.mask:
                    break
                if canvas[at] in self.model.facts.end_ids:
                    filler = self.model.facts.filler_id
                    return tuple(filler if token == self.model.mask else token for token in canvas)
        return tuple(canvas)

    def draft(self, canvas: tuple[int, ...], kind: str, branch: bool) -> tuple[tuple[int, ...], list[Decision]] | None:
        ends = self.model.facts.end_ids
        decisions: list[Decision] = []
        while any(self.is_open(canvas, at) for at in range(len(canvas))):
            if branch and canvas in self.known:
                return None
            reading = self.read(canvas)
            best = {at: (float(values.max()), int(values.argmax())) for at, values in reading.items()}
            filled = list(canvas)
            above = [at for at, (value, _) in best.items() if math.exp(value) > self.threshold]
            if above:
                for at in above:
                    filled[at] = best[at][1]
            else:
                allowed = [at for at in best if best[at][1] not in ends] if kind == "open" else list(best)
                surest = max(allowed or best, key=lambda at: (best[at][0], -at))
                decisions.append((canvas, surest, best[surest]))
                filled[surest] = best[surest][1]
            canvas = self.settled(filled)
        return canvas, decisions

    def verify(self, text: tuple[int, ...], bar: float, at_once: bool) -> float:
        """The score; less than ``bar``, and not the whole score, if it was given up on the way."""
        inside = list(range(len(self.prompt), len(text)))
        ended = [place for place, at in enumerate(inside) if text[at] in self.model.facts.end_ids]
        verified = inside[: ended[0] + 1] if ended else inside
        total = 0.0
        rows: list[list[int]] = []
        span = self.span if len(verified) >= self.span * self.parts else max(len(verified) // self.parts, 1)
        for first in range(self.parts):
            masked_parts = [(first + more) % self.parts for more in range(self.hidden)]
            row = [at for number, at in enumerate(verified) if number // span % self.parts in masked_parts]
            if row and row not in rows:
                rows.append(row)
        rows = [row for row in rows if row != verified] or rows
        count = sum(map(len, rows))
        for row in rows:
            masked = [self.model.mask if at in row else token for at, token in enumerate(text)]
            self.forwards += 1
            total += sum(float(self.log_p(masked, at)[text[at]]) for at in row)
            if not at_once and total / count <= bar:
                break
        return total / count

    def push(self, decisions: list[Decision], kind: str, key: float) -> None:
        for canvas, at, (_, taken) in decisions:
            values = self.known[canvas][at]
            for token in np.argsort(-values, kind="stable")[: self.choices]:
                name = (canvas, at, int(token))
                if token != taken and values[token] > self.least and name not in self.pushed:
                    self.pushed.add(name)
                    self.heap.append((-(key + float(values[token])), len(self.pushed), kind, *name))

    def run(self) -> tuple[tuple[int, ...], float | None]:
        """The answer and its score; no score if it was not verified."""
        start = (*self.prompt, *[self.model.mask] * self.length)
        best, score = start, -math.inf
        for kind in self.kinds:
            drafted = self.draft(start, kind, branch=False)
            assert drafted is not None
            text, decisions = drafted
            if self.skip is not None and all(math.exp(value) > self.skip for _, _, (value, _) in decisions):
                return text, self.scores.get(text)
            if text not in self.scores:
                self.scores[text] = self.verify(text, score, at_once=True)
                if best == start or self.scores[text] > score:
                    best, score = text, self.scores[text]
            if score > self.accept:
                return best, score
            self.push(decisions, kind, 0.0)
        for _ in range(self.tries):
            if not self.heap:
                break
            branch = min(self.heap)
            self.heap.remove(branch)
            key, _, kind, canvas, at, token = branch
            filled = list(canvas)
            filled[at] = token
            found = self.draft(self.settled(filled), kind, branch=True)
            if found is None:
                continue
            text, decisions = found
            if text not in self.scores:
                self.scores[text] = self.verify(text, score, at_once=False)
                if self.scores[text] > score:
                    best, score = text, self.scores[text]
            self.push(decisions, kind, -key)
            if score > self.accept:
                break
        return best, score
