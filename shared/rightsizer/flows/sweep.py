"""The sweep: list every endpoint, choose which to look at, send them to the evaluation queue in pages.

The sweep is the truth; events only bring an evaluation forward. What an event missed, the next sweep finds. It also
closes the proposals that nobody answered in time; their messages follow by the stream.

One page of the queue that is refused stops no other. Its endpoints are found by the next light sweep, as every
endpoint that was not evaluated for a day.

Beside the endpoints it remembers the Auto Scaling groups: `interruption` acts on these facts within the two minutes and
reads nothing else. Looking at groups and training jobs is for `evaluate`: the sweep sends it messages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import batched
from typing import Literal

from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.trigger import (
    EvaluationReason,
    ListedEndpoint,
    LookAt,
    LookBeyond,
    LookReason,
    SweepDue,
    SweepKind,
    Trigger,
)
from rightsizer.errors import InputError, RightsizerError
from rightsizer.ports.evaluation import (
    AlarmReader,
    EndpointSummary,
    EvaluationLog,
    FleetReader,
    PageQueue,
    ProposalCloser,
)
from rightsizer.ports.spot import GroupReader, JobReader, LookQueue, SpotBook, UnreadGroup
from rightsizer.recommender.usage_days import DAYS, page_of
from rightsizer.telemetry import Failure, attempt, count, logger, measure

PAGE = 25
"""Endpoints in one message. Their daily usage lies on one page where it can: one reading serves them all."""
MISSED = timedelta(hours=25)
"""An endpoint that was not evaluated for so long was missed by the daily sweep, or its message was lost."""
STALE = timedelta(hours=49)
"""An endpoint in service that was neither evaluated nor modified for so long was missed by two daily sweeps."""
GROUP_PAGE = 10
"""Groups or jobs in one message."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Result of a sweep."""

    seen: int
    sent: int
    pages: int
    expired: int = 0
    """Proposals that were closed because nobody answered in time."""
    refused: int = 0
    """Endpoints whose page the queue did not take."""


@dataclass(frozen=True, slots=True)
class SentPages:
    """Pages that were sent and endpoints that were refused."""

    pages: int
    refused: tuple[str, ...] = ()
    """Names on the pages that the queue did not take."""


@dataclass(frozen=True, slots=True)
class SweepPorts:
    """Ports of the sweep."""

    fleet: FleetReader
    alarms: AlarmReader
    log: EvaluationLog
    queue: PageQueue
    alarm: str
    """Name of the grouped alarm; empty when the stack has none."""
    proposals: ProposalCloser
    lookback_days: int = DAYS
    count_by_state: Callable[[], Mapping[ProposalState, int]] = dict
    """How many proposals the table has in each state that the dashboard shows."""
    send_report_events: Callable[[], int] = int
    """Sends the events of reports that EventBridge refused; returns how many it took."""


def sweep(ports: SweepPorts, trigger: Trigger) -> SweepResult:
    """Send the endpoints that are due; a light sweep takes only new, changed or alarmed ones.

    InputError for anything but the schedule's own event. ReadError when the list of endpoints ends in an error, after
    those that were listed are sent; WriteRefusedError when the queue took no page at all. Lambda tries both again.
    """
    if not isinstance(trigger, SweepDue):
        raise InputError(f"the sweep is started by its schedule, not by {trigger.kind}")
    kind, scheduled_at = trigger.sweep, trigger.scheduled_at
    expired = _expire(ports.proposals, scheduled_at, kind)
    _tell_again(ports.proposals, scheduled_at, kind)
    attempt("sending the events of reports again", "all", ports.send_report_events)
    summaries, ended = _list_endpoints(ports.fleet)
    due = summaries if kind is SweepKind.FULL else _due_endpoints(ports, summaries, scheduled_at)
    if kind is SweepKind.FULL:
        _note_spending(ports.log, scheduled_at)
        attempt("counting what is stale and what waits", "the account", partial(_gauge, ports, summaries, scheduled_at))
    fleet = len(summaries) if kind is SweepKind.FULL and ended is None else 0
    names = sorted((summary.ref.name for summary in due), key=lambda name: page_of(name, fleet, ports.lookback_days))
    listed = {
        one.ref.name: ListedEndpoint(one.ref.name, one.created_at, one.modified_at)
        for one in due
        if one.status == "InService"
    }
    sent = send_pages(ports.queue, pages_of(names, kind.reason, scheduled_at, f"sweep|{kind}", fleet, listed))
    if ended is not None:
        raise ended
    return SweepResult(len(summaries), len(names) - len(sent.refused), sent.pages, expired, len(sent.refused))


