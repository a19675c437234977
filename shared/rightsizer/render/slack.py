"""Proposals and reports as Slack blocks, within Slack's limits and escaped."""

from pathlib import PurePosixPath

from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import Option
from rightsizer.domain.proposal import UNDOABLE, DecisionSource, Proposal, ProposalState
from rightsizer.domain.reason import one_line, shorten
from rightsizer.domain.recommendation import Evidence, Recommendation
from rightsizer.domain.report import Report
from rightsizer.render import asked_test, effects, report_promises, report_tables, rest_of_bill, sentences
from rightsizer.render.blocks import (
    FIELD,
    SECTION,
    Block,
    button,
    code,
    context,
    escape,
    escape_lines,
    fields,
    header,
    plain,
    section,
)
from rightsizer.render.charts import highest_value, sparkline
from rightsizer.render.target import later_text, target_facts


def proposal_text(proposal: Proposal) -> str:
    """Text of the notification: one line."""
    said = _headline(proposal)
    whole = said if proposal.state is ProposalState.PENDING else f"{said}. {sentences.standing_sentence(proposal)}"
    return escape(whole, SECTION)


def proposal_blocks(proposal: Proposal, details: str = "") -> list[Block]:
    """The message of a proposal as it stands. Buttons while it can be decided on or undone.

    `details` is where its page is kept, empty where it is not.
    """
    found = proposal.recommendation
    option = found.chosen_option
    blocks = [header(_headline(proposal)), section(_standing(proposal))]
    if option:
        blocks.append(fields(_facts(proposal, option)))
    blocks.append(section(escape(found.reason.sentence, SECTION)))
    if found.hourly_requests:
        blocks.append(section(_picture(found)))
    if found.evidence:
        blocks.append(context(_evidence(found, found.evidence)))
    if not proposal.approvable and proposal.state is ProposalState.PENDING:
        enable = proposal.enable or "ask whoever runs rightsizer"
        blocks.append(section(f"*It cannot be approved here:*\n{code(enable, 2500)}"))
    buttons = _buttons(proposal, details)
    if buttons:
        blocks.append({"type": "actions", "block_id": f"decide_{proposal.id}"[:255], "elements": buttons})
    blocks.append(context(_commands(proposal)))
    return blocks


def _headline(proposal: Proposal) -> str:
    """The headline; red while an endpoint waits for what it needs."""
    waits = proposal.state in (ProposalState.PENDING, ProposalState.APPROVED, ProposalState.APPLYING)
    mark = sentences.shortage_mark(proposal.recommendation) if waits else ""
    return f"{mark}{sentences.headline(proposal.recommendation)}"


def report_blocks(report: Report, page: str = "") -> list[Block]:
    """The summary of a report for the channel; `page` is where the whole is kept, empty where it is not."""
    totals = report.totals
    facts = [
        ("Spend on what was looked at", f"{sentences.exact_money(totals.spend)} a month"),
        ("Could still be saved", f"{sentences.exact_money(totals.open)} a month"),
        *((name.capitalize(), f"{sentences.exact_money(usd)} a month") for name, usd in report_tables.funnel(totals)),
        ("Saved in this window", sentences.exact_money(totals.realised)),
        *report_tables.hours_saved(report),
        *((name, sentences.exact_money(usd)) for name, usd in report_tables.growth_added(totals)),
    ]
    title = f"GPU endpoints, {sentences.day_text(report.start)} to {sentences.day_text(report.end)}"
    blocks = [header(title), section(escape(report_tables.lead_text(report), SECTION)), fields(facts)]
    blocks += [
        section(f"{sentences.RED}{escape(sentences.headline(one), SECTION)}")
        for one in report_tables.shortages(report)[:5]
    ]
    blocks += [
        section(f"• {escape(sentences.headline(one), SECTION)}") for one in report_tables.could_be_saved(report)[:5]
    ]
    if report.track_record is not None:
        said = report_promises.slowdown_text(report.track_record), report_promises.risk_text(report.track_record)
        blocks.append(section(escape_lines("\n".join(said), SECTION)))
    if rest := rest_of_bill.short_lines(report.account_findings):
        blocks.append(section(escape_lines("\n".join(rest[: 1 + rest_of_bill.ITEMS]), SECTION)))
    if report.unread:
        blocks.append(section(report_tables.unread_text(report.unread)))
    if page:
        name = PurePosixPath(page).stem
        blocks.append({"type": "actions", "elements": [button("Open the report", "report", name)]})
    seen = sentences.count(totals.endpoints, "endpoint")
    return [
        *blocks,
        context([f"{escape(f'{report.account} {report.region}', 100)} · {seen} · `rightsizer report`"]),
    ]


def _facts(proposal: Proposal, option: Option) -> list[tuple[str, str]]:
    found, label = proposal.recommendation, "Before" if proposal.change_id else "Today"
    facts = [
        (label, f"{sentences.today(found)}, {sentences.monthly_price(found.usd_per_month)}"),
        ("The endpoint can", f"{sentences.change(option)}, {sentences.monthly_price(option.usd_per_month)}"),
        *target_facts(option.target),
        *((("Later", later),) if (later := later_text(found)) else ()),
        ("Performance risk", asked_test.risk_text(option)),
        *((("Shadow test", offered),) if (offered := asked_test.offer_text(found)) else ()),
        ("Restart", effects.restart_of(found)),
        ("Rollback", effects.way_back_of(found, proposal.approvable)),
        ("Owner", one_line(found.owner) or "nobody is named (tag rightsizer:owner)"),
    ]
    if option.p95_s is not None:
        facts.append(("p95 latency then", sentences.seconds(option.p95_s)))
    if found.replay:
        told = (f"{name}: {said}" for name, said in sentences.replay_figures(found))
        facts.append((sentences.replay_heading(found), "\n".join(told)))
    if option.client_change:
        facts.append(("For callers", one_line(option.client_change)))
    return [
        *facts,
        *((one.title, one_line(one.effect)) for one in with_older_facts(option).policy_changes),
    ]


