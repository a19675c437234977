"""What our own schedules and our own queue pages say.

EventBridge Scheduler delivers exactly the schedule's ``Input``; ours name the work and carry the scheduled time, which
Scheduler writes in place of ``<aws.scheduler.scheduled-time>``.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from rightsizer.intake.edge import Moment, Name, Shape, read
from rightsizer.model.trigger import LookAt, ReportDue, SweepDue, SweepKind, TickDue, Trigger


class Sweep(Shape):
    sweep: SweepKind
    at: Moment = Field(alias="scheduled-time")


class Report(Shape):
    report: Literal["weekly", "monthly"]
    at: Moment = Field(alias="scheduled-time")


class Tick(Shape):
    tick: Literal["changes"]
    at: Moment = Field(alias="scheduled-time")


class Page(Shape):
    kind: Literal["look-at"]
    endpoints: tuple[Name, ...] = Field(min_length=1)
    because: Name
    alarm: str = ""
    at: Moment
    key: Name


def sweep(event: Mapping[str, Any]) -> Trigger:
    """The sweep is due."""
    found = read(Sweep, event, "sweep schedule")
    return SweepDue(found.sweep, found.at)


def report(event: Mapping[str, Any]) -> Trigger:
    """A report is due."""
    found = read(Report, event, "report schedule")
    return ReportDue(found.report, found.at)


def tick(event: Mapping[str, Any]) -> Trigger:
    """The tick of the changes."""
    return TickDue(read(Tick, event, "tick schedule").at)


def page(event: Mapping[str, Any]) -> Trigger:
    """A page of endpoints that the sweep sent: a LookAt as `wire` writes it."""
    found = read(Page, event, "page of endpoints")
    return LookAt(found.endpoints, found.because, found.alarm, found.at, found.key)
