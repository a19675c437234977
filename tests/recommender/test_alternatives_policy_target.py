"""Another target of the owner's policy: where the replay shows that theirs keeps too many, and only as a question."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.autoscaling.target_tracking import CONCURRENT, REQUESTS
from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.autoscaling_bounds import AutoscalingBounds
from rightsizer.domain.endpoint import Endpoint, ScalableTarget
from rightsizer.domain.option import Option, OptionKind, Risk, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from tests.changes.test_preflight import TARGET
from tests.dimensions.kit import TYPE, planned, said, why
from tests.recommender.test_scaling_options import OPEN, by_curve, by_day, first, runs


def owned(value: float = 40.0, metric: str = REQUESTS, count: int = 4, **changes: Any) -> Endpoint:
    """Scaled between two and four by a policy of its owner's; all four run."""
    config = {"TargetValue": value, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}}
    policy = {
        "PolicyName": "theirs",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": config | changes.pop("config", {}),
    }
    made = ScalableTarget("endpoint/e/variant/AllTraffic", "d", 2, 4, policies=(policy,))
    return runs(count, scaling=(replace(made, **changes),))


def moved(found: Recommendation) -> list[Option]:
    return [o for o in found.options if o.kind is OptionKind.AUTOSCALING and o.target.target_value is not None]


def test_a_target_that_keeps_too_many_is_asked_about_with_both_targets_and_what_they_keep() -> None:
    found = by_day(owned(), Policy())
    option = first(found)
    assert [option] == moved(found)
    assert (option.target.minimum, option.target.maximum, option.target.metric) == (2, 4, None)
    assert option.target.target_value is not None
    assert option.target.target_value > 80
    assert any("40 keeps 4.0 instances on average" in note for note in option.notes)
    assert not any("was left alone" in left for left in found.open_questions)


@pytest.mark.parametrize("policy", [Policy(), OPEN], ids=["closed", "opened by Limits"])
def test_it_is_never_moved_by_itself(policy: Policy) -> None:
    found = by_day(owned(), policy)
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.AUTOSCALED)
    assert first(found).risk is Risk.MEDIUM
    assert "its owner's word" in found.gate_reason.sentence


@pytest.mark.parametrize(
    "endpoint",
    [
        owned(80.0),
        owned(2.0, CONCURRENT),
        owned(config={"DisableScaleIn": True}),
        owned(suspended={"DynamicScalingInSuspended": True}),
        owned(scheduled=({"ScheduledActionName": "night"},)),
        owned(minimum=4),
    ],
    ids=["near enough", "another metric", "never scales in", "suspended", "scheduled too", "nothing to follow"],
)
def test_a_policy_is_left_alone_where_nothing_is_saved_or_it_is_followed_otherwise(endpoint: Endpoint) -> None:
    found = by_day(endpoint, Policy())
    assert moved(found) == []
    assert any("was left alone" in left for left in found.open_questions)


def test_a_target_that_is_nearly_ours_is_left_alone_whatever_it_would_save() -> None:
    near, far = (by_curve(owned(value, count=5, minimum=1, maximum=5), Policy()) for value in (80.0, 50.0))
    assert moved(near) == []
    assert "not worth a change" not in why(near, OptionKind.AUTOSCALING), "it is not even weighed"
    assert moved(far) != []


def test_bounds_that_are_registered_already_are_no_saving() -> None:
    """The replay would keep fewer than ran, but the bounds are what it would set: its plan would be refused."""
    found = by_day(owned(100.0), Policy())
    assert all(option.kind is not OptionKind.AUTOSCALING for option in found.options)


def test_the_plan_puts_the_policy_with_the_other_target_and_the_way_back_puts_the_old_one() -> None:
    config = {"TargetValue": 40.0, "PredefinedMetricSpecification": {"PredefinedMetricType": REQUESTS}}
    policy = {"PolicyName": "theirs", "PolicyType": "TargetTrackingScaling"}
    own = replace(TARGET, policies=({**policy, "TargetTrackingScalingPolicyConfiguration": config},))
    target = Target(TYPE, own.minimum, minimum=own.minimum, maximum=own.maximum, target_value=84.0)
    found = planned(AutoscalingBounds(), target, scaling=(own,))
    assert isinstance(found, PlannedChange)
    values = [
        step.params["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
        for step in (*found.plan.settle, *found.plan.restore)
    ]
    assert values == [84.0, 40.0]
    does, back = said(AutoscalingBounds(), target)
    assert does.endswith(f"scale between {own.minimum} and {own.maximum} instances, with 84 as its policy's target")
    assert back == "puts the old target into the policy again"
