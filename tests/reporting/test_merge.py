"""Several reports of one window are one, in which everything adds up as in each of them."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings

from rightsizer import wire
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.money import add_totals, sum_rows
from rightsizer.domain.report import Report
from rightsizer.errors import InputError
from rightsizer.render import csv, report_json, report_page, report_tables
from rightsizer.reporting.merge import EarlierReport, merge_reports
from rightsizer.reporting.totals import Records, make_report
from tests.render.test_funnel import histories, windows
from tests.samples import NOW, proposal, recommendation

START = NOW - timedelta(days=7)


def report_of(account: str, *names: str, region: str = "eu-west-1", usd: str = "5175.70") -> Report:
    refs = [EndpointRef(account, region, name) for name in names]
    found = [recommendation(ref.name, ref=ref, usd_per_month=Decimal(usd)) for ref in refs]
    asked = [proposal(f"{account}-{one.ref.name}", recommendation=one, created_at=START) for one in found]
    return make_report(Records(account, region, found, asked, [], []), START, NOW, NOW)


@given(records=histories(), other=histories(), window=windows())
@settings(max_examples=40)
def test_the_sums_of_two_accounts_are_the_sums_of_both(
    records: Records, other: Records, window: tuple[datetime, datetime]
) -> None:
    one = make_report(records, *window, NOW)
    two = make_report(replace(other, account="2"), *window, NOW)
    both = merge_reports([one, replace(two, money=replace(two.money, rows=()), funnel=(), recommendations=())])
    assert both.totals == one.totals
    apart = tuple(replace(row, account="2") for row in two.money.rows)
    whole = merge_reports([one, replace(two, money=replace(two.money, rows=apart))])
    assert whole.totals == add_totals(one.totals, two.totals)
    assert sum((wait.usd_per_month for wait in whole.money.waits), Decimal(0)) == whole.totals.waiting


def test_the_same_name_in_two_accounts_is_two_endpoints() -> None:
    both = merge_reports([report_of("1", "chat"), report_of("2", "chat", "rank")])
    assert list(both.money.by("account")) == ["2", "1"]
    assert both.totals.endpoints == 3
    assert both.totals.identified == 3 * Decimal("4140.50")
    assert len(report_tables.could_be_saved(both)) == 3
    lines = csv.report(both).splitlines()[1:]
    assert sorted(line.split(",")[0] for line in lines) == ["1", "2", "2"]
    assert "account 1, 2" in report_page.report(both)
    assert [wait.proposals for wait in both.money.waits] == [3]


def test_days_and_hours_of_the_week_are_those_of_all() -> None:
    one, two = report_of("1", "chat"), report_of("2", "rank", usd="730")
    whole = merge_reports([one, two])
    assert [day.endpoints for day in whole.money.days] == [2 * day.endpoints for day in one.money.days]
    known = [day for day in whole.money.days if day.spent is not None]
    assert sum((day.spent or 0 for day in known), Decimal(0)) == whole.totals.spent
    gap = replace(two, money=replace(two.money, days=tuple(replace(day, spent=None) for day in two.money.days)))
    assert {day.spent for day in merge_reports([one, gap]).money.days} == {None}
    assert [hour.load for hour in whole.money.week] == pytest.approx([hour.load for hour in one.money.week])
    unknown = replace(two, money=replace(two.money, week=()))
    assert merge_reports([one, unknown]).money.week == one.money.week


def test_rows_that_were_left_out_stay_in_the_sums() -> None:
    one, two = report_of("1", "chat", "rank"), report_of("2", "chat")
    cut = replace(one, money=replace(one.money, rows=one.money.rows[:1], rest=sum_rows(one.money.rows[1:])))
    assert merge_reports([cut, two]).totals == merge_reports([one, two]).totals


def test_what_would_be_counted_twice_or_is_of_another_window_is_refused() -> None:
    one = report_of("1", "chat")
    with pytest.raises(InputError, match="there twice"):
        merge_reports([one, one])
    with pytest.raises(InputError, match="one window alone"):
        merge_reports([one, replace(report_of("2", "chat"), start=START - timedelta(days=1))])
    assert merge_reports([one]) is one


def test_a_stored_report_is_read_again_as_it_was() -> None:
    made = report_of("1", "chat")
    again = wire.loads(Report, report_json.report(made))
    assert (again.totals, again.money, again.funnel) == (made.totals, made.money, made.funnel)


def test_endpoints_that_came_went_or_cost_another_amount_are_named() -> None:
    before, now = report_of("1", "gone", "stays"), report_of("1", "new", "stays", usd="5000")
    earlier = wire.loads(EarlierReport, report_json.report(before))
    since = earlier.against(now.money)
    assert (since.appeared, since.gone, since.moved) == (("new",), ("gone",), (("stays", Decimal("-175.70")),))
    cut = replace(now.money, rest=sum_rows(()))
    assert earlier.against(cut).gone == ()
