"""Questions to a person about an option: a shadow test before it, and the answer that was given before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.hardware import is_scarce
from rightsizer.domain.office_hours import ALWAYS_OPEN, FALLBACK_TAG, HOURS_TAG
from rightsizer.domain.option import Option, OptionKind, Risk, RiskResource
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.domain.price import CENT
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.fleet_size import fleet_of_option, replay_if_carried
from rightsizer.recommender.gate import GateCase, ask_person, decide_gate
from rightsizer.recommender.hourly_counts import replay_plan
from rightsizer.recommender.late_requests import failed_instances
from rightsizer.recommender.options import Options, check_fleet, saving_share, test_candidate
from rightsizer.recommender.priced_option import price_fleet, sized_slowdown
from rightsizer.recommender.pricing import kept_by_commitment, monthly_cost, with_test_cost
from rightsizer.recommender.shadow_test import (
    ShadowTestCandidate,
    choose_test,
    declared_refusal,
    impossible_test_reason,
    is_test_first,
)

FAR_CHEAPER = 4
"""A sure option that costs so many times an uncertain one is not recommended before that one was asked about.

Machines with four GPUs cost four to six times as much as those with one (g5.xlarge to g5.12xlarge): a sure option
that is so far off pays for GPUs that nobody uses.
"""
FAR_CHEAPER_THAN_SAFE = 8
"""The same of a sure option that automatic mode may take now: eight GPUs cost at least eight times one of their kind.

A machine of eight of which one works is no step towards a machine with one. Short of that a step that saves and is
safe is taken, since nobody may answer.
"""
EVEN = 0.5
"""Chance above which a change is asked about that no shadow test can try first: its canary is the only test, and a
deployment that fails in most cases costs callers more than a test would.
"""
SAID_ANYWAY = frozenset(
    {Code.OWNED_BY_STACK, Code.OTHER_KIND, Code.UNKNOWN_FIELD, Code.CONFIGURATION_REPLACED, Code.TOO_MANY_ERRORS}
)
"""Reasons for asking that say more than that a test is worth its cost."""

UNUSED_USD = 2000
"""What hours without a request cost a month from which its owner is asked whether it must run then, though no fleet is
cheaper: about two days of a person's work, which is what it takes once to move callers to set hours or a queue."""
UNUSED_SHARE = 0.5
"""Share of the hours from which they are so many: nights and weekends, not a quiet hour here and there."""
WEEK_HOURS = 7 * 24
"""Hours that have to be known for it, so that each day of the week was seen."""

SHOWN_BY_A_TEST = {
    RiskResource.GPU_MEMORY: Risk.VERY_LOW,
    RiskResource.LATENCY: Risk.LOW,
    RiskResource.CAPACITY: Risk.LOW,
}
"""Largest risks of a resource after a test that went well."""

type MakeCase = Callable[[EvaluationContext, Option], GateCase]


@dataclass(frozen=True, slots=True)
class AskedOption:
    """An option that is asked about, and why."""

    candidate: ShadowTestCandidate
    option: Option
    """With the cost of the test, or without one and with the risk of that."""
    reason: Reason


def ask_about_test(
    base: Recommendation, context: EvaluationContext, options: Options, sure: Sequence[Option], case: MakeCase
) -> Recommendation | None:
    """The recommendation that asks about the most promising uncertain option. None where a sure one comes first."""
    best = sure[0] if sure else None
    saving = max(best.saving_usd_per_month, Decimal(0)) if best is not None else Decimal(0)
    asked = _asked_with_test(context, options, saving, base.fingerprint) or _asked_untested(context, options, saving)
    if asked is None:
        return None
    verdict, why = _decide(context, case(context, asked.option))
    if best is not None and not _comes_first(context, asked, best, verdict, case):
        return None
    if verdict is not Gate.SILENT and why.code not in SAID_ANYWAY:
        why = asked.reason
    name = asked.option.target.instance_type
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"{name} would save ${asked.option.saving_usd_per_month:,.2f} a month if it is fast enough and the model fits",
    )
    return replace(
        base,
        finding=Finding.OVER_PROVISIONED,
        reason=reason,
        options=(asked.option, *sure),
        gate=Gate.SILENT if verdict is Gate.SILENT else Gate.PROPOSE,
        gate_reason=why,
    )


