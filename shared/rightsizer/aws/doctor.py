"""Every read of a scan, tried once with the caller's credentials, and the missing permissions.

Also whether the deployed stack may pass the execution roles of endpoints with inference components: it is only needed
to change their scale-in policy, so lacking it is told and is no fault.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from rightsizer.aws.account import EndpointQuotas
from rightsizer.aws.errors import code_of, translate_read_errors
from rightsizer.aws.iam import simulate_role_pass
from rightsizer.aws.read_checks import READS, Scene, attempt, promql
from rightsizer.aws.session import Session
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.preflight import ACTION, RolePass
from rightsizer.domain.self_test import Check, Outcome
from rightsizer.errors import RightsizerError

SCAN = (
    "sagemaker:ListEndpoints",
    "sagemaker:DescribeEndpoint",
    "sagemaker:DescribeEndpointConfig",
    "sagemaker:DescribeModel",
    "sagemaker:Search",
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
    "savingsplans:DescribeSavingsPlansOfferingRates",
    "sagemaker:ListEndpointConfigs",
    "sagemaker:ListModels",
    "sagemaker:ListInferenceComponents",
    "sagemaker:DescribeInferenceComponent",
    "sagemaker:ListTrainingJobs",
    "sagemaker:DescribeTrainingJob",
)
"""What `scan` reads with. Of plans their use is asked too, where there is one, which AWS bills: it is not tried."""
PROMQL = "cloudwatch:GetMetricData and cloudwatch:ListMetrics, for PromQL"
APPLY_ROLE = "ApplyRole"
"""Logical id of the role of the function that changes endpoints (template.yaml, translated by SAM)."""
CLOCK_OFF_S = 300
"""A third of what AWS lets a signature be off (15 minutes, IAM User Guide, "Elements of a request signature")."""
NAMED = 5
PURPOSE = "changing the scale-in policy of inference components"


def examine(session: Session, now: datetime) -> Iterator[Check]:
    """Try the reads one after the other; without credentials none. A missing permission never stops the next."""
    identity, purpose = "sts:GetCallerIdentity", "knowing the account"
    try:
        account = session.account()
    except RightsizerError as error:
        yield Check(identity, purpose, Outcome.FAILED, str(error), "sign in to AWS, or name a profile with --profile")
        return
    yield Check(identity, purpose, Outcome.OK, f"account {account}")
    scene = Scene(session, account, now)
    for action in SCAN:
        read = READS[action]
        yield attempt(action, read.purpose, lambda call=read.call: call(scene), f"allow {action} to these credentials")  # type: ignore[misc]
    cache = "knowing how full the KV cache of vLLM and SGLang is, with detailed observability"
    yield attempt(PROMQL, cache, lambda: promql(scene), f"allow {PROMQL}")


def clock(session: Session, now: datetime) -> Check:
    """How far this machine's clock is off, by the date of an answer of AWS."""
    action, purpose = "clock of this machine", "signing requests, and looking at the right days"
    with translate_read_errors("sts:GetCallerIdentity", "asking what time it is"):
        answer = session.client("sts").get_caller_identity()
    said = answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date", "")
    try:
        off = abs((parsedate_to_datetime(said) - now).total_seconds())
    except (TypeError, ValueError):
        return Check(action, purpose, Outcome.NOT_CHECKED, "AWS's answer had no date", "compare it with another clock")
    detail = f"{off:.0f} s away from AWS's"
    if off <= CLOCK_OFF_S:
        return Check(action, purpose, Outcome.OK, detail)
    return Check(action, purpose, Outcome.FAILED, detail, "set the clock: AWS refuses requests that are 15 minutes off")


