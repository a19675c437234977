"""What an endpoint asks of its fleet: the reference type, the demand and the waiting, from its past days."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rightsizer.domain.demand import Demand, Latency
from rightsizer.domain.endpoint import AT_RANDOM, Endpoint, EndpointKind
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.price import Price
from rightsizer.domain.usage import DailyUsage
from rightsizer.recommender.context import AccountInputs, EvaluationContext
from rightsizer.recommender.demand import (
    demand_of,
    has_uncounted,
    latency_of,
    overhead_of,
    unseen_hours,
    unseen_instances,
)
from rightsizer.recommender.fit import memory_need
from rightsizer.recommender.latency import ServiceTime, find_service_time, latency_objective, rates_of
from rightsizer.recommender.usage_days import complete_end


@dataclass(frozen=True, slots=True)
class WorkloadAnalysis:
    """An endpoint on some days, without a price and perhaps without a latency."""

    endpoint: Endpoint
    inputs: AccountInputs
    runs: InstanceType
    reference: InstanceType
    """The type that the latency is measured on."""
    days: Sequence[DailyUsage]
    base: Sequence[DailyUsage]
    """Days on the reference type with the reference fleet."""
    demand: Demand
    waiting: ServiceTime | None
    random_base: bool

    def evaluation_context(self, price: Price, latency: Latency) -> EvaluationContext:
        """Everything that options are weighed against."""
        history = self.inputs.history
        return EvaluationContext(
            endpoint=self.endpoint,
            inputs=self.inputs,
            reference=self.reference,
            runs=self.runs,
            price=price,
            days=self.days,
            base=self.base,
            demand=self.demand,
            latency=latency,
            objective=latency_objective(self.endpoint, latency, self.inputs.policy, self.demand.overhead_s),
            instances=_mean_instances(self.endpoint, self.days, history),
            unqueued=self.waiting,
            random_base=self.random_base,
            extra_margin=sum(1 for p in history.endpoint if p.is_refuted and _was_too_small(p)),
        )


def analyse_workload(
    endpoint: Endpoint, hardware: InstanceType, days: Sequence[DailyUsage], inputs: AccountInputs
) -> WorkloadAnalysis:
    """Usage, reference type and demand of an endpoint on this type; `days` must not be empty."""
    policy = inputs.policy
    reference, base = _reference_days(hardware, days, inputs)
    kills = sum(1 for p in inputs.history.endpoint if p.failure == "memory" and p.ended is PastEnd.ROLLED_BACK)
    memory = memory_need(days, inputs.catalogue, policy, endpoint.framework, endpoint.model_data_bytes, kills)
    random_base = _had_random_routing(endpoint, inputs.history)
    waiting = _find_waiting(base, random_base)
    share = waiting[0].share(waiting[1]) if waiting else 1.0
    demand = demand_of(days, base, reference, memory, policy, share)
    demand = replace(demand, uncounted=any(map(has_uncounted, base)), overhead_s=overhead_of(days))
    if hardware.has_gpu and endpoint.kind is EndpointKind.REAL_TIME:  # others may have no instance for days
        until = complete_end(days[-1].day, inputs.now)
        unseen = unseen_instances(days, endpoint.variants[0].current_count)
        hours = unseen_hours(days, until, inputs.history.stopped)
        demand = replace(demand, unseen_hours=hours, unseen_instances=unseen)
    unqueuing = waiting[0] if waiting else None
    return WorkloadAnalysis(endpoint, inputs, hardware, reference, days, base, demand, unqueuing, random_base)


def evaluation_context(
    endpoint: Endpoint, days: Sequence[DailyUsage], inputs: AccountInputs
) -> EvaluationContext | None:
    """The context on these days; None without days, a known type, its price or a latency."""
    hardware = inputs.catalogue.find(endpoint.variants[0].instance_type) if endpoint.variants else None
    price = inputs.prices.find(hardware.name) if hardware else None
    if not days or hardware is None or hardware.accelerator is None or price is None:
        return None
    analysis = analyse_workload(endpoint, hardware, days, inputs.for_endpoint(endpoint))
    return analysis.evaluation_context(price, analysis.demand.latency) if analysis.demand.latency else None


def _reference_days(
    hardware: InstanceType, days: Sequence[DailyUsage], inputs: AccountInputs
) -> tuple[InstanceType, Sequence[DailyUsage]]:
    """The type, and the days on it, that latency is measured on: those before our own first change, else today's.

    After a change the baseline would shrink with every step (scaling in makes the next decision look at less).
    """
    first = min((p.at.date() for p in inputs.history.endpoint if p.was_deployed), default=None)
    before = [d for d in days if first is not None and d.day < first and d.latency]
    found = inputs.catalogue.find(before[-1].instance_type) if before else None
    if found is not None:
        return found, [d for d in before if d.instance_type == found.name]
    return hardware, [d for d in days if d.instance_type == hardware.name] or list(days[-1:])


def _was_too_small(past: PastChange) -> bool:
    """Whether a change failed because the fleet was too small, or may have."""
    return past.from_type == past.to_type or past.failure == "alarm"


def _had_random_routing(endpoint: Endpoint, history: History) -> bool:
    """Whether requests were routed without looking on the reference days: before our first change since it grew."""
    grown = max((n for n, p in enumerate(history.endpoint, 1) if p.grows and p.is_in_force), default=0)
    first = next((p for p in history.endpoint[grown:] if p.was_deployed), None)
    return ((first.from_routing if first else "") or endpoint.variants[0].routing) in AT_RANDOM


def _find_waiting(base: Sequence[DailyUsage], random_base: bool) -> tuple[ServiceTime, Latency] | None:
    """How to take the waiting out of the latency."""
    latency = latency_of(base)
    counts = [c for d in base for c in d.instances if c]
    mean = sum(counts) / len(counts) if counts else 1.0
    rates = rates_of(base, mean if random_base else 1.0)
    if latency is None or not rates:
        return None
    return find_service_time(latency, rates, max(base[0].gpus, 1) * (1.0 if random_base else mean)), latency


def _mean_instances(endpoint: Endpoint, days: Sequence[DailyUsage], history: History) -> float:
    """Mean instances: as counted over the last week (or since our change) where the count moves, else the count now."""
    if not endpoint.scaling:
        return float(endpoint.variants[0].current_count)
    last = history.endpoint[-1] if history.endpoint else None
    if last is not None and last.day_counts and last.is_in_force and last.mean_instances:
        return last.mean_instances  # what the last day ran is not what the week runs
    seen = [c for d in days[-1 if history.endpoint else -7 :] for c in d.instances if c is not None]
    return sum(seen) / len(seen) if seen else float(endpoint.variants[0].current_count)
