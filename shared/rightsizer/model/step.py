"""One write to AWS as data: what is asked of which service, on which thing, and how a person would do it by hand."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rightsizer.model.checks import named

POLICY_PLACEHOLDER = "policy:"
"""``policy:<resource>|<dimension>|<name>`` stands for the ARN that a scaling policy will have once it is put again."""


class StepKind(StrEnum):
    """Every write that a change may make, as its IAM action. None of them deletes what serves."""

    CREATE_CONFIG = "sagemaker:CreateEndpointConfig"
    TAG_CONFIG = "sagemaker:AddTags"
    UPDATE_ENDPOINT = "sagemaker:UpdateEndpoint"
    SET_CAPACITY = "sagemaker:UpdateEndpointWeightsAndCapacities"
    SET_COPIES = "sagemaker:UpdateInferenceComponentRuntimeConfig"
    REGISTER_TARGET = "application-autoscaling:RegisterScalableTarget"
    DEREGISTER_TARGET = "application-autoscaling:DeregisterScalableTarget"
    PUT_POLICY = "application-autoscaling:PutScalingPolicy"
    DELETE_POLICY = "application-autoscaling:DeleteScalingPolicy"
    PUT_SCHEDULED = "application-autoscaling:PutScheduledAction"
    DELETE_SCHEDULED = "application-autoscaling:DeleteScheduledAction"
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
    def key(self) -> str:
        """Names the step in the journal; the same step has the same key however often it is tried."""
        name = str(self.params.get("PolicyName") or self.params.get("ScheduledActionName") or "")
        return f"{self.operation} {self.subject}" + (f" {name}" if name else "")

    @property
    def command(self) -> str:
        """The AWS CLI line that does the same."""
        return command(self.service, self.operation, self.params)


def command(service: str, operation: str, params: Mapping[str, Any]) -> str:
    """The AWS CLI line of a request, quoted for a shell."""
    verb = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", operation).lower()
    body = json.dumps(params, sort_keys=True, default=str).replace("'", "'\\''")
    return f"aws {service} {verb} --cli-input-json '{body}'"
