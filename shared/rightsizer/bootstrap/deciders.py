"""Who may decide on one proposal or change, by the stack's list and the policy document, for Slack and the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightsizer.aws import decisions
from rightsizer.aws.table import document as document_of
from rightsizer.changes.approval import approver_refusal
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.environment import Environment
from rightsizer.domain.policy_document import PolicyDocument, Subject, effective_approvers, lists_of_approvers
from rightsizer.domain.proposal import DecidedBy, DecisionSource
from rightsizer.errors import NotApproverError

if TYPE_CHECKING:
    from rightsizer.aws.decisions import RowSource
    from rightsizer.aws.table import Row

type Lists = tuple[Approvers, PolicyDocument]
"""The stack's list, and the policy document that may say others."""


def slack_approvers(base: Approvers, policy: PolicyDocument) -> frozenset[str]:
    """Slack users who may decide on something; which of them decides on what, `require_decider` says."""
    return frozenset[str]().union(*(approvers.slack_users for approvers in lists_of_approvers(base, policy)))


def require_any_list(by: str, lists: Lists) -> None:
    """Let nobody give an order whom no list at all lets decide: NotApproverError.

    Lists that cannot be understood pass here: an order that only goes back needs none of them (`require_of_list`).
    """
    refusals = [approver_refusal(by, approvers) for approvers in lists_of_approvers(*lists) if not approvers.unreadable]
    if refusals and all(refusals):
        raise NotApproverError(f"nothing was recorded: {refusals[0].sentence if refusals[0] else by}")


def require_decider(table: RowSource, proposal_id: str, by: str, lists: Lists, *, approves: bool = False) -> None:
    """Let nobody decide on a proposal whom its own list does not let: NotApproverError. One that is not there passes.

    `approves`: the decision lets something begin, so that the rule of four eyes counts. The environment is the one that
    the last evaluation saw; `apply` asks again by the tags as they are then.
    """
    if not lists[1]:
        return  # the stack's list alone, which was asked before
    row = decisions.find(table, proposal_id)
    if row is None:
        return
    approvers = effective_approvers(*lists, subject_of_row(row))
    require_of_list(approvers, by, approves, str(document_of(row).get("ordered_by") or ""))


def refusal_by_document(table: RowSource, proposal_id: str, by: str, lists: Lists) -> str:
    """Why the policy document's list of a proposal does not let `by` decide; empty where the stack's list says it.

    Without a proposal, as of a wake, the list of `defaults` answers.
    """
    row = decisions.find(table, proposal_id) if proposal_id else None
    subject = subject_of_row(row) if row is not None else Subject()
    approvers = effective_approvers(*lists, subject)
    refusal = approver_refusal(by, approvers) if approvers.place else None
    return refusal.sentence if refusal is not None else ""


def require_of_list(approvers: Approvers, by: str, approves: bool, ordered_by: str = "") -> None:
    """Let nobody decide whom this list does not let: NotApproverError.

    Where the list cannot be understood nobody approves, and nobody decides in Slack. At a terminal IAM alone says then
    who rejects and who goes back: a mistake in the document shall not keep a change that does harm.
    """
    if approvers.unreadable and not approves and DecidedBy.read(by).source is DecisionSource.CLI:
        return
    refusal = approver_refusal(by, approvers, approves=approves, asked_by=(ordered_by,))
    if refusal is not None:
        raise NotApproverError(f"nothing was recorded: {refusal.sentence}")


def subject_of_row(row: Row) -> Subject:
    """The endpoint or capacity change of a stored row, as values are asked for; production where the row says none.

    A capacity change has a `kind` and follows `defaults`, as in `apply`.
    """
    if "kind" in row:
        return Subject()
    found = document_of(row).get("recommendation")
    known = found if isinstance(found, dict) else {}
    reading = known.get("environment")
    text = str(reading.get("environment", "")) if isinstance(reading, dict) else ""
    environment = Environment(text) if text in tuple(Environment) else Environment.PRODUCTION
    return Subject(environment, str(known.get("owner") or ""))
