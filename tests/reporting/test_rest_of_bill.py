"""Orphans, warm pools and nightly batches: what is said, what it saves, and when nothing is said."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.account_finding import (
    AccountFindingCode,
    ServedResources,
    StoredResource,
    WarmPoolUse,
    waits_for_nobody,
)
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.price import Commitment, PriceTable
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.reporting.rest_of_bill import (
    StoredResources,
    batch_findings,
    daily_window,
    orphan_findings,
    warm_pool_finding,
)
from tests.samples import option, price, recommendation

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PRICES = PriceTable("eu-west-1", {"ml.g5.xlarge": price("ml.g5.xlarge", "1.40")}, Commitment(Decimal(0), known=False))


def old(name: str, days: int) -> StoredResource:
    return StoredResource(name, NOW - timedelta(days=days))


def stored(*configurations: StoredResource, models: tuple[StoredResource, ...] = ()) -> StoredResources:
    return StoredResources(configurations, models, ServedResources(frozenset({"used"}), frozenset({"served"})))


def test_orphans_are_listed_oldest_first_with_their_age_and_cost_nothing() -> None:
    found = list(orphan_findings(stored(old("b", 40), old("used", 400), old("a", 90)), NOW))
    assert [each.code for each in found] == [AccountFindingCode.ORPHAN_CONFIGURATIONS]
    assert [(item.name, item.detail) for item in found[0].items] == [("a", "90 days old"), ("b", "40 days old")]
    assert found[0].usd_per_month == 0
    assert found[0].what == "2 endpoint configurations of 3 are used by no endpoint"


def test_a_young_configuration_is_on_its_way_and_no_orphan() -> None:
    assert list(orphan_findings(stored(old("new", 29)), NOW)) == []


def test_a_configuration_with_metrics_of_its_own_says_when_it_served() -> None:
    parts = StoredResources((old("before", 40), old("other", 40)), (), ServedResources(), {"before"})
    found = next(orphan_findings(parts, NOW))
    assert {item.name: item.last_used for item in found.items} == {"before": "within the last two weeks", "other": ""}


def test_models_that_something_else_may_name_say_so() -> None:
    found = list(orphan_findings(stored(models=(old("served", 90), old("left", 90))), NOW))
    assert [item.name for item in found[0].items] == ["left"]
    assert any("transform jobs" in each for each in found[0].not_checked)


def pools(kept: int = 10, reused: int = 0, seconds: float = 36_000, kind: str = "ml.g5.xlarge") -> WarmPoolUse:
    return WarmPoolUse("bert", kept, reused, seconds, kind, 2)


@pytest.mark.parametrize(("reused", "kept", "wasted"), [(0, 0, False), (0, 1, True), (4, 9, True), (5, 10, False)])
def test_pools_waste_where_fewer_than_half_are_taken_over(reused: int, kept: int, wasted: bool) -> None:
    assert waits_for_nobody(reused, kept) is wasted


def test_unused_pool_hours_are_priced_for_all_instances_and_a_month() -> None:
    found = warm_pool_finding([pools()], PRICES, 30)
    assert found is not None
    assert found.usd_per_month == (Decimal(20) * Decimal("1.40") * 730 / 24 / 30).quantize(Decimal("0.01"))
    assert found.items[0].detail == "0 of 10 taken over, 20.0 instance hours of 2 × ml.g5.xlarge unused"


def test_a_pool_names_the_owner_of_its_work_and_is_left_out_where_the_owner_opted_out() -> None:
    found = warm_pool_finding([replace(pools(), owner="vision"), replace(pools(), is_opted_out=True)], PRICES, 30)
    assert found is not None
    assert [item.owner for item in found.items] == ["vision"]
    assert warm_pool_finding([replace(pools(), is_opted_out=True)], PRICES, 30) is None


def test_pools_that_are_taken_over_or_cost_next_to_nothing_are_not_told() -> None:
    assert warm_pool_finding([pools(reused=5)], PRICES, 30) is None
    assert warm_pool_finding([pools(seconds=60)], PRICES, 30) is None


def test_pools_of_a_type_without_a_price_are_told_with_an_unknown_saving() -> None:
    found = warm_pool_finding([pools(kind="ml.x1.huge")], PRICES, 30)
    assert found is not None
    assert found.usd_per_month is None
    assert found.not_checked == ("the price of bert: its instance type has none here",)


def nightly(hours: tuple[int, ...] = (1, 2, 3), days: int = 14, **changes: Any) -> Recommendation:
    course = tuple(500.0 if at % 24 in hours else 0.0 for at in range(24 * days))
    given: dict[str, Any] = {
        "hourly_requests": course,
        "options": (),
        "finding": Finding.OPTIMIZED,
        "instance_type": "ml.g5.xlarge",
    }
    given |= {"price": price("ml.g5.xlarge", "1.40"), "usd_per_month": Decimal("1022.00")}
    return recommendation("score-nightly", **(given | changes))


def test_three_hours_a_night_cost_three_hours_and_the_start_as_a_transform_job() -> None:
    found = list(batch_findings([nightly()]))
    assert [each.endpoint for each in found] == ["score-nightly"]
    job = (Decimal("3.25") * Decimal("1.40") * 730 / 24).quantize(Decimal("0.01"))
    assert found[0].usd_per_month == Decimal("1022.00") - job
    assert "between 01:00 and 04:00 UTC" in found[0].what


@pytest.mark.parametrize(
    "one",
    [
        nightly(hours=(1, 2, 3, 4, 5, 6, 7)),
        nightly(days=6),
        nightly(kind=EndpointKind.ASYNC),
        nightly(instance_type="ml.p4d.24xlarge"),
        nightly(price=None),
        nightly(mode=Mode.OFF),
        nightly(beside=("canary: 1 x ml.g5.xlarge",)),
        nightly(hourly_requests=tuple([500.0] + [0.0] * 11) * 28),
        nightly(finding=Finding.IDLE, options=(option(saving_usd_per_month=Decimal("1022")),)),
    ],
    ids=[
        "seven hours",
        "six days",
        "asynchronous",
        "p4d",
        "no price",
        "mode off",
        "variants",
        "twice a day",
        "its own saves more",
    ],
)
def test_no_batch_is_seen(one: Recommendation) -> None:
    assert list(batch_findings([one])) == []


def test_a_batch_over_midnight_and_a_lonely_request_by_day() -> None:
    course = [400.0 if at % 24 in (23, 0) else 0.0 for at in range(24 * 10)]
    course[12] = 1.0
    window = daily_window(course)
    assert window is not None
    assert (window.start, window.hours, window.runs) == (23, 2, 10)


def test_days_with_an_unknown_hour_count_as_not_seen() -> None:
    course: list[float | None] = [400.0 if at % 24 == 2 else 0.0 for at in range(24 * 8)]
    course[5] = course[29] = None
    assert daily_window(course) is None
