"""Every form of the report tells the same of the bill, to the cent, and says why where there is none."""

import csv as csvs
import io
import json
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.domain.bill import BillLevel, ReconciledRow, Reconciliation
from rightsizer.domain.report import SHOWN, Report
from rightsizer.render import bill, csv, report_json, report_page, text
from rightsizer.render.sentences import exact_money
from rightsizer.render.slack import report_blocks
from rightsizer.reporting.merge import merge_reports
from sandbox.charges import Plan
from tests.render.report_sample import sample_report
from tests.render.test_pages import Outline
from tests.reporting.bill_kit import (
    Course,
    as_cur,
    bill_of,
    compared,
    courses,
    plans,
    records,
    report_of,
)
from tests.reporting.test_bill import MOVED, STILL

EVIL = "=HYPERLINK(1)<script>"


def made(reason: str = "", level: BillLevel = BillLevel.ENDPOINT) -> Report:
    charges = bill_of([MOVED, STILL], Plan(3.0))
    if level is BillLevel.TYPE:
        charges = [replace(one, resource="") for one in charges]
    kept = records([MOVED, STILL], promised=1.2)
    found = Reconciliation(reason=reason) if reason else compared(kept, as_cur(charges))
    return report_of(kept, found)


def forms(report: Report) -> tuple[str, str, str]:
    blocks = json.dumps(report_blocks(report), ensure_ascii=False)
    return Outline(report_page.report(report)).words, text.report(report)[1], blocks


@given(courses(), plans, st.booleans())
@settings(max_examples=10, deadline=None)
def test_all_formats_agree_to_the_cent(found: list[Course], plan: Plan | None, named: bool) -> None:
    charges = bill_of(found, plan)
    charges = charges if named else [replace(one, resource="") for one in charges]
    kept = records(found)
    report = report_of(kept, compared(kept, as_cur(charges)))
    every = report.reconciliation and report.reconciliation.whole
    assert every
    rows = list(csvs.DictReader(io.StringIO(csv.report(report))))
    for column, wanted in (
        ("billed_usd", every.billed),
        ("bill_difference_usd", every.difference),
        ("reconciled_usd", every.reconciled),
        ("paid_usd", every.paid),
    ):
        assert sum(Decimal(row[column]) for row in rows if row[column]) == wanted
    stored = wire.loads(Report, report_json.report(report)).reconciliation
    assert stored == report.reconciliation
    for form in forms(report):
        assert exact_money(every.billed) in form


def test_a_report_without_a_bill_says_that_it_is_not_reconciled() -> None:
    page, mail, _ = forms(replace(sample_report(), reconciliation=None))
    assert "Not reconciled: no bill was read" in page
    assert "Bill:       not reconciled: no bill was read (docs/bill.md)" in mail


def test_a_bill_that_could_not_be_read_says_why_in_every_form() -> None:
    for form in forms(made("bill.csv, row 5: damaged")):
        assert "ot reconciled: bill.csv, row 5: damaged" in form


def test_the_sentence_has_the_error_of_cost_and_of_the_promise() -> None:
    said = bill.bill_text(made())
    assert "reconciled with CUR 2.0 by endpoint, 7 days, which AWS may still rewrite" in said
    assert "no error" in said
    assert "20 % too high" in said


def test_a_change_shows_its_saving_against_the_bill_only_where_the_bill_names_endpoints() -> None:
    assert "for the endpoint, 7 days; promised 20 % too high" in bill.change_cell(made(), "chat-0")
    assert bill.change_cell(made(level=BillLevel.TYPE), "chat-0") == "not reconciled"
    assert bill.change_cell(replace(made(), reconciliation=None), "chat-0") == "not reconciled"
    assert "no day of it" in bill.change_cell(made(), "never-heard-of")


def test_types_have_rows_without_an_endpoint() -> None:
    report = made(level=BillLevel.TYPE)
    rows = list(csvs.DictReader(io.StringIO(csv.report(report))))
    assert [row["instance_type"] for row in rows if row["billed_usd"]] == ["ml.g5.12xlarge + ml.g5.xlarge"]
    assert not any(row["endpoint"] and row["billed_usd"] for row in rows)
    assert "no figure here is of one endpoint" in Outline(report_page.report(report)).words


