"""The figures of a report are of its window, each stage a part of the one before, and the same in every form."""

import csv as reader
import io
import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.money import APPROVED, IDENTIFIED, IN_FORCE, OPEN, PROPOSED, Stage
from rightsizer.domain.option import Target
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.price import CENT
from rightsizer.domain.proposal import Decision, Proposal, ProposalState, change_id_of, stage_change_ids
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.domain.report import Report
from rightsizer.render import csv, report_json, report_tables, sentences, text
from rightsizer.render.report_page import report
from rightsizer.render.slack import proposal_blocks, report_blocks
from rightsizer.reporting.split_money import stage_of
from rightsizer.reporting.totals import Records, make_report
from rightsizer.terminal import document, tables
from rightsizer.terminal.survey import Survey
from tests.samples import NOW, option, proposal, recommendation

DECIDED = {ProposalState.REJECTED, ProposalState.SNOOZED}
CHANGED = {ProposalState.APPLIED, ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER}
DAY = timedelta(days=1)
UNDECIDED = {ProposalState.PENDING, ProposalState.WITHDRAWN, ProposalState.EXPIRED}
HOURS = st.integers(-60 * 24, 0)
"""Hours before NOW at which something happened."""


def found_at(number: int, at: datetime, cents: int, finding: Finding = Finding.OVER_PROVISIONED) -> Recommendation:
    """The judgement of an endpoint, saving so many hundredths of a cent."""
    made = recommendation(f"e{number}", options=(option(saving_usd_per_month=Decimal(cents).scaleb(-4)),))
    assert made.evidence is not None
    seen = replace(made.evidence, start=at - timedelta(days=14), end=at)
    return replace(made, evaluated_at=at, evidence=seen, finding=finding, fingerprint=f"e{number}|{at}")


@st.composite
def histories(draw: st.DrawFn) -> Records:
    """Proposals of a few endpoints with their decisions, changes and reversals, and the latest judgements."""
    asked, ended, entries = list[Proposal](), dict[str, datetime](), list[LedgerEntry]()
    returned = set[str]()
    for index in range(draw(st.integers(0, 8))):
        created = NOW + timedelta(hours=draw(HOURS))
        state = draw(st.sampled_from(list(ProposalState)))
        decided = min(created + timedelta(hours=draw(st.integers(0, 300))), NOW)
        kind = state if state in DECIDED else ProposalState.APPROVED
        found = found_at(draw(st.integers(0, 4)), created, draw(st.integers(-500, 9_999_999)))
        one = proposal(
            f"p-{index}",
            recommendation=found,
            created_at=created,
            expires_at=created + timedelta(days=14),
            state=state,
            decision=None if state in UNDECIDED else Decision(kind, "cli:me", decided),
            change_id=f"c-{index}" if state in CHANGED else "",
        )
        if draw(st.booleans()):
            one = in_a_plan(draw, one, ended, returned)
        asked.append(one)
        if one.state in CHANGED:
            ended[one.change_id] = min(decided + timedelta(hours=draw(st.integers(0, 300))), NOW)
        if state is ProposalState.PROVEN:
            usd = Decimal(draw(st.integers(0, 99_999))).scaleb(-3)
            at = ended[one.change_id]
            name = one.ref.name
            booked = draw(st.sampled_from(BOOKED))
            entries.append(LedgerEntry(f"l-{index}", name, one.change_id, "", at, booked, usd, 24, True, ""))
    latest = [
        found_at(number, NOW + timedelta(hours=draw(HOURS)), draw(st.integers(-500, 9_999_999)), draw(FINDINGS))
        for number in range(draw(st.integers(0, 6)))
    ]
    return Records("111122223333", "eu-west-1", latest, asked, entries, [], ended=ended, returned=returned)


