"""An approval begins a change only while the list `Approvers` lets decide who gave it."""

from datetime import timedelta

import pytest

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.change import ChangeState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.flows import apply_orders
from tests.changing.world import world

HOME = "aws:111122223333"
DEV = "cli:arn:aws:sts::111122223333:assumed-role/dev/ml-oncall"
LIST = ChangeLimits(probation=timedelta(hours=2), approvers=Approvers.parse("U1,role/ml-oncall", HOME))


@pytest.mark.parametrize("by", [DEV, "slack:U2"])
def test_an_approval_of_somebody_else_is_withdrawn_with_the_reason_and_touches_nothing(by: str) -> None:
    with world(limits=LIST, by=by) as w:
        before = len(w.box.calls)
        change = w.start()
        shown = w.shown()
        assert {call.service for call in list(w.box.calls)[before:]} == {"dynamodb"}
    assert change.state is ChangeState.REFUSED
    assert change.reason is not None
    assert change.reason.code is Code.NOT_APPROVER
    assert shown.state is ProposalState.WITHDRAWN
    assert "not on the list Approvers" in shown.outcome or "no identity that the list" in shown.outcome
    assert any("list Approvers" in text for _, text in w.told)


def test_the_tick_that_finds_a_lost_approval_asks_the_list_too() -> None:
    with world(limits=LIST, by=DEV) as w:
        apply_orders.start_lost_approvals(w.apply, w.now)
        assert w.shown().state is ProposalState.WITHDRAWN
