"""Recommend for one endpoint: daily usage, demand, options, finding, gate.

Pure composition of the other modules.

A change of type names what it does to the owner's own scaling policies: which target moves, from what to what, and
why. The figures come from the rule that the change itself follows (`autoscaling/policies.py`), so that what is promised
is done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from rightsizer.autoscaling import policies
from rightsizer.autoscaling.target_tracking import TRACKING
from rightsizer.domain.component import ReadComponents
from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.endpoint import Endpoint, EndpointKind, PolicyChange, ScalableTarget
from rightsizer.domain.environment import read_environment
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.plan import order_command
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import HOURS_PER_MONTH, PriceTable
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import DailyUsage, EndpointUsage, MetricWindow, NoMetrics, VariantUsage
from rightsizer.recommender.alternatives import add_alternatives
from rightsizer.recommender.choose import choose_option
from rightsizer.recommender.component_copies import with_components
from rightsizer.recommender.component_fleets import tell_of_held_instances, without_tight_fleets
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import overhead_of
from rightsizer.recommender.dimension import Offering
from rightsizer.recommender.each_gpu import add_each_gpu, add_kv_cache
from rightsizer.recommender.evidence import evidence_of, hourly_requests, peak_of
from rightsizer.recommender.finding import idle_reason, too_little_data_reason
from rightsizer.recommender.idle import recommend_for_idle, recommend_without_latency
from rightsizer.recommender.latency import broken_promise
from rightsizer.recommender.priced_option import with_accepted_share
from rightsizer.recommender.pricing import monthly_cost, share_commitment, usd_of_variants
from rightsizer.recommender.questions import ask_about_unused_hours
from rightsizer.recommender.stages import with_later_stages
from rightsizer.recommender.usage_days import complete_until, configured_at, known_until, last_modified
from rightsizer.recommender.variants import join_variants
from rightsizer.recommender.workload import analyse_workload

PAID_FOR = "it runs on reserved capacity, which is paid for and tied to its type: nothing is saved by leaving it"
POOLED = (
    "its instance pools may run several types at once, and its metrics and its bill mix them, so no type is judged;"
    " deploy a configuration with one type ({}, where a change of ours made the pools)"
)
PARTITIONED = (
    "its GPUs are partitioned (MIG), and the use of a partition is not published: sums over the GPUs do not tell what"
    " it needs"
)


def add_daily_usage(
    endpoint: Endpoint,
    windows: Sequence[MetricWindow],
    hardware: InstanceType,
    history: History,
    policy: Policy,
    known: Sequence[DailyUsage] = (),
) -> VariantUsage:
    """The windows of the first variant as digests, on top of those already `known`; a day read again counts once."""
    variant = endpoint.variants[0]
    since = configuration_start(endpoint, history, policy)
    setup = VariantSetup(hardware, variant.current_count, since, publish_s=endpoint.publish_s)
    days = {(d.day, d.instance_type): d for d in known}
    own = [w for w in windows if w.variant in ("", variant.name)]
    fresh = (add_kv_cache(add_each_gpu(d, w, setup.since), w, setup.since) for w in own for d in daily_usage(w, setup))
    days |= {(d.day, d.instance_type): d for d in fresh}
    notes = tuple(why for w in own for why in (w.gpus_unread, w.kv_cache_unread) if why is not None)
    return VariantUsage(endpoint.ref.name, variant.name, tuple(days[key] for key in sorted(days)), notes)


def recommend(
    endpoint: Endpoint,
    usage: VariantUsage | EndpointUsage | NoMetrics | None,
    inputs: AccountInputs,
    dimensions: Sequence[Offering],
    components: ReadComponents | None = None,
) -> Recommendation:
    """The recommendation of one endpoint from digests already folded; of several variants each by its own.

    `components`: its inference components; None where it has none or nobody read them.
    """
    here = inputs.for_endpoint(endpoint)
    all_usd = usd_of_variants(endpoint.variants, here.prices)
    here = _share_plan(here, all_usd, here.history.gpu_usd_per_month)
    read = usage if isinstance(usage, EndpointUsage) else EndpointUsage(endpoint.ref.name, (usage,) if usage else ())
    if endpoint.other_variants:
        each = ((v, _share_plan(here, usd_of_variants(v.variants[:1], here.prices), all_usd)) for v in endpoint.views)
        parts = tuple(_recommend_view(view, endpoint, read, mine, dimensions) for view, mine in each)
        recommendation = join_variants(endpoint, parts, here)
    else:
        mine = next(iter(read.variants), None)
        recommendation = add_unchanged_policies(_recommend_first_variant(endpoint, mine, here, dimensions), endpoint)
    known = [one for one in read.variants if isinstance(one, VariantUsage)]
    overhead_s = overhead_of([day for one in known for day in _look_back(one, here.policy, here.now)])
    recommendation = with_components(recommendation, endpoint, components, here, overhead_s)
    recommendation = without_tight_fleets(recommendation, endpoint, components, here)
    recommendation = tell_of_held_instances(recommendation, endpoint, components, here)
    recommendation = replace(recommendation, environment=read_environment(endpoint, inputs.policy))
    return add_unread_tags(add_unknown_savings_plans(_add_running_hours(recommendation), inputs.prices), endpoint)


def _recommend_view(
    view: Endpoint, endpoint: Endpoint, usage: EndpointUsage, inputs: AccountInputs, dimensions: Sequence[Offering]
) -> Recommendation:
    """The recommendation of one of several variants, by its own metrics, its own autoscaling and its own past."""
    name = view.variants[0].name
    past = inputs.history.of_variant(name, is_first=name == endpoint.variants[0].name)
    mine = replace(inputs, history=past)
    return add_unchanged_policies(_recommend_first_variant(view, usage.of_variant(name), mine, dimensions), view)


def _recommend_first_variant(
    endpoint: Endpoint, usage: VariantUsage | NoMetrics | None, inputs: AccountInputs, dimensions: Sequence[Offering]
) -> Recommendation:
    if isinstance(usage, NoMetrics):
        return empty_recommendation(endpoint, inputs, usage.reason)
    variant = endpoint.variants[0] if endpoint.variants else None
    if variant is None or not variant.instance_type:
        sentence = f"it is of the kind {endpoint.kind.value}, which has no instance type of its own to judge"
        if endpoint.kind is EndpointKind.INSTANCE_POOLS:
            sentence = POOLED.format(order_command("rollback", endpoint.ref.name, endpoint.ref.region))
        return empty_recommendation(endpoint, inputs, Reason(Code.OTHER_KIND, sentence))
    hardware = inputs.catalogue.find(variant.instance_type)
    if hardware is None:
        sentence = f"{variant.instance_type} is not in the catalogue, so its memory and speed are unknown"
        return empty_recommendation(endpoint, inputs, Reason(Code.NO_SPECIFICATION, sentence))
    if hardware.accelerator is None:
        return empty_recommendation(
            endpoint, inputs, Reason(Code.NO_ACCELERATOR, f"{hardware.name} has no accelerator")
        )
    days = days_since_growth(_look_back(usage, inputs.policy, inputs.now), inputs.history)
    if not days:
        since = configuration_start(endpoint, inputs.history, inputs.policy)
        return empty_recommendation(endpoint, inputs, _no_data_reason(since, inputs.policy, inputs.now))
    recommendation = _recommend(endpoint, hardware, days, inputs, dimensions)
    return (
        _without_savings(recommendation)
        if EndpointKind.RESERVED in endpoint.kinds and len(endpoint.variants) == 1
        else recommendation
    )


def _add_running_hours(found: Recommendation) -> Recommendation:
    """The recommendation, which says that its money counts the hours alone in which office hours let it run."""
    if found.evidence is None or found.price is None or found.price.hours_per_month == HOURS_PER_MONTH:
        return found
    said = f"runs {found.price.hours_per_month:.0f} of {HOURS_PER_MONTH} hours a month; cost and savings are of these"
    return replace(found, evidence=replace(found.evidence, figures={**found.evidence.figures, "office hours": said}))


def _share_plan(inputs: AccountInputs, usd: Decimal, of_usd: Decimal | None) -> AccountInputs:
    """The inputs with the part of their Savings Plans that `usd` of `of_usd` a month bears: a price is known."""
    if usd <= 0:
        return inputs
    plan = share_commitment(inputs.prices.commitment, usd, of_usd)
    return replace(inputs, prices=replace(inputs.prices, commitment=plan))


def _without_savings(recommendation: Recommendation) -> Recommendation:
    """The recommendation on reserved capacity, without options: OVER_PROVISIONED becomes OPTIMIZED, IDLE stays."""
    if recommendation.finding not in (Finding.OVER_PROVISIONED, Finding.IDLE):
        return recommendation
    idle = recommendation.finding is Finding.IDLE
    why = Reason(Code.OTHER_KIND, f"{recommendation.reason.sentence}; {PAID_FOR}" if idle else PAID_FOR)
    finding = Finding.IDLE if idle else Finding.OPTIMIZED
    kept = replace(recommendation, finding=finding, reason=why, options=(), excluded=(), replay=None)
    return replace(kept, gate=Gate.SILENT, gate_reason=why)


def _recommend(
    endpoint: Endpoint,
    hardware: InstanceType,
    days: Sequence[DailyUsage],
    inputs: AccountInputs,
    dimensions: Sequence[Offering],
) -> Recommendation:
    policy = inputs.policy
    analysis = analyse_workload(endpoint, hardware, days, inputs)
    demand = analysis.demand
    plain = replace(
        empty_recommendation(endpoint, inputs, Reason(Code.ALREADY_RIGHT, "nothing cheaper serves this load")),
        evidence=evidence_of(days, demand, analysis.reference, inputs.history.endpoint, known_until(inputs.now)),
        hourly_requests=hourly_requests(days, known_until(inputs.now)),
        peak=peak_of(days),
        finding=Finding.OPTIMIZED,
        not_checked=not_checked_sentences(demand, days),
    )
    little = too_little_data_reason(endpoint, demand, policy, hardware.accelerator)
    if little is not None:
        return replace(plain, finding=Finding.NOT_ENOUGH_DATA, reason=little, gate_reason=little)
    quiet = idle_reason(endpoint, demand, policy)
    if plain.price is None:
        why = Reason(Code.NO_PRICE, f"{hardware.name} has no price in {inputs.prices.region}: no saving can be stated")
        if quiet is not None:
            return replace(plain, finding=Finding.IDLE, reason=quiet, gate_reason=why)
        return replace(plain, finding=Finding.NOT_ENOUGH_DATA, reason=why, gate_reason=why)
    if quiet is not None:
        return recommend_for_idle(plain, quiet, demand, plain.price, endpoint, inputs)
    if EndpointKind.MIG in endpoint.kinds:
        why = Reason(Code.NO_GPU_METRICS, PARTITIONED)
        return replace(plain, finding=Finding.NOT_ENOUGH_DATA, reason=why, gate_reason=why)
    if demand.latency is None:
        return recommend_without_latency(plain, days, demand, plain.price, endpoint, inputs)
    context = with_accepted_share(analysis.evaluation_context(plain.price, demand.latency))
    broken = broken_promise(context.objective)
    plain = replace(plain, usd_per_month=context.usd_per_month, notes=(*plain.notes, *([broken] if broken else [])))
    recommendation = choose_option(plain, context, dimensions)
    recommendation = with_later_stages(recommendation, context)
    recommendation = ask_about_unused_hours(add_alternatives(recommendation, context, dimensions), context)
    return add_policy_changes(recommendation, context.endpoint)


def configuration_start(endpoint: Endpoint, history: History, policy: Policy) -> datetime | None:
    """Datapoints before this belong to another configuration. Scaling actions are not configuration changes."""
    if endpoint.scaling or endpoint.kind is not EndpointKind.REAL_TIME:
        return None
    since = configured_at(endpoint, history)
    changes = [p for p in history.endpoint if p.configured_at is None]  # the others are shadow tests, and left it alone
    known = any(abs(p.at - since) < timedelta(hours=6) for p in changes)
    same = [p for p in changes if p.from_type != p.to_type]
    if known and not same:
        return None
    return since + timedelta(minutes=policy.mask_minutes)


def _no_data_reason(since: datetime | None, policy: Policy, now: datetime) -> Reason:
    """Why there is nothing to judge from: a new configuration, or no datapoint at all."""
    if since is not None and since > now - timedelta(days=1):
        changed = since - timedelta(minutes=policy.mask_minutes)  # whose datapoints mix both configurations
        sentence = f"it was changed on {time_text(changed)}; what it needs since then is not known yet"
    else:
        sentence = f"CloudWatch has no datapoints of the last {policy.lookback_days} days; that is unknown, not idle"
    return Reason(Code.NO_DATAPOINTS, sentence)


def _look_back(usage: VariantUsage | None, policy: Policy, now: datetime) -> list[DailyUsage]:
    """The days of the look-back: those before the first day that is not known whole."""
    days = usage.days if usage else ()
    after = max((d.day for d in days), default=date.min) + timedelta(days=1)
    first = max(complete_until(now), min(after, now.date())) - timedelta(days=policy.lookback_days)
    return [d for d in days if d.day >= first]


def days_since_growth(days: Sequence[DailyUsage], history: History) -> list[DailyUsage]:
    """The days since the last growth in force. What was short before it says nothing of what runs now.

    A change is remembered when it ended, which is a day of watching or more after it served.
    """
    grown = [past.at.date() for past in history.endpoint if past.grows and past.is_in_force]
    return [d for d in days if not grown or d.day >= grown[-1]]


def empty_recommendation(endpoint: Endpoint, inputs: AccountInputs, reason: Reason) -> Recommendation:
    """A recommendation that recommends nothing, for `reason`."""
    variant = endpoint.variants[0] if endpoint.variants else None
    instance_type = variant.instance_type if variant else ""
    price = inputs.prices.find(instance_type) if instance_type else None
    return Recommendation(
        ref=endpoint.ref,
        variant=variant.name if variant else "",
        kind=endpoint.kind,
        mode=endpoint.mode,
        owner=endpoint.owner,
        fingerprint=replace(endpoint, modified_at=last_modified(endpoint, inputs.history)).fingerprint,
        evaluated_at=inputs.now,
        instance_type=instance_type,
        instance_count=variant.current_count if variant else 0,
        price=price,
        usd_per_month=monthly_cost(price, variant.current_count) if price and variant else None,
        finding=Finding.NOT_ENOUGH_DATA,
        reason=reason,
        gate=Gate.SILENT,
        gate_reason=reason,
        options=(),
        evidence=None,
        notes=(*endpoint.bad_tags, *_gone_accelerators(endpoint)),
        owned_by=endpoint.owned_by,
    )


def _gone_accelerators(endpoint: Endpoint) -> Iterator[Reason]:
    """A note that Elastic Inference is no longer available, where the configuration names an accelerator of it.

    Source: EC2 API reference, ElasticInferenceAccelerator.
    """
    if endpoint.elastic_inference:
        names = ", ".join(endpoint.elastic_inference)
        text = f"its configuration names {names}, and AWS no longer offers Elastic Inference:"
        instead = "a type with a small GPU or Inferentia takes its place"
        yield Reason(Code.ELASTIC_INFERENCE_GONE, f"{text} {instead}")


def add_unknown_savings_plans(recommendation: Recommendation, prices: PriceTable) -> Recommendation:
    """The recommendation, which says that a Savings Plan may keep a part of its saving where none could be seen."""
    if prices.commitment.known or not recommendation.options:
        return recommendation
    left = "Savings Plans of the organisation's payer account: use that they cover would go on being billed"
    return replace(recommendation, not_checked=(*recommendation.not_checked, left))


def add_unread_tags(recommendation: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The recommendation, which says that objective, owner and permission are unknown where the tags were not read."""
    if endpoint.tags_unread is None:
        return recommendation
    left = f"its tags (mode, objective, owner, stack) could not be read: {endpoint.tags_unread.sentence}"
    return replace(recommendation, not_checked=(left, *recommendation.not_checked))


