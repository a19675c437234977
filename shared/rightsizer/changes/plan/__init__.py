"""The plan of a change, made once from the approved proposal and the preflight inputs: the steps forward and back."""

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes.dimension import Approved, PlannedChange, Planning
from rightsizer.changes.plan.fleet import largest_new_count, live_counts, missing_autoscaling_reasons
from rightsizer.changes.plan.shadow_test import peak_deferral, plan_shadow_test
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import ORDERED
from rightsizer.domain.plan import Before
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason

__all__ = ["PlannedChange", "largest_new_count", "make_plan", "peak_deferral"]


def make_plan(
    change: Change, inputs: PreflightInput, catalogue: Catalogue, limits: ChangeLimits, dimension: Planning
) -> PlannedChange | tuple[Reason, ...]:
    """The plan of a change of that dimension, or every reason why there is none. The inputs have passed preflight."""
    endpoint, config = inputs.endpoint, inputs.config
    if config is None:
        return (Reason(Code.CONFIGURATION_REPLACED, f"configuration {endpoint.config_name} does not exist any more"),)
    before = Before(
        endpoint.config_name,
        endpoint.modified_at,
        endpoint.failure_reason,
        live_counts(endpoint, config),
        inputs.scaling,
        tuple(dict(a) for a in inputs.customer_alarms),
        dict(inputs.copies),
        dict(inputs.tags),
        _routing(config, change.variant),
    )
    approved = Approved(change, inputs, config, before, catalogue, limits)
    if inputs.option.kind in ORDERED:  # takes no autoscaling away
        return dimension.plan(approved)
    unsafe = policies.autoscaling_refusals(inputs.scaling, limits.rewire_alarms, inputs.customer_alarms)
    if not unsafe and inputs.deploys and not inputs.is_shadow_test:
        unsafe = scheduled_actions.unreadable_actions(inputs.scaling)
    if unsafe:
        return unsafe
    if inputs.is_shadow_test:
        return plan_shadow_test(approved)
    return missing_autoscaling_reasons(change, inputs) or dimension.plan(approved)


def _routing(config: ConfigSight, variant: str) -> str:
    """How requests find an instance; AWS's default where the configuration says nothing (RoutingConfig)."""
    mine = (v for v in config.body.get("ProductionVariants", []) if v.get("VariantName") == variant)
    set_so = (str((v.get("RoutingConfig") or {}).get("RoutingStrategy") or "") for v in mine)
    return next(set_so, "") or "RANDOM"
