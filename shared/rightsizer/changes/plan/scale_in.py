"""The scale-in policy of managed instance scaling as a plan: a clone with that one property, deployed as any other.

SageMaker moves the instances of such a variant with the copies on it, so counts are nobody's here: both deployments
keep the ones that are live, and autoscaling of the copies stays registered. Source: RetainAllVariantProperties of
UpdateEndpoint; ManagedInstanceScaling is a part of the configuration, which cannot be changed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rightsizer.changes import clone
from rightsizer.changes.plan.config import chosen_guardrail, keeping_counts, watching
from rightsizer.changes.plan.planned import Planned
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Target
from rightsizer.domain.plan import Before
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason


def scale_in_policy(
    change: Change, ground: Ground, config: ConfigSight, before: Before, catalogue: Catalogue, limits: ChangeLimits
) -> Planned | tuple[Reason, ...]:
    """The plan, or every reason why there is none."""
    target, tags = Target("", 0, scale_in=change.option.target.scale_in), {clone.CHANGE_TAG: change.id}
    if target.scale_in is None:
        return (Reason(Code.NOT_APPLICABLE, f"no scale-in policy is asked for on {change.ref.name}"),)
    new = clone.clone(config, clone.as_written(config), target, catalogue, tags, ground.endpoint.capture_stopped)
    if not isinstance(new, clone.Clone):
        return new
    if _scaled(new.body) == _scaled(config.body):
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} has the scale-in policy that is asked for"),)
    watched = watching(change, new.name, before.variants, limits)
    names = tuple(step.subject for step in watched)
    guard = chosen_guardrail(change, ground, before, before.variants, names, limits)
    plan = keeping_counts(change, config, before, new, watched, guard, limits)
    return Planned(before, plan, new.notes)


def _scaled(body: Mapping[str, Any]) -> list[Any]:
    """Managed instance scaling of each variant."""
    return [v.get("ManagedInstanceScaling") for v in body["ProductionVariants"]]


def with_live_count(ground: Ground) -> Ground:
    """The ground with an option of as many instances as run now: so many are started beside them."""
    option, name = ground.option, ground.proposal.recommendation.variant
    live = max((max(v.current_count, v.desired_count) for v in ground.endpoint.variants if v.name == name), default=0)
    return replace(ground, option=replace(option, target=replace(option.target, instance_count=live)))
