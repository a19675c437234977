"""The account: quotas of instances, the deployed stack, and the use of its functions.

Port `QuotaReader`: how many instances of a type the account may run for endpoints. The stack of an account and Region,
and who asks, are found for orders that are given at a terminal. What the functions did comes from CloudWatch's metrics
of AWS Lambda.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of, translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.report import FunctionUse
from rightsizer.errors import SettingsError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_service_quotas import ServiceQuotasClient

FOR_A_DECISION = timedelta(hours=1)
"""How long quotas are kept where options are weighed."""
BEFORE_A_WRITE = timedelta(minutes=1)
"""How long they are kept where a fleet is about to be started: for the steps of one look, not for the next one."""
ENDPOINT_USAGE = re.compile(r"^(ml\.\S+) for endpoint usage$")
"""Quotas are found by name: codes are not documented (Service Quotas console)."""
OUTPUT = "TableName"
"""The stack output that names the table (template.yaml)."""
PERIOD_S = 3600
"""Hours are kept for 455 days, five minutes only for 63."""


class EndpointQuotas:
    """Reads the applied quotas, then the defaults of what has no applied value, and keeps them for `keep`.

    A warm function lives for hours, and a quota is raised while somebody waits for it.
    """

    def __init__(self, session: Session, clock: Callable[[], datetime], keep: timedelta) -> None:
        self._client: ServiceQuotasClient = session.client("service-quotas")
        self._clock, self._keep = clock, keep
        self._known: dict[str, int] = {}
        self._read_at: datetime | None = None

    def endpoint_quotas(self) -> Mapping[str, int]:
        """Applied quota by instance type; a type that is absent is unknown, not zero."""
        now = self._clock()
        if self._read_at is None or now - self._read_at >= self._keep:
            defaults = dict(self._read("list_aws_default_service_quotas", "ListAWSDefaultServiceQuotas"))
            self._known = defaults | dict(self._read("list_service_quotas", "ListServiceQuotas"))
            self._read_at = now
        return self._known

    def _read(self, operation: Any, action: str) -> Iterator[tuple[str, int]]:
        with translate_read_errors(f"servicequotas:{action}", "reading how many instances endpoints may use"):
            pages: Any = self._client.get_paginator(operation).paginate(
                ServiceCode="sagemaker", PaginationConfig={"PageSize": 100}
            )
            for page in pages:
                for quota in page["Quotas"]:
                    name = ENDPOINT_USAGE.match(quota.get("QuotaName", ""))
                    if name and quota.get("Value") is not None:
                        yield name[1], int(quota["Value"])


@dataclass(frozen=True, slots=True)
class Deployed:
    """Table, approvers and parameters of a deployed stack."""

    table: str
    approvers: Approvers
    parameters: Mapping[str, str]


def stack_of(session: "Session", stack: str) -> Deployed:
    """The deployed stack of that name.

    Raises SettingsError when there is no such stack, or it is another program's; ReadError when nobody may ask.
    """
    found = _describe_stack(session, stack)
    if found is None:
        raise SettingsError(
            f"looking for the stack {stack} in {session.region}: nothing of that name is deployed, so nobody would act "
            "on an order; deploy it first (README, Deploy), or name it with --stack or its table with --table"
        )
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}
    if OUTPUT not in outputs:
        raise SettingsError(f"the stack {stack} has no output {OUTPUT}; is it the stack of rightsizer?")
    _, partition, _, _, account, _ = str(found["StackId"]).split(":", 5)
    parameters = _parameters(found)
    approvers = Approvers.parse(parameters.get("Approvers", ""), f"{partition}:{account}")
    return Deployed(str(outputs[OUTPUT]), approvers, parameters)


def table_of(session: "Session", stack: str) -> str:
    """Name of the table of a deployed stack; raises what `stack_of` raises."""
    return stack_of(session, stack).table


def parameters_of(session: "Session", stack: str) -> dict[str, str] | None:
    """The parameters of a deployed stack; None where no such stack is deployed. ReadError when nobody may ask."""
    found = _describe_stack(session, stack)
    return None if found is None else _parameters(found)


def is_protected(session: "Session", stack: str) -> bool:
    """Whether CloudFormation refuses to delete the stack (EnableTerminationProtection). ReadError."""
    found = _describe_stack(session, stack)
    return bool(found and found.get("EnableTerminationProtection"))


def _describe_stack(session: "Session", stack: str) -> dict[str, Any] | None:
    with translate_read_errors("cloudformation:DescribeStacks", f"looking for the stack {stack}"):
        try:
            answer = session.client("cloudformation").describe_stacks(StackName=stack)
        except ClientError as error:
            if code_of(error) == "ValidationError":
                return None
            raise
    return next(iter(answer["Stacks"]), None)


def _parameters(found: dict[str, Any]) -> dict[str, str]:
    return {one["ParameterKey"]: one["ParameterValue"] for one in found.get("Parameters", [])}


def decider_of(session: "Session") -> str:
    """``cli:`` and the ARN of the credentials in use, as decisions record it."""
    with translate_read_errors("sts:GetCallerIdentity", "asking who decides"):
        return f"cli:{session.client('sts').get_caller_identity()['Arn']}"


class LambdaUse:
    """Keeps the promise of `ports.account.OwnUse`."""

    def __init__(self, client: "CloudWatchClient", functions: Mapping[str, int]) -> None:
        self._client = client
        self._functions = dict(functions)

    def function_use(self, start: datetime, end: datetime) -> tuple[FunctionUse, ...]:
        """Invocations and duration of each function in the window; zeros for one that did not run."""
        if not self._functions:
            return ()
        sums = dict.fromkeys((f"{kind}{i}" for kind in ("calls", "time") for i in range(len(self._functions))), 0.0)
        with translate_read_errors("cloudwatch:GetMetricData", "reading what rightsizer's own functions used"):
            pages = self._client.get_paginator("get_metric_data").paginate(
                MetricDataQueries=list(self._queries()), StartTime=start, EndTime=end
            )
            for page in pages:
                for result in page["MetricDataResults"]:
                    sums[result["Id"]] += sum(result["Values"])
        return tuple(
            FunctionUse(name, memory, round(sums[f"calls{i}"]), sums[f"time{i}"])
            for i, (name, memory) in enumerate(self._functions.items())
        )

    def _queries(self) -> Iterator[Any]:
        for i, name in enumerate(self._functions):
            for kind, metric in (("calls", "Invocations"), ("time", "Duration")):
                measured = {
                    "Namespace": "AWS/Lambda",
                    "MetricName": metric,
                    "Dimensions": [{"Name": "FunctionName", "Value": name}],
                }
                yield {"Id": f"{kind}{i}", "MetricStat": {"Metric": measured, "Period": PERIOD_S, "Stat": "Sum"}}
