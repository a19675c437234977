"""Plans that deploy a new configuration: clone, guardrail, roll-back alarms, autoscaling taken away and given back."""

from decimal import Decimal

from rightsizer.autoscaling import policies
from rightsizer.changes import clone, guardrail
from rightsizer.changes.baseline import usual_p95_s
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan.fleet import capacity_exchange, fleet_after
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.plan import Before, Plan, Step, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason


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
