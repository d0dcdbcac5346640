"""The K best ways to choose n positions, without looking at all of them."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray


def fewest_positions(masked: int, n: int, k: int) -> int:
    """M = min{m : C(m, n) >= k, m <= masked}, or ``masked`` when even all positions give fewer than k subsets."""
    m = min(n, masked)
    while m < masked and math.comb(m, n) < k:
        m += 1
    return m


def best_subsets(confidence: NDArray[np.float32], n: int, k: int) -> list[NDArray[np.intp]]:
    """The k n-subsets of greatest mean confidence, best first: [W] -> k index arrays [n].

    Positions are ranked by confidence, the lower first on ties, and only the top M of :func:`fewest_positions`
    take part. Best-first search: a subset is a rising tuple of ranks; its successors move one rank down by one,
    so no successor is better than its parent and the heap yields subsets in order. Equal means come in the order
    of their rank tuples.
    """
    n = min(n, confidence.size)
    if n == 0:
        return []
    m = fewest_positions(confidence.size, n, k)
    order = np.argsort(-confidence, kind="stable")[:m]
    if n == 1 or k == 1:
        return [order[:n]] if k == 1 else [order[i : i + 1] for i in range(min(k, m))]
    ranked = confidence[order].astype(np.float64)

    def entry(ranks: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        return -math.fsum(ranked[list(ranks)]), ranks

    heap = [entry(tuple(range(n)))]
    seen = {heap[0][1]}
    best: list[NDArray[np.intp]] = []
    while heap and len(best) < k:
        _, ranks = heapq.heappop(heap)
        best.append(order[list(ranks)])
        for i, rank in enumerate(ranks):
            limit = ranks[i + 1] if i + 1 < n else m
            successor = (*ranks[:i], rank + 1, *ranks[i + 1 :])
            if rank + 1 < limit and successor not in seen:
                seen.add(successor)
                heapq.heappush(heap, entry(successor))
    return best