def test_a_hostile_name_is_text_and_no_formula() -> None:
    report = made(level=BillLevel.TYPE)
    assert report.reconciliation
    row = replace(report.reconciliation.rows[0], name=EVIL)
    report = replace(report, reconciliation=replace(report.reconciliation, rows=(row,)))
    assert f"'{EVIL}" in csv.report(report)
    assert "HYPERLINK(1)&lt;script" in report_page.report(report)
    assert "HYPERLINK(1)<script" not in report_page.report(report)
    assert any(EVIL in line for line in bill.lines(report))


def test_the_stored_json_keeps_the_largest_rows_and_the_sum_of_the_others() -> None:
    report = made()
    assert report.reconciliation
    one = report.reconciliation.rows[0]
    many = replace(report.reconciliation, rows=tuple(replace(one, name=f"e-{n}") for n in range(SHOWN + 50)))
    stored = wire.loads(Report, report_json.report(replace(report, reconciliation=many))).reconciliation
    assert stored
    assert len(stored.rows) == SHOWN + 1
    assert stored.whole
    assert stored.whole.billed == (SHOWN + 50) * one.billed


def elsewhere(account: str = "999988887777", region: str = "us-east-1", **parts: object) -> Report:
    """The same report of another account and Region, with its own bill."""
    report = made()
    rows = tuple(replace(row, account=account, region=region) for row in report.money.rows)
    other = replace(report, account=account, region=region, money=replace(report.money, rows=rows), funnel=())
    assert report.reconciliation
    bill = replace(report.reconciliation, **{"source": "FOCUS", **parts})  # type: ignore[arg-type]
    return replace(other, reconciliation=bill)


def test_merged_reports_stand_beside_the_bill_of_each() -> None:
    one, other = made(), elsewhere()
    both = merge_reports([one, other])
    found, single = both.reconciliation, one.reconciliation
    assert found
    assert single
    assert found.whole
    assert single.whole
    assert found.whole.billed == 2 * single.whole.billed
    assert found.aside == tuple((name, 2 * usd) for name, usd in single.aside)
    assert set(single.notes) == set(found.notes)
    assert "reconciled with CUR 2.0, FOCUS by endpoint" in bill.bill_text(both)
    rows = [row for row in csvs.DictReader(io.StringIO(csv.report(both))) if row["billed_usd"]]
    assert {row["account"] for row in rows} == {one.account, other.account}
    assert sum(Decimal(row["billed_usd"]) for row in rows) == found.whole.billed
    assert "999988887777 us-east-1" in Outline(report_page.report(both)).words
    assert any("999988887777 us-east-1 chat-0" in line for line in bill.lines(both))
    assert bill.change_cell(both, "chat-0") == "not reconciled: 2 endpoints have this name"
    assert merge_reports([one]).reconciliation is single


def test_charges_of_an_account_are_not_counted_once_for_each_region() -> None:
    one = made()
    found = merge_reports([one, elsewhere(one.account)]).reconciliation
    assert found
    assert one.reconciliation
    assert one.reconciliation.aside
    assert found.aside == ()
    assert any("Credits, taxes and the like" in note and one.account in note for note in found.notes)


def test_a_merged_report_says_who_has_no_bill() -> None:
    one, none = made(), replace(elsewhere(), reconciliation=None)
    found = merge_reports([one, none]).reconciliation
    assert found
    assert one.reconciliation
    assert found.whole == one.reconciliation.whole
    assert "999988887777 us-east-1 is not compared: no bill was read." in found.notes
    assert merge_reports([replace(one, reconciliation=None), none]).reconciliation is None
    late = merge_reports([made("it is late"), none])
    assert "us-east-1: no bill was read" in bill.bill_text(late)
    assert "it is late" in bill.bill_text(late)


def test_bills_that_tell_usage_apart_differently_are_not_added_up() -> None:
    both = merge_reports([made(), elsewhere(level=BillLevel.TYPE)])
    assert "tell usage apart differently" in bill.bill_text(both)
    assert "us-east-1 by instance type" in bill.bill_text(both)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (None, "the bill has nothing of it"),
        (0.0, "no error"),
        (0.012, "1.2 % too high"),
        (-0.25, "25 % too low"),
    ],
)
def test_an_error_is_said_with_its_direction(share: float | None, said: str) -> None:
    assert bill.error_text(share) == said


def test_nothing_billed_has_no_error() -> None:
    zero = Decimal(0)
    row = ReconciledRow("a", 1, 7, zero, zero, zero, zero, zero, zero, zero)
    assert row.cost_error is None
    assert row.estimate_error is None
