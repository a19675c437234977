"""The list of approvers, asked about one person: who may decide, and who needs somebody else to approve.

The one place for Slack, the terminal and `apply`. It loads little, since the function that answers clicks asks it too.
"""

from collections.abc import Sequence

from rightsizer.domain.approvers import Approvers, Caller, may_decide
from rightsizer.domain.proposal import DecidedBy, DecisionSource
from rightsizer.domain.reason import Code, Reason

SHOWN = 10
"""Entries of a list that a sentence names."""


def approver_refusal(
    by: str, approvers: Approvers, *, approves: bool = False, asked_by: Sequence[str] = ()
) -> Reason | None:
    """Why the list does not let `by` (``slack:U1``, ``cli:ARN``) decide; None where it does.

    `by` is what the decision claims. `approves`: it lets something begin, so that the rule of four eyes counts;
    `asked_by` asked for the test or the order that is approved. Automatic mode is held by other rules. An empty list
    lets whoever decided at a terminal, where IAM is the wall, and nobody who decided in Slack (`may_decide`): who
    empties the list takes everybody off it.
    """
    decider = DecidedBy.read(by)
    if decider.source is DecisionSource.POLICY:
        return None
    if approvers.unreadable:
        return Reason(Code.NOT_APPROVER, f"nobody decides until it is put right: {approvers.unreadable}")
    who = decider.person
    is_slack = decider.source is DecisionSource.SLACK
    caller = Caller.from_arn(who) if decider.source is DecisionSource.CLI else None
    is_listed = who in approvers.slack_users if is_slack else caller is not None and approvers.has_entry_for(caller)
    if may_decide(is_listed=is_listed, has_list=bool(approvers.entries), is_behind_iam=not is_slack):
        return _four_eyes_refusal(decider, approvers, asked_by) if approves and approvers.four_eyes else None
    if is_slack:
        empty = "" if approvers.entries else ", which is empty, so that nobody decides in Slack"
        return Reason(Code.NOT_APPROVER, f"the Slack user {who[:80]} is not on {approvers.title}{empty}")
    if caller is None:
        who = f"{who or by or 'nobody'}"[:200]
        text = f"{who} is no identity that {approvers.title} can name; {_approvers_text(approvers)}"
        return Reason(Code.NOT_APPROVER, text)
    entry = caller.entry(approvers.home)
    where = f"{approvers.place} of the policy document" if approvers.place else "the stack's parameter Approvers"
    return Reason(
        Code.NOT_APPROVER,
        f"{entry if entry == who else f'{entry} ({who})'} is not on {approvers.title}; {_approvers_text(approvers)}; "
        f"whoever deploys rightsizer adds {entry} to {where}"
        + (", or somebody on the list answers in Slack" if approvers.slack_users else ""),
    )


def _four_eyes_refusal(decider: DecidedBy, approvers: Approvers, asked_by: Sequence[str]) -> Reason | None:
    """Why somebody on the list may not be the only one who approves: they own it, or asked for it themselves."""
    asked = any(is_same_person(decider, DecidedBy.read(each)) for each in asked_by if each)
    if not asked and not approvers.is_owner(decider.person):
        return None
    why = "asked for this" if asked else "owns what is decided on"
    text = f"four eyes: {decider.person[:200]} {why}, so that somebody else on {approvers.title} has to approve"
    return Reason(Code.NOT_APPROVER, text)


def is_same_person(decider: DecidedBy, other: DecidedBy) -> bool:
    """Whether two deciders may be one person: the same Slack user, or the same AWS role or user.

    Sessions of one role count as one person, since whoever assumes a role chooses the name of the session. A Slack user
    and an AWS identity are not known to be one person.
    """
    if decider.source is not other.source:
        return False
    callers = Caller.from_arn(decider.person), Caller.from_arn(other.person)
    if callers[0] is not None and callers[1] is not None:
        return (callers[0].home, callers[0].what) == (callers[1].home, callers[1].what)
    return decider.person == other.person


def _approvers_text(approvers: Approvers) -> str:
    names = approvers.terminal_entries
    if not names:
        return "the list names Slack users only, so that nobody decides at a terminal"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"at a terminal it lets {', '.join(names[:SHOWN])}{more} decide"
