"""Slowdown of a type against the running one: from the datasheet, and from measurements.

Measured were moves and tests of other endpoints, against what the datasheets said
(docs/shadow-tests.md, "What is learnt from it").
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rightsizer.domain.demand import Demand, Latency
from rightsizer.domain.hardware import Accelerator, InstanceType
from rightsizer.domain.history import History, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.domain.usage import CONFORMAL, quantile

TOO_SLOW = ("alarm", "performance")
"""Failures of a type that was too slow, or may have been."""

HALVINGS = 30
"""Steps to a billionth of the widest slowdown."""

type Find = Callable[[str], InstanceType | None]


def expected_slowdown(
    now: Accelerator, candidate: Accelerator, policy: Policy, width: float | None = None, middle: float | None = None
) -> Slowdown:
    """Bound, middle and hopeful slowdown.

    `slowdown_bound` and `slowdown_middle` are the account's own over phi, where it taught them.
    """
    if now.model == candidate.model:
        return Slowdown(1.0, 1.0, 1.0, 1.0, SlowdownSource.SAME)
    ratio = now.phi(candidate)
    bound = ratio * (width or policy.slowdown_bound)
    if ratio <= 1.0:
        bound = min(bound, policy.slowdown_faster)  # faster in both: slower than before in 5 % of the measured moves
    mid, hopeful = min(ratio * (middle or policy.slowdown_mid), bound), min(ratio * policy.slowdown_hopeful, bound)
    return Slowdown(bound, mid, hopeful, ratio, SlowdownSource.LEARNT if width else SlowdownSource.DATASHEET)


def measured_slowdown(now: Accelerator, candidate: Accelerator, ratio: float, error: float) -> Slowdown:
    """A ratio that a test or a change of this endpoint showed, with the `error` of such a measurement."""
    return Slowdown(ratio * (1 + error), ratio, ratio * (1 - error), now.phi(candidate), SlowdownSource.TESTED)


def chance_within(limit: float, ratio: float, seen: Sequence[float] = (), weight: float = 0.0) -> float:
    """Probability that the true slowdown is at most `limit`, by the quantiles of slowdown over phi.

    Those `seen` in the account have that `chance_weight` beside the measured ones of other people's moves.
    """
    if ratio <= 0:
        return 0.0
    own = sum(1 for q in seen if q <= limit / ratio) / len(seen) if seen else 0.0
    return weight * own + (1 - weight) * _prior_share(limit / ratio)


def slowdown_at(chance: float, ratio: float, seen: Sequence[float] = (), weight: float = 0.0) -> float:
    """The slowdown within which the true one is with that `chance`: `chance_within` the other way round, by halving."""
    low, high = 0.0, max(QUANTILES[-1][0], *seen, 0.0) * ratio
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if chance_within(middle, ratio, seen, weight) >= chance else (middle, high)
    return high


def _prior_share(q: float) -> float:
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
"""(slowdown over phi, share of 1,131 measured pairs at or below it); the ends are assumptions."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Latency without waiting on the candidate over today's."""

    mid: float
    bound: float


def host_factor(now: InstanceType, candidate: InstanceType, demand: Demand, shown: float | None = None) -> float:
    """Bound of the factor on latency outside of the GPU, by usable vCPUs, or by all of them.

    What CPU metrics say goes before `shown`, the vCPUs that a test showed to be in use.
    """
    if candidate.vcpu >= now.vcpu:
        return 1.0
    if demand.host_threads is None and shown is None:
        return now.vcpu / candidate.vcpu
    threads = max(demand.host_threads if demand.host_threads is not None else shown or 0.0, 1.0)
    return min(threads, now.vcpu) / min(threads, candidate.vcpu)


def ratio_of(demand: Demand, speed: Slowdown, host: float, measured: float | None, policy: Policy) -> Ratio:
    """Latency ratio from the GPU share and the host factor, or as a test measured it on exactly this type."""
    share = demand.gpu_share
    mid, bound = (1 - share) * host + share * speed.mid, (1 - share) * host + share * speed.bound
    if measured is None:
        return Ratio(mid, bound)
    if speed.source.is_measured and host <= 1:
        middle = (mid + measured) / 2  # two measurements of the same; with fewer vCPUs the host's part is only a bound
        return Ratio(middle, middle * (1 + policy.measured_error))
    return Ratio(measured, measured * (1 + policy.measured_error))


