"""An update whose answer was lost, that does not show yet, or that AWS rolled back."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rightsizer.changes.reconcile import next_action
from rightsizer.changes.reconcile.steps import LAG
from rightsizer.domain.change import Change, ChangeState, Course, Entry
from rightsizer.domain.live_state import AlarmSight, EndpointSight, LiveState, VariantSight
from rightsizer.domain.next_action import Do, Steer, Wait
from rightsizer.domain.plan import Before
from rightsizer.domain.policy import Switch
from tests.changes.test_reconcile import BACK, BEFORE, CLEAR, NOW, TURN, change_after

BREACHED = "Alarm chat-5xx was breached"


def _asked(status: str, ago: timedelta, detail: str = "", before: Before = BEFORE) -> Change:
    at = NOW - ago
    lines = [Entry(at - timedelta(minutes=5), CLEAR.key, "done"), Entry(at, TURN.key, "intended")]
    if status != "intended":
        lines.append(Entry(at, TURN.key, status, detail))  # type: ignore[arg-type]
    return replace(change_after(), before=before, journal=tuple(lines), turn_mark=at - timedelta(minutes=1))


def _old(modified: datetime, reason: str = "") -> LiveState:
    endpoint = EndpointSight("InService", "old", modified, reason, "", (VariantSight("v", 1, 1, 1.0, 1.0),))
    alarms = {"a": AlarmSight("a", "OK", {"AlarmName": "a"})}
    return LiveState(endpoint, configs=frozenset({"new"}), scaling=(), alarms=alarms)


@pytest.mark.parametrize("detail", ["again:unanswered:read timeout", "again:unknown:InternalFailure"])
def test_an_update_whose_answer_was_lost_is_not_deployed_again_after_its_roll_back(detail: str) -> None:
    move = next_action(_asked("failed", timedelta(hours=1), detail), _old(NOW, BREACHED), NOW, Switch())
    assert isinstance(move, Steer)
    assert (move.course, move.ending, move.reason.sentence) == (Course.CLOSE, ChangeState.ROLLED_BACK, BREACHED)


@pytest.mark.parametrize(("status", "detail"), [("intended", ""), ("failed", "again:unanswered:read timeout")])
def test_a_reason_that_stood_there_before_is_no_roll_back_of_this_change(status: str, detail: str) -> None:
    stale = replace(BEFORE, failure_reason=BREACHED)
    move = next_action(_asked(status, timedelta(minutes=50), detail, stale), _old(NOW, BREACHED), NOW, Switch())
    assert move == Do(TURN)


@pytest.mark.parametrize("status", ["intended", "done"])
def test_nothing_is_concluded_while_an_update_may_just_not_show(status: str) -> None:
    fresh = _asked(status, timedelta(seconds=20))
    for change in (fresh, replace(fresh, asked_back_by="U1")):
        for switch in (Switch(), Switch(True, False, "U2")):
            for modified in (NOW, NOW - timedelta(days=1)):
                move = next_action(change, _old(modified), NOW, switch)
                assert isinstance(move, Wait)
                assert move.until == NOW - timedelta(seconds=20) + LAG


def test_a_new_reason_is_believed_at_once_and_an_order_once_the_lag_is_over() -> None:
    quick = next_action(_asked("done", timedelta(seconds=20)), _old(NOW, BREACHED), NOW, Switch())
    assert isinstance(quick, Steer)
    asked = replace(_asked("intended", LAG), asked_back_by="U1")
    later = next_action(asked, _old(NOW - timedelta(days=1)), NOW, Switch())
    assert isinstance(later, Steer)
    assert "U1 asked" in later.reason.sentence


def test_a_way_back_that_does_not_show_yet_is_no_failed_way_back() -> None:
    entry = Entry(NOW - timedelta(seconds=20), BACK.key, "done")
    returning = replace(change_after(), course=Course.BACK, journal=(entry,), turn_mark=NOW - timedelta(minutes=1))
    new = _old(NOW)
    assert isinstance(new.endpoint, EndpointSight)
    new = replace(new, endpoint=replace(new.endpoint, config_name="new"))
    assert isinstance(next_action(returning, new, NOW, Switch()), Wait)
