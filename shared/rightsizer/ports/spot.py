"""What the Spot flows need from outside, as Protocols; errors and units as in `rightsizer.ports.evaluation`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from rightsizer.domain.capacity_change import Errand, GroupSight, PoolSeen
from rightsizer.domain.job import TrainingJob
from rightsizer.domain.plan import Step
from rightsizer.domain.reason import Reason
from rightsizer.domain.scaling_group import Found, Group, Interruption, MeasuredUse, Way
from rightsizer.domain.spot import Mark, Pool
from rightsizer.domain.trigger import LookBeyond


@dataclass(frozen=True, slots=True)
class Unread:
    """A group that could not be read or understood; the others go on."""

    name: str
    reason: Reason


class GroupReader(Protocol):
    """Reads Auto Scaling groups and instances."""

    def find(self, instance_id: str) -> Found:
        """Where an instance belongs: one call for a member of a group, two for any other."""
        ...

    def groups(self, now: datetime) -> Iterator[Group | Unread]:
        """Every Auto Scaling group that may buy Spot or carries the opt-in tag."""
        ...


class GroupNow(Protocol):
    """Reads one group afresh."""

    def now(self, name: str, now: datetime) -> Group | Unread:
        """The group as it stands now; VanishedError when it is gone."""
        ...


class GroupChanger(Protocol):
    """Writes to Auto Scaling groups. Raises WriteRefusedError, PermissionMissingError or ThrottledError."""

    def replace(self, group: str, instance_id: str, way: Way) -> None:
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

    def first(self, what: str, now: datetime) -> bool:
        """Whether this is asked for the first time within two days, by one conditional write."""
        ...

    def group(self, name: str) -> Group | None:
        """What the sweep knew of the group, or None."""
        ...

    def keep(self, group: Group) -> None:
        """Store what the sweep read."""
        ...

    def groups(self) -> Iterator[Group]:
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
    usd_now: float
    usd_mean: float
    """Time-weighted over the window."""
    as_of: datetime


class SpotMarket(Protocol):
    """What EC2 tells about Spot capacity."""

    def prices(self, types: Sequence[str], zones: Sequence[str], start: datetime, end: datetime) -> list[SpotPrice]:
        """Price of each pool that EC2 has a history for (90 days at most)."""
        ...

    def score(self, types: Sequence[str], target: int) -> Mapping[str, int]:
        """Placement score 1 to 10 by zone id for the set of types; empty when EC2 will not say (limit of a day)."""
        ...


class AgentReader(Protocol):
    """Reads what the CloudWatch agent collects on the instances of a group."""

    def measured(self, group: str, start: datetime, end: datetime) -> MeasuredUse | None:
        """Peaks over the window; None when no instance of the group sends the NVIDIA metrics."""
        ...


class LookQueue(Protocol):
    """The evaluation queue, for what lies beside the endpoints."""

    def send_beyond(self, look: LookBeyond) -> None:
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


class ErrandBook(Protocol):
    """Keeps errands among the proposals. Every write is conditional on the version that was read."""

    def ask(self, errand: Errand) -> bool:
        """Store a new errand; False when it was asked before. An older pending one of the subject is withdrawn."""
        ...

    def load(self, errand_id: str) -> Errand | None:
        """The errand as it stands, or None."""
        ...

    def save(self, errand: Errand) -> Errand:
        """Save over the version that was read and return it with the new one; ConflictError when somebody was first."""
        ...

    def due(self, now: datetime) -> tuple[str, ...]:
        """Ids of the approved or begun errands whose next look is due, and of those that cannot be read."""
        ...

    def made_at(self) -> datetime:
        """When the table that holds them was made: a restore and a copy make a new one. ReadError."""
        ...

    def park(self, errand_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Leave an errand that cannot be read, count it, and tell of it once; `tell` says whether it was taken."""
        ...


class ErrandReader(Protocol):
    """Sees a group or a warm pool right before a move; VanishedError when it is gone. Nothing is cached."""

    def group(self, name: str) -> GroupSight:
        """Policy, mode and owner of the group as they are now."""
        ...

    def pool(self, job: str) -> PoolSeen:
        """Warm pool and mode of the job as they are now."""
        ...


class ErrandWriter(Protocol):
    """Makes the write of an errand."""

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        ...