def _list_endpoints(fleet: FleetReader) -> tuple[list[EndpointSummary], RightsizerError | None]:
    """The endpoints, and the error that ended the list early: those before it are not to wait for the others."""
    summaries: list[EndpointSummary] = []
    try:
        for summary in fleet.list_endpoints():
            summaries.append(summary)  # noqa: PERF402  (what was listed before the error is kept)
    except RightsizerError as error:
        logger.error("the list of endpoints ends early", extra={"listed": len(summaries), "problem": str(error)})
        return summaries, error
    return summaries, None


def send_pages(queue: PageQueue, pages: Sequence[LookAt]) -> SentPages:
    """Ask for the evaluation of these pages; one that is refused stops no other.

    The error of the last one, when the queue took none: then nothing was asked, and all may be asked again.
    """
    if not pages:
        return SentPages(0)
    refused = queue.send_pages(pages)
    for page, error in refused:
        logger.warning("a page of endpoints is not sent", extra={"page": page.key, "problem": str(error)})
    if len(refused) == len(pages):
        raise refused[-1][1]
    names = tuple(name for page, _ in refused for name in page.endpoints)
    if names:
        count(EndpointsNotSent=len(names))
    return SentPages(len(pages) - len(refused), names)


def pages_of(
    names: Sequence[str],
    because: EvaluationReason,
    at: datetime,
    key: str,
    fleet: int,
    listed: Mapping[str, ListedEndpoint] | None = None,
) -> list[LookAt]:
    """Pages that ask for the evaluation of these endpoints, each with those of them that were `listed`."""
    seen = listed or {}
    return [
        LookAt(
            some, because, "", at, f"{key}|{at.isoformat()}|{number}", fleet, tuple(seen[n] for n in some if n in seen)
        )
        for number, some in enumerate(batched(names, PAGE))
    ]


def _expire(proposals: ProposalCloser, at: datetime, kind: SweepKind) -> int:
    """Close what nobody answered. A failure waits for the next sweep: looking at endpoints must not wait for it."""
    try:
        closed = proposals.expire(at, everything=kind is SweepKind.FULL)
    except RightsizerError as error:
        logger.warning("proposals are not expired; the next sweep tries again", extra={"problem": str(error)})
        return 0
    if closed:
        logger.info("proposals expired", extra={"proposals": [proposal.id for proposal in closed]})
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
    """Yesterday's recommendations, added up.

    Without it the last sum stays: looking at endpoints must not wait for it.
    """
    try:
        log.note_spending(at)
    except RightsizerError as error:
        logger.warning("what the account spends is not renewed", extra={"problem": str(error)})


def _gauge(ports: SweepPorts, summaries: Sequence[EndpointSummary], at: datetime) -> None:
    """Count endpoints that two daily sweeps missed, and proposals by state, for the stack's alarm and dashboard."""
    evaluated, states = ports.log.last_evaluations(), ports.count_by_state()
    running = [summary for summary in summaries if summary.status == "InService" and at - summary.modified_at > STALE]
    measure(
        EndpointsStale=sum(at - evaluated.get(summary.ref.name, summary.modified_at) > STALE for summary in running),
        ProposalsWaiting=states.get(ProposalState.PENDING, 0),
        ProposalsUnderWay=states.get(ProposalState.APPROVED, 0) + states.get(ProposalState.APPLYING, 0),
        ProposalsProven=states.get(ProposalState.PROVEN, 0),
        ProposalsWentBack=states.get(ProposalState.ROLLED_BACK, 0) + states.get(ProposalState.HANDED_OVER, 0),
    )


