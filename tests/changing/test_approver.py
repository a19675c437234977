"""An approval begins a change only while the list `Approvers` lets decide who gave it."""

from datetime import time, timedelta

import pytest

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.change import ChangeState
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from rightsizer.flows import apply_orders
from rightsizer.flows.orders import Orders
from tests.changing.world import world

HOME = "aws:111122223333"
DEV = "cli:arn:aws:sts::111122223333:assumed-role/dev/ml-oncall"
ONCALL = "cli:arn:aws:sts::111122223333:assumed-role/ml-oncall/ada"
LIST = ChangeLimits(probation=timedelta(hours=2), approvers=Approvers.listed("U1,role/ml-oncall", HOME))


@pytest.mark.parametrize("by", ["slack:U1", ONCALL])
def test_an_approval_of_somebody_on_the_list_is_carried_out(by: str) -> None:
    with world(limits=LIST, by=by) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN


def test_automatic_mode_needs_nobody_on_the_list() -> None:
    auto = {"rightsizer:mode": "auto"}
    with world(limits=LIST, by="policy", tags=auto, judged={"gate": Gate.APPLY}) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN


@pytest.mark.parametrize("by", [DEV, "slack:U2", "somebody", "cli:role/ml-oncall"])
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
        apply_orders.take_up(w.apply, w.now)
        assert w.shown().state is ProposalState.WITHDRAWN


def test_an_approval_without_a_decision_is_nobodys() -> None:
    with world(limits=LIST, proposed={"decision": None}) as w:
        assert w.start().state is ChangeState.REFUSED


def test_without_a_list_every_recorded_approval_is_carried_out() -> None:
    with world(by=DEV) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN


def test_who_left_the_list_while_the_change_waited_for_its_window_does_not_begin_it() -> None:
    window = ChangeWindow(days=frozenset({5}), start=time(8), end=time(18))
    limits = ChangeLimits(window=window, approvers=LIST.approvers)
    with world(limits=limits, by=ONCALL) as w:
        assert w.start().state is ChangeState.PLANNED
        object.__setattr__(limits, "approvers", Approvers.listed("U1", HOME))
        assert w.run(24 * 6).state is ChangeState.REFUSED
        assert w.shown().state is ProposalState.WITHDRAWN


def test_an_order_to_go_back_is_carried_out_whoever_gave_it() -> None:
    with world(limits=LIST, by=ONCALL) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN
        Orders(w.journal).ask_back(w.change.id, DEV, w.now)
        assert w.run(6).state is ChangeState.ROLLED_BACK
