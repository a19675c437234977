"""Alarms: their first state, M of N, missing data, composite rules, and the grouped alarm with its contributors."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
from sandbox.refusals import NotSimulated
from tests.template.stack import stack

DIMENSIONS = [{"Name": "EndpointName", "Value": "chat"}, {"Name": "VariantName", "Value": "AllTraffic"}]
GROUPED = (
    'SELECT AVG(GPUUtilization) FROM SCHEMA("/aws/sagemaker/Endpoints", EndpointName, VariantName) '
    "GROUP BY EndpointName, VariantName ORDER BY AVG() ASC"
)


def alarm(box: Sandbox, name: str = "busy", **more: Any) -> None:
    request: dict[str, Any] = {
        "AlarmName": name, "Namespace": "/aws/sagemaker/Endpoints", "MetricName": "GPUUtilization",
        "Dimensions": DIMENSIONS, "Statistic": "Average", "Period": 60, "EvaluationPeriods": 3, "Threshold": 50,
        "ComparisonOperator": "GreaterThanThreshold", "TreatMissingData": "missing",
    }  # fmt: skip
    box.client("cloudwatch").put_metric_alarm(**request | more)


def state(box: Sandbox, name: str = "busy") -> str:
    (row,) = box.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return str(row["StateValue"])


def series(box: Sandbox, values: list[float], name: str = "chat", since: int = 0) -> None:
    start = box.clock.now + timedelta(minutes=since)
    box.put_series(name, "AllTraffic", "GPUUtilization", start, 60, values)


def test_a_new_alarm_has_insufficient_data_until_its_first_evaluation(box: Sandbox) -> None:
    series(box, [10.0] * 10, since=-5)
    alarm(box)
    assert state(box) == "INSUFFICIENT_DATA"
    box.clock.advance(timedelta(minutes=1))
    assert state(box) == "OK"


def test_an_alarm_fires_when_enough_datapoints_breach_and_returns(box: Sandbox) -> None:
    series(box, [10.0] * 5 + [90.0] * 3 + [10.0] * 10)
    alarm(box, DatapointsToAlarm=2)
    box.clock.advance(timedelta(minutes=6))
    assert state(box) == "OK"
    box.clock.advance(timedelta(minutes=1))
    assert state(box) == "ALARM"
    box.clock.advance(timedelta(minutes=5))
    assert state(box) == "OK"
    moves = [event["detail"]["state"]["value"] for event in box.events_of("CloudWatch Alarm State Change")]
    assert moves == ["OK", "ALARM", "OK"]
    detail = box.events_of("CloudWatch Alarm State Change")[1]["detail"]
    metric = detail["configuration"]["metrics"][0]["metricStat"]["metric"]
    assert metric["dimensions"] == {"EndpointName": "chat", "VariantName": "AllTraffic"}
    assert detail["previousState"]["value"] == "OK"


@pytest.mark.parametrize(
    ("treatment", "expected"),
    [("missing", "INSUFFICIENT_DATA"), ("notBreaching", "OK"), ("breaching", "ALARM"), ("ignore", "INSUFFICIENT_DATA")],
)
def test_missing_data_means_what_the_alarm_says(box: Sandbox, treatment: str, expected: str) -> None:
    alarm(box, TreatMissingData=treatment)
    box.clock.advance(timedelta(minutes=5))
    assert state(box) == expected


def test_the_grouped_alarm_has_a_contributor_for_each_idle_series(box: Sandbox) -> None:
    start = box.clock.now - timedelta(hours=4)
    for name, level in (("idle", 1.0), ("busy", 80.0)):
        box.put_series(name, "AllTraffic", "GPUUtilization", start, 300, [level] * 60)
    box.put_series("idle", "AllTraffic", "GPUUtilization", start, 300, [1.0] * 60, dimensions={"InstanceId": "i-1"})
    box.client("cloudwatch").put_metric_alarm(
        AlarmName="gpu-idle", Metrics=[{"Id": "q1", "Period": 300, "Expression": GROUPED, "ReturnData": True}],
        EvaluationPeriods=36, DatapointsToAlarm=36, Threshold=10, ComparisonOperator="LessThanThreshold",
        TreatMissingData="notBreaching",
    )  # fmt: skip
    box.clock.advance(timedelta(minutes=5))
    (row,) = box.client("cloudwatch").describe_alarm_contributors(AlarmName="gpu-idle")["AlarmContributors"]
    assert row["ContributorAttributes"] == {"EndpointName": "idle", "VariantName": "AllTraffic"}
    assert len(row["ContributorId"]) == 16
    (event,) = box.events_of("CloudWatch Alarm Contributor State Change")
    assert event["detail"]["state"]["value"] == "ALARM"
    assert event["detail"]["alarmContributor"]["attributes"]["EndpointName"] == "idle"


def test_the_idle_alarm_of_the_stack_fires_though_points_are_late_and_one_is_missing(box: Sandbox) -> None:
    idle = dict(stack(Extras="grouped-alarm").of("AWS::CloudWatch::Alarm")["GpuIdleAlarm"])
    start = box.clock.now - timedelta(hours=3)
    levels = [1.0] * 20 + [float("nan")] + [1.0] * 14  # the last five minutes have not come yet
    box.put_series("idle", "AllTraffic", "GPUUtilization", start, 300, levels)
    box.client("cloudwatch").put_metric_alarm(**idle)
    box.clock.advance(timedelta(minutes=5))
    assert idle["EvaluationPeriods"] * 300 < 3 * 3600
    rows = box.client("cloudwatch").describe_alarm_contributors(AlarmName=idle["AlarmName"])["AlarmContributors"]
    assert [row["ContributorAttributes"]["EndpointName"] for row in rows] == ["idle"]


def test_a_composite_alarm_follows_its_rule(box: Sandbox) -> None:
    series(box, [90.0] * 10)
    alarm(box)
    alarm(box, "calm", ComparisonOperator="LessThanThreshold")
    cloudwatch = box.client("cloudwatch")
    cloudwatch.put_composite_alarm(AlarmName="both", AlarmRule='ALARM("busy") AND NOT (ALARM(calm) OR FALSE)')
    box.clock.advance(timedelta(minutes=5))
    (row,) = cloudwatch.describe_alarms(AlarmNames=["both"], AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
    assert row["StateValue"] == "ALARM"
    with pytest.raises(ClientError, match="cannot read"):
        cloudwatch.put_composite_alarm(AlarmName="bad", AlarmRule="SOMETIMES(busy)")


def test_an_unknown_name_is_refused_and_the_alarms_with_correct_names_are_deleted(box: Sandbox) -> None:
    alarm(box)
    with pytest.raises(ClientError, match="ResourceNotFound"):
        box.client("cloudwatch").delete_alarms(AlarmNames=["busy", "nobody"])
    assert box.client("cloudwatch").describe_alarms(AlarmNames=["busy"])["MetricAlarms"] == []


def test_overwriting_an_alarm_keeps_its_tags_and_its_state(box: Sandbox) -> None:
    alarm(box, Tags=[{"Key": "rightsizer:change", "Value": "c-1"}])
    alarm(box, Threshold=60, Tags=[{"Key": "other", "Value": "x"}])
    (row,) = box.client("cloudwatch").describe_alarms(AlarmNames=["busy"])["MetricAlarms"]
    tags = box.client("cloudwatch").list_tags_for_resource(ResourceARN=row["AlarmArn"])["Tags"]
    assert row["Threshold"] == 60
    assert tags == [{"Key": "rightsizer:change", "Value": "c-1"}]


def test_windows_and_expressions_that_cloudwatch_refuses(box: Sandbox) -> None:
    with pytest.raises(ClientError, match="more than a day"):
        alarm(box, Period=300, EvaluationPeriods=300)
    metrics = [{"Id": "e", "Expression": "m1 / m2", "ReturnData": True, "Period": 60}]
    with pytest.raises(NotSimulated):
        box.client("cloudwatch").put_metric_alarm(
            AlarmName="math", Metrics=metrics, EvaluationPeriods=1, Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )  # fmt: skip
