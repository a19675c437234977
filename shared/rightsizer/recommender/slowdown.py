"""How much slower one accelerator may be than another, from the datasheet and from what was measured."""

import itertools
from collections.abc import Sequence

from rightsizer.domain.hardware import Accelerator
from rightsizer.domain.option import Slowdown
from rightsizer.domain.policy import Policy


def slowdown(
    now: Accelerator, candidate: Accelerator, policy: Policy, width: float | None = None, middle: float | None = None
) -> Slowdown:
    """Bound, middle and hopeful slowdown. `width` and `middle` are the account's own over phi, where it taught them."""
    if now.model == candidate.model:
        return Slowdown(1.0, 1.0, 1.0, 1.0, "same")
    ratio = now.phi(candidate)
    bound = ratio * (width or policy.slowdown_bound)
    if ratio <= 1.0:
        bound = min(bound, policy.slowdown_faster)  # faster in both: slower than before in 5 % of the measured moves
    mid, hopeful = min(ratio * (middle or policy.slowdown_mid), bound), min(ratio * policy.slowdown_hopeful, bound)
    return Slowdown(bound, mid, hopeful, ratio, "learnt" if width else "datasheet")


def measured(now: Accelerator, candidate: Accelerator, ratio: float, error: float) -> Slowdown:
    """A ratio that a test or a change of this endpoint showed, with the `error` of such a measurement."""
    return Slowdown(ratio * (1 + error), ratio, ratio * (1 - error), now.phi(candidate), "tested")


def chance(limit: float, ratio: float, seen: Sequence[float] = (), weight: float = 0.0) -> float:
    """Probability that the true slowdown is at most `limit`, by the quantiles of slowdown over phi.

    Those `seen` in the account have that `weight` beside the measured ones of other people's moves.
    """
    if ratio <= 0:
        return 0.0
    own = sum(1 for q in seen if q <= limit / ratio) / len(seen) if seen else 0.0
    return weight * own + (1 - weight) * _prior(limit / ratio)


def _prior(q: float) -> float:
    """Share of the measured moves with at most this slowdown over phi."""
    for (low, below), (high, above) in itertools.pairwise(QUANTILES):
        if q <= high:
            return below if q <= low else below + (above - below) * (q - low) / (high - low)
    return 1.0


QUANTILES = (
    (0.20, 0.0),
    (0.33, 0.05),
    (0.57, 0.25),
    (0.71, 0.50),
    (0.88, 0.75),
    (1.03, 0.90),
    (1.08, 0.95),
    (1.16, 0.975),
    (1.29, 0.99),
    (1.60, 1.0),
)
"""(slowdown over phi, share of 1,131 measured pairs at or below it): decision.md 4.3; the ends are assumptions."""