def allowed_gpu_slowdown(demand: Demand, host: float, allowed_slowdown: float) -> float:
    """The slowdown of the GPU part at which the latency grows by `allowed_slowdown`."""
    share = demand.gpu_share
    return max((allowed_slowdown - (1 - share) * host) / share, 0.0) if share > 0 else float("inf")


def workers_of(candidate: InstanceType, now: InstanceType, demand: Demand, latency: Latency) -> int:
    """Requests that one instance serves at once: one for each GPU, or group of GPUs, in use."""
    gpus = max(candidate.accelerator_count, 1)
    used = min(demand.gpus_used or gpus, gpus)
    together = 1
    if demand.gpu_s_per_request and demand.gpu_s_per_request > 1.2 * latency.mean_s:
        together = max(1, min(now.accelerator_count, round(demand.gpu_s_per_request / latency.mean_s)))
    return max(used // together, 1)


def measured_outcomes(history: History, find: Find, framework: str, policy: Policy) -> tuple[float, ...]:
    """Slowdown over phi of the account's moves and tests of a framework, ascending.

    A move to the same chip, or to one that is faster in FLOPS and bandwidth, tells nothing about slower ones. A change
    that went back for its speed before it was measured counts as no quicker than the bound. Endpoints of unknown
    framework have nothing in common.
    """
    seen: list[float] = []
    for past in history.account if framework else ():
        ratio = _phi(find(past.from_type), find(past.to_type))
        if past.framework != framework or ratio <= 1:
            continue
        if past.realised_slowdown is not None:
            seen.append(past.realised_slowdown / ratio)
        elif past.ended is PastEnd.ROLLED_BACK and past.failure in TOO_SLOW:
            seen.append(policy.slowdown_bound)
    return tuple(sorted(seen))


def _phi(old: InstanceType | None, new: InstanceType | None) -> float:
    """The datasheet ratio of two types; 0 where one has no known accelerator."""
    if old is None or new is None or old.accelerator is None or new.accelerator is None:
        return 0.0
    return old.accelerator.phi(new.accelerator)


def chance_weight(seen: Sequence[float], policy: Policy) -> float:
    """How much they count for a chance: from as many on as a conformal bound takes, they alone.

    The prior then only hides what the account knows: of sixty moves that were all too slow it leaves one in sixteen.
    """
    return 1.0 if len(seen) >= CONFORMAL else outcome_weight(seen, policy)


def outcome_weight(seen: Sequence[float], policy: Policy) -> float:
    """How much the account's own outcomes count beside the prior: n / (n + 20) (docs/decisions/0037)."""
    return len(seen) / (len(seen) + policy.shrinkage)


def slowdown_bound(seen: Sequence[float], policy: Policy) -> float:
    """Bound of slowdown over phi: the conformal 97.5 % quantile of the account's `measured_outcomes`, shrunk to the
    prior.

    With too few for such a quantile the worst stands for it, and one of them as at most twice the prior. Nor do they
    say that everything is quicker than its datasheet: what is below 1 is believed bit by bit up to twice as many, or
    the 39th outcome alone would loosen the bound by all of that.
    """
    if not seen:
        return policy.slowdown_bound
    n = len(seen)
    if n >= CONFORMAL:
        own = quantile(seen, min(math.ceil((n + 1) * 0.975) / n, 1.0))
    else:
        own = min(seen[-1], 2 * policy.slowdown_bound)
    own = max(own, min(2 - n / CONFORMAL, 1.0))
    share = outcome_weight(seen, policy)
    return share * own + (1 - share) * policy.slowdown_bound


def slowdown_middle(seen: Sequence[float], policy: Policy) -> float:
    """Middle of slowdown over phi: the median of the account's `measured_outcomes`, shrunk to the prior."""
    if not seen:
        return policy.slowdown_mid
    share = outcome_weight(seen, policy)
    return share * quantile(seen, 0.5) + (1 - share) * policy.slowdown_mid
