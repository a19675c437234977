"""One list of account findings in every channel: with its amount, its advice, and that it is advice only."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from rightsizer.domain.account_finding import AccountFinding, AccountFindingCode, FindingItem
from rightsizer.domain.reason import Code, Reason
from rightsizer.render import rest_of_bill
from rightsizer.render.slack import report_blocks
from rightsizer.reporting.totals import Records, make_report
from tests.samples import NOW

POOLS = AccountFinding(
    AccountFindingCode.WARM_POOLS,
    "10 of 10 warm pools waited",
    Decimal("1234.5"),
    "set the keep-alive to 0",
    evidence={"looked at": "30 days", "break-even": "never"},
    items=tuple(FindingItem(f"work-{n}", "unused", usd_per_month=Decimal(n)) for n in range(7)),
    not_checked=("why they wait",),
)
RIGHT = AccountFinding(
    AccountFindingCode.SERVERLESS, "chat is right", Decimal(0), "leave it", endpoint="chat", owner="search"
)
REFUSED = replace(RIGHT, what="no office hours for chat: too young", evidence={"reason": "too-few-days"})
UNPRICED = replace(RIGHT, what="chat works", usd_per_month=None)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (POOLS, "saves USD 1,234.50 a month"),
        (RIGHT, "nothing to save"),
        (UNPRICED, "saving not known"),
        (REFUSED, "nothing is proposed"),
    ],
)
def test_the_amount_is_a_saving_nothing_or_not_known(finding: AccountFinding, said: str) -> None:
    assert rest_of_bill.amount(finding) == said


def test_a_list_leaves_figures_out_but_the_break_even_and_shows_five_items() -> None:
    told = rest_of_bill.listed_lines([POOLS, RIGHT])
    assert told[:3] == [
        "10 of 10 warm pools waited: saves USD 1,234.50 a month",
        "  advice: set the keep-alive to 0",
        "  break-even: never",
    ]
    assert told[-3:] == [
        "  - work-4: unused, USD 4.00 a month",
        "  - and 2 more",
        "Figures, all items and what was not checked: --json",
    ]
    assert not any("chat is right" in line or "30 days" in line for line in told)


def test_one_endpoint_is_told_everything_that_it_is_right_too() -> None:
    assert rest_of_bill.listed_lines([RIGHT]) == []
    assert rest_of_bill.lines(RIGHT) == ["chat is right: nothing to save", "  advice: leave it"]
    assert rest_of_bill.lines(REFUSED) == ["no office hours for chat: too young: nothing is proposed"]
    assert rest_of_bill.lines(POOLS)[-1] == "  not checked: why they wait"


def test_an_e_mail_has_a_line_for_each_and_says_that_it_is_advice_only() -> None:
    assert rest_of_bill.short_lines([RIGHT]) == []
    assert rest_of_bill.short_lines([POOLS, UNPRICED]) == [
        "The rest of the bill (advice only: rightsizer carries none of it out):",
        "  10 of 10 warm pools waited: saves USD 1,234.50 a month",
        "  chat works: saving not known",
    ]


def test_an_item_says_when_it_was_last_used_where_that_is_known() -> None:
    item = FindingItem("old", "40 days old", datetime(2026, 1, 1, tzinfo=UTC), "within the last two weeks", Decimal(0))
    assert rest_of_bill.item_text(item) == "old: 40 days old, last used within the last two weeks"


def test_the_page_escapes_names_and_names_what_could_not_be_read() -> None:
    hostile = replace(POOLS, what="<script>x</script>", items=(FindingItem("<b>", "y"),))
    page = str(rest_of_bill.section_content([hostile, RIGHT], [Reason(Code.PERMISSION_MISSING, "no ListModels")]))
    assert "<script>" not in page
    assert "&lt;b&gt;: y" in page
    assert "rest of the bill, not read: no ListModels" in page
    assert "advice only" in page
    assert "chat is right" not in page


def test_slack_gets_the_first_five_escaped() -> None:
    records = Records("1", "eu-west-1", (), (), (), ())
    many = tuple(replace(POOLS, what=f"<{n}> pools") for n in range(7))
    report = replace(make_report(records, NOW, NOW, NOW), account_findings=many)
    told = str(report_blocks(report))
    assert "advice only: rightsizer carries none of it out" in told
    assert "&lt;4&gt; pools: saves USD 1,234.50 a month" in told
    assert "&lt;5&gt; pools" not in told
    assert "advice only" not in str(report_blocks(replace(report, account_findings=())))


STEPS = tuple(
    FindingItem(f"work-{n}", "the GPU did nothing", None, "", Decimal(30 - n), "growth" if n else "", f"use ml.c{n}")
    for n in range(7)
)
RUNS = AccountFinding(
    AccountFindingCode.TRAINING_RUNS, "7 works can cost less", Decimal(189), "change them", items=STEPS
)


def test_a_message_proposes_the_next_run_of_five_works_with_its_owner() -> None:
    told = rest_of_bill.short_lines([RUNS, UNPRICED], "• ", 5)
    assert told[1:] == [
        "• 7 works can cost less: saves USD 189.00 a month",
        "    - work-0: use ml.c0, saves USD 30.00 a month",
        *(f"    - work-{n} (owner growth): use ml.c{n}, saves USD {30 - n}.00 a month" for n in range(1, 5)),
        "    - and 2 more, in the report",
        "• chat works: saving not known",
    ]
    records = Records("1", "eu-west-1", (), (), (), ())
    report = replace(make_report(records, NOW, NOW, NOW), account_findings=(RUNS,))
    assert "work-4 (owner growth): use ml.c4" in str(report_blocks(report))


def test_the_page_lists_every_next_run_once_with_owner_and_reason() -> None:
    listed = str(rest_of_bill.steps_content([POOLS, RUNS]))
    for text in (
        "work-6",
        "growth",
        "use ml.c6",
        "$24.00",
        "the GPU did nothing",
        "whoever starts the next run decides",
    ):
        assert text in listed
    assert rest_of_bill.steps_content([POOLS]) is None
    folded = str(rest_of_bill.section_content([RUNS], []))
    assert "each stands above, under: The next training and processing runs" in folded
    assert "work-6" not in folded


def test_a_terminal_tells_the_step_before_the_reason() -> None:
    assert rest_of_bill.item_text(STEPS[1]) == (
        "work-1 (owner growth): use ml.c1, saves USD 29.00 a month: the GPU did nothing"
    )
