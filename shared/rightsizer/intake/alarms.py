"""CloudWatch alarms, by EventBridge, as a direct action and through SNS, to triggers.

Shapes: CloudWatch User Guide, "Alarm events and EventBridge", "Invoke a Lambda function from an alarm" and "Notify
users on alarm changes". Every payload means only "look at this endpoint now".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, StringConstraints, TypeAdapter, ValidationError

from rightsizer.domain.reason import Code, Reason, one_line
from rightsizer.domain.trigger import EvaluationReason, LookAt, LookAtAlarm, NoTrigger, Trigger
from rightsizer.errors import InputError
from rightsizer.intake.fields import (
    MOST_NAMES,
    Envelope,
    EventModel,
    Moment,
    Name,
    Parsers,
    SageMakerName,
    Text,
    read_model,
)

STATE_CHANGE = "CloudWatch Alarm State Change"
CONTRIBUTOR_CHANGE = "CloudWatch Alarm Contributor State Change"
DEEPEST = 12
"""Levels of a trigger: metrics, metricStat, metric, dimensions and room for more. Anything deeper is no alarm."""
NO_LABEL = "Other"
"""What Metrics Insights writes where a series has no such label (CloudWatch User Guide, query language)."""
AlarmName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
"""The name of an alarm (CloudWatch API reference, PutMetricAlarm)."""
_ENDPOINT = TypeAdapter[str](SageMakerName)


class State(EventModel):
    value: Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
    timestamp: Moment
    suppressed_by: Text = Field("", alias="actionsSuppressedBy")


class Metric(EventModel):
    name: Text = Field("", validation_alias=AliasChoices("name", "metricName"))
    dimensions: dict[str, str] = Field(default_factory=dict)


class MetricStat(EventModel):
    metric: Metric


class Query(EventModel):
    expression: Text = ""
    metric_stat: MetricStat | None = Field(None, alias="metricStat")


class AlarmConfiguration(EventModel):
    metrics: tuple[Query, ...] | None = None
    rule: Text = Field("", alias="alarmRule")


class Contributor(EventModel):
    id: Name
    attributes: dict[str, str]


class AlarmDetail(EventModel):
    name: AlarmName = Field(alias="alarmName")
    state: State
    configuration: AlarmConfiguration = Field(default_factory=lambda: AlarmConfiguration.model_validate({}))
    contributor: Contributor | None = Field(None, alias="alarmContributor")
    mute: dict[str, Any] | None = Field(None, alias="muteDetail")


class ContributorDetail(AlarmDetail):
    contributor: Contributor = Field(alias="alarmContributor")


class DirectAction(EventModel):
    arn: Name = Field(alias="alarmArn")
    data: AlarmDetail = Field(alias="alarmData")


class SnsAlarm(EventModel):
    """The document that CloudWatch publishes to a topic; its Region is a display name, so it is not read."""

    name: AlarmName = Field(alias="AlarmName")
    arn: Text = Field("", alias="AlarmArn")
    value: Literal["OK", "ALARM", "INSUFFICIENT_DATA"] = Field(alias="NewStateValue")
    at: Moment = Field(alias="StateChangeTime")
    trigger: dict[str, Any] | None = Field(None, alias="Trigger")
    rule: Text = Field("", alias="AlarmRule")
    contributor_id: Text = Field("", alias="AlarmContributorId")
    contributor_attributes: dict[str, str] | None = Field(None, alias="AlarmContributorAttributes")


@dataclass(frozen=True, slots=True)
class Alarm:
    """One transition, whichever way it came; the same transition has the same key on every way."""

    name: str
    key: str
    value: str
    at: datetime
    configuration: AlarmConfiguration
    contributor: Contributor | None
    silenced: str = ""


def from_bus(event: Mapping[str, Any]) -> Trigger:
    """An alarm state change from EventBridge: metric, metric math, query or composite."""
    envelope = read_model(Envelope[AlarmDetail], event, STATE_CHANGE)
    return _trigger(_alarm(envelope.resources[0] if envelope.resources else "", envelope.detail))


def contributor_from_bus(event: Mapping[str, Any]) -> Trigger:
    """A contributor of a grouped alarm changed state."""
    envelope = read_model(Envelope[ContributorDetail], event, CONTRIBUTOR_CHANGE)
    return _trigger(_alarm(envelope.resources[0] if envelope.resources else "", envelope.detail))


def from_action(event: Mapping[str, Any]) -> Trigger:
    """An alarm whose action is the function itself."""
    action = read_model(DirectAction, event, "direct alarm action")
    return _trigger(_alarm(action.arn, action.data))


def from_sns(document: Mapping[str, Any]) -> Trigger:
    """The document that CloudWatch publishes to an alarm topic."""
    alarm = read_model(SnsAlarm, document, "alarm message from SNS")
    trigger = _uncapitalise(alarm.trigger or {})
    queries = trigger.get("metrics") or ([{"metricStat": {"metric": trigger}}] if trigger else [])
    configuration = read_model(
        AlarmConfiguration, {"metrics": queries, "alarmRule": alarm.rule}, "alarm message from SNS"
    )
    named = {"id": alarm.contributor_id, "attributes": alarm.contributor_attributes or {}}
    contributor = read_model(Contributor, named, "contributor in an alarm message") if alarm.contributor_id else None
    key = _key(alarm.arn or alarm.name, contributor, alarm.at)
    return _trigger(Alarm(alarm.name, key, alarm.value, alarm.at, configuration, contributor))


def _alarm(arn: str, detail: AlarmDetail) -> Alarm:
    state = detail.state
    silenced = "a mute rule" if detail.mute else ""
    if state.suppressed_by:
        silenced = f"its actions suppressor ({one_line(state.suppressed_by, 255)})"
    key = _key(arn or detail.name, detail.contributor, state.timestamp)
    return Alarm(detail.name, key, state.value, state.timestamp, detail.configuration, detail.contributor, silenced)


def _key(arn: str, contributor: Contributor | None, at: datetime) -> str:
    return ":".join([arn, *([contributor.id] if contributor else []), at.isoformat()])


def _trigger(alarm: Alarm) -> Trigger:
    name = one_line(alarm.name)
    if alarm.value != "ALARM":
        return _no_trigger(Code.NOT_ALARMING, f"the alarm {name} went to {alarm.value}, which asks nothing of us")
    if alarm.silenced:
        return _no_trigger(Code.MUTED, f"the alarm {name} fired while silenced by {alarm.silenced}")
    if alarm.contributor is not None:
        return _contributor(alarm, alarm.contributor)
    watched = list(dict.fromkeys(_watched_endpoints(alarm.configuration)))
    endpoints = tuple(filter(is_endpoint, watched))
    if len(endpoints) > MOST_NAMES:
        raise InputError(
            f"reading the alarm {name}: it names {len(endpoints)} endpoints; at most {MOST_NAMES} are read"
        )
    if endpoints:
        return LookAt(endpoints, EvaluationReason.ALARM, alarm.name, alarm.at, alarm.key)
    if watched:
        return _no_trigger(Code.NOT_FOR_US, f"the alarm {name} watches {_no_endpoint_sentence(watched[0])}")
    if alarm.configuration.rule or any(_is_search(query) for query in alarm.configuration.metrics or ()):
        return LookAtAlarm(alarm.name, alarm.at, alarm.key)
    return _no_trigger(Code.NOT_FOR_US, f"the alarm {name} watches no SageMaker endpoint")


def _contributor(alarm: Alarm, contributor: Contributor) -> Trigger:
    endpoint, name = contributor.attributes.get("EndpointName", ""), one_line(alarm.name)
    if endpoint in ("", NO_LABEL):
        text = f"contributor {one_line(contributor.id, 100)} of the alarm {name} is not grouped by EndpointName"
        return _no_trigger(Code.NOT_FOR_US, text)
    if not is_endpoint(endpoint):
        return _no_trigger(Code.NOT_FOR_US, f"a contributor of the alarm {name} is {_no_endpoint_sentence(endpoint)}")
    return LookAt((endpoint,), EvaluationReason.CONTRIBUTOR, alarm.name, alarm.at, alarm.key)


def is_endpoint(name: str) -> bool:
    """Whether SageMaker lets an endpoint have this name. Anybody may publish a metric with any dimension."""
    try:
        _ENDPOINT.validate_python(name)
    except ValidationError:
        return False
    return True


def _no_endpoint_sentence(name: str) -> str:
    return f"{one_line(name, 63)!r}, which is no name of a SageMaker endpoint"


def _watched_endpoints(configuration: AlarmConfiguration) -> Iterator[str]:
    for query in configuration.metrics or ():
        if query.metric_stat and (endpoint := query.metric_stat.metric.dimensions.get("EndpointName")):
            yield endpoint


def _is_search(query: Query) -> bool:
    """Metrics Insights and SEARCH name no endpoint; CloudWatch knows which ones they found."""
    return query.expression.lstrip().upper().startswith("SELECT") or "SEARCH(" in query.expression.upper()


def _uncapitalise(value: Any, depth: int = 0) -> Any:
    """SNS spells the keys of the bus in Pascal case, and dimensions as a list of name and value."""
    if depth > DEEPEST:
        raise InputError(f"reading an alarm message from SNS: Trigger: nested more than {DEEPEST} levels deep")
    if isinstance(value, list):
        return [_uncapitalise(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    lowered = {str(key)[:1].lower() + str(key)[1:]: _uncapitalise(item, depth + 1) for key, item in value.items()}
    dimensions = lowered.get("dimensions")
    if isinstance(dimensions, list):
        pairs = [item for item in dimensions if isinstance(item, dict) and {"name", "value"} <= item.keys()]
        lowered["dimensions"] = {str(item["name"]): item["value"] for item in pairs}
    return lowered


def _no_trigger(code: Code, sentence: str) -> NoTrigger:
    return NoTrigger(Reason(code, sentence))


PARSERS: Parsers = {
    ("aws.cloudwatch", STATE_CHANGE): from_bus,
    ("aws.cloudwatch", CONTRIBUTOR_CHANGE): contributor_from_bus,
}
