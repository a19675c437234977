"""A component that is being changed, was taken back or deleted, and whole sentences of a step that is given up."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.reconcile.steps import LAG, attempt_step, first_action, give_up_step, step_obstacle, time_limit
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.live_state import MOVING, EndpointSight, LiveState
from rightsizer.domain.next_action import Steer, Wait
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_reconcile import CLEAR, CONFIG, NOW, PLAN, REGION, change_after

ROLL = {"RollingUpdatePolicy": {"MaximumExecutionTimeoutInSeconds": 3600}}
SPREAD = {"SchedulingConfig": {"PlacementStrategy": "SPREAD"}}
COMPONENT = Step(
    StepKind.UPDATE_COMPONENT,
    "chat-a",
    {"InferenceComponentName": "chat-a", "Specification": SPREAD, "DeploymentConfig": ROLL},
)
COPIES = Step(
    StepKind.SET_COPIES,
    "chat-a",
    {"InferenceComponentName": "chat-a", "DesiredRuntimeConfig": {"CopyCount": 2}},
)
OLD_COPIES = replace(COPIES, params={**COPIES.params, "DesiredRuntimeConfig": {"CopyCount": 1}})


def component(**changes: Any) -> ComponentSight:
    rows: dict[str, Any] = {
        "name": "chat-a",
        "arn": "arn",
        "endpoint": "chat",
        "status": "InService",
        "modified_at": NOW - timedelta(days=9),
        "desired": 1,
        "specifications": ({"SchedulingConfig": {"PlacementStrategy": "BINPACK"}},),
    }
    return ComponentSight(**(rows | changes))


def seen(*components: ComponentSight, **known: Any) -> LiveState:
    endpoint = EndpointSight("InService", "old", NOW, "", "", ())
    return LiveState(endpoint, components={c.name: c for c in components}, **known)


def lines(*rows: tuple[Step, str, timedelta], **changes: Any) -> Change:
    """A change whose steps stand in its journal, each with how long ago."""
    journal = tuple(Entry(NOW - ago, step.key, status) for step, status, ago in rows)  # type: ignore[arg-type]
    return replace(change_after(), journal=journal, **({"course": Course.FORWARD} | changes))


def test_how_long_a_roll_may_take_is_what_it_says_and_two_hours() -> None:
    assert time_limit(COMPONENT, timedelta(hours=4)) == timedelta(hours=3)
    assert time_limit(COPIES, timedelta(hours=4)) == timedelta(hours=4)


def test_a_component_that_is_being_changed_is_waited_for() -> None:
    change = lines((COMPONENT, "done", timedelta(hours=1)))
    moving = seen(component(status="Updating"))
    waits = Wait(NOW + timedelta(minutes=2), "component chat-a is being changed")
    assert first_action(change, moving, (COMPONENT,), NOW) == waits
    soon = lines((COMPONENT, "done", timedelta(hours=3) - timedelta(minutes=1)))
    found = first_action(soon, moving, (COMPONENT,), NOW)
    assert found == replace(waits, until=NOW + timedelta(minutes=1)), "not beyond its limit"
    copying = seen(copies={"chat-a": MOVING})
    assert first_action(change, copying, (COPIES,), NOW) == waits


@pytest.mark.parametrize(("step", "hours"), [(COMPONENT, 3), (COPIES, 4)])
def test_a_component_that_never_comes_to_rest_is_handed_over_with_its_old_copies(step: Step, hours: int) -> None:
    back = replace(step, params={**OLD_COPIES.params, "back": True})
    plan = replace(PLAN, settle=(step,), restore=(replace(back, params={"InferenceComponentName": "b"}), back))
    change = lines((step, "done", timedelta(hours=hours)), plan=plan)
    moving = seen(component(status="Updating"), copies={"chat-a": MOVING})
    found = first_action(change, moving, (step,), NOW)
    assert isinstance(found, Steer)
    said = (
        f"component chat-a is being changed for {hours}.0 h, longer than any change of it may take; "
        "once it is InService or Failed, it can be set as it was"
    )
    assert (found.reason, found.course) == (Reason(Code.TIMEOUT, said), Course.CLOSE)
    assert (found.ending, found.failure) == (ChangeState.HANDED_OVER, FailureClass.TIMEOUT)
    assert found.remaining[0].startswith("aws sagemaker describe-inference-component")
    assert '"InferenceComponentName": "chat-a"' in found.remaining[0]
    assert found.remaining[1:] == (back.command(REGION),)


def test_where_nothing_was_written_a_component_that_never_rests_refuses_the_change() -> None:
    change = replace(lines(), created_at=NOW - timedelta(hours=5), plan=replace(PLAN, settle=(COPIES,)))
    found = first_action(change, seen(copies={"chat-a": MOVING}), (COPIES,), NOW)
    said = (
        "component chat-a is being changed for 5.0 h, longer than any change of it may take, "
        "and nothing was written to it by this program"
    )
    assert found == Steer(Reason(Code.TIMEOUT, said), Course.CLOSE, ChangeState.REFUSED, FailureClass.OUTSIDE)


def test_a_component_that_somebody_deleted_ends_the_way_forward_and_is_nothing_on_the_way_back() -> None:
    said = "component chat-a was deleted by somebody"
    assert step_obstacle(lines(), seen(), COMPONENT, NOW) == Steer(
        Reason(Code.VANISHED, said), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE
    )
    assert step_obstacle(lines(course=Course.BACK), seen(), COMPONENT, NOW) is None


def test_fields_that_are_not_known_are_never_sent_back() -> None:
    said = "component chat-a has fields that this program does not know: B, Z"
    strange = seen(component(unknown_fields=("Z", "B")))
    assert step_obstacle(lines(), strange, COMPONENT, NOW) == said
    found = first_action(lines(), strange, (COMPONENT,), NOW)
    assert isinstance(found, Steer)
    assert found.reason.sentence.endswith(f"was refused: {said}")


def test_an_accepted_specification_may_take_three_minutes_to_show() -> None:
    almost = LAG - timedelta(seconds=1)
    found = step_obstacle(lines((COMPONENT, "done", almost)), seen(component()), COMPONENT, NOW)
    assert found == Wait(NOW + timedelta(seconds=1), f"{COMPONENT.key} was accepted and does not show yet")
    assert isinstance(step_obstacle(lines((COMPONENT, "done", LAG)), seen(component()), COMPONENT, NOW), Steer)
    assert step_obstacle(lines((COMPONENT, "intended", almost)), seen(component()), COMPONENT, NOW) is None


def test_a_specification_that_aws_took_back_ends_the_way_forward_with_its_reason() -> None:
    done = lines((COMPONENT, "done", timedelta(hours=1)))
    taken = seen(component(failure_reason="no capacity"))
    assert step_obstacle(done, taken, COMPONENT, NOW) == Steer(
        Reason(Code.ROLLED_BACK, "no capacity"), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.UNKNOWN
    )
    back = replace(done, course=Course.BACK)
    assert step_obstacle(back, taken, COMPONENT, NOW) == "its roll was taken back by AWS: no capacity"
    said = "component chat-a has its old specification again, and AWS gave no reason"
    assert step_obstacle(back, seen(component()), COMPONENT, NOW) == f"its roll was taken back by AWS: {said}"


def test_a_lost_answer_counts_as_taken_back_only_with_a_reason_of_later() -> None:
    lost = lines((COMPONENT, "intended", timedelta(hours=1)))
    later, earlier = NOW - timedelta(minutes=59), NOW - timedelta(hours=1)
    assert isinstance(
        step_obstacle(lost, seen(component(failure_reason="x", modified_at=later)), COMPONENT, NOW), Steer
    )
    for sight in (component(failure_reason="x", modified_at=earlier), component(modified_at=later)):
        assert step_obstacle(lost, seen(sight), COMPONENT, NOW) is None
    assert step_obstacle(lines(), seen(component(failure_reason="x", modified_at=later)), COMPONENT, NOW) is None


def test_a_role_that_may_not_be_passed_gets_the_line_that_allows_it() -> None:
    role = "arn:aws:iam::111122223333:role/chat"
    step = replace(CONFIG, params={**CONFIG.params, "ExecutionRoleArn": role})
    said = "User: arn:aws:sts::111122223333:assumed-role/apply/f is not authorized to perform: iam:PassRole"
    found = give_up_step(lines(), step, FailureClass.PERMISSION, said)
    assert isinstance(found, Steer)
    start = f"{step.key} was refused: {said}; an operator allows it with: aws iam put-role-policy --role-name apply "
    assert found.reason.code is Code.REFUSED_BY_AWS
    assert found.reason.sentence.startswith(start)
    for other, text in ((CONFIG, said), (step, "denied"), (replace(step, kind=StepKind.UPDATE_ENDPOINT), said)):
        plain = give_up_step(lines(), other, FailureClass.PERMISSION, text)
        assert plain.reason.sentence == f"{other.key} was refused: {text}"  # type: ignore[union-attr]


def test_an_accepted_step_is_waited_for_until_a_minute_after_it() -> None:
    change = lines((CLEAR, "done", timedelta(seconds=59)))
    said = f"{CLEAR.key} was accepted and does not show yet"
    assert attempt_step(change, CLEAR, NOW) == Wait(NOW + timedelta(seconds=1), said)
