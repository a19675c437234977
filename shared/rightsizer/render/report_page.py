"""The report: what was spent, wasted and saved, by owner and by week, and what was left alone and why."""

from collections.abc import Mapping
from decimal import Decimal

from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.report import SHOWN, Report
from rightsizer.ports.evaluation import ReportFormat
from rightsizer.render import charts, report_promises, report_tables, sentences
from rightsizer.render.html import Cell, Markup, Node, badge, bars, card, join, page, section, table, tag

PACKLESS = "No endpoints of one owner would fit on one card and save more than alone."
LOOKS: Mapping[Finding, str] = {Finding.OPTIMIZED: "good", Finding.UNDER_PROVISIONED: "warn", Finding.IDLE: "warn"}
STATES: Mapping[ProposalState, str] = {
    ProposalState.PROVEN: "good",
    ProposalState.ROLLED_BACK: "warn",
    ProposalState.HANDED_OVER: "warn",
}


def report(told: Report) -> str:
    """The whole report as one file."""
    window = f"{sentences.day(told.start)} to {sentences.day(told.end)}"
    saves = report_tables.could_be_saved(told)
    open_ones = {one.ref for one in saves}
    left = [one for one in told.recommendations if one.ref not in open_ones]
    return page(
        f"GPU endpoints, {window}",
        tag("h1", "GPU endpoints"),
        tag("p", f"{window} · account {told.account} · {told.region}", class_="soft"),
        _cards(told),
        section("Where the money goes, by owner", _owners(told)),
        section("What could still be saved", _recommendations(saves)),
        section("Small endpoints that would fit on one card", _packs(told)),
        section("What was asked and changed", _proposals(told)),
        section("By week", _weeks(told)),
        section("Promised and kept", report_promises.savings(told)),
        section("Slowdown, promised and measured", report_promises.slowdowns(told.track_record)),
        section("Performance risk, stated and seen", report_promises.risks(told.track_record)),
        section("What happened", _occurrences(told)),
        section("Left alone, and why", _left(left)),
        section("Settings that cannot be understood", tag("p", sentences.misread_line(told.misread)))
        if told.misread
        else "",
        section("Could not be read", _unread(told)),
        section("What rightsizer itself costs", _running(told)),
        _method(told),
    )


def _cards(told: Report) -> Markup:
    totals = told.totals
    own = "not known" if told.running_cost is None else sentences.money(told.running_cost.usd)
    return tag(
        "div",
        card("saved in this window", sentences.exact(totals.realised), "main"),
        card(f"spent a month on {sentences.count(totals.endpoints, 'endpoint')}", sentences.exact(totals.spend)),
        card("a month could still be saved", sentences.exact(totals.open)),
        *(card(f"a month {name}", sentences.exact(usd)) for name, usd in report_tables.funnel(totals)),
        card("rightsizer itself, this window, estimated", own),
        class_="cards",
    )


def _owners(told: Report) -> Markup:
    owners = report_tables.by_owner(told)
    spent = [(one.name, float(one.spend), sentences.money(one.spend)) for one in owners[:12]]
    rows = [
        [
            Cell(one.name),
            Cell(one.endpoints, one.endpoints, "n"),
            Cell(sentences.money(one.spend), float(one.spend), "n"),
            Cell(sentences.money(one.still), float(one.still), "n"),
            Cell(sentences.money(one.proven), float(one.proven), "n"),
        ]
        for one in owners
    ]
    heads = ("Owner", "Endpoints", "Spent a month", "Could still be saved", "Proven")
    drawn = tag("div", bars(spent, "Spend a month by owner"), class_="panel") if spent else None
    listed = table("By owner", heads, rows, "No endpoint was found.")
    return tag("div", drawn, tag("div", listed, style="margin-top:12px"))


def _recommendations(found: list[Recommendation]) -> Markup:
    heads = ("Endpoint", "Finding", "Change", "Saving a month", "Risk", "Requests", "Why")
    empty = "Nothing: every endpoint runs as it should."
    return _cut("What could still be saved", heads, [_row(one) for one in found[:SHOWN]], empty, len(found))


def _cut(label: str, heads: tuple[str, ...], rows: list[list[Cell]], empty: str, every: int) -> Markup:
    """A table of the largest rows, and how many others there are."""
    listed = table(label, heads, rows, empty)
    if every <= len(rows):
        return listed
    more = f"{len(rows):,} of {every:,} are shown; all endpoints are in the CSV and in the JSON lines."
    return tag("div", tag("p", more, class_="note"), listed)


def _packs(told: Report) -> Markup:
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
        for one in told.packs[:SHOWN]
    ]
    heads = ("Together", "Owner", "On one", "Saving a month", "Beyond their own", "Needs", "Until", "Not checked")
    return _cut("Packing", heads, rows, PACKLESS, len(told.packs))


def _row(one: Recommendation) -> list[Cell]:
    option = one.chosen
    label = f"Requests of {one.ref.name} in the look-back period"
    drawn: Node = charts.course(one.hourly_requests, label, 150, 32) if one.hourly_requests else "not known"
    change = join(tag("div", f"from {sentences.today(one)}", class_="note"), sentences.change(option) if option else "")
    return [
        _name(one),
        Cell(badge(sentences.FINDINGS[one.finding], LOOKS.get(one.finding, ""))),
        Cell(change),
        Cell(sentences.money(one.saving_usd_per_month), float(one.saving_usd_per_month), "n"),
        Cell(sentences.RISKS[option.risk] if option else "", int(option.risk) if option else -1),
        Cell(drawn, sum(value or 0.0 for value in one.hourly_requests)),
        Cell(_why(one), look="why"),
    ]


