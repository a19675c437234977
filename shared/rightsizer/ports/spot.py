"""Ports of the Spot flows, as Protocols; errors and units as in `rightsizer.ports.evaluation`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # a door loads the nouns that it uses itself
    from rightsizer.domain.capacity_change import CapacityChange, GroupSight, WarmPoolSight
    from rightsizer.domain.job import TrainingJob
    from rightsizer.domain.plan import Step
    from rightsizer.domain.reason import Reason
    from rightsizer.domain.scaling_group import (
        AutoScalingGroup,
        InstanceHome,
        Interruption,
        MeasuredUse,
        ReplacementMethod,
    )
    from rightsizer.domain.spot import Mark, Pool
    from rightsizer.domain.trigger import LookBeyond


@dataclass(frozen=True, slots=True)
class UnreadGroup:
    """A group that could not be read or understood; the others go on."""

    name: str
    reason: Reason


class GroupReader(Protocol):
    """Reads Auto Scaling groups and instances."""

    def find(self, instance_id: str) -> InstanceHome:
        """Where an instance belongs: one call for a member of a group, two for any other."""
        ...

    def groups(self, now: datetime) -> Iterator[AutoScalingGroup | UnreadGroup]:
        """Every Auto Scaling group that may buy Spot or carries the opt-in tag."""
        ...


class LiveGroupReader(Protocol):
    """Reads one group afresh."""

    def live_group(self, name: str, now: datetime) -> AutoScalingGroup | UnreadGroup:
        """The group as it stands now; VanishedError when it is gone."""
        ...


class GroupChanger(Protocol):
    """Writes to Auto Scaling groups. Raises WriteRefusedError, PermissionMissingError or ThrottledError."""

    def replace(self, group: str, instance_id: str, way: ReplacementMethod) -> None:
        """Ask for a replacement of the instance; the desired capacity stays."""
        ...


class Claim(StrEnum):
    """Whether an interruption is ours to act on."""

    OURS = "ours"
    RESUMED = "resumed"
    """Ours, after another invocation began it and never came to its end."""
    TAKEN = "taken"
    """Another invocation works on it, or it is done."""


class SpotBook(Protocol):
    """Remembers groups, pools and interruptions."""

    def claim(self, key: str, now: datetime) -> Claim:
        """Take an interruption, by one conditional write; a claim that was never settled ends after 30 s."""
        ...

    def settle(self, key: str, interruption: Interruption) -> None:
        """The interruption is dealt with and is never acted on again."""
        ...

    def interruptions(self, start: datetime, end: datetime) -> Iterator[Interruption]:
        """The account's own record of the window, oldest first."""
        ...

    def is_first(self, what: str, now: datetime) -> bool:
        """Whether this is asked for the first time within two days, by one conditional write."""
        ...

    def group(self, name: str) -> AutoScalingGroup | None:
        """The group as the sweep stored it, or None."""
        ...

    def keep(self, group: AutoScalingGroup) -> None:
        """Store what the sweep read."""
        ...

    def groups(self) -> Iterator[AutoScalingGroup]:
        """Every group that the sweep knew."""
        ...

    def mark(self, pool: Pool) -> Mark | None:
        """The pool's last mark."""
        ...

    def remember(self, mark: Mark) -> None:
        """Store the pool's mark."""
        ...


@dataclass(frozen=True, slots=True)
class SpotPrice:
    """Spot prices of one pool over a window."""

    pool: Pool
    usd_mean: float
    """Time-weighted over the window."""
    as_of: datetime


class SpotMarket(Protocol):
    """Facts of EC2 about Spot capacity."""

    def prices(self, types: Sequence[str], zones: Sequence[str], start: datetime, end: datetime) -> list[SpotPrice]:
        """Price of each pool that EC2 has a history for (90 days at most)."""
        ...

    def score(self, types: Sequence[str], target: int) -> Mapping[str, int]:
        """Placement score 1 to 10 by zone id for the types; empty when EC2 gives none."""
        ...


class AgentReader(Protocol):
    """Reads what the CloudWatch agent collects on the instances of a group."""

    def measured_use(self, group: str, start: datetime, end: datetime) -> MeasuredUse | None:
        """Peaks over the window; None when no instance of the group sends the NVIDIA metrics."""
        ...


class LookQueue(Protocol):
    """The evaluation queue, for what lies beside the endpoints."""

    def send_look(self, look: LookBeyond) -> None:
        """Ask for a look at groups or jobs."""
        ...


class JobReader(Protocol):
    """Reads SageMaker training jobs."""

    def open_jobs(self) -> Sequence[str]:
        """Names of the jobs in progress, and of those whose warm pool waits."""
        ...

    def job(self, name: str) -> TrainingJob:
        """The job with its tags; VanishedError when it is gone."""
        ...

    def usual_s(self, job: TrainingJob) -> float | None:
        """Median seconds that earlier completed runs of the same name trained; None without any."""
        ...


class ClusterReader(Protocol):
    """Reads HyperPod clusters."""

    def cluster(self, name: str) -> Mapping[str, Any]:
        """DescribeCluster, raw; VanishedError when it is gone."""
        ...


class CapacityChangeStore(Protocol):
    """Keeps capacity changes among the proposals. Every write is conditional on the version that was read."""

    def add(self, capacity_change: CapacityChange) -> bool:
        """Store a new capacity change; False when it was asked before.

        An older pending one of the subject is withdrawn.
        """
        ...

    def load(self, capacity_change_id: str) -> CapacityChange | None:
        """The capacity change as it stands, or None."""
        ...

    def save(self, capacity_change: CapacityChange) -> CapacityChange:
        """Save over the version that was read and return it with the new one; ConflictError when somebody was first."""
        ...

    def due(self, now: datetime) -> tuple[str, ...]:
        """Ids of the approved or begun capacity changes whose next look is due, and of those that cannot be read."""
        ...

    def created_at(self) -> datetime:
        """When the table that holds them was made: a restore and a copy make a new one. ReadError."""
        ...

    def park(self, capacity_change_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Leave an unreadable capacity change, count it, and tell of it once.

        `tell` says whether the message was taken.
        """
        ...


class CapacityChangeReader(Protocol):
    """Sees a group or a warm pool right before a move; VanishedError when it is gone. Nothing is cached."""

    def group(self, name: str) -> GroupSight:
        """Policy, mode and owner of the group as they are now."""
        ...

    def pool(self, job: str) -> WarmPoolSight:
        """Warm pool and mode of the job as they are now."""
        ...


class CapacityChangeWriter(Protocol):
    """Makes the write of a capacity change."""

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        ...
