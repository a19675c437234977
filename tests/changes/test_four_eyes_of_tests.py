"""Who asked for a shadow test is not the only one who approves the change that follows it."""

from dataclasses import replace

from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from tests.changes.account import OLD
from tests.changes.memory import World
from tests.changes.test_test_first import asked, finished, follow_up, sure
from tests.policies import document


def four_eyes() -> World:
    """An endpoint for which U1 asked for the test first, under the rule of four eyes."""
    w = asked()
    said = {"defaults": {"four_eyes": True, "approvers": ["U1", "U2"]}}
    return replace(w, apply=replace(w.apply, policy=document(said)))


def test_the_change_that_follows_a_test_does_not_begin_by_the_approval_of_whoever_asked_for_it() -> None:
    w = four_eyes()
    assert finished(w).state is ChangeState.ROLLED_BACK, "the test itself runs: it changes nothing for callers"
    sure(w)
    w.start()
    change = follow_up(w)
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_APPROVER)
    assert "four eyes: U1 asked for this" in change.outcome
    assert w.shown().state is ProposalState.WITHDRAWN
    assert w.account.config_name == OLD


def test_the_proposal_that_comes_after_the_test_needs_somebody_else_too() -> None:
    w = four_eyes()
    finished(w)
    sure(w)
    w.start()
    known = w.proposal
    assert known.decision is not None
    for user, refused in (("slack:U1", True), ("slack:U2", False)):
        fresh = replace(known, id=f"p-{user[-2:]}", decision=replace(known.decision, by=user, test_first=False))
        limits = w.apply.limits_of(follow_up(w))
        starter = w.apply._change_advancer(limits).beginning
        change = replace(follow_up(w), id="c-fresh", after=None, proposal_id=fresh.id)
        w.kept.proposals[fresh.id] = fresh
        found = starter._approved_proposal(change, limits)
        assert (getattr(found, "code", None) is Code.NOT_APPROVER) is refused
