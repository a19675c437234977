"""What others did to the endpoint, in whole sentences with the lines that are left, and the bounds of waiting."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.changes.reconcile.drift import busy_action, foreign_configs, lost_action, old_config
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.live_state import EndpointSight, Gone
from rightsizer.domain.next_action import NextAction, Steer, Wait
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_drift import TURNED, endpoint
from tests.changes.test_reconcile import BACK, NOW, PLAN, REGION, TURN

BARE = replace(TURNED, plan=replace(PLAN, back=None))


def handed_over(code: Code, text: str, failure: FailureClass, *lines: str) -> Steer:
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.HANDED_OVER, failure, remaining=lines)


def test_a_deleted_endpoint_leaves_nothing_to_run() -> None:
    wanted = handed_over(Code.VANISHED, "endpoint chat was deleted by somebody", FailureClass.OUTSIDE)
    assert lost_action(TURNED, Gone("chat")) == lost_action(TURNED, endpoint("Deleting")) == wanted


def test_a_failed_endpoint_can_only_be_made_again_from_what_it_ran_before() -> None:
    said = "endpoint chat is Failed (it broke); AWS allows only its deletion and re-creation"
    lines = (
        "aws sagemaker delete-endpoint --region eu-west-1 --endpoint-name chat",
        "aws sagemaker create-endpoint --region eu-west-1 --endpoint-name chat --endpoint-config-name old",
    )
    assert lost_action(TURNED, endpoint("Failed")) == handed_over(
        Code.UNKNOWN_FAILURE, said, FailureClass.UNKNOWN, *lines
    )
    silent = replace(endpoint("Failed"), failure_reason="")
    found = lost_action(TURNED, silent)
    assert found is not None
    assert "is Failed (no reason given); AWS" in found.reason.sentence


def test_a_mixed_fleet_gets_the_line_of_the_way_back_where_there_is_one() -> None:
    said = "the rolling deployment of chat failed, and so did its roll-back; it serves with a mix"
    wanted = handed_over(Code.UNKNOWN_FAILURE, said, FailureClass.UNKNOWN, BACK.command(REGION))
    assert lost_action(TURNED, endpoint("UpdateRollbackFailed")) == wanted
    assert lost_action(BARE, endpoint("UpdateRollbackFailed")) == replace(wanted, remaining=())


def test_a_status_that_is_not_repaired_is_named() -> None:
    said = "endpoint chat is OutOfService, which this program does not repair"
    assert lost_action(TURNED, endpoint("OutOfService")) == handed_over(Code.NOT_IN_SERVICE, said, FailureClass.UNKNOWN)


def test_somebody_elses_deployment_is_named_by_its_configuration() -> None:
    said = "somebody deployed configuration theirs to chat during the change"
    wanted = handed_over(Code.CHANGED_SINCE, said, FailureClass.OUTSIDE)
    assert lost_action(TURNED, endpoint(config="theirs")) == wanted
    two = endpoint(config="zeta", pending="alpha")
    found = lost_action(TURNED, two)
    assert found is not None
    assert "configuration alpha to chat" in found.reason.sentence
    assert foreign_configs(TURNED, two) == {"zeta", "alpha"}


def test_a_release_after_a_mark_for_deletion_takes_the_mark_away() -> None:
    marked = replace(TURNED, plan=replace(PLAN, kind=PlanKind.DELETE))
    said = "somebody deployed configuration theirs to chat after it was marked for deletion"
    assert lost_action(marked, endpoint(config="theirs")) == Steer(
        Reason(Code.CHANGED_SINCE, said), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE
    )


def test_before_the_preflight_no_configuration_is_known_to_be_the_old_one() -> None:
    assert old_config(TURNED) == "old"
    new = replace(TURNED, before=None)
    assert old_config(new) == ""
    assert foreign_configs(new, endpoint(config="mine")) == {"mine"}


LIMIT = timedelta(seconds=PLAN.deployment_limit_s) + timedelta(hours=2)


def busy(change: Change, status: str, moved: timedelta) -> NextAction:
    return busy_action(change, EndpointSight(status, "old", NOW - moved, "", "new", ()), NOW)


def written(ago: timedelta, status: str = "done") -> Change:
    entry = Entry(NOW - ago, TURN.key, status)  # type: ignore[arg-type]
    return replace(TURNED, journal=(entry,), created_at=NOW - timedelta(days=9))


@pytest.mark.parametrize(("status", "limit"), [("Updating", LIMIT), ("SystemUpdating", timedelta(days=1))])
def test_what_goes_on_longer_than_it_may_is_handed_over_with_the_way_back(status: str, limit: timedelta) -> None:
    over = limit + timedelta(seconds=1)
    waits = Wait(NOW + timedelta(minutes=2), f"endpoint chat is {status}")
    assert busy(written(limit), status, over) == waits, "our write is as old as it may be"
    assert busy(written(over), status, limit) == waits, "something moved since"
    said = f"endpoint chat is {status} for {limit.total_seconds() / 3600:.1f} h, longer than any deployment may take"
    wanted = handed_over(Code.TIMEOUT, said, FailureClass.TIMEOUT, BACK.command(REGION))
    assert busy(written(over), status, over) == wanted
    bare = replace(written(over), plan=replace(PLAN, back=None))
    assert busy(bare, status, over) == replace(wanted, remaining=())


def test_an_intent_counts_as_a_write_a_refusal_does_not_and_without_either_the_change_began_it() -> None:
    old = timedelta(days=3)
    fresh = timedelta(minutes=1)
    assert isinstance(busy(written(fresh, "intended"), "Updating", old), Wait)
    assert isinstance(busy(written(fresh, "failed"), "Updating", old), Steer)
    begun = replace(TURNED, journal=(), created_at=NOW - fresh)
    assert isinstance(busy(begun, "Updating", old), Wait)


@pytest.mark.parametrize(("looks", "minutes"), [(2, 10), (4, 20), (5, 30), (6, 45), (8, 60)])
def test_each_look_has_its_own_wait(looks: int, minutes: int) -> None:
    found = busy(replace(written(timedelta(0)), looks=looks), "Updating", timedelta(0))
    assert found == Wait(NOW + timedelta(minutes=minutes), "endpoint chat is Updating")
