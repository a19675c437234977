"""How a change goes back and is closed: autoscaling for what the endpoint carries, what is the owner's left alone."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.reconcile import rollback_action
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.next_action import Do, Finish, Steer, Wait
from rightsizer.domain.plan import AutoscalingBeforeRollback, Step, StepKind
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_reconcile import ALARM, BACK, CLEAR, CONFIG, NOW, PLAN, RESTORE, SETTLE, TIDY, TURN
from tests.changes.test_reconcile_actions import (
    EARLIER,
    HOUR,
    IN_PLACE,
    MINUTE,
    NEW_BOUNDS,
    OLD_BOUNDS,
    act,
    after,
    closing,
    live,
    seen,
)


def returning(*done: Step, **known: Any) -> Change:
    return after(*done, **{"course": Course.BACK, "turned_at": EARLIER, "failure": FailureClass.ERRORS, **known})


def test_autoscaling_is_taken_away_before_the_way_back() -> None:
    assert act(returning(TURN), live(seen("new"), NEW_BOUNDS)) == Do(CLEAR)
    assert act(returning(TURN, CLEAR), live(seen("new"))) == Do(BACK)


def test_a_clone_of_the_old_configuration_is_made_first() -> None:
    clone = replace(CONFIG, subject="back", params={"EndpointConfigName": "back"})
    to_clone = replace(BACK, subject="chat to back", params={**BACK.params, "EndpointConfigName": "back"})
    plan = replace(PLAN, prepare=(CONFIG, clone, ALARM), back_config="back", back=to_clone)
    change = returning(TURN, CLEAR, plan=plan)
    assert act(change, live(seen("new"), alarms={})) == Do(clone), "and no alarm of the way forward"
    assert act(change, live(seen("new"), configs=frozenset({"back"}))) == Do(to_clone)


def test_what_is_back_is_closed_with_the_reason_for_which_it_went() -> None:
    why = Reason(Code.UNPROVEN, "it failed")
    wanted = Steer(why, Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.ERRORS, returned=True)
    for change in (returning(TURN, BACK, reason=why), returning(plan=replace(PLAN, back=None), reason=why)):
        assert act(change, live(seen("old"))) == wanted
    text = "chat is back on what it ran before"
    assert act(returning(TURN, BACK), live(seen("old"))) == replace(wanted, reason=Reason(Code.ROLLED_BACK, text))


def test_a_way_back_that_is_still_being_deployed_is_not_there() -> None:
    change = returning(TURN, BACK)
    pending = seen("old", pending_config="new")
    found = rollback_action(change, live(pending), pending, NOW)
    assert not isinstance(found, Steer)


def test_a_way_back_that_was_just_sent_may_not_show_yet() -> None:
    wait = Wait(NOW + MINUTE, "UpdateEndpoint of chat was asked and does not show yet")
    assert act(returning(BACK, minutes=2, turn_mark=EARLIER), live(seen("new"))) == wait


@pytest.mark.parametrize("why", ["no capacity", ""])
def test_a_way_back_that_aws_rolled_back_is_handed_over_with_its_line(why: str) -> None:
    found = act(returning(BACK, turn_mark=EARLIER), live(seen("new", modified_at=NOW, failure_reason=why)))
    text = f"the rollback was refused by its own deployment: {why or 'AWS gave no reason'}"
    reason = Reason(Code.WAY_BACK_FAILED, text)
    wanted = Steer(
        reason, Course.CLOSE, ChangeState.HANDED_OVER, FailureClass.UNKNOWN, remaining=(BACK.command("eu-west-1"),)
    )
    assert found == wanted


def test_a_way_back_that_keeps_counts_takes_those_of_its_configuration_where_nothing_runs() -> None:
    keeping = replace(BACK, params={**BACK.params, "RetainAllVariantProperties": True})
    change = returning(CLEAR, plan=replace(PLAN, back=keeping))
    assert act(change, live(seen("new", 1))) == Do(keeping)
    found = act(change, live(seen("new", 0)))
    assert isinstance(found, Do)
    assert found.step.params == {**BACK.params, "RetainAllVariantProperties": False}
    plain = act(returning(CLEAR), live(seen("new", 0)))
    assert plain == Do(BACK)


# the end

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
    wanted = Steer(
        reason, Course.CLOSE, ChangeState.HANDED_OVER, FailureClass.OUTSIDE, remaining=(CLEAR.command("eu-west-1"),)
    )
    assert act(change, live(seen(), theirs)) == wanted
    assert act(change, live(seen(), NEW_BOUNDS)) == Do(CLEAR)
    handed = closing(ChangeState.HANDED_OVER, SETTLE, plan=plan)
    assert act(handed, live(seen(), theirs)) == Do(CLEAR)


def test_what_a_person_was_told_to_run_is_not_tried_again() -> None:
    change = closing(ChangeState.HANDED_OVER, CLEAR, remaining=(RESTORE.command("eu-west-1"),))
    assert act(change, live()) == Do(TIDY)
    assert isinstance(
        act(replace(change, remaining=(RESTORE.command("eu-west-1"), TIDY.command("eu-west-1"))), live()), Finish
    )


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