def in_a_plan(draw: st.DrawFn, one: Proposal, ended: dict[str, datetime], returned: set[str]) -> Proposal:
    """The proposal with stages that follow it, some of them carried out, some of these taken back."""
    more = draw(st.integers(1, 2))
    savings = [Decimal(draw(st.integers(-500, 999_999))).scaleb(-3) for _ in range(more)]
    stages = tuple(option(saving_usd_per_month=saving) for saving in savings)
    one = replace(one, recommendation=replace(one.recommendation, stages=stages))
    chain = stage_change_ids(replace(one, change_id=change_id_of(one)))
    if one.decision is None or one.decision.state is not ProposalState.APPROVED or one.state in UNDECIDED:
        return one
    shown = draw(st.integers(0, more))
    at = one.decision.at
    for number in range(draw(st.integers(shown, more)) + 1):
        at = min(at + timedelta(hours=draw(st.integers(0, 300))), NOW)
        ended[chain[number]] = at
        if number > shown or (number == shown and one.state is ProposalState.ROLLED_BACK):
            returned.add(chain[number])
    return replace(one, change_id=chain[shown])


FINDINGS = st.sampled_from(list(Finding))
BOOKED: tuple[Literal["realised", "growth-cost"], ...] = ("realised", "growth-cost")


@st.composite
def windows(draw: st.DrawFn) -> tuple[datetime, datetime]:
    """A window that touches the history."""
    start = NOW + timedelta(hours=draw(HOURS))
    return start, start + timedelta(hours=draw(st.integers(1, 40 * 24)))


def amounts(page: str) -> list[str]:
    """Every amount with cents in a text, in order."""
    return re.findall(r"-?\$[\d,]+\.\d\d", page)


@given(records=histories(), window=windows())
def test_each_stage_is_a_part_of_the_one_before_and_the_parts_make_up_the_whole(
    records: Records, window: tuple[datetime, datetime]
) -> None:
    report = make_report(records, *window, NOW)
    totals = report.totals
    assert totals.identified >= totals.proposed >= totals.approved >= totals.applied >= totals.proven >= 0
    assert IDENTIFIED > PROPOSED > APPROVED > IN_FORCE > {Stage.PROVEN}
    sums = {stage: sum(one.usd_per_month for one in report.funnel if one.stage is stage) for stage in Stage}
    assert sum(sums.values()) == totals.identified
    assert totals.open + totals.declined + totals.went_back + totals.applied == totals.identified
    assert totals.open == sum(sums[stage] for stage in OPEN)
    assert sum((one.open for one in report.money.by("owner").values()), Decimal(0)) == totals.open
    assert sum((one.proven for one in report.money.by("owner").values()), Decimal(0)) == totals.proven
    asked = [(one.proposal_id, one.number) for one in report.funnel if one.proposal_id]
    assert len(asked) == len(set(asked)), "one saving for each stage of a plan"


@given(records=histories(), window=windows())
def test_what_growth_adds_is_in_its_own_sum_and_in_no_saving(
    records: Records, window: tuple[datetime, datetime]
) -> None:
    told = make_report(records, *window, NOW)
    booked = [one for one in records.ledger if window[0] <= one.at < window[1]]
    grown = sum((one.usd.quantize(CENT) for one in booked if one.kind == "growth-cost"), Decimal(0))
    assert told.totals.growth == grown
    assert told.totals.realised + told.totals.growth == sum((one.usd.quantize(CENT) for one in booked), Decimal(0))
    assert sum((week.saved for week in report_tables.by_week(told)), Decimal(0)) == told.totals.realised
    assert {one.change_id for one in report_tables.kept_promises(told)} <= {
        one.change_id for one in records.ledger if one.kind != "growth-cost"
    }
    asked = growing("grows", Mode.PROPOSE)
    more = replace(
        records,
        recommendations=[*records.recommendations, asked],
        proposals=[*records.proposals, proposal("p-grow", recommendation=asked)],
    )
    with_growth = make_report(more, *window, NOW)
    assert with_growth.funnel == told.funnel
    for name in ("identified", "proposed", "approved", "applied", "proven", "open", "realised", "growth", "wasted"):
        assert getattr(with_growth.totals, name) == getattr(told.totals, name)


def growing(name: str, mode: Mode) -> Recommendation:
    """An endpoint that needs a second instance."""
    target = Target("ml.g6.xlarge", 2)
    more = option(target=target, saving_usd_per_month=Decimal(-822), growth_usd=Decimal(822))
    why = Reason(Code.UNDER_PROVISIONED, "p95 is 0.65 s, above the objective of 0.60 s")
    return recommendation(name, options=(more,), finding=Finding.UNDER_PROVISIONED, reason=why, mode=mode)


