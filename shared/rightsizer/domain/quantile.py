"""Quantiles of plain numbers, one definition for the whole program."""

import math
from collections.abc import Sequence

CONFORMAL = 39
"""Outcomes from which one of them is the 97.5 % quantile of the next one: 39 / 40 (split conformal prediction)."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of ascending values, `share` in 0..1; ValueError when there are none."""
    if not ordered:
        raise ValueError("no values to take a quantile of")
    rank = math.ceil(share * len(ordered) - 1e-9) - 1
    return ordered[min(max(rank, 0), len(ordered) - 1)]


def weighted(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """The quantile of (value, weight) pairs sorted by value; ValueError when the weights add up to nothing."""
    total = sum(weight for _, weight in pairs)
    if total <= 0:
        raise ValueError("no weight to take a quantile of")
    reached = 0.0
    for value, weight in pairs:
        reached += weight
        if reached >= share * total - 1e-9:
            return value
    return pairs[-1][0]
