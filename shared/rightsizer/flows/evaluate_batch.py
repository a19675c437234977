"""One batch of the evaluation queue: the endpoints that its messages mean, evaluated together, answered one by one.

A message fails when it is malformed, or when an endpoint that it names was throttled, could not be looked up or
stored, or met a fault of ours; the queue then redelivers it alone. Everything else about one endpoint is a reason in
its own record and no failure of the message.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from rightsizer.domain.endpoint import Unobserved
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.trigger import (
    EndpointMoved,
    EvaluationReason,
    InstanceMoved,
    JobMoved,
    LaunchFailed,
    ListedEndpoint,
    LookAt,
    LookAtAlarm,
    LookBeyond,
    NoTrigger,
    RebalanceRecommended,
    Received,
    ReportDue,
    SpotInterruption,
    SweepDue,
    TickDue,
    Trigger,
    WakeAsked,
)
from rightsizer.errors import ReadError, RightsizerError
from rightsizer.flows.evaluate import NotDone
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.evaluation import AlarmReader
from rightsizer.telemetry import Failure, attempt, count, logger

DIRECT = ""
"""Message id of an event that invoked the function without a queue: nobody would read a list of failures."""

LISTED_LATELY = timedelta(hours=1)
"""What a sweep listed is believed for so long; what comes later is described. Longer than a page waits in the queue."""

type Evaluate = Callable[
    [Sequence[str], EvaluationReason, datetime, int], Iterable[Recommendation | Unobserved | NotDone]
]
"""Evaluates endpoints by name; the second argument says why.

