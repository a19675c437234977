"""Events to triggers. `parse` and `records` import pydantic on first use, so that `intake.slack` stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightsizer.domain.capacity_change import CapacityChangeMoved
    from rightsizer.domain.message import SleepMoved
    from rightsizer.domain.proposal import ProposalMoved
    from rightsizer.domain.trigger import Received, Trigger
    from rightsizer.intake.own_messages import QueueMessage


def parse(event: object, *, topic: str = "", replays: bool = False) -> Trigger:
    """The trigger that an event means: a Trigger, or NoTrigger with its reason.

    `topic` is the ARN of the alarm topic whose SNS messages are read; messages of any other are refused. Events
    replayed from an archive are refused as NoTrigger unless `replays` (a dry run) says otherwise. InputError names the
    field and the cause.
    """
    from rightsizer.intake.registry import EventOptions  # pydantic only where events are parsed
    from rightsizer.intake.registry import parse as parse_event

    return parse_event(event, EventOptions(topic, replays=replays))


def records(event: Any) -> tuple[QueueMessage, ...]:
    """The messages of an SQS batch; InputError when it is no such batch."""
    from rightsizer.intake.own_messages import records as messages  # pydantic only where events are parsed

    return messages(event)


def batch(event: Any, topic: str = "") -> list[Received]:
    """Messages of an SQS batch, each with its trigger or the reason why it is malformed.

    One message never stops another.

    `topic` is the ARN of the one alarm topic whose messages are read. A document of the alarm action, which invokes the
    function directly, is a batch of one, without a message id.
    """
    from functools import partial

    from rightsizer.domain.trigger import Received
    from rightsizer.intake.registry import EventOptions
    from rightsizer.intake.registry import parse as parse_event
    from rightsizer.telemetry import Failure, attempt

    if not (isinstance(event, dict) and "Records" in event):
        return [Received("", parse(event, topic=topic))]
    received = []
    for message in records(event):
        if message.problem:
            received.append(Received(message.id, None, message.problem))
            continue
        found = attempt(
            "reading a message", message.id, partial(parse_event, message.body, EventOptions(topic, queue=True))
        )
        received.append(
            Received(message.id, None, str(found)) if isinstance(found, Failure) else Received(message.id, found)
        )
    return received


def moves(event: Any) -> list[ProposalMoved | CapacityChangeMoved]:
    """The proposals that a batch of the table's stream shows; InputError when it is no such batch."""
    from rightsizer.intake.stream import parse_moves as stream_moves  # pydantic only where events are parsed

    return stream_moves(event)


def sleeps(event: Any) -> list[SleepMoved]:
    """The endpoints that a batch of the table's stream shows asleep, or awake again."""
    from rightsizer.intake.stream import parse_sleeps  # pydantic only where events are parsed

    return parse_sleeps(event)
