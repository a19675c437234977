"""Ports of the office hours, as Protocols; errors as in `rightsizer.ports.evaluation`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursRecord, ModelBefore, Wake
from rightsizer.domain.live_state import ReservationSight
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import Step
from rightsizer.domain.sleep import SleepNote


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
