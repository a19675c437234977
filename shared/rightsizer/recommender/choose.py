"""Choose among the options of one endpoint, or keep it, each with its reason.

After a change of ours that went wrong, bring back what was good before it, or as much of it as the load needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from rightsizer.domain.option import Excluded, Money, Option, OptionKind, Target, fleet
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation, Replay
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.dimension import Offering, collect_offers
from rightsizer.recommender.evidence import gpus_text, silence_text, unused_text
from rightsizer.recommender.fleet_size import (
    can_still_carry,
    fleet_before_changes,
    fleet_of_option,
    is_minimum_raised,
    is_minimum_raised_to_grow,
    latency_ratio,
    minimum_refusal,
)
from rightsizer.recommender.gate import ask_person, decide_restore
from rightsizer.recommender.growth import beyond_owner_reason, owner_usd, recommend_growth
from rightsizer.recommender.growth_fleets import growth_need
from rightsizer.recommender.hourly_counts import has_load_jumped, replay_plan
from rightsizer.recommender.late_requests import (
    BUDGET,
    budget_sentence,
    extra_margin,
    find_degradation,
    late_budget_used,
)
from rightsizer.recommender.options import Options, options_for, saving_share, stand_ins
from rightsizer.recommender.priced_option import within_objective, within_p95
from rightsizer.recommender.pricing import committed_text, cost_of, kept_by_commitment, restore_option
from rightsizer.recommender.questions import ask_about_test, offer_test, with_open_question, with_test
from rightsizer.recommender.replay import replay_of
from rightsizer.recommender.scale_to_zero import SilentFleet, fleet_while_silent
from rightsizer.recommender.shadow_test import (
    ShadowTestCandidate,
    choose_test,
    is_promising,
    is_test_first,
    no_test_reason,
    shadow_test_refusal,
)
from rightsizer.recommender.stages import fleet_and_kind, gate_case, gate_of, in_order, may_apply, put_allowed_first

LESS_ROOM = Reason(
    Code.RISK_TOO_HIGH,
    "needs your approval: it holds the objective at the load seen, with little room to grow",
)
UNTIL_BACK = "when requests come back: these instances alone serve them until the fleet before is back too"
JUMPED = Reason(
    Code.UNDER_PROVISIONED,
    "the traffic jumped and the fleet we set does not carry it: the last good configuration comes back"
    " until a day of the new traffic was seen",
)
NO_CHEAPER = "no cheaper type serves this load"
"""Why an endpoint keeps its type; what it saves in another way may be said beside it."""
TIGHT = Reason(Code.UNDER_PROVISIONED, "the fleet we set no longer carries the load")


def choose_option(base: Recommendation, context: EvaluationContext, dimensions: Iterable[Offering]) -> Recommendation:
    """The recommendation with finding, options and gate."""
    harm = find_degradation(context)
    if harm is None and (silent := fleet_while_silent(context)) is not None:  # callers may have left what harmed them
        return _while_silent(base, silent)
    if harm is not None and (harm.is_severe or context.runs.name != context.reference.name):
        return _with_replay(recommend_previous_configuration(base, context, harm.reason), context)
    if has_load_jumped(context) and not can_still_carry(context):
        return _with_replay(recommend_previous_configuration(base, context, JUMPED), context)
    context = replace(context, extra_margin=context.extra_margin + (harm is not None) + extra_margin(context))
    context = replace(
        context,
        is_strained=harm is not None or not can_still_carry(context),
        late_budget_used=late_budget_used(context),
    )
    options = options_for(context)
    rivals = [answer for one in dimensions if one.competes for answer in collect_offers(one, context, base)]
    beside = (answer for answer in rivals if isinstance(answer, Option))
    sure = with_open_question(context, base.fingerprint, in_order(context, (*options.sure, *beside)))
    base = replace(base, excluded=(*options.excluded, *(a for a in rivals if isinstance(a, Excluded))))
    more = recommend_higher_minimum(base, context, sure)
    if more is not None:
        return _with_replay(more, context)
    best = sure[0] if sure else None
    if (grown := recommend_growth(base, context, best)) is not None:
        return _with_replay(grown, context)
    # users wait today, and a test takes a day
    growing = best is not None and (harm is not None or (context.is_fleet_too_small and best.saving_usd_per_month <= 0))
    tested = None if growing else choose_shadow_test(context, options, best)
    if tested is not None:
        return _recommend_test(base, tested[0], tested[1], sure, context)
    ends_shortage = growth_need(context) is not None  # the best option does, and a smaller step may not
    first = sure if not sure or ends_shortage else put_allowed_first(context, sure)
    waits = growing or late_budget_refusal(context) is not None
    within = _ask_within_objective(base, context) if best is None else None
    known = first if within is None else within.options  # what is known to hold the objective is weighed against a test
    asked = None if waits else ask_about_test(base, context, options, known, gate_case)
    if asked is not None:
        return _with_replay(asked, context)
    if within is not None:
        return within
    if best is None:
        reason = _keep_reason(options, context)
        return replace(base, finding=_finding(options, context, None), reason=reason, gate_reason=reason)
    return offer_test(_apply_gate(base, context, first, options), context)


def _while_silent(base: Recommendation, silent: SilentFleet) -> Recommendation:
    """Fewer instances while nobody calls; the best step now, and no other type before requests tell what it carries."""
    option, context = silent.option, silent.context
    if isinstance(option, Reason):
        return replace(base, reason=option, gate_reason=option)
    steps = tuple(
        replace(step, not_checked=(*step.not_checked, UNTIL_BACK)) for step in put_allowed_first(context, (option,))
    )
    verdict, why = gate_of(context, steps[0])
    text = (
        f"its traffic has stopped ({silent.silence.sentence}): {fleet(steps[0].target)} is enough until it comes back,"
    )
    text += f" for ${steps[0].usd_per_month:,.2f} a month; today it costs ${context.usd_per_month:,.2f}"
    small = why.code is Code.SAVING_TOO_SMALL
    found = replace(base, reason=why if small else Reason(Code.CHEAPER_OPTION, text), options=steps)
    finding = Finding.OPTIMIZED if small else Finding.OVER_PROVISIONED
    return _with_replay(replace(found, finding=finding, gate=verdict, gate_reason=why), context)


def _ask_within_objective(base: Recommendation, context: EvaluationContext) -> Recommendation | None:
    """The question about what the p95 allows, where nothing saves without late requests; None where nothing does."""
    wide = None if context.is_fleet_too_small else within_objective(context)
    options = options_for(wide) if wide is not None else None
    sure = tuple(filter(None, (within_p95(wide, o) for o in options.sure))) if wide and options else ()
    sure = with_open_question(wide, base.fingerprint, sure) if wide is not None else sure
    if wide is None or options is None or not sure:
        return None
    found = _apply_gate(base, wide, sure, options)
    if found.gate is Gate.APPLY:  # room to grow was given up for it too, so that it is never done by itself
        asked = tuple(replace(option, by_itself=False) for option in found.options)
        found = replace(found, options=asked, gate=Gate.PROPOSE, gate_reason=LESS_ROOM)
    return None if found.gate_reason.code is Code.SAVING_TOO_SMALL else found


def choose_shadow_test(
    context: EvaluationContext, options: Options, best: Option | None
) -> tuple[ShadowTestCandidate, Reason] | None:
    """The shadow test to run now, unless a sure change should come first."""
    saving = (
        max(best.saving_usd_per_month, context.usd_per_month * 0) if best is not None else context.usd_per_month * 0
    )
    found = choose_test(options.unsure, saving, context.inputs.history, context.policy)
    if found is None or shadow_test_refusal(context.endpoint) is not None:
        return None
    enough = best is not None and saving_share(context, best) >= context.policy.minimum_saving_share
    return None if enough and not is_test_first(found[0], saving) else found


def _finding(options: Options, context: EvaluationContext, best: Option | None) -> Finding:
    """The finding beside no change, or one that saves too little: a test that may not run hides no waste."""
    sure = max(best.saving_usd_per_month, context.usd_per_month * 0) if best is not None else context.usd_per_month * 0
    return Finding.OVER_PROVISIONED if is_promising(options.unsure, sure, context.policy) else Finding.OPTIMIZED


def _recommend_test(
    base: Recommendation, test: ShadowTestCandidate, why: Reason, sure: tuple[Option, ...], context: EvaluationContext
) -> Recommendation:
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{test.option.target.instance_type} would save ${test.option.saving_usd_per_month:,.2f} a month if it is fast"
        f" enough and the model fits{_unused_gpus(context)}",
    )
    found = replace(
        base,
        finding=Finding.OVER_PROVISIONED,
        reason=reason,
        options=(with_test(test, context.policy.risk_propose), *sure),
        gate=Gate.TEST,
        gate_reason=why,
    )
    return _with_replay(found, context)


def _apply_gate(
    base: Recommendation, context: EvaluationContext, sure: tuple[Option, ...], options: Options
) -> Recommendation:
    best = sure[0]
    if (
        context.is_fleet_too_small
        and best.saving_usd_per_month <= 0
        and (context.is_strained or context.is_larger(best))
    ):
        return _with_replay(_grow_our_fleet(base, context, best), context)
    until = (
        late_budget_refusal(context) if best.kind is not OptionKind.SCALE_TO_ZERO else None
    )  # asleep, it serves nobody worse
    if until is not None and best.saving_usd_per_month <= 0:
        return replace(base, reason=until, gate=Gate.SILENT, gate_reason=until)
    verdict, why = gate_of(context, best)
    small = why if why.code is Code.SAVING_TOO_SMALL else None
    if until is not None:  # it speaks of harm, which no milder reason may hide: an approval is held against it
        verdict, why = Gate.SILENT, until
    test_candidates = tuple(with_test(u, context.policy.risk_propose) for u in options.unsure[:3])
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{fleet_and_kind(best)} can serve the same load for"
        f" ${best.usd_per_month:,.2f} a month; today it costs ${context.usd_per_month:,.2f}{_unused_gpus(context)}"
        f"{silence_text(context.demand)}",
    )
    sure = sure if verdict is not Gate.APPLY else tuple(_mark_stand_ins(context, sure, options))
    found = replace(
        base,
        finding=_finding(options, context, best) if small else Finding.OVER_PROVISIONED,
        reason=small or reason,
        options=(*sure, *test_candidates),
        excluded=_without_offered(base.excluded, sure),
        gate=verdict,
        gate_reason=why,
    )
    return _with_replay(found, context)


def _without_offered(excluded: Sequence[Excluded], options: Sequence[Option]) -> tuple[Excluded, ...]:
    """What was ruled out, but for dearer types that stand among the options all the same, to stand in."""
    offered = {option.target.instance_type for option in options}
    return tuple(e for e in excluded if e.reason.code is not Code.DEARER_THAN_OFFERED or e.instance_type not in offered)


def _grow_our_fleet(base: Recommendation, context: EvaluationContext, best: Option) -> Recommendation:
    """More for a fleet that a change of ours made too small: by itself no more than its owner had, or allowed."""
    larger = growth_reason(context)
    base = replace(base, finding=Finding.UNDER_PROVISIONED, reason=larger)
    if (stays := minimum_refusal(context, best)) is not None:
        verdict, why = ask_person(context.endpoint, stays)
        return replace(base, options=(), gate=verdict, gate_reason=why)
    verdict, why = decide_restore(
        context.endpoint, replace(best, restores=True), larger, context.inputs.history, context.inputs.now
    )
    beyond = beyond_owner_reason(context, best) if verdict is Gate.APPLY else None
    if beyond is None:
        return replace(base, options=(replace(best, restores=True),), gate=verdict, gate_reason=why)
    dearer = replace(best, growth_usd=best.usd_per_month - owner_usd(context))
    if context.usd_per_month < owner_usd(context):
        return _with_rest(recommend_previous_configuration(base, context, larger), dearer, beyond)
    return replace(base, options=(dearer,), gate=Gate.PROPOSE, gate_reason=beyond)


def _with_rest(back: Recommendation, rest: Option, why: Reason) -> Recommendation:
    """The owner's fleet that comes back, with the larger one behind it that a person is asked about."""
    note = f"a first step: the load needs {fleet_and_kind(rest)}; {why.sentence}"
    first = tuple(replace(option, notes=(*option.notes, note)) for option in back.options)
    return replace(back, options=(*first, rest))


