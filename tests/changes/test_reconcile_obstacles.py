"""Each obstacle before a write has its sentence, its class, and the moment until which it holds."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.reconcile.steps import (
    REPLANS,
    approval_age_reason,
    expiry_action,
    give_back_action,
    may_be_updating,
    refuse_action,
    unsettled_action,
)
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, Hold, LiveState, VariantSight
from rightsizer.domain.next_action import NextAction, Replan, Steer, Wait
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_reconcile import CLEAR, NOW, PLAN, SETTLE, TURN, WHO, change_after

OURS = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 1, 2)
"""Autoscaling as the plan would give it back."""
LATE = NOW + timedelta(days=8)


def seen(count: int = 1, weight: float = 1.0, *, hold: Hold | None = None, **known: Any) -> LiveState:
    endpoint = EndpointSight("InService", "old", NOW, "", "", (VariantSight("v", count, count, weight, weight),))
    return LiveState(endpoint, hold=hold, **({"scaling": (OURS,)} | known))


def meets(change: Change, live: LiveState, *, touched: bool = False, minutes: float = 0) -> NextAction | None:
    assert isinstance(live.endpoint, EndpointSight)
    return unsettled_action(change, live, live.endpoint, NOW + timedelta(minutes=minutes), touched)


MOVED = "the fleet moved since the plan: it was v 1 x weight 1 and is v 2 x weight 0.5"


def before(*scaling: ScalableTarget) -> Change:
    change = change_after()
    assert change.before is not None
    return replace(change, before=replace(change.before, scaling=scaling))


def test_nothing_stands_against_a_write_on_what_was_planned() -> None:
    assert meets(before(OURS), seen()) is None
    assert meets(change_after(CLEAR), seen(scaling=()), touched=True) is None


def test_a_fleet_that_moved_is_planned_again_with_both_fleets_named() -> None:
    assert meets(before(OURS), seen(2, 0.5)) == Replan(Reason(Code.CHANGED_SINCE, MOVED))


def test_autoscaling_that_was_edited_is_planned_again_with_what_was_edited() -> None:
    edited = seen(scaling=(replace(OURS, maximum=9),))
    said = f"autoscaling was edited since the plan: {PLAN.restore[0].key}"
    assert meets(before(OURS), edited) == Replan(Reason(Code.CHANGED_SINCE, said))
    assert meets(replace(before(OURS), before=None), edited) is None
    untaken = before(OURS)
    assert meets(replace(untaken, plan=replace(untaken.plan, clear=())), edited) is None, "nothing is taken away"
    both = seen(2, 0.5, scaling=(replace(OURS, maximum=9),))
    assert meets(before(OURS), both) == Replan(Reason(Code.CHANGED_SINCE, MOVED)), "the fleet is told first"


def test_what_moves_after_every_plan_is_refused_with_how_often_it_was_planned() -> None:
    for plans in (REPLANS, REPLANS + 1):
        lines = tuple(Entry(NOW, JournalEvent.PLAN, "noted") for _ in range(plans))
        found = meets(replace(before(OURS), journal=lines), seen(2, 0.5))
        if plans == REPLANS:
            assert isinstance(found, Replan)
        else:
            text = f"{MOVED}; it was planned 6 times and moved each time"
            assert found == refuse_action(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    other = tuple(Entry(NOW, JournalEvent.STEER, "noted") for _ in range(9))
    assert isinstance(meets(replace(before(OURS), journal=other), seen(2, 0.5)), Replan)


def test_a_fleet_that_moved_after_autoscaling_was_taken_away_gives_it_back() -> None:
    assert meets(change_after(CLEAR), seen(2, 0.5, scaling=None), touched=True) == give_back_action(
        Code.CHANGED_SINCE, MOVED, FailureClass.OUTSIDE
    )


def with_plan(**plan: Any) -> Change:
    known = before(OURS)
    return replace(known, plan=replace(known.plan, **plan))


def test_counts_are_compared_only_where_the_change_would_set_them() -> None:
    keeps = replace(TURN, params={**TURN.params, "RetainAllVariantProperties": True})
    for change in (with_plan(turn=None), with_plan(kind=PlanKind.SHADOW_TEST), with_plan(turn=keeps)):
        assert meets(change, seen(2, 0.5)) is None


def test_a_deletion_writes_nothing_that_an_obstacle_could_hold() -> None:
    assert meets(with_plan(kind=PlanKind.DELETE), seen(2, 0.5)) is None


def sent(minutes: float = 10, *, status: Any = "done") -> Change:
    known = before(OURS)
    return replace(known, journal=(Entry(NOW - timedelta(minutes=minutes), TURN.key, status),))


def test_an_update_that_may_still_show_is_waited_for_whatever_moved() -> None:
    tail = "; the update that was asked already may still show until 09:50 UTC, and is not asked again"
    until = NOW + timedelta(minutes=50)
    assert meets(sent(), seen(2, 0.5)) == Wait(until, MOVED + tail)
    assert meets(sent(), seen()) is None
    hold = Hold(NOW + timedelta(hours=2), Reason(Code.OUTSIDE_WINDOW, "the window opens later"))
    assert meets(sent(), seen(hold=hold)) == Wait(until, f"the window opens later{tail}")
    taken = meets(sent(), seen(2, 0.5, scaling=()), touched=True)
    assert isinstance(taken, Steer), "autoscaling goes back at once"


def test_a_window_and_an_incident_are_waited_for_no_longer_than_the_approval_lasts() -> None:
    change = before(OURS)
    for until, wanted in ((NOW + timedelta(hours=2), NOW + timedelta(hours=2)), (LATE, change.expires_at)):
        for code in (Code.OUTSIDE_WINDOW, Code.INCIDENT):
            hold = Hold(until, Reason(code, "not now"))
            assert meets(change, seen(2, 0.5, hold=hold)) == Wait(wanted, "not now")


def test_what_began_in_its_window_is_finished_after_it_and_not_into_an_incident() -> None:
    change = change_after(CLEAR)
    window = Hold(LATE, Reason(Code.OUTSIDE_WINDOW, "the window opens later"))
    assert meets(change, seen(scaling=(), hold=window), touched=True) is None
    moved = meets(change, seen(2, 0.5, scaling=(), hold=window), touched=True)
    assert moved == give_back_action(Code.CHANGED_SINCE, MOVED, FailureClass.OUTSIDE)
    incident = Hold(LATE, Reason(Code.INCIDENT, "pager is firing"))
    found = meets(change, seen(scaling=(), hold=incident), touched=True)
    assert found == give_back_action(Code.INCIDENT, "pager is firing", FailureClass.NONE)


def test_a_target_that_is_still_listed_is_waited_for_three_minutes_and_then_it_is_the_owners() -> None:
    change = change_after(CLEAR)
    until = NOW + timedelta(minutes=2)
    listed = f"autoscaling of {WHO['ResourceId']} is still listed after it was taken away"
    assert meets(change, seen(), touched=True) == Wait(until, listed)
    theirs = meets(change, seen(), touched=True, minutes=2)
    text = f"somebody registered autoscaling of {WHO['ResourceId']} again, which is left as it is"
    assert theirs == Steer(
        Reason(Code.CHANGED_SINCE, text), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE
    )
    assert meets(change, seen(scaling=None), touched=True, minutes=9) is None, "nobody looked"


def test_a_target_where_the_plan_adds_its_own_is_planned_around() -> None:
    change = with_plan(turn=None, clear=())
    added = replace(change, before=replace(before().before, scaling=()))  # type: ignore[type-var]
    found = meets(added, seen())
    said = f"somebody registered autoscaling of {SETTLE.subject} since the plan"
    assert found == Replan(Reason(Code.CHANGED_SINCE, said))
    assert meets(added, seen(scaling=())) is None
    assert meets(added, seen(scaling=None)) is None


def waiting(*entries: Entry, **plan: Any) -> Change:
    known = with_plan(**plan)
    return replace(known, journal=entries, outcome="the window is closed")


EXPIRED = "it waited 7 days from its approval of Mon 2 Nov 2026, 08:00 UTC and could not start: the window is closed"


def test_an_approval_that_became_too_old_tells_when_it_was_given_and_what_it_waited_for() -> None:
    change = waiting()
    assert approval_age_reason(change, change.expires_at) == Reason(Code.EXPIRED, EXPIRED)
    assert approval_age_reason(change, change.expires_at - timedelta(seconds=1)) is None
    assert expiry_action(change, change.expires_at - timedelta(seconds=1)) is None


def test_an_approval_that_became_too_old_before_any_write_is_refused_and_after_one_is_taken_back() -> None:
    late = Reason(Code.EXPIRED, EXPIRED)
    assert expiry_action(waiting(), LATE) == Steer(late, Course.CLOSE, ChangeState.REFUSED)
    took = waiting(Entry(NOW, CLEAR.key, "done"))
    assert expiry_action(took, LATE) == Steer(
        Reason(Code.EXPIRED, f"{EXPIRED}; autoscaling goes back as it was"), Course.CLOSE, ChangeState.ROLLED_BACK
    )


@pytest.mark.parametrize(
    ("change", "may"),
    [
        (waiting(), False),
        (waiting(Entry(LATE - timedelta(minutes=9), TURN.key, "done")), True),
        (waiting(Entry(LATE - timedelta(minutes=90), TURN.key, "done")), False),
        (waiting(turn=None), False),
        (waiting(Entry(NOW, SETTLE.key, "done"), turn=None), True),
        (waiting(Entry(NOW, SETTLE.key, "failed", "refused:quota:no"), turn=None), False),
    ],
)
def test_an_update_may_have_begun_where_it_may_still_show_and_without_one_where_a_step_was_made(
    change: Change, may: bool
) -> None:
    assert may_be_updating(change, LATE) is may
    assert (expiry_action(change, LATE) is None) is may
