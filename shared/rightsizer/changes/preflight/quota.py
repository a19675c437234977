"""Quota check: room for the new fleet, and for both fleets while they overlap.

``ml.X for endpoint usage`` counts the instances of all endpoints of the account and Region (Service Quotas). Only those
of this endpoint are seen here; UpdateEndpoint refuses with ResourceLimitExceeded where others use the rest.
"""

from collections.abc import Iterable

from rightsizer.changes.preflight.consent import is_minimum_raised
from rightsizer.domain.live_state import VariantSight
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason


def quota_refusal(inputs: PreflightInput) -> Reason | None:
    """The green fleet at the largest that its autoscaling may ask for, with other variants of the same type."""
    target = inputs.option.target
    if target.others:
        return _joint_refusal(inputs)
    most = max(target.instance_count, 0 if is_minimum_raised(inputs) else target.maximum or 0, inputs.most)
    beside = _instances(_other_variants(inputs), inputs, target.instance_type)
    limit = _limit(inputs, target.instance_type)
    if target.pools:
        return _pools_refusal(inputs, most)
    if limit is None or limit >= most + beside:
        return _overlap_refusal(inputs)
    text = f"{_quota_name(target.instance_type)} is {limit}; "
    also = f", and other variants of the endpoint run {beside}" if beside else ""
    if max(target.instance_count, target.maximum or 0) + beside <= limit:
        text += f"its autoscaling for the new type could ask for {most} instances{also} and would stop at the quota; "
        return Reason(Code.NO_QUOTA, text + "raise the quota, or lower the maximum")
    return Reason(Code.NO_QUOTA, text + f"the new fleet needs {most} at once{also}")


def unchecked_quota_sentences(inputs: PreflightInput) -> tuple[str, ...]:
    """Limits of the quota check, where a new fleet is started."""
    limit = _limit(inputs, inputs.option.target.instance_type)
    if limit is None or not inputs.deploys:
        return ()
    kind = inputs.option.target.instance_type
    return (f"{_quota_name(kind)} ({limit}) was compared with this endpoint alone: others' instances are not counted",)


def _pools_refusal(inputs: PreflightInput, most: int) -> Reason | None:
    """Pools are tried in turn, so one that holds the fleet is enough."""
    needs = {kind: most + _instances(_other_variants(inputs), inputs, kind) for kind in inputs.option.target.pools}
    short = {kind: limit for kind in needs if (limit := _limit(inputs, kind)) is not None and limit < needs[kind]}
    if len(short) < len(needs):
        return None
    text = ", ".join(f"{_quota_name(kind)} is {limit} and {needs[kind]} are needed" for kind, limit in short.items())
    return Reason(Code.NO_QUOTA, f"no pool could hold the fleet: {text}")


def _joint_refusal(inputs: PreflightInput) -> Reason | None:
    """A deployment of several variants never rolls: every fleet starts anew while the old one runs."""
    target, types = inputs.option.target, _types(inputs)
    wanted = {inputs.proposal.recommendation.variant: (target.instance_type, target.instance_count)}
    wanted |= {one.name: (one.instance_type, one.instance_count) for one in target.others}
    green: dict[str, int] = {}
    for variant in inputs.endpoint.variants:
        kind, count = wanted.get(variant.name, (types.get(variant.name, ""), variant.desired_count))
        green[kind] = green.get(kind, 0) + count
    for kind, new in green.items():
        limit, blue = _limit(inputs, kind), _instances(inputs.endpoint.variants, inputs, kind)
        if limit is not None and blue + new > limit:
            text = f"{_quota_name(kind)} is {limit}; while the old and the new fleets overlap, {blue} and {new} "
            return Reason(Code.NO_QUOTA, f"{text}run at once")
    return None


def _overlap_refusal(inputs: PreflightInput) -> Reason | None:
    """Both fleets run at once unless the deployment can roll: one variant, two instances or more before and after."""
    variants, target = inputs.endpoint.variants, inputs.option.target
    if not inputs.deploys or inputs.is_shadow_test:
        return None
    if len(variants) == 1 and min(variants[0].desired_count, target.instance_count) >= 2:
        return _batch_refusal(inputs)
    types = _types(inputs)
    for kind in dict.fromkeys((target.instance_type, *(types.get(v.name, "") for v in _other_variants(inputs)))):
        blue = _instances(variants, inputs, kind)
        green = _instances(_other_variants(inputs), inputs, kind) + (
            target.instance_count if kind == target.instance_type else 0
        )
        limit = _limit(inputs, kind)
        if limit is not None and blue + green > limit:
            text = (
                f"{_quota_name(kind)} is {limit}; while the old and the new fleet overlap, {blue} and "
                f"{green} run at once"
            )
            return Reason(Code.NO_QUOTA, text)
    return None


def _batch_refusal(inputs: PreflightInput) -> Reason | None:
    """A deployment that rolls needs room for a batch, forward and back; each is 5 % of the instances at least.

    Source: RollingUpdatePolicy.MaximumBatchSize.
    """
    kind, count = inputs.option.target.instance_type, inputs.option.target.instance_count
    running, limit = _instances(inputs.endpoint.variants, inputs, kind), _limit(inputs, kind)
    batch = -(-max(running, count) // 20)
    if limit is None or running + min(batch, count) <= limit:
        return None
    text = (
        f"{_quota_name(kind)} is {limit} and the endpoint runs {running} of them; a deployment that replaces them in "
    )
    return Reason(Code.NO_QUOTA, text + f"batches needs room for {batch} more, to go and to come back")


def _other_variants(inputs: PreflightInput) -> tuple[VariantSight, ...]:
    return tuple(v for v in inputs.endpoint.variants if v.name != inputs.proposal.recommendation.variant)


def _instances(variants: Iterable[VariantSight], inputs: PreflightInput, kind: str) -> int:
    types = _types(inputs)
    return sum(max(v.desired_count, v.current_count) for v in variants if types.get(v.name) == kind)


def _types(inputs: PreflightInput) -> dict[str, str]:
    rows = inputs.config.body.get("ProductionVariants", []) if inputs.config else []
    return {row["VariantName"]: row.get("InstanceType", "") for row in rows}


def _limit(inputs: PreflightInput, kind: str) -> int | None:
    return inputs.quotas.get(kind, inputs.quota if kind == inputs.option.target.instance_type else None)


def _quota_name(kind: str) -> str:
    return f"the quota 'ml.{kind.removeprefix('ml.')} for endpoint usage'"
