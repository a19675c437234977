"""Other ways to pay for the same work: a Savings Plan for what remains, and serverless against real-time."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.account_finding import (
    LEAST_USD,
    AccountFinding,
    AccountFindingCode,
    EndpointTraffic,
    ServerlessSize,
)
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.environment import Environment
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, Price, PriceTable
from rightsizer.domain.reason import Code, count
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.recommender.other_endpoint import (
    SERVERLESS_AT_ONCE,
    SERVERLESS_REQUEST_S,
    break_even_requests,
    serverless_usd,
    vcpus_of,
    whole_gigabytes,
)

COVER = Decimal("0.7")
"""Share of what runs at every hour that is advised to be committed; an assumption: models change within a year."""
SEEN_DAYS = 7.0
"""Days of evidence from which an endpoint counts as steady."""
FALLS = (0, 25, 50, 75)
"""Per cent by which the steady spend falls, in the what-if."""
ASSUMED = (20, 30, 40)
"""Discounts of the what-if where the rates could not be read, per cent."""
ASLEEP = frozenset(
    {
        OptionKind.DELETE,
        OptionKind.SCALE_TO_ZERO,
        OptionKind.SERVERLESS,
        OptionKind.ASYNC,
        OptionKind.PACKING,
        OptionKind.REMOVE_VARIANT,
    }
)
"""Options after which an endpoint may run nothing, or something else: nothing of it is committed."""


@dataclass(frozen=True, slots=True)
class SteadyFleet:
    """Instances that run at every hour once the open savings are done."""

    counts: Mapping[str, int]
    """Instances by instance type."""
    endpoints: int
    left_out: int
    """Endpoints that cost money and are not counted: too little evidence, development, or going away."""
    open_usd: Decimal
    """US dollars a month of the savings that come first."""


def steady_fleet(recommendations: Iterable[Recommendation]) -> SteadyFleet:
    """Instances that still run at every hour after right-sizing, by type."""
    counts, endpoints, left_out, open_usd = defaultdict[str, int](int), 0, 0, Decimal(0)
    for recommendation in recommendations:
        if not recommendation.usd_per_month:
            continue
        open_usd += recommendation.identified_usd_per_month
        own = dict(_steady_counts(recommendation)) if _is_steady(recommendation) else {}
        endpoints, left_out = endpoints + bool(own), left_out + (not own)
        for name, number in own.items():
            counts[name] += number
    return SteadyFleet(dict(counts), endpoints, left_out, open_usd)


def _is_steady(recommendation: Recommendation) -> bool:
    known = (
        recommendation.finding not in (Finding.NOT_ENOUGH_DATA, Finding.IDLE) and recommendation.evidence is not None
    )
    developed = (
        recommendation.environment is not None and recommendation.environment.environment is Environment.DEVELOPMENT
    )
    return known and recommendation.evidence is not None and recommendation.evidence.days >= SEEN_DAYS and not developed


def _steady_counts(recommendation: Recommendation) -> Iterator[tuple[str, int]]:
    """(Type, instances that run at every hour) after the chosen option; nothing where it may leave none."""
    option = recommendation.chosen_option if recommendation.identified_usd_per_month > 0 else None
    if option is None:
        several = [(finding.instance_type, finding.instance_count) for finding in recommendation.variants]
        yield from _summed(several or [(recommendation.instance_type, recommendation.instance_count)])
    elif option.kind not in ASLEEP:
        others = [(target.instance_type, target.instance_count) for target in option.target.others]
        yield from _summed([(option.target.instance_type, _least(option.target)), *others])


def _summed(rows: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    sums = defaultdict[str, int](int)
    for name, number in rows:
        sums[name] += number
    yield from ((name, number) for name, number in sums.items() if name and number > 0)


def _least(target: Target) -> int:
    """Instances at the hour with the fewest."""
    if target.hourly_counts or target.day_counts:
        return min(target.week_counts)
    return target.instance_count if target.minimum is None else target.minimum


def savings_plan_finding(
    recommendations: Iterable[Recommendation], prices: PriceTable, rates: Mapping[str, Decimal] | None
) -> AccountFinding | None:
    """The plan that is worth buying after right-sizing; None where too little remains. Without rates a what-if."""
    fleet = steady_fleet(recommendations)
    hourly = {name: price.usd_per_hour for name in fleet.counts if (price := prices.find(name)) is not None}
    if rates is not None:
        hourly = {name: usd for name, usd in hourly.items() if rates.get(name, usd) < usd}
    on_demand = sum((usd * fleet.counts[name] for name, usd in hourly.items()), Decimal(0))
    if on_demand <= 0:
        return None
    unpriced = sorted(fleet.counts.keys() - hourly.keys())
    if rates is None:
        return _without_rates(fleet, on_demand, prices)
    discounted = sum((rates[name] * fleet.counts[name] for name in hourly), Decimal(0))
    discount, has = 1 - discounted / on_demand, prices.commitment.usd_per_hour
    commitment = (COVER * discounted - has).quantize(Decimal("0.001"))
    saving = (commitment * discount / (1 - discount) * HOURS_PER_MONTH).quantize(CENT)
    if saving < LEAST_USD:
        return None
    covered = commitment / (1 - discount)
    beyond = has / (1 - discount)
    return AccountFinding(
        AccountFindingCode.SAVINGS_PLAN,
        f"{_remains(fleet, on_demand)}: a SageMaker Savings Plan of USD {commitment} an hour covers"
        f" {100 * COVER:.0f} % of it"
        f"{f', with the USD {has:.2f} that is committed already' if has else ''}",
        saving,
        _advice(fleet),
        evidence={
            "discount": f"{100 * discount:.1f} % (1 year, No Upfront, {prices.region}), for these types together",
            "break-even": f"pays as long as {100 * (1 - discount):.0f} % of it is used: until the steady spend falls by"
            f" {100 * (1 - (beyond + commitment) / on_demand):.0f} %",
            **{
                f"if {fall} % less runs": _what_if(on_demand * (100 - fall) / 100 - beyond, covered, commitment)
                for fall in FALLS
            },
        },
        not_checked=(
            *(f"{name}: it has no rate of a plan here" for name in unpriced),
            *_unseen(fleet, known=prices.commitment.known),
        ),
    )


def _what_if(remaining: Decimal, covered: Decimal, commitment: Decimal) -> str:
    """Result a month where so much of the steady spend remains for the plan, by the hour on demand."""
    usd = (min(max(remaining, Decimal(0)), covered) - commitment) * HOURS_PER_MONTH
    return f"{'saves' if usd >= 0 else 'costs'} USD {abs(usd):,.2f} a month"


def _without_rates(fleet: SteadyFleet, on_demand: Decimal, prices: PriceTable) -> AccountFinding | None:
    month = COVER * on_demand * HOURS_PER_MONTH
    if month * ASSUMED[0] / 100 < LEAST_USD:
        return None
    return AccountFinding(
        AccountFindingCode.SAVINGS_PLAN,
        f"{_remains(fleet, on_demand)}, and the rates of a SageMaker Savings Plan could not be read",
        None,
        _advice(fleet),
        evidence={
            f"at a discount of {each} %": f"{100 * COVER:.0f} % of it committed saves USD {month * each / 100:,.2f}"
            f" a month and pays as long as {100 - each} % of the plan is used"
            for each in ASSUMED
        },
        not_checked=("the discount of the types that run", *_unseen(fleet, known=prices.commitment.known)),
    )


def _remains(fleet: SteadyFleet, on_demand: Decimal) -> str:
    costs = "costs" if fleet.endpoints == 1 else "cost"
    return f"{count(fleet.endpoints, 'endpoint')} still {costs} USD {on_demand:,.2f} at every hour after right-sizing"


def _advice(fleet: SteadyFleet) -> str:
    first = f"first the open savings (USD {fleet.open_usd:,.2f} a month), then " if fleet.open_usd else ""
    return f"{first}buy it for one year, No Upfront; a plan cannot be cancelled, and shrinking under it saves nothing"


def _unseen(fleet: SteadyFleet, *, known: bool) -> Iterator[str]:
    if fleet.left_out:
        yield f"{count(fleet.left_out, 'endpoint')} left out: too little evidence, development, idle or going away"
    if not known:
        yield "plans of the organisation's payer account, which may cover all of it already"
    yield "how low fleets that scale go: today's count is taken where no option names a minimum"
    yield "what training, processing and notebooks would use of the plan, which covers them too"


BURST = 2.0
"""Times the mean of the busiest hour that requests may come at once; an assumption."""
MOST_BUSY = 0.6
"""Share of the vCPUs that a real-time endpoint may use in its busiest hour; an assumption."""
WORTH = Decimal("0.2")
"""Share of today's cost from which the other kind is advised: it takes a deployment, and the figures are bounds."""
MEMORY_ROOM = 1.2
"""Times the highest memory seen that a serverless endpoint must hold."""
HOST_SEEN = 0.9
"""Share of the window in which an instance has to have been seen before nobody is said to call it."""


