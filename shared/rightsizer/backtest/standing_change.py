"""A change that is active on past days: its effect, and the event that would have ended it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from rightsizer.autoscaling.target_tracking import tracking_steps
from rightsizer.backtest.later_days import FleetMove, LaterDay, LaterFleet, usage_as_served
from rightsizer.domain.endpoint import Endpoint, ScalableTarget, variant_resource_id
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Option
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import BIN, DailyUsage
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.finding import latency_degradation
from rightsizer.recommender.fleet_size import fleet_of_option, latency_ratio
from rightsizer.recommender.hourly_counts import replay_plan


@dataclass(slots=True)
class ActiveChange:
    """A change that is in force."""

    started: datetime
    first_day: date
    recommendation: Recommendation
    option: Option
    moved: FleetMove
    before: Endpoint
    past: PastChange
    """The change as the recommendations after it read it."""
    after: LaterFleet | Reason
    promised_late: float | None
    previous: "ActiveChange | None" = None
    """The change that it took over from, and that stands again where it is taken back."""
    served: list[LaterDay] = field(default_factory=list)
    days: list[DailyUsage] = field(default_factory=list)

    @property
    def is_other_type(self) -> bool:
        """Whether its metrics would be those of a type that never ran."""
        return self.before.variants[0].instance_type != self.moved.then.variants[0].instance_type


def endpoint_after(endpoint: Endpoint, option: Option) -> Endpoint:
    """The endpoint after the change, with the bounds that its autoscaling would have."""
    target, variant = option.target, endpoint.variants[0]
    count = target.instance_count
    variant = replace(
        variant,
        instance_type=target.instance_type,
        current_count=count,
        desired_count=count,
        routing=target.routing or variant.routing,
    )
    scaling = endpoint.scaling
    low = target.minimum if target.minimum is not None else min(target.week_counts)
    high = target.maximum if target.maximum is not None else max(target.week_counts)
    if scaling and target.minimum is not None:
        scaling = tuple(replace(t, minimum=low, maximum=high) for t in scaling)
    elif target.metric:
        registered, policy = tracking_steps(endpoint.ref.name, variant.name, target)[0]
        where = registered.subject, str(registered.params["ScalableDimension"])
        scaling = (ScalableTarget(*where, low, high, policies=(policy.params,)),)
    elif target.hourly_counts:
        resource = variant_resource_id(endpoint.ref.name, variant.name)
        scaling = (ScalableTarget(resource, "sagemaker:variant:DesiredInstanceCount", low, high),)
    return replace(endpoint, variants=(variant,), scaling=scaling)


def past_change(
    old: Endpoint, new: Endpoint, at: datetime, option: Option | None = None, demand: float | None = None
) -> PastChange:
    """The change as the next recommendations read it; `demand` are the GPUs that the recommendation planned for."""
    variant, other = old.variants[0], new.variants[0]
    target = option.target if option and (option.target.hourly_counts or option.target.metric) else None
    mean = option.mean_instances if option and option.target.metric else None
    return PastChange(
        at,
        variant.instance_type,
        other.instance_type,
        variant.current_count,
        other.current_count,
        PastEnd.PROVEN,
        demand=demand,
        mean_instances=(mean or target.mean_count) if target else None,
        from_routing=variant.routing,
        day_counts=target.day_counts if target else (),
        tracked=target is not None and target.metric is not None,
    )


def promised_late_share(
    context: EvaluationContext | None, option: Option, serving: LaterFleet | Reason
) -> float | None:
    """The share of the look-back's requests that the recommendation saw late on the option, at the bound."""
    hardware = context.inputs.catalogue.find(option.target.instance_type) if context else None
    if context is None or hardware is None:
        return None
    served = replay_plan(context, fleet_of_option(context, option, hardware, latency_ratio(option)))[0]
    return served.late / served.requests if served.requests and not isinstance(serving, Reason) else None


def guard_reason(day: LaterDay, at: ActiveChange) -> Reason | None:
    """Why the first day would have rung the guard of the change."""
    if day.usage.day != at.first_day or not day.rings_alarm:
        return None
    sentence = f"its guard would have rung on the first day: {day.likely:.0f} of {day.requests:.0f} requests late"
    return Reason(Code.ROLLED_BACK, sentence)


def return_reason(at: ActiveChange) -> Reason | None:
    """Why another type would have been left for the one before: its memory, or late requests as `judge` counts them."""
    if not at.is_other_type or isinstance(at.after, Reason):
        return None
    usable, peak, objective = at.after.usable_gib, at.served[-1].peak_gib, at.after.at.objective
    if usable is not None and peak is not None and peak > usable:
        sentence = f"{peak:.1f} GiB per GPU were in use, its card offers {usable:.1f} GiB"
        return Reason(Code.MEMORY_TOO_SMALL, sentence)
    for days in (at.served[-2:], at.served):
        baseline = _late_share([d.usage for d in days], objective.p95_s)
        shown = [
            replace(usage_as_served(d, objective.p95_s), instance_type=at.option.target.instance_type) for d in days
        ]
        found = latency_degradation(shown, objective, baseline, at.after.at.policy)
        if found is not None:
            return found.reason
    return None


def _late_share(days: Sequence[DailyUsage], limit_s: float) -> float:
    """The share of the requests that really was late."""
    known = [(index, weight) for d in days for index, weight in d.latency]
    late = sum(weight for index, weight in known if BIN**index / 1000 > limit_s)
    return late / max(sum(weight for _, weight in known), 1.0)
