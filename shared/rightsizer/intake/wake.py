"""Orders to wake an endpoint, from the stack's own event bus: whom the parameter WakePrincipals names may put them.

An event tells the account that put it and nothing else of its sender (EventBridge User Guide, "Event structure"), so
the policy of the bus decides who may; nothing in the event is believed about that.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rightsizer.domain.trigger import Trigger, WakeAsked
from rightsizer.intake.fields import Envelope, EventModel, Parsers, SageMakerName, read_model

SOURCE, WAKE = "rightsizer.wake", "Wake Endpoint"


class WakeDetail(EventModel):
    endpoint: SageMakerName
    minutes: int = Field(default=120, ge=15, le=72 * 60)


def parse_wake(event: Mapping[str, Any]) -> Trigger:
    """An endpoint that sleeps shall serve for some minutes."""
    envelope = read_model(Envelope[WakeDetail], event, WAKE)
    return WakeAsked(envelope.detail.endpoint, envelope.detail.minutes, envelope.account, envelope.time, envelope.id)


PARSERS: Parsers = {(SOURCE, WAKE): parse_wake}
