"""Every read that a scan makes, tried once with the caller's credentials: what works, and which permission lacks."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rightsizer.aws.errors import reading
from rightsizer.aws.read_checks import READS, Scene, attempt, promql
from rightsizer.aws.session import Session
from rightsizer.domain.self_test import Check, Outcome
from rightsizer.errors import RightsizerError

SCAN = (
    "sagemaker:ListEndpoints",
    "sagemaker:DescribeEndpoint",
    "sagemaker:DescribeEndpointConfig",
    "sagemaker:DescribeModel",
    "tag:GetResources",
    "sagemaker:ListTags",
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:DescribeScalingPolicies",
    "application-autoscaling:DescribeScheduledActions",
    "cloudwatch:GetMetricData",
    "cloudwatch:ListMetrics",
    "pricing:GetProducts",
    "servicequotas:ListServiceQuotas",
    "servicequotas:ListAWSDefaultServiceQuotas",
    "savingsplans:DescribeSavingsPlans",
)
"""What `scan` reads with. Of plans their use is asked too, where there is one, which AWS bills: it is not tried."""
PROMQL = "cloudwatch:GetMetricData and cloudwatch:ListMetrics, for PromQL"


def examine(session: Session, now: datetime) -> Iterator[Check]:
    """Try the reads one after the other. A missing permission never stops the next."""
    identity, purpose = "sts:GetCallerIdentity", "knowing the account"
    try:
        account = session.account()
    except RightsizerError as error:
        yield Check(identity, purpose, Outcome.FAILED, str(error), "sign in to AWS, or name a profile with --profile")
        rest = f"without valid credentials none of the other {len(SCAN)} reads was tried"
        yield Check("all other reads", "scanning", Outcome.NOT_CHECKED, rest)
        return
    yield Check(identity, purpose, Outcome.OK, f"account {account}")
    scene = Scene(session, account, now)
    for action in SCAN:
        read = READS[action]
        yield attempt(action, read.purpose, lambda call=read.call: call(scene), f"allow {action} to these credentials")  # type: ignore[misc]
    cache = "knowing how full the KV cache of vLLM and SGLang is, with detailed observability"
    yield attempt(PROMQL, cache, lambda: promql(scene), f"allow {PROMQL}")


def incident_alarms(session: Session, names: Sequence[str]) -> Iterator[Check]:
    """Whether each incident alarm of the settings exists: no change begins while one of them is missing."""
    action, purpose = "cloudwatch:DescribeAlarms", "changing nothing while an incident is on"
    found: set[str] = set()
    try:
        for start in range(0, len(names), 100):
            with reading(action, purpose):
                answer = session.client("cloudwatch").describe_alarms(
                    AlarmNames=names[start : start + 100], AlarmTypes=["MetricAlarm", "CompositeAlarm"], MaxRecords=100
                )
            rows: list[Any] = [*answer.get("MetricAlarms", ()), *answer.get("CompositeAlarms", ())]
            found |= {row["AlarmName"] for row in rows}
    except RightsizerError as error:
        yield Check(action, purpose, Outcome.FAILED, str(error), f"allow {action} to these credentials")
        return
    for name in names:
        if name in found:
            yield Check(action, purpose, Outcome.OK, f"alarm {name}")
        else:
            missing = f"there is no alarm {name}; no change begins until it exists or leaves incident_alarms of Limits"
            yield Check(action, purpose, Outcome.FAILED, missing, f"create the alarm {name}, or take it out of Limits")