def ask_about_unused_hours(recommendation: Recommendation, context: EvaluationContext) -> Recommendation:
    """The question whether it must run at all times, where nothing else is found. There is nothing to approve.

    Not asked of what sleeps by its own queue, nor where its owner set hours. What autoscaling adds works in other
    hours: the cost counts the fewest that run, less what a Savings Plan bills anyway. Of what a stack owns hours stop
    nothing, so that they are not named.
    """
    hours = [calls for calls in recommendation.hourly_requests if calls is not None]
    unused = hours.count(0) / max(len(hours), 1)
    fewest = min(context.instances, min(context.reference_counts))
    gross = (monthly_cost(context.price, fewest) * Decimal(str(unused))).quantize(CENT)
    kept = kept_by_commitment(gross, context.usd_per_month, context.inputs.prices.commitment)
    endpoint, usd = context.endpoint, gross - kept
    keeps = recommendation.reason.code in (Code.ALREADY_RIGHT, Code.RISK_TOO_HIGH)
    nothing = keeps and recommendation.gate is Gate.SILENT and not recommendation.options
    many = unused >= UNUSED_SHARE and usd >= UNUSED_USD and len(hours) >= WEEK_HOURS
    if not nothing or not many or endpoint.kind is not EndpointKind.REAL_TIME or HOURS_TAG in endpoint.tags:
        return recommendation
    seen = f"no request came in {100 * unused:.0f} % of its hours, which cost ${usd:,.0f} a month"
    seen += " beyond what the Savings Plan bills anyway" if kept else ""
    queue, no = "let a queue keep the calls (asynchronous inference)", f"'{ALWAYS_OPEN}' says always: no more questions"
    ways = f"set hours in which it runs (tag {HOURS_TAG}; {no}), or {queue}"
    if endpoint.owned_by:
        ways = f"remove it in those hours by {endpoint.owned_by}, which owns it, or {queue} (tag {HOURS_TAG}: {no})"
    elif is_scarce(context.runs.name):
        ways += f"; {context.runs.name} may not be there again when it starts, so name what runs then ({FALLBACK_TAG})"
    verdict, why = ask_person(endpoint, Reason(Code.NEEDS_APPROVAL, f"nothing changes by itself: {ways}"))
    reason = Reason(Code.CHEAPER_OPTION, f"{seen}; no cheaper type serves the others")
    return replace(recommendation, finding=Finding.OVER_PROVISIONED, reason=reason, gate=verdict, gate_reason=why)


def offer_test(recommendation: Recommendation, context: EvaluationContext) -> Recommendation:
    """The proposal with the test of a chosen type that is only likely to be fast enough. Others are unchanged.

    Such a type is taken untested where automatic mode may run no test. A person who is asked may run one.
    """
    option, policy = recommendation.chosen_option, context.policy
    if (
        option is None
        or recommendation.gate is not Gate.PROPOSE
        or option.test_usd
        or option.grows
        or _is_sparse(context)
    ):
        return recommendation
    hardware = context.inputs.catalogue.find(option.target.instance_type)
    candidate = check_candidate(context, hardware) if hardware is not None else None
    if not isinstance(candidate, CandidateType) or candidate.likely >= 1 or not candidate.is_certain:
        return recommendation
    if impossible_test_reason(context.endpoint) is not None or declared_refusal(context.endpoint.tags) is not None:
        return recommendation
    test = test_candidate(context, candidate, option, candidate.likely)
    if choose_test([test], Decimal(0), context.inputs.history, policy) is None:
        return recommendation
    return replace(recommendation, options=(with_test(test, policy.risk_propose), *recommendation.options[1:]))


def _decide(context: EvaluationContext, case: GateCase) -> tuple[Gate, Reason]:
    return decide_gate(case, context.inputs.history, context.policy, context.inputs.now)


