"""What of an owner's autoscaling lets a fleet become smaller again by itself."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.autoscaling.policies import may_scale_in, tracked_metric
from rightsizer.domain.endpoint import ScalableTarget

METRIC = "SageMakerVariantInvocationsPerInstance"
POLICY = {
    "PolicyName": "keep-busy",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 100.0,
        "PredefinedMetricSpecification": {"PredefinedMetricType": METRIC},
    },
}
LOCKED = {**POLICY["TargetTrackingScalingPolicyConfiguration"], "DisableScaleIn": True}  # type: ignore[dict-item]
OWN = ScalableTarget(
    resource_id="endpoint/chat/variant/v",
    dimension="sagemaker:variant:DesiredInstanceCount",
    minimum=1,
    maximum=4,
    policies=(POLICY,),
)


@pytest.mark.parametrize(
    "changed",
    [
        {"policies": ({**POLICY, "TargetTrackingScalingPolicyConfiguration": LOCKED},)},
        {"suspended": {"DynamicScalingInSuspended": True}},
        {"scheduled": ({"ScheduledActionName": "night"},)},
    ],
)
def test_a_fleet_that_may_not_shrink_by_itself_is_told_apart(changed: dict[str, Any]) -> None:
    assert may_scale_in(OWN)
    assert not may_scale_in(replace(OWN, **changed))


def test_the_metric_of_a_policy_is_its_predefined_one() -> None:
    assert (tracked_metric(POLICY), tracked_metric({"PolicyType": "StepScaling"})) == (METRIC, "")
