"""The pages are whole, escaped and self-contained, whatever the names in them say."""

import csv as reader
import io
import json
import math
import re
import xml.etree.ElementTree as Tree
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.domain.endpoint import EndpointRef, Mode
from rightsizer.domain.option import OptionKind
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.report import Report
from rightsizer.render import charts, csv, report_tables, sentences, text
from rightsizer.render.details_page import details_page
from rightsizer.render.html import SCRIPT, STYLE, bars, tag
from rightsizer.render.report_page import report
from rightsizer.render.slack import report_blocks
from rightsizer.reporting.totals import Records, make_report
from tests.samples import NOW, option, proposal, recommendation

type Kind = Literal["estimated", "realised", "reconciled", "switch-cost"]
EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=y>"
VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Checks that every element is closed, and keeps what a browser would act on."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def entry(identity: str, kind: Kind, usd: str, hours: float, days_ago: int) -> LedgerEntry:
    made = LedgerEntry(
        identity, "rank", "c-1", "ranking", NOW - timedelta(days=days_ago), "estimated", Decimal(usd), hours, True, ""
    )
    return replace(made, kind=kind)


def told(words: str = "chat-7b") -> Report:
    ref = EndpointRef("111122223333", "eu-west-1", words or "x")
    found = [
        recommendation(ref=ref, owner=words, reason=Reason(Code.CHEAPER_OPTION, words or "x")),
        recommendation("rank", owner="ranking", options=(option(saving_usd_per_month=Decimal("64.12")),)),
        recommendation("quiet", owner="", finding=Finding.OPTIMIZED, options=(), usd_per_month=None),
    ]
    decided = Decision(ProposalState.APPROVED, "slack:U1", NOW - timedelta(days=2), words)
    asked = [
        proposal("p-1", recommendation=found[0], outcome=words),
        proposal(
            "p-2",
            recommendation=found[1],
            state=ProposalState.PROVEN,
            decision=decided,
            created_at=NOW - timedelta(days=3),
        ),
        proposal("p-3", "old", state=ProposalState.WITHDRAWN, created_at=NOW - timedelta(days=90)),
    ]
    ledger = [
        entry("e1", "estimated", "730", 730, 60),
        entry("e2", "realised", "50", 48, 2),
        entry("e3", "switch-cost", "3", 1, 2),
        entry("e4", "realised", "99", 48, 40),
    ]
    happened = [Occurrence("k", NOW - timedelta(days=1), "spot-interruption", words or "x", words)]
    records = Records(
        "111122223333", "eu-west-1", found, asked, ledger, happened, [(ref, Reason(Code.VANISHED, "It is gone."))]
    )
    return make_report(records, NOW - timedelta(days=7), NOW + timedelta(hours=1), NOW)


def of_recommendations(*found: Recommendation) -> Report:
    return make_report(Records("1", "eu-west-1", found, [], [], []), NOW - timedelta(days=7), NOW, NOW)


def test_the_totals_count_the_window_and_never_guess_a_price() -> None:
    totals = told().totals
    assert totals.spend == Decimal("10351.40")
    assert (totals.endpoints, totals.unpriced) == (3, 1)
    assert totals.identified == Decimal("4204.62")
    assert totals.proposed == Decimal("4204.62")
    assert totals.approved == totals.applied == totals.proven == Decimal("64.12")
    assert totals.open == Decimal("4140.50")
    assert totals.realised == Decimal(47)


def test_a_report_lists_what_was_asked_or_decided_in_the_window_or_is_open() -> None:
    assert [one.id for one in told().proposals] == ["p-1", "p-2"]


def test_the_sources_of_the_prices_are_named_with_their_dates() -> None:
    assert told().price_sources == ("price-list-api (Hosting, 2026-01-05)",)
    assert "price-list-api (Hosting, 2026-01-05)" in report(told())


def test_the_report_says_every_endpoint_and_why_it_was_left_alone() -> None:
    page = Outline(report(told()))
    for part in ("chat-7b", "rank", "quiet", "Left alone, and why", "It is gone.", "$47.00", "nobody named"):
        assert part in page.words


def test_a_report_has_pictures_that_a_screen_reader_can_say() -> None:
    pictures = [attrs for name, attrs in Outline(report(told())).elements if name == "svg"]
    assert pictures
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)