def endpoint_quotas(session: Session, catalogue: Catalogue, now: datetime) -> Iterator[Check]:
    """How many GPU types the account may start at all; a type without a quota is recommended to nobody.

    Nothing where the quotas cannot be read: their own reads say so.
    """
    try:
        known = EndpointQuotas(session, lambda: now, timedelta(0)).endpoint_quotas()
    except RightsizerError:
        return
    gpus = [
        name for name, hardware in sorted(catalogue.types.items()) if hardware.accelerator is not None and name in known
    ]
    closed = [name for name in gpus if known[name] == 0]
    shown = f": {', '.join(closed[:NAMED])}{' and others' if len(closed) > NAMED else ''}" if closed else ""
    detail = f"{len(gpus) - len(closed)} GPU types may be started for endpoints, {len(closed)} have a quota of 0{shown}"
    yield Check("quota values", "knowing which types may be recommended", Outcome.OK, detail)


def incident_alarms(session: Session, names: Sequence[str]) -> Iterator[Check]:
    """Whether each incident alarm of the settings exists: no change begins while one of them is missing."""
    action, purpose = "cloudwatch:DescribeAlarms", "changing nothing while an incident is on"
    found: set[str] = set()
    try:
        for start in range(0, len(names), 100):
            with translate_read_errors(action, purpose):
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


def execution_roles(session: Session, stack: str) -> Iterator[Check]:
    """A check for each execution role; none where no stack is deployed, or no endpoint has components."""
    try:
        ours = _apply_role(session, stack)
        found = _roles(session) if ours else {}
    except RightsizerError as error:
        yield Check(
            ACTION, PURPOSE, Outcome.NOT_CHECKED, str(error), "allow to these credentials what the message names"
        )
        return
    for role, endpoints in sorted(found.items()):
        partition, account = role.split(":")[1], role.split(":")[4]
        held = _role_pass(session, f"arn:{partition}:iam::{account}:role/{ours}", role)
        passes = RolePass(role, ours, held)
        outcome = Outcome.OK if passes.allowed else Outcome.NOT_CHECKED
        yield Check(
            ACTION,
            PURPOSE,
            outcome,
            _role_pass_text(passes, endpoints),
            "" if passes.allowed else f"an operator allows it:\n  {passes.command}",
        )


def _role_pass(session: Session, principal: str, role: str) -> bool | None:
    try:
        return simulate_role_pass(session.client("iam"), principal, role)
    except RightsizerError:
        return None  # throttled: the line says that IAM could not be asked


def _role_pass_text(passes: RolePass, endpoints: list[str]) -> str:
    what = f"{passes.role} of {', '.join(sorted(endpoints))}"
    if passes.allowed:
        return f"{passes.by} may pass {what}"
    text = "may not pass" if passes.allowed is False else "may or may not pass (IAM could not be asked)"
    return f"{passes.by} {text} {what}"


def _apply_role(session: Session, stack: str) -> str:
    """Name of the stack's role, empty where there is no such stack."""
    with translate_read_errors("cloudformation:DescribeStackResource", f"finding the role of stack {stack}"):
        try:
            answer = session.client("cloudformation").describe_stack_resource(
                StackName=stack, LogicalResourceId=APPLY_ROLE
            )
        except ClientError as error:
            if code_of(error) == "ValidationError":
                return ""
            raise
    return str(answer["StackResourceDetail"]["PhysicalResourceId"])


def _roles(session: Session) -> dict[str, list[str]]:
    """Endpoints by the execution role of their configuration, of those that have components."""
    sagemaker: Any = session.client("sagemaker")
    found: dict[str, list[str]] = defaultdict(list)
    with translate_read_errors("sagemaker:ListInferenceComponents", PURPOSE):
        pages = sagemaker.get_paginator("list_inference_components").paginate()
        names = {row["EndpointName"] for page in pages for row in page["InferenceComponents"]}
    for name in sorted(names):
        with translate_read_errors("sagemaker:DescribeEndpoint", PURPOSE):
            config = sagemaker.describe_endpoint(EndpointName=name).get("EndpointConfigName", "")
        with translate_read_errors("sagemaker:DescribeEndpointConfig", PURPOSE):
            role = sagemaker.describe_endpoint_config(EndpointConfigName=config).get("ExecutionRoleArn", "")
        if role:
            found[role].append(name)
    return found
