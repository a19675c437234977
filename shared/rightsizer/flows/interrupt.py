"""EC2 takes capacity back: record it exactly once and tell whoever runs the fleet."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from rightsizer.errors import RightsizerError
from rightsizer.model.outcome import Occurrence
from rightsizer.model.trigger import (
    EndpointMoved,
    InstanceMoved,
    JobMoved,
    LaunchFailed,
    LookAt,
    LookAtAlarm,
    NoTrigger,
    RebalanceRecommended,
    ReportDue,
    SpotInterruption,
    SweepDue,
    TickDue,
    Trigger,
)
from rightsizer.ports import Notifier, SavingsLedger
from rightsizer.telemetry import logger

STALE = timedelta(seconds=120)
"""After two minutes the instance is gone; an older warning is only recorded."""


@dataclass(frozen=True, slots=True)
class InterruptPorts:
    """What recording needs."""

    ledger: SavingsLedger
    notifier: Notifier


def interrupt(ports: InterruptPorts, trigger: Trigger, now: datetime) -> Occurrence | None:
    """The occurrence that this event recorded; None when it asks nothing of us or was recorded before.

    Recording comes first and counts: should telling fail, the occurrence is in the ledger and in the next report.
    """
    seen = occurrence(trigger, now)
    if seen is None or not ports.ledger.note(seen):
        return None
    if isinstance(trigger, SpotInterruption | LaunchFailed):
        try:
            ports.notifier.publish(f"rightsizer: {seen.kind} of {seen.subject}", seen.text)
        except RightsizerError as error:
            logger.error("an interruption was recorded, but telling it failed", error=str(error), key=seen.key)
    return seen


def occurrence(trigger: Trigger, now: datetime) -> Occurrence | None:
    """What happened, in a sentence; None for events that are not about EC2 capacity."""
    match trigger:
        case SpotInterruption(instance, action, zone, at, key):
            where = f" in {zone}" if zone else ""
            late = now - at
            text = f"EC2 takes the Spot instance {instance}{where} back and will {action} it."
            if late > STALE:
                text += f" The warning came {late.total_seconds():.0f} s late, so it is only recorded."
            return Occurrence(key, at, "spot-interruption", instance, text)
        case RebalanceRecommended(instance, at, key):
            text = f"EC2 sees an elevated risk that it takes the Spot instance {instance} back. It is only counted."
            return Occurrence(key, at, "rebalance-recommendation", instance, text)
        case LaunchFailed(group, zone, message, at, key):
            where = f" in {zone}" if zone else ""
            text = f"The Auto Scaling group {group} could not launch an instance{where}: {message or 'no reason given'}"
            return Occurrence(key, at, "launch-failure", group, text)
        case InstanceMoved():
            return None  # every stop in the account comes by here; only what took capacity away is worth a record
        case EndpointMoved() | JobMoved() | LookAt() | LookAtAlarm() | NoTrigger():
            return None
        case ReportDue() | SweepDue() | TickDue():
            return None
        case unreachable:
            assert_never(unreachable)
