"""On simulated bills the reconciled figures are the truth within 1 %, whatever plan, credit or change is in them."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.domain.bill import BilledCharge, BillLevel, BillWindow, ChargeKind, Reconciliation, add_rows
from rightsizer.errors import InputError
from rightsizer.reporting.bill import BY_TYPE, PROVISIONAL, UNNAMED, BillSums, promise_ratios
from rightsizer.reporting.totals import make_report
from sandbox.charges import Plan
from tests.reporting.bill_kit import (
    ACCOUNT,
    END,
    HOUR,
    NOW,
    REGION,
    START,
    Course,
    as_cur,
    as_focus,
    bill_of,
    compared,
    courses,
    plans,
    records,
)

MOVED = Course("chat-0", START + timedelta(days=2, hours=10, minutes=23, seconds=7))
STILL = Course("chat-1", None)


def whole(found: Reconciliation) -> tuple[Decimal, Decimal, Decimal]:
    every = found.whole
    assert every is not None, found.reason
    return every.billed, every.spent, every.reconciled


def close(found: Decimal, wanted: float) -> None:
    assert float(found) == pytest.approx(wanted, rel=0.01, abs=0.02)


@given(courses(), plans, st.sampled_from((as_cur, as_focus)), st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_bill_of_each_endpoint_and_its_saving_are_the_truth(
    found: list[Course], plan: Plan | None, form: object, packed: bool
) -> None:
    write = as_cur if form is as_cur else as_focus
    kept = records(found)
    made = compared(kept, write(bill_of(found, plan), packed=packed))
    assert made.level is BillLevel.ENDPOINT
    assert {row.name for row in made.rows} == {one.name for one in found}
    for row in made.rows:
        one = next(each for each in found if each.name == row.name)
        close(row.billed, one.true_cost(START, END))
        without = replace(one, changed=None).true_cost(START, END)
        close(row.would_have_cost, without)
        close(row.reconciled, without - one.true_cost(START, END) if one.changed else 0.0)
        close(row.spent, one.true_cost(START, END))
        if plan is None:
            assert row.paid == row.billed
        else:
            assert row.paid <= row.billed


@given(courses(), plans)
@settings(max_examples=20, deadline=None)
def test_the_differences_of_the_endpoints_add_up_to_the_whole(found: list[Course], plan: Plan | None) -> None:
    made = compared(records(found), as_cur(bill_of(found, plan)))
    every = made.whole
    assert every is not None
    assert every.difference == sum(row.difference for row in made.rows)
    assert every.reconciled == sum(row.reconciled for row in made.rows)
    assert every.billed + made.unmatched == pytest.approx(Decimal(sum(c.true_cost(START, END) for c in found)), abs=1)
    table = make_report(records(found), START, END, NOW).totals
    assert every.spent == table.spent
    assert every.would_have_cost == table.would_have_cost


@given(courses(), plans)
@settings(max_examples=20, deadline=None)
def test_both_formats_of_one_bill_say_the_same(found: list[Course], plan: Plan | None) -> None:
    charges = bill_of(found, plan)
    cur, focus = compared(records(found), as_cur(charges)), compared(records(found), as_focus(charges))
    assert cur.rows == focus.rows
    assert cur.unmatched == focus.unmatched
    assert dict(cur.aside) == dict(focus.aside)


def test_what_no_endpoint_caused_stands_beside_and_in_no_row() -> None:
    plain = compared(records([MOVED]), as_cur(bill_of([MOVED])))
    told = dict(plain.aside)
    assert told[ChargeKind.CREDIT.value] == Decimal("-40.00")
    assert told[ChargeKind.REFUND.value] == Decimal("-3.00")
    assert told[ChargeKind.TAX.value] == Decimal("70.00"), "7 of 31 days of the month's tax"
    assert told[ChargeKind.OTHER.value] == Decimal("12.00"), "a training job"


def test_a_plan_changes_what_is_paid_and_no_difference() -> None:
    plain = compared(records([MOVED]), as_cur(bill_of([MOVED])))
    planned = compared(records([MOVED]), as_cur(bill_of([MOVED], Plan(1.0))))
    assert [(row.billed, row.reconciled) for row in plain.rows] == [
        (row.billed, row.reconciled) for row in planned.rows
    ]
    assert planned.rows[0].paid < plain.rows[0].paid
    unused = compared(records([MOVED]), as_cur(bill_of([MOVED], Plan(5.0))))
    assert dict(unused.aside)[ChargeKind.UNUSED_PLAN.value] > 0
    assert any("covered nothing" in note for note in unused.notes)


def test_without_resource_ids_types_are_compared_and_no_endpoint_is_named() -> None:
    charges = [replace(one, resource="") for one in bill_of([MOVED, STILL])]
    made = compared(records([MOVED, STILL]), as_cur(charges))
    assert made.level is BillLevel.TYPE
    assert [row.name for row in made.rows] == ["ml.g5.12xlarge + ml.g5.xlarge"]
    assert made.rows[0].endpoints == 2
    assert made.notes[:2] == (UNNAMED, BY_TYPE)
    close(made.rows[0].billed, MOVED.true_cost(START, END) + STILL.true_cost(START, END))


def test_an_endpoint_that_the_table_lacks_is_billed_in_no_row() -> None:
    made = compared(records([STILL]), as_cur(bill_of([MOVED, STILL])))
    assert [row.name for row in made.rows] == ["chat-1"]
    close(made.unmatched, MOVED.true_cost(START, END))


def test_an_endpoint_is_compared_where_most_of_the_spend_is_not_known() -> None:
    kept = records([MOVED, STILL])
    dark = replace(kept.recommendations[0], ref=replace(kept.recommendations[0].ref, name="components"))
    dark = replace(dark, evidence=None, usd_per_month=Decimal(90_000))
    made = compared(replace(kept, recommendations=[*kept.recommendations, dark]), as_cur(bill_of([MOVED, STILL])))
    assert {row.name: row.days for row in made.rows} == {"chat-0": 7, "chat-1": 7}
    close(whole(made)[0], MOVED.true_cost(START, END) + STILL.true_cost(START, END))


def test_the_days_before_a_change_are_compared_though_the_latest_look_began_after_it() -> None:
    kept = records([MOVED])
    (latest,) = kept.recommendations
    assert latest.evidence is not None
    assert MOVED.changed is not None
    young = replace(latest, evidence=replace(latest.evidence, start=MOVED.changed + HOUR))
    made = compared(replace(kept, recommendations=[young]), as_cur(bill_of([MOVED])))
    assert made.rows[0].days == 7, "the proposal of the change knows the days before it"
    close(made.rows[0].billed, MOVED.true_cost(START, END))
    close(made.rows[0].spent, MOVED.true_cost(START, END))


def test_days_before_its_owner_deployed_anew_are_not_compared_at_the_price_of_after() -> None:
    kept = records([MOVED])
    (latest,) = kept.recommendations
    assert latest.evidence is not None
    assert MOVED.changed is not None
    young = replace(latest, evidence=replace(latest.evidence, start=MOVED.changed + timedelta(days=2)))
    made = compared(replace(kept, recommendations=[young]), as_cur(bill_of([MOVED])))
    assert made.rows[0].days < 7


def test_an_endpoint_that_was_deleted_was_billed_less_than_the_table_thinks() -> None:
    gone = START + timedelta(days=3, minutes=30)
    charges = [one for one in bill_of([MOVED, STILL]) if not ("chat-1" in one.resource and one.start >= gone)]
    made = compared(records([MOVED, STILL]), as_cur(charges))
    row = next(one for one in made.rows if one.name == "chat-1")
    close(row.billed, STILL.true_cost(START, gone + timedelta(minutes=30)))
    assert row.difference < 0
    assert row.cost_error is not None
    assert row.cost_error > 1
    assert row.reconciled == 0, "no change was in force: what was not billed is no saving of ours"


def test_a_promise_that_was_too_high_is_told_from_the_bill_alone() -> None:
    made = compared(records([MOVED], promised=1.25), as_cur(bill_of([MOVED])))
    assert made.rows[0].estimate_error == pytest.approx(0.25, abs=0.01)
    assert records([MOVED]).ledger
    assert promise_ratios(records([STILL]).ledger, START, END) == {}


def test_a_late_bill_is_compared_as_far_as_it_goes() -> None:
    made = compared(records([MOVED]), as_cur(bill_of([MOVED], until=START + timedelta(days=4, hours=7))))
    assert made.days == 4
    assert made.rows[0].days == 4
    close(made.rows[0].billed, MOVED.true_cost(START, START + timedelta(days=4)))
    assert any("4 of 7 days" in note for note in made.notes)
    assert PROVISIONAL in made.notes


def test_a_day_that_just_ended_is_not_compared() -> None:
    made = compared(records([MOVED]), as_cur(bill_of([MOVED])), now=END + HOUR)
    assert made.days == 6


@pytest.mark.parametrize("hours", [-1, 5])
def test_a_bill_without_a_whole_day_says_why_nothing_is_reconciled(hours: int) -> None:
    until = START + hours * HOUR
    charges = [one for one in bill_of([MOVED], until=until) if one.end <= until]
    made = compared(records([MOVED]), as_cur(charges))
    assert "no whole day of this window" in made.reason
    assert not made.rows
    assert made.whole is None


def test_an_empty_bill_says_that_it_has_no_usage() -> None:
    assert "the bill has no usage" in compared(records([MOVED]), as_cur([])).reason


def test_another_currency_is_not_compared() -> None:
    made = compared(records([MOVED]), as_cur(bill_of([MOVED]), currency="EUR"))
    assert made.reason == "the bill is in 'EUR', and the report in USD: no rate of exchange is assumed"


def test_a_bill_by_the_month_cannot_be_laid_on_days() -> None:
    charges = [
        replace(one, start=START.replace(day=1), end=START.replace(month=2, day=1)) if one.kind == "Usage" else one
        for one in bill_of([MOVED])
    ]
    assert "HOURLY or DAILY" in compared(records([MOVED]), as_cur(charges)).reason


def test_a_bill_in_two_files_is_one_bill() -> None:
    charges = bill_of([MOVED])
    both = compared(records([MOVED]), as_cur(charges[:100]), as_cur(charges[100:], packed=True))
    assert both == compared(records([MOVED]), as_cur(charges))


def test_amounts_beyond_any_bill_are_refused() -> None:
    sums = BillSums(BillWindow(ACCOUNT, REGION, START, END))
    big = Decimal(9_000_000_000)
    line = BilledCharge(ChargeKind.USAGE, START, START + HOUR, ACCOUNT, REGION, "a", "ml.g5.xlarge", big, big, big)
    sums.add(line)
    with pytest.raises(InputError, match="larger than any bill"):
        sums.add(line)


def test_the_sum_of_rows_keeps_no_promise_where_one_is_unknown() -> None:
    made = compared(records([MOVED], promised=1.25), as_cur(bill_of([MOVED])))
    row = made.rows[0]
    assert add_rows([row]).promised == row.promised
    assert add_rows([row, replace(row, name="other", promised=None)]).promised is None
    assert cast("float", add_rows([row]).estimate_error) == pytest.approx(cast("float", row.estimate_error))
