"""Registry of parsers: by (source, detail-type) for events of the bus, else by the marking key.

What a document may be depends on the way that it came. A function is invoked by whom IAM lets invoke it. On the
evaluation queue SNS delivers what anybody with access to the topic published, so that only alarms of the configured
topic are read there, and orders of the schedules, which have their own functions, are refused.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rightsizer.domain.reason import Code, Reason, one_line
from rightsizer.domain.trigger import NoTrigger, Trigger
from rightsizer.errors import InputError
from rightsizer.intake import alarms, endpoints, jobs, own_messages, spot, wake
from rightsizer.intake.fields import Parser, Parsers, require_mapping

QUEUED: tuple[Parsers, ...] = (
    alarms.PARSERS,
    endpoints.PARSERS,
    jobs.PARSERS,
)
"""Events that the template's rules send to the evaluation queue, source by source. docs/extending.md adds one."""
INVOKING: tuple[Parsers, ...] = (
    spot.PARSERS,
    own_messages.PARSERS,
    wake.PARSERS,
)
"""Events that invoke a function of their own."""

ALARM = "AlarmName"
BY_KEY: Mapping[str, Parser] = {
    "alarmData": alarms.from_action,
    ALARM: alarms.from_sns,
    "endpoints": own_messages.parse_page,
    "subject": own_messages.parse_look,
}
"""Documents without an envelope, by the key that no other document has."""
QUEUED_KEYS = frozenset({ALARM, "endpoints", "subject"})
"""Those of them that come by the evaluation queue."""


@dataclass(frozen=True, slots=True)
class EventOptions:
    """How a document came."""

    topic: str = ""
    """ARN of the one alarm topic whose messages are read; empty: no message of SNS is."""
    queue: bool = False
    replays: bool = False
    """Whether events replayed from an archive count; a dry run asks for it."""


def parse(event: object, way: EventOptions) -> Trigger:
    """See `rightsizer.intake.parse`."""
    document = _document(event)
    if document.get("Type") == "Notification":
        return _notification(document, way)
    if "detail-type" in document:
        return _from_bus(document, way)
    for key, parser in BY_KEY.items():
        if key in document:
            return _without_envelope(document, key, parser, way)
    keys = ", ".join(sorted(repr(one_line(str(key), 40)) for key in list(document)[:5])) or "no key at all"
    return _unknown_event(f"a document with {keys} is none of the shapes that we know")


def parser_of(sources: Sequence[Parsers], source: str, kind: str) -> Parser | None:
    """The parser of an event of the bus, or None when none of the sources reads such events."""
    return next((parsers[source, kind] for parsers in sources if (source, kind) in parsers), None)


def _without_envelope(document: Mapping[str, Any], key: str, parser: Parser, way: EventOptions) -> Trigger:
    if way.queue and key not in QUEUED_KEYS:
        return _refused_event("the action of an alarm invokes the function; it does not come by the queue")
    if way.queue and key == ALARM and not way.topic:
        return _refused_event("an alarm message came by the queue, and no alarm topic is configured; set AlarmTopicArn")
    return parser(document)


def _from_bus(event: Mapping[str, Any], way: EventOptions) -> Trigger:
    source, kind = event.get("source"), event["detail-type"]
    if not isinstance(source, str) or not isinstance(kind, str):
        raise InputError(f"reading an event: source and detail-type must be texts, not {source!r:.60} and {kind!r:.60}")
    queued = parser_of(QUEUED, source, kind)
    parser = queued or parser_of(INVOKING, source, kind)
    if parser is None:
        return _unknown_event(f"events of the kind {kind!r:.100} from {source!r:.60} ask nothing of us")
    if way.queue and queued is None:
        return _refused_event(f"an event {kind!r} invokes its own function; it does not come by the evaluation queue")
    if event.get("replay-name") and not way.replays:
        return NoTrigger(
            Reason(
                Code.REPLAYED,
                f"the event {event.get('id')!r:.60} was replayed from an archive ({event['replay-name']!r:.60});"
                " what it says is no longer so",
            )
        )
    return parser(event)


def _notification(envelope: Mapping[str, Any], way: EventOptions) -> Trigger:
    """SNS wraps a message unless the subscription asks for raw delivery (SNS Developer Guide)."""
    topic = envelope.get("TopicArn")
    if not way.topic or topic != way.topic:
        expected = f"only those of {way.topic}" if way.topic else "none, for AlarmTopicArn is empty"
        return _refused_event(f"an SNS message of the topic {one_line(str(topic), 256)} is not read; {expected}")
    message = envelope.get("Message")
    if not isinstance(message, str):
        raise InputError(f"reading an SNS notification: Message: a text is expected, not {type(message).__name__}")
    try:
        inner = json.loads(message)
    except (ValueError, RecursionError):
        return _unknown_event("the SNS message is no JSON, so it is no alarm")
    if not isinstance(inner, dict) or ALARM not in inner or "detail-type" in inner:
        return _refused_event("the SNS message is no alarm of CloudWatch; nothing else is read from a topic")
    return alarms.from_sns(inner)


def _document(event: object) -> Mapping[str, Any]:
    if isinstance(event, str | bytes):
        try:
            event = json.loads(event)
        except (ValueError, RecursionError) as error:
            raise InputError(f"reading a message: it is not JSON: {error!s:.120}") from None
    return require_mapping(event, "an event")


def _unknown_event(sentence: str) -> NoTrigger:
    return NoTrigger(Reason(Code.UNKNOWN_EVENT, sentence))


def _refused_event(sentence: str) -> NoTrigger:
    return NoTrigger(Reason(Code.NOT_TRUSTED, sentence))
