"""One inference component as AWS shows it, in the form in which UpdateInferenceComponent takes it.

Whether the parts of a specification that a request leaves out stay or go is not documented, so a request carries all of
it; a field that is not in this list is named, and nothing is sent. The one field that the two shapes call differently
is the image. Source: InferenceComponentSpecification and InferenceComponentSpecificationSummary of the SageMaker API.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.plan import Step

SPREAD = "SPREAD"
"""What the rollback names where a component showed no placement: AWS does not say what leaving it out means."""
OR_NONE = f"{SPREAD}, or none as before"
"""How the step of such a rollback is called: one that never took another placement shows none, and is back."""

type Known = Mapping[str, "Known | None"]

KNOWN: Known = {
    "InstanceType": None,
    "ModelName": None,
    "Container": {
        "DeployedImage": {"SpecifiedImage": None, "ResolvedImage": None, "ResolutionTime": None},
        "ArtifactUrl": None,
        "Environment": None,
        "ContainerMetricsConfig": {"MetricsEndpoints": None},
    },
    "StartupParameters": {
        "ModelDataDownloadTimeoutInSeconds": None,
        "ContainerStartupHealthCheckTimeoutInSeconds": None,
    },
    "ComputeResourceRequirements": {
        "NumberOfCpuCoresRequired": None,
        "NumberOfAcceleratorDevicesRequired": None,
        "MinMemoryRequiredInMb": None,
        "MaxMemoryRequiredInMb": None,
        "AcceleratorPartitionType": None,
    },
    "BaseInferenceComponentName": None,
    "DataCacheConfig": {"EnableCaching": None},
    "SchedulingConfig": {
        "PlacementStrategy": None,
        "AvailabilityZoneBalance": {"EnforcementMode": None, "MaxImbalance": None},
    },
}
FEW = 4
"""Copies below which half of them are replaced at a time: a quarter would be less than one."""
LOADS_S = 1_800
"""Allowance for loading the copies of a batch."""
LEAST_S, MOST_S, WAIT_MOST_S = 600, 28_800, 3_600


@dataclass(frozen=True, slots=True)
class ComponentSight:
    """DescribeInferenceComponent, now."""

    name: str
    arn: str
    endpoint: str
    status: str
    modified_at: datetime
    desired: int
    """Copies that are asked for."""
    specifications: tuple[Mapping[str, Any], ...]
    """As the request takes them: one, or one for each instance type."""
    several: bool = False
    """Whether it was made with Specifications, one for each instance type."""
    images: tuple[tuple[str, str], ...] = ()
    """(as specified, as resolved) of each container."""
    failure_reason: str = ""
    unknown_fields: tuple[str, ...] = ()
    """Paths that this program does not know: such a specification is never sent back."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_moving(self) -> bool:
        """Whether it is being changed, so that AWS refuses another change."""
        return self.status not in ("InService", "Failed")

    @property
    def strategies(self) -> frozenset[str]:
        """How its copies are placed; empty text where AWS shows nothing."""
        return frozenset(
            str((s.get("SchedulingConfig") or {}).get("PlacementStrategy", "")) for s in self.specifications
        )

    @property
    def base_component(self) -> str:
        """The component that it is an adapter of; empty for one with resources of its own."""
        return next(
            (str(s["BaseInferenceComponentName"]) for s in self.specifications if s.get("BaseInferenceComponentName")),
            "",
        )

    def placement_request(self, strategy: str) -> dict[str, Any]:
        """The whole specification and copies as a request, with another placement and nothing else changed."""
        rows = [
            {**s, "SchedulingConfig": {**(s.get("SchedulingConfig") or {}), "PlacementStrategy": strategy}}
            for s in self.specifications
        ]
        whole: dict[str, Any] = {"Specifications": rows} if self.several else {"Specification": rows[0]}
        return {**whole, "RuntimeConfig": {"CopyCount": self.desired}}


def placement_of(step: Step) -> frozenset[str]:
    """Placement that AWS may show after the step: the strategy asked for, or empty for a component without one."""
    return frozenset({strategy_of(step.params), *([""] if step.subject.endswith(OR_NONE) else [])})


def strategy_of(params: Mapping[str, Any]) -> str:
    """The placement that an UpdateInferenceComponent request asks for."""
    rows = params.get("Specifications") or [params.get("Specification") or {}]
    return str((rows[0].get("SchedulingConfig") or {}).get("PlacementStrategy", ""))


def request_of(shown: Mapping[str, Any]) -> dict[str, Any]:
    """One specification as a request takes it. Total; what is unknown is left out, see `unknown_paths`."""
    body = {k: v for k, v in shown.items() if k in KNOWN and v is not None}
    container = shown.get("Container")
    if container:
        image = (container.get("DeployedImage") or {}).get("SpecifiedImage")
        kept = {k: v for k, v in container.items() if k != "DeployedImage" and v is not None}
        body["Container"] = {**({"Image": image} if image else {}), **kept}
    return body


def unknown_paths(shown: Mapping[str, Any], known: Known = KNOWN, path: str = "Specification") -> Iterator[str]:
    """Paths of the fields that are not in the list."""
    for key, value in shown.items():
        inner = known.get(key)
        if key not in known:
            yield f"{path}.{key}"
        elif inner is not None and isinstance(value, Mapping):
            yield from unknown_paths(value, inner, f"{path}.{key}")


@dataclass(frozen=True, slots=True)
class RollingUpdate:
    """How the copies of a component are replaced."""

    config: dict[str, Any]
    """The DeploymentConfig of UpdateInferenceComponent."""
    limit: timedelta
    """The longest that AWS lets it take."""


def rolling_update(copies: int, bake_s: int, alarms: tuple[str, ...] = ()) -> RollingUpdate:
    """Rolling update by a part of the copies, 5 to 50 %, with pauses in which alarms are watched.

    Total.
    """
    percent = 50 if copies < FEW else 25
    wait = max(0, min(bake_s, WAIT_MOST_S))
    limit = max(LEAST_S, min(MOST_S, 100 // percent * (wait + LOADS_S)))
    config: dict[str, Any] = {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": percent},
            "WaitIntervalInSeconds": wait,
            "MaximumExecutionTimeoutInSeconds": limit,
        }
    }
    if alarms:
        config["AutoRollbackConfiguration"] = {"Alarms": [{"AlarmName": name} for name in alarms]}
    return RollingUpdate(config, timedelta(seconds=limit))
