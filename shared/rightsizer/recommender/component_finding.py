"""Judge each inference component of an endpoint by its own metrics, with the copies that carry its peak."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from rightsizer.domain.component import (
    PER_COPY,
    Component,
    ComponentSight,
    ComponentUsage,
    UnreadComponent,
    copies_refusal,
)
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason, count, seconds_text
from rightsizer.domain.recommendation import ComponentDay, ComponentFinding, Finding
from rightsizer.domain.usage import SLOT_S, SLOTS, MetricStatistic, MetricWindow, NoMetrics, Spread, quantile

USED = ("GPUUtilizationNormalized", "CPUUtilizationNormalized")
"""Utilisation that every copy publishes while it runs: a period with neither is unknown."""


def component_usage(
    sight: ComponentSight, autoscaled: bool, window: MetricWindow | NoMetrics, policy: Policy
) -> ComponentUsage | Reason:
    """The usage of the component; why it is unknown. A window that was read in part is no evidence.

    Copies of one without autoscaling are those of now since it was modified last: what is older is left out.
    """
    if isinstance(window, NoMetrics):
        return window.reason
    if window.notes:
        return window.notes[0]
    size = round((window.end - window.start).total_seconds() / SLOT_S)
    since = sight.modified_at + timedelta(minutes=policy.mask_minutes)
    first = 0 if autoscaled else min(size, max(0, math.ceil((since - window.start).total_seconds() / SLOT_S)))

    def values(metric: str, statistic: str) -> list[float]:
        series = window.series.get(MetricStatistic(metric, statistic))
        return series.cut(window.start, size)[first:] if series is not None else [math.nan] * (size - first)

    busy = [values(metric, "Average") for metric in USED]
    alive = [any(v == v for v in slot) for slot in zip(*busy, strict=True)]
    if not any(alive):
        text = f"CloudWatch has no utilisation of component {sight.name}; that is unknown, not idle"
        return Reason(Code.NO_DATAPOINTS, text)
    began = alive.index(True)
    called = values("Invocations", "Sum")[began:]
    calls = _known(called)
    peaks = _known(values("ConcurrentRequestsPerCopy", "Maximum")[began:])
    latencies = sorted(_known(values("ModelLatency", "p95")[began:]))
    whole = [values(metric, "Maximum") for metric in ("GPUMemoryUtilizationNormalized", "MemoryUtilizationNormalized")]
    return ComponentUsage(
        days=round(len(alive[began:]) / SLOTS, 2),
        valid_share=round(sum(alive) / len(alive[began:]), 4),
        requests=sum(calls),
        requests_per_copy=max(calls, default=0.0) / max(sight.current, 1) / (SLOT_S / 60),
        concurrency=max(peaks, default=None),
        without_capacity=sum(_known(values("NoCapacityInvocationFailures", "Sum")[began:])),
        p95_s=quantile(latencies, 0.95) / 1e6 if latencies else None,
        gpu=Spread.from_values(busy[0], values(USED[0], "Maximum"), 1.0),
        gpu_memory=Spread.from_values(whole[0], whole[0], 1.0),
        cpu=Spread.from_values(busy[1], values(USED[1], "Maximum"), 1.0),
        memory=Spread.from_values(whole[1], whole[1], 1.0),
        most_copies=_most_copies(called, values(PER_COPY.metric, PER_COPY.statistic)[began:]) if autoscaled else None,
        by_day=tuple(_days(window.start + timedelta(seconds=SLOT_S * (first + began)), called, busy[0][began:], alive)),
    )


def _days(
    start: datetime, called: Sequence[float], gpu: Sequence[float], alive: Sequence[bool]
) -> Iterator[ComponentDay]:
    """Calls and mean use of the GPU on each day in UTC; the values begin at `start`, `alive` ends with them."""
    slots = zip(called, gpu, alive[-len(called) :], strict=True)
    dated = (((start + timedelta(seconds=SLOT_S * n)).date(), slot) for n, slot in enumerate(slots))
    for day, rows in groupby(dated, key=lambda row: row[0]):
        found = [slot for _, slot in rows]
        used = _known([share for _, share, _ in found])
        requests = sum(_known([calls for calls, _, _ in found])) if any(ran for _, _, ran in found) else None
        yield ComponentDay(day, requests, round(sum(used) / len(used) / 100, 4) if used else None)


def _most_copies(calls: list[float], per_copy: list[float]) -> float | None:
    """Most copies that ran in any period with calls; None where one with calls does not show it."""
    rows = [(all_of, each) for all_of, each in zip(calls, per_copy, strict=True) if all_of > 0]
    if not all(each > 0 for _, each in rows):
        return None
    return max((round(all_of / each, 3) for all_of, each in rows), default=None)


def _known(values: list[float]) -> list[float]:
    return [v for v in values if v == v]


SERVING = "InService"
CALLS_PER_COPY = "SageMakerInferenceComponentInvocationsPerCopy"
AT_ONCE_PER_COPY = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
"""Predefined metrics of target tracking on copies."""


def judge_component(
    one: Component | UnreadComponent, region: str, objective: LatencyObjective | None, policy: Policy
) -> ComponentFinding:
    """The finding on one component; what could not be read makes it NotEnoughData, never idle."""
    if isinstance(one, UnreadComponent):
        return ComponentFinding(one.name, None, Finding.NOT_ENOUGH_DATA, one.reason)
    sight, copies = one.sight, one.sight.current
    finding, reason, needed = _finding(one, objective, policy)
    return ComponentFinding(
        sight.name,
        copies,
        finding,
        reason,
        needed=needed,
        base=sight.base_component,
        days=one.usage.days if isinstance(one.usage, ComponentUsage) else 0.0,
        figures=_figures(one),
        advice=_advice(one, finding, region),
        withheld=refused.sentence if (refused := copies_refusal(sight, may_be_untagged=False)) is not None else "",
        minimum=one.scaling.minimum if needed is not None and isinstance(one.scaling, ScalableTarget) else None,
        by_day=one.usage.by_day if isinstance(one.usage, ComponentUsage) else (),
    )


def _finding(
    component: Component, objective: LatencyObjective | None, policy: Policy
) -> tuple[Finding, Reason, int | None]:
    sight, usage = component.sight, component.usage
    if sight.status != SERVING:
        text = f"it is {sight.status}{f': {sight.failure_reason}' if sight.failure_reason else ''}"
        return Finding.NOT_ENOUGH_DATA, Reason(Code.NOT_IN_SERVICE, text), None
    if isinstance(usage, Reason):
        return Finding.NOT_ENOUGH_DATA, usage, None
    if (little := _too_little(component, usage, policy)) is not None:
        return Finding.NOT_ENOUGH_DATA, little, None
    if (short := _shortage(component, usage, objective)) is not None:
        return Finding.UNDER_PROVISIONED, short, None
    return _silent(component, usage, policy) if usage.requests <= 0 else _called(component, usage, policy)


def _called(component: Component, usage: ComponentUsage, policy: Policy) -> tuple[Finding, Reason, int | None]:
    """Requests came: whether fewer copies carry the peak, where its copies are nobody else's to move."""
    sight, copies = component.sight, component.sight.current
    if sight.base_component:
        text = f"{usage.requests:,.0f} requests; it shares the copies of {sight.base_component}"
        return Finding.OPTIMIZED, Reason(Code.ALREADY_RIGHT, text), None
    if copies == 0:
        return Finding.OPTIMIZED, Reason(Code.ALREADY_RIGHT, "no copy of it runs now"), None
    if isinstance(component.scaling, Reason):
        return Finding.NOT_ENOUGH_DATA, component.scaling, None
    if component.scaling is not None:
        return _autoscaled(component, component.scaling, usage, policy)
    needed = needed_copies(component, usage, policy, copies)
    if isinstance(needed, Reason):
        return Finding.OPTIMIZED, needed, None
    if needed < copies:
        text = f"{needed} of its {copies} copies carry its peak with room to grow: {_peak_text(usage)}"
        return Finding.OVER_PROVISIONED, Reason(Code.CHEAPER_OPTION, text), needed
    text = f"its peak takes {count(copies, 'copy', 'copies')}: {_peak_text(usage)}"
    return Finding.OPTIMIZED, Reason(Code.ALREADY_RIGHT, text), copies


