"""Name what a change of type does to the owner's own scaling policies: which target moves, from what to what, and why.

The figures come from the rule that the change itself follows (`autoscaling/policies.py`), so that what is promised is
done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rightsizer.autoscaling import policies as scaling
from rightsizer.domain.endpoint import Endpoint, ScalableTarget
from rightsizer.domain.option import Option
from rightsizer.domain.recommendation import Recommendation

TRACKING = "TargetTrackingScalingPolicyConfiguration"


def with_policies(found: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The judgement with re-targeted policies named in each option of another type. Total."""
    mine = tuple(t for t in endpoint.scaling if any(t.policies))
    if not mine:
        return found
    return replace(found, options=tuple(_named(option, found, mine) for option in found.options))


def with_targets_left(found: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The judgement with the scaling policies whose targets it left alone, each under what was not checked."""
    left = tuple(_left(policy) for target in endpoint.scaling for policy in target.policies)
    return replace(found, not_checked=(*found.not_checked, *left)) if left else found


def _left(policy: Mapping[str, Any]) -> str:
    """A target is not moved while the type stays (decision 33)."""
    name, config = policy.get("PolicyName", ""), policy.get(TRACKING)
    if not config:
        return f"other steps of the scaling policy {name}: they stay as they are"
    now = f"{_metric(config)} {config.get('TargetValue', 0):g}"
    return f"another target of the scaling policy {name} ({now}) on the type that runs: it was left alone"


def _named(option: Option, found: Recommendation, mine: Sequence[ScalableTarget]) -> Option:
    count = option.target.instance_count
    if not option.in_place or option.target.instance_type == found.instance_type or count < 1:
        return option
    capacity = scaling.Capacity(max(1, found.instance_count), count)
    after = scaling.retarget(mine, option.target, capacity)
    pairs = [(p, q) for t, u in zip(mine, after, strict=True) for p, q in zip(t.policies, u.policies, strict=True)]
    ratio = option.target.per_instance or capacity.per_instance
    said = [_sentence(old, new, ratio, option.target.instance_type) for old, new in pairs]
    facts = {f"Scaling policy {old.get('PolicyName', '')}": line for (old, _), line in zip(pairs, said, strict=True)}
    moved = [new[TRACKING]["TargetValue"] for old, new in pairs if old != new]
    value = moved[0] if len(moved) == 1 else option.target.target_value
    notes = tuple(f"{name}: {line}" for name, line in facts.items())
    target = replace(option.target, target_value=value)
    return replace(option, target=target, facts={**option.facts, **facts}, notes=(*option.notes, *notes))


def _sentence(old: Mapping[str, Any], new: Mapping[str, Any], ratio: float, candidate: str) -> str:
    config = old.get(TRACKING)
    if not config:
        return "no target: its steps and alarms stay as they are"
    metric = _metric(config)
    before, after = config["TargetValue"], new[TRACKING]["TargetValue"]
    if old == new:
        return f"{metric} stays at {before:g}"
    return f"{metric} {before:g} becomes {after:g}: one {candidate} serves {ratio:.2f} of what one does today"


def _metric(config: Mapping[str, Any]) -> str:
    predefined = config.get("PredefinedMetricSpecification") or {}
    custom = config.get("CustomizedMetricSpecification") or {}
    return str(predefined.get("PredefinedMetricType") or custom.get("MetricName") or "its own metric")
