"""What of an owner's autoscaling lets a fleet become smaller again by itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rightsizer.autoscaling.policies import may_scale_in, tracked_metric
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.recommendation import Gate
from tests import labelled

CASES = Path(labelled.__file__).parent / "cases"

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


@pytest.mark.parametrize("suspended", [{}, {"DynamicScalingInSuspended": True}])
def test_automatic_mode_asks_where_the_owners_autoscaling_may_not_shrink_the_fleet(
    monkeypatch: pytest.MonkeyPatch, suspended: dict[str, bool]
) -> None:
    scaled = labelled._scaled
    monkeypatch.setattr(labelled, "_scaled", lambda *given: replace(scaled(*given), suspended=suspended))
    found = labelled.judged(labelled.read(CASES / "scaled-smaller-host-by-itself.yaml"))
    assert found.gate is (Gate.PROPOSE if suspended else Gate.APPLY)
