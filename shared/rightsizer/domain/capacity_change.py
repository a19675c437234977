"""A small change outside the endpoints: the policy of an Auto Scaling group, or the end of an idle warm pool.

A capacity change is its own proposal and its own journal: one record, from the question to the end, so that no crash
can part the two. It ends *new*, *old* or *handed over*, as a change of an endpoint does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, assert_never

from rightsizer.domain.change import Entry, JournalEvent
from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.plan import Step, StepKind, command
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Reason


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """Set the mixed instances policy of an Auto Scaling group. Its size is never part of it."""

    group: str
    old: Mapping[str, Any]
    """MixedInstancesPolicy as it was read when this was decided: the rollback."""
    new: Mapping[str, Any]
    until: datetime | None = None
    """When the old policy comes back by itself; None for a policy that stays."""
    kind: Literal["group-policy"] = "group-policy"

    def __post_init__(self) -> None:
        not_empty("GroupPolicy.group", self.group)


@dataclass(frozen=True, slots=True)
class PoolRelease:
    """End the idle warm pool of a training job that is over. There is no rollback, and none is needed."""

    job: str
    kind: Literal["pool-release"] = "pool-release"

    def __post_init__(self) -> None:
        not_empty("PoolRelease.job", self.job)


@dataclass(frozen=True, slots=True)
class ManualStep:
    """A request that only a person sends: the program has no permission for it."""

    subject: str
    operation: Literal["CreateTrainingJob", "UpdateCluster"]
    request: Mapping[str, Any]
    kind: Literal["by-hand"] = "by-hand"

    def __post_init__(self) -> None:
        not_empty("ByHand.subject", self.subject)


type Work = GroupPolicy | PoolRelease | ManualStep

OPEN = frozenset({ProposalState.APPROVED, ProposalState.APPLYING})
"""Approved and not at its end: the tick looks at it."""


@dataclass(frozen=True, slots=True)
class CapacityChange:
    """One capacity change from the question to its end."""

    id: str
    subject: str
    """The group or the job."""
    owner: str
    work: Work
    headline: str
    """The ten-second sentence."""
    reason: Reason
    created_at: datetime
    expires_at: datetime
    state: ProposalState
    approvable: bool
    enable: str = ""
    """How to allow it; empty when it is allowed."""
    facts: tuple[tuple[str, str], ...] = ()
    """Name and figure with its unit, for people."""
    not_checked: tuple[str, ...] = ()
    decision: Decision | None = None
    outcome: str = ""
    journal: tuple[Entry, ...] = ()
    next_due: datetime | None = None
    sent_at: datetime | None = None
    """When the write was first intended; None: nothing was written."""
    done_at: datetime | None = None
    """When the new state was first seen in AWS."""
    back: Reason | None = None
    """Why it goes back; None on the way forward."""
    version: int = 0
    change_id: str = ""
    """Empty: a capacity change is its own journal. The message of a proposal has the same field."""
    region: str = ""
    """Region of the group or the job; empty in rows of earlier releases."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    """What a newer program stored with it and this one does not know; it is stored again, and nothing else."""

    def __post_init__(self) -> None:
        not_empty("CapacityChange.id", self.id)
        not_empty("CapacityChange.subject", self.subject)
        aware("CapacityChange.created_at", self.created_at)
        aware("CapacityChange.expires_at", self.expires_at)

    def step(self, *, back: bool) -> Step:
        """The write forward, or the one that undoes it; TypeError for one that only a person sends."""
        match self.work:
            case GroupPolicy(group, old, new):
                params = {"AutoScalingGroupName": group, "MixedInstancesPolicy": old if back else new}
                return Step(StepKind.UPDATE_GROUP, group, params)
            case PoolRelease(job):
                asked = {"TrainingJobName": job, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
                return Step(StepKind.RELEASE_POOL, job, asked)
            case ManualStep():
                raise TypeError(f"{self.work.operation} is sent by a person")
            case _:
                assert_never(self.work)

    @property
    def command(self) -> str:
        """The AWS CLI line that does it."""
        if isinstance(self.work, ManualStep):
            work = self.work
            return command("sagemaker", work.operation, work.request, self.region) if work.request else ""
        return self.step(back=False).command(self.region)

    @property
    def undo_command(self) -> str:
        """The AWS CLI line that undoes it; empty where nothing can be undone."""
        return self.step(back=True).command(self.region) if isinstance(self.work, GroupPolicy) else ""

    @property
    def rollback_command(self) -> str:
        """The AWS CLI line that undoes what may have been written; empty where nothing was."""
        return self.undo_command if self.sent_at is not None else ""

    def attempts(self) -> int:
        """How often the write of the present direction was begun."""
        turned = next((n for n, line in enumerate(self.journal) if line.step == JournalEvent.TURN_BACK), -1)
        lines = self.journal[turned + 1 :] if self.back else self.journal
        return sum(1 for line in lines if line.status == "intended")

    @property
    def last_entry(self) -> Entry | None:
        """The newest line about a write."""
        return next((line for line in reversed(self.journal) if line.status in ("done", "failed")), None)


@dataclass(frozen=True, slots=True)
class GroupSight:
    """Policy, mode and owner of a group, read right before a write."""

    mode: Mode
    stack: str
    """Who owns its properties; empty when nobody claims them."""
    policy: Mapping[str, Any]
    faults: tuple[str, ...] = ()
    """Launches that failed since the policy is new, and not for lack of capacity."""


@dataclass(frozen=True, slots=True)
class WarmPoolSight:
    """Warm pool and mode of a job, read right before a write."""

    mode: Mode
    status: str
    """``Available``, ``InUse``, ``Reused``, ``Terminated``; empty without one."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """The group or the job is not there."""


type CapacitySight = GroupSight | WarmPoolSight | Vanished


@dataclass(frozen=True, slots=True)
class Send:
    """Write it: intent first, then the call."""

    back: bool = False


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Nothing to write now."""

    until: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """The new state is seen for the first time."""


@dataclass(frozen=True, slots=True)
class TurnBack:
    """Go back from here."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Ended:
    """The capacity change is over."""

    state: ProposalState
    reason: Reason


type NextCapacityAction = Send | LookAgain | Arrived | TurnBack | Ended


@dataclass(frozen=True, slots=True)
class CapacityChangeMoved:
    """One record of the table's stream: a capacity change that was written, decided on, or moved."""

    sequence: str
    capacity_change: CapacityChange
    before: ProposalState | None = None
    version: int = 0
    """Version of the row; 0 where it has none."""
