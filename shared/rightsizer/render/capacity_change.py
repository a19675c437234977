"""A capacity change as a Slack message, as plain text and as a page: the same buttons and the same answers as a
proposal.
"""

from collections.abc import Sequence

from rightsizer.domain.capacity_change import CapacityChange, ManualStep
from rightsizer.domain.plan import order_command
from rightsizer.domain.proposal import USUAL_SNOOZE, ProposalState, decider_name
from rightsizer.domain.reason import one_line
from rightsizer.render import blocks as kit
from rightsizer.render import text
from rightsizer.render.html import facts, page, section, tag
from rightsizer.render.sentences import time_text


def line(capacity_change: CapacityChange) -> str:
    """One line for the notification."""
    whole = (
        capacity_change.headline
        if capacity_change.state is ProposalState.PENDING
        else f"{capacity_change.headline}. {standing_sentence(capacity_change)}"
    )
    return kit.escape(whole, kit.SECTION)


def plain(capacity_change: CapacityChange, details: str = "") -> tuple[str, str]:
    """Subject and body of the plain text."""
    lines = [capacity_change.headline, standing_sentence(capacity_change), "", f"Why:     {capacity_change.reason}"]
    lines += [f"{name}: {said}" for name, said in _facts(capacity_change)]
    lines += [f"Not checked: {'; '.join(capacity_change.not_checked)}"] if capacity_change.not_checked else []
    lines += ["", f"The request: {capacity_change.command}"] if capacity_change.command else []
    lines += [f"To roll it back: {capacity_change.undo_command}"] if capacity_change.undo_command else []
    lines += ["", *_answers(capacity_change)] if capacity_change.state is ProposalState.PENDING else []
    lines += text.stored_lines("Details", details)
    return one_line(f"rightsizer: {capacity_change.headline}"), text.body(lines)


def html(capacity_change: CapacityChange) -> str:
    """The details page."""
    return page(
        capacity_change.headline,
        tag("h1", capacity_change.headline),
        tag("p", standing_sentence(capacity_change), class_="soft"),
        section("Why", tag("p", capacity_change.reason.sentence)),
        section("Figures", facts(list(_facts(capacity_change)))),
        section("Not checked", tag("p", "; ".join(capacity_change.not_checked) or "nothing left out")),
        section("The request", tag("pre", capacity_change.command or "nothing can be sent")),
        section("Rollback", tag("pre", capacity_change.undo_command or "none is needed")),
    )


def standing_sentence(capacity_change: CapacityChange) -> str:
    """Where the capacity change stands, in one sentence; its own words follow."""
    by = f" by {decider_name(capacity_change.decision.by)}" if capacity_change.decision else ""
    words = {
        ProposalState.PENDING: f"Waiting for an answer until {time_text(capacity_change.expires_at)}.",
        ProposalState.APPROVED: f"Approved{by}. It starts within minutes.",
        ProposalState.REJECTED: f"Rejected{by}.",
        ProposalState.SNOOZED: f"Snoozed{by}. It comes back after {_snoozed(capacity_change)} days if it still helps.",
        ProposalState.EXPIRED: f"Expired after it was approved{by}." if by else "Expired without an answer.",
        ProposalState.WITHDRAWN: "Withdrawn.",
        ProposalState.APPLYING: f"Being carried out; approved{by}.",
        ProposalState.APPLIED: "Done.",
        ProposalState.PROVEN: "Done and proven.",
        ProposalState.ROLLED_BACK: "Rolled back: it is as it was before the change.",
        ProposalState.HANDED_OVER: "Handed over to a person: rightsizer changes nothing more here.",
    }
    return f"{words[capacity_change.state]} {one_line(capacity_change.outcome)}".strip()


def blocks(capacity_change: CapacityChange, details: str = "") -> list[kit.Block]:
    """The message of a capacity change as it stands. `details` is where its page is kept, empty where it is not."""
    found = [
        kit.header(capacity_change.headline),
        kit.section(f"*{kit.escape(standing_sentence(capacity_change), kit.SECTION - 100)}*"),
        kit.fields(list(_facts(capacity_change))),
        kit.section(kit.escape(capacity_change.reason.sentence, kit.SECTION)),
    ]
    if capacity_change.not_checked:
        found.append(kit.context([kit.escape(f"not checked: {'; '.join(capacity_change.not_checked)}", kit.FIELD)]))
    pending = capacity_change.state is ProposalState.PENDING
    if capacity_change.command and isinstance(capacity_change.work, ManualStep):
        found.append(kit.section(kit.code(capacity_change.command, 2500)))
    if pending and not capacity_change.approvable:
        enable = kit.code(capacity_change.enable or "ask whoever runs rightsizer", 2500)
        found.append(kit.section(f"*It cannot be approved yet.* To allow it:\n{enable}"))
    buttons: list[kit.Block] = []
    if pending and capacity_change.approvable:
        buttons.append(kit.button("Approve", "approve", capacity_change.id, "primary"))
    if pending:
        buttons.append(kit.button("Reject", "reject", capacity_change.id, "danger"))
        buttons.append(kit.snooze_menu(f"{capacity_change.id}~0"))
    if details:
        buttons.append(kit.button("Details", "details", capacity_change.id))
    if buttons:
        found.append({"type": "actions", "block_id": f"decide_{capacity_change.id}"[:255], "elements": buttons})
    return found


def _snoozed(capacity_change: CapacityChange) -> int:
    return capacity_change.decision.snooze_days if capacity_change.decision else USUAL_SNOOZE


def _facts(capacity_change: CapacityChange) -> Sequence[tuple[str, str]]:
    facts = (*capacity_change.facts, ("Owner", capacity_change.owner or "nobody is named (tag rightsizer:owner)"))
    return [(one_line(name), one_line(said)) for name, said in facts]


def _answers(capacity_change: CapacityChange) -> list[str]:
    if capacity_change.approvable:
        return [
            "Answer with:",
            f"  {order_command('approve', capacity_change.id, capacity_change.region)}",
            f'  {order_command("reject", capacity_change.id, capacity_change.region)} --reason "..."',
        ]
    return [f"It cannot be approved yet. To allow it: {capacity_change.enable}"]
