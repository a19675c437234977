"""Slowdown of a type against the running one: from the datasheet, and from past tests and changes."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.demand import Demand, Latency
from rightsizer.domain.hardware import Accelerator, InstanceType
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.domain.usage import CONFORMAL, DailyUsage, quantile

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
    """Weight of the seen slowdowns for a chance, 0..1: 1 from as many on as a conformal bound takes.

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


@dataclass(frozen=True, slots=True)
class Lesson:
    """Known facts about one candidate on this endpoint."""

    gpu_ratio: float | None = None
    """Measured slowdown of the GPU part on this accelerator."""
    latency_ratio: float | None = None
    """Measured ratio of the mean latency on exactly this type."""
    started: bool = False
    """A test or change showed that the model starts and runs on this accelerator."""
    refuted: PastChange | None = None
    too_small_gib: float = 0.0
    """The model did not fit a card with this much usable memory."""
    other_q: float | None = None
    """Slowdown over phi as measured on another accelerator of the same endpoint."""
    served: bool = False
    """The GPU ratio comes from production requests on this accelerator, not from a test."""


@dataclass(frozen=True, slots=True)
class MeasuredType:
    """How a type that served production compares with the reference type."""

    gpu: float
    """GPU seconds of a request over those on the reference type."""
    latency: float
    """Latency without waiting over that on the reference type."""


STOOD = frozenset({PastEnd.PROVEN, PastEnd.APPLIED})
LEFT = "left"
"""Failure of a type that ran, and was left again for the one before."""
FALSE_ALARM = 1.05
"""Median latency ratio up to which a roll-back by alarm was not the new type's fault."""


def with_failed_starts(history: History, model: str) -> History:
    """The history with what the account knows of this model: failed starts belong to a model and a type.

    Those of other endpoints with the model count, own ones of a model that is not served any more do not.
    """
    own = [p for p in history.endpoint if not (p.has_failed_start and p.is_of_another_model(model))]
    others = [p for p in history.account if p.has_failed_start and model and model in p.models]
    return replace(history, endpoint=tuple(sorted((*own, *others), key=lambda past: past.at)))


def with_left_types(history: History, price_of: Callable[[str], Decimal | None]) -> History:
    """The history in which a fleet that a later change left for the type before counts as failed.

    Only a cheaper fleet counts.

    Two types do not take turns: a slower one rests at once, one that is no slower the second time.
    """
    past = list(history.endpoint)
    for index, change in enumerate(past):
        left = _replaced_change(change, past[index + 1 :])
        if left is not None and _is_cheaper(change, price_of):
            past[index] = replace(change, at=left.at, ended=PastEnd.ROLLED_BACK, failure=LEFT)
    return replace(history, endpoint=tuple(sorted(past, key=lambda p: p.at)))


def _replaced_change(change: PastChange, later: Sequence[PastChange]) -> PastChange | None:
    """The change by which the type was left for the one before; None where it still runs, or was left otherwise."""
    if change.ended not in STOOD or change.from_type == change.to_type:
        return None
    for past in later:
        if past.ended in STOOD and past.from_type != past.to_type:
            gone = past.from_type == change.to_type and past.to_type == change.from_type
            return past if gone else None
    return None


def _is_cheaper(change: PastChange, price_of: Callable[[str], Decimal | None]) -> bool:
    """Whether it led to a fleet that costs less by the hour; no where a price is not known."""
    new, old = price_of(change.to_type), price_of(change.from_type)
    if new is None or old is None:
        return False
    return float(new) * (change.mean_instances or change.to_count) < float(old) * change.from_count


def host_threads(history: History, reference: InstanceType, find: Find, share: float) -> float | None:
    """vCPUs that the host's part uses, as tests on the same accelerator with fewer vCPUs showed; None without one."""
    for past in reversed(history.endpoint):
        target = find(past.to_type)
        if target is None or target.accelerator is None or reference.accelerator is None or not past.latency_ratio:
            continue
        if target.accelerator.model != reference.accelerator.model or share >= 0.95 or target.vcpu >= reference.vcpu:
            continue
        factor = (past.latency_ratio - share) / (1 - share)
        return max(target.vcpu * factor, 1.0) if factor > 1.15 else float(target.vcpu)
    return None


