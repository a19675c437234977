"""Every read that a scan makes, tried once with the caller's credentials: what works, and which permission lacks."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rightsizer.aws.errors import reading
<<<<<<< HEAD
from rightsizer.aws.reads import READS, Scene, attempt, promql
=======
from rightsizer.aws.gpu_places import UTILISATION
from rightsizer.aws.kv_cache import PERMISSIONS, SECONDS, query_of
>>>>>>> w/slack
from rightsizer.aws.session import Session
from rightsizer.errors import RightsizerError
from rightsizer.model.self_test import Check, Outcome

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
<<<<<<< HEAD
        if name in found:
            yield Check(action, purpose, Outcome.OK, f"alarm {name}")
        else:
            missing = f"there is no alarm {name}; no change begins until it exists or leaves incident_alarms of Limits"
            yield Check(action, purpose, Outcome.FAILED, missing, f"create the alarm {name}, or take it out of Limits")
=======
        missing = f"there is no alarm {name}; no change begins until it exists or leaves incident_alarms of Limits"
        yield Check(action, purpose, ok=name in found, detail=f"alarm {name}" if name in found else missing)


def _calls(session: Session, now: datetime) -> Iterator[tuple[str, str, Call]]:
    sagemaker = session.client("sagemaker")
    yield "sagemaker:ListEndpoints", "finding the endpoints", lambda: sagemaker.list_endpoints(MaxResults=1)
    yield (
        "sagemaker:DescribeEndpoint",
        "knowing what runs",
        lambda: sagemaker.describe_endpoint(EndpointName=NOBODY),
    )
    yield (
        "sagemaker:DescribeEndpointConfig",
        "knowing instance types",
        lambda: sagemaker.describe_endpoint_config(EndpointConfigName=NOBODY),
    )
    yield (
        "sagemaker:DescribeModel",
        "telling multi-model endpoints and pipelines apart",
        lambda: sagemaker.describe_model(ModelName=NOBODY),
    )
    tagging = session.client("resourcegroupstaggingapi")
    yield (
        "tag:GetResources",
        "reading rightsizer:mode and owners",
        partial(tagging.get_resources, ResourceTypeFilters=["sagemaker:endpoint"]),
    )
    yield from _scaling(session.client("application-autoscaling"))
    yield from _figures(session, now)


def _scaling(scaling: Any) -> Iterator[tuple[str, str, Call]]:
    for action, purpose, call in (
        ("DescribeScalableTargets", "knowing which endpoints scale by themselves", scaling.describe_scalable_targets),
        ("DescribeScalingPolicies", "knowing how they scale", scaling.describe_scaling_policies),
        ("DescribeScheduledActions", "knowing when they scale", scaling.describe_scheduled_actions),
    ):
        yield f"application-autoscaling:{action}", purpose, partial(call, ServiceNamespace="sagemaker")


def _figures(session: Session, now: datetime) -> Iterator[tuple[str, str, Call]]:
    query = {
        "Id": "q0",
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/SageMaker",
                "MetricName": "Invocations",
                "Dimensions": [{"Name": "EndpointName", "Value": NOBODY}],
            },
            "Period": 300,
            "Stat": "Sum",
        },
    }
    end = now.replace(minute=0, second=0, microsecond=0)
    yield (
        "cloudwatch:GetMetricData",
        "knowing how endpoints are used",
        lambda: session.client("cloudwatch").get_metric_data(
            MetricDataQueries=[query], StartTime=end - timedelta(hours=1), EndTime=end
        ),
    )
    yield from _finer(session, end)
    yield (
        "pricing:GetProducts",
        "pricing instance hours (else the dated snapshot prices them)",
        lambda: session.pricing().get_products(
            ServiceCode="AmazonSageMaker",
            Filters=[{"Type": "TERM_MATCH", "Field": "component", "Value": "Hosting"}],
            MaxResults=1,
        ),
    )
    yield (
        "servicequotas:ListServiceQuotas",
        "knowing what the account may start",
        lambda: session.client("service-quotas").list_service_quotas(ServiceCode="sagemaker", MaxResults=1),
    )
    yield (
        "servicequotas:ListAWSDefaultServiceQuotas",
        "knowing the quotas that were never changed",
        lambda: session.client("service-quotas").list_aws_default_service_quotas(ServiceCode="sagemaker", MaxResults=1),
    )
    yield (
        "savingsplans:DescribeSavingsPlans",
        "knowing what is committed already",
        lambda: session.client("savingsplans", "us-east-1").describe_savings_plans(states=["active"]),
    )


def _finer(session: Session, end: datetime) -> Iterator[tuple[str, str, Call]]:
    """Metrics that only some configurations have published."""
    yield (
        "cloudwatch:ListMetrics",
        "counting the GPUs that work, of several in an instance with enhanced metrics",
        lambda: session.client("cloudwatch").list_metrics(Namespace=UTILISATION, RecentlyActive="PT3H"),
    )
    yield (
        PERMISSIONS,
        "knowing how full the KV cache of vLLM and SGLang is, with detailed observability",
        lambda: session.client("cloudwatch-promql", seconds=SECONDS).query_metrics(
            Query=query_of(NOBODY, "AllTraffic", 300),
            Start=int((end - timedelta(hours=1)).timestamp()),
            End=int(end.timestamp()),
            Step=300,
        ),
    )


def _try(action: str, purpose: str, call: Call) -> Check:
    try:
        with reading(action, purpose):
            answer = call()
    except VanishedError:
        return Check(action, purpose, ok=True, detail="")
    except (ReadError, RightsizerError) as error:
        return Check(action, purpose, ok=False, detail=str(error))
    account = answer.get("Account")
    return Check(action, purpose, ok=True, detail=f"account {account}" if account else "")
>>>>>>> w/slack
