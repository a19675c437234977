"""The plan of a change, made once: steps of both directions, with a new configuration where one is deployed."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes import clone, guardrail, start_limits
from rightsizer.changes.baseline import usual_p95_s
from rightsizer.changes.dimension import Approved, PlannedChange, Planning
from rightsizer.changes.plan.capacity import (
    capacity_exchange,
    fleet_after,
    largest_new_count,
    live_counts,
    missing_autoscaling_reasons,
)
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import ORDERED, Option
from rightsizer.domain.plan import Before, Plan, PlanKind, Step, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Deferral, PreflightInput
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.recommender.shadow_test import declared_refusal, tag_refusal

__all__ = [
    "PlannedChange",
    "largest_new_count",
    "make_plan",
    "peak_deferral",
]


def plan_new_config(approved: Approved) -> PlannedChange | tuple[Reason, ...]:
    """The plan that deploys a clone of the configuration with other instances; or why there is none."""
    change, inputs, config, before = approved.change, approved.inputs, approved.config, approved.before
    catalogue, limits, after = approved.catalogue, approved.limits, fleet_after(approved)
    tags = {clone.CHANGE_TAG: change.id}
    wanted = clone.Wanted(after, change.option.target, change.variant)
    new = clone.clone_config(config, wanted, catalogue, tags, inputs.endpoint.capture_stopped)
    if not isinstance(new, clone.ClonedConfig):
        return new
    if new.content_hash == clone.content_hash(config.body):
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} already runs what is asked"),)
    old = _rollback_clone(config, before, catalogue, tags, inputs.endpoint.capture_stopped)
    watched = alarm_steps(change, new.name, after, limits)
    names = tuple(step.subject for step in watched)
    guard = choose_plan_guardrail(change, inputs, before, after, names, limits)
    settle, restore = autoscaling_steps(change, inputs)
    back_name = old.name if old is not None else before.config_name
    plan = Plan(
        prepare=(create_step(new), create_step(old) if old is not None else tag_step(config, change.id), *watched),
        clear=policies.removal_steps(inputs.scaling),
        settle=settle,
        restore=restore,
        turn=update_step(change.ref.name, new.name, guard.config),
        back=update_step(
            change.ref.name,
            back_name,
            guardrail.rollback_deployment(guard.config, _total(after), _total(before.variants)),
        ),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        new_config=new.name,
        back_config=back_name,
        after=after,
        alarms=names,
        deployment_limit_s=guard.limit_s,
        guardrail=guard.sentence,
        exchange=(capacity_exchange(change, inputs).old, capacity_exchange(change, inputs).new),
    )
    return PlannedChange(before, plan, (*new.notes, *_unproven_alarms(names)))


def plan_keeping_counts(
    approved: Approved, new: clone.ClonedConfig, watched: tuple[Step, ...], guard: guardrail.Guardrail
) -> Plan:
    """A deployment that leaves every count and weight as it is live, there and back; autoscaling stays registered."""
    change, config, before, limits = approved.change, approved.config, approved.before, approved.limits
    names, live = tuple(step.subject for step in watched), _total(before.variants)
    return Plan(
        prepare=(create_step(new), tag_step(config, change.id), *watched),
        turn=update_step(change.ref.name, new.name, guard.config, keep_counts=True),
        back=update_step(
            change.ref.name,
            before.config_name,
            guardrail.rollback_deployment(guard.config, live, live),
            keep_counts=True,
        ),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        new_config=new.name,
        back_config=before.config_name,
        after=before.variants,
        alarms=names,
        deployment_limit_s=guard.limit_s,
        guardrail=f"{guard.sentence}; counts stay as they are live",
    )


def alarm_steps(change: Change, config: str, after: tuple[VariantCount, ...], limits: ChangeLimits) -> tuple[Step, ...]:
    """The steps that put the roll-back alarms of a change. What ends a slowness is not undone for being slow.

    Growth is slower than the objective when it begins, so that only what is far worse than before undoes it.
    """
    option, objective, before = change.option, change.objective_p95_s, usual_p95_s(change.baseline, change.variant)
    usual = {k: v for k, v in change.baseline.items() if not (option.restores and k.startswith("p95_s"))}
    if option.grows and objective is not None:
        objective = max(objective, guardrail.LATENCY_FACTOR * before)
    return guardrail.rollback_alarms(
        change.id,
        guardrail.WatchedConfig(change.ref.name, config, [v.name for v in after]),
        limits.alarm_prefix,
        None if option.restores else objective,
        usual,
    )


def choose_plan_guardrail(
    change: Change,
    inputs: PreflightInput,
    before: Before,
    after: tuple[VariantCount, ...],
    names: tuple[str, ...],
    limits: ChangeLimits,
) -> guardrail.Guardrail:
    """The guardrail of a deployment from the fleet before to the fleet after."""
    return guardrail.choose_guardrail(
        guardrail.FleetExchange(
            [v.count for v in before.variants],
            [v.count for v in after],
            headroom=_headroom(inputs, before, after),
            excluded=_excluded_guardrails(inputs, before, after),
            usd_per_hour=_hourly(change),
        ),
        names,
        limits.bake_s,
        overlap_limit_usd=limits.usd_per_day,
    )


def _rollback_clone(
    config: ConfigSight, before: Before, catalogue: Catalogue, tags: dict[str, str], capture_stopped: bool
) -> clone.ClonedConfig | None:
    """A clone of the old configuration with the live counts, where deploying the old one would reset them."""
    written = {
        v["VariantName"]: (v.get("InitialInstanceCount"), float(v.get("InitialVariantWeight", 1.0)))
        for v in config.body.get("ProductionVariants", [])
    }
    if all(written.get(v.name) == (v.count, v.weight) for v in before.variants):
        return None
    cloned = clone.clone_config(config, clone.Wanted(before.variants), catalogue, tags, capture_stopped)
    return cloned if isinstance(cloned, clone.ClonedConfig) else None


def create_step(cloned: clone.ClonedConfig) -> Step:
    """The step that creates a cloned configuration."""
    return Step(StepKind.CREATE_CONFIG, cloned.name, cloned.body)


def tag_step(config: ConfigSight, change_id: str) -> Step:
    """The old configuration gets the tag without which IAM would refuse to deploy it again (decision 20)."""
    tags = [{"Key": clone.CHANGE_TAG, "Value": change_id}]
    return Step(StepKind.TAG_CONFIG, config.name, {"ResourceArn": config.body["EndpointConfigArn"], "Tags": tags})


def update_step(endpoint: str, config: str, deployment: dict[str, object], keep_counts: bool = False) -> Step:
    """The step that deploys a configuration, with the counts that it names or with those that are live.

    Source: RetainAllVariantProperties of UpdateEndpoint.
    """
    params: dict[str, object] = {
        "EndpointName": endpoint,
        "EndpointConfigName": config,
        "RetainAllVariantProperties": keep_counts,
    }
    if deployment:
        params["DeploymentConfig"] = deployment
    return Step(StepKind.UPDATE_ENDPOINT, f"{endpoint} to {config}", params)


def _unproven_alarms(names: tuple[str, ...]) -> tuple[str, ...]:
    """What is said of alarms on a dimension that may get no data before the deployment is over."""
    if not names:
        return ()
    text = "the roll-back alarms watch the new configuration; should AWS publish nothing under its name while it "
    return (f"{text}deploys, they cannot fire, and the variant's own metrics are judged 15 and 30 minutes after it",)


def _total(variants: tuple[VariantCount, ...]) -> int:
    return sum(v.count for v in variants)


def _headroom(inputs: PreflightInput, before: Before, after: tuple[VariantCount, ...]) -> int | None:
    """Instances of the target type that the quota leaves beside our own; others' use is AWS's to refuse."""
    if inputs.quota is None:
        return None
    wanted = {v.instance_type for v in after}
    return inputs.quota - sum(v.count for v in before.variants if v.instance_type in wanted)


def _excluded_guardrails(inputs: PreflightInput, before: Before, after: tuple[VariantCount, ...]) -> str:
    if inputs.marketplace:
        return "AWS ignores guardrails for Marketplace images"
    if any(v.instance_type.startswith("ml.inf1.") for v in (*before.variants, *after)):
        return "AWS ignores guardrails for Inf1 instances"
    return ""


def _hourly(change: Change) -> Decimal:
    target = change.option.target
    others = sum((one.usd_per_hour * one.instance_count for one in target.others), Decimal(0))
    return change.option.price.usd_per_hour * target.instance_count + others


def autoscaling_steps(change: Change, inputs: PreflightInput) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Autoscaling for the new capacity, and as it was."""
    touched = tuple(t for t in inputs.scaling if t.variant_name == change.variant)
    others = tuple(t for t in inputs.scaling if t not in touched)
    new = (*policies.retarget(touched, change.option.target, capacity_exchange(change, inputs)), *others)
    alarms_ = tuple(inputs.customer_alarms)
    return (
        policies.restore_steps(new, alarms_, inputs.scaling),
        policies.restore_steps(inputs.scaling, alarms_, inputs.scaling),
    )


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
    begins = start_limits.next_test_start(limits.window, plan.peak, lasts, now, start_limits.STEP)
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
