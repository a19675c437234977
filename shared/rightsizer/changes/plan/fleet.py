"""Fleet of the endpoint before and after a change, before anything is written."""

import math

from rightsizer.autoscaling import policies
from rightsizer.changes.dimension import Approved
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import ConfigSight, EndpointSight
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import VariantCount
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason


def live_counts(endpoint: EndpointSight, config: ConfigSight) -> tuple[VariantCount, ...]:
    """Types from the configuration, counts and weights from what is live: autoscaling and people move them."""
    types = {v["VariantName"]: v.get("InstanceType", "") for v in config.body.get("ProductionVariants", [])}
    return tuple(
        VariantCount(v.name, types.get(v.name, ""), v.desired_count, v.desired_weight) for v in endpoint.variants
    )


def fleet_after(approved: Approved) -> tuple[VariantCount, ...]:
    """Fleet of each variant after the change."""
    return tuple(wanted_count(variant, approved.change, approved.inputs) for variant in approved.before.variants)


def wanted_count(variant: VariantCount, change: Change, inputs: PreflightInput) -> VariantCount:
    """Type and count that a variant shall run.

    An autoscaled fleet keeps the share of its size that is needed at this hour. Where nobody approved the change it has
    its maximum: the deployment takes autoscaling away, and no request may meet fewer than might have run. What restores
    an earlier fleet keeps the share.
    """
    other = next((one for one in change.option.target.others if one.name == variant.name), None)
    if other is not None:
        return VariantCount(variant.name, other.instance_type, other.instance_count, variant.weight)
    if variant.name != change.variant:
        return variant
    target, count = change.option.target, change.option.target.instance_count
    own = target_of_variant(inputs, variant.name)
    if own is not None:
        capacity = capacity_exchange(change, inputs)
        bounds = policies.retarget((own,), target, capacity)[0]
        needed = math.ceil(variant.count * capacity.new / capacity.old - 1e-9)
        decision = inputs.proposal.decision
        if decision is not None and decision.is_automatic and not change.option.restores:
            needed = bounds.maximum
        count = min(max(needed, bounds.minimum, 1), max(bounds.maximum, 1))
    return VariantCount(variant.name, target.instance_type, count, variant.weight)


def missing_autoscaling_reasons(change: Change, inputs: PreflightInput) -> tuple[Reason, ...]:
    """Why an option that grows with its load would not: it counts on autoscaling that the variant does not have.

    It was judged with instances that autoscaling adds, and no policy here is made up for it. The owner's schedule moves
    the bounds of another type as it moved those of today's. Sleeping and added target tracking bring their own
    policies; a restore of what served the load before waits for nothing.
    """
    target, own = change.option.target, target_of_variant(inputs, change.variant)
    scaled = [one.name for one in (*target.others,) if target_of_variant(inputs, one.name) is not None]
    if scaled or (target.others and own is not None):
        names = ", ".join(scaled or [change.variant])
        text = f"{names} of {change.ref.name} is autoscaled since this was decided, and such a variant is changed alone"
        return (Reason(Code.CHANGED_SINCE, text),)
    fixed = max(target.instance_count, *(target.hourly_counts or (0,)))
    moved = target.instance_type != inputs.proposal.recommendation.instance_type
    if own is not None and (own.policies or (moved and own.scheduled)):
        return ()
    if change.option.restores or change.option.kind is OptionKind.SCALE_TO_ZERO:
        return ()
    if (target.maximum or 0) <= fixed or target.metric:
        return ()
    text = f"this counts on autoscaling up to {target.maximum} instances, and variant {change.variant} of "
    text += f"{change.ref.name} is not autoscaled: it would stay at {fixed}"
    return (Reason(Code.CHANGED_SINCE, text),)


def target_of_variant(inputs: PreflightInput, variant: str) -> ScalableTarget | None:
    """The scalable target of the variant; None where it is not autoscaled."""
    return next((t for t in inputs.scaling if t.variant_name == variant), None)


def largest_new_count(change: Change, inputs: PreflightInput) -> int:
    """Instances of another type that autoscaling could ask for after the change; 0 where nothing new is asked for."""
    own, target = target_of_variant(inputs, change.variant), change.option.target
    if own is None or target.instance_type == inputs.proposal.recommendation.instance_type:
        return 0
    exchange = capacity_exchange(change, inputs)
    return policies.retarget((own,), target, exchange)[0].maximum


def capacity_exchange(change: Change, inputs: PreflightInput) -> policies.CapacityExchange:
    """The option serves with its count what the decision's fleet served with its own."""
    old = max(1, inputs.proposal.recommendation.instance_count)
    return policies.CapacityExchange(old, max(1, change.option.target.instance_count))