def _unused_gpus(context: EvaluationContext) -> str:
    """That some GPUs of what runs do nothing, where that is known: they were counted on the reference type."""
    known = context.demand.gpus_used is not None and context.runs.name == context.reference.name
    return f"; it uses {gpus_text(context.demand, context.reference)}" if known else ""


def late_budget_refusal(context: EvaluationContext) -> Reason | None:
    """Why nothing gets smaller yet: more requests came late since our first change than may."""
    if context.late_budget_used is None:
        return None
    used = budget_sentence(context.late_budget_used, context)
    return Reason(Code.LATE_BUDGET_SPENT, f"{used}; nothing gets smaller until it is at most {BUDGET:g} times")


def _mark_stand_ins(context: EvaluationContext, sure: Sequence[Option], options: Options) -> Iterator[Option]:
    """The options, marked where they could stand in for the chosen one by the same gate; one of another type more."""
    yield sure[0]
    others = False
    for option in sure[1:]:
        marked = replace(option, by_itself=may_apply(context, option))
        others = others or (marked.by_itself and option.target.instance_type != sure[0].target.instance_type)
        yield marked
    if not others:
        found = (o for o in stand_ins(context, options) if may_apply(context, o))
        yield from (replace(o, by_itself=True) for o in islice(found, 1))


