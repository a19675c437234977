"""Which parser reads which event: by (source, detail-type) from the bus, by its marking key otherwise."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from rightsizer.errors import InputError
from rightsizer.intake import alarms, capacity, endpoints, jobs, schedule
from rightsizer.intake.edge import mapping
from rightsizer.model.reason import Code, Reason
from rightsizer.model.trigger import NoTrigger, Trigger

type Parser = Callable[[Mapping[str, Any]], Trigger]

FROM_BUS: Mapping[tuple[str, str], Parser] = {
    ("aws.cloudwatch", alarms.STATE_CHANGE): alarms.from_bus,
    ("aws.cloudwatch", alarms.CONTRIBUTOR_CHANGE): alarms.contributor_from_bus,
    ("aws.sagemaker", endpoints.STATE_CHANGE): endpoints.from_bus,
    ("aws.sagemaker", endpoints.DEPLOYMENT_CHANGE): endpoints.deployment_from_bus,
    ("aws.sagemaker", jobs.TRAINING): jobs.training,
    ("aws.sagemaker", jobs.CLUSTER_STATE): jobs.cluster,
    ("aws.sagemaker", jobs.NODE_HEALTH): jobs.node,
    ("aws.sagemaker", jobs.CLUSTER_EVENT): jobs.cluster_event,
    ("aws.ec2", capacity.INTERRUPTION): capacity.interruption,
    ("aws.ec2", capacity.REBALANCE): capacity.rebalance,
    ("aws.ec2", capacity.STATE_CHANGE): capacity.moved,
    ("aws.autoscaling", capacity.LAUNCH_FAILED): capacity.launch_failed,
    (schedule.SOURCE, schedule.SWEEP): schedule.sweep,
    (schedule.SOURCE, schedule.REPORT): schedule.report,
    (schedule.SOURCE, schedule.TICK): schedule.tick,
}

BY_KEY: Mapping[str, Parser] = {
    "alarmData": alarms.from_action,
    "AlarmName": alarms.from_sns,
    "endpoints": schedule.page,
    "subject": schedule.beyond,
}
"""Documents without an envelope, by the key that no other document has."""


def parse(event: object, *, replays: bool = False) -> Trigger:
    """See `rightsizer.intake.parse`."""
    document = _document(event)
    if document.get("Type") == "Notification":
        return _notification(document, replays=replays)
    return _parse(document, replays=replays)


def _parse(document: Mapping[str, Any], *, replays: bool) -> Trigger:
    if "detail-type" in document:
        return _from_bus(document, replays=replays)
    for key, parser in BY_KEY.items():
        if key in document:
            return parser(document)
    keys = ", ".join(sorted(repr(key)[:40] for key in list(document)[:5])) or "no key at all"
    return _unknown(f"a document with {keys} is none of the shapes that we know")


def _from_bus(event: Mapping[str, Any], *, replays: bool) -> Trigger:
    source, kind = event.get("source"), event["detail-type"]
    if not isinstance(source, str) or not isinstance(kind, str):
        raise InputError(f"reading an event: source and detail-type must be texts, not {source!r:.60} and {kind!r:.60}")
    parser = FROM_BUS.get((source, kind))
    if parser is None:
        return _unknown(f"events of the kind {kind!r:.100} from {source!r:.60} ask nothing of us")
    if event.get("replay-name") and not replays:
        return NoTrigger(
            Reason(
                Code.REPLAYED,
                f"the event {event.get('id')!r:.60} was replayed from an archive ({event['replay-name']!r:.60});"
                " what it says is no longer so",
            )
        )
    return parser(event)


def _notification(envelope: Mapping[str, Any], *, replays: bool) -> Trigger:
    """SNS wraps a message unless the subscription asks for raw delivery (SNS Developer Guide)."""
    message = envelope.get("Message")
    if not isinstance(message, str):
        raise InputError(f"reading an SNS notification: Message: a text is expected, not {type(message).__name__}")
    try:
        inner = json.loads(message)
    except (ValueError, RecursionError):
        return _unknown("the SNS message is no JSON, so it is no alarm")
    return _parse(inner, replays=replays) if isinstance(inner, dict) else _unknown("the SNS message is no alarm")


def _document(event: object) -> Mapping[str, Any]:
    if isinstance(event, str | bytes):
        try:
            event = json.loads(event)
        except (ValueError, RecursionError) as error:
            raise InputError(f"reading a message: it is not JSON: {error!s:.120}") from None
    return mapping(event, "an event")


def _unknown(sentence: str) -> NoTrigger:
    return NoTrigger(Reason(Code.UNKNOWN_EVENT, sentence))
