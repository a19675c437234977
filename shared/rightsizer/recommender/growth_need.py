"""Why an endpoint needs more than it runs: late requests, errors, full memory, a long queue, a declared minimum."""

import math
from dataclasses import dataclass
from enum import StrEnum

from rightsizer.domain.demand import MemoryClass
from rightsizer.domain.endpoint import EndpointKind, ScalableTarget
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.finding import busy_and_failing_reason, busy_and_refusing_reason, too_late_reason

QUEUE_S = 3600.0
"""Seconds of work before each instance from which a queue is too long: what one asynchronous request may take at most
(SageMaker guide, Asynchronous inference); after six hours, by default, a request in the queue is lost."""
QUEUE_DAYS = 2
"""Days with such a queue: one alone is a burst, which a queue is there for."""
P95_LATE = 0.05
"""Share of the requests that may be late behind an objective for the p95."""
FULL = 0.97
"""Share of a GPU's memory from which it is full; the proof of a change calls the same bad."""


class NeedKind(StrEnum):
    """Evidence that more is needed."""

    LATE = "late"
    FAILING = "failing"
    MEMORY = "memory"
    QUEUE = "queue"
    MINIMUM = "minimum"


@dataclass(frozen=True, slots=True)
class GrowthNeed:
    """Why more is needed, and the instances that its owner wants at all times."""

    kind: NeedKind
    reason: Reason
    least: int


def growth_need(context: EvaluationContext) -> GrowthNeed | None:
    """Why the endpoint needs more than its owner gave it; None where it does not.

    A fleet that changes of ours made smaller has rules of its own: what was taken comes back.
    """
    least = context.endpoint.objective.min_instances or 1
    if _is_owners_fleet(context):
        for kind, find in (
            (NeedKind.MEMORY, _full_memory_reason),
            (NeedKind.LATE, _late_reason),
            (NeedKind.FAILING, _failing_reason),
            (NeedKind.QUEUE, _queue_reason),
        ):
            if (reason := find(context)) is not None:
                return GrowthNeed(kind, reason, least)
    short = _minimum_reason(context)
    return GrowthNeed(NeedKind.MINIMUM, short, least) if short is not None else None


def todays_count(context: EvaluationContext) -> int:
    """Whole instances that run now."""
    return max(math.ceil(context.instances - 0.01), 1)


def scaled_targets(context: EvaluationContext) -> list[ScalableTarget]:
    """The registrations whose policies set the count."""
    return [target for target in context.endpoint.scaling if target.policies or not target.scheduled]


def _is_owners_fleet(context: EvaluationContext) -> bool:
    """Whether what runs is its owner's: no change of ours is in force, or none that left fewer instances."""
    same = context.runs.name == context.reference.name
    as_many = context.instances >= sum(context.reference_counts) / 24 - 0.01
    return same and not context.is_strained and (as_many or not context.has_active_change)


def _late_reason(context: EvaluationContext) -> Reason | None:
    """Late requests on the fleet that runs now; those of a smaller one before it say nothing about it."""
    instances = sum(context.reference_counts) / 24
    days = context.days
    if not context.endpoint.scaling:
        days = [d for d in days if min((c for c in d.instances if c), default=0.0) > context.instances - 0.5]
    latency = latency_of([d for d in days if d.instance_type == context.runs.name])
    if latency is None:
        return None
    return too_late_reason(context.demand, latency, context.objective, context.policy, instances)


def _failing_reason(context: EvaluationContext) -> Reason | None:
    """Requests fail, or are refused, for want of capacity."""
    failing = busy_and_failing_reason(context.demand, context.objective, context.policy)
    if failing is not None or context.demand.latency is None:
        return failing
    instances = sum(context.reference_counts) / 24
    return busy_and_refusing_reason(
        context.demand, context.demand.latency, context.objective, context.policy, instances
    )


def _full_memory_reason(context: EvaluationContext) -> Reason | None:
    """Requests fail while the GPU memory is full; a server that takes its share of any card is full by design."""
    memory, chip = context.demand.memory, context.runs.accelerator
    declared = context.objective.error_share
    allowed = context.policy.error_share if declared is None else declared
    if memory.kind not in (MemoryClass.STATIC, MemoryClass.ELASTIC) or chip is None:
        return None
    if context.demand.error_share <= allowed or memory.peak_gib < FULL * chip.usable_gib:
        return None
    return Reason(
        Code.UNDER_PROVISIONED,
        f"{100 * context.demand.error_share:.2f} % of the requests failed ({100 * allowed:g} % are allowed) while the"
        f" GPU memory was full: {memory.peak_gib:.1f} of {chip.usable_gib:.1f} GiB",
    )


def _queue_reason(context: EvaluationContext) -> Reason | None:
    """An asynchronous queue held more than an hour of work on several days."""
    if EndpointKind.ASYNC not in context.endpoint.kinds:
        return None
    served_s = context.latency.mean_s / (max(context.instances, 1.0) * context.workers)
    waits = sorted(((d.backlog or 0.0) * served_s, d.backlog or 0.0) for d in context.days)
    long = [held for wait, held in waits if wait > QUEUE_S]
    if len(long) < QUEUE_DAYS:
        return None
    wait, held = waits[-1]
    return Reason(
        Code.UNDER_PROVISIONED,
        f"up to {held:,.0f} requests waited in its queue, {wait / 3600:.1f} h of work for what runs; on {len(long)} of"
        f" {len(waits)} days it held more than {QUEUE_S / 3600:g} h of work",
    )


def _minimum_reason(context: EvaluationContext) -> Reason | None:
    least, scaled = context.endpoint.objective.min_instances, scaled_targets(context)
    if least is None or (context.endpoint.scaling and not scaled):
        return None
    variant = context.variant
    has = min(t.minimum for t in scaled) if scaled else max(variant.current_count, variant.desired_count)
    if has >= least:
        return None
    where = "the minimum of its autoscaling is" if scaled else "it runs"
    return Reason(
        Code.UNDER_PROVISIONED, f"{where} {has}, and the tag rightsizer:min-instances says {least} at all times"
    )