def test_what_needs_more_stands_before_what_could_be_saved_in_every_form() -> None:
    found = [recommendation("saves"), growing("grows", Mode.PROPOSE)]
    told = make_report(Records("1", "eu-west-1", found, [], [], []), NOW - timedelta(days=7), NOW + DAY, NOW)
    subject, body = text.report(told)
    assert subject.startswith("rightsizer: 1 endpoint needs more than it has; $0.00 saved")
    assert body.index("Needs more: 1 endpoint needs more than it has: grows") < body.index("Still open")
    page = report(told)
    assert (
        page.index("1 endpoint needs more than it has")
        < page.index("Needs more than it has")
        < page.index("What could still be saved")
    )
    assert "grows" not in page.partition("Left alone, and why")[2]
    blocks = json.dumps(report_blocks(told), ensure_ascii=False)
    assert blocks.index("\N{LARGE RED CIRCLE} grows needs more") < blocks.index("saves can")


def test_the_message_about_growth_is_red_and_says_its_cost_until_it_is_done() -> None:
    waits = proposal(recommendation=growing("grows", Mode.PROPOSE))
    shown = proposal_blocks(waits)[0]["text"]["text"]
    assert shown.startswith("\N{LARGE RED CIRCLE} *grows needs more: it can run on 2")
    assert "which costs $822 a month more* · " in shown
    assert text.proposal(waits)[0] == f"rightsizer: {shown.partition('*')[2].partition('*')[0]}"
    done = replace(waits, state=ProposalState.PROVEN)
    assert not proposal_blocks(done)[0]["text"]["text"].startswith("\N{LARGE RED CIRCLE}")


@given(records=histories(), window=windows())
def test_only_what_the_window_knew_is_in_it(records: Records, window: tuple[datetime, datetime]) -> None:
    start, end = window
    report = make_report(records, start, end, NOW)
    by_id = {one.id: one for one in records.proposals}
    for one in report.funnel:
        asked = by_id.get(one.proposal_id)
        if asked is None:
            continue
        plan = stage_change_ids(asked)
        decision, done = asked.decision, records.ended.get(plan[one.number - 1] if plan else asked.change_id)
        assert asked.created_at < end
        if one.stage is Stage.WAITING:
            assert decision is None or decision.at >= end
        else:
            assert decision is not None
            assert decision.at < end
        if one.stage in (Stage.APPLIED, Stage.PROVEN, Stage.WENT_BACK):
            assert done is not None
            assert start <= done < end


@given(records=histories())
def test_a_window_before_everything_sums_to_zero(records: Records) -> None:
    start = NOW - timedelta(days=200)
    totals = make_report(records, start, start + timedelta(days=30), NOW).totals
    figures = wire.plain(totals)
    assert {name for name, value in figures.items() if Decimal(value or 0) != 0} == set()