def _asked_with_test(
    context: EvaluationContext, options: Options, saving: Decimal, fingerprint: str
) -> AskedOption | None:
    """The option with its test, where one can be run, tells enough and is worth its cost."""
    policy, endpoint, before = context.policy, context.endpoint, context.inputs.history.asked
    stays = before is not None and before.fingerprint == fingerprint and before.option.test_usd
    asked_type = before.option.target.instance_type if before is not None and stays else ""
    found = choose_test(options.unsure, saving, context.inputs.history, policy, asked_type)
    if found is None or _is_sparse(context):
        return None
    if impossible_test_reason(endpoint) is not None or declared_refusal(endpoint.tags) is not None:
        return None
    candidate, why = found
    option = with_test(candidate, policy.risk_propose)
    free = "" if option.test_needed else f"; without it the performance risk is {int(candidate.untested_risk)} of 4"
    return AskedOption(candidate, option, Reason(why.code, f"{why.sentence}{free}"))


def with_test(candidate: ShadowTestCandidate, risk_propose: int) -> Option:
    """The option with the cost of its test, what the test tells, and the risk of going without it.

    Its own risk counts on the test: a model that started there fits, and a type that was measured is fast enough and
    carries the load in the replay.
    """
    option = with_test_cost(candidate.option, Decimal(str(round(candidate.cost, 2))))
    shown = {name: risk for name, risk in SHOWN_BY_A_TEST.items() if not _stays(name, option)}
    risks = {name: min(risk, shown.get(name, risk)) for name, risk in option.risks.items()}
    return replace(
        option,
        risks=risks,
        risk=max(risks.values()),
        test_tells=candidate.tells,
        untested_risk=candidate.untested_risk,
        test_needed=candidate.untested_risk > risk_propose,
    )


def _stays(name: RiskResource, option: Option) -> bool:
    """Whether a test leaves that risk as it is: late requests that a person accepts come on a fast type too."""
    return name is RiskResource.LATENCY and option.late_share is not None


def _is_sparse(context: EvaluationContext) -> bool:
    """Whether a test would meet too few requests to tell anything."""
    return context.share_of_wanted_requests < context.policy.test_tells


def _asked_untested(context: EvaluationContext, options: Options, saving: Decimal) -> AskedOption | None:
    """The option with the risk of no test: requests are too sparse for one, or its kind can have none."""
    policy, history = context.policy, context.inputs.history
    impossible = impossible_test_reason(context.endpoint)
    if impossible is None and not _is_sparse(context):
        return None
    least = EVEN if impossible is not None and not _is_sparse(context) else 0.0
    may_ask = [c for c in options.unsure if c.untested_risk <= policy.risk_propose and c.chance > least]
    found = choose_test([replace(c, share_of_wanted_requests=1.0) for c in may_ask], saving, history, policy)
    if found is None:
        return None
    candidate, _ = found
    why = impossible.sentence if impossible else "requests are too sparse for a shadow test to tell more"
    risks = dict(candidate.option.risks)
    if candidate.option.performance_risk < candidate.untested_risk:  # that it may be too slow is in no resource yet
        risks[RiskResource.LATENCY] = candidate.untested_risk
    option = replace(
        candidate.option,
        risks=risks,
        risk=candidate.untested_risk,
        not_checked=(*candidate.option.not_checked, f"by a shadow test, {candidate.tells}"),
    )
    text = (
        f"needs your approval: {100 * candidate.chance:.0f} % likely to be fast and large enough, and its performance"
        f" risk is {int(candidate.untested_risk)} of 4; {why}"
    )
    return AskedOption(candidate, option, Reason(Code.RISK_TOO_HIGH, text))


def _comes_first(
    context: EvaluationContext, asked_option: AskedOption, best: Option, verdict: Gate, case: MakeCase
) -> bool:
    """Whether the uncertain option is asked about before the sure one is applied or asked about."""
    if saving_share(context, best) < context.policy.minimum_saving_share:
        return True
    sure_verdict, _ = _decide(context, case(context, best))
    if sure_verdict is Gate.APPLY:  # the safe step is taken now; what is uncertain is asked about after it
        return FAR_CHEAPER_THAN_SAFE * asked_option.option.usd_per_month <= best.usd_per_month
    if FAR_CHEAPER * asked_option.option.usd_per_month <= best.usd_per_month:
        return True
    if sure_verdict is Gate.SILENT:
        return verdict is not Gate.SILENT
    return is_test_first(asked_option.candidate, max(best.saving_usd_per_month, Decimal(0)))


