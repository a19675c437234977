"""Choose among the options of one endpoint, or keep it, each with its reason.

After a change of ours that went wrong, bring back what was good before it, or as much of it as the load needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice

from rightsizer.domain.option import Excluded, Money, Option, OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation, Replay
from rightsizer.recommender.context import Situation
from rightsizer.recommender.dimension import Offering
from rightsizer.recommender.evidence import gpus_of
from rightsizer.recommender.finding import starving
from rightsizer.recommender.fleet_size import before_ours, grows, held, jumped, plan_of, raises, still_carries
from rightsizer.recommender.gate import Case, asked, gate, restoring
from rightsizer.recommender.late_requests import BUDGET, budget_spent, caution, hurt, overdrawn
from rightsizer.recommender.options import Options, options_for, saving_share, stand_ins
from rightsizer.recommender.pricing import cost_of, restore_option, tested
from rightsizer.recommender.replay import strain_of
from rightsizer.recommender.shadow_test import Unsure, before_sure, impossible, not_planned, promising, worth_testing

JUMPED = Reason(
    Code.UNDER_PROVISIONED,
    "the traffic jumped and the fleet we set does not carry it: the last good configuration comes back"
    " until a day of the new traffic was seen",
)
TIGHT = Reason(Code.UNDER_PROVISIONED, "the fleet we set no longer carries the load")


def chosen_or_kept(base: Recommendation, at: Situation, dimensions: Iterable[Offering]) -> Recommendation:
    """The recommendation with finding, options and gate."""
    harm = hurt(at)
    if harm is not None and (harm.severe or at.runs.name != at.reference.name):
        return _with_replay(restored(base, at, harm.reason), at)
    if jumped(at) and not still_carries(at):
        return _with_replay(restored(base, at, JUMPED), at)
    at = replace(at, cautious=at.cautious + (harm is not None) + caution(at))
    at = replace(at, strained=harm is not None or not still_carries(at), spent=budget_spent(at))
    options = options_for(at)
    rivals = [answer for one in dimensions if one.competes for answer in one.offer(at, base)]
    beside = (answer for answer in rivals if isinstance(answer, Option))
    sure = tuple(sorted((*options.sure, *beside), key=lambda o: _rank(at, o)))
    base = replace(base, excluded=(*options.excluded, *(a for a in rivals if isinstance(a, Excluded))))
    more = raised(base, at, sure)
    if more is not None:
        return _with_replay(more, at)
    best = sure[0] if sure else None
    # users wait today, and a test takes a day
    growing = best is not None and (harm is not None or (at.tight and best.saving_usd_per_month <= 0))
    tested = None if growing else choose_shadow_test(at, options, best)
    if tested is not None:
        return _testing(base, tested[0], tested[1], sure, at)
    if best is None:
        hungry = starving(at.demand, at.latency, at.goal, at.policy, sum(at.fleet) / 24)
        if hungry is not None and at.runs.name == at.reference.name:
            verdict, why = asked(at.endpoint, hungry)
            return replace(base, finding=Finding.UNDER_PROVISIONED, reason=hungry, gate=verdict, gate_reason=why)
        reason = _why_kept(options, at)
        return replace(base, finding=_finding(options, at, None), reason=reason, gate_reason=reason)
    return _gated(base, at, best, sure, options)


def _rank(at: Situation, option: Option) -> tuple[bool, Decimal, str]:
    """The cheapest first; types that had no capacity lately after all others."""
    name = option.target.instance_type
    return name in at.lacking, option.usd_per_month, name


def choose_shadow_test(at: Situation, options: Options, best: Option | None) -> tuple[Unsure, Reason] | None:
    """The shadow test to run now, unless a sure change should come first."""
    saving = max(best.saving_usd_per_month, at.usd * 0) if best is not None else at.usd * 0
    found = worth_testing(options.unsure, saving, at.given.history, at.policy)
    if found is None or impossible(at.endpoint) is not None:
        return None
    enough = best is not None and saving_share(at, best) >= at.policy.minimum_saving_share
    return None if enough and not before_sure(found[0], saving) else found


def _finding(options: Options, at: Situation, best: Option | None) -> Finding:
    """The finding beside no change, or one that saves too little: a test that may not run hides no waste."""
    sure = max(best.saving_usd_per_month, at.usd * 0) if best is not None else at.usd * 0
    return Finding.OVER_PROVISIONED if promising(options.unsure, sure, at.policy) else Finding.OPTIMIZED


def _testing(
    base: Recommendation, test: Unsure, why: Reason, sure: tuple[Option, ...], at: Situation
) -> Recommendation:
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{test.option.target.instance_type} would save ${test.option.saving_usd_per_month:,.2f} a month if it is fast"
        f" enough and the model fits{_gpus(at)}",
    )
    found = replace(
        base,
        finding=Finding.OVER_PROVISIONED,
        reason=reason,
        options=(_with_test(test), *sure),
        gate=Gate.TEST,
        gate_reason=why,
    )
    return _with_replay(found, at)


def _with_test(item: Unsure) -> Option:
    """The option with the price of the shadow test that has to come first."""
    return tested(item.option, Decimal(str(round(item.cost, 2))))


def _gated(
    base: Recommendation, at: Situation, best: Option, sure: tuple[Option, ...], options: Options
) -> Recommendation:
    case = _case(at, best)
    if at.tight and best.saving_usd_per_month <= 0 and (at.strained or _larger(at, best)):
        larger = why_larger(at)
        verdict, why = restoring(at.endpoint, larger)
        stays = held(at, best)
        if stays is not None:
            verdict, why = asked(at.endpoint, stays)
        kept = () if stays is not None else (best,)
        grown = replace(base, finding=Finding.UNDER_PROVISIONED, reason=larger, options=kept)
        return _with_replay(replace(grown, gate=verdict, gate_reason=why), at)
    until = _until(at) if best.kind is not OptionKind.SCALE_TO_ZERO else None  # asleep, it serves nobody worse
    if until is not None and best.saving_usd_per_month <= 0:
        return replace(base, reason=until, gate=Gate.SILENT, gate_reason=until)
    verdict, why = gate(case, at.given.history, at.policy, at.given.now)
    small = why if why.code is Code.SAVING_TOO_SMALL else None
    if until is not None:  # it speaks of harm, which no milder reason may hide: an approval is held against it
        verdict, why = Gate.SILENT, until
    unsure = tuple(_with_test(u) for u in options.unsure[:3])
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{best.target.instance_count} × {best.target.instance_type} ({best.kind.value}) can serve the same load for"
        f" ${best.usd_per_month:,.2f} a month; today it costs ${at.usd:,.2f}{_gpus(at)}",
    )
    found = replace(
        base,
        finding=_finding(options, at, best) if small else Finding.OVER_PROVISIONED,
        reason=small or reason,
        options=(*(sure if verdict is not Gate.APPLY else _standing_by(at, sure, options)), *unsure),
        gate=verdict,
        gate_reason=why,
    )
    return _with_replay(found, at)


def _gpus(at: Situation) -> str:
    """That some GPUs of what runs do nothing, where that is known: they were counted on the reference type."""
    known = at.demand.gpus_used is not None and at.runs.name == at.reference.name
    return f"; it uses {gpus_of(at.demand, at.reference)}" if known else ""


def _until(at: Situation) -> Reason | None:
    """Why nothing gets smaller yet: more requests came late since our first change than may."""
    if at.spent is None:
        return None
    used = overdrawn(at.spent, at)
    return Reason(Code.LATE_BUDGET_SPENT, f"{used}; nothing gets smaller until it is at most {BUDGET:g} times")


def _larger(at: Situation, option: Option) -> bool:
    """Whether it is more of what runs."""
    mean = option.mean_instances or option.target.instance_count
    return option.target.instance_type == at.runs.name and mean > at.instances + 0.01


def _case(at: Situation, option: Option) -> Case:
    longer = max((option.p95_s or at.latency.p95_s) / at.latency.p95_s - 1, 0.0)
    moved = option.target.instance_type != at.runs.name
    then = at.given.catalogue.find(option.target.instance_type)
    return Case(
        at.endpoint,
        option,
        at.demand,
        at.runs.name,
        saving_share(at, option),
        at.goal.declared,
        longer if moved else 0.0,
        gpus=(at.runs.accelerator_count, then.accelerator_count if then else at.runs.accelerator_count),
    )


def _standing_by(at: Situation, sure: Sequence[Option], options: Options) -> Iterator[Option]:
    """The options, marked where they could stand in for the chosen one by the same gate; one of another type more."""
    yield sure[0]
    others = False
    for option in sure[1:]:
        marked = replace(option, by_itself=_passes(at, option))
        others = others or (marked.by_itself and option.target.instance_type != sure[0].target.instance_type)
        yield marked
    if not others:
        found = (o for o in stand_ins(at, options) if _passes(at, o))
        yield from (replace(o, by_itself=True) for o in islice(found, 1))


def _passes(at: Situation, option: Option) -> bool:
    return gate(_case(at, option), at.given.history, at.policy, at.given.now)[0] is Gate.APPLY


def _with_replay(found: Recommendation, at: Situation) -> Recommendation:
    """The recommendation with the replay of what it recommends; a test, at the speed that it is to show."""
    return found if found.chosen is None else replace(found, replay=replayed(at, found.chosen))


def replayed(at: Situation, option: Option) -> Replay | None:
    """The look-back run again on the option; None for options that are no fleet."""
    if option.kind in (OptionKind.SCALE_TO_ZERO, OptionKind.DELETE):
        return None
    hardware = at.given.catalogue.find(option.target.instance_type)
    if hardware is None:
        return None
    ratio = (option.p95_s or at.latency.p95_s) / at.latency.p95_s
    plan = plan_of(at, option, hardware, ratio)
    service = sum(value * share for value, share in at.service) * ratio
    need, chip = at.demand.memory.need_gib, hardware.accelerator
    margin = chip.usable_gib - need if chip and need is not None else None
    then, copies = at.served(plan), at.stream.copies
    return strain_of(at.days, service, plan, then, at.before, copies, at.goal.p95_s, margin)


def _why_kept(options: Options, at: Situation) -> Reason:
    if options.unsure:
        best = max(options.unsure, key=lambda u: u.prize)
        why = not_planned(best, at.usd * 0, at.endpoint, at.given.history, at.policy)
        name = best.option.target.instance_type
        chance = f"{100 * best.chance:.0f} %" if best.chance >= 0.01 else "less than 1 %"
        if best.chance < at.policy.test_chance:
            text = f"no cheaper type fits: {name}, which comes closest, is {chance} likely to be fast and large enough"
        else:
            text = f"{name} would be cheaper, and is {chance} likely to be fast and large enough; {why}"
        return Reason(Code.RISK_TOO_HIGH, text)
    cheaper = [
        e
        for e in options.excluded
        if (p := at.given.prices.find(e.instance_type)) and p.usd_per_hour < at.price.usd_per_hour
    ]
    tail = f". The next cheaper type: {cheaper[-1].reason.sentence}" if cheaper else ""
    return Reason(Code.ALREADY_RIGHT, f"already right: no cheaper type serves this load{_gpus(at)}{tail}")


def restored(base: Recommendation, at: Situation, why: Reason) -> Recommendation:
    """The last good configuration comes back, because of `why`."""
    price = at.given.prices.find(at.reference.name)
    if price is None:
        return replace(base, finding=Finding.UNDER_PROVISIONED, reason=why, gate_reason=why)
    target, mean = before_ours(at), sum(at.fleet) / 24
    moved = target.instance_type != at.runs.name
    cost = cost_of(at.usd, price, mean, target.instance_count, 0.0, at.given.prices.commitment, at.policy, moved)
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    now = (at.runs.name, at.variant.current_count)
    option = restore_option(at.endpoint.kind, now, target, price, money, at.demand.confidence)
    stays = held(at, option)
    if stays is not None:
        verdict, reason = asked(at.endpoint, stays)
        return replace(
            base, finding=Finding.UNDER_PROVISIONED, reason=why, gate=verdict, gate_reason=reason, options=()
        )
    verdict, reason = restoring(at.endpoint, why)
    return replace(
        base, finding=Finding.UNDER_PROVISIONED, reason=why, options=(option,), gate=verdict, gate_reason=reason
    )


def why_larger(at: Situation) -> Reason:
    """Why a fleet of ours has to grow: its load, or the late requests that it left standing."""
    if at.strained or at.spent is None:
        return TIGHT
    return Reason(Code.UNDER_PROVISIONED, f"{overdrawn(at.spent, at)}: the fleet we set gets larger")


def raised(base: Recommendation, at: Situation, sure: Sequence[Option]) -> Recommendation | None:
    """The owner's minimum goes up before anything else is asked; None where it does not, or cannot.

    To what the load needs, within the owner's maximum; where no such fleet carries it, to the owner's own minimum. A
    fleet that carries its load, and only used up what may be late, keeps its minimum where the sizing asks for no more.
    """
    if not grows(at, at.runs.name):
        return None
    option = next((o for o in sure if raises(at, o)), None)
    if option is None and not at.strained:
        return None
    larger = why_larger(at)
    if option is None:
        back = restored(base, at, larger)
        return back if back.options or not sure else None
    verdict, why = restoring(at.endpoint, larger)
    option = replace(option, restores=True)
    return replace(
        base, finding=Finding.UNDER_PROVISIONED, reason=larger, options=(option,), gate=verdict, gate_reason=why
    )
