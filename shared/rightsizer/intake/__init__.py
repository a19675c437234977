"""Events to triggers. `parse` and `records` import pydantic on first use, so that `intake.slack` stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightsizer.intake.queue import Message
    from rightsizer.model.errand import ErrandMoved
    from rightsizer.model.proposal import ProposalMoved
    from rightsizer.model.trigger import Received, Trigger


def parse(event: object, *, replays: bool = False) -> Trigger:
    """What an event means for us: a Trigger, or NoTrigger with its reason.

    `event` is what a function was invoked with, or the text of a queue message. Events replayed from an archive are
    refused as NoTrigger unless `replays` (a dry run) says otherwise. InputError names the field and the cause.
    """
    from rightsizer.intake.registry import parse as parse_event  # pydantic only where events are parsed

    return parse_event(event, replays=replays)


def records(event: Any) -> tuple[Message, ...]:
    """The messages of an SQS batch; InputError when it is no such batch."""
    from rightsizer.intake.queue import records as messages  # pydantic only where events are parsed

    return messages(event)


def batch(event: Any) -> list[Received]:
    """The messages of an SQS batch, each with its trigger or the reason why it is malformed: one never stops another.

    A document of the alarm action, which invokes the function directly, is a batch of one, without a message id.
    """
    from rightsizer.errors import InputError
    from rightsizer.model.trigger import Received

    if not (isinstance(event, dict) and "Records" in event):
        return [Received("", parse(event))]
    received = []
    for message in records(event):
        try:
            received.append(Received(message.id, parse(message.body)))
        except InputError as error:
            received.append(Received(message.id, None, str(error)))
        except (ValueError, RecursionError) as error:  # no parser should let these out; if one does, the others go on
            received.append(Received(message.id, None, f"reading a message: {type(error).__name__}: {error!s:.200}"))
    return received


def moves(event: Any) -> list[ProposalMoved | ErrandMoved]:
    """The proposals that a batch of the table's stream shows; InputError when it is no such batch."""
    from rightsizer.intake.stream import moves as stream_moves  # pydantic only where events are parsed

    return stream_moves(event)
