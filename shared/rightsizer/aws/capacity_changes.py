"""Spot on the one table: claims, interruptions, groups and capacity changes, with reads and writes of AWS."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer import wire
from rightsizer.aws import decisions
from rightsizer.aws.decisions import KEPT_DAYS, PREFIX, SORT
from rightsizer.aws.documents import Parking, noun_of, noun_with_version, other_attributes
from rightsizer.aws.errors import DENIED, THROTTLED, code_of, text_of, translate, translate_read_errors
from rightsizer.aws.groups import mode_of, sendable_policy
from rightsizer.aws.proposals import expiry_mark
from rightsizer.aws.table import (
    Item,
    Row,
    Table,
    epoch,
    read_if_readable,
    read_row,
    readable_rows,
    stamp,
    text,
    unknown_attributes,
    whole_number,
)
from rightsizer.domain.capacity_change import OPEN, CapacityChange, GroupSight, WarmPoolSight
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import Step, StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.scaling_group import AutoScalingGroup, Interruption
from rightsizer.domain.spot import Mark, Pool
from rightsizer.errors import ConflictError, ReadError, RightsizerError, VanishedError, WriteRefusedError
from rightsizer.ports.spot import Claim

if TYPE_CHECKING:
    from types_boto3_autoscaling import AutoScalingClient
    from types_boto3_sagemaker import SageMakerClient


ASKED_AGAIN = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})
KIND = "errand"
"""Attribute ``kind`` of the item; a proposal about an endpoint has none."""
OURS = frozenset(
    {"pk", "sk", "gsi1pk", "gsi1sk", "kind", "state", "subject", "expires_at", "version", "doc", "expires"}
)
"""Attributes of a capacity change's item that this program writes."""
BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention", "ResourceInUse", "ConflictException"})
"""Refusals that end by themselves."""


class CapacityChangeTable:
    """Keeps the promises of `ports.spot.CapacityChangeStore`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._parking = Parking(table)

    def add(self, capacity_change: CapacityChange) -> bool:
        """Store a new capacity change; False when it was asked before, also where what was asked cannot be read.

        An older pending one of the subject is withdrawn.
        """
        known = decisions.find(self._table, capacity_change.id)
        before = read_if_readable(known, _revive)
        if known is not None and (before is None or before.state not in ASKED_AGAIN):
            return False
        if any(found.subject == capacity_change.subject for found in self._in(*OPEN)):
            return False  # the one that is being carried out comes first; the next sweep sees what it made
        for older in self._in(ProposalState.PENDING):
            if older.subject == capacity_change.subject and older.work.kind == capacity_change.work.kind:
                self._withdraw(older)
        self._table.put(expiry_mark(capacity_change.id, capacity_change.expires_at))
        try:
            if known is not None and before is not None:
                fresh = _item(replace(capacity_change, version=before.version + 1))
                self._table.swap(unknown_attributes(known, OURS) | dict(fresh), before.version)
            else:
                self._table.put(_item(replace(capacity_change, version=1)), unless="pk")
        except ConflictError:
            return False
        return True

    def load(self, capacity_change_id: str) -> CapacityChange | None:
        """The capacity change as it stands, or None."""
        found = decisions.find(self._table, capacity_change_id)
        return _revive(found) if found and found.get("kind") == KIND else None

    def save(self, capacity_change: CapacityChange) -> CapacityChange:
        """Save over the version that was read and return it with the new one; ConflictError when somebody was first."""
        after = replace(capacity_change, version=capacity_change.version + 1)
        self._table.swap(_item(after), capacity_change.version)
        return after

    def due(self, now: datetime) -> tuple[str, ...]:
        """Ids of the approved or begun capacity changes whose next look is due, and of those that cannot be read."""
        unread: list[UnreadRow] = []
        found = [
            capacity_change.id
            for capacity_change in self.open_capacity_changes(unread)
            if capacity_change.next_due is None or capacity_change.next_due <= now
        ]
        return *found, *(row.key.removesuffix(f" {SORT}").removeprefix(PREFIX) for row in unread)

    def created_at(self) -> datetime:
        """When the table was made; what was decided before that was restored or copied into it."""
        return self._table.made_at()

    def open_capacity_changes(self, unread: list[UnreadRow] | None = None) -> list[CapacityChange]:
        """Every approved capacity change that has not ended; an unreadable one is put into `unread`."""
        return self._in(*OPEN, unread=unread)

    def park(self, capacity_change_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Leave a capacity change that cannot be read, and tell of it once."""
        self._parking.park(f"{PREFIX}{capacity_change_id}", SORT, cause, now, tell)

    def _in(self, *states: ProposalState, unread: list[UnreadRow] | None = None) -> list[CapacityChange]:
        rows = [row for state in states for row in self._table.index(f"{PREFIX}{state}")]
        return list(readable_rows([row for row in rows if row.get("kind") == KIND], _revive, unread))

    def _withdraw(self, older: CapacityChange) -> None:
        outcome = "A newer one takes its place."
        try:
            self.save(replace(older, state=ProposalState.WITHDRAWN, outcome=outcome, next_due=None))
        except ConflictError:
            return  # somebody decided on it at this moment, and that counts