BY_CHANCE = 1.5
"""Times the allowed late requests that chance makes of them: the replay serves 5,000 requests, of which 0.3 % are
fifteen, and two standard deviations more are twenty-three."""
KINDS = TYPE_AND_COUNT | {OptionKind.SCHEDULE}


def with_open_question(context: EvaluationContext, fingerprint: str, sure: Sequence[Option]) -> tuple[Option, ...]:
    """The options with what was asked before: first, until another one saves a least saving more, and else behind.

    `fingerprint` is that of the endpoint now: a question about another configuration is over.
    """
    open_question = context.inputs.history.asked
    if (
        open_question is None
        or open_question.fingerprint != fingerprint
        or not _may_stand(context, open_question.option)
    ):
        return tuple(sure)
    alike = (
        option
        for option in sure
        if option.kind is open_question.option.kind and option.target == open_question.option.target
    )
    kept = next(alike, None)
    if kept is None and (context.within_objective or context.endpoint.mode is not Mode.AUTO):
        kept = _carried_still(
            context, open_question.option
        )  # what automatic mode may do by itself has to hold every limit
    if kept is None:
        return tuple(sure)
    others = tuple(option for option in sure if option is not kept)
    least = float(context.usd_per_month) * context.policy.minimum_saving_share
    if others and float(others[0].saving_usd_per_month - kept.saving_usd_per_month) >= least:
        return (others[0], kept, *others[1:])
    return (kept, *others)


def _may_stand(context: EvaluationContext, option: Option) -> bool:
    """Whether it is a plain saving of a fleet that nothing scales; one that waits for a test is judged after it.

    Nor one with another number of GPUs in an instance: one queue before four of them serves as several before one each
    do not, so that what the replay says against such a fleet is more than chance.
    """
    hardware = context.inputs.catalogue.find(option.target.instance_type)
    if hardware is None or hardware.accelerator_count != context.runs.accelerator_count:
        return False
    plain = option.kind in KINDS and option.in_place and not option.target.day_counts and not option.target.others
    saves = not (option.restores or option.grows) and option.saving_usd_per_month > 0
    enough = min(option.target.week_counts) >= context.owner_minimum  # the owner's tag may be newer than the question
    return plain and saves and enough and not context.endpoint.scaling and not context.is_fleet_too_small


def _carried_still(context: EvaluationContext, option: Option) -> Option | None:
    """The option as it would be made today, where its fleet carries the days within what chance explains."""
    policy, hardware = context.policy, context.inputs.catalogue.find(option.target.instance_type)
    shares = {name: BY_CHANCE * getattr(policy, name) for name in ("excess_share", "grown_share", "late_budget")}
    wider = replace(context.inputs, policy=replace(policy, **shares))
    again = share_results(context, replace(context, inputs=wider, judges_again=True))
    candidate = check_candidate(again, hardware) if hardware is not None else None
    if hardware is None or not isinstance(candidate, CandidateType) or not candidate.is_certain:
        return None
    slower = sized_slowdown(again, candidate)
    fleet = replace(fleet_of_option(again, option, hardware, slower), load=again.load_margin)
    failed = failed_instances(again, hardware.name, slower, candidate.workers)
    if fleet.mean_count <= (1 + policy.failed_room) * failed or replay_if_carried(again, fleet) is None:
        return None
    priced = price_fleet(context, candidate, fleet, option.target.routing)
    priced = replace(priced, notes=tuple(dict.fromkeys((*priced.notes, *option.notes))))  # what was told with it
    found = check_fleet(context, candidate, priced)
    if not isinstance(found, Option) or found.saving_usd_per_month <= 0 or found.target != option.target:
        return None
    if not context.within_objective:
        return replace(priced, p95_s=found.p95_s)  # what is late beyond the usual share is chance
    p95_s = replay_plan(context, replace(fleet, load=1.0))[0].p95_s
    return found if p95_s <= policy.objective_factor * context.objective.p95_s else None
