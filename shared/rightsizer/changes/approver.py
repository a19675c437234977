"""Whether the stack's list `Approvers` lets somebody decide."""

from rightsizer.domain.approvers import Approvers, Caller
from rightsizer.domain.reason import Code, Reason

AUTOMATIC = "policy"
"""Who decides in automatic mode: the tag of the endpoint's owner, not a person."""
SHOWN = 10
"""Entries of a list that a sentence names."""


def stranger(by: str, approvers: Approvers) -> Reason | None:
    """Why the list does not let `by` (``slack:U1``, ``cli:ARN``) decide; None where it does, or where there is no list.

    `by` is what the decision claims. Automatic mode is held by other rules.
    """
    if not approvers.entries or by == AUTOMATIC:
        return None
    where, _, who = by.partition(":")
    if where == "slack":
        text = f"the Slack user {who[:80]} is not on the list Approvers"
        return None if who in approvers.slack else Reason(Code.NOT_APPROVER, text)
    caller = Caller.of(who) if where == "cli" else None
    if caller is not None and approvers.name(caller):
        return None
    if caller is None:
        who = f"{who or by or 'nobody'}"[:200]
        return Reason(Code.NOT_APPROVER, f"{who} is no identity that the list Approvers can name; {_listed(approvers)}")
    entry = caller.entry(approvers.home)
    return Reason(
        Code.NOT_APPROVER,
        f"{entry if entry == who else f'{entry} ({who})'} is not on the list Approvers; {_listed(approvers)}; "
        f"whoever deploys rightsizer adds {entry} to the stack's parameter Approvers"
        + (", or somebody on the list answers in Slack" if approvers.slack else ""),
    )


def _listed(approvers: Approvers) -> str:
    names = approvers.terminal
    if not names:
        return "the list names Slack users only, so that nobody decides at a terminal"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"at a terminal it lets {', '.join(names[:SHOWN])}{more} decide"
