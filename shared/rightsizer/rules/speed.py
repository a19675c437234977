"""How much slower one accelerator may be than another, from the datasheet and from what was measured."""

import itertools

from rightsizer.model.candidate import Slowdown
from rightsizer.model.hardware import Accelerator
from rightsizer.model.policy import Policy


def phi(now: Accelerator, candidate: Accelerator) -> float:
    """The larger of the FLOPS and the bandwidth ratio; above 1 is slower."""
    return max(now.fp16_tflops / candidate.fp16_tflops, now.memory_bandwidth_gbps / candidate.memory_bandwidth_gbps)


def slowdown(now: Accelerator, candidate: Accelerator, policy: Policy, width: float | None = None) -> Slowdown:
    """Bound, middle and hopeful slowdown. `width` is the account's own bound over phi, where outcomes taught it."""
    if now.model == candidate.model:
        return Slowdown(1.0, 1.0, 1.0, 1.0, "same")
    ratio = phi(now, candidate)
    bound = ratio * (width or policy.slowdown_bound)
    if ratio <= 1.0:
        bound = min(bound, policy.slowdown_faster)  # faster in both: slower than before in 5 % of the measured moves
    mid, hopeful = min(ratio * policy.slowdown_mid, bound), min(ratio * policy.slowdown_hopeful, bound)
    return Slowdown(bound, mid, hopeful, ratio, "learnt" if width else "datasheet")


def measured(now: Accelerator, candidate: Accelerator, ratio: float, error: float) -> Slowdown:
    """A ratio that a test or a change of this endpoint showed, with the `error` of such a measurement."""
    return Slowdown(ratio * (1 + error), ratio, ratio * (1 - error), phi(now, candidate), "tested")


def chance(limit: float, ratio: float) -> float:
    """Probability that the true slowdown is at most `limit`, by the measured quantiles of slowdown over phi."""
    if ratio <= 0:
        return 0.0
    q = limit / ratio
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