def _autoscaled(
    component: Component, scaling: ScalableTarget, usage: ComponentUsage, policy: Policy
) -> tuple[Finding, Reason, int | None]:
    """Whether a lower minimum carries the peak: then its autoscaling holds copies that nobody needs."""
    text = f"autoscaling moves it between {scaling.minimum} and {scaling.maximum} copies"
    least = least_copies(component, scaling, usage, policy)
    if isinstance(least, Reason):
        return Finding.OPTIMIZED, Reason(Code.AUTOSCALED, f"{text}; {least.sentence}"), None
    if least < scaling.minimum:
        found = f"{text}, and a minimum of {least} carries its peak with room to grow: {_peak_text(usage)}"
        return Finding.OVER_PROVISIONED, Reason(Code.CHEAPER_OPTION, found), least
    return Finding.OPTIMIZED, Reason(Code.AUTOSCALED, f"{text}, and its peak takes its minimum"), scaling.minimum


def least_copies(component: Component, scaling: ScalableTarget, usage: ComponentUsage, policy: Policy) -> int | Reason:
    """Minimum of its autoscaling that carries its peak, at least 1; why that is not known."""
    if scaling.minimum < 2:
        return Reason(Code.AUTOSCALED, "its minimum is as low as one that serves can be")
    if scaling.scheduled or any(scaling.suspended.values()):
        said = "scheduled actions move its bounds" if scaling.scheduled else "it is suspended"
        return Reason(Code.AUTOSCALED, f"its minimum is not judged: {said}")
    if component.sight.current != scaling.minimum:
        return Reason(Code.AUTOSCALED, f"its minimum is not judged: {component.sight.current} run now")
    kept = _kept_by_policies(component, scaling, usage)
    if isinstance(kept, Reason) or usage.requests <= 0:
        return kept
    if usage.most_copies is None:
        text = "its minimum is not judged: CloudWatch has no InvocationsPerCopy of it, which shows how many copies ran"
        return Reason(Code.NO_DATAPOINTS, text)
    needed = needed_copies(component, usage, policy, max(usage.most_copies, float(scaling.minimum)))
    if isinstance(needed, Reason):
        return Reason(needed.code, f"its minimum is not judged: {needed.sentence}")
    return max(needed, kept)