def _with_replay(recommendation: Recommendation, context: EvaluationContext) -> Recommendation:
    """The recommendation with the replay of what it recommends; a test, at the speed that it is to show."""
    return (
        recommendation
        if recommendation.chosen_option is None
        else replace(recommendation, replay=replay_option(context, recommendation.chosen_option))
    )


def replay_option(context: EvaluationContext, option: Option) -> Replay | None:
    """The look-back run again on the option; None for options that are no fleet."""
    if option.kind in (OptionKind.SCALE_TO_ZERO, OptionKind.DELETE):
        return None
    hardware = context.inputs.catalogue.find(option.target.instance_type)
    if hardware is None:
        return None
    ratio = latency_ratio(option)
    fleet = fleet_of_option(context, option, hardware, ratio)
    service = sum(value * share for value, share in context.service_times) * ratio
    need, chip = context.demand.memory.need_gib, hardware.accelerator
    margin = chip.usable_gib - need if chip and need is not None else None
    return replay_of(context.days, service, fleet, replay_plan(context, fleet), context.limit_s, margin)


def _keep_reason(options: Options, context: EvaluationContext) -> Reason:
    today, plan = context.usd_per_month, context.inputs.prices.commitment
    if 0 < today <= kept_by_commitment(today, today, plan):
        text = f"already right: a Savings Plan pays for all that it costs{committed_text(plan.usd_per_hour)}"
        return Reason(Code.COMMITTED, f"{text}; until the plan ends less would save nothing")
    if options.unsure:
        best = max(options.unsure, key=lambda u: u.expected_saving)
        why = no_test_reason(best, context.usd_per_month * 0, context.endpoint, context.inputs.history, context.policy)
        name = best.option.target.instance_type
        chance = f"{100 * best.chance:.0f} %" if best.chance >= 0.01 else "less than 1 %"
        if best.chance < context.policy.test_chance:
            text = f"no cheaper type fits: {name}, which comes closest, is {chance} likely to be fast and large enough"
        else:
            text = f"{name} would be cheaper, and is {chance} likely to be fast and large enough; {why}"
        return Reason(Code.RISK_TOO_HIGH, text)
    cheaper = [
        e
        for e in options.excluded
        if (p := context.inputs.prices.find(e.instance_type)) and p.usd_per_hour < context.price.usd_per_hour
    ]
    tail = f". The next type that costs less an hour: {cheaper[-1].reason.sentence}" if cheaper else ""
    idle = unused_text(context.requests_by_hour, context.usd_per_month)
    return Reason(Code.ALREADY_RIGHT, f"already right: {NO_CHEAPER}{_unused_gpus(context)}{idle}{tail}")


