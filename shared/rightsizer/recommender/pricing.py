"""Price and rate one target as an option.

A saving is net of commitments and of the change itself. The risk is on Compute Optimizer's scale, resource by resource.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.endpoint import EndpointKind, Variant
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import (
    CHANGEABLE,
    Effort,
    Money,
    Option,
    OptionKind,
    Risk,
    RiskResource,
    Target,
    new_option,
    payback_days,
)
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, Commitment, Price, PriceTable

TOLD = (
    "{} in place of {} GPUs in an instance: a server that is told how many (tensor parallel degree,"
    " CUDA_VISIBLE_DEVICES) has to be told anew"
)
WAITS = "must retry while the endpoint wakes"
MANAGED = (
    "whether managed instance scaling may go down to 0 instances (MinInstanceCount): where it may not, the"
    " configuration that lets it is a deployment"
)


@dataclass(frozen=True, slots=True)
class RatedTarget:
    """A target with its price, what it costs and saves, and how sure that is."""

    target: Target
    price: Price
    money: Money
    risks: Mapping[RiskResource, Risk]
    confidence: float


def type_option(
    endpoint: EndpointKind,
    runs: tuple[InstanceType, int],
    to: InstanceType,
    rated: RatedTarget,
    facts: Mapping[str, str],
    not_checked: tuple[str, ...] = (),
) -> Option:
    """An option of another type, another count, or both; in place where the program changes such an endpoint.

    As many instances of the same card with fewer of them each are fewer GPUs.
    """
    now, target, money = (runs[0].name, runs[1]), rated.target, rated.money
    kind, fewer = _option_kind(now, target), to.accelerator_count < runs[0].accelerator_count
    if fewer and kind is OptionKind.INSTANCE_TYPE and to.accelerator == runs[0].accelerator:
        kind = OptionKind.FEWER_GPUS
    return new_option(
        kind,
        target,
        rated.price,
        money,
        rated.confidence,
        rated.risks,
        Effort.VERY_LOW if target.instance_type == now[0] else Effort.MEDIUM if fewer else Effort.LOW,
        restarts=_deployed(now, target),
        in_place=endpoint in CHANGEABLE,
        notes=(TOLD.format(to.accelerator_count, runs[0].accelerator_count),) if fewer else (),
        facts={**facts, "break-even": break_even_text(money)},
        not_checked=not_checked,
    )


def break_even_text(money: Money) -> str:
    """Until where it saves; the commitment is taken off the saving already."""
    if money.saving <= 0 or money.usd_per_month <= 0:
        return "it saves nothing: it serves what today's fleet does not"
    ratio = float((money.usd_per_month + money.saving) / money.usd_per_month)
    return f"as dear as today at {ratio:.2f} times the planned instance hours"


def with_test_cost(option: Option, test_usd: Decimal) -> Option:
    """The option behind a shadow test of `test_usd`; the saving has to repay test and change."""
    payback = payback_days(option.switch_usd + test_usd, option.saving_usd_per_month)
    return replace(option, test_usd=test_usd, payback_days=payback)


def delete_option(now: tuple[str, int], price: Price, usd: Decimal, confidence: float, silent_days: int) -> Option:
    """Deleting an idle endpoint: a person's act, the configuration is kept to bring it back."""
    return new_option(
        OptionKind.DELETE,
        Target(instance_type=now[0], instance_count=0),
        price,
        Money(Decimal(0), usd, Decimal(0), 0.0),
        confidence,
        {RiskResource.AVAILABILITY: Risk.MEDIUM},
        Effort.MEDIUM,
        in_place=False,
        restarts=False,
        keeps=False,
        client_change="calls fail once the endpoint is deleted",
        notes=("keep the endpoint configuration: CreateEndpoint with it brings the endpoint back",),
        facts={"days without a request": str(silent_days), "break-even": "from the first hour"},
        not_checked=("whether the endpoint is kept for rare or seasonal use",),
    )