def _kept_by_policies(component: Component, scaling: ScalableTarget, usage: ComponentUsage) -> int | Reason:
    """Copies that its target tracking keeps at the peak: a lower minimum frees none of them."""
    kept = 1
    for row in scaling.policies:
        config = row.get("TargetTrackingScalingPolicyConfiguration") or {}
        kind = (config.get("PredefinedMetricSpecification") or {}).get("PredefinedMetricType", "")
        if kind not in (CALLS_PER_COPY, AT_ONCE_PER_COPY) or config.get("DisableScaleIn"):
            text = f"its minimum is not judged: policy {row.get('PolicyName')} takes no copy away, or follows"
            return Reason(Code.AUTOSCALED, f"{text} another metric than the requests of a copy")
        if kind == CALLS_PER_COPY:
            peak = (usage.requests_per_copy or 0.0) * max(component.sight.current, 1)
        else:
            peak = (usage.concurrency or 0.0) * (usage.most_copies or 1)
        kept = max(kept, math.ceil(peak / float(config["TargetValue"]) - 1e-9))
    if not scaling.policies:
        return Reason(Code.AUTOSCALED, "its minimum is not judged: it has no policy that would take a copy away")
    return kept


def copies_that_may_run(components: Sequence[Component]) -> Mapping[str, int] | Reason:
    """The most copies of each component that may run; why that is not known of one."""
    most: dict[str, int] = {}
    for one in components:
        name, usage, scaling = one.sight.name, one.usage, one.scaling
        if one.sight.status != SERVING:
            return Reason(Code.NOT_IN_SERVICE, f"component {name} is {one.sight.status}")
        if isinstance(usage, Reason) or isinstance(scaling, Reason):
            unread = usage if isinstance(usage, Reason) else scaling
            assert isinstance(unread, Reason)
            return Reason(unread.code, f"component {name}: {unread.sentence}")
        most[name] = max(one.sight.desired, one.sight.current, math.ceil(usage.most_copies or 0))
        if scaling is not None:
            later = (row.get("ScalableTargetAction") or {} for row in scaling.scheduled)
            most[name] = max(most[name], scaling.maximum, *(int(action.get("MaxCapacity") or 0) for action in later))
    return most


