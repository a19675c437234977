"""Ports of a change, its ledger and the office hours, as Protocols; errors as in `rightsizer.ports.evaluation`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursRecord, ModelBefore, Wake
from rightsizer.domain.live_state import ReservationSight
from rightsizer.domain.message import SleepNote
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import Step

if TYPE_CHECKING:
    from rightsizer.domain.change import Change
    from rightsizer.domain.component import ComponentSight
    from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
    from rightsizer.domain.history import EndedChange, PastChange
    from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, Gone, ImageSight
    from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
    from rightsizer.domain.plan import Step
    from rightsizer.domain.policy import BudgetShare, Switch
    from rightsizer.domain.preflight import RolePass


class Journal(Protocol):
    """Keeps changes with their journal. Every write is conditional on the version that was read."""

    def load(self, change_id: str) -> Change | None:
        """The change as it stands, or None."""
        ...

    def create(self, change: Change) -> Change:
        """Store a new change and take the lock of its endpoint; ConflictError when another change holds it."""
        ...

    def begin(self, change: Change, share: BudgetShare) -> Change:
        """Save the planned change, take the locks of its models and its part of the day's budget, all or nothing.

        ConflictError says which of them was not to be had, BudgetUnreadableError that nobody knows what is left of it.
        """
        ...

    def tell_budget(self, day: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Tell once that the row of a day's budget cannot be read, with the remedy; `tell` as for `park`."""
        ...

    def save(self, change: Change) -> Change:
        """Save over the version that was read and return the new one.

        Releases the locks of a closed change.

        ConflictError when somebody saved in between.
        """
        ...

    def reopen(self, change: Change) -> Change:
        """Save a closed change as open again and take the lock of its endpoint, all or nothing; ConflictError."""
        ...

    def due(self, now: datetime) -> tuple[str, ...]:
        """Ids of the changes whose next look is due, the longest waiting first."""
        ...

    def park(self, change_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Give a change that cannot be read a later look, count it, and tell of it once.

        `tell` says whether the message was taken; one that was not is tried again at the next look.
        """
        ...

    def postpone(self, change_id: str, now: datetime) -> None:
        """Show a change an hour later among the due ones; its document stays the same."""
        ...

    def changes_to_book(self, now: datetime) -> tuple[str, ...]:
        """Ids of closed changes that stand and whose saving was not booked for a day, the longest waiting first."""
        ...

    def save_booking(self, change: Change) -> Change:
        """Save what was booked of a closed change; ConflictError when somebody saved in between."""
        ...

    def last_change(self, endpoint: str) -> str:
        """Id of the last change of the endpoint that wrote anything; empty when there was none."""
        ...

    def last_lasting_change(self, endpoint: str) -> str:
        """Id of the last change that wrote anything, shadow tests aside: they leave what serves. Raises ReadError."""
        ...

    def open_changes(self, unread: list[UnreadRow] | None = None) -> Iterator[Change]:
        """Every change that is not closed. Rows that cannot be read are passed over and put into `unread`."""
        ...

    def holder_of(self, endpoint: str) -> str:
        """Id of the change, or of the office hours (`hours_id`), that holds the endpoint; empty when none does."""
        ...

    def last_change_at(self, endpoint: str) -> datetime | None:
        """When the last change of the endpoint was closed, or None."""
        ...

    def switch(self) -> Switch:
        """The freeze switch."""
        ...

    def set_switch(self, switch: Switch) -> None:
        """Freeze or thaw."""
        ...


class Changer(Protocol):
    """Reads and writes of `apply` in SageMaker, Application Auto Scaling and CloudWatch.

    Nothing is ever cached.
    """

    def endpoint(self, name: str) -> EndpointSight | Gone:
        """DescribeEndpoint."""
        ...

    def config(self, name: str) -> ConfigSight | None:
        """DescribeEndpointConfig with its tags and the fields that nobody here knows; None when absent."""
        ...

    def tags(self, ref: EndpointRef) -> Mapping[str, str]:
        """ListTags of the endpoint."""
        ...

    def scaling(
        self, endpoint: str, variants: Sequence[str], components: Sequence[str] = ()
    ) -> tuple[ScalableTarget, ...]:
        """Scalable targets of these variants and components, with policies and scheduled actions in raw form."""
        ...

    def alarms(self, names: Sequence[str]) -> Mapping[str, AlarmSight]:
        """The named alarms; those that do not exist are left out."""
        ...

    def alarms_with_actions(self, arns: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
        """Bodies of metric alarms that have one of these ARNs as an action."""
        ...

    def component_names(self, endpoint: str) -> Sequence[str]:
        """Names of every inference component of an endpoint."""
        ...

    def components(self, names: Sequence[str]) -> Mapping[str, ComponentSight]:
        """The named inference components with their whole specification; missing ones are left out."""
        ...

    def tags_of(self, arn: str) -> Mapping[str, str]:
        """ListTags of another thing than an endpoint."""
        ...

    def is_sold(self, instance_type: str, subnets: Sequence[str]) -> bool | None:
        """Whether EC2 offers the hardware in the zones of these subnets (any zone when empty); None when unknown."""
        ...

    def images(self, ref: EndpointRef, names: Sequence[str]) -> Mapping[str, ImageSight]:
        """Registry's digests today by image name; of one with a digest, whether it is there."""
        ...

    def alarm_visibility(self, models: Sequence[str], roles: Sequence[str] = ()) -> Mapping[str, bool | None]:
        """Whether each role of the models, and of `roles`, may describe alarms; None where that could not be asked."""
        ...

    def role_pass(self, role: str) -> RolePass:
        """Whether our own role may hand this execution role to SageMaker."""
        ...

    def denied_restore_actions(self, ref: EndpointRef, targets: Sequence[ScalableTarget]) -> tuple[str, ...]:
        """IAM actions that giving this autoscaling back needs, and that our own role is denied."""
        ...

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        ...


class SavingsLedger(Protocol):
    """Keeps what changes were promised to save and what they did save, and what happened."""

    def book(self, entry: LedgerEntry) -> None:
        """Record an entry; the same id twice is one entry."""
        ...

    def entries(self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None) -> Iterator[LedgerEntry]:
        """Entries of the window, oldest first. Rows that cannot be read are passed over and put into `unread`."""
        ...

    def note(self, occurrence: Occurrence) -> bool:
        """Record an occurrence exactly once; False when its key was known already."""
        ...

    def is_noted(self, key: str) -> bool:
        """Whether an occurrence of that key was recorded. ReadError."""
        ...

    def occurrences(
        self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None
    ) -> Iterator[Occurrence]:
        """Occurrences of the window, oldest first. Rows that cannot be read are passed over and put into `unread`."""
        ...


class EndedChangeBook(Protocol):
    """Keeps how past changes ended, for the next decision."""

    def record(self, endpoint: str, change_id: str, past: PastChange) -> None:
        """Record how a change ended; the same change again replaces what was recorded."""
        ...

    def still_saving(self) -> Collection[str]:
        """Ids of the closed changes that stand, and whose saving is still booked day by day."""
        ...

    def ended_changes(
        self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None
    ) -> Iterator[EndedChange]:
        """The changes and tests of the account as they ended in the window, oldest first.

        Rows that cannot be read are passed over and put into `unread`.
        """
        ...


class WakeBook(Protocol):
    """Takes orders to wake endpoints with office hours. Every write is conditional on the version that was read."""

    def load(self, endpoint: str) -> HoursRecord | None:
        """The record as it stands, read consistently; None where there is none. UnreadableError."""
        ...

    def records(self, unread: list[UnreadRow] | None = None) -> Iterator[HoursRecord]:
        """Every record. Rows that cannot be read are passed over and put into `unread`."""
        ...

    def save(self, record: HoursRecord) -> HoursRecord:
        """Save over the version that was read; ConflictError where somebody saved in between."""
        ...


class HoursBook(WakeBook, Protocol):
    """Keeps the records of endpoints with office hours."""

    def save(self, record: HoursRecord) -> HoursRecord:
        """Save over the version that was read, with the endpoint's lock, all or nothing.

        A record that holds the lock takes it, any other one gives its own back. ConflictError where somebody saved in
        between, or a change holds the endpoint.
        """
        ...

    def waiting_wake(self, endpoint: str) -> Wake | None:
        """The order to wake it that a click left; None where there is none. UnreadableError."""
        ...

    def drop_wake(self, endpoint: str, wake: Wake) -> None:
        """Delete the order that was taken up; ConflictError where another one was left since."""
        ...

    def show(self, note: SleepNote) -> None:
        """Leave a note of the endpoint's new state, which the table's stream brings to people."""
        ...

    def park(self, key: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Tell once of a row that cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class AlarmsAbout:
    """Alarms that matter to one endpoint."""

    metric: tuple[Mapping[str, Any], ...] = ()
    """Bodies of the metric alarms that name it in a dimension, or start one of its policies."""
    composite: tuple[Mapping[str, Any], ...] = ()
    """Every composite alarm of the account and Region, with its rule."""


class HoursAccount(Protocol):
    """Reads and writes of the office hours beside those of `ports.changes.Changer`. Nothing is ever cached."""

    def tagged_endpoints(self) -> Mapping[str, tuple[EndpointRef, Mapping[str, str]]]:
        """Endpoints that carry the tag of the hours, by name, with their tags."""
        ...

    def alarms_about(self, endpoint: str, policies: Sequence[str]) -> AlarmsAbout:
        """Alarms that name the endpoint or have one of these policy ARNs as an action."""
        ...

    def monitors(self, endpoint: str) -> tuple[str, ...]:
        """Names of the Model Monitor schedules that watch the endpoint."""
        ...

    def reservations(self, arns: Sequence[str]) -> Mapping[str, ReservationSight]:
        """The training plans of these that exist, by ARN."""
        ...

    def models(self, names: Sequence[str]) -> Mapping[str, ModelBefore]:
        """The models of these that exist, by name, with the files that they name."""
        ...

    def perform(self, step: Step) -> None:
        """Make one write; WriteRefusedError, PermissionMissingError or ThrottledError when AWS does not."""
        ...
