"""Target tracking that moves counts where a test asks for it, by AWS's alarms, cooldowns and suspensions."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.sagemaker.load import Served

WHO: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/chat/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


def policy(box: Sandbox, name: str = "track", **changes: Any) -> None:
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    config = {"TargetValue": 100.0, "PredefinedMetricSpecification": metric} | changes
    box.client("application-autoscaling").put_scaling_policy(
        **WHO, PolicyName=name, PolicyType="TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration=config
    )


def driven(
    box: Sandbox, requests: int, calm: timedelta = timedelta(0), latency_ms: float = 50.0, **changes: Any
) -> None:
    """One instance between one and four, a policy of 100 requests a minute, and 95 that come at first, then so many."""
    begins = box.clock.now + calm
    box.add_endpoint("chat", count=1)
    box.autoscale("chat", 1, 4, invocations_per_instance=None)
    policy(box, **changes)

    def load(at: datetime, instance_type: str, count: int) -> Served:
        return Served(requests if at >= begins else round(95 * 50 / latency_ms), latency_ms=latency_ms)

    box.world.fleet.load.set("chat", load)


def count(box: Sandbox) -> int:
    return box.counts("chat")["AllTraffic"]


def test_nothing_moves_unless_a_test_asks_for_it(box: Sandbox) -> None:
    driven(box, 350)
    box.clock.advance(timedelta(hours=1))
    assert count(box) == 1


def test_out_comes_after_three_minutes_by_metric_over_target(box: Sandbox) -> None:
    driven(box, 250, calm=timedelta(minutes=30))
    box.follow_targets()
    box.clock.advance(timedelta(minutes=32))
    assert count(box) == 1
    box.clock.advance(timedelta(minutes=2))
    assert count(box) == 3, "250 requests a minute for 100 each"


def test_in_comes_after_fifteen_minutes_one_at_a_time_with_its_cooldown_between(box: Sandbox) -> None:
    driven(box, 20, calm=timedelta(minutes=30), ScaleInCooldown=600)
    box.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="chat", DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 3}]
    )
    box.clock.advance(timedelta(minutes=10))
    box.follow_targets()
    seen = []
    for _ in range(40):
        box.clock.advance(timedelta(minutes=1))
        seen.append(count(box))
    assert sorted(set(seen), reverse=True) == [3, 2, 1]
    assert seen.index(1) - seen.index(2) >= 10


@pytest.mark.parametrize("way", ["out", "in"])
def test_a_suspended_direction_and_a_policy_without_scale_in_do_not_move(box: Sandbox, way: str) -> None:
    driven(box, 350 if way == "out" else 10, DisableScaleIn=way == "in")
    if way == "out":
        state = {"DynamicScalingOutSuspended": True}
        box.client("application-autoscaling").register_scalable_target(**WHO, SuspendedState=state)
    else:
        box.client("application-autoscaling").register_scalable_target(**WHO, MinCapacity=2)
        box.clock.advance(timedelta(minutes=10))
        box.client("application-autoscaling").register_scalable_target(**WHO, MinCapacity=1)
    before = count(box)
    box.follow_targets()
    box.clock.advance(timedelta(hours=1))
    assert count(box) == before


def test_one_policy_a_metric_and_none_of_another_kind_of_target(box: Sandbox) -> None:
    driven(box, 10)
    with pytest.raises(ClientError, match="Only one TargetTrackingScaling policy"):
        policy(box, "second")
    policy(box, TargetValue=50.0)
    other = {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}
    policy(box, "concurrent", TargetValue=2.8, PredefinedMetricSpecification=other)
    found = box.client("cloudwatch").describe_alarms(AlarmNamePrefix="TargetTracking-")["MetricAlarms"]
    assert {(a["MetricName"], a["Statistic"], a["Period"]) for a in found} == {
        ("InvocationsPerInstance", "Sum", 60),
        ("ConcurrentRequestsPerModel", "Maximum", 10),
    }


def test_concurrent_requests_are_followed_out_within_a_minute_and_in_again(box: Sandbox) -> None:
    """120 requests a minute of 4.4 s on average are 8.8 at once, for 2.8 each."""
    metric = {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}
    driven(box, 120, timedelta(minutes=30), latency_ms=4000.0, TargetValue=2.8, PredefinedMetricSpecification=metric)
    box.follow_targets()
    box.clock.advance(timedelta(minutes=30))
    assert count(box) == 1
    box.clock.advance(timedelta(minutes=2))
    assert count(box) == 4
    key = next(key for key in box.world.metrics.known() if key[1] == "ConcurrentRequestsPerModel")
    end = int(box.clock.now.timestamp())
    seen = [value for _, value in box.world.metrics.read(key, end - 120, end, 10, "Maximum")]
    assert len(seen) == 12
    assert max(seen) == pytest.approx(8.8)


def test_concurrent_requests_are_published_only_where_a_policy_follows_them(box: Sandbox) -> None:
    driven(box, 100)
    box.clock.advance(timedelta(minutes=5))
    assert "ConcurrentRequestsPerModel" not in {name for _, name, _ in box.world.metrics.known()}