def test_a_kept_promise_is_compared_over_the_hours_billed() -> None:
    (kept,) = report_tables.kept_promises(told())
    assert (kept.promised, kept.realised) == (Decimal(48), Decimal(50))


def test_weeks_begin_on_monday_and_hold_what_happened_in_them() -> None:
    week, _ = report_tables.by_week(told())
    assert (week.label, week.asked, week.approved, week.saved) == ("from 5 Jan 2026", 1, 1, Decimal(47))


def test_owners_come_by_their_spend() -> None:
    assert list(told().money.by("owner")) == ["chat-7b", "ranking", "nobody named"]


@pytest.mark.parametrize(
    "page", [report(told(EVIL)), details_page(proposal(recommendation=told(EVIL).recommendations[0]))]
)
def test_what_others_wrote_stays_text(page: str) -> None:
    outline = Outline(page)
    assert outline.count("script") == 1
    assert outline.count("img") == 0
    assert not [attrs for _, attrs in outline.elements if any(name.startswith("on") for name in attrs)]
    assert EVIL in outline.words


def test_the_pages_load_nothing_from_elsewhere() -> None:
    for page in (report(told()), details_page(proposal())):
        outline = Outline(page)
        assert not [attrs for _, attrs in outline.elements if {"src", "href"} & attrs.keys()]
        assert "url(" not in page
        policies = [attrs["content"] or "" for _, attrs in outline.elements if "http-equiv" in attrs]
        assert [policy.startswith("default-src 'none'") for policy in policies] == [True]


@given(st.text(max_size=60))
def test_no_name_breaks_the_page(words: str) -> None:
    Outline(report(told(words)))
    Outline(details_page(proposal(recommendation=told(words).recommendations[0], enable=words, approvable=False)))


def test_the_details_say_risk_evidence_replay_and_what_was_not_checked() -> None:
    page = Outline(details_page(proposal())).words
    for part in ("low (1 of 4)", "1,240,551", "99.8 %", "8.9 GiB", "downstream time-outs", "p95 would be 0.9 s"):
        assert part in page
    assert "rightsizer approve p-5f2c9a7d1e3b4c60 --region eu-west-1" in page


def test_the_details_of_an_endpoint_without_an_option_still_say_why() -> None:
    bare = recommendation(options=(), evidence=None, replay=None, hourly_requests=(), excluded=(), price=None)
    page = Outline(details_page(proposal(recommendation=bare))).words
    assert "There is no option" in page
    assert "Nothing was measured." in page


@given(st.lists(st.floats(), max_size=400))
def test_every_course_is_a_drawing_with_finite_numbers(values: list[float]) -> None:
    for drawn in (charts.line_chart(values, "a & b"), charts.load_chart(values, "c")):
        Tree.fromstring(drawn)
        assert "nan" not in drawn.replace("a & b", "")
        assert "inf" not in drawn


def test_a_gap_in_the_course_is_not_drawn_over() -> None:
    assert charts.line_chart([1, 2, math.nan, 2, 1], "x").count('class="line"') == 2


def test_plain_text_in_a_tag_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", tag("b", "x"), title='"') == '<p title="&quot;">&lt;b&gt;<b>x</b></p>'


def test_the_csv_has_a_row_for_every_endpoint_and_no_formula() -> None:
    found = [*told(" " * 40 + "=HYPERLINK(1)").recommendations]
    rows = list(reader.DictReader(io.StringIO(csv.report(of_recommendations(*found)))))
    assert [row["endpoint"] for row in rows] == ["'" + " " * 40 + "=HYPERLINK(1)", "rank", "quiet"]
    assert rows[0]["saving_usd_per_month"] == "4140.50"
    assert rows[2]["option_kind"] == ""


def test_a_row_of_the_csv_has_the_change_of_a_plan_that_saves_it_and_the_cost_of_today_once() -> None:
    later = option(kind=OptionKind.SCHEDULE, saving_usd_per_month=Decimal("600.25"))
    staged = recommendation(stages=(later,))
    records, end = (
        Records("1", "eu-west-1", [staged], [proposal(recommendation=staged)], [], []),
        NOW + timedelta(hours=1),
    )
    made = make_report(records, end - timedelta(days=7), end, end)
    rows = list(reader.DictReader(io.StringIO(csv.report(made))))
    assert [row["option_kind"] for row in rows] == ["instance-type", "schedule"]
    assert [row["saving_usd_per_month"] for row in rows] == [row["funnel_usd_per_month"] for row in rows]
    assert [bool(row["usd_per_month"]) for row in rows] == [True, False]


