"""Events of our own schedules and queue pages, and the batch that Lambda reads from the evaluation queue.

EventBridge Scheduler delivers exactly the schedule's ``Input``; the template gives ours the look of an event and lets
Scheduler fill in ``<aws.scheduler.execution-id>`` and ``<aws.scheduler.scheduled-time>``. The batch: Lambda Developer
Guide, "Using Lambda with SQS".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from rightsizer.domain.trigger import (
    EvaluationReason,
    ListedEndpoint,
    LookAt,
    LookBeyond,
    LookReason,
    ReportDue,
    SweepDue,
    SweepKind,
    TickDue,
    Trigger,
)
from rightsizer.errors import InputError
from rightsizer.intake.fields import (
    MOST_NAMES,
    Envelope,
    EventModel,
    GroupName,
    Moment,
    Name,
    Parsers,
    SageMakerName,
    read_model,
    records_with_ids,
    require_mapping,
)

SOURCE = "rightsizer.scheduler"
SWEEP = "Sweep Due"
REPORT = "Report Due"
TICK = "Tick"
LARGEST_FLEET = 1_000_000
"""Endpoints of an account; the number tells how many objects hold the digests."""


def parse_sweep(event: Mapping[str, Any]) -> Trigger:
    """The sweep is due."""
    due = read_model(Envelope[SweepEvent], event, "sweep schedule")
    return SweepDue(due.detail.sweep, due.time)


class SweepEvent(EventModel):
    sweep: SweepKind


def parse_report(event: Mapping[str, Any]) -> Trigger:
    """A report is due."""
    due = read_model(Envelope[ReportEvent], event, "report schedule")
    return ReportDue(due.detail.report, due.time)


class ReportEvent(EventModel):
    report: Literal["weekly", "monthly"]


class Listed(EventModel):
    name: SageMakerName
    created_at: Moment
    modified_at: Moment


class Page(EventModel):
    kind: Literal["look-at"]
    endpoints: tuple[SageMakerName, ...] = Field(min_length=1, max_length=MOST_NAMES)
    because: Name
    alarm: str = ""
    at: Moment
    key: Name
    fleet: int = Field(default=0, ge=0, le=LARGEST_FLEET)
    listed: tuple[Listed, ...] = Field(default=(), max_length=MOST_NAMES)


class Beyond(EventModel):
    kind: Literal["look-beyond"]
    subject: Literal["group", "training-job"]
    names: tuple[GroupName, ...] = Field(min_length=1, max_length=MOST_NAMES)
    because: Name
    at: Moment
    key: Name


def parse_tick(event: Mapping[str, Any]) -> Trigger:
    """The tick of the changes."""
    return TickDue(read_model(Envelope[EventModel], event, "tick schedule").time)


def parse_page(event: Mapping[str, Any]) -> Trigger:
    """A page of endpoints that the sweep sent: a LookAt as `wire` writes it."""
    page = read_model(Page, event, "page of endpoints")
    listed = tuple(ListedEndpoint(one.name, one.created_at, one.modified_at) for one in page.listed)
    return LookAt(page.endpoints, _reason(page.because), page.alarm, page.at, page.key, page.fleet, listed)


def _reason(word: str) -> EvaluationReason:
    """The reason of that word; a word of another release is no reason to leave the endpoints alone."""
    return EvaluationReason(word) if word in EvaluationReason else EvaluationReason.OTHER


def parse_look(event: Mapping[str, Any]) -> Trigger:
    """Groups or jobs to look at: a LookBeyond as `wire` writes it."""
    beyond = read_model(Beyond, event, "message about groups or jobs")
    because = LookReason(beyond.because) if beyond.because in LookReason else LookReason.OTHER
    return LookBeyond(beyond.subject, beyond.names, because, beyond.at, beyond.key)


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """One message. Its body is parsed by itself, so that a poisoned one fails alone."""

    id: str
    body: str
    attempt: int
    """How often it was received, this time included."""
    problem: str = ""
    """Why there is no body to read; empty when there is one."""


def records(event: Any) -> tuple[QueueMessage, ...]:
    """The messages of the batch in their order; InputError when the event is no SQS batch.

    A record without an id cannot be named as failed: it is logged and passed over where others have one.
    """
    found = require_mapping(event, "an SQS batch").get("Records")
    if not isinstance(found, list):
        raise InputError("reading an SQS batch: Records: a list is expected; is this function invoked by a queue?")
    return tuple(
        _message(identity, record) for identity, record in records_with_ids(found, "an SQS batch", "messageId")
    )


def _message(identity: str, record: dict[str, Any]) -> QueueMessage:
    body, attributes = record.get("body"), record.get("attributes")
    received = str(attributes.get("ApproximateReceiveCount", "1")) if isinstance(attributes, dict) else "1"
    attempt = int(received) if received.isascii() and received.isdecimal() and len(received) < 10 else 1
    if not isinstance(body, str):
        return QueueMessage(
            identity, "", attempt, f"reading a message: body: a text is expected, not {type(body).__name__}"
        )
    return QueueMessage(identity, body, attempt)


PARSERS: Parsers = {
    (SOURCE, SWEEP): parse_sweep,
    (SOURCE, REPORT): parse_report,
    (SOURCE, TICK): parse_tick,
}