def _evidence(found: Recommendation, evidence: Evidence) -> list[str]:
    seen = (
        f"{sentences.count(evidence.requests, 'request')} in {evidence.days:.0f} days,"
        f" {sentences.percent(evidence.valid_share)} of the periods with data"
    )
    unchecked = f"not checked: {'; '.join(found.open_questions)}" if found.open_questions else ""
    price = found.price
    source = f"price {price.source}, {price.basis}, {price.as_of}" if price else "price not known"
    return [escape(part, FIELD) for part in (seen, source, unchecked) if part]


def _picture(found: Recommendation) -> str:
    hours = found.hourly_requests
    peak = highest_value(hours)
    days = found.evidence.days if found.evidence else len(hours) / 24
    return f"```{sparkline(hours)}```\nrequests over {days:.0f} days, at most {peak:,.0f} in an hour"


def _buttons(proposal: Proposal, details: str) -> list[Block]:
    buttons: list[Block] = []
    if proposal.state is ProposalState.PENDING:
        buttons += _approvals(proposal) if proposal.approvable else []
        buttons += [_button("Reject", "reject", proposal, "danger"), _button("Snooze 30 days", "snooze", proposal)]
    if proposal.state in UNDOABLE and proposal.change_id and not proposal.asked_back_by:
        buttons.append(_button("Roll back", "rollback", proposal, "danger"))
    if proposal.state is ProposalState.APPROVED and not proposal.asked_back_by:
        buttons.append(_button("Stop it", "rollback", proposal, "danger"))
    if details:
        buttons.append(button("Details", "details", proposal.id))
    return buttons


def _approvals(proposal: Proposal) -> list[Block]:
    """The buttons that say yes: with a shadow test first where one is offered, or without it where that may be."""
    if not proposal.recommendation.offers_test:
        return [_button("Approve", "approve", proposal, "primary")]
    test = [_button("Run the test", "test", proposal, "primary")]
    return [*test, _button("Approve without it", "approve", proposal)] if proposal.may_skip_test else test


def _button(text: str, verb: str, proposal: Proposal, style: str = "") -> Block:
    made = button(text, verb, proposal.id, style)
    if verb == "approve":
        warned = asked_test.untested_warning(proposal.recommendation)
        done = f"{warned} {effects.guard_sentence(proposal.recommendation)}".strip()
        saved = shorten(sentences.headline(proposal.recommendation), 298 - len(done))
        made["confirm"] = {
            "title": plain("Change this endpoint?"),
            "text": plain(shorten(f"{saved}. {done}", 300)),
            "confirm": plain("Approve"),
            "deny": plain("Cancel"),
        }
    if verb == "test":
        made["confirm"] = {
            "title": plain("Run this test?"),
            "text": plain(shorten(asked_test.test_confirmation(proposal.recommendation), 300)),
            "confirm": plain("Run the test"),
            "deny": plain("Cancel"),
        }
    if verb == "rollback" and proposal.state is ProposalState.APPROVED:
        stopped = f"What was approved for {proposal.ref.name} does not begin. It is not proposed again for 180 days."
        made["confirm"] = {
            "title": plain("Stop what was approved?"),
            "text": plain(shorten(stopped, 300)),
            "confirm": plain("Stop it"),
            "deny": plain("Cancel"),
        }
    elif verb == "rollback":
        runs = shorten(f"{proposal.ref.name} goes back to what it ran before the change.", 300)
        made["confirm"] = {
            "title": plain("Undo this change?"),
            "text": plain(runs),
            "confirm": plain("Roll back"),
            "deny": plain("Cancel"),
        }
    return made


def _commands(proposal: Proposal) -> list[str]:
    if proposal.state is ProposalState.PENDING:
        answers = [line for line, _ in asked_test.commands(proposal)] or [f"rightsizer reject {proposal.id}"]
        said = " · ".join(f"`{line}`" for line in (*answers, f"rightsizer explain {_name(proposal)}"))
        return [f"At a terminal: {said}"]
    if proposal.state is ProposalState.APPROVED and not proposal.asked_back_by:
        return [f"At a terminal: `rightsizer reject {proposal.id}` stops it · `rightsizer explain {_name(proposal)}`"]
    if proposal.state in UNDOABLE and proposal.change_id:
        return [f"At a terminal: `rightsizer rollback {proposal.change_id}` · `rightsizer explain {_name(proposal)}`"]
    return [f"At a terminal: `rightsizer proposals` · `rightsizer explain {_name(proposal)}`"]


def _name(proposal: Proposal) -> str:
    return escape(proposal.ref.name, 100)


def _standing(proposal: Proposal) -> str:
    """The state in bold; a Slack user who decided is mentioned, so that the message shows a name and not an id."""
    said = escape(sentences.standing_sentence(proposal), SECTION - 100)
    decider = proposal.decision.decider if proposal.decision else None
    if decider is not None and decider.source is DecisionSource.SLACK and decider.person.isalnum():
        name = decider.person
        said = said.replace(f" by {name}", f" by <@{name}>", 1)
    return f"*{said}*"
