"""One inference component as AWS shows it, in the form in which UpdateInferenceComponent takes it.

Whether the parts of a specification that a request leaves out stay or go is not documented, so a request carries all of
it; a field that is not in this list is named, and nothing is sent. The one field that the two shapes call differently
is the image. Source: InferenceComponentSpecification and InferenceComponentSpecificationSummary of the SageMaker API.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.endpoint import MODE_TAG, Mode, ScalableTarget
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import Step, region_of_arn, region_option
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import ComponentDay
from rightsizer.domain.usage import MetricStatistic, Spread

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
COMPONENT_SIGNALS: tuple[MetricStatistic, ...] = (
    MetricStatistic("Invocations", "Sum"),
    MetricStatistic("ConcurrentRequestsPerCopy", "Maximum"),
    MetricStatistic("NoCapacityInvocationFailures", "Sum"),
    MetricStatistic("ModelLatency", "p95"),
    MetricStatistic("GPUUtilizationNormalized", "Average"),
    MetricStatistic("GPUUtilizationNormalized", "Maximum"),
    MetricStatistic("GPUMemoryUtilizationNormalized", "Maximum"),
    MetricStatistic("CPUUtilizationNormalized", "Average"),
    MetricStatistic("CPUUtilizationNormalized", "Maximum"),
    MetricStatistic("MemoryUtilizationNormalized", "Maximum"),
)
"""What is read of every component. Its utilisation is 0..100 of what it reserved (SageMaker guide, CloudWatch)."""
PER_COPY = MetricStatistic("InvocationsPerCopy", "Sum")
"""Read of an autoscaled component: calls over calls of each copy are the copies that ran (guide, CloudWatch)."""
FEW = 4
"""Copies below which half of them are replaced at a time: a quarter would be less than one."""
LOADS_S = 1_800
"""Allowance for loading the copies of a batch."""
LEAST_S, MOST_S, WAIT_MOST_S = 600, 28_800, 3_600


@dataclass(frozen=True, slots=True)
class ComputeNeeds:
    """Resources that one copy reserves on its instance (ComputeResourceRequirements of the SageMaker API)."""

    cpu_cores: float = 0.0
    accelerators: float = 0.0
    memory_mb: float = 0.0
    """MinMemoryRequiredInMb, of the host."""
    partition: str = ""
    """AcceleratorPartitionType: a part of a GPU (MIG); empty for whole ones."""


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
    tags_unread: Reason | None = None
    """Why its tags could not be read; None where they were, or were not asked for."""
    variant: str = ""
    current: int = 0
    """Copies that run."""

    @property
    def needs(self) -> ComputeNeeds | None:
        """Resources that one copy reserves; None for an adapter, and where they differ by instance type."""
        rows = [s.get("ComputeResourceRequirements") for s in self.specifications]
        if len(rows) != 1 or not rows[0]:
            return None
        return ComputeNeeds(
            float(rows[0].get("NumberOfCpuCoresRequired") or 0.0),
            float(rows[0].get("NumberOfAcceleratorDevicesRequired") or 0.0),
            float(rows[0].get("MinMemoryRequiredInMb") or 0.0),
            str(rows[0].get("AcceleratorPartitionType") or ""),
        )

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


@dataclass(frozen=True, slots=True)
class ComponentUsage:
    """Use of one component over the look-back, by its own metrics. None is unknown, never zero."""

    days: float
    """Days since the first period with utilisation."""
    valid_share: float
    """0..1 of the periods since then that have utilisation."""
    requests: float
    """0 where utilisation was published and no call."""
    requests_per_copy: float
    """Of the busiest five minutes, a minute, at the copies of now."""
    concurrency: float | None
    """Largest ConcurrentRequestsPerCopy: requests that one copy had at once."""
    without_capacity: float
    """Requests that failed because no copy ran."""
    p95_s: float | None
    """Seconds: p95 of ModelLatency that 95 % of the five-minute periods stayed below."""
    gpu: Spread | None
    gpu_memory: Spread | None
    cpu: Spread | None
    memory: Spread | None
    """Shares of what the component reserved, 0..1."""
    most_copies: float | None = None
    """Most copies that ran while calls came, of an autoscaled component; None where that was not published."""
    by_day: tuple[ComponentDay, ...] = ()
    """Days from the first period with utilisation on, oldest first."""


@dataclass(frozen=True, slots=True)
class Component:
    """One component as an evaluation reads it; a reason stands in the place of what could not be read."""

    sight: ComponentSight
    scaling: ScalableTarget | Reason | None
    """Its own scalable target; None without one."""
    usage: ComponentUsage | Reason


@dataclass(frozen=True, slots=True)
class UnreadComponent:
    """A component that exists and could not be described, and why."""

    name: str
    reason: Reason


type DescribedComponent = tuple[ComponentSight, ScalableTarget | Reason | None] | UnreadComponent
"""A component with its own scalable target: None where it has none, and why where that could not be read."""
type ReadComponents = tuple[Component | UnreadComponent, ...] | Reason
"""Every component of an endpoint; why they could not be listed, in place of them."""


def copies_refusal(sight: ComponentSight, *, may_be_untagged: bool) -> Reason | None:
    """Why the tags of the component itself speak against other copies; those of its endpoint do not stand for them."""
    if (unread := sight.tags_unread) is not None:
        text = f"the tags of component {sight.name} could not be read, so nobody is known to allow other copies"
        return Reason(unread.code, f"{text}: {unread.sentence}")
    if owner := owner_of(sight.tags):
        text = f"{owner} owns component {sight.name}; its next deployment would undo the change"
        return Reason(Code.OWNED_BY_STACK, text)
    said = sight.tags.get(MODE_TAG, "")
    if said in (Mode.PROPOSE, Mode.AUTO) or (not said and may_be_untagged):
        return None
    if said:
        text = f"the tag {MODE_TAG} of component {sight.name} is {said}, and its copies would change"
        return Reason(Code.NOT_OPTED_IN, text)
    text = f"the tag {MODE_TAG} of component {sight.name} is absent: its copies could not be set"
    where = region_option(region_of_arn(sight.arn))
    line = f"aws sagemaker add-tags{where} --resource-arn {sight.arn} --tags Key={MODE_TAG},Value={Mode.PROPOSE}"
    return Reason(Code.NOT_OPTED_IN, f"{text}; {line}")


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