def not_checked_sentences(demand: Demand, days: Sequence[DailyUsage]) -> tuple[str, ...]:
    """Questions that the evidence left open."""
    found = []
    if not any((day.day + timedelta(days=1)).month != day.day.month for day in days):
        found.append("the load of a month end: none is in the look-back")
    if demand.gpu_s_per_request is None:
        why = "its GPU never worked" if demand.gpu_peak == 0 else "too few requests or no GPU metrics"
        found.append(f"GPU seconds per request: {why}, taken as wholly GPU-bound")
    if demand.memory.kind is MemoryClass.PREALLOCATED and demand.memory.pool is None:
        found.append("the real GPU memory need: the server pre-allocates, only a start on the candidate tells")
    if demand.cpu_p95 is None:
        found.append("vCPU use: no CPU metrics, so fewer vCPUs count as proportionally slower")
    return tuple(found)


def add_policy_changes(recommendation: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The recommendation with re-targeted policies named in each option of another type. Total."""
    mine = tuple(t for t in endpoint.scaling if any(t.policies))
    if not mine:
        return recommendation
    return replace(
        recommendation, options=tuple(_name_policies(option, recommendation, mine) for option in recommendation.options)
    )


def add_unchanged_policies(recommendation: Recommendation, endpoint: Endpoint) -> Recommendation:
    """The recommendation with the scaling policies whose targets it left alone, each under what was not checked."""
    if any(option.kind is OptionKind.AUTOSCALING and option.target.target_value for option in recommendation.options):
        return recommendation  # offered only where there is one policy, and for that one
    left = tuple(_unchanged_policy_sentence(policy) for target in endpoint.scaling for policy in target.policies)
    return replace(recommendation, not_checked=(*recommendation.not_checked, *left)) if left else recommendation


def _unchanged_policy_sentence(policy: Mapping[str, Any]) -> str:
    """A target is not moved while the type stays (decision 33)."""
    name, config = policy.get("PolicyName", ""), policy.get(TRACKING)
    if not config:
        return f"other steps of the scaling policy {name}: they stay as they are"
    now = f"{_metric(config)} {config.get('TargetValue', 0):g}"
    return f"another target of the scaling policy {name} ({now}) on the type that runs: it was left alone"


def _name_policies(option: Option, recommendation: Recommendation, mine: Sequence[ScalableTarget]) -> Option:
    count = option.target.instance_count
    if not option.in_place or option.target.instance_type == recommendation.instance_type or count < 1:
        return option
    capacity = policies.CapacityExchange(max(1, recommendation.instance_count), count)
    after = policies.retarget(mine, option.target, capacity)
    pairs = [(p, q) for t, u in zip(mine, after, strict=True) for p, q in zip(t.policies, u.policies, strict=True)]
    ratio = option.target.per_instance or capacity.per_instance
    parts = [_sentence(old, new, ratio, option.target.instance_type) for old, new in pairs]
    effects = {str(old.get("PolicyName", "")): line for (old, _), line in zip(pairs, parts, strict=True)}
    changes = tuple(PolicyChange(name, line) for name, line in effects.items())
    moved = [new[TRACKING]["TargetValue"] for old, new in pairs if old != new]
    value = moved[0] if len(moved) == 1 else option.target.target_value
    return replace(
        option,
        target=replace(option.target, target_value=value),
        facts={**option.facts, **{change.title: change.effect for change in changes}},
        notes=(*option.notes, *(f"{change.title}: {change.effect}" for change in changes)),
        policy_changes=changes,
    )


def _sentence(old: Mapping[str, Any], new: Mapping[str, Any], ratio: float, candidate: str) -> str:
    config = old.get(TRACKING)
    if not config:
        return "no target: its steps and alarms stay as they are"
    metric = _metric(config)
    before, after = config["TargetValue"], new[TRACKING]["TargetValue"]
    if old == new:
        return f"{metric} stays at {before:g}"
    return f"{metric} {before:g} becomes {after:g}: one {candidate} serves {ratio:.2f} of what one does today"


def _metric(config: Mapping[str, Any]) -> str:
    predefined = config.get("PredefinedMetricSpecification") or {}
    custom = config.get("CustomizedMetricSpecification") or {}
    return str(predefined.get("PredefinedMetricType") or custom.get("MetricName") or "its own metric")
