"""Whether the account's quota of a type holds what the endpoint will run of it, and both fleets while they overlap.

``ml.X for endpoint usage`` counts the instances of all endpoints of the account and Region (Service Quotas). Only those
of this endpoint are seen here; UpdateEndpoint refuses with ResourceLimitExceeded where others use the rest.
"""

from collections.abc import Iterable

from rightsizer.changes.preflight.consent import given_back
from rightsizer.domain.live_state import VariantSight
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate


def quota(ground: Ground) -> Reason | None:
    """The green fleet at the largest that its autoscaling may ask for, with other variants of the same type."""
    target = ground.option.target
    most = max(target.instance_count, 0 if given_back(ground) else target.maximum or 0, ground.most)
    beside = _instances(_others(ground), ground, target.instance_type)
    limit = _limit(ground, target.instance_type)
    if target.pools:
        return _pools(ground, most)
    if limit is None or limit >= most + beside:
        return _overlap(ground)
    text = f"{_named(target.instance_type)} is {limit}; "
    also = f", and other variants of the endpoint run {beside}" if beside else ""
    if max(target.instance_count, target.maximum or 0) + beside <= limit:
        text += f"its autoscaling for the new type could ask for {most} instances{also} and would stop at the quota; "
        return Reason(Code.NO_QUOTA, text + "raise the quota, or lower the maximum")
    return Reason(Code.NO_QUOTA, text + f"the new fleet needs {most} at once{also}")


def unchecked(ground: Ground) -> tuple[str, ...]:
    """What the check does not say, where a new fleet is started."""
    limit = _limit(ground, ground.option.target.instance_type)
    if limit is None or not ground.deploys:
        return ()
    kind = ground.option.target.instance_type
    return (f"{_named(kind)} ({limit}) was compared with this endpoint alone: others' instances are not counted",)


def _pools(ground: Ground, most: int) -> Reason | None:
    """Pools are tried in turn, so one that holds the fleet is enough."""
    needs = {kind: most + _instances(_others(ground), ground, kind) for kind in ground.option.target.pools}
    short = {kind: limit for kind in needs if (limit := _limit(ground, kind)) is not None and limit < needs[kind]}
    if len(short) < len(needs):
        return None
    said = ", ".join(f"{_named(kind)} is {limit} and {needs[kind]} are needed" for kind, limit in short.items())
    return Reason(Code.NO_QUOTA, f"no pool could hold the fleet: {said}")


def _overlap(ground: Ground) -> Reason | None:
    """Both fleets run at once unless the deployment can roll: one variant, two instances or more before and after."""
    variants, target = ground.endpoint.variants, ground.option.target
    if not ground.deploys or ground.proposal.recommendation.gate is Gate.TEST:
        return None
    if len(variants) == 1 and min(variants[0].desired_count, target.instance_count) >= 2:
        return _no_batch(ground)
    types = _types(ground)
    for kind in dict.fromkeys((target.instance_type, *(types.get(v.name, "") for v in _others(ground)))):
        blue = _instances(variants, ground, kind)
        green = _instances(_others(ground), ground, kind) + (
            target.instance_count if kind == target.instance_type else 0
        )
        limit = _limit(ground, kind)
        if limit is not None and blue + green > limit:
            text = f"{_named(kind)} is {limit}; while the old and the new fleet overlap, {blue} and {green} run at once"
            return Reason(Code.NO_QUOTA, text)
    return None


def _no_batch(ground: Ground) -> Reason | None:
    """A deployment that rolls needs room for a batch, forward and back; each is 5 % of the instances at least.

    Source: RollingUpdatePolicy.MaximumBatchSize.
    """
    kind, count = ground.option.target.instance_type, ground.option.target.instance_count
    running, limit = _instances(ground.endpoint.variants, ground, kind), _limit(ground, kind)
    batch = -(-max(running, count) // 20)
    if limit is None or running + min(batch, count) <= limit:
        return None
    text = f"{_named(kind)} is {limit} and the endpoint runs {running} of them; a deployment that replaces them in "
    return Reason(Code.NO_QUOTA, text + f"batches needs room for {batch} more, to go and to come back")


def _others(ground: Ground) -> tuple[VariantSight, ...]:
    return tuple(v for v in ground.endpoint.variants if v.name != ground.proposal.recommendation.variant)


def _instances(variants: Iterable[VariantSight], ground: Ground, kind: str) -> int:
    types = _types(ground)
    return sum(max(v.desired_count, v.current_count) for v in variants if types.get(v.name) == kind)


def _types(ground: Ground) -> dict[str, str]:
    rows = ground.config.body.get("ProductionVariants", []) if ground.config else []
    return {row["VariantName"]: row.get("InstanceType", "") for row in rows}


def _limit(ground: Ground, kind: str) -> int | None:
    return ground.quotas.get(kind, ground.quota if kind == ground.option.target.instance_type else None)


def _named(kind: str) -> str:
    return f"the quota 'ml.{kind.removeprefix('ml.')} for endpoint usage'"