The last one is the size of the fleet as a full sweep saw it, 0 when that is not known.
"""


@dataclass(frozen=True, slots=True)
class BatchPorts:
    """Ports of a batch."""

    evaluate: Evaluate
    alarms: AlarmReader
    ledger: SavingsLedger
    beyond: Callable[[LookBeyond | JobMoved, datetime], None] | None = None
    """Looks at groups, training jobs and clusters; None where only endpoints are looked at."""
    later: Callable[[Sequence[str], EvaluationReason, datetime, int], Sequence[str]] | None = None
    """Asks the queue for what this invocation has no time for, and returns what the queue did not take of it.

    None where its messages are delivered again instead."""
    recall: Callable[[Sequence[ListedEndpoint]], None] = lambda _: None
    """Takes what is remembered of endpoints as they were listed; called once for each batch."""


@dataclass(slots=True)
class _Wishes:
    """Messages that ask for an evaluation, by reason, size of the fleet and endpoint."""

    asked: dict[tuple[EvaluationReason, int], dict[str, list[str]]] = field(default_factory=dict)

    listed: dict[str, ListedEndpoint | None] = field(default_factory=dict)
    """Endpoints as a sweep listed them lately; None where another message asks for one: it may have moved since."""

    def add(
        self,
        because: EvaluationReason,
        names: Iterable[str],
        message: str,
        fleet: int = 0,
        listed: Sequence[ListedEndpoint] = (),
    ) -> None:
        seen = {one.name: one for one in listed}
        for name in names:
            self.listed[name] = seen.get(name) if self.listed.get(name, seen.get(name)) == seen.get(name) else None
            self.asked.setdefault((because, fleet), {}).setdefault(name, []).append(message)


def evaluate_batch(ports: BatchPorts, batch: Sequence[Received], now: datetime) -> list[str]:
    """Evaluate what the messages ask for; returns the ids of the messages to deliver again."""
    wanted, failed = _Wishes(), set[str]()
    for message in batch:
        if message.trigger is None:
            logger.warning("refusing a message", extra={"message_id": message.message_id, "problem": message.problem})
            count(MessagesMalformed=1)
            failed.add(message.message_id)
            continue
        ask = partial(_collect, ports, wanted, message.trigger, message.message_id, now)
        if isinstance(attempt("taking a message", message.message_id, ask), Failure):
            failed.add(message.message_id)
    ports.recall([listed for listed in wanted.listed.values() if listed is not None])
    for why, asked in wanted.asked.items():
        failed |= _evaluate_group(ports, why, asked, now)
    if DIRECT in failed:
        raise ReadError("evaluating what an alarm's own action asks for: it failed, see the log; Lambda tries again")
    return [message.message_id for message in batch if message.message_id in failed]


def _collect(ports: BatchPorts, wanted: _Wishes, trigger: Trigger, message: str, now: datetime) -> None:
    match trigger:
        case LookAt():
            lately = trigger.listed if now - trigger.at < LISTED_LATELY else ()
            wanted.add(trigger.because, trigger.endpoints, message, trigger.fleet, lately)
        case LookAtAlarm():
            wanted.add(EvaluationReason.ALARM, ports.alarms.endpoints_in_alarm(trigger.alarm), message)
        case EndpointMoved(status="InService", deployment=False):
            wanted.add(EvaluationReason.EVENT, (trigger.endpoint,), message)
        case EndpointMoved():
            logger.debug("endpoint on its way", extra={"endpoint": trigger.endpoint, "status": trigger.status})
        case JobMoved():
            text = f"{trigger.resource} {trigger.name} is {trigger.status}"
            ports.ledger.note(Occurrence(trigger.key, trigger.at, trigger.resource, trigger.name, text))
            _look_beyond(ports, trigger, now)
        case LookBeyond():
            _look_beyond(ports, trigger, now)
        case NoTrigger(reason) if reason.code is Code.NOT_TRUSTED:
            logger.warning("a message is refused", extra={"message_id": message, "why": reason.sentence})
            count(MessagesRefused=1)
        case NoTrigger():
            logger.debug("nothing asked", extra={"reason": trigger.reason.sentence})
        case (
            SweepDue()
            | ReportDue()
            | TickDue()
            | SpotInterruption()
            | RebalanceRecommended()
            | LaunchFailed()
            | InstanceMoved()
            | WakeAsked()
        ):
            logger.warning("an event of another door reached the queue", extra={"kind": trigger.kind})
        case _:
            assert_never(trigger)


def _look_beyond(ports: BatchPorts, look: LookBeyond | JobMoved, now: datetime) -> None:
    if ports.beyond is not None:
        ports.beyond(look, now)


def _evaluate_group(
    ports: BatchPorts, why: tuple[EvaluationReason, int], asked: dict[str, list[str]], now: datetime
) -> set[str]:
    """The messages to deliver again, of those that ask for these endpoints for one reason.

    What is read once for all (prices, metrics) may fail for all. Where that is a fault of ours, each endpoint that is
    not done is evaluated by itself: only the one to blame fails.
    """
    again, left, late = set[str](), dict(asked), list[str]()

    def run(names: Sequence[str]) -> None:
        for result in ports.evaluate(names, why[0], now, why[1]):
            name = result.name if isinstance(result, NotDone) else result.ref.name
            messages = left.pop(name, [])
            if isinstance(result, Unobserved) and result.reason.code is Code.NO_TIME:
                late.append(name)
            elif _is_worth_repeating(result):
                again.update(messages)

    failed = attempt("evaluating endpoints", f"{len(asked)} of {why[0]}", partial(run, tuple(asked)))
    for name in tuple(left) if failed is not None and not failed.is_expected and len(asked) > 1 else ():
        if attempt("evaluating an endpoint", name, partial(run, (name,))) is None:
            left.pop(name, None)
    if failed is not None:
        again.update(*left.values())
    again.update(*(asked.get(name, ()) for name in _send_later(ports, why, late, now)))
    return again


def _is_worth_repeating(result: Recommendation | Unobserved | NotDone) -> bool:
    """Whether another delivery may do better; a person looks at what fails four times, in the dead letters."""
    if isinstance(result, Unobserved):
        return result.reason.code in (Code.THROTTLED, Code.UNKNOWN_FAILURE)
    return isinstance(result, NotDone)


def _send_later(
    ports: BatchPorts, why: tuple[EvaluationReason, int], late: Sequence[str], now: datetime
) -> Sequence[str]:
    """What is left over and that the queue did not take as new messages.

    A message that is merely delivered again is one try nearer to the dead letters each time, though nothing failed.
    """
    if not late or ports.later is None:
        return late
    try:
        unsent = ports.later(late, why[0], now, why[1])
    except RightsizerError as error:
        logger.warning("cannot ask for the rest", extra={"endpoints": len(late), "problem": str(error)})
        return late
    logger.info("asked for the rest", extra={"endpoints": len(late) - len(unsent)})
    return unsent
