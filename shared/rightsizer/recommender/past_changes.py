"""Lessons of past tests and changes about a candidate type."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import DailyUsage


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


type Find = Callable[[str], InstanceType | None]

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
