"""Application Auto Scaling: what it refuses, and what deregistering takes away."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox

WHO: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/chat/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
STEP = {
    "AdjustmentType": "ChangeInCapacity",
    "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
    "Cooldown": 300,
}


def register(box: Sandbox, minimum: int = 1, maximum: int = 4) -> None:
    box.client("application-autoscaling").register_scalable_target(**WHO, MinCapacity=minimum, MaxCapacity=maximum)


def step_policy(box: Sandbox) -> str:
    answer = box.client("application-autoscaling").put_scaling_policy(
        **WHO, PolicyName="step", PolicyType="StepScaling", StepScalingPolicyConfiguration=STEP
    )
    return str(answer["PolicyARN"])


def test_an_absent_endpoint_and_a_real_time_minimum_of_zero_are_refused(box: Sandbox) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        register(box)
    box.add_endpoint("chat")
    with pytest.raises(ClientError, match="cannot be less than 1"):
        register(box, 0)
    box.add_endpoint("later", asynchronous=True)
    later = WHO | {"ResourceId": "endpoint/later/variant/AllTraffic"}
    box.client("application-autoscaling").register_scalable_target(**later, MinCapacity=0, MaxCapacity=1)


def test_tags_are_taken_for_a_new_target_only(box: Sandbox) -> None:
    box.add_endpoint("chat")
    scaling = box.client("application-autoscaling")
    scaling.register_scalable_target(**WHO, MinCapacity=1, MaxCapacity=2, Tags={"team": "search"})
    with pytest.raises(ClientError, match="use TagResource"):
        scaling.register_scalable_target(**WHO, MinCapacity=1, MaxCapacity=3, Tags={"team": "other"})
    register(box, 1, 3)
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    assert scaling.list_tags_for_resource(ResourceARN=target["ScalableTargetARN"])["Tags"] == {"team": "search"}


def test_registering_moves_the_capacity_into_the_bounds(box: Sandbox) -> None:
    box.add_endpoint("chat", count=1)
    register(box, 2)
    assert (box.status("chat"), box.counts("chat")) == ("Updating", {"AllTraffic": 2})
    box.clock.advance(timedelta(minutes=5))
    assert box.status("chat") == "InService"
    (activity,) = box.client("application-autoscaling").describe_scaling_activities(ServiceNamespace="sagemaker")[
        "ScalingActivities"
    ]
    assert activity["StatusCode"] == "Successful"


def test_a_scale_out_beyond_the_quota_is_a_failed_activity_and_nothing_else(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.xlarge", 1)
    box.set_quota("ml.g5.xlarge", 1)
    register(box, 3)
    assert (box.status("chat"), box.counts("chat")) == ("InService", {"AllTraffic": 1})
    (activity,) = box.world.scaling.activities
    assert activity["StatusCode"] == "Failed"
    assert "ResourceLimitExceeded" in activity["StatusMessage"] or "service limit" in activity["StatusMessage"]


def test_deregistering_takes_policies_and_actions_along_and_strips_the_customer_s_alarm(box: Sandbox) -> None:
    box.add_endpoint("chat")
    box.autoscale("chat", 1, 4)
    client, cloudwatch = box.client("application-autoscaling"), box.client("cloudwatch")
    arn = step_policy(box)
    client.put_scheduled_action(
        **WHO, ScheduledActionName="night", Schedule="cron(0 22 * * ? *)", ScalableTargetAction={"MinCapacity": 1}
    )
    cloudwatch.put_metric_alarm(
        AlarmName="mine", Namespace="AWS/SageMaker", MetricName="Invocations", Statistic="Sum", Period=60,
        EvaluationPeriods=1, Threshold=1, ComparisonOperator="GreaterThanThreshold", AlarmActions=[arn],
    )  # fmt: skip
    names = [row["AlarmName"] for row in cloudwatch.describe_alarms()["MetricAlarms"]]
    assert sum(name.startswith("TargetTracking-endpoint/chat") for name in names) == 2
    client.deregister_scalable_target(**WHO)
    register(box)
    assert client.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"] == []
    assert client.describe_scheduled_actions(ServiceNamespace="sagemaker")["ScheduledActions"] == []
    (left,) = cloudwatch.describe_alarms()["MetricAlarms"]
    assert (left["AlarmName"], left["AlarmActions"]) == ("mine", [])
    assert step_policy(box) != arn


def test_policies_need_a_target_and_come_ten_a_page(box: Sandbox) -> None:
    box.add_endpoint("chat")
    with pytest.raises(ClientError, match="ObjectNotFoundException"):
        step_policy(box)
    register(box)
    client = box.client("application-autoscaling")
    for number in range(12):
        client.put_scaling_policy(
            **WHO, PolicyName=f"p{number}", PolicyType="StepScaling", StepScalingPolicyConfiguration=STEP
        )
    first = client.describe_scaling_policies(ServiceNamespace="sagemaker")
    assert len(first["ScalingPolicies"]) == 10
    rest = client.describe_scaling_policies(ServiceNamespace="sagemaker", NextToken=first["NextToken"])
    assert len(rest["ScalingPolicies"]) == 2
    with pytest.raises(ClientError, match="InvalidNextTokenException"):
        client.describe_scaling_policies(ServiceNamespace="sagemaker", NextToken="guess")


def test_a_scheduled_action_fires_in_its_time_zone_unless_suspended(box: Sandbox) -> None:
    box.add_endpoint("chat", count=1)
    register(box, 1, 4)
    client = box.client("application-autoscaling")
    client.put_scheduled_action(
        **WHO, ScheduledActionName="morning", Schedule="cron(0 11 * * ? *)", Timezone="Europe/Berlin",
        ScalableTargetAction={"MinCapacity": 3},
    )  # fmt: skip
    box.clock.advance(timedelta(minutes=59))
    assert box.counts("chat") == {"AllTraffic": 1}
    box.clock.advance(timedelta(minutes=2))
    assert box.counts("chat") == {"AllTraffic": 3}
    client.register_scalable_target(**WHO, MinCapacity=1, SuspendedState={"ScheduledScalingSuspended": True})
    box.clock.advance(timedelta(days=1))
    (target,) = client.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)


def test_scheduled_actions_fire_on_their_days_of_the_week(box: Sandbox) -> None:
    """The clock begins on a Monday at 09:00 UTC; each day its own count, from Friday evening to Monday morning one."""
    assert box.clock.now.strftime("%a %H") == "Mon 09"
    box.add_endpoint("chat", count=1)
    register(box, 1, 4)
    client = box.client("application-autoscaling")
    rows = [
        ("up", "cron(45 7 ? * MON-FRI *)", 4),
        ("down", "cron(0 18 ? * 2-6 *)", 2),
        ("off", "cron(0 20 ? * FRI *)", 1),
    ]
    for name, schedule, count in rows:
        client.put_scheduled_action(
            **WHO, ScheduledActionName=name, Schedule=schedule,
            ScalableTargetAction={"MinCapacity": count, "MaxCapacity": count},
        )  # fmt: skip
    seen = {}
    for _ in range(7 * 24):
        box.clock.advance(timedelta(hours=1))
        seen[box.clock.now.strftime("%a %H")] = box.counts("chat")["AllTraffic"]
    assert [seen[at] for at in ("Mon 19", "Tue 07", "Tue 08", "Tue 17", "Tue 19")] == [2, 2, 4, 4, 2]
    assert [seen[at] for at in ("Fri 17", "Fri 19", "Fri 21", "Sat 12", "Sun 12", "Mon 07")] == [4, 2, 1, 1, 1, 1]
    assert seen["Mon 09"] == 4


@pytest.mark.parametrize(
    "schedule",
    ["cron(0 8 ? * * *)", "cron(0 8 * * ? *)", "cron(0 8 ? * FRI,SAT *)", "cron(0 8 L * ? *)", "cron(0 8 ? * 6#3 *)"],
)
def test_a_cron_that_aws_takes_is_taken(schedule: str, box: Sandbox) -> None:
    box.add_endpoint("chat", count=1)
    register(box, 1, 4)
    box.client("application-autoscaling").put_scheduled_action(
        **WHO, ScheduledActionName="s", Schedule=schedule, ScalableTargetAction={"MinCapacity": 2}
    )


def test_copies_of_an_inference_component_take_time(box: Sandbox) -> None:
    box.add_endpoint("hub", "ml.g5.12xlarge", inference_components=True)
    box.add_component("small", "hub", copies=2)
    client = box.client("sagemaker")
    client.update_inference_component_runtime_config(
        InferenceComponentName="small", DesiredRuntimeConfig={"CopyCount": 1}
    )
    during = client.describe_inference_component(InferenceComponentName="small")
    assert during["RuntimeConfig"] == {"DesiredCopyCount": 1, "CurrentCopyCount": 2}
    with pytest.raises(ClientError, match="in-progress"):
        client.update_inference_component_runtime_config(
            InferenceComponentName="small", DesiredRuntimeConfig={"CopyCount": 3}
        )
    box.clock.advance(timedelta(minutes=10))
    after = client.describe_inference_component(InferenceComponentName="small")
    assert (after["InferenceComponentStatus"], after["RuntimeConfig"]["CurrentCopyCount"]) == ("InService", 1)
