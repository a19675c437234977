"""Another target of the owner's target-tracking policy, while type and bounds stay: asked about, never done by itself.

Offered only where it is plain how Application Auto Scaling follows the policy: one target, one policy on a predefined
metric of an instance's load, scale-in on, no schedule, nothing suspended.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from rightsizer.autoscaling.policies import may_scale_in
from rightsizer.autoscaling.target_tracking import BUSY_TARGET, TRACKING, choose_metric, metric_reason
from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.closed_dimensions import skip_reason
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.fleet_size import mean_instances, replay_if_carried, replayed_p95_s
from rightsizer.recommender.priced_option import price_fleet
from rightsizer.recommender.target_tracking import LATE, service_s

HIGHER = 1.1
"""Target over the owner's from which it is another one: a latency that moves by a tenth moves the formula as much."""


def policy_target_option(context: EvaluationContext, recommendation: Recommendation) -> Option | None:
    """The owner's policy with a higher target, where the replay carries the load with fewer instances than with theirs.

    What ran on average shrinks as the replay on the one target does against the replay on the other.
    None where the policy is followed in a way that the replay does not know, where its target is not lower than what
    the replay keeps busy, or where nothing more is saved than by what is found.
    """
    own = _only_target(context)
    if own is None or skip_reason(context) is not None:
        return None
    config = own.policies[0][TRACKING]
    wanted = choose_metric(context.workers, service_s(context, 1.0), own.minimum)
    if (
        not isinstance(wanted, tuple)
        or wanted[0] != _metric(config)
        or wanted[1] < HIGHER * float(config["TargetValue"])
    ):
        return None
    fleet = Fleet(
        (own.minimum,) * 24, context.workers, context.is_random_routing, 1.0, context.load_margin, own.maximum
    )
    candidate = check_candidate(context, context.runs)
    if not isinstance(candidate, CandidateType) or replay_if_carried(context, fleet) is None:
        return None
    busy = BUSY_TARGET * float(config["TargetValue"]) / wanted[1]
    today = mean_instances(context, replace(fleet, busy=busy))
    less = max(context.instances * mean_instances(context, fleet) / today, float(own.minimum))
    priced = price_fleet(context, candidate, fleet, None, less)
    if priced.saving_usd_per_month <= max(recommendation.saving_usd_per_month, Decimal(0)):
        return None
    return _moved(context, candidate, priced, own, float(config["TargetValue"]), wanted)


def _only_target(context: EvaluationContext) -> ScalableTarget | None:
    """The one target of the variant with one policy that may scale in and out, and nothing else; None elsewhere."""
    targets = context.endpoint.scaling
    if len(targets) != 1 or targets[0].minimum < 1 or targets[0].minimum >= targets[0].maximum:
        return None
    (own,) = targets
    followed = len(own.policies) == 1 and TRACKING in own.policies[0]
    return own if followed and may_scale_in(own) else None


def _metric(config: Mapping[str, Any]) -> str:
    return str((config.get("PredefinedMetricSpecification") or {}).get("PredefinedMetricType", ""))


def _moved(
    context: EvaluationContext,
    candidate: CandidateType,
    priced: Option,
    own: ScalableTarget,
    before: float,
    wanted: tuple[str, float],
) -> Option:
    """The priced fleet as an option that moves the target alone, at medium risk: the owner chose theirs."""
    metric, value = wanted
    target = Target(context.runs.name, own.minimum, minimum=own.minimum, maximum=own.maximum, target_value=value)
    risks = {**priced.risks, RiskResource.LATENCY: max(Risk.MEDIUM, priced.risks[RiskResource.LATENCY])}
    mean = priced.mean_instances or float(own.minimum)
    note = (
        f"{metric} {before:g} keeps {context.instances:.1f} instances on average, and {value:g} would keep {mean:.1f}:"
        f" {metric_reason(metric)}"
    )
    option = replace(
        priced,
        kind=OptionKind.AUTOSCALING,
        target=target,
        risks=risks,
        risk=max(risks.values()),
        notes=(*priced.notes, note),
        not_checked=(*priced.not_checked, LATE),
    )
    return replace(option, p95_s=replayed_p95_s(context, option, candidate.hardware))
