"""What must still be so right before the first write that the endpoint feels."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.reconcile import next_action
from rightsizer.changes.reconcile.steps import SHOWS
from rightsizer.domain.change import Change, ChangeState, Course, Entry
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import AlarmSight, EndpointSight, Hold, LiveState, VariantSight
from rightsizer.domain.next_action import Do, Replan, Steer, Wait
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_reconcile import ALARM, CLEAR, CONFIG, NOW, PLAN, RESTORE, TIDY, TURN, WHO, change_after

LIVE = ScalableTarget(WHO["ResourceId"], WHO["ScalableDimension"], 1, 2)


def _sight(count: int = 1, weight: float = 1.0, scaling: tuple[ScalableTarget, ...] = (LIVE,)) -> LiveState:
    variant = VariantSight("v", count, count, weight, weight)
    return LiveState(
        EndpointSight("InService", "old", NOW - timedelta(days=9), "", "", (variant,)),
        configs=frozenset({"new"}),
        scaling=scaling,
        alarms={"a": AlarmSight("a", "OK", {"AlarmName": "a"})},
    )


READY = change_after(CONFIG, ALARM)
CLEARED = change_after(CONFIG, ALARM, CLEAR)
FROM_WINDOW = Hold(NOW + timedelta(hours=3), Reason(Code.OUTSIDE_WINDOW, "the window opens later"))
FROM_INCIDENT = Hold(NOW + timedelta(minutes=30), Reason(Code.INCIDENT, "pager is firing"))


def test_a_ground_that_stayed_lets_the_change_go_on() -> None:
    assert next_action(READY, _sight(), NOW, Switch()) == Do(CLEAR)
    assert next_action(CLEARED, _sight(scaling=()), NOW, Switch()) == Do(TURN)


@given(st.integers(0, 20), st.sampled_from([0.5, 1.0, 2.0]), st.booleans())
def test_no_write_is_felt_by_a_fleet_that_is_not_the_planned_one(count: int, weight: float, cleared: bool) -> None:
    live = _sight(count, weight, () if cleared else (LIVE,))
    move = next_action(CLEARED if cleared else READY, live, NOW, Switch())
    if (count, weight) == (1, 1.0):
        assert isinstance(move, Do)
    elif cleared:
        assert isinstance(move, Steer)
        assert (move.course, move.ending) == (Course.CLOSE, ChangeState.ROLLED_BACK)
    else:
        assert isinstance(move, Replan)


def test_a_fleet_that_moved_after_every_plan_is_refused_in_the_end() -> None:
    plans = tuple(Entry(NOW, "plan", "noted") for _ in range(6))
    move = next_action(replace(READY, journal=(*READY.journal, *plans)), _sight(2), NOW, Switch())
    assert isinstance(move, Steer)
    assert move.ending is ChangeState.REFUSED
    assert "planned 6 times" in move.reason.sentence


def test_a_turn_that_may_have_been_accepted_is_not_judged_by_its_own_counts() -> None:
    asked = change_after(CONFIG, ALARM, CLEAR, TURN)
    assert not isinstance(next_action(asked, _sight(4, scaling=()), NOW, Switch()), Replan | Steer)


LOST = Entry(NOW - timedelta(minutes=5), TURN.key, "failed", "again:unanswered:Read timeout")
"""The answer of the update was lost five minutes ago, and AWS shows the old configuration."""


def lost(change: Change) -> Change:
    return replace(change, journal=(*change.journal, replace(LOST, status="intended", detail=""), LOST))


def test_a_lost_update_is_asked_again_on_a_ground_that_stayed() -> None:
    assert next_action(lost(CLEARED), _sight(scaling=()), NOW, Switch()) == Do(TURN)


def test_a_lost_update_is_not_asked_again_into_an_incident_or_for_a_fleet_that_moved() -> None:
    for live in (replace(_sight(), hold=FROM_INCIDENT), _sight(6)):
        waiting = next_action(lost(READY), live, NOW, Switch())
        assert isinstance(waiting, Wait)
        assert waiting.until == LOST.at + SHOWS
        assert waiting.why.endswith("UTC, and is not asked again")


def test_autoscaling_goes_back_from_a_lost_update_that_meets_an_incident_or_a_fleet_that_moved() -> None:
    for live in (replace(_sight(scaling=()), hold=FROM_INCIDENT), _sight(6, scaling=())):
        back = next_action(lost(CLEARED), live, NOW, Switch())
        assert isinstance(back, Steer)
        assert (back.course, back.ending) == (Course.CLOSE, ChangeState.ROLLED_BACK)


def test_autoscaling_that_its_owner_registered_again_is_left_alone_after_a_lost_update() -> None:
    cleared = replace(CLEARED, journal=tuple(replace(e, at=e.at - timedelta(minutes=9)) for e in CLEARED.journal))
    move = next_action(lost(cleared), _sight(scaling=(replace(LIVE, minimum=5, maximum=40),)), NOW, Switch())
    assert isinstance(move, Steer)
    assert "registered autoscaling of" in move.reason.sentence


def test_a_shadow_test_keeps_the_live_count_and_does_not_mind_it() -> None:
    test = replace(READY, plan=replace(PLAN, kind=PlanKind.SHADOW_TEST, clear=()))
    assert next_action(test, _sight(5), NOW, Switch()) == Do(TURN)


def test_a_new_policy_of_the_owners_is_not_deleted_unseen() -> None:
    added = replace(LIVE, policies=({"PolicyName": "mine", "PolicyType": "StepScaling"},))
    move = next_action(READY, _sight(scaling=(added,)), NOW, Switch())
    assert isinstance(move, Replan)
    assert "mine" in move.reason.sentence
    raised = next_action(READY, _sight(scaling=(replace(LIVE, maximum=9),)), NOW, Switch())
    assert isinstance(raised, Replan)
    assert RESTORE.key in raised.reason.sentence


def test_a_closed_window_is_waited_for_while_nothing_was_taken_away() -> None:
    waiting = next_action(READY, replace(_sight(), hold=FROM_WINDOW), NOW, Switch())
    assert waiting == Wait(FROM_WINDOW.until, "the window opens later")
    going_on = next_action(CLEARED, replace(_sight(scaling=()), hold=FROM_WINDOW), NOW, Switch())
    assert going_on == Do(TURN), "what began in its window is finished after it"


def test_an_incident_stops_the_change_at_every_point_before_the_turn() -> None:
    assert isinstance(next_action(READY, replace(_sight(), hold=FROM_INCIDENT), NOW, Switch()), Wait)
    back = next_action(CLEARED, replace(_sight(scaling=()), hold=FROM_INCIDENT), NOW, Switch())
    assert isinstance(back, Steer)
    assert back.ending is ChangeState.ROLLED_BACK


def test_nobody_waits_longer_than_a_week() -> None:
    old = replace(READY, created_at=NOW - timedelta(days=8))
    move = next_action(old, replace(_sight(), hold=FROM_WINDOW), NOW, Switch())
    assert isinstance(move, Steer)
    assert (move.ending, move.reason.code) == (ChangeState.REFUSED, Code.EXPIRED)


def test_autoscaling_that_the_owner_registers_again_is_neither_taken_away_again_nor_overwritten() -> None:
    cleared = replace(CLEARED, journal=tuple(replace(e, at=NOW - timedelta(minutes=5)) for e in CLEARED.journal))
    theirs = _sight(scaling=(replace(LIVE, minimum=5, maximum=40),))
    move = next_action(cleared, theirs, NOW, Switch())
    assert isinstance(move, Steer)
    assert (move.course, move.ending) == (Course.CLOSE, ChangeState.ROLLED_BACK)
    assert "registered autoscaling" in move.reason.sentence
    closing = replace(cleared, course=Course.CLOSE, ending=move.ending, reason=move.reason)
    assert next_action(closing, theirs, NOW, Switch()) == Do(TIDY)
    assert next_action(closing, _sight(scaling=()), NOW, Switch()) == Do(RESTORE), "what is missing is given back"
    begun = replace(closing, journal=(*closing.journal, Entry(NOW, RESTORE.key, "intended")))
    assert next_action(begun, theirs, NOW, Switch()) == Do(RESTORE), "a target of ours is put right"


def test_a_target_that_is_still_listed_after_it_was_taken_away_is_waited_for() -> None:
    assert isinstance(next_action(CLEARED, _sight(), NOW, Switch()), Wait)
