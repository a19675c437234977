"""The sweep: list every endpoint, choose which to look at, send them to the evaluation queue in pages.

The sweep is the truth; events only bring an evaluation forward. What an event missed, the next sweep finds. It also
closes the proposals that nobody answered in time; their messages follow by the stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rightsizer.errors import InputError, RightsizerError
from rightsizer.model.trigger import SweepDue, SweepKind, Trigger
from rightsizer.ports import AlarmReader, EndpointSummary, EvaluationLog, FleetReader, PageQueue, ProposalCloser
from rightsizer.rules.page import DAYS, page_of
from rightsizer.telemetry import count, logger

PAGE = 25
"""Endpoints in one message, of one page of digests where they can be: one reading serves them all."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did."""

    seen: int
    sent: int
    pages: int
    expired: int = 0
    """Proposals that were closed because nobody answered in time."""


@dataclass(frozen=True, slots=True)
class SweepPorts:
    """What the sweep needs."""

    fleet: FleetReader
    alarms: AlarmReader
    log: EvaluationLog
    queue: PageQueue
    alarm: str
    """Name of the grouped alarm; empty when the stack has none."""
    proposals: ProposalCloser
    lookback_days: int = DAYS


def sweep(ports: SweepPorts, trigger: Trigger) -> Swept:
    """Send the endpoints that are due; a light sweep takes only new, changed or alarmed ones.

    InputError for anything but the schedule's own event.
    """
    if not isinstance(trigger, SweepDue):
        raise InputError(f"the sweep is started by its schedule, not by {trigger.kind}")
    kind, scheduled_at = trigger.sweep, trigger.scheduled_at
    expired = _expire(ports.proposals, scheduled_at)
    _tell_again(ports.proposals, scheduled_at, kind)
    summaries = list(ports.fleet.list_endpoints())
    due = summaries if kind is SweepKind.FULL else _due(ports, summaries)
    if kind is SweepKind.FULL:
        _note_spending(ports.log, scheduled_at)
    fleet = len(summaries) if kind is SweepKind.FULL else 0
    names = sorted((summary.ref.name for summary in due), key=lambda name: page_of(name, fleet, ports.lookback_days))
    pages = send_pages(ports.queue, names, f"{kind}-sweep", scheduled_at, f"sweep|{kind}", fleet)
    return Swept(len(summaries), len(names), pages, expired)


def send_pages(queue: PageQueue, names: Sequence[str], because: str, at: datetime, key: str, fleet: int) -> int:
    """Ask for the evaluation of these endpoints, page by page; the number of pages."""
    pages = [names[i : i + PAGE] for i in range(0, len(names), PAGE)]
    for number, page in enumerate(pages):
        queue.send_page(page, because, at, f"{key}|{at.isoformat()}|{number}", fleet)
    return len(pages)


def _expire(proposals: ProposalCloser, at: datetime) -> int:
    """Close what nobody answered. A failure waits for the next sweep: looking at endpoints must not wait for it."""
    try:
        closed = proposals.expire(at)
    except RightsizerError as error:
        logger.warning("proposals are not expired; the next sweep tries again", extra={"problem": str(error)})
        return 0
    if closed:
        logger.info("proposals expired", extra={"proposals": [one.id for one in closed]})
    count(ProposalsExpired=len(closed))
    return len(closed)


def _tell_again(proposals: ProposalCloser, at: datetime, kind: SweepKind) -> None:
    """Bring lost messages to `propose` once more; a failure waits for the next sweep."""
    try:
        told = proposals.tell_again(at, everything=kind is SweepKind.FULL)
    except RightsizerError as error:
        logger.warning("lost messages are not looked for; the next sweep tries again", extra={"problem": str(error)})
        return
    if told:
        logger.warning("messages of proposals were lost and are sent again", extra={"proposals": told})
    count(ProposalsToldAgain=told)


def _note_spending(log: EvaluationLog, at: datetime) -> None:
    """Yesterday's judgements, added up. Without it the last sum stays: looking at endpoints must not wait for it."""
    try:
        log.note_spending(at)
    except RightsizerError as error:
        logger.warning("what the account spends is not renewed", extra={"problem": str(error)})


def _due(ports: SweepPorts, summaries: Sequence[EndpointSummary]) -> list[EndpointSummary]:
    evaluated: Mapping[str, datetime] = ports.log.evaluated()
    alarmed = set(ports.alarms.endpoints_in_alarm(ports.alarm)) if ports.alarm else set()
    return [
        summary
        for summary in summaries
        if summary.ref.name not in evaluated
        or summary.modified_at > evaluated[summary.ref.name]
        or summary.ref.name in alarmed
    ]
