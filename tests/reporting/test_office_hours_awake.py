"""The table of money of endpoints with office hours: what is asleep costs nothing and saves nothing, by any path."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.money import MoneyTable
from rightsizer.domain.office_hours import StoppedTime, stopped_hours
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.recommendation import Recommendation
from rightsizer.reporting.money import MoneySources, Observed, money_table
from rightsizer.reporting.office_hours import AwakeHours
from tests.reporting.test_money import DAY, MONDAY, booked, seen, spent

HOUR = timedelta(hours=1)
OPENS, CLOSES = 8, 19
"""55 of 168 hours awake: Monday to Friday, 08:00 to 19:00."""
AWAKE_MONTH = HOURS_PER_MONTH * 55 / 168


def nights(weeks: int = 3, first: datetime = MONDAY - 7 * DAY) -> tuple[StoppedTime, ...]:
    """The stopped times from the first Monday's evening."""
    days = [first + day * DAY for day in range(7 * weeks) if day % 7 < 5]
    return tuple(
        StoppedTime(day + CLOSES * HOUR, day + (3 if day.weekday() == 4 else 1) * DAY + OPENS * HOUR) for day in days
    )


def sleeper(
    at: datetime = MONDAY + 7 * DAY + 9 * HOUR, hourly: str = "1", month: Decimal = AWAKE_MONTH
) -> Recommendation:
    """An endpoint of so many dollars an awake hour."""
    one = seen(at=at, days=30)
    assert one.price is not None
    return replace(one, usd_per_month=Decimal(hourly) * month, price=replace(one.price, hours_per_month=month))


def parts(
    change: str, turned: datetime, end: datetime, hourly: str, stopped: tuple[StoppedTime, ...]
) -> list[LedgerEntry]:
    """The ledger's parts of a change, a day each, as `book_until` has them."""
    found = []
    while turned + DAY <= end:
        hours = 24 - stopped_hours(stopped, turned, turned + DAY)
        found.append(booked(change, turned + DAY, str(Decimal(hourly) * Decimal(str(hours))), hours))
        turned += DAY
    return found


def table(
    *found: Recommendation,
    ledger: list[LedgerEntry] | None = None,
    stopped: tuple[StoppedTime, ...] = (),
    replaced: tuple[str, ...] = (),
    returned: tuple[str, ...] = (),
) -> MoneyTable:
    observed = Observed()
    kept = list(observed.watch(found))
    sources = MoneySources("1", "eu-west-1", kept, [], ledger or [], observed, returned, replaced, {"rank": stopped})
    return money_table(sources, (), MONDAY, MONDAY + 7 * DAY, MONDAY + 7 * DAY + 10 * HOUR)


@given(turned=st.integers(-60, 80), saved=st.integers(1, 5000), known=st.booleans())
def test_a_change_saves_a_month_what_its_awake_hours_save(turned: int, saved: int, known: bool) -> None:
    """Whatever was booked: without changes less spend is the saving of an awake hour times the month's hours."""
    asleep, hourly = nights(), str(Decimal(saved).scaleb(-2))
    begin = MONDAY + turned * HOUR
    ledger = parts("c", begin, MONDAY + 7 * DAY + 9 * HOUR, hourly, asleep)
    (row,) = table(sleeper(), ledger=ledger, stopped=asleep if known else ()).rows
    assert row.without_changes is not None
    assert row.spend is not None
    assert abs(row.without_changes - row.spend - Decimal(hourly) * AWAKE_MONTH) < Decimal("0.02")


def test_asleep_days_cost_nothing_and_save_nothing() -> None:
    asleep = nights()
    turned = MONDAY + 2 * DAY + 10 * HOUR
    money = table(sleeper(), ledger=parts("c", turned, MONDAY + 7 * DAY + 9 * HOUR, "2", asleep), stopped=asleep)
    assert spent(money) == [
        *[("33.00", "33.00")] * 2, ("15.00", "33.00"), *[("11.00", "33.00")] * 2, *[("0.00", "0.00")] * 2
    ]  # fmt: skip
    (row,) = money.rows
    assert [month.hours for month in row.months] == [Decimal(55)]


def test_a_change_stands_though_the_weekend_was_not_booked_yet() -> None:
    asleep = nights()
    ledger = parts("c", MONDAY - 3 * DAY + 9 * HOUR, MONDAY + 4 * DAY + 10 * HOUR, "1", asleep)
    ledger += [replace(one, endpoint="other") for one in parts("d", MONDAY, MONDAY + 7 * DAY, "1", ())]
    row, _ = table(sleeper(), ledger=ledger, stopped=asleep).rows
    assert row.would_have_cost == Decimal(110)
    assert row.without_changes == 2 * (row.spend or 0)
    gone, _ = table(sleeper(), ledger=ledger, stopped=asleep, replaced=("c",)).rows
    assert gone.without_changes == gone.spend


def test_a_weekend_after_the_last_look_is_known() -> None:
    asleep = nights()
    friday = MONDAY + 4 * DAY + 9 * HOUR
    money = table(sleeper(friday), stopped=asleep)
    assert [day.endpoints for day in money.days] == [1] * 7
    assert [one for one, _ in spent(money)] == ["11.00"] * 5 + ["0.00"] * 2
    lasting = (*[one for one in asleep if one.start < friday], StoppedTime(friday + 10 * HOUR))
    assert spent(table(sleeper(friday), stopped=lasting)) == spent(money)
    assert table(sleeper(friday), stopped=asleep[:5]).days[6].endpoints == 0, "it was not stopped again: not known"


def test_days_before_the_hours_began_are_shown_as_they_ran() -> None:
    asleep = nights(first=MONDAY)[2:]
    shown = [one for one, _ in spent(table(sleeper(), stopped=asleep))]
    assert shown == ["24.00", "24.00", "19.00", "11.00", "11.00", "0.00", "0.00"]


@given(hours=st.integers(0, 200), at=st.integers(0, 300))
def test_a_part_begins_where_its_awake_hours_fit(hours: int, at: int) -> None:
    end = datetime(2026, 1, 20, tzinfo=UTC) + at * HOUR
    for awake in (AwakeHours(AWAKE_MONTH, nights(weeks=6)), AwakeHours(AWAKE_MONTH), AwakeHours()):
        assert abs(awake.between(awake.begin(end, hours), end) - hours) < Decimal("0.001")