def gpu_ratios(days: Sequence[DailyUsage], base: Sequence[DailyUsage], least: float) -> Mapping[str, float]:
    """GPU seconds of a request on each type that ran, over those of the `base` days; types with `least` requests.

    What serves is measured: no test says as much as thousands of production requests.
    """
    others = {d.instance_type for d in days} - {d.instance_type for d in base}
    baseline = _gpu_seconds_each(base, least) if others else None
    if baseline is None:
        return {}
    found: dict[str, float] = {}
    for name in others:
        there = _gpu_seconds_each([d for d in days if d.instance_type == name], least)
        if there is not None:
            found[name] = there / baseline
    return found


def _gpu_seconds_each(days: Sequence[DailyUsage], least: float) -> float | None:
    """GPU seconds of a request on these days; None with fewer than `least` requests that tell."""
    work = calls = 0.0
    for usage in days:
        for busy, count in zip(usage.busy_s, usage.requests, strict=True):
            if busy is not None and count is not None:
                work += busy
                calls += count
    return work / calls if calls >= least and work > 0 else None


def learn_about(
    history: History,
    reference: InstanceType,
    candidate: InstanceType,
    find: Find,
    phi_of: Callable[[InstanceType], float],
    links: Mapping[str, MeasuredType] | None = None,
) -> Lesson:
    """Everything the endpoint's own past says about `candidate`; ratios are against `reference`.

    A test on another type than the reference counts through `links`, by type that served production.
    """
    links = links or {}
    gpu = latency = other = None
    started, refuted, small = False, None, 0.0
    for past in history.endpoint:
        target = find(past.to_type)
        source = find(past.from_type)
        if target is None or source is None or target.accelerator is None or source.accelerator is None:
            continue
        same_source = reference.accelerator is not None and source.accelerator.model == reference.accelerator.model
        link = links.get(past.from_type, MeasuredType(1.0, 1.0) if same_source else None)
        same_chip = candidate.accelerator is not None and target.accelerator.model == candidate.accelerator.model
        if past.is_refuted and past.failure == "memory":
            small = max(small, target.accelerator.usable_gib)
        elif past.failure == LEFT or not (past.is_refuted or past.is_silent):
            started = started or _is_no_smaller(candidate, target)
        if past.to_type == candidate.name:
            latency = past.latency_ratio * link.latency if past.latency_ratio and link else latency
            refuted = refuted if past.is_silent else (past if past.is_refuted else None)
        if link is None or not past.realised_slowdown:
            continue
        if same_chip:
            gpu = past.realised_slowdown * link.gpu
        elif source.accelerator.phi(target.accelerator) > 1:
            other = past.realised_slowdown * link.gpu / max(phi_of(target), 1e-9)
    here = [link.gpu for name, link in links.items() if _chip(find(name)) == _chip(candidate)]
    return Lesson(here[-1] if here else gpu, latency, started, refuted, small, other, served=bool(here))


def _chip(hardware: InstanceType | None) -> str | None:
    return hardware.accelerator.model if hardware and hardware.accelerator else None


def _is_no_smaller(candidate: InstanceType, target: InstanceType) -> bool:
    """Whether what fitted `target` fits the candidate: as much memory per GPU, as many GPUs."""
    if candidate.accelerator is None or target.accelerator is None:
        return False
    enough = candidate.accelerator.usable_gib >= target.accelerator.usable_gib
    return enough and candidate.accelerator_count >= target.accelerator_count


def rest_until(
    past: PastChange, times: int, demand_now: float | None, policy: Policy, now: datetime
) -> datetime | None:
    """Until when a refuted type rests, or None when it may be tried again. Each failure doubles the rest.

    A quarter less demand lifts it: the failure belonged to another load. A failed start belongs to none.
    """
    if not past.has_failed_start and past.is_outgrown(demand_now, policy.blacklist_demand):
        return None
    until = past.at + timedelta(days=policy.blacklist_days * 2 ** (times - 1))
    return until if now < until else None


def failures(history: Sequence[PastChange], to_type: str) -> int:
    """How often a change or test to the type was refuted."""
    return sum(1 for p in history if p.to_type == to_type and p.is_refuted)