@dataclass(frozen=True, slots=True)
class ServerlessInputs:
    """Inputs of both directions."""

    traffic: Mapping[str, EndpointTraffic]
    sizes: Mapping[str, ServerlessSize]
    """Of the serverless endpoints."""
    prices: PriceTable
    catalogue: Catalogue


def weighed_endpoints(recommendations: Sequence[Recommendation]) -> list[Recommendation]:
    """The endpoints that are weighed: serverless ones, and plain real-time ones on a type without accelerators."""
    return [
        recommendation
        for recommendation in recommendations
        if recommendation.mode is not Mode.OFF
        and (recommendation.kind is EndpointKind.SERVERLESS or _is_plain_cpu(recommendation))
    ]


def _is_plain_cpu(recommendation: Recommendation) -> bool:
    plain = recommendation.kind is EndpointKind.REAL_TIME and not recommendation.beside
    return plain and recommendation.reason.code is Code.NO_ACCELERATOR and recommendation.price is not None


def serverless_findings(
    recommendations: Sequence[Recommendation], inputs: ServerlessInputs
) -> Iterator[AccountFinding]:
    """A finding for each serverless endpoint, and for real-time ones where serverless is cheaper."""
    for recommendation in weighed_endpoints(recommendations):
        traffic = inputs.traffic.get(recommendation.ref.name)
        if traffic is not None and traffic.requests <= 0 and traffic.busy_s <= 0:
            yield from _uncalled(recommendation, traffic)
        if traffic is None or traffic.requests <= 0 or traffic.busy_s <= 0:
            continue
        size = inputs.sizes.get(recommendation.ref.name)
        finding = (
            _to_serverless(recommendation, traffic, inputs)
            if size is None
            else _to_real_time(recommendation, traffic, size, inputs)
        )
        if finding is not None:
            yield finding


