"""From an approved proposal and a look at the ground to a plan: every step of both directions, made once."""

from dataclasses import dataclass
from decimal import Decimal

from rightsizer.model.change import Before, Change, Plan, VariantCount
from rightsizer.model.ground import Ground
from rightsizer.model.hardware import Catalogue
from rightsizer.model.limits import ChangeLimits
from rightsizer.model.option import OptionKind, Target
from rightsizer.model.reason import Code, Reason
from rightsizer.model.sight import ConfigSight, EndpointSight
from rightsizer.model.step import Step, StepKind
from rightsizer.rules import alarms, clone, guardrail

CONFIG_KINDS = frozenset(
    {
        OptionKind.INSTANCE_TYPE,
        OptionKind.TYPE_AND_COUNT,
        OptionKind.FEWER_GPUS,
        OptionKind.INSTANCE_POOLS,
        OptionKind.ROUTING,
    }
)
"""Options that need a new configuration."""
CHANGE_TAG = "rightsizer:change"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a change stores before its first write."""

    before: Before
    plan: Plan
    overlap_usd: Decimal
    notes: tuple[str, ...] = ()


def make(change: Change, ground: Ground, catalogue: Catalogue, limits: ChangeLimits) -> Planned | tuple[Reason, ...]:
    """The plan, or every reason why there is none. The ground has passed preflight."""
    endpoint, config = ground.endpoint, ground.config
    if config is None:
        return (Reason(Code.CONFIGURATION_REPLACED, f"configuration {endpoint.config_name} does not exist any more"),)
    if ground.scaling:
        return (Reason(Code.AUTOSCALED, f"endpoint {change.ref.name} is autoscaled"),)
    live = _live(endpoint, config)
    before = Before(
        endpoint.config_name,
        endpoint.modified_at,
        endpoint.failure_reason,
        live,
        ground.scaling,
        tuple(dict(a) for a in ground.customer_alarms),
        {},
        dict(ground.tags),
    )
    after = tuple(_wanted(v, change) for v in live)
    if ground.option.kind is OptionKind.INSTANCE_COUNT:
        return _count_only(change, before, after)
    if ground.option.kind in CONFIG_KINDS:
        return _new_config(change, ground, endpoint, config, before, after, catalogue, limits)
    return (Reason(Code.NOT_IN_PLACE, f"{ground.option.kind.value} is not carried out by this program"),)


def _live(endpoint: EndpointSight, config: ConfigSight) -> tuple[VariantCount, ...]:
    """Types from the configuration, counts and weights from what is live: autoscaling and people move them."""
    types = {v["VariantName"]: v.get("InstanceType", "") for v in config.body.get("ProductionVariants", [])}
    return tuple(
        VariantCount(v.name, types.get(v.name, ""), v.desired_count, v.desired_weight) for v in endpoint.variants
    )


def _wanted(variant: VariantCount, change: Change) -> VariantCount:
    if variant.name != change.variant:
        return variant
    target = change.option.target
    return VariantCount(variant.name, target.instance_type, target.instance_count, variant.weight)


def _count_only(change: Change, before: Before, after: tuple[VariantCount, ...]) -> Planned | tuple[Reason, ...]:
    """Counts move without a new configuration: nothing is deployed, nothing is cloned."""
    changed = [v for v in after if v not in before.variants]
    if not changed:
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} already runs what is asked"),)
    old = {v.name: v for v in before.variants}
    plan = Plan(
        turn=_capacity(change.ref.name, changed),
        back=_capacity(change.ref.name, [old[v.name] for v in changed]),
        after=after,
        guardrail="counts only: no deployment, and the way back is the same call",
    )
    return Planned(before, plan, Decimal(0))


def _capacity(endpoint: str, variants: list[VariantCount]) -> Step:
    """One call changes the capacity of one variant, or the weights of several."""
    rows = [{"VariantName": v.name, "DesiredInstanceCount": v.count} for v in variants]
    counts = ",".join(f"{v.name}={v.count}" for v in variants)
    return Step(
        StepKind.SET_CAPACITY,
        f"{endpoint} to {counts}",
        {"EndpointName": endpoint, "DesiredWeightsAndCapacities": rows},
    )


def _new_config(
    change: Change,
    ground: Ground,
    endpoint: EndpointSight,
    config: ConfigSight,
    before: Before,
    after: tuple[VariantCount, ...],
    catalogue: Catalogue,
    limits: ChangeLimits,
) -> Planned | tuple[Reason, ...]:
    tags = {CHANGE_TAG: change.id}
    new = clone.clone(config, after, change.option.target, catalogue, tags, endpoint.capture_stopped)
    if not isinstance(new, clone.Clone):
        return new
    if new.content_hash == clone.content_hash(config.body):
        return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} already runs what is asked"),)
    old = _way_back(config, before, catalogue, tags, endpoint.capture_stopped)
    watching = alarms.rollback_alarms(
        change.id,
        change.ref.name,
        [v.name for v in after],
        new.name,
        limits.alarm_prefix,
        change.objective_p95_s,
        change.baseline,
    )
    names = tuple(step.subject for step in watching)
    guard = guardrail.choose(
        [v.count for v in after],
        names,
        limits.bake_s,
        headroom=_headroom(ground, before, after),
        excluded=_excluded(ground, before, after),
        usd_per_hour=_hourly(change),
        overlap_limit_usd=limits.usd_per_day,
    )
    back_name = old.name if old is not None else before.config_name
    plan = Plan(
        prepare=(_create(new), *((_create(old),) if old is not None else ()), *watching),
        turn=_update(change.ref.name, new.name, guard.config),
        back=_update(change.ref.name, back_name, {}),
        tidy=(Step(StepKind.DELETE_ALARMS, f"{limits.alarm_prefix}{change.id}", {"AlarmNames": list(names)}),),
        new_config=new.name,
        back_config=back_name,
        after=after,
        alarms=names,
        deployment_limit_s=guard.limit_s,
        guardrail=guard.sentence,
    )
    return Planned(before, plan, guard.overlap_usd, new.notes)


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


def _create(cloned: clone.Clone) -> Step:
    return Step(StepKind.CREATE_CONFIG, cloned.name, cloned.body)


def _update(endpoint: str, config: str, deployment: dict[str, object]) -> Step:
    params: dict[str, object] = {
        "EndpointName": endpoint,
        "EndpointConfigName": config,
        "RetainAllVariantProperties": False,
    }
    if deployment:
        params["DeploymentConfig"] = deployment
    return Step(StepKind.UPDATE_ENDPOINT, f"{endpoint} to {config}", params)


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
