"""Plans that deploy nothing, step by step: what is set, what goes back, and what each refusal says."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.autoscaling import policies
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan import capacity
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import Plan, Step, StepKind, VariantCount
from rightsizer.domain.reason import Code, Reason
from tests.changes.test_plan_config import BARE, OLD_TYPE, OWN, SECOND, approved

OTHER = VariantCount("B", OLD_TYPE, 1, 0.5)
REQUESTS = "SageMakerVariantInvocationsPerInstance"


def plan_of(found: PlannedChange | tuple[Reason, ...]) -> Plan:
    assert isinstance(found, PlannedChange), found
    return found.plan


def counts(step: Step | None) -> dict[str, int]:
    assert step is not None
    assert step.params["EndpointName"] == "chat"
    return {row["VariantName"]: row["DesiredInstanceCount"] for row in step.params["DesiredWeightsAndCapacities"]}


def bounds(steps: tuple[Step, ...]) -> list[tuple[str, int, int]]:
    registered = (step for step in steps if step.kind is StepKind.REGISTER_TARGET)
    return [(step.subject[-1], step.params["MinCapacity"], step.params["MaxCapacity"]) for step in registered]


def resized(given: Approved, count: int) -> tuple[VariantCount, ...]:
    return tuple(replace(v, count=count) if v.name == "AllTraffic" else v for v in given.before.variants)


def test_one_call_sets_the_counts_of_the_variants_that_it_names() -> None:
    step = capacity.capacity_step("chat", [VariantCount("a", "", 1, 1.0), VariantCount("b", "", 2, 1.0)])
    assert (step.kind, step.subject) == (StepKind.SET_CAPACITY, "chat to a=1,b=2")
    assert counts(step) == {"a": 1, "b": 2}


def test_a_count_moves_the_changed_variant_alone_and_says_what_the_fleet_is_then() -> None:
    given = approved(Target(OLD_TYPE, 1), beside=(OTHER,))
    plan = plan_of(capacity.plan_count(given))
    assert (counts(plan.turn), counts(plan.back)) == ({"AllTraffic": 1}, {"AllTraffic": 2})
    assert plan.after == resized(given, 1)
    assert plan.guardrail == "counts only: no deployment, and the rollback is the same call"
    same = capacity.plan_count(approved(Target(OLD_TYPE, 2)))
    assert same == (Reason(Code.CHANGED_SINCE, "chat already runs what is asked"),)


def test_bounds_move_the_registration_of_the_judged_variant_and_leave_policies_and_others() -> None:
    given = approved(Target(OLD_TYPE, 2, minimum=1, maximum=2), scaling=(OWN, SECOND))
    plan = plan_of(capacity.plan_bounds(given))
    assert (bounds(plan.settle), bounds(plan.restore)) == ([("c", 1, 2)], [("c", 1, 4)])
    assert len(plan.settle) == len(plan.restore) == 1
    assert (plan.after, plan.turn) == (given.before.variants, None)
    assert plan.guardrail == "autoscaling bounds only: no deployment, reversible at once"


def test_a_target_value_moves_the_policy_and_not_the_registration() -> None:
    given = approved(Target(OLD_TYPE, 2, minimum=1, maximum=4, target_value=30.0), scaling=(OWN,))
    plan = plan_of(capacity.plan_bounds(given))
    for steps, value in ((plan.settle, 30.0), (plan.restore, 20.0)):
        (step,) = steps
        assert step.kind is StepKind.PUT_POLICY
        assert step.params["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == value


def test_bounds_that_are_set_already_or_belong_to_no_target_give_no_plan() -> None:
    target = Target(OLD_TYPE, 2, minimum=1, maximum=4)
    done = capacity.plan_bounds(approved(target, scaling=(OWN,)))
    assert done == (Reason(Code.CHANGED_SINCE, "chat is autoscaled as asked already"),)
    gone = capacity.plan_bounds(approved(target, scaling=(SECOND,)))
    assert gone == (Reason(Code.CHANGED_SINCE, "variant AllTraffic of chat is not autoscaled any more"),)


TRACKED = Target(OLD_TYPE, 1, minimum=1, maximum=4, metric=REQUESTS, target_value=20.0)


def tracks(target: Target = TRACKED, count: int = 2, **known: Any) -> PlannedChange | tuple[Reason, ...]:
    return capacity.plan_tracking(approved(target, count, option={"kind": OptionKind.AUTOSCALING}, **known))


def test_added_target_tracking_goes_back_to_no_target_and_the_old_count() -> None:
    plan = plan_of(tracks(beside=(OTHER,)))
    assert [step.kind for step in plan.settle] == [StepKind.REGISTER_TARGET, StepKind.PUT_POLICY]
    assert bounds(plan.settle) == [("c", 1, 4)]
    gone, back = plan.restore
    assert (gone.kind, counts(back)) == (StepKind.DEREGISTER_TARGET, {"AllTraffic": 2})
    assert plan.after[1] == OTHER
    assert plan.guardrail == "target tracking: no deployment; the rollback removes it and sets the old count"


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (
            {"scaling": (SECOND,)},
            Reason(
                Code.AUTOSCALED,
                "chat is autoscaled by now; another target cannot be registered, and its policies are its owner's",
            ),
        ),
        (
            {"target": replace(TRACKED, instance_type="ml.g6.xlarge")},
            Reason(Code.NOT_IN_PLACE, f"target tracking changes no type: chat runs {OLD_TYPE}"),
        ),
        (
            {"change": {"variant": "gone"}},
            Reason(Code.NOT_IN_PLACE, "target tracking changes no type: chat runs no instance type"),
        ),
        (
            {"count": 5},
            Reason(Code.CHANGED_SINCE, "chat runs 5 instances by now, and at most 4 were decided on"),
        ),
        (
            {"target": replace(TRACKED, maximum=None), "count": 1},
            Reason(Code.CHANGED_SINCE, "chat runs 1 instances by now, and at most 0 were decided on"),
        ),
    ],
)
def test_target_tracking_that_would_not_fit_any_more_is_refused(known: dict[str, Any], reason: Reason) -> None:
    assert tracks(**known) == (reason,)


def test_a_fleet_at_its_maximum_still_gets_target_tracking() -> None:
    assert isinstance(tracks(count=4), PlannedChange)


def test_target_tracking_is_registered_for_the_variant_of_this_endpoint() -> None:
    assert {step.subject for step in plan_of(tracks()).settle} == {"endpoint/chat/variant/AllTraffic"}


def test_each_plan_remembers_what_ran_before() -> None:
    by_hour = (2,) * 12 + (4,) * 12
    scaled: dict[str, Any] = {"scaling": (OWN,)}
    plain, bounds = approved(Target(OLD_TYPE, 1)), approved(Target(OLD_TYPE, 2, minimum=1, maximum=2), **scaled)
    hours, tracking = approved(Target(OLD_TYPE, 4), **scaled), approved(TRACKED)
    for given, found in (
        (plain, capacity.plan_count(plain)),
        (bounds, capacity.plan_bounds(bounds)),
        (tracking, capacity.plan_tracking(tracking)),
        (hours, capacity.in_place_of_hours(hours)),
        (hours, capacity.larger_hours(hours, by_hour)),
    ):
        assert isinstance(found, PlannedChange)
        assert found.before is given.before


def test_one_count_takes_the_place_of_our_schedule_and_the_schedule_comes_back() -> None:
    given = approved(Target(OLD_TYPE, 3), scaling=(BARE, SECOND), beside=(OTHER,))
    plan = plan_of(capacity.in_place_of_hours(given))
    gone, count = plan.settle
    assert (gone.kind, gone.subject, counts(count)) == (StepKind.DEREGISTER_TARGET, BARE.resource_id, {"AllTraffic": 3})
    assert bounds(plan.restore) == [("c", 1, 4)]
    assert plan.after == resized(given, 3)
    assert plan.guardrail.endswith("no deployment; the rollback registers the schedule again")


def test_larger_counts_by_the_hour_run_the_most_of_them_at_once() -> None:
    by_hour = (2,) * 12 + (4,) * 12
    given = approved(Target(OLD_TYPE, 4, hourly_counts=by_hour), scaling=(BARE,), beside=(OTHER,))
    plan = plan_of(capacity.larger_hours(given, by_hour))
    assert plan.clear == policies.removal_steps([BARE])
    assert (counts(plan.turn), counts(plan.back)) == ({"AllTraffic": 4}, {"AllTraffic": 2})
    assert plan.settle == policies.hourly_count_steps("chat", "AllTraffic", by_hour, "c-1")
    assert bounds(plan.restore) == [("c", 1, 4)]
    assert plan.after == resized(given, 4)
    assert plan.guardrail.startswith("larger counts in place of our schedule: ")


def test_where_the_most_of_them_runs_already_that_many_stay_as_one_count() -> None:
    by_hour = (2,) * 12 + (4,) * 12
    given = approved(Target(OLD_TYPE, 4, hourly_counts=by_hour), 4, scaling=(BARE,), beside=(OTHER,))
    plan = plan_of(capacity.larger_hours(given, by_hour))
    assert plan.guardrail.startswith("a count in place of our schedule: ")
    assert counts(plan.settle[-1]) == {"AllTraffic": 4}
