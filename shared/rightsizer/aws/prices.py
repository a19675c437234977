"""Price of an instance hour (port `PriceBook`), and the commitment of the account's SageMaker Savings Plans.

Sources are asked in order (`bootstrap.price_sources`): the Price List API, then the dated snapshot. One walk over the
Hosting products of a Region serves every type. A product is believed only when its component, its `platoinstancetype`,
its usage type, its unit and its single tier all agree; anything but one non-zero product for a type is no price.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from rightsizer import catalog
from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.price import Commitment, KnownPrices, NoPrice, Price, PriceTable, ServerlessPrice
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.errors import InputError, RightsizerError
from rightsizer.ports.evaluation import PriceSource
from rightsizer.telemetry import count

if TYPE_CHECKING:
    from types_boto3_pricing import PricingClient
    from types_boto3_savingsplans import SavingsPlansClient

KEEP = timedelta(hours=6)
"""Prices change a few times a year; a commitment from day to day."""
KEEP_FAILURE = timedelta(minutes=10)
"""A failure is kept so that one message tells of it, not one an endpoint; a throttled minute must not cost a day."""
UNKNOWN_COMMITMENT = Commitment(Decimal(0), known=False)


@dataclass(frozen=True, slots=True)
class ListedPrices:
    """The Hosting prices of one Region as the API gave them."""

    prices: Mapping[str, Price]
    ambiguous: Mapping[str, str]
    """Types with several or unreadable products, and what is wrong."""


@dataclass(frozen=True, slots=True)
class _Kept[T]:
    """An answer, and until when it is believed."""

    answer: T
    until: datetime


class OrderedPrices:
    """Port `PriceBook`: asks the sources in their order. Failures are kept for minutes, the commitment for hours."""

    def __init__(
        self,
        sources: Sequence[PriceSource],
        clock: Callable[[], datetime],
        commitment: Callable[[], Commitment] = lambda: UNKNOWN_COMMITMENT,
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._commitment = commitment
        self._committed: _Kept[Commitment | Reason] | None = None
        self._failed: dict[tuple[str, str], _Kept[Reason]] = {}
        self._lock = threading.Lock()

    def table(self, region: str, instance_types: Iterable[str]) -> PriceTable:
        """Prices of these types, each of the first source that knows one; NoPrice where none does."""
        names = tuple(dict.fromkeys(instance_types))
        prices: dict[str, Price | NoPrice] = {}
        read, unread, notes, sold = list[str](), list[str](), list[Reason](), True
        with self._lock:
            for source in self._sources:
                answer = self._ask(source, region, [name for name in names if name not in prices])
                (unread if answer.unread else read).append(source.name)
                notes += [answer.unread] if answer.unread else []
                for name, found in answer.prices.items():
                    prices[name] = choose_price(prices.get(name), found, is_sold=sold)
                sold = sold and not answer.is_whole_list
            commitment = self._commit()
        plan = UNKNOWN_COMMITMENT if isinstance(commitment, Reason) else commitment
        notes += [commitment] if isinstance(commitment, Reason) else []
        nobody = _no_price_text(read, unread)
        missing = {
            name: NoPrice(name, region, Reason(Code.NO_PRICE, f"{name} in {region}: {nobody}")) for name in names
        }
        return PriceTable(region, missing | prices, plan, tuple(notes), _serverless(region))

    def _ask(self, source: PriceSource, region: str, names: Sequence[str]) -> KnownPrices:
        """What the source knows; where it fails, the reason, which is kept so that one failure is told once."""
        failed = self._failed.get((source.name, region))
        if failed is not None and self._clock() < failed.until:
            return KnownPrices({}, failed.answer)
        try:
            return source.known(region, names)
        except RightsizerError as error:
            self._failed[source.name, region] = kept = _keep(reason_of(error), self._clock())
            return KnownPrices({}, kept.answer)

    def _commit(self) -> Commitment | Reason:
        """What the account has committed to, or why that is not known."""
        if self._committed is None or self._clock() >= self._committed.until:
            try:
                self._committed = _keep(self._commitment(), self._clock())
            except RightsizerError as error:
                self._committed = _keep(reason_of(error), self._clock())
        return self._committed.answer


class PriceList:
    """Prices of the Price List API. Answers are kept for hours, failures for minutes."""

    name = "the price list"

    def __init__(self, session: Session | None, clock: Callable[[], datetime]) -> None:
        self._client: PricingClient | None = session.pricing() if session else None
        self._clock = clock
        self._offers: dict[str, _Kept[ListedPrices | Reason]] = {}

    def known(self, region: str, instance_types: Collection[str]) -> KnownPrices:
        """The one price of each type; NoPrice where the list has several, or one that cannot be read."""
        kept = self._offers.get(region)
        if kept is None or self._clock() >= kept.until:
            kept = self._offers[region] = _keep(self._ask(region), self._clock())
        if isinstance(kept.answer, Reason):
            return KnownPrices({}, kept.answer)
        offers, prices = kept.answer, dict[str, Price | NoPrice]()
        for name in instance_types:
            if name in offers.prices:
                prices[name] = offers.prices[name]
            elif name in offers.ambiguous:
                sentence = f"{name} in {region}: {offers.ambiguous[name]}"
                prices[name] = NoPrice(name, region, Reason(Code.NO_PRICE, sentence))
        return KnownPrices(prices, is_whole_list=True)

    def _ask(self, region: str) -> ListedPrices | Reason:
        if self._client is None:
            return Reason(Code.READ_FAILED, f"the Price List API was not asked; {region} is priced by the snapshot")
        try:
            return parse(region, _products(self._client, region))
        except RightsizerError as error:
            count(PricesStale=1)
            reason = reason_of(error)
            return Reason(reason.code, f"{reason.sentence}; prices come from the dated snapshot")


class Snapshot:
    """Prices of the dated snapshot of the package."""

    name = "the snapshot"

    def known(self, region: str, instance_types: Collection[str]) -> KnownPrices:
        """The price of each type that the snapshot has, with its basis and date."""
        rows = (row for row in catalog.prices(region) if row.instance_type in instance_types)
        return KnownPrices(
            {
                row.instance_type: Price(
                    row.instance_type, region, row.usd_per_hour, "snapshot", row.basis, row.as_of, row.listed
                )
                for row in rows
            }
        )


def _keep[T](answer: T, now: datetime) -> _Kept[T]:
    return _Kept(answer, now + (KEEP_FAILURE if isinstance(answer, Reason) else KEEP))


def choose_price(earlier: Price | NoPrice | None, found: Price | NoPrice, *, is_sold: bool) -> Price | NoPrice:
    """The price that counts for a type: of the first source that knows one.

    `is_sold` is false after a source that lists all that is sold, without the type: its price is unlisted then.
    """
    if earlier is not None:
        return earlier
    return found if is_sold else _price_if_unlisted(found)


def _price_if_unlisted(price: Price | NoPrice) -> Price | NoPrice:
    """A price of a type that the whole list before it does not have."""
    return replace(price, listed=False) if isinstance(price, Price) else price


def _no_price_text(read: Sequence[str], unread: Sequence[str]) -> str:
    """Which sources have no price, and which were not read."""
    *others, last = read or [""]
    none = f"neither {', '.join(others)} nor {last} has a hosting price" if others else f"{last} has no hosting price"
    missed = f"{' and '.join(unread)} {'was' if len(unread) == 1 else 'were'} not read"
    return ", and ".join([missed] * bool(unread) + [none] * bool(read))


def _products(client: "PricingClient", region: str) -> Iterator[str]:
    with translate_read_errors("pricing:GetProducts", f"reading the hosting prices of {region}"):
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


def parse(region: str, products: Iterable[str | Mapping[str, Any]]) -> ListedPrices:
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
        if not _is_endpoint_hour(attributes, name, region):
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
    return ListedPrices({name: each[0] for name, each in found.items() if name not in ambiguous}, ambiguous)


def _attributes(item: Any) -> Mapping[str, str]:
    product = item.get("product") if isinstance(item, dict) else None
    attributes = product.get("attributes") if isinstance(product, dict) else None
    return attributes if isinstance(attributes, dict) else {}


def _is_endpoint_hour(attributes: Mapping[str, str], name: str, region: str) -> bool:
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


def _serverless(region: str) -> ServerlessPrice | None:
    """From the dated snapshot: which attributes the Price List API gives these products is not known."""
    rows = (row for row in catalog.serverless() if row.region == region)
    return next((ServerlessPrice(region, r.usd_per_gb_second, r.as_of, r.source) for r in rows), None)


class SavingsPlans:
    """Asks for the account's active SageMaker plans, which is free."""

    def __init__(self, session: Session) -> None:
        self._plans: SavingsPlansClient = session.client("savingsplans", "us-east-1")

    def __call__(self) -> Commitment:
        """The commitment of the account; ReadError when it cannot be asked.

        An account without plans of its own may be covered by those of its organisation's payer account, which
        DescribeSavingsPlans does not show: the commitment is then unknown, not zero.
        """
        plans = self._active_plans()
        if not plans:
            return Commitment(Decimal(0), known=False)
        committed = sum((Decimal(plan["commitment"]) for plan in plans), Decimal(0))
        return Commitment(committed, known=True)

    def _active_plans(self) -> list[Any]:
        found: list[Any] = []
        token: dict[str, Any] = {}
        while True:
            with translate_read_errors("savingsplans:DescribeSavingsPlans", "asking for SageMaker Savings Plans"):
                page: Any = self._plans.describe_savings_plans(states=["active"], **token)
            found += [plan for plan in page["savingsPlans"] if plan["savingsPlanType"] == "SageMaker"]
            if not page.get("nextToken"):
                return found
            token = {"nextToken": page["nextToken"]}