def scale_to_zero_option(
    now: tuple[str, int],
    price: Price,
    money: Money,
    confidence: float,
    minutes: int,
    asleep: float,
    in_place: bool,
    of_components: bool = False,
) -> Option:
    """Scale to zero after `minutes` without a request.

    `in_place`: rightsizer does it, behind a queue or on components; else it takes a new endpoint of components, or its
    owner changes their copies. `of_components`: its callers name components already.
    """
    fails = of_components and in_place
    asked = WAITS if of_components else f"must name an inference component and {WAITS.removeprefix('must ')}"
    return new_option(
        OptionKind.SCALE_TO_ZERO,
        Target(instance_type=now[0], instance_count=now[1], minimum=0, idle_minutes=minutes),
        price,
        money,
        confidence,
        {RiskResource.AVAILABILITY: Risk.LOW},
        Effort.HIGH,
        in_place=in_place,
        restarts=fails or not (in_place or of_components),  # its configuration; else a new endpoint of components
        client_change="" if in_place and not of_components else asked,
        notes=(f"asleep {100 * asleep:.0f} % of the look-back with a timeout of {minutes} minutes",),
        facts={
            "idle timeout": f"{minutes} minutes",
            "asleep": f"{100 * asleep:.0f} %",
            "break-even": f"saves nothing once a request comes every {minutes} minutes",
        },
        not_checked=(MANAGED,) if of_components and not in_place else (),
    )


def restore_option(
    endpoint: EndpointKind, now: tuple[str, int], target: Target, price: Price, money: Money, confidence: float
) -> Option:
    """Back to the last configuration that was good; in place where the program changes such an endpoint."""
    return new_option(
        _option_kind(now, target),
        target,
        price,
        money,
        confidence,
        {RiskResource.CAPACITY: Risk.LOW},
        Effort.LOW,
        restarts=_deployed(now, target),
        in_place=endpoint in CHANGEABLE,
        notes=("the configuration that ran before our last change",),
        restores=True,
    )


def _deployed(now: tuple[str, int], target: Target) -> bool:
    """Whether another configuration replaces every instance; counts, bounds and scheduled actions replace none."""
    return target.instance_type != now[0] or target.routing is not None


def _option_kind(now: tuple[str, int], target: Target) -> OptionKind:
    if target.hourly_counts is not None:
        return OptionKind.SCHEDULE
    if target.instance_type == now[0]:
        if target.routing is not None:
            return OptionKind.ROUTING
        return OptionKind.INSTANCE_COUNT if target.minimum is None else OptionKind.AUTOSCALING
    return OptionKind.INSTANCE_TYPE if target.instance_count == now[1] else OptionKind.TYPE_AND_COUNT


@dataclass(frozen=True, slots=True)
class FleetCost:
    """US dollars of one option."""

    usd_per_month: Decimal
    saving: Decimal
    """Net of the commitment; negative when dearer."""
    committed: Decimal
    """Part of the gross saving that a Savings Plan keeps on billing."""
    switch_usd: Decimal
    payback_days: float


def committed_text(usd_per_hour: Decimal) -> str:
    """The part of a cost that a Savings Plan bears, in brackets; empty without one."""
    return f" (committed: ${usd_per_hour:,.2f} an hour)" if usd_per_hour else ""


def monthly_cost(price: Price, instances: float) -> Decimal:
    """US dollars of a month of that many instances on average, in the hours that they run."""
    return (price.usd_per_instance_month * Decimal(str(round(instances, 4)))).quantize(CENT)


def mean_while_running(mean: float, fewest: int, most: int, price: Price) -> float:
    """The mean count in the hours that run, from that of all hours: stopped ones would have had the fewest.

    Where they would have had more the mean is too high, and the saving told is too small.
    """
    runs = float(price.hours_per_month / HOURS_PER_MONTH)
    return min((mean - fewest * (1 - runs)) / runs, max(float(most), mean))


def usd_of_variants(variants: Iterable[Variant], prices: PriceTable) -> Decimal:
    """US dollars a month of the variants as they run; those whose price is not known are left out."""
    found = ((prices.find(v.instance_type), v.current_count) for v in variants if v.instance_type)
    return sum((monthly_cost(price, count) for price, count in found if price is not None), Decimal(0))


def cost_of(
    now_usd: Decimal,
    price: Price,
    instances: float,
    fleet: int,
    risk_share: float,
    commitment: Commitment,
    policy: Policy,
    new_fleet: bool,
    beside_usd_per_hour: Decimal = Decimal(0),
) -> FleetCost:
    """Cost of `instances` on average, at most `fleet` of them; `new_fleet` when both fleets run during the change.

    A deployment starts the fleets of all variants anew: `beside_usd_per_hour` is what the others cost.
    """
    after = monthly_cost(price, instances)
    gross = now_usd - after
    committed = kept_by_commitment(gross, now_usd, commitment)
    saving = (gross - committed).quantize(CENT)
    overlap = Decimal(0)
    if new_fleet:
        hours = Decimal(str(policy.provision_minutes / 60 * (1 + risk_share)))
        overlap = ((price.usd_per_hour * fleet + beside_usd_per_hour) * hours).quantize(CENT)
    return FleetCost(after, saving, committed, overlap, payback_days(overlap, saving))


