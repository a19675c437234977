"""How a change is closed: autoscaling for what the endpoint carries, what is the owner's left, nothing of ours kept."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.next_action import Do, Finish, Steer
from rightsizer.domain.plan import AutoscalingBeforeRollback, Step, StepKind
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_reconcile import BACK, CLEAR, CONFIG, NOW, PLAN, RESTORE, SETTLE, TIDY, TURN
from tests.changes.test_reconcile_actions import (
    EARLIER,
    HOUR,
    IN_PLACE,
    NEW_BOUNDS,
    OLD_BOUNDS,
    act,
    closing,
    live,
    seen,
)

DONE = Reason(Code.PROVEN, "chat is proven")


def test_a_proven_change_takes_its_alarms_away_and_is_over() -> None:
    change = closing(ChangeState.PROVEN, CLEAR, TURN, SETTLE)
    assert act(change, live(seen("new"), NEW_BOUNDS)) == Do(TIDY)
    assert act(change, live(seen("new"), NEW_BOUNDS, alarms={})) == Finish(ChangeState.PROVEN, DONE)


def test_without_an_ending_a_change_is_handed_over() -> None:
    over = Reason(Code.PROVEN, "chat is handed-over")
    assert act(closing(None), live(alarms={})) == Finish(ChangeState.HANDED_OVER, over)


@pytest.mark.parametrize(
    ("ending", "config", "step"),
    [
        (ChangeState.PROVEN, "new", SETTLE),
        (ChangeState.APPLIED, "new", SETTLE),
        (ChangeState.ROLLED_BACK, "old", RESTORE),
        (ChangeState.HANDED_OVER, "new", SETTLE),
        (ChangeState.HANDED_OVER, "old", RESTORE),
        (ChangeState.HANDED_OVER, "theirs", RESTORE),
    ],
)
def test_autoscaling_is_put_right_for_what_the_endpoint_carries(ending: ChangeState, config: str, step: Step) -> None:
    assert act(closing(ending, CLEAR), live(seen(config), alarms={})) == Do(step)


def test_a_change_that_never_touched_autoscaling_or_was_refused_puts_none() -> None:
    assert isinstance(act(closing(ChangeState.ROLLED_BACK, CONFIG), live(alarms={})), Finish)
    assert isinstance(act(closing(ChangeState.REFUSED, CLEAR), live(alarms={})), Finish)


@pytest.mark.parametrize("ending", [ChangeState.ROLLED_BACK, ChangeState.REFUSED])
def test_an_update_that_arrives_after_all_goes_back(ending: ChangeState) -> None:
    text = "chat took the new configuration after all; it goes back to old"
    wanted = Steer(Reason(Code.ROLLED_BACK, text), Course.BACK, failure=FailureClass.ALARM)
    assert act(closing(ending, TURN, failure=FailureClass.ALARM), live(seen("new"))) == wanted


@pytest.mark.parametrize(
    ("ending", "known", "step"),
    [
        (ChangeState.PROVEN, {}, SETTLE),
        (ChangeState.APPLIED, {}, SETTLE),
        (ChangeState.ROLLED_BACK, {}, RESTORE),
        (ChangeState.HANDED_OVER, {"turned_at": NOW}, SETTLE),
        (ChangeState.HANDED_OVER, {"turned_at": NOW, "returned_at": NOW}, RESTORE),
        (ChangeState.HANDED_OVER, {}, RESTORE),
        (ChangeState.ROLLED_BACK, {"turned_at": NOW}, RESTORE),
    ],
)
def test_counts_without_a_configuration_have_the_autoscaling_of_their_end(
    ending: ChangeState, known: dict[str, Any], step: Step
) -> None:
    rows = [{"VariantName": "v", "DesiredInstanceCount": 9}]
    counts = Step(StepKind.SET_CAPACITY, "chat to v=9", {"EndpointName": "chat", "DesiredWeightsAndCapacities": rows})
    plan = replace(IN_PLACE, turn=counts, clear=(CLEAR,))
    assert act(closing(ending, CLEAR, plan=plan, **known), live(alarms={})) == Do(step)


def test_bounds_alone_go_back_as_they_were_where_they_are_handed_over() -> None:
    change = closing(ChangeState.HANDED_OVER, SETTLE, plan=IN_PLACE, turned_at=NOW)
    assert act(change, live(seen(), NEW_BOUNDS, alarms={})) == Do(RESTORE)


def test_a_rollback_that_failed_gives_the_autoscaling_of_the_change_back() -> None:
    met = AutoscalingBeforeRollback(NOW)
    assert act(closing(ChangeState.HANDED_OVER, CLEAR, met=met), live(seen("theirs"), alarms={})) == Do(SETTLE)
    assert act(closing(ChangeState.HANDED_OVER, CLEAR, met=met), live(seen("old"), alarms={})) == Do(RESTORE)
    clone = replace(PLAN, back_config="back")
    change = closing(ChangeState.HANDED_OVER, CLEAR, met=met, plan=clone)
    assert act(change, live(seen("back"), alarms={})) == Do(RESTORE)


def test_what_the_owner_registered_again_is_left_with_the_alarms_that_point_at_it() -> None:
    theirs = replace(OLD_BOUNDS, minimum=3, maximum=9)
    wired = Step(StepKind.PUT_ALARM, "cpu", {"AlarmName": "cpu"})
    plan = replace(PLAN, restore=(RESTORE, wired), tidy=())
    change = closing(ChangeState.ROLLED_BACK, CLEAR, plan=plan)
    assert isinstance(act(change, live(seen(), theirs, alarms={})), Finish)
    assert act(change, live(seen(), OLD_BOUNDS, alarms={})) != Do(wired)
    assert act(replace(change, plan=replace(plan, restore=(wired,))), live(alarms={})) == Do(wired)


def test_policies_of_others_on_autoscaling_that_was_added_are_left_and_told() -> None:
    plan = replace(IN_PLACE, restore=(CLEAR,))
    theirs = replace(NEW_BOUNDS, policies=({"PolicyName": "theirs"},))
    change = closing(ChangeState.ROLLED_BACK, SETTLE, plan=plan)
    text = "the autoscaling that was added carries theirs of somebody else by now, and is left"
    reason = Reason(Code.CHANGED_SINCE, text)
    wanted = Steer(reason, Course.CLOSE, ChangeState.HANDED_OVER, FailureClass.OUTSIDE, remaining=(CLEAR.command,))
    assert act(change, live(seen(), theirs)) == wanted
    assert act(change, live(seen(), NEW_BOUNDS)) == Do(CLEAR)
    handed = closing(ChangeState.HANDED_OVER, SETTLE, plan=plan)
    assert act(handed, live(seen(), theirs)) == Do(CLEAR)


def test_what_a_person_was_told_to_run_is_not_tried_again() -> None:
    change = closing(ChangeState.HANDED_OVER, CLEAR, remaining=(RESTORE.command,))
    assert act(change, live()) == Do(TIDY)
    assert isinstance(act(replace(change, remaining=(RESTORE.command, TIDY.command)), live()), Finish)


def note(event: JournalEvent) -> Entry:
    return Entry(NOW - HOUR, event, "noted", "")


def test_autoscaling_that_was_given_back_is_the_owners_on_the_new_configuration_and_on_another() -> None:
    given = (Entry(EARLIER, CLEAR.key, "done"), note(JournalEvent.APPLIED))
    change = closing(ChangeState.HANDED_OVER, journal=given)
    for config in ("new", "theirs"):
        assert isinstance(act(change, live(seen(config), alarms={})), Finish)
    assert act(change, live(seen("old"), alarms={})) == Do(RESTORE)


def test_a_change_that_was_over_finds_what_somebody_else_brought_back_and_leaves_its_autoscaling() -> None:
    over = (Entry(EARLIER, CLEAR.key, "done"), note(JournalEvent.APPLIED), note(JournalEvent.FINISH))
    change = closing(ChangeState.ROLLED_BACK, journal=over)
    old = live(seen("old"), alarms={})
    assert isinstance(act(change, old), Finish)
    ours = replace(change, journal=(Entry(EARLIER, BACK.key, "done"), *over))
    assert act(ours, old) == Do(RESTORE), "this change went back itself"
    bounds = replace(IN_PLACE, clear=(CLEAR,))
    assert act(replace(change, plan=bounds), old) == Do(RESTORE), "nothing was deployed"
