"""A person stops what was approved and has not begun: before its preflight, or between shadow test and change."""

from dataclasses import replace
from datetime import time, timedelta
from typing import Any, cast

import pytest

from rightsizer.changes.shadow_test_result import change_id_after, passed_test
from rightsizer.domain.change import ChangeState
from rightsizer.domain.policy import ChangeWindow
from rightsizer.domain.proposal import ProposalMoved, ProposalState
from rightsizer.errors import InputError
from rightsizer.flows.apply_orders import start_approved, start_lost_rollbacks
from rightsizer.flows.orders import Orders
from tests.changes.account import MONDAY, NAME, OLD
from tests.changes.memory import LIMITS, World, world
from tests.changes.test_test_first import asked, finished, follow_up, sure

LATER = ChangeWindow(start=time(MONDAY.hour + 1), end=time(MONDAY.hour + 4))


def order(w: World, by: str = "slack:U2") -> None:
    """What the button, and `rightsizer reject`, record on the row."""
    w.kept.proposals[w.proposal.id] = replace(w.shown(), asked_back_by=by, asked_back_at=w.now)


def delivered(w: World) -> list[str]:
    """The stream brings the row as it stands."""
    return start_approved(w.apply, [ProposalMoved("1", w.shown())], w.now)


def stopped(w: World) -> tuple[ProposalState, str]:
    return w.shown().state, w.account.config_name


def test_an_order_between_the_test_and_its_change_stops_the_change_and_is_told() -> None:
    w = asked()
    finished(w)
    order(w)
    assert delivered(w) == []
    sure(w)
    assert delivered(w) == []
    assert len(w.kept.changes) == 1
    assert stopped(w) == (ProposalState.REJECTED, OLD)
    assert w.told[-1] == (
        f"{NAME}: stopped before it began",
        "U2 stopped it before it began; nothing was changed",
    )
    assert w.kept.rollback_request(w.proposal.id) is None


def test_an_order_that_is_recorded_as_the_test_closes_is_not_lost() -> None:
    w = asked()
    w.start()
    w.until(lambda change: change.turned_at)
    order(w)  # the row has it, and no record of the stream arrives
    w.run(12)
    assert w.shown().state is ProposalState.APPROVED
    sure(w)
    assert delivered(w) == []
    assert stopped(w) == (ProposalState.REJECTED, OLD)
    assert len(w.kept.changes) == 1


def test_the_tick_finds_an_order_that_the_stream_lost() -> None:
    w = asked()
    finished(w)
    order(w)
    start_lost_rollbacks(w.apply, w.now, everything=False)
    assert stopped(w) == (ProposalState.REJECTED, OLD)


def test_a_change_that_waits_for_its_evaluation_is_stopped_by_the_order() -> None:
    w = asked()
    finished(w)
    w.start()
    order(w)
    assert delivered(w) == []
    sure(w)
    change = follow_up(w)
    assert (change.state, change.asked_back_by) == (ChangeState.REFUSED, "slack:U2")
    assert stopped(w) == (ProposalState.REJECTED, OLD)
    assert w.told[-1][0] == f"{NAME}: stopped before it began"


def test_an_approval_that_waits_for_the_window_is_stopped_by_the_order() -> None:
    w = world(limits=replace(LIMITS, window=ChangeWindow(days=frozenset({5}))))
    assert w.start().state is ChangeState.PLANNED
    order(w)
    assert delivered(w) == []
    assert w.change.state is ChangeState.REFUSED
    assert stopped(w) == (ProposalState.REJECTED, OLD)


def test_an_order_that_no_door_has_taken_stops_the_begin_all_the_same() -> None:
    w = world(limits=replace(LIMITS, window=LATER))
    w.start()
    order(w)
    w.advance(timedelta(hours=1, minutes=30))
    w.apply.tick(w.now)
    assert (w.change.state, w.account.done) == (ChangeState.REFUSED, [])
    assert delivered(w) == []
    assert w.kept.rollback_request(w.proposal.id) is None


def test_an_approval_with_an_order_begins_nothing() -> None:
    w = world()
    order(w)
    with pytest.raises(InputError, match="U2 asked to stop"):
        w.start()
    assert delivered(w) == []
    assert (len(w.kept.changes), w.shown().state) == (0, ProposalState.REJECTED)


def test_the_command_with_the_id_of_the_test_stops_the_change_that_waits() -> None:
    w = asked()
    test = finished(w)
    w.start()
    Orders(cast("Any", w.kept)).request_rollback(test.id, "cli:me", w.now)
    w.advance(timedelta(minutes=5))
    w.apply.tick(w.now)
    assert follow_up(w).state is ChangeState.REFUSED
    assert stopped(w) == (ProposalState.REJECTED, OLD)


def test_the_command_with_the_id_of_the_test_orders_it_on_the_proposal_where_no_change_is_there_yet() -> None:
    w = asked()
    test, recorded = finished(w), list[str]()
    orders = Orders(cast("Any", w.kept), stop=lambda proposal, by, at: recorded.append(f"{proposal} {by}"))
    orders.request_rollback(test.id, "cli:me", w.now)
    assert recorded == [f"{w.proposal.id} cli:me"]


def test_once_the_change_runs_the_id_of_its_test_takes_the_change_back() -> None:
    w = asked()
    test = finished(w)
    sure(w, w.now + timedelta(minutes=1))
    w.start()
    found = passed_test(test)
    assert found is not None
    Orders(cast("Any", w.kept)).request_rollback(test.id, "cli:me", w.now)
    assert w.kept.changes[change_id_after(found)].asked_back_by == "cli:me"


def test_the_message_about_a_test_that_passed_says_how_to_stop_what_follows() -> None:
    w = asked()
    finished(w)
    assert (
        f"until it begins, rightsizer reject {w.proposal.id} --region {w.proposal.ref.region} stops it"
        in w.shown().outcome
    )