def kept_by_commitment(gross: Decimal, now_usd: Decimal, commitment: Commitment) -> Decimal:
    """The part of a gross monthly saving that a Savings Plan bills anyway.

    A commitment is US dollars per hour. Only what is billed on demand above it is saved, however much of the plan is
    used: what it covers goes on being billed until the plan ends (Savings Plans guide, "How Savings Plans apply").
    `now_usd`: US dollars a month of what the saving is a part of.
    """
    if gross <= 0 or commitment.usd_per_hour <= 0:
        return Decimal(0)
    on_demand = max(now_usd - commitment.covered_usd_per_hour * HOURS_PER_MONTH, Decimal(0))
    return (gross - on_demand).quantize(CENT) if gross > on_demand else Decimal(0)


def share_commitment(commitment: Commitment, now_usd: Decimal, account_usd: Decimal | None) -> Commitment:
    """The part of the commitment that an endpoint bears: its share of what the account's endpoints cost a month.

    Shares add up to the plan, and so what all endpoints save is on demand. All of it where that cost is not known.
    """
    if account_usd is None or account_usd <= now_usd:
        return commitment
    return replace(commitment, usd_per_hour=commitment.usd_per_hour * now_usd / account_usd)


def risk_level(probability: float, policy: Policy) -> Risk:
    """The risk level of a probability of harm."""
    return Risk(sum(1 for limit in policy.risk_steps if probability >= limit))


def memory_risk(now: InstanceType, candidate: InstanceType, demand: Demand, started: bool) -> Risk:
    """GPU memory: by class of need and by margin; `started` when a test or change showed that the model fits."""
    if candidate.accelerator is None or now.accelerator is None:
        return Risk.VERY_HIGH
    have, had = candidate.accelerator.usable_gib, now.accelerator.usable_gib
    if have >= had or started:
        return Risk.VERY_LOW
    if demand.memory.need_gib is None:
        return Risk.HIGH
    if demand.memory.kind is MemoryClass.PREALLOCATED:
        return Risk.MEDIUM  # reckoned from its pool, and no start on a smaller card has shown it yet
    room = have / demand.memory.need_gib if demand.memory.need_gib else float("inf")  # trees need no GPU memory
    if demand.memory.growing:
        return Risk.HIGH if room < 1.3 else Risk.MEDIUM
    return Risk.VERY_LOW if room >= 1.15 else Risk.LOW


def host_risk(now: InstanceType, candidate: InstanceType, demand: Demand) -> Risk:
    """Host memory, with the margin already inside the need."""
    if candidate.memory_gib >= now.memory_gib:
        return Risk.VERY_LOW
    if demand.host_memory_gib is None:
        return Risk.HIGH
    return Risk.VERY_LOW if candidate.memory_gib >= 1.2 * demand.host_memory_gib else Risk.LOW


def vcpu_risk(now: InstanceType, candidate: InstanceType, demand: Demand) -> Risk:
    """vCPU: fewer of them are only safe when their use is known to be low."""
    if candidate.vcpu >= now.vcpu:
        return Risk.VERY_LOW
    if demand.vcpu is None:
        return Risk.MEDIUM
    return Risk.VERY_LOW if candidate.vcpu >= 1.5 * demand.vcpu else Risk.LOW


def load_risk(load: float, policy: Policy) -> Risk:
    """Capacity: how near the planned peak comes to the workers there are."""
    if load <= policy.rho_one:
        return Risk.VERY_LOW
    if load <= policy.rho_many:
        return Risk.LOW
    return Risk.HIGH if load < 1 else Risk.VERY_HIGH


def quota_risk(needed: int, quota: int | None) -> Risk:
    """Whether the new fleet fits the quota by itself; unknown is a low risk: preflight asks, a start fails early."""
    if quota is None:
        return Risk.LOW
    return Risk.VERY_LOW if needed <= quota else Risk.VERY_HIGH
