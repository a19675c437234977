"""From an approved proposal and a look at the ground to a plan: every step of both directions, made once."""

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes.dimension import Approved, Planned, Planning
from rightsizer.changes.plan.fleet import live, most, unbounded
from rightsizer.changes.plan.shadow_test import is_test, shadow_test, until_the_peak
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import ORDERED
from rightsizer.domain.plan import Before
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason

__all__ = ["Planned", "make", "most", "until_the_peak"]


def make(
    change: Change, ground: Ground, catalogue: Catalogue, limits: ChangeLimits, dimension: Planning
) -> Planned | tuple[Reason, ...]:
    """The plan of a change of that dimension, or every reason why there is none. The ground has passed preflight."""
    endpoint, config = ground.endpoint, ground.config
    if config is None:
        return (Reason(Code.CONFIGURATION_REPLACED, f"configuration {endpoint.config_name} does not exist any more"),)
    before = Before(
        endpoint.config_name,
        endpoint.modified_at,
        endpoint.failure_reason,
        live(endpoint, config),
        ground.scaling,
        tuple(dict(a) for a in ground.customer_alarms),
        dict(ground.copies),
        dict(ground.tags),
        _routing(config, change.variant),
    )
    given = Approved(change, ground, config, before, catalogue, limits)
    if ground.option.kind in ORDERED:  # takes no autoscaling away
        return dimension.plan(given)
    unsafe = policies.refusals(ground.scaling, limits.rewire_alarms, ground.customer_alarms)
    if not unsafe and ground.deploys and not is_test(ground):
        unsafe = scheduled_actions.unreadable(ground.scaling)
    if unsafe:
        return unsafe
    if is_test(ground):
        return shadow_test(given)
    return unbounded(change, ground) or dimension.plan(given)


def _routing(config: ConfigSight, variant: str) -> str:
    """How requests find an instance; AWS's default where the configuration says nothing (RoutingConfig)."""
    mine = (v for v in config.body.get("ProductionVariants", []) if v.get("VariantName") == variant)
    set_so = (str((v.get("RoutingConfig") or {}).get("RoutingStrategy") or "") for v in mine)
    return next(set_so, "") or "RANDOM"
