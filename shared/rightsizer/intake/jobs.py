"""SageMaker training jobs and HyperPod clusters to triggers.

Shapes: SageMaker Developer Guide, "Automating SageMaker AI with EventBridge" and "HyperPod events".
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rightsizer.domain.reason import one_line
from rightsizer.domain.trigger import JobMoved, Trigger
from rightsizer.intake.fields import Envelope, EventModel, Moment, Name, Parsers, SageMakerName, Text, read_model

TRAINING = "SageMaker Training Job State Change"
CLUSTER_STATE = "SageMaker HyperPod Cluster State Change"
NODE_HEALTH = "SageMaker HyperPod Cluster Node Health Event"
CLUSTER_EVENT = "SageMaker HyperPod Cluster Event"
STATUS = 60
"""Characters of a status: AWS's own are words."""


class Training(EventModel):
    name: SageMakerName = Field(alias="TrainingJobName")
    arn: Text = Field("", alias="TrainingJobArn")
    status: Name = Field(alias="TrainingJobStatus")
    secondary: Text = Field("", alias="SecondaryStatus")
    failure: Text = Field("", alias="FailureReason")
    modified: Moment | None = Field(None, alias="LastModifiedTime")


class ClusterGroup(EventModel):
    name: Text = Field("", alias="InstanceGroupName")
    current: int = Field(0, alias="CurrentCount")
    target: int = Field(0, alias="TargetCount")
    status: Text = Field("", alias="Status")


class Cluster(EventModel):
    name: SageMakerName = Field(alias="ClusterName")
    status: Name = Field(alias="ClusterStatus")
    failure: Text = Field("", alias="FailureMessage")
    groups: tuple[ClusterGroup, ...] | None = Field(None, alias="InstanceGroups")


class Health(EventModel):
    status: Name = Field(alias="HealthStatus")
    reason: Text = Field("", alias="HealthStatusReason")
    recommendation: Text = Field("", alias="Recommendation")


class ClusterNode(EventModel):
    cluster: SageMakerName = Field(alias="ClusterName")
    instance: Name = Field(alias="InstanceId")
    health: Health = Field(alias="HealthSummary")


class ClusterEvent(EventModel):
    id: Name = Field(alias="EventId")
    cluster: SageMakerName = Field(alias="ClusterName")
    level: Text = Field("", alias="EventLevel")
    description: Text = Field("", alias="Description")
    at: Moment | None = Field(None, alias="EventTime")


class ClusterEvents(EventModel):
    event: ClusterEvent = Field(alias="EventDetails")


def parse_training_job(event: Mapping[str, Any]) -> Trigger:
    """A training job moved. An interrupted Spot job says so in its secondary status."""
    envelope = read_model(Envelope[Training], event, TRAINING)
    job = envelope.detail
    at = job.modified or envelope.time
    key = f"{job.arn or job.name}:{job.status}:{job.secondary}:{at.isoformat()}"
    return JobMoved(
        "training-job", job.name, one_line(job.status, STATUS), _detail(job.failure or job.secondary), at, key
    )


def parse_cluster(event: Mapping[str, Any]) -> Trigger:
    """A HyperPod cluster, or one of its instance groups, changed state."""
    envelope = read_model(Envelope[Cluster], event, CLUSTER_STATE)
    cluster = envelope.detail
    groups = "; ".join(f"{g.name} {g.status} {g.current}/{g.target}" for g in cluster.groups or ())
    status, detail = one_line(cluster.status, STATUS), _detail(cluster.failure or groups)
    return JobMoved("hyperpod-cluster", cluster.name, status, detail, envelope.time, envelope.id)


def parse_node(event: Mapping[str, Any]) -> Trigger:
    """A HyperPod node became healthy or unhealthy."""
    envelope = read_model(Envelope[ClusterNode], event, NODE_HEALTH)
    cluster_node = envelope.detail
    name = f"{cluster_node.cluster}/{one_line(cluster_node.instance, 100)}"
    status, detail = one_line(cluster_node.health.status, STATUS), _detail(cluster_node.health.reason)
    return JobMoved("hyperpod-node", name, status, detail, envelope.time, envelope.id)


def parse_cluster_event(event: Mapping[str, Any]) -> Trigger:
    """Something happened in a HyperPod cluster, such as a lack of capacity."""
    envelope = read_model(Envelope[ClusterEvents], event, CLUSTER_EVENT)
    cluster_event = envelope.detail.event
    at = cluster_event.at or envelope.time
    level = one_line(cluster_event.level, STATUS) or "Info"
    return JobMoved(
        "hyperpod-cluster", cluster_event.cluster, level, _detail(cluster_event.description), at, cluster_event.id
    )


def _detail(text: str) -> str:
    """What SageMaker or the owner's own code says: a failure reason has at most 1024 characters."""
    return one_line(text, 1024)


PARSERS: Parsers = {
    ("aws.sagemaker", TRAINING): parse_training_job,
    ("aws.sagemaker", CLUSTER_STATE): parse_cluster,
    ("aws.sagemaker", NODE_HEALTH): parse_node,
    ("aws.sagemaker", CLUSTER_EVENT): parse_cluster_event,
}