def _item(capacity_change: CapacityChange) -> Item:
    item: Row = other_attributes(capacity_change) | {
        "pk": f"{PREFIX}{capacity_change.id}",
        "sk": SORT,
        "gsi1pk": f"{PREFIX}{capacity_change.state}",
        "gsi1sk": f"{stamp(capacity_change.created_at)}#{capacity_change.id}",
        "kind": KIND,
        "state": str(capacity_change.state),
        "subject": capacity_change.subject,
        "expires_at": epoch(capacity_change.expires_at),
        "version": capacity_change.version,
        "doc": wire.dump_stored(capacity_change),
    }
    if capacity_change.state in KEPT_DAYS:
        ended = capacity_change.journal[-1].at if capacity_change.journal else capacity_change.created_at
        item["expires"] = epoch(ended, KEPT_DAYS[capacity_change.state])
    return item


def _revive(item: Row) -> CapacityChange:
    return read_row(item, lambda row: noun_with_version(CapacityChange, row, OURS))


class CapacityChangeCalls:
    """Keeps the promises of `ports.spot.CapacityChangeReader` and `CapacityChangeWriter`."""

    def __init__(self, autoscaling: "AutoScalingClient", sagemaker: "SageMakerClient") -> None:
        self._autoscaling, self._sagemaker = autoscaling, sagemaker

    def group(self, name: str) -> GroupSight:
        """Policy, mode and owner of the group as they are now."""
        with translate_read_errors("autoscaling:DescribeAutoScalingGroups", f"reading the group {name}"):
            rows = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        if not rows:
            raise VanishedError(f"reading the group {name}: it no longer exists")
        row: Any = rows[0]
        tags = {tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", [])}
        policy = row.get("MixedInstancesPolicy") or {}
        return GroupSight(mode_of(tags, name), owner_of(tags), sendable_policy(policy))

    def pool(self, job: str) -> WarmPoolSight:
        """Warm pool and mode of the job as they are now."""
        with translate_read_errors("sagemaker:DescribeTrainingJob", f"reading the training job {job}"):
            found = self._sagemaker.describe_training_job(TrainingJobName=job)
        with translate_read_errors("sagemaker:ListTags", f"reading the tags of {job}"):
            listed = self._sagemaker.list_tags(ResourceArn=found["TrainingJobArn"])["Tags"]
        tags = {tag["Key"]: tag["Value"] for tag in listed}
        return WarmPoolSight(mode_of(tags, job), str(found.get("WarmPoolStatus", {}).get("Status", "")))

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        try:
            match step.kind:
                case StepKind.UPDATE_GROUP:
                    self._autoscaling.update_auto_scaling_group(**step.params)
                case StepKind.RELEASE_POOL:
                    self._sagemaker.update_training_job(**step.params)
                case _:
                    raise WriteRefusedError(step.key, "NotAnErrand", f"{step.kind} is no write of a capacity change")
        except (ClientError, BotoCoreError) as error:
            raise _write_error(error, step) from error


def _write_error(error: ClientError | BotoCoreError, step: Step) -> RightsizerError:
    """Error for a write that failed or whose result is unknown; the next read of AWS decides."""
    if not isinstance(error, ClientError):
        return ReadError(f"{step.key}: {error}")
    if code_of(error) in DENIED | THROTTLED:
        return translate(error, step.kind.value, step.key)
    if code_of(error) in BUSY or code_of(error).startswith(("Internal", "ServiceUnavailable")):
        return ReadError(f"{step.key}: {code_of(error)}: {text_of(error)}")
    return WriteRefusedError(step.key, code_of(error), text_of(error))


LEASE = timedelta(seconds=30)
"""An invocation that died gives the interruption back after this; Lambda's own retry comes after a minute."""
RECORD_DAYS = 400
GROUP_DAYS = 7
ONCE_DAYS = 2


class InterruptionTable:
    """Keeps the promises of `ports.spot.SpotBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def claim(self, key: str, now: datetime) -> Claim:
        """Take an interruption, by one conditional write; a claim that was never settled ends after 30 s."""
        row: Row = {
            "pk": f"SPOT#{key}",
            "sk": "INTERRUPTION",
            "state": "claimed",
            "version": 1,
            "until": epoch(now + LEASE),
            "expires": epoch(now, RECORD_DAYS),
        }
        try:
            self._table.put(row, unless="pk")
        except ConflictError:
            return self._take_over(key, row, now)
        return Claim.OURS

    def _take_over(self, key: str, row: Row, now: datetime) -> Claim:
        """A claim that cannot be read is somebody's: nothing is done twice."""

        def over(before: Row) -> int | None:
            free = text(before, "state") == "claimed" and whole_number(before, "until") <= epoch(now)
            return whole_number(before, "version") if free else None

        before = self._table.get(f"SPOT#{key}", "INTERRUPTION")
        version = read_if_readable(before, over)
        if before is None or version is None:
            return Claim.TAKEN
        try:
            self._table.swap({**before, **row, "version": version + 1}, version)
        except ConflictError:
            return Claim.TAKEN  # another retry was quicker
        return Claim.RESUMED

    def settle(self, key: str, interruption: Interruption) -> None:
        """The interruption is dealt with and is never acted on again."""
        self._table.put(
            {
                "pk": f"SPOT#{key}",
                "sk": "INTERRUPTION",
                "state": "settled",
                "version": 1_000_000,
                "gsi1pk": f"SPOT#{stamp(interruption.at)[:7]}",
                "gsi1sk": f"{stamp(interruption.at)}#{key}",
                "expires": epoch(interruption.at, RECORD_DAYS),
                "doc": wire.dump_stored(interruption),
            }
        )

    def interruptions(self, start: datetime, end: datetime) -> Iterator[Interruption]:
        """The account's own record of the window, `start` included and `end` not, oldest first."""
        month = start.replace(day=1)
        while stamp(month)[:7] <= stamp(end)[:7]:
            rows = self._table.index(f"SPOT#{stamp(month)[:7]}", stamp(start), stamp(end))
            yield from readable_rows(rows, lambda row: noun_of(Interruption, row))
            month = (month + timedelta(days=32)).replace(day=1)

    def is_first(self, what: str, now: datetime) -> bool:
        """Whether this is asked for the first time within two days, by one conditional write."""
        try:
            self._table.put({"pk": f"ONCE#{what}", "sk": "ONCE", "expires": epoch(now, ONCE_DAYS)}, unless="pk")
        except ConflictError:
            return False
        return True

    def group(self, name: str) -> AutoScalingGroup | None:
        """The group as the sweep stored it; None where this release can read nothing."""
        return self._load_if_readable(AutoScalingGroup, f"GROUP#{name}", "FACTS")

    def keep(self, group: AutoScalingGroup) -> None:
        """Store what the sweep read."""
        self._table.put(
            {
                "pk": f"GROUP#{group.name}",
                "sk": "FACTS",
                "gsi1pk": "GROUP",
                "gsi1sk": group.name,
                "expires": epoch(group.read_at, GROUP_DAYS),
                "doc": wire.dump_stored(group),
            }
        )

    def groups(self) -> Iterator[AutoScalingGroup]:
        """Every group that the sweep knew."""
        yield from readable_rows(self._table.index("GROUP"), lambda row: noun_of(AutoScalingGroup, row))

    def mark(self, pool: Pool) -> Mark | None:
        """The pool's last mark; None without one that this release can read."""
        return self._load_if_readable(Mark, f"POOL#{pool.instance_type}|{pool.zone}", "MARK")

    def _load_if_readable[T](self, noun: type[T], pk: str, sk: str) -> T | None:
        return read_if_readable(self._table.get(pk, sk), lambda found: noun_of(noun, found))

    def remember(self, mark: Mark) -> None:
        """Store the pool's mark."""
        self._table.put(
            {
                "pk": f"POOL#{mark.pool.instance_type}|{mark.pool.zone}",
                "sk": "MARK",
                "expires": epoch(mark.until, 2),
                "doc": wire.dump_stored(mark),
            }
        )