def _why(one: Recommendation) -> Node:
    """The reason, why it is not asked where it is not, and what the past days would have been on it."""
    twice = one.gate_reason.sentence == one.reason.sentence
    silent = tag("div", one.gate_reason.sentence, class_="note") if one.gate is Gate.SILENT and not twice else None
    told = "; ".join(f"{name} {said}" for name, said in sentences.replay(one))
    replay = tag("div", f"{sentences.replayed(one)}: {told}", class_="note") if told else None
    return join(one.reason.sentence, silent, replay)


def _name(one: Recommendation) -> Cell:
    owner = tag("div", one.owner or report_tables.NOBODY, class_="note")
    return Cell(join(tag("b", one.ref.name), owner), one.ref.name, "name")


def _proposals(told: Report) -> Markup:
    heads = ("Endpoint", "State", "Change", "Saving a month", "Asked", "Decided by", "How it went")
    largest = sorted(told.proposals, key=lambda one: one.recommendation.identified_usd_per_month, reverse=True)[:SHOWN]
    rows = [_asked(one) for one in sorted(largest, key=lambda one: one.created_at, reverse=True)]
    return _cut("Proposals", heads, rows, "Nothing was asked in this window.", len(told.proposals))


def _asked(one: Proposal) -> list[Cell]:
    option, saving = one.recommendation.chosen, one.recommendation.saving_usd_per_month
    waits = one.state is ProposalState.PENDING and not one.approvable
    said = one.outcome or (one.decision.comment if one.decision else "") or sentences.standing(one)
    return [
        Cell(tag("b", one.ref.name), one.ref.name, "name"),
        Cell(badge(one.state, STATES.get(one.state, ""))),
        Cell(sentences.change(option) if option else ""),
        Cell(sentences.money(saving), float(saving), "n"),
        Cell(sentences.day(one.created_at), one.created_at.timestamp(), "nowrap"),
        Cell(sentences.who(one.decision.by) if one.decision else "", look="name"),
        Cell(join(said, tag("pre", one.enable) if waits and one.enable else None), look="why"),
    ]


def _weeks(told: Report) -> Markup:
    rows = [
        [
            Cell(one.label, look="nowrap"),
            Cell(one.asked, one.asked, "n"),
            Cell(one.approved, one.approved, "n"),
            Cell(one.rejected, one.rejected, "n"),
            Cell(sentences.money(one.saved), float(one.saved), "n"),
        ]
        for one in report_tables.by_week(told)
    ]
    heads = ("Week", "Asked", "Approved", "Rejected", "Saved")
    return table("By week", heads, rows, "The window holds no week with anything in it.")


def _occurrences(told: Report) -> Markup:
    rows = [
        [
            Cell(sentences.when(one.at), one.at.timestamp(), "nowrap"),
            Cell(badge(one.kind)),
            Cell(one.subject, look="nowrap"),
            Cell(one.text, look="why"),
        ]
        for one in told.occurrences[-SHOWN:]
    ]
    heads = ("When", "What", "About", "In words")
    return _cut("What happened", heads, rows, "Nothing out of the ordinary.", len(told.occurrences))


def _left(found: list[Recommendation]) -> Markup:
    rows = [
        [
            _name(one),
            Cell(badge(sentences.FINDINGS[one.finding], LOOKS.get(one.finding, ""))),
            Cell(sentences.today(one), look="nowrap"),
            Cell(sentences.a_month(one.usd_per_month), float(one.usd_per_month or 0), "n"),
            Cell(_why(one), look="why"),
        ]
        for one in sorted(found, key=lambda one: one.usd_per_month or Decimal(0), reverse=True)[:SHOWN]
    ]
    heads = ("Endpoint", "Finding", "Today", "Spend", "Why")
    return _cut("Left alone", heads, rows, "No endpoint was left alone.", len(found))


def _unread(told: Report) -> Markup:
    rows = [
        [Cell(ref.name), Cell(badge(reason.code)), Cell(reason.sentence, look="why")] for ref, reason in told.unobserved
    ]
    rows += [[Cell(one.key), Cell(badge(Code.READ_FAILED)), Cell(one.cause, look="why")] for one in told.unread]
    heads = ("Endpoint or stored row", "Reason", "Why")
    listed = table("Could not be read", heads, rows, "Every endpoint and every stored row could be read.")
    lost = report_tables.unread(told.unread)
    return tag("div", tag("p", lost) if lost else None, listed)


def _running(told: Report) -> Markup:
    cost = told.running_cost
    if cost is None:
        return tag("p", "Not known: no function of the stack was seen in this window, or its metrics cannot be read.")
    rows = [
        [Cell(line.what), Cell(sentences.money(line.usd), float(line.usd), "n"), Cell(line.how, look="why")]
        for line in cost.lines
    ]
    listed = table("What rightsizer itself costs", ("Part", "In this window", "How"), rows, "Nothing.")
    return tag("div", listed, tag("p", cost.basis, class_="note", style="margin-top:10px"))


def _method(told: Report) -> Markup:
    prices = "; ".join(told.price_sources) or "none was needed"
    missing = sentences.count(told.totals.unpriced, "endpoint")
    unpriced = f" Without a known price, and not part of the spend: {missing}." if told.totals.unpriced else ""
    text = (
        f"Made {sentences.when(told.made_at)}. A month has 730 hours. Savings are estimates net of commitments."
        " Identified is everything that the window knew of; proposed, approved, applied and proven are each a part of"
        " the one before, as it stood at the end of the window. “Could still be saved” leaves out what was declined,"
        " was rolled back or already runs. “Saved” is counted at the hours billed since each change, "
        f"less what changes and shadow tests cost.{unpriced} Prices: {prices}."
    )
    return tag("p", text, class_="note", style="margin-top:40px")


FORMAT = ReportFormat("html", "text/html; charset=utf-8", report)
