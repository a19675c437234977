"""Serverless against real-time: each way where it pays, neither where it does not, and the break-even in both."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.bootstrap import catalogue
from rightsizer.domain.account_finding import AccountFinding, EndpointTraffic, ServerlessSize
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.price import Commitment, Price, PriceTable, ServerlessPrice
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.reporting.payment import ServerlessInputs, real_time_fleet, serverless_findings
from tests.samples import recommendation

KNOWN = ServerlessPrice("us-east-1", Decimal("0.00002"), "2023-10", "a page")
USD = {"ml.c5.large": "0.102", "ml.c5.xlarge": "0.204", "ml.m5.large": "0.115", "ml.m5.xlarge": "0.23"}
PRICES = PriceTable(
    "us-east-1",
    {name: Price(name, "us-east-1", Decimal(usd), "snapshot", "Hosting", "2026") for name, usd in USD.items()},
    Commitment(Decimal(0), known=False),
    serverless=KNOWN,
)


def traffic(requests: float, seconds: float, **changes: Any) -> EndpointTraffic:
    """A fortnight of even requests."""
    made = EndpointTraffic("e", 14, requests, requests * seconds, requests * seconds / (14 * 86400), 0.3)
    return replace(made, **changes)


def serverless() -> Recommendation:
    why = Reason(Code.OTHER_KIND, "it is of the kind serverless")
    return recommendation(
        "e", kind=EndpointKind.SERVERLESS, instance_type="", price=None, usd_per_month=None, reason=why, options=()
    )


def real_time(kind: str = "ml.m5.xlarge", count: int = 1) -> Recommendation:
    price = PRICES.find(kind)
    assert price is not None
    return recommendation(
        "e",
        instance_type=kind,
        instance_count=count,
        price=price,
        usd_per_month=price.usd_per_hour * count * 730,
        finding=Finding.NOT_ENOUGH_DATA,
        reason=Reason(Code.NO_ACCELERATOR, f"{kind} has no accelerator"),
        options=(),
    )


def found(
    one: Recommendation, seen: EndpointTraffic, size: ServerlessSize | None = None, prices: PriceTable = PRICES
) -> AccountFinding | None:
    inputs = ServerlessInputs({"e": seen}, {"e": size} if size else {}, prices, catalogue())
    return next(serverless_findings([one], inputs), None)


def test_constant_heavy_traffic_belongs_on_an_instance() -> None:
    """A fortnight of one request at once: 2,628,000 s a month, 4 GB of it cost USD 210."""
    made = found(serverless(), traffic(2_419_200, 0.5), ServerlessSize(4))
    assert made is not None
    assert made.usd_per_month is not None
    assert made.usd_per_month > 0
    assert "works 2,628,000 s a month for USD 210.24" in made.what
    assert "the way back to serverless is a new endpoint only" in made.advice


def test_rare_requests_stay_serverless_and_the_break_even_is_told() -> None:
    made = found(serverless(), traffic(2_000, 0.5), ServerlessSize(2))
    assert made is not None
    assert made.usd_per_month == 0
    assert made.advice == "leave it serverless"
    month = Decimal("0.102") * 730
    assert f"({made.what.split('(')[-1]}" == f"(both cost as much at {float(month) / 0.00002:,.0f} requests a month)"


def test_provisioned_concurrency_is_said_to_cost_while_nobody_calls() -> None:
    made = found(serverless(), traffic(10_000, 0.2), ServerlessSize(4, 10))
    assert made is not None
    assert "and 10 provisioned, whose price is not known" in made.what
    assert made.advice == (
        "leave it serverless; provisioned concurrency is billed by the hour, called or not: set it to what callers need"
    )


def test_the_instance_holds_all_that_run_at_once_at_its_busiest() -> None:
    inputs = ServerlessInputs({}, {}, PRICES, catalogue())
    busy = real_time_fleet(traffic(1, 1.0, peak_concurrency=3.0), 2, inputs)
    quiet = real_time_fleet(traffic(1, 1.0, peak_concurrency=0.01), 2, inputs)
    assert quiet is not None
    assert (quiet[0].name, quiet[1]) == ("ml.c5.large", 1)
    assert busy is not None
    held = busy[0].memory_gib * busy[1]
    assert held >= 12  # six at once, 2 GB each
    assert busy[0].vcpu * busy[1] >= 3 * 2 * 1024 / 1769 / 0.6


def test_the_vcpus_are_busy_for_60_per_cent_in_the_busiest_hour_at_most() -> None:
    """6 GB bring 3.47 vCPUs: 5.8 are wanted, and 12 GB for two at once."""
    fleet = real_time_fleet(traffic(1, 1.0, peak_concurrency=1.0), 6, ServerlessInputs({}, {}, PRICES, catalogue()))
    assert fleet is not None
    assert (fleet[0].name, fleet[1]) == ("ml.m5.large", 3)


@pytest.mark.parametrize(("share", "pays"), [(0.81, False), (0.79, True)])
def test_a_move_to_real_time_is_advised_from_a_fifth_of_the_cost(share: float, pays: bool) -> None:
    """2 x ml.c5.large cost USD 148.92 a month, which is that share of what serverless costs."""
    seconds = 148.92 / share / (0.00002 * 4)
    made = found(serverless(), traffic(seconds * 14 * 24 / 730, 1.0, peak_concurrency=1.0), ServerlessSize(4))
    assert made is not None
    assert made.usd_per_month is not None
    assert (made.usd_per_month > 0) is pays


def test_without_a_price_of_the_region_the_saving_is_unknown_and_the_break_even_price_is_told() -> None:
    made = found(serverless(), traffic(2_419_200, 0.5), ServerlessSize(4), replace(PRICES, serverless=None))
    assert made is not None
    assert made.usd_per_month is None
    assert "as much as serverless at USD 0.0000" in made.what


def test_a_quiet_cpu_endpoint_would_cost_less_serverless_at_the_longest_its_requests_may_take() -> None:
    made = found(real_time(), traffic(10_000, 0.2))
    assert made is not None
    assert made.usd_per_month is not None
    size, slower = 6, 4 / (6 * 1024 / 1769)
    usd = 0.00002 * size * slower * 10_000 * 0.2 * 730 / 24 / 14
    assert float(made.usd_per_month) == pytest.approx(0.23 * 730 - usd, abs=0.01)
    assert "up to 1.2 times, if a request uses all 4 vCPUs" in made.evidence["slower"]


@pytest.mark.parametrize(
    "seen",
    [
        traffic(2_419_200, 0.5),
        traffic(10_000, 0.2, memory_share=0.9),
        traffic(10_000, 0.2, memory_share=None),
        traffic(100, 40.0),
        traffic(0, 0.0),
    ],
    ids=["heavy traffic", "more than 6 GB", "memory unknown", "long requests", "no request"],
)
def test_a_cpu_endpoint_stays_where_it_is(seen: EndpointTraffic) -> None:
    assert found(real_time(), seen) is None


def test_an_owner_who_says_off_is_told_nothing() -> None:
    assert found(replace(serverless(), mode=Mode.OFF), traffic(2_419_200, 0.5), ServerlessSize(4)) is None
    assert found(replace(real_time(), mode=Mode.OFF), traffic(10_000, 0.2)) is None


def test_a_serverless_endpoint_that_nobody_calls_is_told_to_cost_nothing() -> None:
    made = found(serverless(), traffic(0, 0.0))
    assert made is not None
    assert made.usd_per_month == 0
    assert made.what.startswith("e is serverless and had no request in 14 days, so it costs nothing")
    assert "provisioned concurrency" in made.not_checked[0]


def test_instances_that_nobody_calls_are_told_with_what_they_cost() -> None:
    made = found(real_time(count=2), traffic(0, 0.0, seen_days=13.5))
    assert made is not None
    assert made.usd_per_month == Decimal("0.23") * 2 * 730
    assert made.what == "e (2 × ml.m5.xlarge) had no request in 14 days and costs USD 335.80 a month"
    assert made.advice.startswith("ask its owner, then delete it")
    assert "Savings Plans" in made.not_checked[0]


@pytest.mark.parametrize(
    "seen",
    [traffic(0, 0.0, seen_days=12.0), traffic(0, 0.0, busy_s=3.0, seen_days=14.0)],
    ids=["its host was not seen for two days, so it may be young", "requests that were answered and not counted"],
)
def test_instances_of_which_too_little_is_known_are_not_told(seen: EndpointTraffic) -> None:
    assert found(real_time(), seen) is None


def test_a_gpu_endpoint_is_the_dimensions_and_not_weighed_twice() -> None:
    assert found(recommendation("e"), traffic(10_000, 0.2)) is None
