"""A shadow test as a plan: it watches, and takes nothing away that serves.

A test puts the candidate beside the fleet on copied requests, measures it, and takes it away again. The production
variant stays what it is, so autoscaling stays registered: only a change of type or a removal of a variant is refused
while it is. For the same reason its count may move at any time: both deployments keep the counts and weights that are
live. Source: developer guide, shadow tests and endpoint-scaling-update.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.changes import clone, guardrail, window
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan.config import alarm_steps, plan_keeping_counts
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import Option, Target
from rightsizer.domain.plan import Plan, PlanKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Deferral, PreflightInput
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.shadow_test import declared_refusal, tag_refusal

PEAK_PATIENCE = timedelta(days=6)
HOURS = 2.0
"""Length of a test where the option does not say (an assumption)."""


def peak_deferral(change: Change, plan: Plan, limits: ChangeLimits, now: datetime) -> Deferral | None:
    """Wait of a shadow test for the busiest hour, the only one that tests the candidate; None near it.

    On the last day of a change's patience it waits no longer: something was in its way at every peak.
    """
    if plan.peak is None or now - change.approved_at > PEAK_PATIENCE:
        return None
    lasts = timedelta(seconds=plan.test_s)
    begins = window.next_test_start(limits.window, plan.peak, lasts, now, window.STEP)
    text = f"the shadow test begins at {begins:%Y-%m-%d %H:%M} to see the busiest hour, {plan.peak.hour:02d}:00 UTC"
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
    today = Target(mine.instance_type, mine.count)
    same = clone.clone_config(config, (mine,), today, catalogue, tags, inputs.endpoint.capture_stopped)
    if not isinstance(same, clone.ClonedConfig):
        return same
    other = Target(change.option.target.instance_type, 1)
    candidate = clone.clone_config(
        config, (replace(mine, instance_type=other.instance_type, count=1),), other, catalogue, tags
    )
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
