"""From an approved proposal and a look at the ground to a plan: every step of both directions, made once."""

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes.plan.capacity import bounds_only, by_the_hour, copies_only, count_only, placement_only, to_zero
from rightsizer.changes.plan.config import new_config, scale_in_policy, with_live_count
from rightsizer.changes.plan.fleet import Planned, live, mine, most, unbounded, wanted
from rightsizer.changes.plan.shadow_test import is_test, shadow_test, two_steps, until_the_peak
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import CONFIG_KINDS, ORDERED, OptionKind
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason

__all__ = ["CONFIG_KINDS", "Planned", "make", "most", "until_the_peak", "with_live_count"]


def make(change: Change, ground: Ground, catalogue: Catalogue, limits: ChangeLimits) -> Planned | tuple[Reason, ...]:
    """The plan, or every reason why there is none. The ground has passed preflight."""
    endpoint, config = ground.endpoint, ground.config
    if config is None:
        return (Reason(Code.CONFIGURATION_REPLACED, f"configuration {endpoint.config_name} does not exist any more"),)
    running = live(endpoint, config)
    before = Before(
        endpoint.config_name,
        endpoint.modified_at,
        endpoint.failure_reason,
        running,
        ground.scaling,
        tuple(dict(a) for a in ground.customer_alarms),
        dict(ground.copies),
        dict(ground.tags),
        _routing(config, change.variant),
    )
    if ground.option.kind in ORDERED:
        return _of_components(change, ground, config, before, catalogue, limits)
    unsafe = policies.refusals(ground.scaling, limits.rewire_alarms, ground.customer_alarms)
    if unsafe:
        return unsafe
    if ground.option.kind in CONFIG_KINDS and not is_test(ground):
        unsafe = scheduled_actions.unreadable(ground.scaling)
        if unsafe:
            return unsafe
    if ground.option.kind is OptionKind.DELETE:
        return two_steps(change, ground, config, before, limits)
    if is_test(ground):
        return shadow_test(change, ground, config, before, catalogue, limits)
    alone = unbounded(change, ground)
    if alone:
        return alone
    after = tuple(wanted(v, change, ground) for v in running)
    if ground.option.kind in CONFIG_KINDS:
        return new_config(change, ground, config, before, after, catalogue, limits)
    return _without_a_deployment(change, ground, before, after, limits)


def _routing(config: ConfigSight, variant: str) -> str:
    """How requests find an instance; AWS's default where the configuration says nothing (RoutingConfig)."""
    mine = (v for v in config.body.get("ProductionVariants", []) if v.get("VariantName") == variant)
    set_so = (str((v.get("RoutingConfig") or {}).get("RoutingStrategy") or "") for v in mine)
    return next(set_so, "") or "RANDOM"


def _of_components(
    change: Change, ground: Ground, config: ConfigSight, before: Before, catalogue: Catalogue, limits: ChangeLimits
) -> Planned | tuple[Reason, ...]:
    """Plans that take no autoscaling away."""
    if ground.option.kind is OptionKind.PLACEMENT:
        return placement_only(change, ground, before, limits)
    return scale_in_policy(change, ground, config, before, catalogue, limits)


def _without_a_deployment(
    change: Change,
    ground: Ground,
    before: Before,
    after: tuple[VariantCount, ...],
    limits: ChangeLimits,
) -> Planned | tuple[Reason, ...]:
    kind = ground.option.kind
    if kind is OptionKind.COPIES:
        return copies_only(change, ground, before)
    if kind is OptionKind.INSTANCE_COUNT and mine(ground, change.variant) is None:
        return count_only(change, before, after)
    if kind in (OptionKind.AUTOSCALING, OptionKind.INSTANCE_COUNT):
        return bounds_only(change, ground, before)
    if kind is OptionKind.SCALE_TO_ZERO:
        return to_zero(change, ground, before, limits)
    if kind is OptionKind.SCHEDULE:
        return by_the_hour(change, ground, before)
    return (Reason(Code.NOT_IN_PLACE, f"{ground.option.kind.value} is not carried out by this program"),)
