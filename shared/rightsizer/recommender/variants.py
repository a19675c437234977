"""Join what was recommended for each production variant into one recommendation for the endpoint.

Each variant was judged by its own metrics. The cost is the sum, the finding the worst waste or need, and at most one
change is proposed: what grows goes before what shrinks, and what shrinks goes together, in one deployment.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.endpoint import Endpoint, Variant
from rightsizer.domain.option import (
    Effort,
    Excluded,
    Money,
    Option,
    OptionKind,
    Risk,
    RiskResource,
    Target,
    VariantTarget,
    fleet,
    new_option,
    payback_days,
)
from rightsizer.domain.policy import TYPE_AND_COUNT, Policy
from rightsizer.domain.price import CENT
from rightsizer.domain.reason import Code, Reason, seconds_text
from rightsizer.domain.recommendation import Finding, Gate, Recommendation, VariantFinding
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.gate import cooldown_reason
from rightsizer.recommender.pricing import break_even_text, kept_by_commitment, monthly_cost, usd_of_variants
from rightsizer.recommender.scale_to_zero import UNREAD_VARIANTS

TOGETHER = TYPE_AND_COUNT | {OptionKind.FEWER_GPUS}
"""Kinds of option that one deployment carries out on several variants."""
ASKED = frozenset({Gate.PROPOSE, Gate.TEST, Gate.APPLY})
EFFORTS = tuple(Effort)
COUNTS = (
    "counts of several variants are one deployment: UpdateEndpointWeightsAndCapacities changes the capacity of one"
    " variant at a time"
)

type Parts = Sequence[Recommendation]


def join_variants(endpoint: Endpoint, parts: Parts, inputs: AccountInputs) -> Recommendation:
    """The recommendation of an endpoint from those of its production variants, in their order."""
    options = _options_of_each(endpoint, parts, inputs)
    recommendation = _choose(endpoint, options, parts, inputs)
    rows = tuple(
        _row(v, part, options[part.variant].options, inputs) for v, part in zip(endpoint.variants, parts, strict=True)
    )
    known = [row.usd_per_month for row in rows if row.usd_per_month is not None]
    beside = tuple(_variant_text(v) for v in endpoint.variants if v.name != recommendation.variant)
    return replace(
        recommendation,
        variants=rows,
        usd_per_month=sum(known, Decimal(0)) if known else None,
        not_checked=(*_open_questions(recommendation, endpoint, parts, rows), *recommendation.not_checked),
        beside=beside,
        needs=None,
    )


def _options_of_each(endpoint: Endpoint, parts: Parts, inputs: AccountInputs) -> dict[str, Recommendation]:
    """What is recommended for each variant by name: of a silent one that it is taken out, where another one serves."""
    quiet = (Finding.IDLE, Finding.NOT_ENOUGH_DATA)
    serves = any(p.finding not in quiet for p in parts)
    return {p.variant: _removal(p, endpoint, inputs) if serves and p.finding is Finding.IDLE else p for p in parts}


def _choose(
    endpoint: Endpoint, options: Mapping[str, Recommendation], parts: Parts, inputs: AccountInputs
) -> Recommendation:
    """The recommendation of the variant that decides, with the finding and the change of the whole endpoint."""
    idle = [p for p in parts if p.finding is Finding.IDLE]
    unknown = [p for p in parts if p.finding is Finding.NOT_ENOUGH_DATA]
    serving = [p for p in parts if p not in idle and p not in unknown]
    if not serving:
        return _of_nobody(parts, idle, inputs) if not unknown else _of_unknown(parts[0], unknown)
    growing = [p for p in serving if p.finding is Finding.UNDER_PROVISIONED]
    if growing:
        return _together(endpoint, growing, inputs)
    wasteful = [p for p in options.values() if p.finding is Finding.OVER_PROVISIONED]
    recommendations = [p for p in wasteful if p.options and p.gate in ASKED]
    if recommendations or any(p.options for p in wasteful):
        return _together(endpoint, recommendations or [p for p in wasteful if p.options], inputs)
    first = (wasteful or serving)[0]
    return _named(first, [first])


def _of_nobody(parts: Parts, idle: Parts, inputs: AccountInputs) -> Recommendation:
    """The recommendation where no variant served: the endpoint is idle, and its deletion saves what all cost."""
    first = parts[0]
    usd = sum((p.usd_per_month or Decimal(0) for p in idle), Decimal(0))
    saving = usd - kept_by_commitment(usd, usd, inputs.prices.commitment)
    options = tuple(replace(o, saving_usd_per_month=saving) for o in first.options[:1])
    return _named(replace(first, options=options), parts)


def _of_unknown(first: Recommendation, unknown: Parts) -> Recommendation:
    """The recommendation where a silent variant stands beside one of which nothing is known: missing is not idle."""
    if first.finding is Finding.NOT_ENOUGH_DATA:
        return _named(first, [first])
    names = ", ".join(p.variant for p in unknown)
    why = Reason(
        unknown[0].reason.code,
        f"{first.reason.sentence}; what {names} serves is not known, so the endpoint is not called idle",
    )
    unread = replace(
        first,
        finding=Finding.NOT_ENOUGH_DATA,
        reason=why,
        gate=Gate.SILENT,
        gate_reason=why,
        options=(),
        excluded=tuple(
            Excluded(first.instance_type, Reason(Code.OTHER_KIND, f"{UNREAD_VARIANTS} {word}"), kind)
            for kind, word in ((OptionKind.SCALE_TO_ZERO, "used"), (OptionKind.DELETE, "idle"))
        ),
    )
    return _named(unread, [unread])


def _together(endpoint: Endpoint, parts: Parts, inputs: AccountInputs) -> Recommendation:
    """The one change of the endpoint: that of several variants in one deployment, or that of one which saves more."""
    offered = sorted((p for p in parts if p.options), key=lambda p: -p.saving_usd_per_month)
    if not offered:
        return _named(parts[0], parts)
    joint = [p for p in offered if _is_joinable(p, endpoint)]
    alone = next((p for p in offered if p not in joint), None)
    if len(joint) > 1 and (alone is None or sum(p.saving_usd_per_month for p in joint) >= alone.saving_usd_per_month):
        return _joined(joint, endpoint, inputs)
    main = offered[0]
    left = ", ".join(_variant_text(v) for v in endpoint.variants if v.name != main.variant)
    note = f"this is variant {main.variant} alone; {left} stays as it is"
    first = replace(main.options[0], notes=(*main.options[0].notes, note))
    return _rested(_named(replace(main, options=(first, *main.options[1:])), [main]), inputs)


def _is_joinable(part: Recommendation, endpoint: Endpoint) -> bool:
    """Whether one deployment may carry it out beside others: another type or count of a fleet that nothing scales.

    Autoscaling moves its count by rules of its own, so that a variant that has it is changed alone. So is one that
    grows: its budget, its alarms and its proof are of one variant, and the next evaluation looks at the others.
    """
    option = part.options[0]
    target = option.target
    scaled = any(t.variant_name == part.variant for t in endpoint.scaling)
    asks_more = target.hourly_counts or target.minimum is not None or target.routing or target.pools
    return option.kind in TOGETHER and option.in_place and not (scaled or asks_more or option.grows)


def _joined(parts: Parts, endpoint: Endpoint, inputs: AccountInputs) -> Recommendation:
    """The recommendation of the variant that saves most, with an option that changes all of `parts` at once."""
    main, option = parts[0], _joint_option(parts, endpoint, inputs)
    strictest = main if all(p.gate in ASKED for p in parts) else next(p for p in parts if p.gate not in ASKED)
    recommendation = replace(
        main,
        options=(option, *main.options),
        gate=strictest.gate,
        gate_reason=strictest.gate_reason,
        replay=main.replay,
    )
    return _rested(_named(recommendation, parts), inputs)


def _joint_option(parts: Parts, endpoint: Endpoint, inputs: AccountInputs) -> Option:
    """One deployment that gives each of `parts` what its own option asks for; the first of them gives the target."""
    chosen = [(p.variant, p.options[0]) for p in parts]
    main, others = chosen[0][1], chosen[1:]
    kinds, single = (
        {option.kind for _, option in chosen} - {OptionKind.INSTANCE_COUNT},
        len({o.kind for _, o in chosen}),
    )
    now = sum((p.usd_per_month or Decimal(0) for p in parts), Decimal(0))
    usd = sum((option.usd_per_month for _, option in chosen), Decimal(0))
    runs_usd = usd_of_variants(endpoint.variants, inputs.prices)
    committed = kept_by_commitment(now - usd, runs_usd, inputs.prices.commitment)
    saving = (now - usd - committed).quantize(CENT)
    risks = _worst_risks(option for _, option in chosen)
    risk = max(risks.values(), default=Risk.VERY_LOW)
    switch = _overlap_usd(chosen, endpoint, inputs, risk)
    counts = [o.mean_instances if o.mean_instances is not None else o.target.instance_count for _, o in chosen]
    known = [o.p95_s for _, o in chosen if o.p95_s is not None]
    return replace(
        main,
        kind=next(iter(kinds)) if kinds and single == 1 else OptionKind.TYPE_AND_COUNT,
        target=replace(main.target, others=tuple(_variant_target(name, option) for name, option in others)),
        usd_per_month=usd,
        saving_usd_per_month=saving,
        switch_usd=switch,
        payback_days=payback_days(switch, saving),
        risks=risks,
        risk=risk,
        confidence=min(option.confidence for _, option in chosen),
        effort=max((Effort.LOW, *(o.effort for _, o in chosen)), key=EFFORTS.index),
        restart_needed=True,
        p95_s=max(known) if len(known) == len(chosen) else None,
        notes=(*(_once(note for _, option in chosen for note in option.notes)), *([COUNTS] if not kinds else [])),
        facts={
            **main.facts,
            "kept by the commitment": f"USD {committed} per month",
            "break-even": break_even_text(Money(usd, saving, switch, 0.0)),
            **{f"variant {name}": _fact(option) for name, option in chosen},
        },
        not_checked=_once(left for _, option in chosen for left in option.not_checked),
        restores=all(option.restores for _, option in chosen),
        by_itself=False,
        mean_instances=round(float(sum(counts)), 4),
    )


def _variant_target(name: str, option: Option) -> VariantTarget:
    return VariantTarget(name, option.target.instance_type, option.target.instance_count, option.price.usd_per_hour)


def _fact(option: Option) -> str:
    slow = "" if option.p95_s is None else f", p95 {seconds_text(option.p95_s)}"
    return f"{fleet(option.target)}, USD {option.saving_usd_per_month:,.2f} per month less{slow}"


def _overlap_usd(
    chosen: Sequence[tuple[str, Option]], endpoint: Endpoint, inputs: AccountInputs, risk: Risk
) -> Decimal:
    """Cost of both fleets at once: a deployment starts every variant anew, once more where it goes back.

    The chance that it goes back is the highest that the risk states.
    """
    moved = {name: option.price.usd_per_hour * option.target.instance_count for name, option in chosen}
    hourly = sum(moved.values(), Decimal(0)) + _hourly((v for v in endpoint.variants if v.name not in moved), inputs)
    return (hourly * _overlap_hours(inputs.policy, risk)).quantize(CENT)


def _overlap_hours(policy: Policy, risk: Risk) -> Decimal:
    return Decimal(str(round(policy.provision_minutes / 60 * (1 + policy.stated_chance(risk)[1]), 6)))


def _hourly(variants: Iterable[Variant], inputs: AccountInputs) -> Decimal:
    """US dollars an hour of variants as they run; those whose price is not known are left out."""
    priced = ((inputs.prices.find(v.instance_type), v.current_count) for v in variants if v.instance_type)
    return sum((price.usd_per_hour * count for price, count in priced if price is not None), Decimal(0))


def _worst_risks(options: Iterable[Option]) -> dict[RiskResource, Risk]:
    found: dict[RiskResource, Risk] = {}
    for option in options:
        for resource, risk in option.risks.items():
            found[resource] = max(found.get(resource, risk), risk)
    return found


def _removal(part: Recommendation, endpoint: Endpoint, inputs: AccountInputs) -> Recommendation:
    """The recommendation of a silent variant beside others that serve: its owner takes it out of the endpoint."""
    silent = next(v for v in endpoint.variants if v.name == part.variant)
    if not part.options or part.price is None:
        return replace(part, finding=Finding.OVER_PROVISIONED)
    old = part.options[0]
    saving = old.saving_usd_per_month
    beside = _hourly((v for v in endpoint.variants if v is not silent), inputs)
    switch = (beside * _overlap_hours(inputs.policy, Risk.VERY_LOW)).quantize(CENT)
    option = new_option(
        OptionKind.REMOVE_VARIANT,
        Target(silent.instance_type, 0),
        part.price,
        Money(Decimal(0), saving, switch, payback_days(switch, saving)),
        old.confidence,
        {RiskResource.AVAILABILITY: Risk.LOW},
        Effort.LOW,
        in_place=False,
        restarts=True,
        client_change=f"callers that name the variant {silent.name} (TargetVariant) get an error",
        notes=("its owner deploys a configuration without it; every other variant starts on new instances",),
        facts=old.facts,
        not_checked=("whether the variant is kept as a way back, or for callers that come rarely",),
    )
    kept = tuple(e for e in part.excluded if e.dimension is not OptionKind.DELETE)
    return replace(part, finding=Finding.OVER_PROVISIONED, options=(option,), excluded=kept)


def _rested(recommendation: Recommendation, inputs: AccountInputs) -> Recommendation:
    """The recommendation, silent while any variant's last change is too young: a deployment moves them all.

    What ends a shortage waits for nothing.
    """
    option = recommendation.chosen_option
    if option is None or recommendation.gate not in ASKED or option.restores or option.grows:
        return recommendation
    to, runs = option.target.instance_type, recommendation.instance_type
    waits = cooldown_reason(inputs.history, inputs.policy, inputs.now, to, runs)
    return recommendation if waits is None else replace(recommendation, gate=Gate.SILENT, gate_reason=waits)


def _named(recommendation: Recommendation, parts: Parts) -> Recommendation:
    """The recommendation whose sentence says which variants it is about."""
    text = "; ".join(f"variant {p.variant}: {p.reason.sentence}" for p in parts)
    reason = Reason(recommendation.reason.code, text)
    why = reason if recommendation.gate_reason == recommendation.reason else recommendation.gate_reason
    return replace(recommendation, reason=reason, gate_reason=why)


def _row(variant: Variant, part: Recommendation, options: tuple[Option, ...], inputs: AccountInputs) -> VariantFinding:
    price = inputs.prices.find(variant.instance_type) if variant.instance_type else None
    today = monthly_cost(price, variant.current_count) if price is not None else None
    return VariantFinding(
        variant.name,
        variant.instance_type,
        variant.current_count,
        variant.weight,
        part.usd_per_month if part.usd_per_month is not None else today,
        part.finding,
        part.reason,
        part.gate,
        part.evidence.requests if part.evidence is not None else None,
        options,
    )


def _open_questions(
    recommendation: Recommendation, endpoint: Endpoint, parts: Parts, rows: Sequence[VariantFinding]
) -> Iterable[str]:
    """Variants that could not be judged, and those whose cost is not known."""
    silent = [
        (v, p)
        for v, p in zip(endpoint.variants, parts, strict=True)
        if p.finding is Finding.NOT_ENOUGH_DATA and v.name != recommendation.variant
    ]
    if silent:
        each = ", ".join(f"{_variant_text(v)}: {p.reason.sentence}" for v, p in silent)
        judged = [row.name for row in rows if row.finding is not Finding.NOT_ENOUGH_DATA] or [recommendation.variant]
        yield f"other variants ({each}); every figure is of {' and '.join(judged)} alone but the cost of today"
    unpriced = [row.name for row in rows if row.usd_per_month is None]
    if unpriced:
        yield f"the cost of variant {', '.join(unpriced)}, whose price is not known: it is not in the sum"


def _variant_text(variant: Variant) -> str:
    return f"{variant.name} ({variant.current_count} x {variant.instance_type or 'no type of its own'})"


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
