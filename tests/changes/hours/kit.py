"""One endpoint with office hours, its stored record and what AWS shows, for tests of the decisions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rightsizer.changes.hours import HoursDemand, demand_at
from rightsizer.changes.hours.steps import LiveHours
from rightsizer.changes.hours.stop_input import StopInput
from rightsizer.domain.change import Entry
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, HoursState, ModelBefore, intent_of
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, Gone, LiveState, VariantSight
from rightsizer.domain.plan import Step, VariantCount
from rightsizer.domain.policy import ChangeLimits, Switch

NAME, CONFIG, KIND = "chat", "chat-config", "ml.g5.xlarge"
REF = EndpointRef("111122223333", "eu-west-1", NAME)
NIGHT = datetime(2026, 11, 2, 18, 5, tzinfo=UTC)
"""Monday, 19:05 in Berlin: five minutes after the hours."""
MORNING = datetime(2026, 11, 3, 7, 0, tzinfo=UTC)
MADE = NIGHT - timedelta(days=30)
HOURS = "mon-fri 08:00-19:00 Europe/Berlin"
IMAGE = ("111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat@sha256:" + "a" * 64,) * 2
TAGS = {"rightsizer:hours": HOURS, "team": "search"}
RESOURCE = f"endpoint/{NAME}/variant/AllTraffic"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
POLICY_ARN = (
    f"arn:aws:autoscaling:eu-west-1:111122223333:scalingPolicy:1:resource/sagemaker/{RESOURCE}:policyName/steps"
)
ROW = {"VariantName": "AllTraffic", "ModelName": "chat-model", "InstanceType": KIND, "InitialInstanceCount": 1}
BODY = {"EndpointConfigName": CONFIG, "ProductionVariants": [ROW]}
POLICY = {
    "PolicyName": "steps",
    "PolicyARN": POLICY_ARN,
    "PolicyType": "StepScaling",
    "ServiceNamespace": "sagemaker",
    "ResourceId": RESOURCE,
    "ScalableDimension": DIMENSION,
    "StepScalingPolicyConfiguration": {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": []},
}
MODEL = ModelBefore("chat-model", {"ModelName": "chat-model", "PrimaryContainer": {"Image": IMAGE[0]}}, "a1", MADE)
TARGET = ScalableTarget(RESOURCE, DIMENSION, 1, 4, policies=(POLICY,))
PAGER: dict[str, Any] = {
    "AlarmName": "chat-errors",
    "ActionsEnabled": True,
    "AlarmActions": ["arn:aws:sns:eu-west-1:111122223333:pager"],
    "TreatMissingData": "breaching",
}
SCALER: dict[str, Any] = {"AlarmName": "chat-busy", "ActionsEnabled": True, "AlarmActions": [POLICY_ARN]}


def endpoint(**changes: Any) -> EndpointSight:
    seen = EndpointSight(
        "InService", CONFIG, MADE, "", "", (VariantSight("AllTraffic", 2, 2, 1.0, 1.0, (IMAGE,)),), created_at=MADE
    )
    return replace(seen, **changes)


def before(**changes: Any) -> EndpointBefore:
    made = EndpointBefore(
        taken_at=NIGHT,
        config_name=CONFIG,
        config_body=BODY,
        config_tags={},
        modified_at=MADE,
        created_at=MADE,
        tags=TAGS,
        variants=(VariantCount("AllTraffic", KIND, 2, 1.0),),
        images=(IMAGE,),
        alarms=(PAGER,),
    )
    return replace(made, **changes)


def record(state: HoursState = HoursState.STOPPING, *lines: Entry, **changes: Any) -> HoursRecord:
    made = HoursRecord(REF, state, "search", HOURS, before(), (Entry(NIGHT, "begins", "noted", "stop"), *lines))
    return replace(made, **changes)


def done(step: Step, at: datetime = NIGHT) -> tuple[Entry, Entry]:
    return intent_of(step, at), Entry(at, step.key, "done")


def rejected(step: Step, at: datetime = NIGHT, detail: str = "refused:capacity:no") -> tuple[Entry, Entry]:
    return intent_of(step, at), Entry(at, step.key, "failed", detail)


def alarm(body: dict[str, Any] | None = None, **changes: Any) -> AlarmSight:
    body = {**(body or PAGER), **changes}
    return AlarmSight(body["AlarmName"], "OK", body)


def live(seen: EndpointSight | Gone | None = None, *alarms: AlarmSight, **changes: Any) -> LiveHours:
    shown = alarms or (alarm(),)
    state = LiveState(seen or endpoint(), scaling=(), alarms={a.name: a for a in shown})
    tags = {} if isinstance(seen, Gone) else dict(TAGS)
    return replace(LiveHours(state, tags=tags), **changes)


def gone(**changes: Any) -> LiveHours:
    return live(Gone(NAME), alarm(ActionsEnabled=False), **changes)


def demand(one: HoursRecord, now: datetime) -> HoursDemand:
    return demand_at(one, now, frozenset())


def stop_input(**changes: Any) -> StopInput:
    made = StopInput(
        ref=REF,
        now=NIGHT,
        endpoint=endpoint(),
        config=ConfigSight(CONFIG, BODY, MADE - timedelta(days=1)),
        tags=TAGS,
        limits=ChangeLimits(rewire_alarms=True),
        switch=Switch(),
        quotas={KIND: 4},
        models={MODEL.name: MODEL},
        last_request=NIGHT - timedelta(hours=1),
    )
    return replace(made, **changes)
