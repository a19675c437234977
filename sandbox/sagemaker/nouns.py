"""What SageMaker keeps: models, configurations, endpoints with their live variants."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.sagemaker.deployment import Deployment, Scaling

type Params = dict[str, Any]

IN_PROGRESS = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting"})


@dataclass(slots=True)
class Record:
    """A model or an endpoint configuration: created once, never changed."""

    name: str
    arn: str
    created: datetime
    request: Mapping[str, Any]
    """The creation request without Tags."""


@dataclass(slots=True)
class Variant:
    """The live side of a production variant: what DescribeEndpoint tells beyond the configuration."""

    name: str
    spec: Mapping[str, Any]
    """The ProductionVariant of the configuration that this fleet runs."""
    count: int
    desired_count: int
    weight: float
    desired_weight: float
    serverless: Mapping[str, Any] | None = None
    pool: str = ""
    """The type of the pool that had capacity, when it is not the first."""
    images: list[dict[str, Any]] = field(default_factory=list)
    """DeployedImages: tags are resolved when the fleet is made, and again by each update."""

    @property
    def instance_type(self) -> str | None:
        """The type of the fleet; the first of its pools; None for serverless."""
        if self.pool:
            return self.pool
        if self.spec.get("InstancePools"):
            return str(min(self.spec["InstancePools"], key=lambda pool: pool["Priority"])["InstanceType"])
        return self.spec.get("InstanceType")


def variant_of(spec: Mapping[str, Any]) -> Variant:
    """A variant as a configuration starts it."""
    scaling = spec.get("ManagedInstanceScaling") or {}
    count = int(
        spec.get("InitialInstanceCount") or scaling.get("MinInstanceCount") or (0 if "ServerlessConfig" in spec else 1)
    )
    weight = float(spec.get("InitialVariantWeight", 1.0))
    return Variant(spec["VariantName"], spec, count, count, weight, weight, spec.get("ServerlessConfig"))


@dataclass(slots=True)
class Endpoint:
    """An endpoint."""

    name: str
    arn: str
    config_name: str
    created: datetime
    modified: datetime
    variants: dict[str, Variant]
    shadows: dict[str, Variant] = field(default_factory=dict)
    status: str = "Creating"
    failure_reason: str | None = None
    deployment: "Deployment | None" = None
    scaling: "Scaling | None" = None
    last_deployment_config: Mapping[str, Any] | None = None
    capture_started: bool = True
    until: datetime | None = None
    """When Creating, SystemUpdating, RollingBack or Deleting ends."""

    @property
    def busy(self) -> bool:
        """Whether SageMaker refuses changes for now."""
        return self.status in IN_PROGRESS
