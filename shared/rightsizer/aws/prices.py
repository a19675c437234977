"""What an instance hour costs (port `PriceBook`), and what the account's SageMaker Savings Plans commit and use.

A price is that of the Price List API, else of the dated snapshot. One walk over the Hosting products of a Region serves
every type. A product is believed only when its component, its `platoinstancetype`, its usage type, its unit and its
single tier all agree; anything but exactly one non-zero product for a type is no price.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from rightsizer import catalog
from rightsizer.aws.errors import reading, reason_of
from rightsizer.aws.session import Session
from rightsizer.domain.price import Commitment, NoPrice, Price, PriceTable, ServerlessPrice
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError, RightsizerError

if TYPE_CHECKING:
    from types_boto3_ce import CostExplorerClient
    from types_boto3_pricing import PricingClient
    from types_boto3_savingsplans import SavingsPlansClient

KEEP = timedelta(hours=6)
"""Prices change a few times a year; a commitment and its use from day to day."""
KEEP_FAILURE = timedelta(minutes=10)
"""A failure is kept so that one message tells of it, not one an endpoint; a throttled minute must not cost a day."""
UNKNOWN_COMMITMENT = Commitment(Decimal(0), 0.0, known=False)


@dataclass(frozen=True, slots=True)
class Offers:
    """The Hosting prices of one Region as the API gave them."""

    prices: Mapping[str, Price]
    ambiguous: Mapping[str, str]
    """Types with several or unreadable products, and what is wrong."""


@dataclass(frozen=True, slots=True)
class _Kept[T]:
    """An answer, and until when it is believed."""

    answer: T
    until: datetime


class PriceListBook:
    """Prices from the Price List API, the snapshot where it fails. Answers are kept for hours, failures for minutes."""

    def __init__(
        self,
        session: Session | None,
        clock: Callable[[], datetime],
        commitment: Callable[[], Commitment] = lambda: UNKNOWN_COMMITMENT,
    ) -> None:
        self._client: PricingClient | None = session.pricing() if session else None
        self._clock = clock
        self._commitment = commitment
        self._committed: _Kept[Commitment | Reason] | None = None
        self._offers: dict[str, _Kept[Offers | Reason]] = {}
        self._lock = threading.Lock()

    def table(self, region: str, instance_types: Iterable[str]) -> PriceTable:
        """Prices of these types, from the Price List API or the dated snapshot; NoPrice where neither knows one."""
        with self._lock:
            offers = self._known(region)
            commitment = self._commit()
        notes = tuple(each for each in (offers, commitment) if isinstance(each, Reason))
        plan = UNKNOWN_COMMITMENT if isinstance(commitment, Reason) else commitment
        snapshot = {row.instance_type: row for row in catalog.prices(region)}
        prices = {name: _price(name, region, offers, snapshot.get(name)) for name in instance_types}
        return PriceTable(region, prices, plan, notes, _serverless(region))

    def _commit(self) -> Commitment | Reason:
        """What the account has committed to, or why that is not known."""
        if self._committed is None or self._clock() >= self._committed.until:
            try:
                self._committed = self._keep(self._commitment())
            except RightsizerError as error:
                self._committed = self._keep(reason_of(error))
        return self._committed.answer

    def _known(self, region: str) -> Offers | Reason:
        """The offers of the Region, or why there are none."""
        kept = self._offers.get(region)
        if kept is None or self._clock() >= kept.until:
            kept = self._offers[region] = self._keep(self._ask(region))
        return kept.answer

    def _keep[T](self, answer: T) -> _Kept[T]:
        return _Kept(answer, self._clock() + (KEEP_FAILURE if isinstance(answer, Reason) else KEEP))

    def _ask(self, region: str) -> Offers | Reason:
        if self._client is None:
            return Reason(Code.READ_FAILED, f"the Price List API was not asked; {region} is priced by the snapshot")
        try:
            return parse(region, _products(self._client, region))
        except RightsizerError as error:
            reason = reason_of(error)
            return Reason(reason.code, f"{reason.sentence}; prices come from the dated snapshot")


def _products(client: "PricingClient", region: str) -> Iterator[str]:
    with reading("pricing:GetProducts", f"reading the hosting prices of {region}"):
        pages = client.get_paginator("get_products").paginate(
            ServiceCode="AmazonSageMaker",
            FormatVersion="aws_v1",
            Filters=[
                {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
                {"Type": "TERM_MATCH", "Field": "component", "Value": "Hosting"},
            ],
            PaginationConfig={"PageSize": 100},
        )
        for page in pages:
            yield from page["PriceList"]


def parse(region: str, products: Iterable[str | Mapping[str, Any]]) -> Offers:
    """Price List items to offers; an item that cannot be read makes its type ambiguous, never the others."""
    found: dict[str, list[Price]] = defaultdict(list)
    ambiguous: dict[str, str] = {}
    for raw in products:
        try:
            item = json.loads(raw) if isinstance(raw, str) else raw
        except ValueError:
            continue  # not even a name to hang a reason on
        attributes = _attributes(item)
        name = attributes.get("instanceName", "")
        if not _hosts(attributes, name, region):
            continue
        try:
            price = _offer(item, name, region)
        except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation, InputError) as error:
            ambiguous[name] = f"its price list entry cannot be read ({error!r})"
            continue
        if price is not None:
            found[name].append(price)
    for name, prices in found.items():
        if len(prices) > 1:
            ambiguous[name] = f"the price list has {len(prices)} hosting products for it"
    return Offers({name: each[0] for name, each in found.items() if name not in ambiguous}, ambiguous)


def _attributes(item: Any) -> Mapping[str, str]:
    product = item.get("product") if isinstance(item, dict) else None
    attributes = product.get("attributes") if isinstance(product, dict) else None
    return attributes if isinstance(attributes, dict) else {}


def _hosts(attributes: Mapping[str, str], name: str, region: str) -> bool:
    """Whether every attribute says: an endpoint instance hour of this type in this Region."""
    return (
        name.startswith("ml.")
        and attributes.get("component") == "Hosting"
        and attributes.get("platoinstancetype") == "Hosting"
        and attributes.get("regionCode") == region
        and f"-{attributes.get('usagetype', '')}".endswith(f"-Host:{name}")
    )


def _offer(item: Mapping[str, Any], name: str, region: str) -> Price | None:
    """The one hourly tier of a product; None for a free row. ValueError when there are several tiers."""
    dimensions = [tier for term in item["terms"]["OnDemand"].values() for tier in term["priceDimensions"].values()]
    hourly = [tier for tier in dimensions if tier["unit"] in ("Hrs", "Hours")]
    if len(hourly) != 1 or hourly[0].get("beginRange", "0") != "0":
        raise ValueError(f"{len(dimensions)} price dimensions, {len(hourly)} of them by the hour from zero")
    usd = Decimal(hourly[0]["pricePerUnit"]["USD"])
    if usd == 0:
        return None
    return Price(name, region, usd, "price-list-api", "Hosting", str(item.get("publicationDate", ""))[:10])


def _price(name: str, region: str, offers: Offers | Reason, row: catalog.PriceRow | None) -> Price | NoPrice:
    if isinstance(offers, Offers):
        if name in offers.prices:
            return offers.prices[name]
        if name in offers.ambiguous:
            return NoPrice(name, region, Reason(Code.NO_PRICE, f"{name} in {region}: {offers.ambiguous[name]}"))
    if row is not None:
        listed = row.listed and not isinstance(offers, Offers)
        return Price(name, region, row.usd_per_hour, "snapshot", row.basis, row.as_of, listed)
    where = "neither the price list nor" if isinstance(offers, Offers) else "the price list was not read, and"
    tail = "the snapshot has a hosting price" if isinstance(offers, Offers) else "the snapshot has no hosting price"
    return NoPrice(name, region, Reason(Code.NO_PRICE, f"{name} in {region}: {where} {tail}"))


def _serverless(region: str) -> ServerlessPrice | None:
    """From the dated snapshot: which attributes the Price List API gives these products is not known."""
    rows = (row for row in catalog.serverless() if row.region == region)
    return next((ServerlessPrice(region, r.usd_per_gb_second, r.as_of, r.source) for r in rows), None)


class SavingsPlans:
    """Asks for active SageMaker plans (free); only with one, Cost Explorer for their use (0.01 USD a request)."""

    def __init__(self, session: Session, clock: Callable[[], datetime]) -> None:
        self._plans: SavingsPlansClient = session.client("savingsplans", "us-east-1")
        self._explorer: CostExplorerClient = session.client("ce", "us-east-1")
        self._clock = clock

    def __call__(self) -> Commitment:
        """The commitment of the account over the last seven whole days; ReadError when it cannot be asked.

        An account without plans of its own may be covered by those of its organisation's payer account, which
        DescribeSavingsPlans does not show: the commitment is then unknown, not zero.
        """
        plans = self._active()
        if not plans:
            return Commitment(Decimal(0), 0.0, known=False)
        committed = sum((Decimal(plan["commitment"]) for plan in plans), Decimal(0))
        return Commitment(committed, self._utilisation([plan["savingsPlanArn"] for plan in plans]), known=True)

    def _active(self) -> list[Any]:
        found: list[Any] = []
        token: dict[str, Any] = {}
        while True:
            with reading("savingsplans:DescribeSavingsPlans", "asking for SageMaker Savings Plans"):
                page: Any = self._plans.describe_savings_plans(states=["active"], **token)
            found += [plan for plan in page["savingsPlans"] if plan["savingsPlanType"] == "SageMaker"]
            if not page.get("nextToken"):
                return found
            token = {"nextToken": page["nextToken"]}

    def _utilisation(self, arns: list[str]) -> float:
        """0..1. Filtered by the plans' ARNs: Cost Explorer spells plan types otherwise than DescribeSavingsPlans does,
        and a value that it does not know matches nothing, without an error."""
        end = self._clock().date() - timedelta(days=1)  # API text: the end must be before the current date
        with reading("ce:GetSavingsPlansUtilization", "asking how much of the Savings Plans is used"):
            answer = self._explorer.get_savings_plans_utilization(
                TimePeriod={"Start": str(end - timedelta(days=7)), "End": str(end)},
                Filter={"Dimensions": {"Key": "SAVINGS_PLAN_ARN", "Values": arns}},
            )
        return min(float(answer["Total"]["Utilization"]["UtilizationPercentage"]) / 100, 1.0)
