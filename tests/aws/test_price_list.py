"""A price is believed only when everything about the product agrees."""

import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.aws.prices import (
    OrderedPrices,
    PriceList,
    SavingsPlans,
    Snapshot,
    choose_price,
    parse,
)
from rightsizer.aws.session import Session
from rightsizer.domain.price import Commitment, KnownPrices, NoPrice, Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import ThrottledError
from sandbox.account import Sandbox

REGION = "eu-west-1"
NOW = datetime(2026, 11, 2, tzinfo=UTC)


def product(
    name: str = "ml.g5.2xlarge", usd: str = "1.6920000000", unit: str = "Hrs", **attributes: str
) -> dict[str, Any]:
    """The envelope of the Price List Query API (botocore example of GetProducts)."""
    tier = {"unit": unit, "beginRange": "0", "endRange": "Inf", "pricePerUnit": {"USD": usd}}
    known = {
        "regionCode": REGION,
        "instanceName": name,
        "instanceType": f"{name}-Hosting",
        "component": "Hosting",
        "platoinstancetype": "Hosting",
        "usagetype": f"EU-Host:{name}",
    }
    return {
        "product": {"productFamily": "ML Instance", "sku": "S", "attributes": known | attributes},
        "terms": {"OnDemand": {"S.T": {"priceDimensions": {"S.T.D": tier}}}},
        "publicationDate": "2026-09-01T00:00:00Z",
    }


def test_a_hosting_product_is_a_price_with_its_date() -> None:
    offers = parse(REGION, [json.dumps(product())])
    assert offers.prices["ml.g5.2xlarge"] == Price(
        "ml.g5.2xlarge", REGION, Decimal("1.6920000000"), "price-list-api", "Hosting", "2026-09-01"
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"component": "Training"},
        {"platoinstancetype": "Cluster"},
        {"usagetype": "EU-Train:ml.g5.2xlarge"},
        {"usagetype": "EU-AsyncHost:ml.g5.2xlarge"},
        {"regionCode": "us-east-1"},
    ],
)
def test_another_component_region_or_usage_is_not_the_price(odd: dict[str, str]) -> None:
    assert parse(REGION, [product(**odd)]).prices == {}


def test_a_bare_usage_type_and_a_hyphen_in_the_family_are_understood() -> None:
    name = "ml.p6-b200.48xlarge"
    assert parse(REGION, [product(name, usagetype=f"Host:{name}")]).prices.keys() == {name}


def test_free_rows_do_not_count_and_two_prices_are_no_price() -> None:
    offers = parse(
        REGION, [product(), product(usd="0.0000000000"), product("ml.g6.xlarge"), product("ml.g6.xlarge", "9")]
    )
    assert offers.prices.keys() == {"ml.g5.2xlarge"}
    assert "2 hosting products" in offers.ambiguous["ml.g6.xlarge"]


@pytest.mark.parametrize("usd", ["free", "", "-1", "NaN"])
def test_a_garbled_price_spoils_only_its_own_type(usd: str) -> None:
    offers = parse(REGION, [product(usd=usd), product("ml.g6.xlarge")])
    assert offers.prices.keys() == {"ml.g6.xlarge"}
    assert "ml.g5.2xlarge" in offers.ambiguous


@pytest.mark.parametrize("raw", ["{", "[]", "null", '{"product": 3}', '{"product": {"attributes": null}}'])
def test_items_that_are_no_products_are_passed_over(raw: str) -> None:
    assert parse(REGION, [raw, product()]).prices.keys() == {"ml.g5.2xlarge"}


def test_an_upfront_fee_is_not_an_hourly_price() -> None:
    assert parse(REGION, [product(unit="Quantity")]).prices == {}


def test_without_the_api_the_snapshot_answers_with_its_basis_date_and_doubt() -> None:
    table = OrderedPrices([PriceList(None, lambda: NOW), Snapshot()], lambda: NOW).table(
        "us-east-1", ["ml.g6.xlarge", "ml.p3.2xlarge", "ml.p5e.48xlarge"]
    )
    found, old = table.prices["ml.g6.xlarge"], table.prices["ml.p3.2xlarge"]
    assert isinstance(found, Price)
    assert (found.source, found.basis, found.listed) == ("snapshot", "direct-hosting", True)
    assert found.as_of
    assert isinstance(old, Price)
    assert not old.listed
    missing = table.prices["ml.p5e.48xlarge"]
    assert isinstance(missing, NoPrice)
    assert missing.reason.code is Code.NO_PRICE
    assert table.notes


def test_an_unknown_region_has_no_prices_rather_than_another_ones() -> None:
    table = OrderedPrices([PriceList(None, lambda: NOW), Snapshot()], lambda: NOW).table(
        "mars-north-1", ["ml.g5.xlarge"]
    )
    assert table.find("ml.g5.xlarge") is None
    assert not table.commitment.known


def test_a_failed_reading_of_prices_is_tried_again_after_ten_minutes(box: Sandbox, account: Session) -> None:
    book = OrderedPrices([PriceList(account, lambda: box.clock.now), Snapshot()], lambda: box.clock.now)
    box.gate.fail("pricing", "GetProducts", "ThrottlingException", times=1)
    assert [note.code for note in book.table(box.region, []).notes] == [Code.THROTTLED]
    box.clock.advance(timedelta(minutes=9, seconds=59))
    assert [note.code for note in book.table(box.region, []).notes] == [Code.THROTTLED]
    box.clock.advance(timedelta(seconds=1))
    assert book.table(box.region, []).notes == ()
    box.calls.clear()
    box.clock.advance(timedelta(hours=5, minutes=59))
    assert book.table(box.region, []).notes == ()
    assert box.calls.of("pricing") == []
    box.clock.advance(timedelta(minutes=1))
    assert book.table(box.region, []).notes == ()
    assert box.calls.of("pricing") != []


