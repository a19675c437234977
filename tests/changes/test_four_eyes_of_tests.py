"""Who asked for a shadow test is not the only one who approves the change that follows it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rightsizer.domain.change import ChangeState
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code
from tests.changes.account import NAME, OLD
from tests.changes.memory import World
from tests.changes.test_test_first import TAGS, asked, finished, follow_up, sure
from tests.policies import document


def four_eyes() -> World:
    """An endpoint for which U1 asked for the test first, under the rule of four eyes."""
    return under_four_eyes(asked())


def under_four_eyes(w: World) -> World:
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


def decided_again(w: World, by: str, **decision: Any) -> None:
    """A day later the withdrawn proposal was asked again, under the same id, and somebody approved it plainly."""
    w.advance(timedelta(hours=30))
    sure(w, w.now)
    newest = w.kept.newest
    assert newest is not None
    made = Decision(ProposalState.APPROVED, by, w.now, **decision)
    w.kept.proposals[w.proposal.id] = replace(w.proposal, recommendation=newest, decision=made, change_id="")


def refused_after_the_test(w: World) -> World:
    finished(w)
    sure(w)
    w.start()
    assert follow_up(w).state is ChangeState.REFUSED
    assert w.shown().state is ProposalState.WITHDRAWN
    return w


def test_who_asked_for_the_test_does_not_approve_the_proposal_that_is_asked_again_after_it() -> None:
    w = refused_after_the_test(four_eyes())
    decided_again(w, "slack:U1")
    change = w.start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_APPROVER)
    assert w.account.config_name == OLD


def test_somebody_else_approves_the_proposal_that_is_asked_again_after_the_test() -> None:
    w = refused_after_the_test(four_eyes())
    decided_again(w, "slack:U2")
    change = w.start()
    assert (change.state, change.plan.kind) == (ChangeState.RUNNING, PlanKind.CHANGE), change.outcome
    assert w.start().id == change.id
    assert (w.shown().state, w.shown().change_id) == (ProposalState.APPLYING, change.id)


def test_a_person_who_tested_approves_again_where_something_else_than_four_eyes_refused_the_change() -> None:
    w = asked()
    finished(w)
    sure(w)
    w.account.endpoint_tags = {"rightsizer:mode": "report"}
    w.start()
    assert follow_up(w).state is ChangeState.REFUSED
    w.account.endpoint_tags = dict(TAGS)
    decided_again(w, "slack:U1")
    change = w.start()
    assert (change.state, change.plan.kind) == (ChangeState.RUNNING, PlanKind.CHANGE), change.outcome


def test_what_was_approved_after_the_test_is_stopped_before_it_begins() -> None:
    w = refused_after_the_test(four_eyes())
    decided_again(w, "slack:U2")
    w.kept.proposals[w.proposal.id] = replace(w.shown(), asked_back_by="slack:U2")
    assert w.apply.roll_back(w.shown(), w.now) is None
    assert w.shown().state is ProposalState.REJECTED


def test_a_test_that_is_decided_on_once_more_runs_once_more() -> None:
    w = refused_after_the_test(four_eyes())
    decided_again(w, "slack:U2", test_first=True)
    w.kept.proposals[w.proposal.id] = replace(w.shown(), recommendation=w.proposal.recommendation)
    w.kept.judge(replace(w.proposal.recommendation, evaluated_at=w.now))
    change = w.start()
    assert change.plan.kind is PlanKind.SHADOW_TEST, change.outcome
    assert change.id != w.change.id


def test_under_four_eyes_the_end_of_the_test_promises_no_change() -> None:
    w = four_eyes()
    finished(w)
    assert "by the same approval" not in w.shown().outcome
    assert "needs the approval of somebody else than U1, who asked for the test" in w.shown().outcome
    assert w.told[-1][0] == f"{NAME}: shadow test passed, somebody else approves the change"


def test_the_rule_of_four_eyes_that_came_while_the_test_ran_holds_for_the_change_after_it() -> None:
    w = asked()
    finished(w)
    w = under_four_eyes(w)
    sure(w)
    w.start()
    assert "four eyes: U1 asked for this" in follow_up(w).outcome
