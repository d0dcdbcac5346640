"""Limits that the system keeps for each process. Runs inside the sandbox."""

from __future__ import annotations


def set_limits(limits: list[tuple[str, int, int]]) -> None:
    """Set soft and hard limits by their names in the ``resource`` module; what is already lower stays."""
    import resource
    import sys

    for kind, soft, hard in limits:
        number = getattr(resource, kind, None)
        if number is None:
            continue
        most = resource.getrlimit(number)[1]
        lower = most != resource.RLIM_INFINITY
        try:
            resource.setrlimit(number, (min(soft, most), min(hard, most)) if lower else (soft, hard))
        except (ValueError, OSError):
            if sys.platform.startswith("linux"):
                raise  # elsewhere some limits exist in name only
