"""docs/cost.md says what the quantities and prices of the catalogue give, and no more is used than is written."""

import re
from decimal import Decimal

import pytest

from bench import own_bill as bench
from rightsizer import catalog
from rightsizer.domain.report import FunctionUse, Stack
from rightsizer.reporting.totals import COST_LINES, OCCASIONS, own_bill, quantities, running_cost, usd_of
from tests.template.stack import EVERYTHING, stack


def test_the_page_is_what_the_command_writes() -> None:
    assert bench.PAGE.read_text() == bench.page(), "python -m bench.own_bill --page"


@pytest.mark.parametrize("endpoints", [100, 200, 500, 1000, 10_000, 100_000])
def test_a_hundred_endpoints_cost_less_than_a_dollar_a_month(endpoints: int) -> None:
    assert usd_of(own_bill(endpoints)) / endpoints * 100 < 1


def test_no_more_is_used_than_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--endpoints", "25"]) == 0, capsys.readouterr().err


def test_every_quantity_is_in_one_line_and_has_a_price() -> None:
    listed = [item for items in COST_LINES.values() for item in items]
    assert len(listed) == len(set(listed))
    assert set(listed) >= quantities(100).keys()
    billed = {item: quantity for line in own_bill(100) for item, quantity in line.quantities.items() if quantity}
    assert billed == quantities(100)


def test_what_is_used_more_costs_more() -> None:
    for row in catalog.own_use():
        assert row.fixed >= 0 <= row.each
    assert usd_of(own_bill(101)) > usd_of(own_bill(100)) > usd_of(own_bill(100, proposals=Decimal(0)))


def test_the_occasions_come_as_often_as_the_schedules_of_the_template() -> None:
    """Office hours have a tick of their own, which is not in the table."""
    found = stack(**EVERYTHING | {"MayStop": "nothing", "WakePrincipals": ""}).of("AWS::Scheduler::Schedule")
    assert {name: one["ScheduleExpression"] for name, one in found.items()} == {
        "SweepHourly": "rate(1 hour)",
        "SweepDaily": "cron(20 4 * * ? *)",
        "ApplyTick": "rate(5 minutes)",
        "ReportWeekly": "cron(0 7 ? * MON *)",
        "ReportMonthly": "cron(30 7 1 * ? *)",
    }
    assert [round(times) for times in OCCASIONS.values()] == [30, 730, 8760, 5]


def test_the_report_has_every_line_of_the_bill_and_says_what_is_estimated() -> None:
    used = (FunctionUse("evaluate", 1769, 100, 60_000.0),)
    cost = running_cost(used, Stack(), 100, 16, 365 / 12)
    assert cost is not None
    assert {line.what for line in cost.lines} == {*COST_LINES, "alarms"}
    assert all("estimated" in line.how for line in cost.lines[3:])
    bill = {line.what: line.usd for line in own_bill(100)}
    assert all(line.usd == pytest.approx(bill[line.what]) for line in cost.lines[3:])


def test_the_prices_have_a_date_and_a_source() -> None:
    for row in catalog.own_prices().values():
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.as_of), row
        assert "pricing" in row.source, row
        assert row.usd > 0, row
