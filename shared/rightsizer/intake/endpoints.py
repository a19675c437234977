"""SageMaker endpoint and deployment state changes to triggers.

Shapes: SageMaker Developer Guide, "Automating SageMaker AI with EventBridge". Several events may come for one change,
so the key is made of what changed. The event is a hint only; whoever acts describes the endpoint again.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rightsizer.domain.trigger import EndpointMoved, Trigger
from rightsizer.intake.fields import Envelope, EventModel, Moment, Name, Parsers, SageMakerName, Text, read_model

STATE_CHANGE = "SageMaker Endpoint State Change"
DEPLOYMENT_CHANGE = "SageMaker Endpoint Deployment State Change"


class VariantStatus(EventModel):
    status: Text = Field("", alias="Status")


class VariantStatuses(EventModel):
    statuses: tuple[VariantStatus, ...] | None = Field(None, alias="VariantStatus")


class Deployment(EventModel):
    config_name: Text = Field("", alias="EndpointConfigName")
    variants: tuple[VariantStatuses, ...] | None = Field(None, alias="ProductionVariants")


class EndpointDetail(EventModel):
    name: SageMakerName = Field(alias="EndpointName")
    arn: Text = Field("", alias="EndpointArn")
    config_name: Text = Field("", alias="EndpointConfigName")
    status: Name = Field(alias="EndpointStatus")
    modified: Moment | None = Field(None, alias="LastModifiedTime")
    variants: tuple[VariantStatuses, ...] | None = Field(None, alias="ProductionVariants")
    pending: Deployment | None = Field(None, alias="PendingDeploymentSummary")


def from_bus(event: Mapping[str, Any]) -> Trigger:
    """The endpoint changed state."""
    return _endpoint_moved(read_model(Envelope[EndpointDetail], event, STATE_CHANGE), deployment=False)


def deployment_from_bus(event: Mapping[str, Any]) -> Trigger:
    """A deployment of the endpoint went on, or it is scaling."""
    return _endpoint_moved(read_model(Envelope[EndpointDetail], event, DEPLOYMENT_CHANGE), deployment=True)


def api_status(spelled: str) -> str:
    """The API's spelling: events say ``IN_SERVICE`` where the API says ``InService``."""
    if "_" in spelled or spelled.isupper():
        return "".join(part.capitalize() for part in spelled.split("_"))
    return spelled


def _endpoint_moved(envelope: Envelope[EndpointDetail], *, deployment: bool) -> EndpointMoved:
    """While a deployment is pending, the configuration named is the one that it leads to."""
    detail = envelope.detail
    at = detail.modified or envelope.time
    steps = [step.status for group in _variants(detail) for step in group.statuses or ()]
    config_name = detail.pending.config_name if detail.pending and detail.pending.config_name else detail.config_name
    key = "|".join([detail.arn or detail.name, api_status(detail.status), config_name, at.isoformat(), *steps])
    return EndpointMoved(detail.name, api_status(detail.status), config_name, at, deployment, key)


def _variants(detail: EndpointDetail) -> tuple[VariantStatuses, ...]:
    pending = detail.pending.variants if detail.pending else None
    return (detail.variants or ()) + (pending or ())


PARSERS: Parsers = {
    ("aws.sagemaker", STATE_CHANGE): from_bus,
    ("aws.sagemaker", DEPLOYMENT_CHANGE): deployment_from_bus,
}
