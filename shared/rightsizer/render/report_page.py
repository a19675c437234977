"""The report: what was spent, wasted and saved, by owner and by week, and what was left alone and why."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from rightsizer.domain.money import NOBODY
from rightsizer.domain.proposal import Proposal, ProposalState, decider_name
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.report import SHOWN, Report
from rightsizer.ports.evaluation import ReportFormat
from rightsizer.render import (
    bill,
    charts,
    messages,
    report_money,
    report_promises,
    report_tables,
    rest_of_bill,
    sentences,
)
from rightsizer.render.html import Cell, HtmlNode, Markup, badge, folded, join, page, section, table, tag

FIRST_SAVINGS = 8
"""Rows that a table of the first screens shows; a button shows the others."""
PACKLESS = "No endpoints of one owner would fit on one card and save more than alone."
LOOKS: Mapping[Finding, str] = {Finding.OPTIMIZED: "good", Finding.UNDER_PROVISIONED: "bad", Finding.IDLE: "warn"}
STATES: Mapping[ProposalState, str] = {
    ProposalState.PROVEN: "good",
    ProposalState.ROLLED_BACK: "warn",
    ProposalState.HANDED_OVER: "warn",
}


def report(report: Report) -> str:
    """The whole report as one file."""
    window = f"{sentences.day_text(report.start)} to {sentences.day_text(report.end)}"
    saves = report_tables.could_be_saved(report)
    short = report_tables.shortages(report)
    open_ones = {recommendation.ref for recommendation in (*saves, *short)}
    left = [recommendation for recommendation in report.recommendations if recommendation.ref not in open_ones]
    steps = rest_of_bill.steps_content(report.account_findings)
    return page(
        f"GPU endpoints, {window}",
        tag("h1", "GPU endpoints"),
        tag("p", f"{window} · account {report.account} · {report.region}", class_="soft"),
        report_money.first_sentence(report),
        charts.spend_by_day(report.money.days, report.money.totals().endpoints),
        charts.waste_by_endpoint(report.money.rows, report.totals),
        tag("div", charts.hours_of_week(report.money.week), charts.funnel(report.totals), class_="two"),
        section("Who is waited for", report_money.waits(report)),
        section("Needs more than it has", _shortages(short)) if short else "",
        section("What could still be saved", _recommendations(saves)),
        section(rest_of_bill.STEPS_TITLE, steps) if steps is not None else "",
        section("Where the money goes", report_money.groups(report)),
        section("Promised and kept", report_promises.savings_section(report), folded("By week", _weeks(report))),
        section("Against the bill", bill.section_content(report)),
        section("Since the last report", report_money.since_last(report)),
        section("Settings that cannot be understood", tag("p", messages.misread_line(report.misread, report.region)))
        if report.misread
        else "",
        section("The evidence", *_evidence(report, left)),
        _method(report),
    )


def _evidence(report: Report, left: list[Recommendation]) -> list[HtmlNode]:
    """Everything that a reader of the first screen need not see, each part folded."""
    lost = len(report.unobserved) + len(report.unread)
    parts: list[tuple[str, HtmlNode]] = [
        ("Small endpoints that would fit on one card", _packs(report)),
        (rest_of_bill.TITLE, rest_of_bill.section_content(report.account_findings, report.account_unread)),
        (report_money.TITLE, report_money.section_content(report.recommendations)),
        ("Stopped by office hours", _office_hours(report) if report.office_hours else None),
        ("What was asked and changed", _proposals(report)),
        ("Slowdown, promised and measured", report_promises.slowdowns_section(report.track_record)),
        ("Performance risk, stated and seen", report_promises.risks_section(report.track_record)),
        ("What happened", _occurrences(report)),
        ("Left alone, and why", _unobserved(left)),
        (f"Could not be read{f' ({lost})' if lost else ''}", _unread(report)),
        ("What rightsizer itself costs", _running_cost(report)),
    ]
    return [folded(title, content) for title, content in parts if content is not None]


def _office_hours(report: Report) -> Markup:
    rows = [
        [
            Cell(
                join(saving.endpoint, tag("div", saving.owner, class_="note") if saving.owner else None),
                saving.endpoint,
            ),
            Cell(f"{saving.stopped_hours:,.1f}", saving.stopped_hours, "n"),
            Cell("not known" if saving.usd is None else sentences.exact_money(saving.usd), float(saving.usd or 0), "n"),
            Cell(f"{saving.ran_hours:,.1f}", saving.ran_hours, "n"),
            Cell(
                "not known" if saving.ran_usd is None else sentences.exact_money(saving.ran_usd),
                float(saving.ran_usd or 0),
                "n",
            ),
            Cell(saving.priced_by or "no price is known", look="why"),
        ]
        for saving in report.office_hours
    ]
    heads = ("Endpoint", "Hours stopped", "Saved", "Hours that ran", "They cost", "Priced by")
    text = "Against always running what ran right before each stop; before commitments, and in no other sum."
    return tag("div", tag("p", text, class_="note"), table("Stopped by office hours", heads, rows, ""))


def _shortages(recommendations: list[Recommendation]) -> Markup:
    rows = [
        [
            _name(recommendation),
            Cell(badge(sentences.FINDINGS[recommendation.finding], LOOKS.get(recommendation.finding, ""))),
            Cell(_change(recommendation), look="why"),
            Cell(
                sentences.money(-recommendation.saving_usd_per_month), float(-recommendation.saving_usd_per_month), "n"
            )
            if recommendation.chosen_option
            else Cell("no option is known", 0.0, "n"),
            Cell(_reason_cell(recommendation), look="why"),
        ]
        for recommendation in recommendations[:SHOWN]
    ]
    heads = ("Endpoint", "Finding", "Change", "Costs more a month", "Why")
    return _cut_table("Needs more than it has", heads, rows, "", len(recommendations))


def _change(recommendation: Recommendation) -> HtmlNode:
    return join(tag("div", f"from {sentences.today(recommendation)}", class_="note"), *_stages(recommendation))


def _stages(recommendation: Recommendation) -> Iterator[HtmlNode]:
    """The recommended change, and each later one that the same approval covers."""
    yield from (tag("div", planned) for planned in sentences.planned_changes(recommendation))


def _saving(recommendation: Recommendation) -> Cell:
    """What all stages of the change save, as the message names it."""
    return Cell(
        sentences.money(recommendation.approval_usd_per_month), float(recommendation.approval_usd_per_month), "n"
    )


def _recommendations(recommendations: list[Recommendation]) -> Markup:
    heads = ("Endpoint", "Finding", "Change", "Saving a month", "Risk", "Requests", "Why")
    empty = "Nothing: every endpoint runs as it should."
    rows = [_row(recommendation) for recommendation in recommendations[:SHOWN]]
    return _cut_table("What could still be saved", heads, rows, empty, len(recommendations), first=FIRST_SAVINGS)


def _cut_table(
    label: str, heads: tuple[str, ...], rows: list[list[Cell]], empty: str, every: int, *, first: int = 0
) -> Markup:
    """A table of the largest rows, and how many others there are."""
    listed = table(label, heads, rows, empty, first)
    if every <= len(rows):
        return listed
    more = f"{len(rows):,} of {every:,} are shown; all endpoints are in the CSV and in the JSON lines."
    return tag("div", tag("p", more, class_="note"), listed)


def _packs(report: Report) -> Markup:
    rows = [
        [
            Cell(
                join(", ".join(one.endpoints), tag("div", f"by {one.way}; callers {one.client_change}", class_="note"))
            ),
            Cell(one.owner),
            Cell(one.instance_type, look="nowrap"),
            Cell(sentences.money(one.saving_usd_per_month), float(one.saving_usd_per_month), "n"),
            Cell(sentences.money(one.beyond_usd_per_month), float(one.beyond_usd_per_month), "n"),
            Cell(
                f"{one.gpu_memory_gib:.1f} of {one.usable_gib:.1f} GiB, busy {sentences.percent(one.peak_load)} at most"
            ),
            Cell(f"{one.headroom:g} times the load"),
            Cell(join(*(tag("div", said, class_="note") for said in one.not_checked))),
        ]
        for one in report.packs[:SHOWN]
    ]
    heads = ("Together", "Owner", "On one", "Saving a month", "Beyond their own", "Needs", "Until", "Not checked")
    return _cut_table("Packing", heads, rows, PACKLESS, len(report.packs))


def _row(recommendation: Recommendation) -> list[Cell]:
    option = recommendation.chosen_option
    label = f"Requests of {recommendation.ref.name} in the look-back period"
    drawn: HtmlNode = (
        charts.line_chart(recommendation.hourly_requests, label, 150, 32)
        if recommendation.hourly_requests
        else "not known"
    )
    return [
        _name(recommendation),
        Cell(badge(sentences.FINDINGS[recommendation.finding], LOOKS.get(recommendation.finding, ""))),
        Cell(_change(recommendation), look="why"),
        _saving(recommendation),
        Cell(sentences.RISKS[option.risk] if option else "", int(option.risk) if option else -1),
        Cell(drawn, sum(value or 0.0 for value in recommendation.hourly_requests)),
        Cell(_reason_cell(recommendation), look="why"),
    ]


def _reason_cell(recommendation: Recommendation) -> HtmlNode:
    """The reason, why it is not asked where it is not, and what the past days would have been on it.

    That a cheaper option serves the load is said by the columns beside it: the sentence is folded with the replay.
    """
    twice = recommendation.gate_reason.sentence == recommendation.reason.sentence
    silent = (
        tag("div", recommendation.gate_reason.sentence, class_="note")
        if recommendation.gate is Gate.SILENT and not twice
        else None
    )
    told = "; ".join(f"{name} {text}" for name, text in sentences.replay_figures(recommendation))
    replay = tag("div", f"{sentences.replay_heading(recommendation)}: {told}", class_="note") if told else None
    if recommendation.reason.code is Code.CHEAPER_OPTION and recommendation.chosen_option is not None:
        return join(silent, folded("Evidence", tag("div", recommendation.reason.sentence), replay))
    return join(recommendation.reason.sentence, silent, folded("Evidence", replay) if replay else None)


def _name(recommendation: Recommendation) -> Cell:
    owner = tag("div", recommendation.owner or NOBODY, class_="note")
    return Cell(join(tag("b", recommendation.ref.name), owner), recommendation.ref.name, "name")


def _proposals(report: Report) -> Markup:
    heads = ("Endpoint", "State", "Change", "Saving a month", "Asked", "Decided by", "How it went")
    largest = sorted(
        report.proposals, key=lambda proposal: proposal.recommendation.identified_usd_per_month, reverse=True
    )[:SHOWN]
    rows = [
        _proposal_row(proposal) for proposal in sorted(largest, key=lambda proposal: proposal.created_at, reverse=True)
    ]
    return _cut_table("Proposals", heads, rows, "Nothing was asked in this window.", len(report.proposals))


def _proposal_row(proposal: Proposal) -> list[Cell]:
    waits = proposal.state is ProposalState.PENDING and not proposal.approvable
    text = (
        proposal.outcome
        or (proposal.decision.comment if proposal.decision else "")
        or sentences.standing_sentence(proposal)
    )
    return [
        Cell(tag("b", proposal.ref.name), proposal.ref.name, "name"),
        Cell(badge(proposal.state, STATES.get(proposal.state, ""))),
        Cell(join(*_stages(proposal.recommendation))),
        _saving(proposal.recommendation),
        Cell(sentences.day_text(proposal.created_at), proposal.created_at.timestamp(), "nowrap"),
        Cell(decider_name(proposal.decision.by) if proposal.decision else "", look="name"),
        Cell(join(text, tag("pre", proposal.enable) if waits and proposal.enable else None), look="why"),
    ]


def _weeks(report: Report) -> Markup:
    rows = [
        [
            Cell(week.label, look="nowrap"),
            Cell(week.asked, week.asked, "n"),
            Cell(week.approved, week.approved, "n"),
            Cell(week.rejected, week.rejected, "n"),
            Cell(sentences.money(week.saved), float(week.saved), "n"),
        ]
        for week in report_tables.by_week(report)
    ]
    heads = ("Week", "Asked", "Approved", "Rejected", "Saved")
    return table("By week", heads, rows, "The window holds no week with anything in it.")


def _occurrences(report: Report) -> Markup:
    rows = [
        [
            Cell(sentences.time_text(occurrence.at), occurrence.at.timestamp(), "nowrap"),
            Cell(badge(occurrence.kind)),
            Cell(occurrence.subject, look="nowrap"),
            Cell(occurrence.text, look="why"),
        ]
        for occurrence in report.occurrences[-SHOWN:]
    ]
    heads = ("When", "What", "About", "In words")
    return _cut_table("What happened", heads, rows, "Nothing out of the ordinary.", len(report.occurrences))


def _unobserved(recommendations: list[Recommendation]) -> Markup:
    rows = [
        [
            _name(recommendation),
            Cell(badge(sentences.FINDINGS[recommendation.finding], LOOKS.get(recommendation.finding, ""))),
            Cell(sentences.today(recommendation), look="nowrap"),
            Cell(sentences.monthly_price(recommendation.usd_per_month), float(recommendation.usd_per_month or 0), "n"),
            Cell(_reason_cell(recommendation), look="why"),
        ]
        for recommendation in sorted(
            recommendations, key=lambda recommendation: recommendation.usd_per_month or Decimal(0), reverse=True
        )[:SHOWN]
    ]
    heads = ("Endpoint", "Finding", "Today", "Spend", "Why")
    return _cut_table("Left alone", heads, rows, "No endpoint was left alone.", len(recommendations))


def _unread(report: Report) -> Markup:
    rows = [
        [Cell(ref.name), Cell(badge(reason.code)), Cell(reason.sentence, look="why")]
        for ref, reason in report.unobserved
    ]
    rows += [
        [Cell(unread.key), Cell(badge(Code.READ_FAILED)), Cell(unread.cause, look="why")] for unread in report.unread
    ]
    heads = ("Endpoint or stored row", "Reason", "Why")
    listed = table("Could not be read", heads, rows, "Every endpoint and every stored row could be read.")
    lost = report_tables.unread_text(report.unread)
    return tag("div", tag("p", lost) if lost else None, listed)


def _running_cost(report: Report) -> Markup:
    cost = report.running_cost
    if cost is None:
        return tag("p", "Not known: no function of the stack was seen in this window, or its metrics cannot be read.")
    rows = [
        [Cell(line.what), Cell(sentences.money(line.usd), float(line.usd), "n"), Cell(line.how, look="why")]
        for line in cost.lines
    ]
    listed = table("What rightsizer itself costs", ("Part", "In this window", "How"), rows, "Nothing.")
    return tag("div", listed, tag("p", cost.basis, class_="note", style="margin-top:10px"))


def _method(report: Report) -> Markup:
    prices = "; ".join(report.price_sources) or "none was needed"
    missing = sentences.count(report.totals.unpriced, "endpoint")
    unpriced = f" Without a known price, and not part of the spend: {missing}." if report.totals.unpriced else ""
    text = (
        f"Made {sentences.time_text(report.made_at)}. A month has 730 hours. Savings are estimates net of commitments."
        " Identified is everything that the window knew of; proposed, approved, applied and proven are each a part of"
        " the one before, as it stood at the end of the window. “Could still be saved” leaves out what was declined,"
        " was rolled back or already runs. “Saved” is counted at the hours billed since each change, "
        f"less what changes and shadow tests cost.{unpriced} Prices: {prices}."
    )
    return tag("p", text, class_="note", style="margin-top:40px")


FORMAT = ReportFormat("html", "text/html; charset=utf-8", report)
