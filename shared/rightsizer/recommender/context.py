"""Inputs and cached results from which the options of one endpoint are computed.

Reference type, demand and waiting are derived from the past days before anything is decided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

from rightsizer.autoscaling.policies import has_only_hourly_counts
from rightsizer.domain.demand import Demand, Fleet, Latency, ReplayResult, Stream
from rightsizer.domain.endpoint import AT_RANDOM, Endpoint, EndpointKind, Mode, Variant
from rightsizer.domain.environment import policy_for
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.option import LatencyObjective, Option, OptionKind
from rightsizer.domain.policy import SLOW_FACTOR, Policy
from rightsizer.domain.price import Price, PriceTable
from rightsizer.domain.usage import DailyUsage, busy_days
from rightsizer.recommender.evidence import requests_by_hour
from rightsizer.recommender.latency import ServiceTime, allowed_slowdown, service_bins, share_of_late_requests
from rightsizer.recommender.pricing import monthly_cost
from rightsizer.recommender.replay import replay_requests, stream_of
from rightsizer.recommender.shadow_test import hours_of_test, shadow_test_refusal, share_of_wanted_requests
from rightsizer.recommender.slowdown import (
    MeasuredType,
    gpu_ratios,
    host_factor,
    measured_outcomes,
    with_failed_starts,
    with_left_types,
    workers_of,
)
from rightsizer.recommender.usage_days import running_hours

ROUNDED = 0.5
"""Instances that a fleet has more than it needs on average, because they are whole."""
EXTRA_MARGIN = 0.15
"""More room for each unit of caution."""

IN_QUEUE = 5
"""Requests that wait for an instance of a queue in AWS's own example of its autoscaling: the target of
ApproximateBacklogSizePerInstance (SageMaker guide, autoscale an asynchronous endpoint)."""


@dataclass(frozen=True, slots=True)
class AccountInputs:
    """Inputs of the account and the past, beside the endpoint's own metrics."""

    prices: PriceTable
    catalogue: Catalogue
    quotas: Mapping[str, int]
    history: History
    policy: Policy
    now: datetime

    def for_endpoint(self, endpoint: Endpoint) -> "AccountInputs":
        """The inputs with the policy of the endpoint's environment, and prices of the hours that it runs."""
        hours = running_hours(endpoint.tags, self.history.stopped, self.now)
        return replace(self, policy=policy_for(endpoint, self.policy), prices=self.prices.running(hours))


