"""When a marked endpoint may go, in whole sentences, and the script that brings it back as it was."""

import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.baseline import REQUESTS
from rightsizer.changes.deletion import ALIVE, deletion_verdict, restore_script
from rightsizer.domain.change import FailureClass
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import MetricStatistic, MetricWindow, NoMetrics, Series
from tests.changes.test_deletion import MARKED, SILENT, START, WEEK

NAN = float("nan")
NOTHING = NoMetrics("chat", "v", Reason(Code.NO_DATAPOINTS, "CloudWatch has no datapoint"))
REFUSED = NoMetrics("chat", "v", Reason(Code.PERMISSION_MISSING, "GetMetricData is refused"))


def window(rows: dict[MetricStatistic, list[float]]) -> MetricWindow:
    series = {signal: Series(START, 300, array("d", values)) for signal, values in rows.items()}
    return replace(SILENT, series=series)


def judged(windows: Sequence[MetricWindow | NoMetrics], after: timedelta = WEEK) -> tuple[str, Code, str, FailureClass]:
    found = deletion_verdict(MARKED, windows, START + after)
    return found.judgement, found.reason.code, found.reason.sentence, found.failure


def test_silence_of_the_whole_wait_lets_the_owner_delete_it() -> None:
    said = "no request in the 7 days since it was marked; its owner may delete it"
    assert judged([SILENT]) == ("proven", Code.IDLE, said, FailureClass.NONE)


def test_until_then_it_is_watched_and_the_end_is_named() -> None:
    said = "marked for deletion; nobody called it yet, and it is watched until Mon 9 Nov 2026, 10:00 UTC"
    almost = WEEK - timedelta(seconds=1)
    assert judged([SILENT], almost) == ("not-yet", Code.UNPROVEN, said, FailureClass.NONE)


@pytest.mark.parametrize("after", [timedelta(hours=1), WEEK, 3 * WEEK])
def test_one_request_at_any_time_ends_the_wait(after: timedelta) -> None:
    called = window({REQUESTS: [NAN, 0.0, 1.0], ALIVE[0]: [20.0] * 3})
    said = "1 requests came after it was marked for deletion, so it is in use"
    assert judged([SILENT, called], after) == ("bad", Code.CHANGED_SINCE, said, FailureClass.OUTSIDE)
    many = window({REQUESTS: [1000.0, 234.0]})
    assert judged([many, REFUSED], after)[2].startswith("1,234 requests came")


def test_what_could_not_be_read_is_read_for_another_week() -> None:
    said = "no request was seen, but not all could be read: GetMetricData is refused"
    almost = 2 * WEEK - timedelta(seconds=1)
    for after, judgement in ((WEEK, "not-yet"), (almost, "not-yet"), (2 * WEEK, "given-up")):
        assert judged([SILENT, REFUSED], after) == (judgement, Code.UNPROVEN, said, FailureClass.NONE)


@pytest.mark.parametrize(("seen", "judgement"), [(9, "proven"), (8, "given-up")])
@pytest.mark.parametrize("signal", ALIVE)
def test_silence_counts_where_either_memory_was_published_in_nine_of_ten_periods(
    signal: MetricStatistic, seen: int, judgement: str
) -> None:
    other = next(one for one in ALIVE if one != signal)
    some = window({signal: [20.0] * seen + [NAN] * (10 - seen), other: [NAN] * 10})
    found = judged([SILENT, some])
    assert found[0] == judgement
    if judgement == "given-up":
        said = "CloudWatch has utilisation for 80 % of the wait only; missing is not idle"
        assert found == ("given-up", Code.NO_DATAPOINTS, said, FailureClass.NONE)


@pytest.mark.parametrize("nothing", [[], [NOTHING], [SILENT, NOTHING], [window({})], [window({ALIVE[0]: []})]])
def test_where_nothing_was_published_nothing_is_proven(nothing: list[MetricWindow | NoMetrics]) -> None:
    said = "CloudWatch has utilisation for 0 % of the wait only; missing is not idle"
    assert judged(nothing) == ("given-up", Code.NO_DATAPOINTS, said, FailureClass.NONE)


