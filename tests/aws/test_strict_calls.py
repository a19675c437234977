"""Calls that AWS refuses in the shape that looks right: an alarm's children, tags by ARN, the days of Savings Plans."""

import pytest

from rightsizer.aws.cloudwatch import CloudWatchAlarms
from rightsizer.aws.session import Session
from rightsizer.aws.tags import TagReader
from sandbox.account import Sandbox


def put_alarm(box: Sandbox, name: str, endpoint: str, state: str) -> None:
    box.client("cloudwatch").put_metric_alarm(
        AlarmName=name, Namespace="AWS/SageMaker", MetricName="Invocations", Statistic="Sum", Period=60,
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}], EvaluationPeriods=1, Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )  # fmt: skip
    box.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue=state, StateReason="the test")


@pytest.mark.parametrize("nested", [False, True], ids=["a composite alarm", "one within another"])
def test_a_composite_alarm_means_the_endpoints_of_its_children_in_alarm(
    box: Sandbox, account: Session, nested: bool
) -> None:
    put_alarm(box, "chat-busy", "chat", "ALARM")
    put_alarm(box, "search-busy", "search", "OK")
    cloudwatch = box.client("cloudwatch")
    cloudwatch.put_composite_alarm(AlarmName="any", AlarmRule='ALARM("chat-busy") OR ALARM("search-busy")')
    cloudwatch.put_composite_alarm(AlarmName="outer", AlarmRule="ALARM(any)")
    for name in ("any", "outer"):
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="the test")
    assert CloudWatchAlarms(account).endpoints_in_alarm("outer" if nested else "any") == ("chat",)


def test_a_composite_alarm_without_a_child_in_alarm_means_no_endpoint(box: Sandbox, account: Session) -> None:
    put_alarm(box, "chat-busy", "chat", "OK")
    box.client("cloudwatch").put_composite_alarm(AlarmName="any", AlarmRule="ALARM(chat-busy)")
    assert CloudWatchAlarms(account).endpoints_in_alarm("any") == ()


def test_tags_are_read_by_arn_without_a_page(box: Sandbox, account: Session) -> None:
    arn = box.add_endpoint("chat", tags={"rightsizer:mode": "auto"})
    assert TagReader(account.client("resourcegroupstaggingapi"), account.client("sagemaker")).read([arn]) == {
        arn: {"rightsizer:mode": "auto"}
    }
    (call,) = box.calls.of("resourcegroupstaggingapi", "GetResources")
    assert dict(call.params) == {"ResourceARNList": [arn]}
