"""What our own schedules and our own queue pages say.

EventBridge Scheduler delivers exactly the schedule's ``Input``; the template gives ours the look of an event and lets
Scheduler fill in ``<aws.scheduler.execution-id>`` and ``<aws.scheduler.scheduled-time>``.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from rightsizer.domain.trigger import LookAt, LookBeyond, ReportDue, SweepDue, SweepKind, TickDue, Trigger
from rightsizer.intake.fields import MOST_NAMES, Envelope, GroupName, Moment, Name, SageMakerName, Shape, read

SOURCE = "rightsizer.scheduler"
SWEEP = "Sweep Due"
REPORT = "Report Due"
TICK = "Tick"
LARGEST_FLEET = 1_000_000
"""Endpoints of an account; the number tells how many objects hold the digests."""


class Sweep(Shape):
    sweep: SweepKind


class Report(Shape):
    report: Literal["weekly", "monthly"]


class Page(Shape):
    kind: Literal["look-at"]
    endpoints: tuple[SageMakerName, ...] = Field(min_length=1, max_length=MOST_NAMES)
    because: Name
    alarm: str = ""
    at: Moment
    key: Name
    fleet: int = Field(default=0, ge=0, le=LARGEST_FLEET)


class Beyond(Shape):
    kind: Literal["look-beyond"]
    subject: Literal["group", "training-job"]
    names: tuple[GroupName, ...] = Field(min_length=1, max_length=MOST_NAMES)
    because: Name
    at: Moment
    key: Name


def sweep(event: Mapping[str, Any]) -> Trigger:
    """The sweep is due."""
    due = read(Envelope[Sweep], event, "sweep schedule")
    return SweepDue(due.detail.sweep, due.time)


def report(event: Mapping[str, Any]) -> Trigger:
    """A report is due."""
    due = read(Envelope[Report], event, "report schedule")
    return ReportDue(due.detail.report, due.time)


def tick(event: Mapping[str, Any]) -> Trigger:
    """The tick of the changes."""
    return TickDue(read(Envelope[Shape], event, "tick schedule").time)


def page(event: Mapping[str, Any]) -> Trigger:
    """A page of endpoints that the sweep sent: a LookAt as `wire` writes it."""
    found = read(Page, event, "page of endpoints")
    return LookAt(found.endpoints, found.because, found.alarm, found.at, found.key, found.fleet)


def beyond(event: Mapping[str, Any]) -> Trigger:
    """Groups or jobs to look at: a LookBeyond as `wire` writes it."""
    found = read(Beyond, event, "message about groups or jobs")
    return LookBeyond(found.subject, found.names, found.because, found.at, found.key)
