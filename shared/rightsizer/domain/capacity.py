"""Better capacity for a group: what it would buy, what that costs, how often it would be interrupted."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rightsizer.domain.checks import not_negative
from rightsizer.domain.reason import Reason


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
    """What one instance of the group has to offer, measured where possible."""

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