@dataclass(frozen=True)
class EvaluationContext:
    """Inputs and cached results from which the options of one endpoint are computed.

    One variant. `reference` is the type that the latency was measured on, `runs` the type that runs now.
    """

    endpoint: Endpoint
    inputs: AccountInputs
    reference: InstanceType
    runs: InstanceType
    price: Price
    days: Sequence[DailyUsage]
    base: Sequence[DailyUsage]
    """Days on the reference type with the reference fleet."""
    demand: Demand
    latency: Latency
    objective: LatencyObjective
    instances: float
    """Mean instances now."""
    unqueued: ServiceTime | None = None
    """How to take waiting out of the latency; None where there is none to speak of."""
    random_base: bool = True
    """Whether requests were routed without looking on the reference days."""
    is_strained: bool = False
    """Users wait since our changes, or today's fleet, set by us, no longer carries the load."""
    late_budget_used: float | None = None
    """Multiple of the allowed late requests that our changes used up; None within the budget."""
    extra_margin: float = 0
    """Changes of count that were rolled back, and more where users wait or late requests use up what is allowed."""
    growth_ceiling_usd: float | None = None
    """Monthly US dollars above which growth is of no interest; None for savings."""
    within_objective: bool = False
    """Whether as many requests may be late as the objective allows: a person is asked."""
    judges_again: bool = False
    """Whether it is about what a person was asked before, against which chance alone says nothing."""
    _replays: dict[Fleet, ReplayResult] = field(default_factory=dict)
    _of_days: "dict[tuple[tuple[int, ...], tuple[int, ...]], EvaluationContext]" = field(default_factory=dict)
    """Contexts of single days, by the identities of the days and of their base; their results serve other contexts."""
    _on_reference: dict[tuple[object, ...], tuple[Sequence[DailyUsage], ReplayResult]] = field(default_factory=dict)
    """Replays of single days on the reference fleet, by all that they depend on. The days lie beside them, so that no
    other days get their identities."""

    @property
    def policy(self) -> Policy:
        """The thresholds."""
        return self.inputs.policy

    @property
    def variant(self) -> Variant:
        """The one variant."""
        return self.endpoint.variants[0]

    @property
    def usd_per_month(self) -> Decimal:
        """US dollars of a month as it runs today."""
        return monthly_cost(self.price, self.instances)

    @property
    def usd_ceiling(self) -> float:
        """Monthly US dollars above which an option is of no interest."""
        if self.growth_ceiling_usd is not None or not self.is_fleet_too_small:
            return self.growth_ceiling_usd or float(self.usd_per_month)
        price = self.inputs.prices.find(self.reference.name)
        fleet = sum(self.reference_counts) / 24 * float(price.usd_per_instance_month if price else 0)
        return max(float(self.usd_per_month), fleet) * self.policy.count_factor

    @property
    def is_fleet_too_small(self) -> bool:
        """Whether dearer options count too, because a fleet of ours is too small by load or late requests."""
        owners = self.runs.name == self.reference.name and self.instances >= sum(self.reference_counts) / 24 - 0.01
        asked = self.endpoint.mode in (Mode.AUTO, Mode.PROPOSE)
        return self.is_strained or (
            self.late_budget_used is not None and self.has_active_change and not owners and asked
        )

    @property
    def is_random_routing(self) -> bool:
        """Whether requests are routed without looking (AWS's default when nothing is set)."""
        return self.variant.routing in AT_RANDOM

    @property
    def load_margin(self) -> float:
        """Factor on the observed load that a fleet is sized for.

        It covers few days of data, and growth: that of the week to come, in which no change may follow, where the
        load was seen to grow. Each point of extra margin adds 15 %.
        """
        policy = self.policy
        few = policy.load_small_sample / math.sqrt(max(len({d.day for d in self.days}), 1))
        few = max(few, self.demand.load.weekly_growth - 1)
        growth = policy.down_with_growth
        if not self.extra_margin:
            return 1 + max(few, growth - ROUNDED / self.peak_count)
        return (1 + max(growth, few)) * (1 + EXTRA_MARGIN * self.extra_margin)

    @cached_property
    def reference_counts(self) -> tuple[int, ...]:
        """The reference fleet by hour, as it was seen on the reference days."""
        seen: list[list[float]] = [[d.instances[h] or 0.0 for d in self.base] for h in range(24)]
        return tuple(max(1, math.ceil(max(v, default=1.0) - 0.01)) for v in seen)

    @property
    def owner_minimum(self) -> int:
        """Instances that the owner wants at all times, though never more than the reference fleet has."""
        return min(self.endpoint.objective.min_instances or 1, max(self.reference_counts))

    @property
    def peak_count(self) -> int:
        """The largest reference count, or today's or the autoscaling maximum when larger."""
        if self.has_active_change:
            return max(self.reference_counts)
        return max(self.variant.current_count, *self.reference_counts, *(t.maximum for t in self.endpoint.scaling))

    @property
    def has_active_change(self) -> bool:
        """Whether a change of ours is in force, so that today's fleet is not the customer's own."""
        return any(p.is_in_force for p in self.inputs.history.endpoint)

    @cached_property
    def measured_types(self) -> Mapping[str, MeasuredType]:
        """The types that served production since our changes, against the reference type."""
        found: dict[str, MeasuredType] = {}
        for name, ratio in gpu_ratios(self.days, self.base, self.policy.requests_needed).items():
            hardware = self.inputs.catalogue.find(name)
            if hardware is not None:
                share = self.demand.gpu_share
                host = host_factor(self.reference, hardware, self.demand)
                found[name] = MeasuredType(ratio, (1 - share) * host + share * ratio)
        return found

    def allowed_late_share(self, share: float) -> float:
        """The share of the requests that may be late beyond the usual: this one, or more where few come.

        By the days that a fleet has to carry: quiet ones would make a busy week look like one of few requests.
        """
        calls, dates = self.busy_requests
        return self.policy.late_allowed(share, self.objective.declared, self.baseline_late_share, calls, dates)

    @cached_property
    def busy_requests(self) -> tuple[float, int]:
        """Requests on the days that a fleet has to carry, and the number of these days."""
        days = busy_days(self.days)
        return sum(d.request_count for d in days), len({d.day for d in days})

    @cached_property
    def allowed_slowdown(self) -> float:
        """Largest slowdown of the service time that keeps late requests within the late budget; at least 1.

        Requests that are late today only because they waited do not count.
        """
        return allowed_slowdown(
            self.latency.bins,
            self.service_times,
            self.objective.p95_s,
            self.allowed_late_share(self.policy.late_budget),
        )

    @cached_property
    def worst_slowdown(self) -> float:
        """Largest slowdown at which the endpoint need not return to the type before it."""
        return allowed_slowdown(
            self.latency.bins,
            self.service_times,
            self.objective.p95_s,
            self.allowed_late_share(self.policy.grown_share),
        )

    @cached_property
    def service_times(self) -> tuple[tuple[float, float], ...]:
        """Service times without waiting, (seconds, share)."""
        return service_bins(self.latency, self.unqueued) if self.unqueued else self.latency.bins

    @cached_property
    def stream(self) -> Stream:
        """The requests of the most recent days, without the waiting that they met."""
        days = [d for d in self.days if d.request_count > 0]
        return stream_of(days, self.service_times, self.policy.replay_requests)

    @cached_property
    def workers(self) -> int:
        """Requests that an instance of the reference type serves at once."""
        return workers_of(self.reference, self.reference, self.demand, self.latency)

    @cached_property
    def reference_replay(self) -> ReplayResult:
        """Replay of the past requests on the reference fleet."""
        return self.reference_replay_at(1.0)

    def reference_replay_at(self, load: float) -> ReplayResult:
        """The reference fleet under that multiple of the load: what a plan is compared with."""
        return self.replay(Fleet(self.reference_counts, self.workers, self.random_base, 1.0, load))

    def reference_replay_of(self, days: Sequence[DailyUsage], limit: int) -> ReplayResult:
        """The reference fleet on these days alone, at most about `limit` of their requests; each choice once."""
        fleet = Fleet(self.reference_counts, self.workers, self.random_base, 1.0)
        key = (fleet, self.limit_s, self.service_times, limit, *map(id, days))
        if key not in self._on_reference:
            stream = stream_of(days, self.service_times, limit)
            self._on_reference[key] = days, replay_requests(stream, fleet, self.limit_s)
        return self._on_reference[key][1]

    def replay(self, fleet: Fleet) -> ReplayResult:
        """The replay of a plan, each plan once."""
        key = replace(fleet, slower=round(fleet.slower, 4), load=round(fleet.load, 4))
        if key not in self._replays:
            self._replays[key] = replay_requests(self.stream, fleet, self.limit_s, self.alarm_share, self.alarm_s)
        return self._replays[key]

    @property
    def limit_s(self) -> float:
        """Seconds within which a request is answered in a replay, waiting included.

        The latency of a queue's requests holds no waiting. Where none was promised they may wait for `IN_QUEUE` others.
        """
        queued = EndpointKind.ASYNC in self.endpoint.kinds and not self.objective.declared
        return self.objective.p95_s + (IN_QUEUE * self.latency.mean_s if queued else 0.0)

    @property
    def alarm_s(self) -> float:
        """p95 at which the latency alarm of a change rings, seconds."""
        return self.objective.p95_s if self.objective.declared else SLOW_FACTOR * self.latency.p95_s

    @property
    def alarm_share(self) -> float:
        """Share of the requests as late as the replayed alarm counts them."""
        return share_of_late_requests(self.latency.bins, max(self.alarm_s, self.objective.p95_s))

    @cached_property
    def baseline_late_share(self) -> float:
        """Share of the requests over the objective as it was."""
        return share_of_late_requests(self.latency.bins, self.objective.p95_s)

    @property
    def may_test(self) -> bool:
        """Whether a shadow test may run on it by itself."""
        return self.policy.tests_per_month > 0 and shadow_test_refusal(self.endpoint) is None

    def may_change(self, kind: OptionKind) -> bool:
        """Whether the settings open that dimension beside type and count; only on plain endpoints they do."""
        return kind in self.policy.by_itself and self.endpoint.is_plain

    @cached_property
    def history(self) -> History:
        """The endpoint's changes as outcomes of types, with the failed starts of its model behind other endpoints."""
        return with_left_types(with_failed_starts(self.inputs.history, self.variant.model_name), self._usd_per_hour)

    @cached_property
    def share_of_wanted_requests(self) -> float:
        """How much a shadow test would tell by the requests that come meanwhile, 0..1, whether or not one may run."""
        hourly, hours = self.requests_by_hour, hours_of_test(self.requests_by_hour, self.instances, self.policy)
        return share_of_wanted_requests(hourly, self.instances, hours, self.policy)

    @cached_property
    def requests_by_hour(self) -> tuple[tuple[float, ...], ...]:
        """Requests of the 24 hours of each day, oldest first."""
        return requests_by_hour(self.days)

    @cached_property
    def outcomes(self) -> tuple[float, ...]:
        """Slowdown over phi of the account's moves and tests of the same framework, ascending."""
        return measured_outcomes(self.inputs.history, self.inputs.catalogue.find, self.endpoint.framework, self.policy)

    def _usd_per_hour(self, name: str) -> Decimal | None:
        price = self.inputs.prices.find(name)
        return price.usd_per_hour if price else None

    @cached_property
    def types_without_capacity(self) -> frozenset[str]:
        """Types that had no capacity for this endpoint in the last days."""
        since = self.inputs.now - timedelta(days=self.policy.capacity_days)
        return frozenset(p.to_type for p in self.inputs.history.endpoint if p.was_without_capacity and p.at >= since)

    @property
    def may_set_bounds(self) -> bool:
        """Whether the bounds of the owner's autoscaling may be set."""
        return self.may_change(OptionKind.AUTOSCALING) and any(target.policies for target in self.endpoint.scaling)

    def may_set_hourly_counts(self, candidate: str, rerouted: bool) -> bool:
        """Whether counts by the hour may be set on that type: they are a change of their own.

        In place of counts by the hour that are ours only larger ones may.
        """
        alone = candidate == self.runs.name and (not self.endpoint.scaling or self.is_schedule_too_small)
        return alone and not rerouted and self.may_change(OptionKind.SCHEDULE)

    @property
    def has_our_hours(self) -> bool:
        """Whether counts by the hour of ours set the fleet, and nothing else scales it."""
        return bool(self.endpoint.scaling) and all(map(has_only_hourly_counts, self.endpoint.scaling))

    @property
    def is_schedule_too_small(self) -> bool:
        """Whether the fleet that has to grow has counts by the hour of ours, and nothing else scales it."""
        return self.has_our_hours and self.is_fleet_too_small

    def is_larger(self, option: Option) -> bool:
        """Whether it is more than what runs, and than what our counts by the hour ask for.

        Fewer instances are counted than these ask for, since each takes minutes to start.
        """
        last = next((past for past in reversed(self.inputs.history.endpoint) if past.is_in_force), None)
        asked = last.mean_instances if last is not None and self.has_our_hours else None
        mean = option.mean_instances or option.target.instance_count
        return option.target.instance_type == self.runs.name and mean > max(self.instances, asked or 0.0) + 0.01


SHARED = (
    "stream",
    "service_times",
    "reference_counts",
    "workers",
    "baseline_late_share",
    "measured_types",
    "history",
    "requests_by_hour",
    "busy_requests",
)
"""Cached properties that depend neither on the dimensions that are open, nor on the late requests that are allowed."""


def on_days(context: EvaluationContext, days: Sequence[DailyUsage], base: Sequence[DailyUsage]) -> EvaluationContext:
    """The context of these days alone; what was computed of the same days before is kept."""
    key = (tuple(map(id, days)), tuple(map(id, base)))
    first = context._of_days.get(key)
    apart = replace(context, days=days, base=base, _replays=first._replays if first else {}, _of_days={})
    context._of_days.setdefault(key, apart)
    return share_results(first, apart) if first else apart


def share_results(context: EvaluationContext, other: EvaluationContext) -> EvaluationContext:
    """The other context, of the same days, with the results of this one that are the same there."""
    vars(other).update({name: value for name, value in vars(context).items() if name in SHARED})
    return other
