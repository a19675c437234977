"""One step: due, tried again, or given up; before the turn nothing is lost, after it a person gets the line."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.changes.reconcile import steps
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.next_action import Do, Steer, Wait
from rightsizer.domain.plan import Step, StepKind
from tests.changes.test_reconcile import CLEAR, CONFIG, NOW, PLAN, REGION, SETTLE, TIDY, TURN, WHO, change_after

PASSING, FOR_GOOD = "again:unknown:Rate exceeded", "refused:quota:too many targets"
POLICY = Step(StepKind.PUT_POLICY, WHO["ResourceId"], {**WHO, "PolicyName": "track"})


def failed(step: Step, times: int, ago: timedelta, detail: str = PASSING, course: Course = Course.FORWARD) -> Change:
    rows = [Entry(NOW - ago, step.key, status, text) for status, text in (("intended", ""), ("failed", detail))]  # type: ignore[arg-type]
    return replace(change_after(), course=course, journal=tuple(rows * times))


@pytest.mark.parametrize(("times", "minutes"), [(1, 1), (2, 3), (3, 10), (4, 20), (5, 30)])
def test_a_passing_refusal_is_tried_again_later_each_time(times: int, minutes: int) -> None:
    early = steps.attempt_step(failed(CLEAR, times, timedelta(minutes=minutes) - timedelta(seconds=1)), CLEAR, NOW)
    assert isinstance(early, Wait)
    assert early.until == NOW + timedelta(seconds=1)
    assert "Rate exceeded" in early.why
    assert steps.attempt_step(failed(CLEAR, times, timedelta(minutes=minutes)), CLEAR, NOW) == Do(CLEAR)


def test_the_sixth_refusal_is_the_last() -> None:
    found = steps.attempt_step(failed(CLEAR, steps.ATTEMPTS, timedelta(hours=9)), CLEAR, NOW)
    assert isinstance(found, Steer)
    assert (found.course, found.ending, found.remaining) == (Course.CLOSE, ChangeState.ROLLED_BACK, ())


def test_a_refusal_for_good_is_not_tried_again() -> None:
    found = steps.attempt_step(failed(CLEAR, 1, timedelta(hours=9), FOR_GOOD), CLEAR, NOW)
    assert isinstance(found, Steer)
    assert (found.failure, found.reason.sentence) == (
        FailureClass.QUOTA,
        f"{CLEAR.key} was refused: too many targets",
    )


def test_after_the_turn_a_person_gets_the_line_of_what_aws_refuses() -> None:
    change = replace(failed(SETTLE, 1, timedelta(hours=9), FOR_GOOD), turned_at=NOW)
    found = steps.attempt_step(change, SETTLE, NOW)
    assert isinstance(found, Steer)
    assert (found.ending, found.remaining) == (ChangeState.HANDED_OVER, (SETTLE.command(REGION),))


def test_an_alarm_of_ours_that_cannot_be_deleted_changes_no_end() -> None:
    change = failed(TIDY, 1, timedelta(hours=9), FOR_GOOD, Course.CLOSE)
    found = steps.attempt_step(replace(change, turned_at=NOW, ending=ChangeState.PROVEN), TIDY, NOW)
    assert isinstance(found, Steer)
    assert (found.ending, found.remaining) == (ChangeState.PROVEN, (TIDY.command(REGION),))


def test_what_is_handed_over_for_a_permission_is_tried_once_more_only() -> None:
    change = replace(
        failed(SETTLE, 1, timedelta(hours=9), "again:permission:denied", Course.CLOSE),
        ending=ChangeState.HANDED_OVER,
        failure=FailureClass.PERMISSION,
        turned_at=NOW,
    )
    assert isinstance(steps.attempt_step(change, SETTLE, NOW), Steer)
    assert steps.attempt_step(replace(change, failure=FailureClass.UNKNOWN), SETTLE, NOW) == Do(SETTLE)


def test_an_accepted_step_is_waited_for_a_minute_and_then_asked_again_until_it_never_shows() -> None:
    once = change_after(CLEAR)
    assert isinstance(steps.attempt_step(once, CLEAR, NOW - timedelta(seconds=30)), Wait)
    assert steps.attempt_step(once, CLEAR, NOW) == Do(CLEAR)
    often = change_after(*[CLEAR] * steps.ATTEMPTS)
    found = steps.attempt_step(often, CLEAR, NOW)
    assert isinstance(found, Steer)
    assert "it never shows" in found.reason.sentence


def test_a_configuration_of_our_name_with_other_content_is_not_made() -> None:
    found = steps.attempt_step(change_after(), CONFIG, NOW, config_differs=True)
    assert isinstance(found, Steer)
    assert "a configuration new with other content exists" in found.reason.sentence


def test_a_policy_whose_target_was_given_up_is_not_asked_for_and_names_the_cause() -> None:
    change = replace(
        failed(SETTLE, 1, timedelta(hours=9), FOR_GOOD), turned_at=NOW, remaining=(SETTLE.command(REGION),)
    )
    found = steps.attempt_step(change, POLICY, NOW)
    assert isinstance(found, Steer)
    assert "its scalable target could not be registered" in found.reason.sentence
    assert f"({SETTLE.key} was refused: too many targets)" in found.reason.sentence


def sight(**known: object) -> LiveState:
    return LiveState(EndpointSight("InService", "old", NOW, "", "", ()), scaling=(), **known)  # type: ignore[arg-type]


def test_the_first_goal_that_is_not_shown_is_the_next_step() -> None:
    assert steps.first_action(change_after(), sight(configs=frozenset({"new"})), (CONFIG, CLEAR, SETTLE), NOW) == Do(
        SETTLE
    )
    assert steps.first_action(change_after(), sight(configs=frozenset({"new"})), (CONFIG, CLEAR), NOW) is None


@pytest.mark.parametrize(
    ("status", "detail", "ago", "shows"),
    [
        ("intended", "", 10, True),
        ("done", "", 59, True),
        ("done", "", 61, False),
        ("failed", "again:unanswered:timeout", 59, True),
        ("failed", PASSING, 1, False),
        ("failed", FOR_GOOD, 1, False),
    ],
)
def test_an_update_may_show_for_an_hour_unless_aws_refused_it(status: str, detail: str, ago: int, shows: bool) -> None:
    at = NOW - timedelta(minutes=ago)
    change = replace(change_after(), journal=(Entry(at, TURN.key, status, detail),))  # type: ignore[arg-type]
    assert steps.may_show_until(change, NOW) == (at + steps.SHOWS if shows else None)
    assert steps.may_show_until(replace(change, plan=replace(PLAN, turn=None)), NOW) is None
