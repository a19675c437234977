"""Plans that deploy a new configuration: clone, guardrail, roll-back alarms, autoscaling taken away and given back."""

from decimal import Decimal

from rightsizer.autoscaling import policies
from rightsizer.changes import clone, guardrail
from rightsizer.changes.dimension import Approved, Planned
from rightsizer.changes.plan.fleet import capacity_of, fleet_after
from rightsizer.domain.change import Change
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Target
from rightsizer.domain.plan import Before, Plan, Step, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason


def new_config(given: Approved) -> Planned | tuple[Reason, ...]:
    """The plan that deploys a clone of the configuration with other instances; or why there is none."""
    change, ground, config, before = given.change, given.ground, given.config, given.before
    catalogue, limits, after = given.catalogue, given.limits, fleet_after(given)
    tags = {clone.CHANGE_TAG: change.id}
    new = clone.clone(config, after, change.option.target, catalogue, tags, ground.endpoint.capture_stopped)
    if not isinstance(new, clone.Clone):
        return new
    if new.content_hash == clone.content_hash(config.body):
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} already runs what is asked"),)
    old = _way_back(config, before, catalogue, tags, ground.endpoint.capture_stopped)
    watched = watching(change, new.name, after, limits)
    names = tuple(step.subject for step in watched)
    guard = chosen_guardrail(change, ground, before, after, names, limits)
    settle, restore = rebuilt(change, ground)
    back_name = old.name if old is not None else before.config_name
    plan = Plan(
        prepare=(create(new), create(old) if old is not None else tag(config, change.id), *watched),
        clear=policies.clear(ground.scaling),
        settle=settle,
        restore=restore,
        turn=update(change.ref.name, new.name, guard.config),
        back=update(
            change.ref.name, back_name, guardrail.way_back(guard.config, _total(after), _total(before.variants))
        ),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        new_config=new.name,
        back_config=back_name,
        after=after,
        alarms=names,
        deployment_limit_s=guard.limit_s,
        guardrail=guard.sentence,
        exchange=(capacity_of(change, ground).old, capacity_of(change, ground).new),
    )
    return Planned(before, plan, (*new.notes, *_unproven_alarms(names)))


def keeping_counts(given: Approved, new: clone.Clone, watched: tuple[Step, ...], guard: guardrail.Guardrail) -> Plan:
    """A deployment that leaves every count and weight as it is live, there and back; autoscaling stays registered."""
    change, config, before, limits = given.change, given.config, given.before, given.limits
    names, live = tuple(step.subject for step in watched), _total(before.variants)
    return Plan(
        prepare=(create(new), tag(config, change.id), *watched),
        turn=update(change.ref.name, new.name, guard.config, keep_counts=True),
        back=update(
            change.ref.name, before.config_name, guardrail.way_back(guard.config, live, live), keep_counts=True
        ),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        new_config=new.name,
        back_config=before.config_name,
        after=before.variants,
        alarms=names,
        deployment_limit_s=guard.limit_s,
        guardrail=f"{guard.sentence}; counts stay as they are live",
    )


def watching(change: Change, config: str, after: tuple[VariantCount, ...], limits: ChangeLimits) -> tuple[Step, ...]:
    """The steps that put the roll-back alarms of a change. What ends a slowness is not undone for being slow."""
    usual = {k: v for k, v in change.baseline.items() if not (change.option.restores and k == "p95_s")}
    return guardrail.rollback_alarms(
        change.id,
        change.ref.name,
        [v.name for v in after],
        config,
        limits.alarm_prefix,
        None if change.option.restores else change.objective_p95_s,
        usual,
    )


def chosen_guardrail(
    change: Change,
    ground: Ground,
    before: Before,
    after: tuple[VariantCount, ...],
    names: tuple[str, ...],
    limits: ChangeLimits,
) -> guardrail.Guardrail:
    """The guardrail of a deployment from the fleet before to the fleet after."""
    return guardrail.choose(
        [v.count for v in before.variants],
        [v.count for v in after],
        names,
        limits.bake_s,
        headroom=_headroom(ground, before, after),
        excluded=_excluded(ground, before, after),
        usd_per_hour=_hourly(change),
        overlap_limit_usd=limits.usd_per_day,
    )


def _way_back(
    config: ConfigSight, before: Before, catalogue: Catalogue, tags: dict[str, str], capture_stopped: bool
) -> clone.Clone | None:
    """A clone of the old configuration with the live counts, where deploying the old one would reset them."""
    written = {
        v["VariantName"]: (v.get("InitialInstanceCount"), float(v.get("InitialVariantWeight", 1.0)))
        for v in config.body.get("ProductionVariants", [])
    }
    if all(written.get(v.name) == (v.count, v.weight) for v in before.variants):
        return None
    first = before.variants[0]
    cloned = clone.clone(
        config, before.variants, Target(first.instance_type, first.count), catalogue, tags, capture_stopped
    )
    return cloned if isinstance(cloned, clone.Clone) else None


def create(cloned: clone.Clone) -> Step:
    """The step that creates a cloned configuration."""
    return Step(StepKind.CREATE_CONFIG, cloned.name, cloned.body)


def tag(config: ConfigSight, change_id: str) -> Step:
    """The old configuration gets the tag without which IAM would refuse to deploy it again (decision 20)."""
    tags = [{"Key": clone.CHANGE_TAG, "Value": change_id}]
    return Step(StepKind.TAG_CONFIG, config.name, {"ResourceArn": config.body["EndpointConfigArn"], "Tags": tags})


def update(endpoint: str, config: str, deployment: dict[str, object], keep_counts: bool = False) -> Step:
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


def _headroom(ground: Ground, before: Before, after: tuple[VariantCount, ...]) -> int | None:
    """Instances of the target type that the quota leaves beside our own; others' use is AWS's to refuse."""
    if ground.quota is None:
        return None
    wanted = {v.instance_type for v in after}
    return ground.quota - sum(v.count for v in before.variants if v.instance_type in wanted)


def _excluded(ground: Ground, before: Before, after: tuple[VariantCount, ...]) -> str:
    if ground.marketplace:
        return "AWS ignores guardrails for Marketplace images"
    if any(v.instance_type.startswith("ml.inf1.") for v in (*before.variants, *after)):
        return "AWS ignores guardrails for Inf1 instances"
    return ""


def _hourly(change: Change) -> Decimal:
    return change.option.price.usd_per_hour * change.option.target.instance_count


def rebuilt(change: Change, ground: Ground) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Autoscaling for the new capacity, and as it was."""
    touched = tuple(t for t in ground.scaling if t.variant_name == change.variant)
    others = tuple(t for t in ground.scaling if t not in touched)
    new = (*policies.retarget(touched, change.option.target, capacity_of(change, ground)), *others)
    alarms_ = tuple(ground.customer_alarms)
    return (
        policies.rebuild(new, alarms_, ground.scaling),
        policies.rebuild(ground.scaling, alarms_, ground.scaling),
    )