def test_a_plan_shows_its_later_stage_and_the_saving_of_both() -> None:
    later = option(kind=OptionKind.SCHEDULE, saving_usd_per_month=Decimal("600.25"))
    staged = recommendation(stages=(later,))
    words = report(of_recommendations(staged))
    assert f"then {sentences.change(later)}" in words
    assert sentences.money(staged.approval_usd_per_month) in words
    assert f">{sentences.money(staged.saving_usd_per_month)}<" not in words


def test_the_report_travels_as_json_and_comes_back_equal() -> None:
    assert wire.loads(Report, wire.dumps(told())) == told()
    assert json.loads(wire.dumps(told()))["totals"]["realised"] == "47.00"


def test_the_summary_for_slack_and_the_text_lead_to_the_report() -> None:
    page = "s3://bucket/reports/2026-01-05_2026-01-12.html"
    (button,) = [e for block in report_blocks(told(), page) if block["type"] == "actions" for e in block["elements"]]
    assert (button["action_id"], button["value"]) == ("rightsizer_report", "2026-01-05_2026-01-12")
    subject, body = text.report(told(), page)
    assert "$47.00 saved" in subject
    assert f"The whole report: {page}\n  aws s3 cp {page} .\n" in body
    assert "1 endpoint; not part of the spend" in body


def test_evidence_is_said_in_days_and_each_figure_once() -> None:
    found = recommendation(options=(option(confidence=14.0),))
    assert found.evidence is not None
    figures = dict(found.evidence.figures) | {"confidence": "14.0", "requests": "1692129"}
    found = replace(found, evidence=replace(found.evidence, figures=figures))
    words = Outline(details_page(proposal(recommendation=found))).words
    assert "14 days' worthof evidence" in words
    assert "1400" not in words
    assert "1692129" not in words


def test_what_could_be_saved_says_why_it_is_not_asked() -> None:
    asked, silent = (
        recommendation(name, gate=gate, gate_reason=Reason(Code.MODE_REPORT, "its owner wants reports only"))
        for name, gate in (("one", Gate.PROPOSE), ("two", Gate.SILENT))
    )
    told = make_report(Records("1", "eu-west-1", [asked, silent], [], [], []), NOW - timedelta(days=7), NOW, NOW)
    assert Outline(report(told)).words.count("its owner wants reports only") == 1


def test_what_an_owner_switched_off_is_spent_but_not_offered_as_a_saving() -> None:
    off = recommendation(
        "quiet", mode=Mode.OFF, gate=Gate.SILENT, gate_reason=Reason(Code.MODE_OFF, "the tag says off")
    )
    told = make_report(Records("1", "eu-west-1", [off], [], [], []), NOW - timedelta(days=7), NOW, NOW)
    assert (told.totals.identified, told.totals.spend) == (Decimal(0), off.usd_per_month)
    said = Outline(report(told)).words
    assert "Nothing: every endpoint runs as it should." in said
    assert "the tag says off" in said.split("Left alone, and why")[1]


def test_bars_are_text_that_a_phone_can_show_and_never_longer_than_the_whole() -> None:
    drawn = bars([("a & b", 200.0, "$200"), ("c", 50.0, "$50"), ("none", 0.0, "$0.00"), ("odd", -1.0, "?")], "Spend")
    assert re.findall(r"width:([\d.]+)%", drawn) == ["100.0", "25.0", "0.0", "0.0"]
    assert "<span>a &amp; b</span>" in drawn
    assert 'aria-label="Spend"' in drawn
    assert re.findall(r"width:([\d.]+)%", bars([("all", 0.0, "$0.00")], "Spend")) == ["0.0"]


def test_on_a_phone_each_row_is_a_card_whose_cells_carry_their_heads() -> None:
    assert "@media screen and (max-width:640px)" in STYLE
    assert "content:attr(data-label)" in STYLE
    assert "cell.dataset.label=heads[index]" in SCRIPT
