"""What others did to the endpoint, and how long what goes on is waited for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.changes.reconcile import drift, next_action
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.next_action import Steer, Wait
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code
from tests.changes.test_reconcile import BACK, NOW, PLAN, REGION, TURN, change_after


def endpoint(status: str = "InService", config: str = "old", pending: str = "", minutes: float = 60) -> EndpointSight:
    return EndpointSight(status, config, NOW - timedelta(minutes=minutes), "it broke", pending, ())


def test_a_change_closed_as_rolled_back_has_its_reason_and_its_failure() -> None:
    end = drift.close_rolled_back(Code.ROLLED_BACK, "U1 asked for the rollback", FailureClass.ASKED)
    assert (end.course, end.ending, end.failure) == (Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.ASKED)
    assert end.reason.sentence == "U1 asked for the rollback"


TURNED = replace(
    change_after(), journal=tuple(Entry(NOW - timedelta(hours=1), TURN.key, status) for status in ("intended", "done"))
)


@pytest.mark.parametrize(
    ("status", "code", "verbs"),
    [
        ("Deleting", Code.VANISHED, []),
        ("Failed", Code.UNKNOWN_FAILURE, ["delete-endpoint", "create-endpoint"]),
        ("UpdateRollbackFailed", Code.UNKNOWN_FAILURE, ["update-endpoint"]),
        ("OutOfService", Code.NOT_IN_SERVICE, []),
    ],
)
def test_a_status_that_nobody_here_repairs_is_handed_over_with_the_lines(
    status: str, code: Code, verbs: list[str]
) -> None:
    found = drift.lost_action(TURNED, endpoint(status))
    assert found is not None
    assert (found.course, found.ending, found.reason.code) == (Course.CLOSE, ChangeState.HANDED_OVER, code)
    assert [line.split()[2] for line in found.remaining] == verbs
    assert found.reason.code is not Code.UNKNOWN_FAILURE or status != "Failed" or "it broke" in found.reason.sentence


def test_an_endpoint_that_somebody_deleted_is_handed_over() -> None:
    found = drift.lost_action(TURNED, Gone("chat"))
    assert found is not None
    assert (found.reason.code, found.failure) == (Code.VANISHED, FailureClass.OUTSIDE)


@pytest.mark.parametrize("status", ["InService", *sorted(drift.BUSY)])
def test_our_own_configurations_are_nobody_elses(status: str) -> None:
    for config, pending in (("old", ""), ("old", "new"), ("new", ""), ("new", "old")):
        assert drift.lost_action(TURNED, endpoint(status, config, pending)) is None
        assert drift.foreign_configs(TURNED, endpoint(status, config, pending)) == frozenset()


@pytest.mark.parametrize(("config", "pending"), [("theirs", ""), ("old", "theirs"), ("new", "theirs")])
def test_a_configuration_of_somebody_else_hands_the_change_over(config: str, pending: str) -> None:
    found = drift.lost_action(TURNED, endpoint(config=config, pending=pending))
    assert found is not None
    assert (found.ending, found.reason.code) == (ChangeState.HANDED_OVER, Code.CHANGED_SINCE)
    assert "configuration theirs" in found.reason.sentence
    assert drift.LEFT_ALONE not in found.reason.sentence
    given = drift.lost_action(replace(TURNED, state=ChangeState.APPLIED), endpoint(config=config, pending=pending))
    assert given is not None
    assert given.reason.sentence.endswith(drift.LEFT_ALONE)


def test_a_release_after_the_mark_for_deletion_is_no_incident() -> None:
    marked = replace(TURNED, plan=replace(PLAN, kind=PlanKind.DELETE))
    found = drift.lost_action(marked, endpoint(config="theirs"))
    assert found is not None
    assert (found.ending, found.reason.code) == (ChangeState.ROLLED_BACK, Code.CHANGED_SINCE)


def _busy(change: Change, status: str, minutes: float) -> object:
    return drift.busy_action(change, endpoint(status, pending="new", minutes=minutes), NOW)


def test_a_deployment_is_waited_for_as_long_as_its_plan_says_and_two_hours() -> None:
    limit = timedelta(seconds=PLAN.deployment_limit_s) + drift.SLACK
    old = replace(TURNED, journal=tuple(replace(e, at=NOW - limit - timedelta(minutes=1)) for e in TURNED.journal))
    inside, outside = (limit.total_seconds() / 60 + extra for extra in (-1, 1))
    assert isinstance(_busy(old, "Updating", inside), Wait)
    found = _busy(old, "Updating", outside)
    assert isinstance(found, Steer)
    assert (found.reason.code, found.ending, found.remaining) == (
        Code.TIMEOUT,
        ChangeState.HANDED_OVER,
        (BACK.command(REGION),),
    )
    assert isinstance(_busy(TURNED, "Updating", outside), Wait), "it counts from our last write"


def test_maintenance_of_aws_is_waited_for_for_a_day() -> None:
    old = replace(TURNED, created_at=NOW - timedelta(days=3), journal=())
    assert isinstance(_busy(old, "SystemUpdating", 23 * 60), Wait)
    assert isinstance(_busy(old, "SystemUpdating", 25 * 60), Steer)


@pytest.mark.parametrize(("looks", "minutes"), [(0, 2), (1, 5), (3, 15), (7, 60), (99, 60)])
def test_looks_come_more_rarely_the_more_there_were(looks: int, minutes: int) -> None:
    assert drift.next_look(replace(TURNED, looks=looks), NOW) == NOW + timedelta(minutes=minutes)


def test_a_change_that_is_closing_is_not_handed_over_for_a_release_again() -> None:
    closing = replace(TURNED, course=Course.CLOSE, ending=ChangeState.HANDED_OVER)
    move = next_action(closing, LiveState(endpoint(config="theirs"), scaling=(), alarms={}), NOW, Switch())
    assert not isinstance(move, Steer)
