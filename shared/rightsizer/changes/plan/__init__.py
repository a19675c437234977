"""The plan of a change, made once from the approved proposal and the preflight inputs: the steps forward and back.

A shadow test is planned here too: it watches, and takes nothing away that serves. It puts the candidate beside the
fleet on copied requests, measures it, and takes it away again. The production variant stays what it is, so autoscaling
stays registered: only a change of type or a removal of a variant is refused while it is. For the same reason its count
may move at any time: both deployments keep the counts and weights that are live. Source: developer guide, shadow tests
and endpoint-scaling-update.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes import clone, guardrail, window
from rightsizer.changes.dimension import Approved, PlannedChange, Planning
from rightsizer.changes.plan.config import alarm_steps, plan_keeping_counts
from rightsizer.changes.plan.fleet import largest_new_count, live_counts, missing_autoscaling_reasons
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import ORDERED, Option
from rightsizer.domain.plan import Before, Plan, PlanKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Deferral, PreflightInput
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.recommender.shadow_test import declared_refusal, tag_refusal

__all__ = ["PlannedChange", "largest_new_count", "make_plan", "peak_deferral"]

PEAK_PATIENCE = timedelta(days=6)
HOURS = 2.0
"""Length of a test where the option does not say (an assumption)."""


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


def peak_deferral(change: Change, plan: Plan, limits: ChangeLimits, now: datetime) -> Deferral | None:
    """Wait of a shadow test for the busiest hour, the only one that tests the candidate; None near it.

    On the last day of a change's patience it waits no longer: something was in its way at every peak.
    """
    if plan.peak is None or now - change.approved_at > PEAK_PATIENCE:
        return None
    lasts = timedelta(seconds=plan.test_s)
    begins = window.next_test_start(limits.window, plan.peak, lasts, now, window.STEP)
    text = f"the shadow test begins on {time_text(begins)} to see the busiest hour, {plan.peak.hour:02d}:00 UTC"
    return Deferral(begins, text) if begins > now else None


def plan_shadow_test(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """The plan, or every reason why there is none. One instance of the candidate takes its share of the requests."""
    change, inputs, config = approved.change, approved.inputs, approved.config
    before, catalogue, limits = approved.before, approved.catalogue, approved.limits
    if len(before.variants) != 1 or config.body.get("ShadowProductionVariants"):
        text = f"{change.ref.name} has several variants or a shadow already; a shadow test needs one and none"
        return (Reason(Code.TEST_NOT_POSSIBLE, text),)
    allowed = inputs.proposal.is_test_first  # by a person, for this once, unless the owner forbids it
    barred = declared_refusal(inputs.tags) if allowed else tag_refusal(inputs.tags)
    if barred is not None:
        return (barred,)
    new = _with_shadow(change, inputs, config, before.variants[0], catalogue)
    if not isinstance(new, clone.ClonedConfig):
        return new
    watched = alarm_steps(change, new.name, before.variants, limits)
    names = tuple(step.subject for step in watched)
    count = before.variants[0].count
    guard = guardrail.choose_guardrail(guardrail.FleetExchange([count], [count]), names, limits.bake_s)
    hours = test_hours(change.option)
    plan = replace(
        plan_keeping_counts(approved, new, watched, guard),
        kind=PlanKind.SHADOW_TEST,
        guardrail=f"a shadow on {change.option.target.instance_type} for {hours:.0f} h, then it is removed",
        shadow=shadow_name(before.variants[0].name),
        test_s=int(timedelta(hours=hours).total_seconds()),
        peak=inputs.proposal.recommendation.peak,
    )
    return PlannedChange(before, plan, new.notes)


def _with_shadow(
    change: Change, inputs: PreflightInput, config: ConfigSight, mine: VariantCount, catalogue: Catalogue
) -> clone.ClonedConfig | tuple[Reason, ...]:
    """The configuration as it is, and beside its variant one instance of the candidate."""
    tags = {clone.CHANGE_TAG: change.id}
    same = clone.clone_config(config, clone.Wanted((mine,)), catalogue, tags, inputs.endpoint.capture_stopped)
    if not isinstance(same, clone.ClonedConfig):
        return same
    other = replace(mine, instance_type=change.option.target.instance_type, count=1)
    candidate = clone.clone_config(config, clone.Wanted((other,)), catalogue, tags)
    if not isinstance(candidate, clone.ClonedConfig):
        return candidate
    share = mine.weight / max(1, mine.count)
    variant = {
        **candidate.body["ProductionVariants"][0],
        "VariantName": shadow_name(mine.name),
        "InitialVariantWeight": share,
    }
    return clone.rename_clone(same, config.name, {**same.body, "ShadowProductionVariants": [variant]})


def shadow_name(variant: str) -> str:
    """Name of the shadow of a variant, at most 63 characters."""
    return f"{variant[:56].rstrip('-')}-shadow"


def test_hours(option: Option) -> float:
    """Hours that the option asks for, between one and a day."""
    hours = with_older_facts(option).test_hours
    return HOURS if hours is None else min(24.0, max(1.0, hours))
