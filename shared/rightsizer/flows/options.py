"""Compose the rules into options: every type of the catalogue, sized, priced, rated; or ruled out with a reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.model.candidate import Fleet, Goal, Slowdown
from rightsizer.model.demand import Demand, Latency
from rightsizer.model.hardware import Catalogue, InstanceType
from rightsizer.model.observation import Endpoint, Variant
from rightsizer.model.option import Excluded, Option, Risk, Target
from rightsizer.model.policy import Policy
from rightsizer.model.price import Price, PriceTable
from rightsizer.model.reason import Code, Reason
from rightsizer.rules.cost import cost_of, monthly
from rightsizer.rules.eligible import Limits, refusal
from rightsizer.rules.objective import goal_of
from rightsizer.rules.offer import Money, type_option
from rightsizer.rules.queueing import smallest_fleet
from rightsizer.rules.risk import host_risk, load_risk, memory_risk, quota_risk, step, vcpu_risk
from rightsizer.rules.sizing import Service, host_factor, service_on
from rightsizer.rules.speed import chance, slowdown

NOT_CHECKED = ("a start of the model on the candidate", "capacity of the candidate in the Availability Zones")


@dataclass(frozen=True, slots=True)
class Situation:
    """One endpoint with everything that its options are weighed against."""

    endpoint: Endpoint
    variant: Variant
    now: InstanceType
    price: Price
    demand: Demand
    latency: Latency
    goal: Goal
    prices: PriceTable
    quotas: Mapping[str, int]
    policy: Policy

    @property
    def usd(self) -> Decimal:
        """US dollars of a month as it runs today."""
        return monthly(self.price, self.variant.current_count)


def situation(
    endpoint: Endpoint,
    now: InstanceType,
    price: Price,
    demand: Demand,
    latency: Latency,
    prices: PriceTable,
    quotas: Mapping[str, int],
    policy: Policy,
) -> Situation:
    """The situation of a variant with latency data."""
    goal = goal_of(endpoint.objective, latency, policy)
    return Situation(endpoint, endpoint.variants[0], now, price, demand, latency, goal, prices, quotas, policy)


def options_for(at: Situation, catalogue: Catalogue) -> tuple[tuple[Option, ...], tuple[Excluded, ...]]:
    """Options that save, best first, and every candidate that was ruled out."""
    found: list[Option] = []
    excluded: list[Excluded] = []
    for candidate in catalogue:
        if not candidate.has_gpu:
            continue
        price = at.prices.find(candidate.name)
        if price is not None and price.usd_per_hour >= at.price.usd_per_hour * at.policy.count_factor * max(
            at.variant.current_count, 1
        ):
            continue
        reason = refusal(at.now, candidate, at.demand, Limits(price, at.quotas.get(candidate.name)))
        if reason is None and price is not None:
            offer = _sized(at, candidate, price)
            if isinstance(offer, Option):
                found.append(offer)
            else:
                excluded.append(Excluded(candidate.name, offer))
        elif reason is not None:
            excluded.append(Excluded(candidate.name, reason))
    return tuple(sorted(found, key=lambda o: _rank(o, at))), tuple(excluded)


def _sized(at: Situation, candidate: InstanceType, price: Price) -> Option | Reason:
    old, new = at.now.accelerator, candidate.accelerator
    if old is None or new is None:
        return Reason(Code.NO_ACCELERATOR, f"{candidate.name} has no accelerator")
    speed = slowdown(old, new, at.policy)
    host = host_factor(at.now, candidate, at.demand, at.policy)
    service = service_on(candidate, at.demand, at.latency, speed, host, at.goal, at.policy)
    fleet = _fleet(at, candidate, service, speed)
    if fleet is None:
        return Reason(
            Code.TOO_SLOW,
            f"p95 on {candidate.name} may reach {service.p95_s:.2f} s (slowdown up to {speed.bound:.2f});"
            f" the objective is {at.goal.p95_s:.2f} s",
        )
    option = _option(at, candidate, price, service, fleet, speed)
    if option.saving_usd_per_month <= 0:
        return Reason(
            Code.NOT_CHEAPER,
            f"{fleet.count} x {candidate.name} would cost USD {option.usd_per_month} per month, today USD {at.usd}",
        )
    return option


def _fleet(at: Situation, candidate: InstanceType, service: Service, speed: Slowdown) -> Fleet | None:
    if speed.source != "same" and service.p95_s > at.policy.objective_safety * at.goal.p95_s:
        return None
    room = max(at.policy.objective_safety * at.goal.p95_s - service.p95_s, 0.0)
    growth = 1 + at.policy.down_with_growth
    fleet = smallest_fleet(
        at.demand.load.peak_rate * growth,
        service.service_s,
        service.workers,
        room,
        at.demand.load.dispersion,
        at.latency.squared_variation,
        at.variant.routing == "LEAST_OUTSTANDING_REQUESTS",
        at.policy,
    )
    same = candidate.name == at.now.name
    count = at.variant.current_count
    if fleet is None or (same and fleet.count >= count):
        return Fleet(count, 0.0, at.policy.rho_one) if same else fleet
    if at.policy.halve_at_most and fleet.count < -(-count // 2):
        return Fleet(-(-count // 2), fleet.waiting_p95_s, fleet.load_per_worker * fleet.count / -(-count // 2))
    return fleet


def _option(
    at: Situation, candidate: InstanceType, price: Price, service: Service, fleet: Fleet, speed: Slowdown
) -> Option:
    harm = 0.0 if speed.source == "same" else 1 - chance(service.slack, speed.phi)
    risks = {
        "gpu-memory": memory_risk(at.now, candidate, at.demand, started=False),
        "host-memory": host_risk(at.now, candidate, at.demand),
        "vcpu": vcpu_risk(at.now, candidate, at.demand),
        "latency": step(harm, at.policy) if speed.source != "same" else Risk.VERY_LOW,
        "capacity": max(
            load_risk(fleet.load_per_worker, at.policy), quota_risk(fleet.count, at.quotas.get(candidate.name))
        ),
    }
    changed = candidate.name != at.now.name
    cost = cost_of(at.usd, price, fleet.count, fleet.count, harm, at.prices.commitment, at.policy, changed)
    facts = {
        "datasheet ratio": f"{speed.phi:.2f}",
        "slowdown": f"{speed.hopeful:.2f} to {speed.bound:.2f} ({speed.source})",
        "planned load per worker": f"{100 * fleet.load_per_worker:.0f} %",
        "kept by the commitment": f"USD {cost.committed} per month",
    }
    return type_option(
        (at.now.name, at.variant.current_count),
        Target(candidate.name, fleet.count),
        price,
        Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days),
        risks,
        at.demand.confidence,
        round(service.p95_s + fleet.waiting_p95_s, 4),
        facts,
        NOT_CHECKED if changed else (),
    )


def _rank(option: Option, at: Situation) -> tuple[float, str]:
    """Lowest expected cost first: the bill, the switch, and the price of harm (decision.md 4.6)."""
    harm = (0.0, 0.01, 0.03, 0.10, 0.50)[int(option.risk)]
    penalty = harm * at.policy.harm_months * float(at.usd)
    return float(option.usd_per_month) + float(option.switch_usd) + penalty, option.target.instance_type
