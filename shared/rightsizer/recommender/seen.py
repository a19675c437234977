"""What the days say about an endpoint, before anything is decided: reference, demand, waiting, and the situation."""

from collections.abc import Sequence
from dataclasses import dataclass

from rightsizer.domain.demand import Demand, Latency
from rightsizer.domain.endpoint import LEAST, Endpoint
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History, PastChange
from rightsizer.domain.price import Price
from rightsizer.domain.usage import DayDigest
from rightsizer.recommender.context import Situation
from rightsizer.recommender.demand import demand_of, latency_of
from rightsizer.recommender.given import Given
from rightsizer.recommender.latency_objective import goal_of
from rightsizer.recommender.memory import memory_need
from rightsizer.recommender.queueing import Unqueued, rates_of, unqueued


@dataclass(frozen=True, slots=True)
class Seen:
    """An endpoint on some days, without a price and perhaps without a latency."""

    endpoint: Endpoint
    given: Given
    runs: InstanceType
    reference: InstanceType
    """The type that the latency is measured on."""
    days: Sequence[DayDigest]
    base: Sequence[DayDigest]
    """Days on the reference type with the reference fleet."""
    demand: Demand
    waiting: Unqueued | None
    random_base: bool

    def situation(self, price: Price, latency: Latency) -> Situation:
        """Everything that options are weighed against."""
        history = self.given.history
        return Situation(
            endpoint=self.endpoint,
            given=self.given,
            reference=self.reference,
            runs=self.runs,
            price=price,
            days=self.days,
            base=self.base,
            demand=self.demand,
            latency=latency,
            goal=goal_of(self.endpoint, latency, self.given.policy),
            instances=_instances(self.endpoint, self.days, history),
            unqueued=self.waiting,
            random_base=self.random_base,
            cautious=sum(1 for p in history.endpoint if p.refuted and _too_little(p)),
        )


def seen_of(endpoint: Endpoint, hardware: InstanceType, days: Sequence[DayDigest], given: Given) -> Seen:
    """What the days, not empty, say about an endpoint that runs on this type."""
    policy = given.policy
    reference, base = _reference(hardware, days, given)
    kills = sum(1 for p in given.history.endpoint if p.failure == "memory" and p.ended == "rolled-back")
    memory = memory_need(days, given.catalogue, policy, endpoint.framework, endpoint.model_data_bytes, kills)
    random_base = _random_base(endpoint, given.history)
    waiting = _unqueued(base, random_base)
    share = waiting[0].share(waiting[1]) if waiting else 1.0
    demand = demand_of(days, base, reference, memory, policy, share)
    unqueuing = waiting[0] if waiting else None
    return Seen(endpoint, given, hardware, reference, days, base, demand, unqueuing, random_base)


def situated(endpoint: Endpoint, days: Sequence[DayDigest], given: Given) -> Situation | None:
    """The situation on these days; None where they, the type, its price or a latency are not known."""
    hardware = given.catalogue.find(endpoint.variants[0].instance_type) if endpoint.variants else None
    price = given.prices.find(hardware.name) if hardware else None
    if not days or hardware is None or hardware.accelerator is None or price is None:
        return None
    seen = seen_of(endpoint, hardware, days, given)
    return seen.situation(price, seen.demand.latency) if seen.demand.latency else None


def _reference(
    hardware: InstanceType, days: Sequence[DayDigest], given: Given
) -> tuple[InstanceType, Sequence[DayDigest]]:
    """The type, and the days on it, that latency is measured on: those before our own first change, else today's.

    After a change the baseline would shrink with every step (scaling in makes the next decision look at less).
    """
    first = min(
        (p.at.date() for p in given.history.endpoint if p.ended not in ("tested", "update-failed")), default=None
    )
    before = [d for d in days if first is not None and d.day < first and d.latency]
    found = given.catalogue.find(before[-1].instance_type) if before else None
    if found is not None:
        return found, [d for d in before if d.instance_type == found.name]
    return hardware, [d for d in days if d.instance_type == hardware.name] or list(days[-1:])


def _too_little(past: PastChange) -> bool:
    """Whether a change failed because the fleet was too small, or may have."""
    return past.from_type == past.to_type or past.failure == "alarm"


def _random_base(endpoint: Endpoint, history: History) -> bool:
    """Whether requests were routed without looking on the reference days, before our first change."""
    first = next((p for p in history.endpoint if p.ended not in ("tested", "update-failed")), None)
    return ((first.from_routing if first else "") or endpoint.variants[0].routing) != LEAST


def _unqueued(base: Sequence[DayDigest], random_base: bool) -> tuple[Unqueued, Latency] | None:
    """How to take the waiting out of the latency."""
    latency = latency_of(base)
    counts = [c for d in base for c in d.instances if c]
    mean = sum(counts) / len(counts) if counts else 1.0
    rates = rates_of(base, mean if random_base else 1.0)
    if latency is None or not rates:
        return None
    return unqueued(latency, rates, max(base[0].gpus, 1) * (1.0 if random_base else mean)), latency


def _instances(endpoint: Endpoint, days: Sequence[DayDigest], history: History) -> float:
    """Mean instances: as counted over the last week (or since our change) where the count moves, else the count now."""
    if not endpoint.scaling:
        return float(endpoint.variants[0].current_count)
    seen = [c for d in days[-1 if history.endpoint else -7 :] for c in d.instances if c is not None]
    return sum(seen) / len(seen) if seen else float(endpoint.variants[0].current_count)