def _uncalled(recommendation: Recommendation, seen: EndpointTraffic) -> Iterator[AccountFinding]:
    """What an endpoint costs that nobody calls: nothing where it is serverless, else its instances."""
    name, usd = recommendation.ref.name, recommendation.usd_per_month
    quiet = f"had no request in {seen.days:g} days"
    if recommendation.kind is EndpointKind.SERVERLESS:
        told = f"is serverless and {quiet}, so it costs nothing; a real-time endpoint would be billed although nobody"
        what, saving = f"{name} {told} calls it", Decimal(0)
        advice = "leave it serverless; it costs nothing without requests"
        unknown = "provisioned concurrency, which is billed while it waits"
    elif usd and seen.seen_days >= HOST_SEEN * seen.days:
        fleet = f"{recommendation.instance_count} × {recommendation.instance_type}"
        what, saving = f"{name} ({fleet}) {quiet} and costs USD {usd:,.2f} a month", usd
        advice = "ask its owner, then delete it; its configuration, which is kept and costs nothing, brings it back"
        unknown = "Savings Plans: use that they cover goes on being billed"
    else:
        return
    code, owner = AccountFindingCode.SERVERLESS, recommendation.owner
    yield AccountFinding(code, what, saving, advice, endpoint=name, owner=owner, not_checked=(unknown,))


def _to_real_time(
    recommendation: Recommendation, seen: EndpointTraffic, size: ServerlessSize, inputs: ServerlessInputs
) -> AccountFinding | None:
    fleet = real_time_fleet(seen, size.gigabytes, inputs)
    if fleet is None:
        return None
    kind, count, price = fleet
    month = (price.usd_per_hour * count * HOURS_PER_MONTH).quantize(CENT)
    seconds = Decimal(str(round(seen.monthly_seconds, 3)))
    known, name = inputs.prices.serverless, f"{count} × {kind.name}"
    waits = f" and {size.provisioned} provisioned, whose price is not known" if size.provisioned else ""
    works = f"{recommendation.ref.name} (serverless, {size.gigabytes} GB{waits}) works {seconds:,.0f} s a month"
    if known is None:
        limit = month / (size.gigabytes * seconds)
        what = (
            f"{works}; real-time on {name} costs USD {month:,.2f}, as much as serverless at USD {limit:.7f} a GB-second"
        )
        saving, advice = (
            None,
            f"compare that with the price of a GB-second in {inputs.prices.region}, which is not known",
        )
    else:
        usd = serverless_usd(known.usd_per_gb_second, size.gigabytes, seconds).quantize(CENT)
        each = float(serverless_usd(known.usd_per_gb_second, size.gigabytes, Decimal(str(seen.seconds_per_request))))
        even = f"both cost as much at {break_even_requests(float(month), each):,.0f} requests a month"
        what = f"{works} for USD {usd:,.2f}; real-time on {name} costs USD {month:,.2f} ({even})"
        pays = usd - month >= max(LEAST_USD, WORTH * usd)
        saving = usd - month if pays else Decimal(0)
        advice = (
            f"deploy a real-time configuration on {name} to it: the way back to serverless is a new endpoint only"
            if pays
            else "leave it serverless"
        )
        if size.provisioned and not pays:
            advice += "; provisioned concurrency is billed by the hour, called or not: set it to what callers need"
    return AccountFinding(
        AccountFindingCode.SERVERLESS,
        what,
        saving,
        advice,
        endpoint=recommendation.ref.name,
        owner=recommendation.owner,
        evidence=_evidence(seen),
        not_checked=(
            f"bursts beyond {BURST:g} times the mean of the busiest hour, and a second instance for another zone",
            "the vCPUs that come with the memory: taken as Lambda's, one for 1,769 MB",
            "what data in and out cost",
        ),
    )


