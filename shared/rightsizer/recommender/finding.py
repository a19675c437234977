"""The finding: too little data, idle, or under-provisioned.

Otherwise over-provisioned or right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.domain.demand import Demand, Latency, MemoryClass, MemoryNeed, RefusedShares
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import Accelerator, InstanceType
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason, seconds_text
from rightsizer.domain.usage import BIN, DailyUsage, busy_days

SEVERE = 0.05
"""Excess share from which the last good configuration comes back whatever else could be done."""
UNUSUAL = 0.1
"""Excess as a share of the usual one up to which days merely differ."""
MUCH = 1.25
"""p95 over the objective at which it is missed by more than the noise of a few days."""
REFUSED, CALLERS_ERR, RISES = 0.05, 0.01, 3.0
"""Shares of 4XX answers beyond callers' mistakes, at all hours and in busy ones, and how many times that of quiet hours
tells of too little capacity; assumptions. CloudWatch does not tell 429 (too many requests) from other 4XX."""
IDLE_GPU_MEAN = 0.05
"""Mean share of a GPU up to which work without any request is a blink; an assumption."""


def too_little_data_reason(
    endpoint: Endpoint, demand: Demand, policy: Policy, chip: Accelerator | None = None
) -> Reason | None:
    """Why the datapoints do not allow a recommendation, or None. Missing is unknown, never idle (law 1).

    `chip` is the accelerator of its instances. CloudWatch shows the use of GPUs, and nothing of a chip by AWS
    (SageMaker guide, monitoring with CloudWatch).
    """
    if endpoint.status != "InService":
        return Reason(Code.NOT_IN_SERVICE, f"its status is {endpoint.status}; only InService endpoints are judged")
    if demand.gpu_mean is None:
        if demand.silent_days >= policy.idle_days and demand.requests <= 0:
            return None  # CloudWatch shows nothing of an Inferentia or Trainium chip; that nobody calls it is known
        return Reason(
            Code.NO_GPU_METRICS,
            f"CloudWatch publishes no utilisation of the {chip.model} chip, so low use cannot be seen"
            if chip is not None and chip.vendor == "AWS"
            else f"no GPU utilisation was published in {demand.days:.1f} days; low use cannot be told from no data",
        )
    if demand.uncounted and demand.requests <= 0 and EndpointKind.ASYNC not in endpoint.kinds:
        text = "requests were answered (ModelLatency was published), and CloudWatch has no count of them (Invocations)"
        return Reason(Code.TOO_FEW_REQUESTS, f"{text}: how many came is not known")
    if demand.days < 0.5:
        return Reason(
            Code.TOO_FEW_DAYS, f"only {24 * demand.days:.0f} hours of datapoints since its configuration changed"
        )
    if demand.days >= 1 and demand.valid_share < policy.valid_share:
        return Reason(
            Code.TOO_MANY_GAPS,
            f"{100 * demand.valid_share:.0f} % of the periods have GPU datapoints,"
            f" {100 * policy.valid_share:.0f} % are needed",
        )
    return None


def idle_reason(endpoint: Endpoint, demand: Demand, policy: Policy) -> Reason | None:
    """The proof that the first variant is idle, or None: utilisation datapoints and no request.

    A GPU that blinks proves no caller: one that publishes its requests is idle with a mean of `IDLE_GPU_MEAN` at most.
    A queue's requests are not counted, so its GPU must not work at all.
    """
    if EndpointKind.ASYNC in endpoint.kinds and demand.backlog != 0:
        return None  # asynchronous endpoints publish no Invocations: only an empty backlog proves idleness
    if demand.silent_days < policy.idle_days or demand.requests > 0:
        return None
    peak, mean = demand.gpu_peak or 0.0, demand.gpu_mean or 0.0
    works = peak > policy.cpu_class_share
    if works and (EndpointKind.ASYNC in endpoint.kinds or mean > IDLE_GPU_MEAN):
        return None
    if demand.gpu_mean is None:
        text = f"no request for {demand.told_silent_days} days while the utilisation of its host was published"
        return Reason(Code.IDLE, f"{text}; CloudWatch shows nothing of its chips")
    blinks = f", {100 * mean:.1f} % on average: whatever works there, nobody called it" if works else ""
    return Reason(
        Code.IDLE,
        f"no request for {demand.told_silent_days} days while utilisation was published"
        f" ({100 * demand.valid_share:.0f} % of the periods), GPU at most {100 * peak:.1f} %{blinks}",
    )


def unexplained_work(demand: Demand, policy: Policy) -> str:
    """The open question of an idle endpoint whose GPU works; empty where it does not."""
    if (demand.gpu_peak or 0.0) <= policy.cpu_class_share:
        return ""
    return f"what its GPU works at without a request (up to {100 * (demand.gpu_peak or 0.0):.1f} %)"


@dataclass(frozen=True, slots=True)
class LatencyDegradation:
    """Requests over the objective since our own last change, beyond the usual."""

    reason: Reason
    is_severe: bool
    """Whether the last good configuration must come back at once, instead of a little more room."""


def latency_degradation(
    days: Sequence[DailyUsage], objective: LatencyObjective, baseline: float, policy: Policy, uneven: float = 1.0
) -> LatencyDegradation | None:
    """Evidence that our own last change hurts, or None.

    Days differ: an excess counts from twice the allowed share, a tenth of the usual share, or two standard
    deviations of the count, whichever is largest; where a count is allowed, from two standard deviations beyond it.
    `uneven` is the variance of the usual days' counts over that of single requests that are late by chance. What is
    severe counts however much days differ.
    """
    bins: dict[int, float] = {}
    for usage in days:
        for index, weight in usage.latency:
            bins[index] = bins.get(index, 0.0) + weight
    total = sum(bins.values())
    late = sum(weight for index, weight in bins.items() if BIN**index / 1000 > objective.p95_s)
    excess = late - baseline * total
    noise = 2 * math.sqrt(max(baseline * total, 1.0))
    noise = max(noise, min(noise * math.sqrt(uneven), SEVERE * total))
    may = policy.late_allowed(
        policy.late_budget, objective.declared, baseline, total, len({d.day for d in busy_days(days)})
    )
    few = may * total + 2 * math.sqrt(max(may * total, 1.0)) if may > policy.late_budget else 0.0
    if total < 20 or excess <= max(2 * policy.late_budget * total, UNUSUAL * baseline * total, noise, few):
        return None
    reason = Reason(
        Code.UNDER_PROVISIONED,
        f"since the last change {late:.0f} of {total:.0f} requests took longer than {seconds_text(objective.p95_s)},"
        f" before it {100 * baseline:.1f} %",
    )
    return LatencyDegradation(reason, excess > SEVERE * total)


def late_budget_multiple(
    days: Sequence[DailyUsage], objective: LatencyObjective, baseline: float, policy: Policy
) -> float:
    """Requests over the objective on these days beyond the usual, as a multiple of those that `policy` allows.

    An error budget: 1 is all of it. 0 when no latency is known; negative on days that were better than usual. What is
    allowed of few requests is that of a week from the first day on.
    """
    known = [(index, weight) for d in days for index, weight in d.latency]
    total = sum(weight for _, weight in known)
    late = sum(weight for index, weight in known if BIN**index / 1000 > objective.p95_s)
    dates = max(len({d.day for d in busy_days(days)}), 7)
    may = policy.late_allowed(policy.late_budget, objective.declared, baseline, total, dates)
    return (late - baseline * total) / (may * total) if total > 0 else 0.0


def outgrown_reason(runs: InstanceType, reference: InstanceType, memory: MemoryNeed) -> Reason | None:
    """Evidence that the smaller card we moved to is too small for what the memory grew to."""
    usable = runs.accelerator.usable_gib if runs.accelerator else 0.0
    had = reference.accelerator.usable_gib if reference.accelerator else 0.0
    if memory.need_gib is None or usable >= had or memory.need_gib <= usable:
        return None
    if memory.kind is MemoryClass.PREALLOCATED:
        return None  # a full pool makes requests wait, which late requests tell
    return Reason(
        Code.UNDER_PROVISIONED,
        f"GPU memory grew to {memory.peak_gib:.1f} GiB ({memory.need_gib:.1f} GiB with room to grow), {runs.name} has"
        f" {usable:.1f} GiB: the last good configuration comes back",
    )


def too_late_reason(
    demand: Demand, latency: Latency, objective: LatencyObjective, policy: Policy, instances: float
) -> Reason | None:
    """Evidence that users wait now for want of capacity or speed, or None.

    A p95 a little above the objective while most workers are free is no want of capacity: more of the same would not
    help.
    """
    load = demand.load.peak_rate * latency.mean_s / max(instances, 1.0)
    around = objective.overhead_s
    short = load > policy.rho_one or latency.p95_s + around > MUCH * (objective.p95_s + around)
    if not objective.declared or latency.p95_s <= objective.p95_s or not short:
        return None
    may = f"the objective of {seconds_text(objective.p95_s)} ({objective.source})"
    own = " of the model" if around else ""
    return Reason(Code.UNDER_PROVISIONED, f"p95{own} is {seconds_text(latency.p95_s)}, above {may}")


def busy_and_failing_reason(demand: Demand, objective: LatencyObjective, policy: Policy) -> Reason | None:
    """Evidence that requests fail now for want of capacity, or None.

    High utilisation alone proves nothing: a duty cycle of 99 % can be 33 to 50 % of the cores.
    """
    allowed = policy.error_share if objective.error_share is None else objective.error_share
    if demand.error_share <= allowed or (demand.gpu_peak or 0) <= 0.95:
        return None
    return Reason(
        Code.UNDER_PROVISIONED,
        f"{100 * demand.error_share:.2f} % of the requests failed ({100 * allowed:g} % are allowed) while the GPU"
        f" was {100 * (demand.gpu_peak or 0):.0f} % busy",
    )


def _refuses_when_busy(refused: RefusedShares, allowed: float) -> bool:
    return (
        refused.quiet is not None and refused.busy > max(allowed, CALLERS_ERR) and refused.busy >= RISES * refused.quiet
    )


def refused_text(refused: RefusedShares, allowed: float) -> str:
    """Sentence on 4XX answers as a sign of too little capacity; empty where they are as few as callers' mistakes."""
    if _refuses_when_busy(refused, allowed):
        return (
            f"{100 * refused.busy:.1f} % of its requests get a 4XX answer in busy hours,"
            f" {100 * (refused.quiet or 0.0):.1f} % at other times: its server may refuse what it cannot serve (429)"
        )
    if refused.of_all > max(allowed, REFUSED):
        return (
            f"{100 * refused.of_all:.1f} % of its requests get a 4XX answer; CloudWatch does not tell whether callers"
            " err or its server refuses what it cannot serve (429)"
        )
    return ""


def busy_and_refusing_reason(
    demand: Demand, latency: Latency, objective: LatencyObjective, policy: Policy, instances: float
) -> Reason | None:
    """Evidence that a busy fleet refuses requests for want of capacity, or None."""
    allowed = policy.error_share if objective.error_share is None else objective.error_share
    load = demand.load.peak_rate * latency.mean_s / max(instances, 1.0)
    if load <= policy.rho_one or not _refuses_when_busy(demand.refused, allowed):
        return None
    return Reason(Code.UNDER_PROVISIONED, refused_text(demand.refused, allowed))
