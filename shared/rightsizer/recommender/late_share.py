"""Requests that an option would make late: by itself few more than today, after an approval what a p95 allows.

An objective for the p95 lets one request in twenty be late. Automatic mode stays far below that, since nobody saw the
figure. A person who is told the share may take what the objective allows.
"""

from dataclasses import replace

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Option, OptionKind, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.recommender.context import EvaluationContext, share_results
from rightsizer.recommender.days_of_week import replay_plan
from rightsizer.recommender.fleet_size import fleet_of_option, latency_ratio

BY_ITSELF = Policy().excess_share
"""Share of the requests that a choice of automatic mode may make late beyond those of today."""


def with_late_share(context: EvaluationContext, option: Option, hardware: InstanceType, slower: float) -> Option:
    """The option; where more requests would be late than automatic mode may cost, with their share and its risk.

    Only behind a declared objective: elsewhere nothing says which request is late. `slower`: as the fleet was sized.
    """
    served = option.kind not in (OptionKind.SCALE_TO_ZERO, OptionKind.DELETE)
    if not context.objective.declared or option.saving_usd_per_month <= 0 or not served:
        return option
    fleet, load = fleet_of_option(context, option, hardware, slower), context.load_margin
    if fleet.day_counts:  # counts of each class of days serve the days of that class
        then, as_much = replay_plan(context, replace(fleet, load=load), load)
        now = replay_plan(context, fleet)[1]
    else:
        then, now = context.replay(replace(fleet, load=load)), context.reference_replay
        as_much = context.reference_replay_at(load)  # today's fleet under the same load
    if then.requests <= 0 or then.late <= as_much.late + BY_ITSELF * then.requests:
        return option
    share = then.late / then.requests
    text = f"{100 * share:.1f} % of the requests would be late ({100 * now.late / now.requests:.1f} % are today)"
    text += f"; the objective for the p95 allows {100 * context.policy.late_most:g} %"
    risks = {
        **option.risks,
        RiskResource.LATENCY: max(option.risks.get(RiskResource.LATENCY, Risk.MEDIUM), Risk.MEDIUM),
    }
    return replace(
        option,
        risks=risks,
        risk=max(risks.values()),
        notes=(*option.notes, text),
        late_share=round(share, 4),
    )


def within_p95(context: EvaluationContext, option: Option) -> Option | None:
    """The option with the p95 of the replay itself, where that is within the objective; else None.

    Few late requests in all may hide busy minutes in which one in five is late, so the minutes that are kept decide.
    """
    hardware = context.inputs.catalogue.find(option.target.instance_type)
    if hardware is None:
        return None
    p95_s = replay_plan(context, fleet_of_option(context, option, hardware, latency_ratio(option)))[0].p95_s
    return replace(option, p95_s=round(p95_s, 4)) if p95_s <= context.objective.p95_s else None


def with_accepted_share(context: EvaluationContext) -> EvaluationContext:
    """The context, weighed by the objective where a person accepted late requests with a change in force."""
    accepted = any(p.late_share is not None and p.is_in_force for p in context.inputs.history.endpoint)
    return (within_objective(context) if accepted else None) or context


def within_objective(context: EvaluationContext) -> EvaluationContext | None:
    """The context in which fleets may make as many requests late as the objective allows; None without a declared one.

    None too where as many are late today: nothing is left to ask about.
    """
    policy = context.policy
    left = policy.late_most - context.baseline_late_share
    if not context.objective.declared or left <= policy.excess_share:
        return None
    lenient = replace(policy, excess_share=left, grown_share=left, late_budget=left)
    wide = replace(context, inputs=replace(context.inputs, policy=lenient), within_objective=True)
    return share_results(context, wide)
