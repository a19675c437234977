"""A change of type carries the owner's scaling policies along, and the decision says how."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.autoscaling.policies import CapacityExchange, retarget
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Option, Target
from rightsizer.recommender.recommend import add_unchanged_policies
from tests.labelled import judged
from tests.recommender import kit
from tests.samples import recommendation

INVOCATIONS = "SageMakerVariantInvocationsPerInstance"
CONCURRENCY = "SageMakerVariantConcurrentRequestsPerModelHighResolution"


def chosen(policies: dict[str, float], count: int = 4) -> Option:
    endpoint = {"count": count, "scaled": [2, 8], "p95_s": 60.0, "policies": policies}
    option = judged({"endpoint": endpoint}).chosen_option
    assert option is not None
    return option


def said(option: Option) -> dict[str, str]:
    found = {change.title: change.effect for change in option.policy_changes}
    assert found.items() <= option.facts.items(), "a terminal lists them among the facts"
    assert all(f"{name}: {line}" in option.notes for name, line in found.items())
    return found


def test_the_option_names_old_and_new_target_and_why() -> None:
    option = chosen({INVOCATIONS: 200.0})
    line = said(option)[f"Scaling policy keep-{INVOCATIONS}"]
    assert "200 becomes 50.58" in line
    assert "one ml.g4dn.xlarge serves 0.25 of what one does today" in line
    assert any(line in note for note in option.notes)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_slower_type_never_raises_the_target_however_many_run_now(count: int) -> None:
    option = chosen({INVOCATIONS: 200.0}, count)
    assert option.target.target_value == 50.58


def test_two_targets_per_instance_are_each_named() -> None:
    option = chosen({INVOCATIONS: 200.0, CONCURRENCY: 8.0})
    assert [line.split(": ")[0].rsplit(" ", 1)[1] for line in said(option).values()] == ["50.58", "2.0232"]
    assert option.target.target_value is None


def test_what_is_named_is_what_the_change_puts() -> None:
    option = chosen({INVOCATIONS: 200.0})
    config: dict[str, Any] = {
        "TargetValue": 200.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": INVOCATIONS},
    }
    policy = {"PolicyName": "mine", "TargetTrackingScalingPolicyConfiguration": config}
    after = retarget((ScalableTarget("r", "d", 2, 8, policies=(policy,)),), option.target, CapacityExchange(4, 4))
    assert after[0].policies[0]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 50.58


def test_schedules_of_the_owner_follow_the_capacity_of_an_instance_too() -> None:
    action = {"ScheduledActionName": "morning", "ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 0}}
    own = ScalableTarget("r", "d", 2, 8, scheduled=(action,))
    after = retarget((own,), Target("ml.g5.xlarge", 4, per_instance=0.5), CapacityExchange(4, 4))
    assert after[0].scheduled[0]["ScalableTargetAction"] == {"MinCapacity": 6, "MaxCapacity": 0}


def test_a_policy_on_utilisation_is_said_to_stay() -> None:
    assert "stays at 50" in next(iter(said(chosen({"SageMakerVariantGPUUtilizationNormalized": 50.0})).values()))


def test_each_policy_is_named_among_what_was_not_checked_whatever_is_found() -> None:
    for given in ({}, {"usage": {"per_slot": 0, "gpu": 0}}, {"usage": {"days": 1}}):
        policies = {INVOCATIONS: 200.0, "p95 of ModelLatency": 0.4}
        endpoint = {"count": 1, "scaled": [1, 4], "p95_s": 0.72, "policies": policies}
        found = judged({"endpoint": endpoint, **given})
        left = [line for line in found.not_checked if line.startswith("another target of the scaling policy")]
        assert [f"keep-{name} (" in line for name, line in zip(policies, left, strict=True)] == [True, True]
        assert f"({INVOCATIONS} 200)" in left[0]


def test_steps_of_a_step_policy_are_named_too() -> None:
    step = {"PolicyName": "steps", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": {}}
    scaled = ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4, policies=(step,))
    found = add_unchanged_policies(recommendation(), replace(kit.endpoint(), scaling=(scaled,)))
    assert found.not_checked[-1] == "other steps of the scaling policy steps: they stay as they are"


def test_counts_by_the_hour_are_said_to_know_no_days_of_the_week() -> None:
    hourly = {"per_slot": 1500, "memory": 90, "hours": [8, 18], "quiet": 0.05}
    busy = {"type": "ml.g6.xlarge", "count": 3, "p95_s": 2.0, "min_instances": 1}
    option = judged({"endpoint": busy, "usage": hourly}).chosen_option
    assert option is not None
    assert option.target.hourly_counts is not None
    assert any("busiest day" in line for line in option.not_checked)