DIMENSION = "sagemaker:variant:DesiredInstanceCount"
WHO = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/chat/variant/v",
    "ScalableDimension": DIMENSION,
}
ARN = "arn:aws:autoscaling:eu-west-1:111122223333:scalingPolicy:1:policyName/steps"
POLICY = {**WHO, "PolicyName": "steps", "PolicyType": "StepScaling"}
NIGHT = {**WHO, "ScheduledActionName": "night", "Schedule": "cron(0 20 * * ? *)"}
TARGET = ScalableTarget(
    WHO["ResourceId"],
    DIMENSION,
    1,
    4,
    policies=(POLICY | {"PolicyARN": ARN, "Alarms": [], "CreationTime": START},),
    scheduled=(NIGHT | {"ScheduledActionARN": "arn", "CreationTime": START},),
)
BODY: dict[str, Any] = {
    "EndpointConfigName": "old",
    "EndpointConfigArn": "arn",
    "CreationTime": START,
    "KmsKeyId": None,
    "ProductionVariants": [
        {"VariantName": "v", "InitialInstanceCount": 1},
        {"VariantName": "w", "InitialInstanceCount": 2},
    ],
}
TAGS = {"team": "search", "aws:cloudformation:stack-name": "ml", "cost": "7"}
CONFIG = ConfigSight("old", BODY, START, tags=TAGS)
RAN = (VariantCount("v", "ml.g5.xlarge", 3, 0.7), VariantCount("w", "ml.g5.xlarge", 2, 0.3))
BEFORE = Before("old", START, "", RAN, scaling=(TARGET,), tags={"b": "2", "a": "1"})


def script(before: Before = BEFORE) -> list[str]:
    return list(restore_script(EndpointRef("1", "eu-west-1", "chat"), CONFIG, before))


def request(line: str) -> tuple[str, Any]:
    """The command of a line and its request."""
    found = re.fullmatch(r"(?:# )?aws (\S+ \S+) --region eu-west-1 --cli-input-json '(.*)'", line)
    assert found is not None, line
    return found[1], json.loads(found[2])


def test_the_script_makes_the_endpoint_its_counts_and_its_autoscaling_in_this_order() -> None:
    lines = script()
    assert lines[:2] == [
        "#!/bin/sh -e",
        "# Brings back endpoint chat. Only if its configuration is gone as well:",
    ]
    assert lines[2].startswith("# aws"), "the configuration is kept"
    assert lines[4] == "aws sagemaker wait endpoint-in-service --region eu-west-1 --endpoint-name chat"
    rest = [request(line) for line in (*lines[2:4], *lines[5:])]
    tags = [{"Key": "cost", "Value": "7"}, {"Key": "team", "Value": "search"}]
    counts = [{"VariantName": "v", "DesiredInstanceCount": 3, "DesiredWeight": 0.7}]
    assert rest == [
        (
            "sagemaker create-endpoint-config",
            {"EndpointConfigName": "old", "ProductionVariants": BODY["ProductionVariants"], "Tags": tags},
        ),
        (
            "sagemaker create-endpoint",
            {
                "EndpointName": "chat",
                "EndpointConfigName": "old",
                "Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}],
            },
        ),
        (
            "sagemaker update-endpoint-weights-and-capacities",
            {"EndpointName": "chat", "DesiredWeightsAndCapacities": counts},
        ),
        (
            "application-autoscaling register-scalable-target",
            WHO | {"MinCapacity": 1, "MaxCapacity": 4},
        ),
        ("application-autoscaling put-scaling-policy", POLICY),
        ("application-autoscaling put-scheduled-action", NIGHT),
    ]


def test_what_was_suspended_and_tagged_is_so_again_without_the_tags_of_aws() -> None:
    suspended = {"DynamicScalingInSuspended": True, "ScheduledScalingSuspended": False}
    held = replace(TARGET, policies=(), scheduled=(), suspended=suspended, tags={"team": "search", "AWS:x": "y"})
    (line,) = script(replace(BEFORE, scaling=(held,)))[6:]
    bounds = WHO | {"MinCapacity": 1, "MaxCapacity": 4, "SuspendedState": suspended, "Tags": {"team": "search"}}
    assert request(line) == ("application-autoscaling register-scalable-target", bounds)
    free = replace(held, suspended=dict.fromkeys(suspended, False), tags={})
    (line,) = script(replace(BEFORE, scaling=(free,)))[6:]
    assert request(line)[1] == WHO | {"MinCapacity": 1, "MaxCapacity": 4}


def test_the_alarm_of_a_step_policy_asks_for_the_new_arn_of_its_policy() -> None:
    alarm = {"AlarmName": "busy", "AlarmActions": [ARN, "arn:aws:sns:eu-west-1:1:page"]}
    line = script(replace(BEFORE, alarms=(alarm,)))[-1]
    assert line.startswith('POLICY_1="$(aws application-autoscaling describe-scaling-policies')
    assert "&& aws cloudwatch put-metric-alarm --region eu-west-1 --cli-input-json '" in line
    assert ARN not in line
    assert '"arn:aws:sns:eu-west-1:1:page"' in line
    assert '"AlarmName": "busy"' in line
