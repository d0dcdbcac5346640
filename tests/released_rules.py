"""The released decoders written out plainly, one prompt at a time, from the description in the README of the goldens.

Nothing of the library is used: a candidate is a dictionary, a distribution a list, and everything is recomputed at
every step. Slow, and meant to be read beside that README.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Distribution = Callable[[list[int], int], Sequence[float]]
"""The probabilities of all tokens at a position of a row."""

MASK = object()
"""A position that is still masked; told apart from a committed mask token, which nothing forbids."""


def read(row: list[Any], position: int, distribution: Distribution, mask_id: int, metric: str) -> tuple[int, float]:
    """The most likely token at a position, the lowest id on ties, and the confidence in it."""
    ids = [mask_id if token is MASK else token for token in row]
    probabilities = np.asarray(distribution(ids, position), dtype=np.float64)
    token = int(probabilities.argmax())
    ordered = np.sort(probabilities)[::-1]
    if metric == "margin":
        return token, float(ordered[0] - ordered[1])
    if metric == "neg_entropy":
        positive = probabilities[probabilities > 0]
        return token, float((positive * np.log(positive)).sum())
    return token, float(ordered[0])


def masks(candidate: dict[str, Any]) -> list[int]:
    return [at for at, token in enumerate(candidate["row"]) if token is MASK]


def with_tokens(candidate: dict[str, Any], chosen: list[tuple[int, int, float]], parallel: bool) -> dict[str, Any]:
    row = list(candidate["row"])
    for position, token, _ in chosen:
        row[position] = token
    return {
        "row": row,
        "sum": candidate["sum"] + sum(sure for _, _, sure in chosen),
        "count": candidate["count"] + len(chosen),
        "parallel": parallel,
    }


def rank(candidate: dict[str, Any], released: str) -> float:
    if released == "llada":
        return float(candidate["sum"])
    return float(candidate["sum"] / max(candidate["count"], 1))


def decode(
    prompt: list[int],
    length: int,
    distribution: Distribution,
    mask_id: int,
    *,
    released: str,
    beam_size: int,
    threshold: float,
    metric: str,
    block_length: int | None,
) -> list[int]:
    """The generated ids."""
    first = len(prompt)
    beam: list[dict[str, Any]] = [{"row": [*prompt, *[MASK] * length], "sum": 0.0, "count": 0, "parallel": False}]
    while True:
        open_ones = [candidate for candidate in beam if masks(candidate)]
        if not open_ones or (released == "dream" and not masks(beam[0])):
            return [int(token) for token in beam[0]["row"][first:]]
        made: list[dict[str, Any]] = []
        for candidate in beam:
            left = masks(candidate)
            if not left:  # complete: it stays in the pool with its score
                made.append({**candidate, "parallel": False})
                continue
            if block_length is not None:  # its own current block, whatever the others do
                block = (left[0] - first) // block_length
                left = [at for at in left if (at - first) // block_length == block]
            readings = [(at, *read(candidate["row"], at, distribution, mask_id, metric)) for at in left]
            surest = sorted(readings, key=lambda reading: (-reading[2], reading[0]))
            above = [reading for reading in surest if reading[2] > threshold][:5]
            if above:
                made.append(with_tokens(candidate, above, parallel=True))
            else:
                made += [with_tokens(candidate, [reading], parallel=False) for reading in surest[:beam_size]]
        merged: list[dict[str, Any]] = []
        for candidate in made:
            rivals = [place for place, other in enumerate(merged) if other["row"] == candidate["row"]]
            if not rivals:
                merged.append(candidate)
            elif rank(candidate, released) > rank(merged[rivals[0]], released):
                merged[rivals[0]] = candidate
        pool = sorted(merged, key=lambda candidate: -rank(candidate, released))
        gained = len(masks(beam[0])) - len(masks(pool[0]))
        needed = 1 if released == "llada" else 2
        collapse = any(candidate["parallel"] for candidate in made) and gained >= needed
        beam = pool[:1] if collapse else pool[:beam_size]