def _may_sleep(component: Component) -> bool:
    """Whether autoscaling takes its last copy: then pauses have no utilisation, and a call that wakes it fails."""
    return isinstance(component.scaling, ScalableTarget) and component.scaling.minimum == 0


def _too_little(component: Component, usage: ComponentUsage, policy: Policy) -> Reason | None:
    if usage.days < policy.confidence_propose:
        text = f"{usage.days:.1f} days of data since it was changed; a judgement takes {policy.confidence_propose:g}"
        return Reason(Code.TOO_FEW_DAYS, text)
    if usage.valid_share < policy.valid_share and not _may_sleep(component):
        text = f"utilisation was published in {100 * usage.valid_share:.0f} % of the periods"
        return Reason(Code.TOO_MANY_GAPS, f"{text}; a judgement takes {100 * policy.valid_share:g} %")
    return None


def _shortage(component: Component, usage: ComponentUsage, objective: LatencyObjective | None) -> Reason | None:
    """Its model takes longer than the endpoint's declared objective leaves it, or met no copy although it has one."""
    if objective is not None and usage.p95_s is not None and usage.p95_s > objective.p95_s:
        may = f"the objective of {seconds_text(objective.p95_s)} ({objective.source})"
        text = f"its p95 reached {seconds_text(usage.p95_s)}, above {may}"
        return Reason(Code.UNDER_PROVISIONED, text)
    if usage.without_capacity > 0 and component.sight.current > 0 and not _may_sleep(component):
        return Reason(Code.UNDER_PROVISIONED, f"{usage.without_capacity:,.0f} requests failed: no copy was there")
    return None


def _silent(component: Component, usage: ComponentUsage, policy: Policy) -> tuple[Finding, Reason, int | None]:
    """No request came: idle after the silent days that make an endpoint idle; one copy stays, so that calls work."""
    least = policy.idle_days * policy.valid_share
    if usage.days < least:
        text = f"no request in {usage.days:.1f} days; {policy.idle_days} silent days make it idle"
        return Finding.NOT_ENOUGH_DATA, Reason(Code.TOO_FEW_DAYS, text), None
    kept: int | Reason | None = None if component.sight.base_component else min(component.sight.current, 1)
    if component.scaling is not None:
        kept = (
            least_copies(component, component.scaling, usage, policy)
            if isinstance(component.scaling, ScalableTarget)
            else None
        )
    text = f"no request in {usage.days:.1f} days while utilisation was published"
    return Finding.IDLE, Reason(Code.IDLE, text), None if isinstance(kept, Reason) else kept