@given(records=histories(), window=windows())
@settings(max_examples=40)
def test_every_form_agrees_to_the_cent(records: Records, window: tuple[datetime, datetime]) -> None:
    told = make_report(records, *window, NOW)
    totals = told.totals
    of_stages = [sentences.exact_money(usd) for _, usd in report_tables.funnel(totals)]
    spend, still_open, realised = map(sentences.exact_money, (totals.spend, totals.open, totals.realised))
    said = [spend, still_open, *of_stages, realised]
    assert amounts(text.report(told)[1])[: len(said)] == said
    blocks = report_blocks(told)
    assert amounts(json.dumps(blocks[2]))[:3] == [spend, still_open, realised]
    assert amounts(json.dumps(blocks[3])) == of_stages
    page = report(told)
    said_of_stages = page.partition("from found to proven")[2].partition("</figure>")[0]
    assert amounts(said_of_stages)[:5] == of_stages
    assert f"{sentences.exact_money(totals.realised)} was saved in this window" in page
    assert f"{sentences.exact_money(totals.open)} a month could still be saved" in page
    lead = report_tables.lead_text(told)
    assert all(lead in form for form in (page, text.report(told)[1], json.dumps(blocks[1])))
    stored = json.loads(wire.dumps(told))["totals"]
    assert [Decimal(stored[name]) for name in ("identified", "proposed", "approved", "applied", "proven", "open")] == [
        totals.identified, totals.proposed, totals.approved, totals.applied, totals.proven, totals.open
    ]  # fmt: skip
    rows = list(reader.DictReader(io.StringIO(csv.report(told))))
    for stages, total in ((IDENTIFIED, totals.identified), (PROPOSED, totals.proposed), (OPEN, totals.open)):
        inside = [Decimal(row["funnel_usd_per_month"]) for row in rows if row["stage"] in {str(s) for s in stages}]
        assert sum(inside, Decimal(0)) == total
    columns = (
        ("spend_usd_per_month", totals.spend),
        ("without_changes_usd_per_month", totals.without_changes),
        ("wasted_usd_per_month", totals.wasted),
        ("utilised_usd_per_month", totals.utilised),
        ("reserve_usd_per_month", totals.reserve),
        ("saved_usd_in_window", totals.realised),
    )
    for column, total in columns:
        assert sum((Decimal(row[column] or 0) for row in rows), Decimal(0)) == total, column
    kept = json.loads(report_json.report(told))["money"]
    assert sum((Decimal(row["spend"] or 0) for row in kept["rows"]), Decimal(0)) == totals.spend


@given(records=histories(), off=st.sampled_from(list(Mode)), least=st.integers(0, 900))
@settings(max_examples=40)
def test_what_a_scan_says_could_be_saved_is_what_a_report_of_the_same_judgements_identifies(
    records: Records, off: Mode, least: int
) -> None:
    judged = [replace(one, mode=off if number == 0 else one.mode) for number, one in enumerate(records.recommendations)]
    judged = [replace(one, ref=replace(one.ref, name=f"n{number}")) for number, one in enumerate(judged)]
    told = make_report(
        replace(records, recommendations=judged, proposals=[]), NOW - timedelta(days=90), NOW + 2 * DAY, NOW
    )
    scan = Survey("eu-west-1", NOW, Decimal(least), tuple(judged), (), ())
    identified = told.totals.identified
    said = sentences.exact_money(identified)
    if judged:
        assert f"could save USD {identified:,.2f} per month" in tables.totals(scan).plain
    totals = document.survey_document(scan)["totals"]
    assert Decimal(totals["identified_usd_per_month"]) == identified
    endpoints = document.survey_document(scan)["endpoints"]
    assert sum((Decimal(one["identified_usd_per_month"]) for one in endpoints), Decimal(0)) == identified
    assert (scan.saving, len(scan.large_enough)) <= (identified, len(scan.possible_savings))
    assert f"Identified: {said} a month" in text.report(told)[1]
    assert f"from found to proven: identified {said}, proposed " in json.dumps(report_blocks(told))
    assert f'<td>identified</td><td class="n" data-key="{float(identified)}">{said}</td>' in report(told)
    assert Decimal(json.loads(wire.dumps(told))["totals"]["identified"]) == identified
    rows = list(reader.DictReader(io.StringIO(csv.report(told))))
    assert sum((Decimal(row["funnel_usd_per_month"] or 0) for row in rows), Decimal(0)) == identified


def test_a_month_before_the_first_proposal_knows_nothing_of_it() -> None:
    asked = proposal(
        created_at=NOW - timedelta(days=2), state=ProposalState.PROVEN, decision=approved(1), change_id="c"
    )
    records = Records("1", "eu-west-1", [recommendation()], [asked], [], [], ended={"c": NOW})
    report = make_report(records, NOW - timedelta(days=90), NOW - timedelta(days=60), NOW)
    assert not any((report.totals.identified, report.totals.spend, report.totals.proven))
    assert not any((report.proposals, report.recommendations, report.funnel))


def proven(at: datetime, decision: Decision) -> Proposal:
    return proposal(created_at=at, state=ProposalState.PROVEN, decision=decision, change_id="c")


def approved(days: int) -> Decision:
    return Decision(ProposalState.APPROVED, "cli:me", NOW - timedelta(days=days))