def real_time_fleet(
    traffic: EndpointTraffic, gigabytes: int, inputs: ServerlessInputs
) -> tuple[InstanceType, int, Price] | None:
    """The cheapest x86 instances that hold and serve what the serverless endpoint does at its busiest."""
    vcpus = max(1.0, traffic.peak_concurrency) * vcpus_of(gigabytes) / MOST_BUSY
    memory = math.ceil(max(1.0, BURST * traffic.peak_concurrency)) * gigabytes
    best: tuple[Decimal, str, InstanceType, int, Price] | None = None
    for kind in inputs.catalogue:
        price = inputs.prices.find(kind.name)
        if kind.accelerator or kind.cpu_arch != "x86_64" or kind.family.startswith("t") or price is None:
            continue
        if not price.listed or kind.memory_gib < gigabytes:
            continue
        count = max(math.ceil(vcpus / kind.vcpu), math.ceil(memory / kind.memory_gib))
        asked = (price.usd_per_hour * count, kind.name, kind, count, price)
        if best is None or asked[:2] < best[:2]:
            best = asked
    return None if best is None else best[2:]


def _to_serverless(
    recommendation: Recommendation, seen: EndpointTraffic, inputs: ServerlessInputs
) -> AccountFinding | None:
    known, kind = inputs.prices.serverless, inputs.catalogue.find(recommendation.instance_type)
    if known is None or kind is None or seen.memory_share is None or not recommendation.usd_per_month:
        return None
    size = whole_gigabytes(MEMORY_ROOM * seen.memory_share * kind.memory_gib)
    if size is None or BURST * seen.peak_concurrency > SERVERLESS_AT_ONCE:
        return None
    slower = max(1.0, kind.vcpu / vcpus_of(size))
    if slower * seen.seconds_per_request > SERVERLESS_REQUEST_S / 2:
        return None
    seconds = Decimal(str(round(slower * seen.monthly_seconds, 3)))
    usd = serverless_usd(known.usd_per_gb_second, size, seconds).quantize(CENT)
    saving = recommendation.usd_per_month - usd
    if saving < max(LEAST_USD, WORTH * recommendation.usd_per_month):
        return None
    each = float(serverless_usd(known.usd_per_gb_second, size, Decimal(str(slower * seen.seconds_per_request))))
    even = break_even_requests(float(recommendation.usd_per_month), each)
    return AccountFinding(
        AccountFindingCode.SERVERLESS,
        f"{recommendation.ref.name} costs USD {recommendation.usd_per_month:,.2f} a month; serverless with {size} GB"
        f" costs USD {usd:,.2f} at most for the same requests (both cost as much at {even:,.0f} requests a month)",
        saving,
        "where callers can wait for a start after a pause: a new serverless endpoint, and callers that name it",
        endpoint=recommendation.ref.name,
        owner=recommendation.owner,
        evidence={
            **_evidence(seen),
            "memory": f"{100 * seen.memory_share:.0f} % of {kind.memory_gib:g} GiB at most",
            "slower": f"up to {slower:.1f} times, if a request uses all {kind.vcpu} vCPUs",
        },
        not_checked=(
            "how long it takes to start after a pause",
            "whether requests and answers are below 4 MB, and the image below 10 GB",
            "whether the model needs a VPC or network isolation, which serverless does not have",
            "what data in and out cost",
        ),
    )


def _evidence(traffic: EndpointTraffic) -> dict[str, str]:
    return {
        "requests": f"{traffic.requests:,.0f} in {traffic.days:.0f} days, {traffic.seconds_per_request:.3g} s each",
        "busiest hour": f"{traffic.peak_concurrency:.2f} at once on average",
    }
