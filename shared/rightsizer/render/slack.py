"""Proposals and reports as Slack messages, within Slack's limits and escaped.

The message of a proposal is read in ten seconds: a line with owner, change, saving and risk, one picture, the buttons.
Everything else is behind Details (`render.details_view`).
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import PurePosixPath

from rightsizer.domain.message import Digest, DigestLine
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.plan import order_command, terminal_command
from rightsizer.domain.proposal import UNDOABLE, DecisionSource, Proposal, ProposalState
from rightsizer.domain.reason import one_line, shorten
from rightsizer.domain.recommendation import Evidence
from rightsizer.domain.report import Report
from rightsizer.render import bill, effects, report_tables, rest_of_bill, sentences
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
    mention,
    picture,
    plain,
    section,
    snooze_menu,
)
from rightsizer.render.effects import later_text

NOTHING = Decimal(0)
DIGEST_WORDS: Mapping[str, str] = {
    ProposalState.APPROVED: "approved",
    ProposalState.APPLYING: "being changed",
    ProposalState.APPLIED: "changed, not proven",
    ProposalState.PROVEN: "changed and proven",
    ProposalState.REJECTED: "rejected",
    ProposalState.SNOOZED: "snoozed",
    ProposalState.EXPIRED: "nobody answered in time",
    ProposalState.WITHDRAWN: "withdrawn",
    ProposalState.ROLLED_BACK: "rolled back",
    ProposalState.HANDED_OVER: "needs a person",
}
"""How a proposal stands, in its line of a digest; one that waits needs no word."""
ENDED_WITHOUT_SAVING: frozenset[str] = frozenset(
    {
        ProposalState.REJECTED,
        ProposalState.SNOOZED,
        ProposalState.EXPIRED,
        ProposalState.WITHDRAWN,
        ProposalState.ROLLED_BACK,
    }
)
MOST_LINES = 15
"""Proposals that a digest names; the others are counted."""


def proposal_text(proposal: Proposal) -> str:
    """Text of the notification: one line."""
    text = _headline(proposal)
    whole = text if proposal.state is ProposalState.PENDING else f"{text}. {sentences.standing_sentence(proposal)}"
    return escape(whole, SECTION)


def proposal_blocks(proposal: Proposal, details: str = "", owner: str = "", file: str = "") -> list[Block]:
    """The message of a proposal as it stands. Buttons while it can be decided on or undone.

    `details`: where its page is kept. `owner`: the Slack id to mention. `file`: the uploaded picture. Each may be "".
    """
    blocks = [section(_first_line(proposal, owner))]
    pending = proposal.state is ProposalState.PENDING
    if not pending or proposal.outcome:
        blocks.append(section(standing_line(proposal)))
    if pending and (text := _pending_line(proposal)):
        blocks.append(section(escape(text, SECTION)))
    if pending and proposal.recommendation.stages:  # who approves has to know what else that covers
        blocks.append(section(escape(later_text(proposal.recommendation), SECTION)))
    if file:
        blocks.append(picture(file, picture_text(proposal)))
    if not proposal.approvable and pending:
        blocks.append(section(_why_not_approvable(proposal)))
    if buttons := _buttons(proposal, details):
        blocks.append({"type": "actions", "block_id": f"decide_{proposal.id}"[:255], "elements": buttons})
    blocks.append(context(_small_print(proposal)))
    return blocks


def _why_not_approvable(proposal: Proposal) -> str:
    """Why it cannot be approved as a sentence, and below it what is to be copied: a command, or a diff."""
    way = proposal.enabling_step
    text = f"*It cannot be approved here:* {escape(way.why, SECTION - 2600)}"
    return f"{text}\n{code(way.lines, 2500)}" if way.lines else text


def picture_text(proposal: Proposal) -> str:
    """Text of the picture for a screen reader."""
    recommendation = proposal.recommendation
    days = sentences.count(round(recommendation.evidence.days), "day") if recommendation.evidence else "the past days"
    option = recommendation.chosen_option
    type_then = option.target.instance_type if option is not None else ""
    then = f", with the limits of {type_then}" if type_then not in ("", recommendation.instance_type) else ""
    return f"{proposal.ref.name} over {days}: GPU use, GPU memory and p95 latency{then}"


def standing_line(proposal: Proposal) -> str:
    """The state in bold. A Slack user who decided is mentioned, so that a name is shown and not an id."""
    text = escape(sentences.standing_sentence(proposal), SECTION - 100)
    decider = proposal.decision.decider if proposal.decision else None
    if decider is not None and decider.source is DecisionSource.SLACK and decider.person.isalnum():
        name = decider.person
        text = text.replace(f" by {name}", f" by <@{name}>", 1)
    return f"*{text}*"


def digest_line(digest: Digest) -> str:
    """The notification of a digest: ``7 new proposals could save $12,300 a month``, then how many of them wait."""
    waiting = [one for one in digest.lines if one.state == ProposalState.PENDING]
    saving = sum((max(one.saving_usd_per_month, NOTHING) for one in waiting), NOTHING)
    money = sentences.monthly_price(saving)
    short = sum(one.saving_usd_per_month <= 0 for one in waiting)
    parts = (
        f": {len(waiting) - short} could save {money}, {short} {'needs' if short == 1 else 'need'} more or a decision"
    )
    if len(waiting) == len(digest.lines):
        text = f"{len(waiting)} new proposals"
        return f"{text}{parts}" if short else f"{text} could save {money}"
    if not waiting:
        return f"None of {len(digest.lines)} proposals waits for an answer any more"
    waits = "waits for its answer" if len(waiting) == 1 else "wait for an answer"
    text = f"{len(waiting)} of {len(digest.lines)} proposals {waits}"
    return f"{text}{parts}" if short else f"{text} and could save {money}"


def digest_blocks(digest: Digest) -> list[Block]:
    """One message for many proposals, those that need more first; each stands in its thread, with its buttons."""
    ranked = sorted(digest.lines, key=lambda one: (one.saving_usd_per_month > 0, -one.saving_usd_per_month))
    named = "\n".join(f"• {digest_item(one)}" for one in ranked[:MOST_LINES])
    more = len(ranked) - MOST_LINES
    rest = [f"and {sentences.count(more, 'other')}"] if more > 0 else []
    text = escape_lines("\n".join([named, *rest]), SECTION)
    return [
        section(f"*{digest_line(digest)}*"),
        section(text),
        context(["Each is in this thread, with its picture and its buttons."]),
    ]


def digest_item(line: DigestLine) -> str:
    """One proposal of a digest: ``chat-7b: saves $390 a month``."""
    money = sentences.monthly_price(abs(line.saving_usd_per_month))
    text = f"saves {money}" if line.saving_usd_per_month > 0 else "needs more"
    if not line.saving_usd_per_month:  # nothing can be offered, be it a shortage or a question
        text = "needs more or a decision"
    if line.saving_usd_per_month < 0:
        text += f", which costs {money}"
    if line.measured_usd_per_month is not None:
        text = f"measured: {sentences.monthly_price(line.measured_usd_per_month)}"
    elif line.state in ENDED_WITHOUT_SAVING:
        text = ""
    standing = DIGEST_WORDS.get(line.state, "")
    return f"{one_line(line.endpoint, 100)}: {', '.join(filter(None, (standing, text)))}"


def _first_line(proposal: Proposal, owner: str) -> str:
    """Owner, change, saving, risk: what is read in ten seconds."""
    found, option = proposal.recommendation, proposal.recommendation.chosen_option
    mark = sentences.shortage_mark(found) if _waits(proposal) else ""
    called = f"{mention(owner)} " if owner else ""
    text = f"{mark}{called}*{escape(_headline_words(proposal), SECTION - 500)}*"
    if option is not None and _waits(proposal):
        text += f" · {risk_words(option)}"
    if not owner:
        text += f" · owner {escape(one_line(found.owner, 100), 200)}" if found.owner.strip() else " · no owner is named"
    return text


def risk_words(option: Option) -> str:
    """``low risk``; where a test comes first ``low risk after the test, high without it``. A lost zone is named."""
    text = f"{sentences.RISKS[option.performance_risk]} risk"
    if option.untested_risk is not None and option.test_usd:
        text += f" after the test, {sentences.RISKS[option.untested_risk]} without it"
    return text + (", one Availability Zone in place of two" if option.leaves_one_zone else "")


def _waits(proposal: Proposal) -> bool:
    return proposal.state in (ProposalState.PENDING, ProposalState.APPROVED, ProposalState.APPLYING)


def _headline_words(proposal: Proposal) -> str:
    recommendation, option = proposal.recommendation, proposal.recommendation.chosen_option
    if option is not None and proposal.state is ProposalState.ROLLED_BACK:
        return f"{proposal.ref.name} runs as before; the plan was to {sentences.change(option)}"
    if proposal.measured_usd_per_month is not None:
        saved = sentences.monthly_price(proposal.measured_usd_per_month)
        estimated = sentences.money(recommendation.saving_usd_per_month)
        if recommendation.stages:
            whole = sum(
                (one.saving_usd_per_month for one in recommendation.stages), recommendation.saving_usd_per_month
            )
            estimated = (
                f"{estimated} by stage 1, {sentences.money(whole)} by all {1 + len(recommendation.stages)} stages"
            )
        return f"{proposal.ref.name}, measured: {saved} (estimated: {estimated})"
    if option is not None and option.kind is OptionKind.DELETE:
        return f"{proposal.ref.name} is idle: deleting it saves {sentences.monthly_price(option.saving_usd_per_month)}"
    return sentences.headline(recommendation)


def _headline(proposal: Proposal) -> str:
    """The headline; red while an endpoint waits for what it needs."""
    mark = sentences.shortage_mark(proposal.recommendation) if _waits(proposal) else ""
    return f"{mark}{_headline_words(proposal)}"


def _pending_line(proposal: Proposal) -> str:
    """What a person must know before they answer; empty where the first line says it all."""
    recommendation, option = proposal.recommendation, proposal.recommendation.chosen_option
    if option is None:
        return recommendation.reason.sentence
    if option.kind is OptionKind.DELETE:
        idle = f"Idle for {_days(recommendation.evidence)}. " if recommendation.evidence else ""
        if not proposal.approvable:
            return f"{idle}Nothing is deleted by rightsizer."
        return (
            f"{idle}Approve: rightsizer watches it for 7 more days, or the grace_days of the policy, and sends "
            "the owner the command. It deletes nothing."
        )
    callers = effects.callers_text(option)
    return f"For callers: {one_line(callers)}" if callers else ""


def _days(evidence: Evidence) -> str:
    return sentences.count(round(evidence.days), "day")


def _small_print(proposal: Proposal) -> list[str]:
    until = f"Until {sentences.day_text(proposal.expires_at)}" if proposal.state is ProposalState.PENDING else ""
    evidence = proposal.recommendation.evidence
    days = (
        f"seen for {_days(evidence)}, {sentences.count(evidence.requests, 'request')}" if evidence is not None else ""
    )
    return [escape(" · ".join(filter(None, (until, days))) or proposal.id, FIELD), *_commands(proposal)]


def report_blocks(report: Report, page: str = "") -> list[Block]:
    """The summary of a report for the channel; `page` is where the whole is kept, empty where it is not."""
    totals = report.totals
    facts = [
        ("Spend on what was looked at", f"{sentences.exact_money(totals.spend)} a month"),
        ("Could still be saved", f"{sentences.exact_money(totals.open)} a month"),
        ("Saved in this window", sentences.exact_money(totals.realised)),
        *report_tables.hours_saved(report),
        *((name, sentences.exact_money(usd)) for name, usd in report_tables.growth_added(totals)),
    ]
    title = f"GPU endpoints, {sentences.day_text(report.start)} to {sentences.day_text(report.end)}"
    stages = ", ".join(f"{name} {sentences.exact_money(usd)}" for name, usd in report_tables.funnel(totals))
    lead = section(escape(report_tables.lead_text(report), SECTION))
    blocks = [header(title), lead, fields(facts), section(f"Savings a month, from found to proven: {stages}")]
    blocks += [
        section(f"{sentences.RED}{escape(sentences.headline(recommendation), SECTION)}")
        for recommendation in report_tables.shortages(report)[:5]
    ]
    blocks += [
        section(f"• {escape(sentences.headline(one), SECTION)}") for one in report_tables.could_be_saved(report)[:5]
    ]
    if report.reconciliation is not None:
        blocks.append(section(escape(f"Bill: {bill.bill_text(report)}.", SECTION)))
    if rest := rest_of_bill.short_lines(report.account_findings, "• ", rest_of_bill.ITEMS):
        blocks.append(section(escape_lines("\n".join(rest), SECTION)))
    if report.unread:
        blocks.append(section(report_tables.unread_text(report.unread)))
    if page:
        name = PurePosixPath(page).stem
        blocks.append({"type": "actions", "elements": [button("Open the report", "report", name)]})
    seen = sentences.count(totals.endpoints, "endpoint")
    command = terminal_command("report", report.region)
    return [*blocks, context([f"{escape(f'{report.account} {report.region}', 100)} · {seen} · `{command}`"])]


def _buttons(proposal: Proposal, details: str) -> list[Block]:
    buttons: list[Block] = []
    if proposal.state is ProposalState.PENDING:
        buttons += _approvals(proposal) if proposal.approvable else []
        buttons += [_button("Reject", "reject", proposal, "danger"), snooze_menu(_value(proposal, menu=True))]
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
    made = button(text, verb, _value(proposal), style)
    if verb == "approve":
        warned = effects.untested_warning(proposal.recommendation)
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
            "text": plain(shorten(effects.test_confirmation(proposal.recommendation), 300)),
            "confirm": plain("Run the test"),
            "deny": plain("Cancel"),
        }
    if verb == "rollback" and proposal.state is ProposalState.APPROVED:
        again = "It is not proposed again for 90 days, unless the demand moves."
        stopped = f"What was approved for {proposal.ref.name} does not begin. {again}"
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


def _value(proposal: Proposal, *, menu: bool = False) -> str:
    """The id, and the revision that is shown: nobody approves what they did not see."""
    return f"{proposal.id}~{proposal.revision}" if proposal.revision or menu else proposal.id


def _commands(proposal: Proposal) -> list[str]:
    region, reject = proposal.ref.region, order_command("reject", proposal.id, proposal.ref.region)
    if proposal.state is ProposalState.PENDING:
        answers = [line for line, _ in effects.commands(proposal)] or [reject]
        return [f"At a terminal: {' · '.join(f'`{line}`' for line in answers)}"]
    if proposal.state is ProposalState.APPROVED and not proposal.asked_back_by:
        return [f"At a terminal: `{reject}` stops it"]
    if proposal.state in UNDOABLE and proposal.change_id:
        return [f"At a terminal: `{order_command('rollback', proposal.change_id, region)}`"]
    return []
