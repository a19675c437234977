"""Serverless against real-time, both ways: what the same requests would cost on the other, and where both cost as much.

For endpoints without accelerators; one with a GPU that its model does not use gets an option (dimension serverless).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
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
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, Price, PriceTable
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.serverless import (
    SERVERLESS_AT_ONCE,
    SERVERLESS_REQUEST_S,
    break_even_requests,
    serverless_usd,
    vcpus_of,
    whole_gigabytes,
)

BURST = 2.0
"""Times the mean of the busiest hour that requests may come at once; an assumption."""
MOST_BUSY = 0.6
"""Share of the vCPUs that a real-time endpoint may use in its busiest hour; an assumption."""
WORTH = Decimal("0.2")
"""Share of today's cost from which the other kind is advised: it takes a deployment, and the figures are bounds."""
MEMORY_ROOM = 1.2
"""Times the highest memory seen that a serverless endpoint must hold."""


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
        if traffic is not None and traffic.requests <= 0 and recommendation.kind is EndpointKind.SERVERLESS:
            yield _uncalled(recommendation, traffic)
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


def _uncalled(recommendation: Recommendation, seen: EndpointTraffic) -> AccountFinding:
    return AccountFinding(
        AccountFindingCode.SERVERLESS,
        f"{recommendation.ref.name} is serverless and met no request in {seen.days:g} days: nothing to weigh against"
        " real-time, whose instances are billed while nobody calls",
        Decimal(0),
        "leave it serverless; it costs nothing without requests",
        endpoint=recommendation.ref.name,
        owner=recommendation.owner,
        not_checked=("provisioned concurrency, which is billed while it waits",),
    )


def _to_real_time(
    one: Recommendation, seen: EndpointTraffic, size: ServerlessSize, inputs: ServerlessInputs
) -> AccountFinding | None:
    fleet = real_time_fleet(seen, size.gigabytes, inputs)
    if fleet is None:
        return None
    kind, count, price = fleet
    month = (price.usd_per_hour * count * HOURS_PER_MONTH).quantize(CENT)
    seconds = Decimal(str(round(seen.monthly_seconds, 3)))
    known, name = inputs.prices.serverless, f"{count} × {kind.name}"
    waits = f" and {size.provisioned} provisioned, whose price is not known" if size.provisioned else ""
    works = f"{one.ref.name} (serverless, {size.gigabytes} GB{waits}) works {seconds:,.0f} s a month"
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
    return AccountFinding(
        AccountFindingCode.SERVERLESS,
        what,
        saving,
        advice,
        endpoint=one.ref.name,
        owner=one.owner,
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


def _to_serverless(one: Recommendation, seen: EndpointTraffic, inputs: ServerlessInputs) -> AccountFinding | None:
    known, kind = inputs.prices.serverless, inputs.catalogue.find(one.instance_type)
    if known is None or kind is None or seen.memory_share is None or not one.usd_per_month:
        return None
    size = whole_gigabytes(MEMORY_ROOM * seen.memory_share * kind.memory_gib)
    if size is None or BURST * seen.peak_concurrency > SERVERLESS_AT_ONCE:
        return None
    slower = max(1.0, kind.vcpu / vcpus_of(size))
    if slower * seen.seconds_per_request > SERVERLESS_REQUEST_S / 2:
        return None
    seconds = Decimal(str(round(slower * seen.monthly_seconds, 3)))
    usd = serverless_usd(known.usd_per_gb_second, size, seconds).quantize(CENT)
    saving = one.usd_per_month - usd
    if saving < max(LEAST_USD, WORTH * one.usd_per_month):
        return None
    each = float(serverless_usd(known.usd_per_gb_second, size, Decimal(str(slower * seen.seconds_per_request))))
    even = break_even_requests(float(one.usd_per_month), each)
    return AccountFinding(
        AccountFindingCode.SERVERLESS,
        f"{one.ref.name} costs USD {one.usd_per_month:,.2f} a month; serverless with {size} GB costs USD {usd:,.2f}"
        f" at most for the same requests (both cost as much at {even:,.0f} requests a month)",
        saving,
        "where callers can wait for a start after a pause: a new serverless endpoint, and callers that name it",
        endpoint=one.ref.name,
        owner=one.owner,
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