def _due_endpoints(ports: SweepPorts, summaries: Sequence[EndpointSummary], at: datetime) -> list[EndpointSummary]:
    evaluated: Mapping[str, datetime] = ports.log.last_evaluations()
    alarmed = _endpoints_in_alarm(ports)
    return [
        summary
        for summary in summaries
        if summary.ref.name not in evaluated
        or summary.modified_at > evaluated[summary.ref.name]
        or at - evaluated[summary.ref.name] > MISSED
        or summary.ref.name in alarmed
    ]


def _endpoints_in_alarm(ports: SweepPorts) -> set[str]:
    """Endpoints in alarm. Where CloudWatch does not say, the new and the changed are still sent."""
    if not ports.alarm:
        return set()
    found = attempt(
        "asking which endpoints are in alarm", ports.alarm, lambda: ports.alarms.endpoints_in_alarm(ports.alarm)
    )
    return set() if isinstance(found, Failure) else set(found)


@dataclass(frozen=True, slots=True)
class BeyondPorts:
    """Ports of the sweep of groups and jobs."""

    groups: GroupReader
    jobs: JobReader
    book: SpotBook
    queue: LookQueue


@dataclass(frozen=True, slots=True)
class GroupSweepResult:
    """Result of a sweep of groups and jobs."""

    kept: int
    unread: tuple[UnreadGroup, ...]
    asked: int = 0
    """Groups and jobs that `evaluate` was asked to look at."""


def remember_groups(reader: GroupReader, book: SpotBook, now: datetime) -> GroupSweepResult:
    """Store the facts of every Spot or opted-in group; one that cannot be read or stored stops no other."""
    kept, unread = 0, []
    for found in reader.groups(now):
        if isinstance(found, UnreadGroup):
            logger.warning("an Auto Scaling group could not be read", group=found.name, reason=str(found.reason))
            unread.append(found)
        elif not isinstance(attempt("keeping the facts of a group", found.name, partial(book.keep, found)), Failure):
            kept += 1
    return GroupSweepResult(kept, tuple(unread))


def look_beyond(ports: BeyondPorts, sweep: SweepKind, now: datetime) -> GroupSweepResult:
    """Groups and training jobs after a sweep of the endpoints: facts each time, groups' options after a full one.

    What cannot be read costs itself only, never the sweep of the endpoints.
    """
    found = attempt("remembering groups", "all", partial(remember_groups, ports.groups, ports.book, now))
    done = GroupSweepResult(0, ()) if isinstance(found, Failure) else found
    asked = 0
    if sweep is SweepKind.FULL:
        asked += _ask_for_looks(ports.queue, "group", lambda: _spot_groups(ports.book), now)
    asked += _ask_for_looks(ports.queue, "training-job", ports.jobs.open_jobs, now)
    return GroupSweepResult(done.kept, done.unread, asked)


def _spot_groups(book: SpotBook) -> Sequence[str]:
    return [group.name for group in book.groups() if group.purchase.may_use_spot]


def _ask_for_looks(
    queue: LookQueue, subject: Literal["group", "training-job"], listed: Callable[[], Sequence[str]], now: datetime
) -> int:
    """Ask for a look at what is listed, page by page; how many the queue took. A page that is refused stops no other.

    The next sweep asks again for what is left out: groups each day, jobs each hour.
    """
    names = attempt(f"listing each {subject}", "all", listed)
    if isinstance(names, Failure):
        return 0
    taken = 0
    for start in range(0, len(names), GROUP_PAGE):
        some = tuple(names[start : start + GROUP_PAGE])
        look = LookBeyond(subject, some, LookReason.SWEEP, now, f"{subject}|sweep|{now.isoformat()}|{start}")
        done = attempt(f"asking for a look at each {subject}", str(start), partial(queue.send_look, look))
        taken += 0 if isinstance(done, Failure) else len(some)
    return taken