def recommend_previous_configuration(base: Recommendation, context: EvaluationContext, why: Reason) -> Recommendation:
    """The last good configuration comes back, because of `why`."""
    price = context.inputs.prices.find(context.reference.name)
    if price is None:
        return replace(base, finding=Finding.UNDER_PROVISIONED, reason=why, gate_reason=why)
    target = fleet_before_changes(context)
    mean = _instances_before(context, target)
    moved = target.instance_type != context.runs.name
    cost = cost_of(
        context.usd_per_month,
        price,
        mean,
        target.instance_count,
        0.0,
        context.inputs.prices.commitment,
        context.policy,
        moved,
    )
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    now = (context.runs.name, context.variant.current_count)
    option = restore_option(context.endpoint.kind, now, target, price, money, context.demand.confidence)
    stays = minimum_refusal(context, option)
    if stays is not None:
        verdict, reason = ask_person(context.endpoint, stays)
        return replace(
            base, finding=Finding.UNDER_PROVISIONED, reason=why, gate=verdict, gate_reason=reason, options=()
        )
    verdict, reason = decide_restore(context.endpoint, option, why, context.inputs.history, context.inputs.now)
    return replace(
        base, finding=Finding.UNDER_PROVISIONED, reason=why, options=(option,), gate=verdict, gate_reason=reason
    )


