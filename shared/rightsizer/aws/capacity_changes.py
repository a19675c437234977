"""Errands: kept on the one table, and what they see and write at AWS.

They stand among the proposals: the same key prefix, so that the same click decides on them. What is written is the
policy of an Auto Scaling group, or the warm pool of a training job. Sources: EC2 Auto Scaling API reference,
UpdateAutoScalingGroup; SageMaker API reference, UpdateTrainingJob.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer import wire
from rightsizer.aws import decisions
from rightsizer.aws.decisions import KEPT_DAYS, PREFIX, SORT
from rightsizer.aws.documents import Parking, beside, versioned
from rightsizer.aws.errors import DENIED, THROTTLED, code_of, reading, text_of, translate
from rightsizer.aws.groups import mode_of, sendable
from rightsizer.aws.table import Item, Row, Table, beyond, epoch, if_readable, read_row, readable, stamp
from rightsizer.domain.capacity_change import OPEN, Errand, GroupSight, PoolSeen
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import ConflictError, ReadError, RightsizerError, VanishedError, WriteRefusedError

if TYPE_CHECKING:
    from types_boto3_autoscaling import AutoScalingClient
    from types_boto3_sagemaker import SageMakerClient

ASKED_AGAIN = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})
KIND = "errand"
"""Attribute ``kind`` of the item; a proposal about an endpoint has none."""
OURS = frozenset(
    {"pk", "sk", "gsi1pk", "gsi1sk", "kind", "state", "subject", "expires_at", "version", "doc", "expires"}
)
"""Attributes of an errand's item that this program writes."""
BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention", "ResourceInUse", "ConflictException"})
"""Refusals that end by themselves."""


class Errands:
    """Keeps the promises of `ports.spot.ErrandBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._parking = Parking(table)

    def ask(self, errand: Errand) -> bool:
        """Store a new errand; False when it was asked before, also where what was asked cannot be read.

        An older pending one of the subject is withdrawn.
        """
        known = decisions.find(self._table, errand.id)
        before = if_readable(known, _revive)
        if known is not None and (before is None or before.state not in ASKED_AGAIN):
            return False
        if any(found.subject == errand.subject for found in self._in(*OPEN)):
            return False  # the one that is being carried out comes first; the next sweep sees what it made
        for older in self._in(ProposalState.PENDING):
            if older.subject == errand.subject and older.work.kind == errand.work.kind:
                self._withdraw(older)
        try:
            if known is not None and before is not None:
                fresh = _item(replace(errand, version=before.version + 1))
                self._table.swap(beyond(known, OURS) | dict(fresh), before.version)
            else:
                self._table.put(_item(replace(errand, version=1)), unless="pk")
        except ConflictError:
            return False
        return True

    def load(self, errand_id: str) -> Errand | None:
        """The errand as it stands, or None."""
        found = decisions.find(self._table, errand_id)
        return _revive(found) if found and found.get("kind") == KIND else None

    def save(self, errand: Errand) -> Errand:
        """Save over the version that was read and return it with the new one; ConflictError when somebody was first."""
        after = replace(errand, version=errand.version + 1)
        self._table.swap(_item(after), errand.version)
        return after

    def due(self, now: datetime) -> tuple[str, ...]:
        """Ids of the approved or begun errands whose next look is due, and of those that cannot be read."""
        unread: list[UnreadRow] = []
        found = [one.id for one in self.open_errands(unread) if one.next_due is None or one.next_due <= now]
        return *found, *(row.key.removesuffix(f" {SORT}").removeprefix(PREFIX) for row in unread)

    def made_at(self) -> datetime:
        """When the table was made; what was decided before that was restored or copied into it."""
        return self._table.made_at()

    def open_errands(self, unread: list[UnreadRow] | None = None) -> list[Errand]:
        """Every errand that was approved and is not at its end; one that cannot be read is put into `unread`."""
        return self._in(*OPEN, unread=unread)

    def park(self, errand_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Leave an errand that cannot be read, and tell of it once."""
        self._parking.park(f"{PREFIX}{errand_id}", SORT, cause, now, tell)

    def _in(self, *states: ProposalState, unread: list[UnreadRow] | None = None) -> list[Errand]:
        rows = [row for state in states for row in self._table.index(f"{PREFIX}{state}")]
        return list(readable([row for row in rows if row.get("kind") == KIND], _revive, unread))

    def _withdraw(self, older: Errand) -> None:
        outcome = "A newer one takes its place."
        try:
            self.save(replace(older, state=ProposalState.WITHDRAWN, outcome=outcome, next_due=None))
        except ConflictError:
            return  # somebody decided on it at this moment, and that counts


