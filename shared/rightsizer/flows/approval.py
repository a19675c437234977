"""Which change an approval leads to."""

import hashlib

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.proposal import Proposal


def change_id_of(proposal: Proposal, *, again: bool = False) -> str:
    """One approval leads to one change, however often it is delivered; `again` names the change of a later approval."""
    said = f"{proposal.id}@{proposal.decision.at.isoformat()}" if again and proposal.decision else proposal.id
    return "c-" + hashlib.sha256(said.encode()).hexdigest()[:16]


def approved_again(proposal: Proposal, known: Change) -> bool:
    """Whether somebody approved the proposal after its first change was made and refused.

    A refused proposal is withdrawn and may be asked again under the same id. Nothing was written for the refused
    change, so that the later approval is a change of its own.
    """
    decision = proposal.decision
    return known.state is ChangeState.REFUSED and decision is not None and decision.at > known.created_at
