"""An errand as a Slack message, as plain text and as a page: the same buttons and the same answers as a proposal."""

from collections.abc import Sequence

from rightsizer.domain.capacity_change import ByHand, Errand
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import one_line
from rightsizer.render import blocks as kit
from rightsizer.render import text
from rightsizer.render.html import facts, page, section, tag
from rightsizer.render.sentences import when, who


def line(asked: Errand) -> str:
    """One line for the notification."""
    whole = asked.headline if asked.state is ProposalState.PENDING else f"{asked.headline}. {standing(asked)}"
    return kit.escaped(whole, kit.SECTION)


def plain(asked: Errand, details: str = "") -> tuple[str, str]:
    """Subject and body of the plain text."""
    lines = [asked.headline, standing(asked), "", f"Why:     {asked.reason}"]
    lines += [f"{name}: {said}" for name, said in _facts(asked)]
    lines += [f"Not checked: {'; '.join(asked.not_checked)}"] if asked.not_checked else []
    lines += ["", f"The request: {asked.command}"] if asked.command else []
    lines += [f"To roll it back: {asked.undo}"] if asked.undo else []
    lines += ["", *_answers(asked)] if asked.state is ProposalState.PENDING else []
    lines += text.stored("Details", details)
    return one_line(f"rightsizer: {asked.headline}"), text.body(lines)


def html(asked: Errand) -> str:
    """The details page."""
    return page(
        asked.headline,
        tag("h1", asked.headline),
        tag("p", standing(asked), class_="soft"),
        section("Why", tag("p", asked.reason.sentence)),
        section("Figures", facts(list(_facts(asked)))),
        section("Not checked", tag("p", "; ".join(asked.not_checked) or "nothing left out")),
        section("The request", tag("pre", asked.command or "nothing can be sent")),
        section("Rollback", tag("pre", asked.undo or "none is needed")),
    )


def standing(errand: Errand) -> str:
    """Where the errand stands, in one sentence; its own words follow."""
    by = f" by {who(errand.decision.by)}" if errand.decision else ""
    words = {
        ProposalState.PENDING: f"Waiting for an answer until {when(errand.expires_at)}.",
        ProposalState.APPROVED: f"Approved{by}. It starts within minutes.",
        ProposalState.REJECTED: f"Rejected{by}.",
        ProposalState.SNOOZED: f"Snoozed{by}. It comes back after 30 days if it still helps.",
        ProposalState.EXPIRED: f"Expired after it was approved{by}." if by else "Expired without an answer.",
        ProposalState.WITHDRAWN: "Withdrawn.",
        ProposalState.APPLYING: f"Being carried out; approved{by}.",
        ProposalState.APPLIED: "Done.",
        ProposalState.PROVEN: "Done and proven.",
        ProposalState.ROLLED_BACK: "Rolled back: it is as it was before the change.",
        ProposalState.HANDED_OVER: "Handed over to a person: rightsizer changes nothing more here.",
    }
    return f"{words[errand.state]} {one_line(errand.outcome)}".strip()


def blocks(errand: Errand, details: str = "") -> list[kit.Block]:
    """The message of an errand as it stands. `details` is where its page is kept, empty where it is not."""
    found = [
        kit.header(errand.headline),
        kit.section(f"*{kit.escaped(standing(errand), kit.SECTION - 100)}*"),
        kit.fields(list(_facts(errand))),
        kit.section(kit.escaped(errand.reason.sentence, kit.SECTION)),
    ]
    if errand.not_checked:
        found.append(kit.context([kit.escaped(f"not checked: {'; '.join(errand.not_checked)}", kit.FIELD)]))
    pending = errand.state is ProposalState.PENDING
    if errand.command and isinstance(errand.work, ByHand):
        found.append(kit.section(kit.code(errand.command, 2500)))
    if pending and not errand.approvable:
        enable = kit.code(errand.enable or "ask whoever runs rightsizer", 2500)
        found.append(kit.section(f"*It cannot be approved yet.* To allow it:\n{enable}"))
    buttons: list[kit.Block] = []
    if pending and errand.approvable:
        buttons.append(kit.button("Approve", "approve", errand.id, "primary"))
    if pending:
        buttons.append(kit.button("Reject", "reject", errand.id, "danger"))
        buttons.append(kit.button("Snooze 30 days", "snooze", errand.id))
    if details:
        buttons.append(kit.button("Details", "details", errand.id))
    if buttons:
        found.append({"type": "actions", "block_id": f"decide_{errand.id}"[:255], "elements": buttons})
    return found


def _facts(errand: Errand) -> Sequence[tuple[str, str]]:
    facts = (*errand.facts, ("Owner", errand.owner or "nobody is named (tag rightsizer:owner)"))
    return [(one_line(name), one_line(said)) for name, said in facts]


def _answers(errand: Errand) -> list[str]:
    if errand.approvable:
        return ["Answer with:", f"  rightsizer approve {errand.id}", f'  rightsizer reject {errand.id} --reason "..."']
    return [f"It cannot be approved yet. To allow it: {errand.enable}"]
