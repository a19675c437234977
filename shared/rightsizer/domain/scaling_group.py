"""EC2 Auto Scaling groups with Spot capacity: what is known of each, what we do on an event, and better capacity."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from rightsizer.domain.checks import aware, not_empty, not_negative
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.reason import Reason
from rightsizer.domain.spot import Pool
from rightsizer.errors import InputError


class Handler(StrEnum):
    """Another program that replaces interrupted instances."""

    NOBODY = "nobody"
    CAPACITY_REBALANCE = "the group's own Capacity Rebalancing"
    KARPENTER = "Karpenter"
    NODE_GROUP = "the EKS managed node group"
    TERMINATION_HANDLER = "the AWS Node Termination Handler"
    FLEET = "the EC2 Fleet or Spot Fleet that started it"
    KUBERNETES = "the Kubernetes cluster that it is a node of"


@dataclass(frozen=True, slots=True)
class PurchaseOptions:
    """How the group buys: the InstancesDistribution and the overrides of its mixed instances policy."""

    on_demand_base: int = 0
    on_demand_percent: int = 100
    """Of what is above the base; 100 without a mixed instances policy (Auto Scaling's default)."""
    spot_strategy: str = ""
    """SpotAllocationStrategy. No rule reads it; rows of the first release hold it."""
    instance_types: tuple[str, ...] = ()
    attribute_based: bool = False
    """Whether InstanceRequirements choose the types."""
    weighted: bool = False
    """Whether the types count with WeightedCapacity; then desired capacity is units, not instances."""
    mixed: Mapping[str, Any] = field(default_factory=dict)
    """MixedInstancesPolicy as DescribeAutoScalingGroups gives it, fit to be sent; empty without one."""
    template: Mapping[str, str] = field(default_factory=dict)
    """LaunchTemplateSpecification (id, version) that the group or its policy uses; empty for a launch configuration."""

    @property
    def may_use_spot(self) -> bool:
        """Whether any of the group's capacity may be Spot."""
        return bool(self.mixed) and self.on_demand_percent < 100


@dataclass(frozen=True, slots=True)
class AutoScalingGroup:
    """One Auto Scaling group as the sweep read it.

    Stored, so that the two minutes of a warning need no further read.
    """

    name: str
    arn: str
    region: str
    mode: Mode
    """From the tag ``rightsizer:mode`` of the group; OFF without the tag."""
    owner: str
    minimum: int
    maximum: int
    desired: int
    zones: tuple[str, ...]
    subnets: tuple[str, ...]
    purchase: PurchaseOptions
    handler: Handler
    terminating_hook: bool
    """Whether a lifecycle hook waits on termination: then the instance is terminated, so that the hook runs."""
    suspended: frozenset[str]
    read_at: datetime
    stack: str = ""
    """CloudFormation stack or other owner of the group's properties; empty when nobody claims them."""
    running: Mapping[str, int] = field(default_factory=dict)
    """Instances in service by ``type|zone``."""
    fallback: bool = False
    """Whether its owner lets On-Demand stand in by itself while no Spot pool has room (tag ``rightsizer:fallback``)."""

    def __post_init__(self) -> None:
        not_empty("Group.name", self.name)
        aware("Group.read_at", self.read_at)
        if not 0 <= self.minimum <= self.maximum:
            raise InputError(f"the group {self.name} has minimum {self.minimum} and maximum {self.maximum}")

    @property
    def missing_instances(self) -> int:
        """Instances that are wanted and not in service."""
        return max(0, self.desired - sum(self.running.values()))

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Every pool that the group may use: its types in its zones."""
        return tuple(Pool(kind, zone) for kind in self.purchase.instance_types for zone in self.zones)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """An instance of an Auto Scaling group (DescribeAutoScalingInstances)."""

    instance_id: str
    group: str
    lifecycle: str
    """``InService``, ``Standby``, ``Terminating:Wait`` and so on."""
    instance_type: str
    zone: str
    kind: Literal["member"] = "member"


@dataclass(frozen=True, slots=True)
class UngroupedInstance:
    """An instance of this account that no Auto Scaling group holds."""

    instance_id: str
    handler: Handler
    instance_type: str
    zone: str
    kind: Literal["loose"] = "loose"


@dataclass(frozen=True, slots=True)
class ForeignInstance:
    """An instance that this account does not know, or no longer knows."""

    instance_id: str
    kind: Literal["foreign"] = "foreign"


type InstanceHome = GroupMember | UngroupedInstance | ForeignInstance


class ReplacementMethod(StrEnum):
    """How a replacement is asked for. Both keep the desired capacity."""

    DETACH = "DetachInstances"
    TERMINATE = "TerminateInstanceInAutoScalingGroup"


@dataclass(frozen=True, slots=True)
class Replace:
    """Ask for a replacement now; the desired capacity stays."""

    group: str
    instance_id: str
    way: ReplacementMethod
    reason: Reason
    kind: Literal["replace"] = "replace"


@dataclass(frozen=True, slots=True)
class LeaveAlone:
    """Touch nothing: somebody else acts, or acting would do harm."""

    reason: Reason
    kind: Literal["leave-alone"] = "leave-alone"


@dataclass(frozen=True, slots=True)
class Note:
    """Record it and count it; nothing to be done about it in these two minutes."""

    reason: Reason
    kind: Literal["note"] = "note"


type Reaction = Replace | LeaveAlone | Note


@dataclass(frozen=True, slots=True)
class Interruption:
    """One interruption in the account's own record."""

    instance_id: str
    group: str
    """Empty for an instance without one."""
    pool: Pool | None
    at: datetime
    reaction: str
    """Kind of the reaction, with the way for a replacement."""
    reason: Reason
    seconds: float
    """Age of the event when we acted or decided not to."""


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """Peaks of the instances of a group, as the CloudWatch agent measured them."""

    gpu_memory_gib: float
    """Per GPU (nvidia_smi_memory_used)."""
    gpu_share: float | None
    """0..1: the busiest hour of the busiest GPU (nvidia_smi_utilization_gpu); None when it is not collected."""
    memory_gib: float | None
    """mem_used; None when it is not collected."""
    series: int
    """GPUs that were measured."""
    days: float
    """Days with data."""

    def __post_init__(self) -> None:
        not_negative("MeasuredUse.gpu_memory_gib", self.gpu_memory_gib)
        not_negative("MeasuredUse.days", self.days)


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """Needs of one instance of a group, measured where possible."""

    gpus: int
    gpu_memory_gib: float
    """Per GPU."""
    vcpu: int
    memory_gib: float
    measured: bool
    """False: the size of the present type stands in, for lack of the CloudWatch agent's NVIDIA metrics."""
    gpu_share: float | None = None
    """0..1 of the present GPU that the busiest hour needs; None: not measured, speed is not judged."""

    def __post_init__(self) -> None:
        not_negative("GpuNeed.gpu_memory_gib", self.gpu_memory_gib)
        not_negative("GpuNeed.memory_gib", self.memory_gib)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A month of a placement, at today's prices and the record's rates."""

    usd_per_month: float
    interruptions_per_month: float
    """Instances lost, expected."""
    lost_hours_per_month: float
    """Instance hours without service, expected."""
    on_demand: int
    spot: int


class CapacityKind(StrEnum):
    """In what an option differs from today."""

    MIXED_POLICY = "mixed-instances-policy"
    SMALLER_ON_DEMAND = "smaller-on-demand"
    ENDPOINT_TYPE = "sagemaker-endpoint-type"


@dataclass(frozen=True, slots=True)
class CapacityOption:
    """One way for the group to hold its capacity better."""

    group: str
    kind: CapacityKind
    request: Mapping[str, Any]
    """UpdateAutoScalingGroup, complete; empty for an option that a person has to build."""
    undo: Mapping[str, Any]
    """The request that puts the old policy back; empty where `request` is."""
    now: Outlook
    then: Outlook
    placement_score: int | None
    """1 to 10 for the new set of types; None when EC2 was not asked or would not say."""
    reasons: tuple[Reason, ...]
    not_checked: tuple[str, ...] = ()

    @property
    def saving_usd_per_month(self) -> float:
        """Negative for an option that costs more and loses less."""
        return self.now.usd_per_month - self.then.usd_per_month