def _item(errand: Errand) -> Item:
    item: Row = beside(errand) | {
        "pk": f"{PREFIX}{errand.id}",
        "sk": SORT,
        "gsi1pk": f"{PREFIX}{errand.state}",
        "gsi1sk": f"{stamp(errand.created_at)}#{errand.id}",
        "kind": KIND,
        "state": str(errand.state),
        "subject": errand.subject,
        "expires_at": epoch(errand.expires_at),
        "version": errand.version,
        "doc": wire.stored(errand),
    }
    if errand.state in KEPT_DAYS:
        ended = errand.journal[-1].at if errand.journal else errand.created_at
        item["expires"] = epoch(ended, KEPT_DAYS[errand.state])
    return item


def _revive(item: Row) -> Errand:
    return read_row(item, lambda row: versioned(Errand, row, OURS))


class ErrandCalls:
    """Keeps the promises of `ports.spot.ErrandReader` and `ErrandWriter`."""

    def __init__(self, autoscaling: "AutoScalingClient", sagemaker: "SageMakerClient") -> None:
        self._autoscaling, self._sagemaker = autoscaling, sagemaker

    def group(self, name: str) -> GroupSight:
        """Policy, mode and owner of the group as they are now."""
        with reading("autoscaling:DescribeAutoScalingGroups", f"reading the group {name}"):
            rows = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        if not rows:
            raise VanishedError(f"reading the group {name}: it no longer exists")
        row: Any = rows[0]
        tags = {tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", [])}
        policy = row.get("MixedInstancesPolicy") or {}
        return GroupSight(mode_of(tags, name), owner_of(tags), sendable(policy))

    def pool(self, job: str) -> PoolSeen:
        """Warm pool and mode of the job as they are now."""
        with reading("sagemaker:DescribeTrainingJob", f"reading the training job {job}"):
            found = self._sagemaker.describe_training_job(TrainingJobName=job)
        with reading("sagemaker:ListTags", f"reading the tags of {job}"):
            listed = self._sagemaker.list_tags(ResourceArn=found["TrainingJobArn"])["Tags"]
        tags = {tag["Key"]: tag["Value"] for tag in listed}
        return PoolSeen(mode_of(tags, job), str(found.get("WarmPoolStatus", {}).get("Status", "")))

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        try:
            match step.kind:
                case StepKind.UPDATE_GROUP:
                    self._autoscaling.update_auto_scaling_group(**step.params)
                case StepKind.RELEASE_POOL:
                    self._sagemaker.update_training_job(**step.params)
                case _:
                    raise WriteRefusedError(step.key, "NotAnErrand", f"{step.kind} is no write of an errand")
        except (ClientError, BotoCoreError) as error:
            raise _refused(error, step) from error


def _refused(error: ClientError | BotoCoreError, step: Step) -> RightsizerError:
    """A write that did not happen, or of which nobody knows whether it did: the next look tells."""
    if not isinstance(error, ClientError):
        return ReadError(f"{step.key}: {error}")
    if code_of(error) in DENIED | THROTTLED:
        return translate(error, step.kind.value, step.key)
    if code_of(error) in BUSY or code_of(error).startswith(("Internal", "ServiceUnavailable")):
        return ReadError(f"{step.key}: {code_of(error)}: {text_of(error)}")
    return WriteRefusedError(step.key, code_of(error), text_of(error))
