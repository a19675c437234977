"""The table of money adds up: rows, days, groups and stages, under any course of changes, reversals and windows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.domain.money import (
    OPEN,
    DayMoney,
    GroupedBy,
    MoneyTable,
    Stage,
    UseMethod,
    add_totals,
    sum_rows,
    usd_per_day,
)
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.render.report_tables import cut_money
from rightsizer.reporting.money import MoneySources, Observed, money_table
from rightsizer.reporting.totals import Records, make_report
from tests.render.test_funnel import histories, windows
from tests.samples import NOW, option, recommendation

DAY = timedelta(days=1)
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
ZERO = Decimal(0)
KINDS: tuple[Literal["realised", "growth-cost", "switch-cost", "estimated"], ...] = (
    "realised",
    "growth-cost",
    "switch-cost",
    "estimated",
)


def seen(
    name: str = "rank", at: datetime = MONDAY + 7 * DAY, usd: str | None = "730", days: int = 14
) -> Recommendation:
    """An endpoint that was looked at, and costs so much a month: 730 are one dollar an hour."""
    made = recommendation(name, usd_per_month=None if usd is None else Decimal(usd), evaluated_at=at)
    assert made.evidence is not None
    return replace(made, evidence=replace(made.evidence, start=at - days * DAY, end=at))


def booked(change: str, at: datetime, usd: str, hours: float = 24, endpoint: str = "rank") -> LedgerEntry:
    return LedgerEntry(f"{change}{at}", endpoint, change, "", at, "realised", Decimal(usd), hours, True, "")


def table(
    *found: Recommendation,
    ledger: tuple[LedgerEntry, ...] = (),
    returned: tuple[str, ...] = (),
    replaced: tuple[str, ...] = (),
) -> MoneyTable:
    observed = Observed()
    kept = list(observed.watch(found))
    sources = MoneySources("1", "eu-west-1", kept, [], ledger, observed, returned, replaced)
    return money_table(sources, (), MONDAY, MONDAY + 7 * DAY, MONDAY + 8 * DAY)


def spent(table: MoneyTable) -> list[tuple[str, str]]:
    return [(str(day.spent), str(day.would_have_cost)) for day in table.days]


@st.composite
def tables(draw: st.DrawFn) -> MoneyTable:
    """Endpoints with overlapping changes, some of which went back, seen at any time of any window."""
    found, ledger, returned = list[Recommendation](), list[LedgerEntry](), set[str]()
    hours = st.integers(-30 * 24, 10 * 24)
    for number in range(draw(st.integers(1, 5))):
        usd = draw(st.one_of(st.none(), st.integers(0, 9_999_999)))
        one = seen(f"e{number}", MONDAY + timedelta(hours=draw(hours)), None, draw(st.integers(0, 20)))
        saving = Decimal(draw(st.integers(-900, 9_999_999))).scaleb(-3)
        found.append(
            replace(
                one,
                usd_per_month=None if usd is None else Decimal(usd).scaleb(-3),
                owner=draw(st.sampled_from(["", "a", "b"])),
                finding=draw(st.sampled_from(list(Finding))),
                options=(option(saving_usd_per_month=saving),),
            )
        )
        for at in range(draw(st.integers(0, 3))):
            change, end = f"c{number}{at}", MONDAY + timedelta(hours=draw(hours))
            if draw(st.booleans()):
                returned.add(change)
            for _ in range(draw(st.integers(1, 3))):
                amount = draw(st.integers(-9999, 99_999))
                entry = booked(change, end, str(Decimal(amount).scaleb(-4)), draw(st.integers(0, 60)), f"e{number}")
                kind = draw(st.sampled_from(KINDS))
                ledger.append(replace(entry, kind=kind))
                end += DAY
    start, made = MONDAY + timedelta(hours=draw(hours)), MONDAY + timedelta(hours=draw(hours))
    observed = Observed()
    sources = MoneySources("1", "r", list(observed.watch(found)), [], ledger, observed, returned)
    return money_table(sources, (), start, start + timedelta(hours=draw(st.integers(1, 800))), made)


@given(tables())
@settings(max_examples=150)
def test_parts_make_up_the_whole(money: MoneyTable) -> None:
    totals = money.totals()
    assert totals.utilised + totals.reserve + totals.wasted + totals.unsplit == totals.spend
    for row in money.rows:
        if row.utilised is not None:
            assert row.reserve is not None
            assert row.utilised + row.reserve + (row.wasted or ZERO) == row.spend
            assert min(row.utilised, row.reserve, row.wasted or ZERO) >= 0
        if row.spend is not None:
            assert row.without_changes is not None
            assert row.without_changes >= row.spend
    known = [day for day in money.days if day.spent is not None]
    assert sum((day.spent or ZERO for day in known), ZERO) == (totals.spent or ZERO)
    assert sum((day.would_have_cost or ZERO for day in known), ZERO) == (totals.would_have_cost or ZERO)
    assert all((day.would_have_cost or ZERO) >= (day.spent or ZERO) >= 0 for day in known)
    for what in get_args(GroupedBy.__value__):
        groups = list(money.by(what).values())
        added = groups[0]
        for group in groups[1:]:
            added = add_totals(added, group)
        assert added == totals, what


@given(tables(), st.integers(0, 5))
def test_the_largest_rows_and_the_rest_are_the_whole(money: MoneyTable, kept: int) -> None:
    cut = replace(money, rows=money.rows[:kept], rest=sum_rows(money.rows[kept:]))
    assert cut.totals() == money.totals()
    assert cut_money(money) == money, "fewer rows than a page shows"


@given(records=histories(), window=windows())
def test_the_stages_of_the_rows_are_those_of_the_funnel(records: Records, window: tuple[datetime, datetime]) -> None:
    told = make_report(records, *window, NOW)
    for stage in Stage:
        inside = sum((one.usd_per_month for one in told.funnel if one.stage is stage), ZERO)
        assert sum((row.at({stage}) for row in told.money.rows), ZERO) == inside
    waits = sum((one.usd_per_month for one in told.money.waits), ZERO)
    assert waits == told.totals.waiting <= told.totals.open
    saved = sum((one.saved_usd for one in records.ledger if window[0] <= one.at < window[1]), ZERO)
    assert told.totals.realised == saved
    assert len({row.key for row in told.money.rows}) == len(told.money.rows)


def test_two_windows_that_meet_book_what_both_together_do() -> None:
    entries = [booked("c", MONDAY + timedelta(hours=hour), "0.335") for hour in (1, 30, 100, 166)]
    records = Records("1", "eu-west-1", [], [], entries, [])
    middle, end = MONDAY + 2 * DAY, MONDAY + 7 * DAY
    halves = [make_report(records, *window, end).totals.realised for window in ((MONDAY, middle), (middle, end))]
    assert sum(halves, ZERO) == make_report(records, MONDAY, end, end).totals.realised == Decimal("1.36")


def test_before_a_change_that_stands_it_cost_more() -> None:
    turned = MONDAY + 3 * DAY
    entries = tuple(booked("c", turned + number * DAY, "12") for number in range(1, 5))
    money = table(seen(), ledger=entries)
    assert spent(money) == [("36.00", "36.00")] * 3 + [("24.00", "36.00")] * 4
    (row,) = money.rows
    assert (row.spend, row.without_changes, row.realised) == (Decimal(730), Decimal(1095), Decimal(36))
    assert (row.spent, row.would_have_cost) == (Decimal(204), Decimal(252))


def test_while_a_change_that_went_back_was_in_force_it_cost_less() -> None:
    entries = (booked("c", MONDAY + 3 * DAY, "12"),)
    money = table(seen(), ledger=entries, returned=("c",))
    assert spent(money) == [("24.00", "24.00")] * 2 + [("12.00", "24.00")] + [("24.00", "24.00")] * 4
    assert money.rows[0].without_changes == money.rows[0].spend


def test_a_second_change_begins_where_the_first_one_left_it() -> None:
    first = tuple(booked("a", MONDAY + number * DAY, "12") for number in (1, 2))
    second = tuple(booked("b", MONDAY + number * DAY, "6") for number in (6, 7))
    assert spent(table(seen(), ledger=(*first, *second), replaced=("a",))) == [
        *[("30.00", "42.00")] * 2, *[("30.00", "30.00")] * 3, *[("24.00", "30.00")] * 2
    ]  # fmt: skip


def test_a_change_after_the_last_look_is_not_in_that_look() -> None:
    entries = (booked("c", MONDAY + 2 * DAY, "12"),)
    money = table(seen(at=MONDAY + timedelta(hours=30)), ledger=entries)
    assert spent(money)[:3] == [("36.00", "36.00"), ("24.00", "36.00"), ("None", "None")]
    assert [day.endpoints for day in money.days] == [1, 1, 0, 0, 0, 0, 0]
    later = table(seen(at=MONDAY + timedelta(hours=24)), ledger=(booked("c", MONDAY + 2 * DAY, "6", 12),))
    assert spent(later)[1] == ("18.00", "24.00"), "half a day at half the price"


def test_days_that_are_not_known_are_gaps_and_no_zero() -> None:
    money = table(seen(at=MONDAY + 4 * DAY + timedelta(hours=4), days=2), ledger=())
    assert [day.spent is None for day in money.days] == [True, True, True, False, False, True, True]
    assert table(seen(usd=None)).totals().spent is None
    whole = [seen(f"e{number}") for number in range(10)]
    one_late = table(*whole[:9], seen("late", days=2))
    assert one_late.days[0].spent == Decimal("216.00"), "nine tenths of the spend are known"
    two_late = table(*whole[:8], seen("late", days=2), seen("later", days=2))
    assert two_late.days[0] == DayMoney(MONDAY, None, None, 8)
    never = replace(seen("components"), evidence=None, usd_per_month=Decimal(90_000))
    assert table(seen("e"), never).days[0] == DayMoney(MONDAY, Decimal("24.00"), Decimal("24.00"), 1), (
        "in no day at all"
    )


def test_the_method_of_the_used_part_is_said() -> None:
    replayed = recommendation("replayed")
    assert replayed.replay is not None
    replayed = replace(replayed, replay=replace(replayed.replay, hourly_load=(0.5, None, 0.25)))
    counted = recommendation("counted", replay=None, hourly_requests=(1.0, None, 4.0), options=())
    idle = recommendation("idle", finding=Finding.IDLE, replay=None)
    unknown = recommendation("unknown", replay=None, hourly_requests=(), options=())
    rows = {row.endpoint: row for row in table(replayed, counted, idle, unknown).rows}
    assert rows["replayed"].use_method is UseMethod.REPLAY
    assert rows["replayed"].utilised == (Decimal("1035.20") * Decimal("0.375")).quantize(Decimal("0.01"))
    assert (rows["counted"].use_method, rows["counted"].utilised) == (UseMethod.REQUESTS, Decimal("3234.81"))
    assert (rows["idle"].utilised, rows["idle"].wasted) == (Decimal("0.00"), Decimal("4140.50"))
    assert (rows["unknown"].use_method, rows["unknown"].utilised) == (UseMethod.NONE, None)


def test_what_is_wasted_counts_the_later_stages_as_the_message_does() -> None:
    later = replace(option(), saving_usd_per_month=Decimal("600.255"))
    staged = replace(recommendation("staged"), stages=(later,))
    row = next(iter(table(staged).rows))
    assert row.wasted == staged.approval_usd_per_month == Decimal("4740.76")


def test_the_hours_of_the_week_keep_unknown_hours_apart() -> None:
    one = recommendation("one", hourly_requests=(None, 2.0, 4.0), usd_per_month=Decimal(100))
    assert one.evidence is not None
    one = replace(one, evidence=replace(one.evidence, start=MONDAY + DAY + timedelta(hours=5)))
    week = table(one).week
    assert len(week) == 168
    assert [hour.load for hour in week if hour.weekday == 1][:4] == [None, 0.5, 1.0, None]
    assert table(recommendation("two", hourly_requests=())).week == ()


@pytest.mark.parametrize(("month", "day"), [("730", "24.00"), ("26100", "858.08")])
def test_a_month_has_730_hours(month: str, day: str) -> None:
    assert str(usd_per_day(Decimal(month))) == day


def test_the_owner_of_what_is_gone_is_that_of_its_ledger() -> None:
    entry = replace(booked("c", MONDAY + DAY, "5"), owner="ranking")
    (row,) = table(ledger=(entry,)).rows
    assert (row.owner, row.judged, row.spend, row.realised) == ("ranking", False, None, Decimal(5))
    assert row.at(OPEN) == 0