@pytest.mark.parametrize(
    ("state", "stage"), [(ProposalState.PROVEN, Stage.PROVEN), (ProposalState.ROLLED_BACK, Stage.WENT_BACK)]
)
def test_what_is_proven_or_went_back_could_not_be_saved_again(state: ProposalState, stage: Stage) -> None:
    done = proposal(created_at=NOW - timedelta(days=3), state=state, decision=approved(2), change_id="c")
    report = make_report(
        Records("1", "eu-west-1", [recommendation()], [done], [], [], ended={"c": NOW - timedelta(days=1)}),
        NOW - timedelta(days=7),
        NOW,
        NOW,
    )
    assert [one.stage for one in report.funnel] == [stage]
    assert report.totals.open == 0
    assert report.totals.identified == report.totals.approved == Decimal("4140.50")


def test_what_was_approved_when_the_window_ended_was_not_proven_yet() -> None:
    asked = proposal(
        created_at=NOW - timedelta(days=9), state=ProposalState.PROVEN, decision=approved(8), change_id="c"
    )
    ended = {"c": NOW - timedelta(hours=1)}
    end = NOW - timedelta(days=3)
    assert stage_of(asked, ended, end - timedelta(days=7), end) is Stage.UNDER_WAY
    assert stage_of(asked, ended, end, NOW) is Stage.PROVEN
    assert stage_of(asked, ended, NOW, NOW + timedelta(days=7)) is None, "it moved in another window"


@pytest.mark.parametrize("change_ended", [None, timedelta(days=6)])
def test_an_approval_that_expired_is_under_way_until_then_and_in_no_sum_from_then_on(
    change_ended: timedelta | None,
) -> None:
    made = NOW - timedelta(days=14)
    approved = made + timedelta(days=1)
    asked = replace(
        proposal("p-1", recommendation=found_at(1, made, 500_000), created_at=made, expires_at=NOW),
        state=ProposalState.EXPIRED,
        decision=Decision(ProposalState.APPROVED, "cli:me", approved),
        change_id="c-1" if change_ended else "",
    )
    ended = {"c-1": approved + change_ended} if change_ended else {}
    over = approved + (change_ended or timedelta(days=7))
    assert stage_of(asked, ended, made, over) is Stage.UNDER_WAY
    assert stage_of(asked, ended, over, over + timedelta(hours=1)) is None
    assert stage_of(asked, ended, made, NOW - timedelta(hours=1)) is None


def test_what_is_right_is_not_under_what_could_be_saved() -> None:
    right = recommendation("right", finding=Finding.OPTIMIZED)
    told: Report = make_report(Records("1", "eu-west-1", [right], [], [], []), NOW - timedelta(days=7), NOW, NOW)
    assert told.totals.identified == 0
    assert report_tables.could_be_saved(told) == []
    assert "right" in report(told).partition("Left alone, and why")[2]


def test_a_window_without_an_evaluation_is_not_said_to_cost_nothing() -> None:
    nothing = make_report(Records("1", "eu-west-1", [], [], [], []), NOW - timedelta(days=7), NOW, NOW)
    lead = report_tables.lead_text(nothing)
    assert lead.startswith("What you pay is not known: no endpoint was evaluated in these days.")
    assert "You pay $0" not in lead


@pytest.mark.parametrize(
    ("owners", "whom"),
    [
        (("ml-search", "ml-chat"), "2 owners and costs"),
        (("ml-search", ""), "1 owner, and for endpoints without an owner, and costs"),
        (("", ""), "somebody: no owner is named and costs"),
    ],
)
def test_the_first_sentence_names_all_who_are_waited_for(owners: tuple[str, str], whom: str) -> None:
    found = [replace(found_at(number, NOW - DAY, 9_000_000), owner=owner) for number, owner in enumerate(owners)]
    asked = [
        proposal(f"p-{one.ref.name}", recommendation=one, created_at=NOW - DAY, expires_at=NOW + 13 * DAY)
        for one in found
    ]
    told = make_report(Records("1", "eu-west-1", found, asked, [], []), NOW - timedelta(days=7), NOW, NOW)
    assert f"waits for {whom}" in report_tables.lead_text(told)