def _instances_before(context: EvaluationContext, target: Target) -> float:
    """Instances on average before our changes; of a fixed fleet the most that each hour had."""
    seen = [count for day in context.base for count in day.instances if count]
    return sum(seen) / len(seen) if target.per_instance and seen else sum(context.reference_counts) / 24


def growth_reason(context: EvaluationContext) -> Reason:
    """Why a fleet of ours has to grow: its load, or the late requests that it left standing."""
    if context.is_strained or context.late_budget_used is None:
        return TIGHT
    return Reason(
        Code.UNDER_PROVISIONED, f"{budget_sentence(context.late_budget_used, context)}: the fleet we set gets larger"
    )


def recommend_higher_minimum(
    base: Recommendation, context: EvaluationContext, sure: Sequence[Option]
) -> Recommendation | None:
    """The owner's minimum goes up before anything else is asked; None where it does not, or cannot.

    To what the load needs, within the owner's maximum and by the rule of all growth of our fleets; where no such fleet
    carries it, to the owner's own minimum. A fleet that carries its load, and only used up what may be late, keeps its
    minimum where the sizing asks for no more.
    """
    if not is_minimum_raised_to_grow(context, context.runs.name):
        return None
    option = next((o for o in sure if is_minimum_raised(context, o)), None)
    if option is None and not context.is_strained:
        return None
    larger = growth_reason(context)
    if option is None:
        back = recommend_previous_configuration(base, context, larger)
        return back if back.options or not sure else None
    return _grow_our_fleet(base, context, option)