def test_a_failed_reading_of_savings_plans_is_tried_again_after_ten_minutes(box: Sandbox, account: Session) -> None:
    box.world.plans.buy(2.5)
    book = OrderedPrices(
        [PriceList(account, lambda: box.clock.now), Snapshot()],
        lambda: box.clock.now,
        SavingsPlans(account),
    )
    box.gate.fail("savingsplans", "DescribeSavingsPlans", "ThrottlingException", times=1)
    assert not book.table(box.region, []).commitment.known
    box.clock.advance(timedelta(minutes=9, seconds=59))
    assert not book.table(box.region, []).commitment.known
    box.clock.advance(timedelta(seconds=1))
    assert book.table(box.region, []).commitment.usd_per_hour == Decimal("2.5")


def test_the_commitment_is_that_of_the_active_plans_of_sagemaker(box: Sandbox, account: Session) -> None:
    box.world.plans.buy(100.0)
    box.world.plans.buy(1.0, kind="Compute")
    assert SavingsPlans(account)() == Commitment(Decimal(100), known=True)
    assert box.calls.of("ce") == [], "Cost Explorer bills each request"


def test_an_account_without_plans_of_its_own_may_have_its_payers(account: Session) -> None:
    assert not SavingsPlans(account)().known


class Source:
    """A source that knows these types, each at this price; or that cannot be read."""

    def __init__(self, name: str, *types: str, usd: int = 1, whole: bool = False, fails: bool = False) -> None:
        self.name, self.types, self.usd, self.whole, self.fails = name, types, usd, whole, fails
        self.asked: list[list[str]] = []

    def known(self, region: str, instance_types: Collection[str]) -> KnownPrices:
        self.asked.append(list(instance_types))
        if self.fails:
            raise ThrottledError(f"reading {self.name}")
        prices = {one: Price(one, region, Decimal(self.usd), self.name, "Hosting", "2026") for one in self.types}
        return KnownPrices(prices, is_whole_list=self.whole)


def test_a_type_has_the_price_of_the_first_source_that_knows_it_and_only_the_others_are_asked_on() -> None:
    first, second = Source("a", "ml.a"), Source("b", "ml.a", "ml.b", usd=2)
    table = OrderedPrices([first, second], lambda: NOW).table(REGION, ["ml.a", "ml.b", "ml.c"])
    assert {name: price.source for name in table.prices if (price := table.find(name))} == {"ml.a": "a", "ml.b": "b"}
    assert second.asked == [["ml.b", "ml.c"]]


def test_a_type_that_no_source_prices_names_all_of_them() -> None:
    def said(*sources: Source) -> str:
        missing = OrderedPrices(sources, lambda: NOW).table(REGION, ["ml.x"]).prices["ml.x"]
        assert isinstance(missing, NoPrice)
        return missing.reason.sentence.removeprefix(f"ml.x in {REGION}: ")

    assert said(Source("a"), Source("b"), Source("c")) == "neither a, b nor c has a hosting price"
    assert said(Source("a", fails=True), Source("b")) == "a was not read, and b has no hosting price"
    assert said(Source("a", fails=True), Source("b", fails=True)) == "a and b were not read"


def test_a_source_that_fails_is_told_and_left_alone_for_ten_minutes_and_the_next_one_answers() -> None:
    at, first = [NOW], Source("a", fails=True)
    book = OrderedPrices([first, Source("b", "ml.b")], lambda: at[0])
    for _ in range(2):
        table = book.table(REGION, ["ml.b"])
        assert table.find("ml.b") is not None
        assert [note.code for note in table.notes] == [Code.THROTTLED]
    at[0] += timedelta(minutes=9, seconds=59)
    book.table(REGION, ["ml.b"])
    assert len(first.asked) == 1
    at[0] += timedelta(seconds=1)
    book.table(REGION, ["ml.b"])
    assert len(first.asked) == 2


def test_a_price_after_a_whole_list_is_no_evidence_that_the_type_is_sold() -> None:
    table = OrderedPrices([Source("a", "ml.a", whole=True), Source("b", "ml.b")], lambda: NOW).table(
        REGION, ["ml.a", "ml.b"]
    )
    assert [price.listed for name in ("ml.a", "ml.b") if (price := table.find(name))] == [True, False]


def test_the_first_source_that_knows_a_type_prices_it_also_where_it_says_that_nobody_can() -> None:
    first, later = (Price("ml.g5.xlarge", REGION, Decimal(usd), "x", "Hosting", "2026-09-01") for usd in (1, 2))
    nobody = NoPrice("ml.g5.xlarge", REGION, Reason(Code.NO_PRICE, "two products"))
    assert choose_price(None, first, is_sold=True) is first
    assert choose_price(first, later, is_sold=True) is first
    assert choose_price(nobody, later, is_sold=True) is nobody
    unlisted = choose_price(None, first, is_sold=False)
    assert isinstance(unlisted, Price)
    assert (unlisted.usd_per_hour, unlisted.listed) == (Decimal(1), False)
    assert choose_price(None, nobody, is_sold=False) is nobody
