"""Metric and target of a policy that is added, and its two requests as Application Auto Scaling takes them."""

import pytest

from rightsizer.autoscaling.target_tracking import (
    CONCURRENT,
    REQUESTS,
    choose_metric,
    metric_reason,
    target_text,
    tracking_steps,
)
from rightsizer.domain.option import Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code, Reason

TARGET = Target("ml.g5.xlarge", 1, minimum=1, maximum=4, metric=REQUESTS, target_value=84.0)


@pytest.mark.parametrize(
    ("workers", "service_s", "instances", "metric", "value"),
    [
        (1, 0.5, 1, REQUESTS, 84.0),  # two a second x 0.7 x 60
        (1, 0.46, 2, REQUESTS, 91.0),  # 91.3: cut off, never busier than the replay
        (4, 0.005, 1, REQUESTS, 33000.0),
        (1, 14.0, 2, REQUESTS, 3.0),
        (1, 8.4, 1, REQUESTS, 5.0),  # five a minute are enough
        (4, 60.0, 1, CONCURRENT, 2.8),
        (8, 120.0, 1, CONCURRENT, 5.6),
        (8, 120.0, 2, REQUESTS, 2.8),
    ],
)
def test_the_target_keeps_seven_tenths_of_what_an_instance_serves_busy(
    workers: int, service_s: float, instances: int, metric: str, value: float
) -> None:
    assert choose_metric(workers, service_s, instances) == (metric, value)


def test_few_long_requests_on_an_instance_that_serves_one_at_a_time_are_followed_by_no_metric() -> None:
    found = choose_metric(1, 20.0, 2)
    assert isinstance(found, Reason)
    assert found.code is Code.NOT_APPLICABLE
    assert (
        "requests of 20 s on instances that serve 1 at once: 4.2 requests a minute keep 2 of them busy"
        in found.sentence
    )
    assert isinstance(choose_metric(1, 20.0, 3), tuple), "chance is less in a larger fleet"
    assert isinstance(choose_metric(3, 60.0, 2), Reason), "a maximum of three is no measure of their load yet"


def test_each_metric_has_a_reason() -> None:
    assert "the mean load of a minute" in metric_reason(REQUESTS)
    assert "within ten seconds" in metric_reason(CONCURRENT)


def test_it_is_said_with_metric_and_target() -> None:
    assert target_text(TARGET) == "target tracking on SageMakerVariantInvocationsPerInstance at 84"


def test_the_target_is_registered_before_its_policy_and_taken_away_at_once() -> None:
    (registered, policy), gone = tracking_steps("chat", "AllTraffic", TARGET)
    who = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/chat/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    assert (registered.kind, registered.params) == (
        StepKind.REGISTER_TARGET,
        {**who, "MinCapacity": 1, "MaxCapacity": 4},
    )
    assert (gone.kind, gone.params) == (StepKind.DEREGISTER_TARGET, who)
    assert policy.kind is StepKind.PUT_POLICY
    assert policy.params == {
        **who,
        "PolicyName": "rightsizer-tracking",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": 84.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": REQUESTS},
            "ScaleInCooldown": 300,
            "ScaleOutCooldown": 300,
        },
    }