def needed_copies(component: Component, usage: ComponentUsage, policy: Policy, copies: float) -> int | Reason:
    """Copies that carry the peak of so many with room for growth, at least 1; why that is not known."""
    needs = component.sight.needs
    if usage.concurrency is None:
        text = "CloudWatch has no ConcurrentRequestsPerCopy of it, so how many requests came at once is unknown"
        return Reason(Code.NO_DATAPOINTS, text)
    if needs is not None and needs.accelerators > 0 and usage.gpu is None:
        return Reason(Code.NO_GPU_METRICS, "no GPU utilisation of it was published, and unknown is not idle")
    room = 1 + max(policy.load_small_sample / math.sqrt(max(usage.days, 1.0)), policy.down_with_growth)
    at_once = copies * min(usage.concurrency, 1.0) * room
    busy = copies * room * max((spread.p99 for spread in (usage.gpu, usage.cpu) if spread is not None), default=0.0)
    by_load = 1 if busy <= policy.rho_one else max(2, math.ceil(busy / policy.rho_many - 1e-9))
    return max(1, by_load, math.ceil(at_once - 1e-9))


def _peak_text(usage: ComponentUsage) -> str:
    busiest = max((s.p99 for s in (usage.gpu, usage.cpu) if s is not None), default=0.0)
    return (
        f"at most {usage.concurrency or 0.0:.2f} requests at once in each copy, and 99 % of the time"
        f" {100 * busiest:.0f} % of what it reserved was busy"
    )


def _figures(component: Component) -> Mapping[str, str]:
    """What was measured, and what a copy reserves, for people."""
    found: dict[str, str] = {}
    if (needs := component.sight.needs) is not None:
        parts = (
            (needs.cpu_cores, f"{needs.cpu_cores:g} CPU cores"),
            (needs.accelerators, f"{needs.accelerators:g} accelerator{'' if needs.accelerators == 1 else 's'}"),
            (needs.memory_mb, f"{needs.memory_mb:,.0f} MB of memory"),
        )
        found["a copy reserves"] = ", ".join(text for number, text in parts if number)
    if component.sight.base_component:
        found["adapter of"] = component.sight.base_component
    if isinstance(component.scaling, ScalableTarget):
        found["autoscaling"] = f"{component.scaling.minimum} to {component.scaling.maximum} copies"
    elif isinstance(component.scaling, Reason):
        found["autoscaling"] = f"not read: {component.scaling.sentence}"
    if isinstance(component.usage, Reason):
        return found
    usage = component.usage
    found["requests"] = f"{usage.requests:,.0f} in {usage.days:.1f} days"
    found["busiest five minutes"] = f"{usage.requests_per_copy:,.1f} requests a minute for each copy"
    if usage.concurrency is not None:
        found["at once"] = f"at most {usage.concurrency:.2f} requests in each copy"
    if usage.p95_s is not None:
        found["p95 latency"] = f"{usage.p95_s:.3f} s or less in 95 % of the periods"
    for name, spread in (
        ("GPU", usage.gpu),
        ("GPU memory", usage.gpu_memory),
        ("CPU", usage.cpu),
        ("memory", usage.memory),
    ):
        if spread is not None:
            found[name] = f"{100 * spread.p99:.0f} % (p99) and at most {100 * spread.peak:.0f} % of what it reserved"
    return found


def _advice(component: Component, finding: Finding, region: str) -> str:
    """The command for what is its owner's: no copy of what is idle, a lower minimum of autoscaling."""
    if finding is not Finding.IDLE or component.sight.base_component:
        return ""
    name = component.sight.name
    if isinstance(component.scaling, ScalableTarget):
        line = (
            f"aws application-autoscaling register-scalable-target --region {region} --service-namespace sagemaker"
            f" --resource-id {component.scaling.resource_id} --scalable-dimension {component.scaling.dimension}"
            " --min-capacity 0"
        )
        return f"nothing of it runs where its minimum is 0; calls then fail until a policy starts a copy: {line}"
    line = f"aws sagemaker delete-inference-component --region {region} --inference-component-name {name}"
    return f"delete it where nobody will call it: {line}"
