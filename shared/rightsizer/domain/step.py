"""One write to AWS as data: what is asked of which service, on which thing, and how a person would do it by hand."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from shlex import quote
from typing import Any

from rightsizer.domain.checks import named

POLICY_PLACEHOLDER = "policy:"
"""``policy:<resource>|<dimension>|<name>`` stands for the ARN that a scaling policy will have once it is put again."""
PLACE = re.compile(rf"{POLICY_PLACEHOLDER}[^|]+/[^|]+\|sagemaker:[^|]+\|.+")


class StepKind(StrEnum):
    """Every write that a change may make, as its IAM action. None of them deletes what serves."""

    CREATE_CONFIG = "sagemaker:CreateEndpointConfig"
    TAG_CONFIG = "sagemaker:AddTags"
    UPDATE_ENDPOINT = "sagemaker:UpdateEndpoint"
    SET_CAPACITY = "sagemaker:UpdateEndpointWeightsAndCapacities"
    SET_COPIES = "sagemaker:UpdateInferenceComponentRuntimeConfig"
    UPDATE_COMPONENT = "sagemaker:UpdateInferenceComponent"
    REGISTER_TARGET = "application-autoscaling:RegisterScalableTarget"
    DEREGISTER_TARGET = "application-autoscaling:DeregisterScalableTarget"
    PUT_POLICY = "application-autoscaling:PutScalingPolicy"
    DELETE_POLICY = "application-autoscaling:DeleteScalingPolicy"
    PUT_SCHEDULED = "application-autoscaling:PutScheduledAction"
    PUT_ALARM = "cloudwatch:PutMetricAlarm"
    DELETE_ALARMS = "cloudwatch:DeleteAlarms"
    UPDATE_GROUP = "autoscaling:UpdateAutoScalingGroup"
    RELEASE_POOL = "sagemaker:UpdateTrainingJob"


@dataclass(frozen=True, slots=True)
class Step:
    """One write. `params` are the API's own parameters, so that the same record is done, repeated and handed over."""

    kind: StepKind
    subject: str
    """The thing that it touches: a configuration, an endpoint, a scalable target, an alarm."""
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named("Step.subject", self.subject)

    @property
    def service(self) -> str:
        """The service as boto3 and the AWS CLI call it."""
        return self.kind.value.split(":")[0]

    @property
    def operation(self) -> str:
        """The API operation."""
        return self.kind.value.split(":")[1]

    @property
    def component(self) -> str:
        """Name of the inference component that the request is about; empty where it is about another thing."""
        return str(self.params.get("InferenceComponentName", ""))

    @property
    def key(self) -> str:
        """Names the step in the journal; the same step has the same key however often it is tried."""
        name = str(self.params.get("PolicyName") or self.params.get("ScheduledActionName") or "")
        return f"{self.operation} {self.subject}" + (f" {name}" if name else "")

    @property
    def command(self) -> str:
        """The AWS CLI line that does the same."""
        return command(self.service, self.operation, self.params)


def command(service: str, operation: str, params: Mapping[str, Any]) -> str:
    """The AWS CLI line of a request, quoted for a shell.

    A policy that is named by its place is asked for first: the line puts its ARN into a variable, and uses it.
    """
    verb = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", operation).lower()
    places = {value: f"POLICY_{number}" for number, value in enumerate(dict.fromkeys(_places(params)), start=1)}
    body = json.dumps(_named(params, places), sort_keys=True, default=str).replace("'", "'\\''")
    for variable in places.values():
        body = body.replace(f"@{variable}@", f"'\"${variable}\"'")
    asked = "".join(f'{variable}="$({_asking(place)})" && ' for place, variable in places.items())
    return f"{asked}aws {service} {verb} --cli-input-json '{body}'"


def has_places(step: Step) -> bool:
    """Whether the request still names a policy by its place, which AWS knows nothing of."""
    return next(_places(step.params), "") != ""


def _places(value: Any) -> Iterator[str]:
    """Every policy that a request names by its place."""
    if isinstance(value, str) and PLACE.fullmatch(value):
        yield value
    elif isinstance(value, Mapping):
        yield from (place for part in value.values() for place in _places(part))
    elif isinstance(value, (list, tuple)):
        yield from (place for part in value for place in _places(part))


def _named(value: Any, places: Mapping[str, str]) -> Any:
    """The request with the name of a variable in the place of each of them."""
    if isinstance(value, Mapping):
        return {key: _named(part, places) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named(part, places) for part in value]
    return f"@{places[value]}@" if isinstance(value, str) and value in places else value


def _asking(place: str) -> str:
    """The AWS CLI line that prints the ARN of a policy."""
    resource, dimension, name = place.removeprefix(POLICY_PLACEHOLDER).split("|", 2)
    return (
        "aws application-autoscaling describe-scaling-policies --service-namespace sagemaker "
        f"--resource-id {quote(resource)} --scalable-dimension {quote(dimension)} --policy-names {quote(name)} "
        "--query 'ScalingPolicies[0].PolicyARN' --output text"
    )
