"""Rules that commit the surest positions together, as many as a condition allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from soar_dlm.search.candidate import Bools, Floats, Proposal


def ranked(values: Floats) -> tuple[NDArray[np.intp], Floats]:
    """The order from the greatest value down, the lower position first on ties, and the values in it as float64."""
    order = np.argsort(-values, kind="stable")
    return order, values[order].astype(np.float64)


def longest_prefix(order: NDArray[np.intp], allowed: Bools) -> Proposal:
    """The first n positions of ``order`` for the largest n with ``allowed[n - 1]``; the first if there is none."""
    lengths = np.flatnonzero(allowed) + 1
    if not lengths.size:
        return Proposal(order[:1], "search")
    return Proposal(np.sort(order[: lengths[-1]]), "parallel")
