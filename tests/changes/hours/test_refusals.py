"""In doubt an endpoint runs: each refusal of a stop has its code and a sentence that names what stands against it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.hours.refusals import stop_refusals
from rightsizer.domain.live_state import AlarmSight, ConfigSight, ImageSight, ReservationSight, VariantSight
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.domain.reason import Code
from tests.changes.hours.kit import (
    BODY,
    CONFIG,
    KIND,
    MADE,
    MODEL,
    MORNING,
    NIGHT,
    PAGER,
    ROW,
    SCALER,
    TAGS,
    TARGET,
    endpoint,
    stop_input,
)

REPO = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat"
RUNS = f"{REPO}@sha256:{'a' * 64}"


def config(row: dict[str, Any] | None = None, **body: Any) -> ConfigSight:
    return ConfigSight(CONFIG, {**BODY, "ProductionVariants": [{**ROW, **(row or {})}], **body}, MADE)


def image(name: str, resolved: str = RUNS) -> dict[str, Any]:
    return {"endpoint": endpoint(variants=(VariantSight("AllTraffic", 1, 1, 1.0, 1.0, ((name, resolved),)),))}


def model(**changes: Any) -> dict[str, Any]:
    return {"models": {MODEL.name: replace(MODEL, **changes)}}


def spare(row: dict[str, Any]) -> dict[str, Any]:
    return {"tags": {**TAGS, "rightsizer:fallback-config": "small"}, "fallback": config(row)}


def watching(*endpoints: str) -> dict[str, Any]:
    """An alarm on a sum over these endpoints."""
    dimensions = [[{"Name": "EndpointName", "Value": name}] for name in endpoints]
    stats = [{"Id": f"m{n}", "MetricStat": {"Metric": {"Dimensions": d}}} for n, d in enumerate(dimensions)]
    return {**PAGER, "AlarmName": "both", "Metrics": [{"Id": "sum", "Expression": "SUM(METRICS())"}, *stats]}


QUERY = "SELECT SUM(Invocations) FROM \"AWS/SageMaker\" WHERE EndpointName = 'chat' OR EndpointName = 'search'"
INSIGHTS = {**PAGER, "AlarmName": "query", "Metrics": [{"Id": "q", "Expression": QUERY}]}
ARN = "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:chat-errors"
INNER = {"AlarmName": "inner", "AlarmRule": 'ALARM("chat-errors")'}
COMPOSITE = {"AlarmName": "site", "AlarmRule": 'ALARM("chat-errors")', "AlarmActions": ["arn:pager"]}
P5 = "ml.p5.48xlarge"
PLAN = ReservationSight("Active", MORNING + timedelta(hours=1))
POOLS = [{"InstanceType": P5}, {"InstanceType": "ml.g5.xlarge"}]
CASES: list[tuple[dict[str, Any], Code, str]] = [
    ({"switch": Switch(frozen=True, by="U1")}, Code.FROZEN, "frozen by U1"),
    ({"limits": ChangeLimits(dry_run=True)}, Code.PERMISSION_MISSING, "MayChange=nothing or read-only"),
    ({"limits": ChangeLimits(misread=("Limits has x",))}, Code.BAD_SETTING, "Limits has x"),
    ({"incident_alarms": (AlarmSight("site", "ALARM", {}),)}, Code.INCIDENT, "site is firing"),
    ({"incident_alarms": (AlarmSight("site", "MISSING", {}),)}, Code.INCIDENT, "nobody knows of an incident"),
    ({"tags": {**TAGS, "rightsizer:mode": "off"}}, Code.MODE_OFF, "left alone"),
    ({"tags": {**TAGS, "managed-by": "terraform"}}, Code.OWNED_BY_STACK, "Terraform owns"),
    ({"tags": {**TAGS, "aws:cloudformation:stack-name": "s"}}, Code.OWNED_BY_STACK, "CloudFormation stack s"),
    ({"tags": {**TAGS, "aws:createdBy": "x"}}, Code.OWNED_BY_STACK, "aws:createdBy"),
    ({"endpoint": endpoint(status="Updating")}, Code.NOT_IN_SERVICE, "Updating"),
    ({"endpoint": endpoint(pending_config="new")}, Code.NOT_IN_SERVICE, "deploys new"),
    (
        {"endpoint": endpoint(variants=(VariantSight("AllTraffic", 1, 2, 1.0, 1.0),))},
        Code.NOT_IN_SERVICE,
        "being scaled",
    ),
    ({"holder": "c-1"}, Code.CHANGED_SINCE, "change c-1 holds"),
    ({"ordered_back": "p-1"}, Code.CHANGED_SINCE, "rollback of proposal p-1"),
    ({"endpoint": endpoint(asynchronous=True)}, Code.OTHER_KIND, "asynchronous"),
    ({"components": ("adapter",)}, Code.OTHER_KIND, "inference components"),
    ({"config": config({"ModelName": ""})}, Code.OTHER_KIND, "inference components"),
    ({"config": config(ShadowProductionVariants=[ROW])}, Code.OTHER_KIND, "shadow variant"),
    ({"config": config({"ServerlessConfig": {"MemorySizeInMB": 1024}})}, Code.OTHER_KIND, "serverless"),
    ({"monitors": ("drift",)}, Code.NOT_APPLICABLE, "drift"),
    ({"endpoint": endpoint(capture_stopped=True)}, Code.NOT_APPLICABLE, "data capture"),
    ({"config": None}, Code.CONFIGURATION_REPLACED, "does not exist"),
    (
        {"config": ConfigSight(CONFIG, BODY, MADE + timedelta(days=1))},
        Code.CONFIGURATION_REPLACED,
        "created anew",
    ),
    ({"models": {}}, Code.CONFIGURATION_REPLACED, "do not exist any more: chat-model"),
    (model(missing=("s3://models/chat",)), Code.CONFIGURATION_REPLACED, "no model data at s3://models/chat"),
    (model(written_at=MADE + timedelta(days=1)), Code.CONFIGURATION_REPLACED, "would bring another model"),
    (image(RUNS) | {"registry": {RUNS: ImageSight(RUNS, gone=True)}}, Code.MOVING_TAG, "not in its registry any more"),
    ({"alarms": (watching("chat", "search"),)}, Code.ALARM_NOT_OK, "also watches endpoint search"),
    ({"alarms": (INSIGHTS,)}, Code.ALARM_NOT_OK, "other endpoints by a query"),
    (
        {"limits": ChangeLimits(), "scaling": (TARGET,), "alarms": (SCALER,), "wired": (SCALER,)},
        Code.AUTOSCALED,
        "chat-busy",
    ),
    ({"denied": ("application-autoscaling:PutScalingPolicy",)}, Code.PERMISSION_MISSING, "PutScalingPolicy"),
    ({"alarms": (PAGER,), "composites": (COMPOSITE,)}, Code.ALARM_NOT_OK, "composite alarm site"),
    *[
        (
            {"alarms": (PAGER,), "composites": ({**COMPOSITE, "AlarmRule": rule},)},
            Code.ALARM_NOT_OK,
            "composite alarm site",
        )
        for rule in (f'ALARM("{ARN}")', f"ALARM({ARN}) OR ALARM(other)", "OK(other) AND ALARM( chat-errors )")
    ],
    (
        {"alarms": (PAGER,), "composites": (COMPOSITE | {"AlarmRule": 'ALARM("inner")'}, INNER)},
        Code.ALARM_NOT_OK,
        "composite alarm site would page through inner",
    ),
    (image(f"{REPO}:latest"), Code.MOVING_TAG, "may move"),
    (image(f"{REPO}:1.2.3", ""), Code.MOVING_TAG, "may move"),
    (
        image(f"{REPO}:1.2.3") | {"registry": {f"{REPO}:1.2.3": ImageSight(f"{REPO}:1.2.3", (f"sha256:{'b' * 64}",))}},
        Code.MOVING_TAG,
        "other code",
    ),
    ({"requests_known": False}, Code.NO_DATAPOINTS, "silence proves nothing"),
    ({"last_request": NIGHT - timedelta(minutes=20)}, Code.TOO_BUSY, "20 minutes ago"),
    ({"config": config({"InstanceType": P5}), "quotas": {P5: 4}}, Code.CAPACITY, "scarce"),
    ({"quotas": {"ml.g5.xlarge": 1}}, Code.NO_QUOTA, "is 1 and the morning needs 2"),
    (
        {"config": config({"InstanceType": None, "InstancePools": [{"InstanceType": P5}]}), "quotas": {P5: 4}},
        Code.CAPACITY,
        "ml.p5.48xlarge is scarce",
    ),
    (
        {"config": config({"InstanceType": None, "InstancePools": POOLS}), "quotas": {P5: 1, "ml.g5.xlarge": 1}},
        Code.NO_QUOTA,
        "of no instance pool",
    ),
    (
        {"config": config(KmsKeyId="arn:aws:kms:eu-west-1:999988887777:key/k")},
        Code.PERMISSION_MISSING,
        "account 999988887777",
    ),
    ({"quotas": {}}, Code.NO_QUOTA, "is not known"),
    ({"tags": {**TAGS, "rightsizer:fallback-config": "small"}}, Code.BAD_TAG, "does not exist"),
    (
        {"tags": {**TAGS, "rightsizer:fallback-config": "same"}, "fallback": config()},
        Code.BAD_TAG,
        "same instance type",
    ),
    ({**spare({"InstanceType": "ml.g4dn.xlarge", "ModelName": "other"})}, Code.BAD_TAG, "names other models"),
    ({**spare({"InstanceType": P5})}, Code.BAD_TAG, "which is scarce as well"),
    ({**spare({"InstanceType": "ml.g4dn.xlarge"})}, Code.NO_QUOTA, "needs 2 for the fallback configuration small"),
    (
        {
            "tags": {**TAGS, "rightsizer:fallback-config": "odd"},
            "fallback": config({"VariantName": "other", "InstanceType": "ml.g4dn.xlarge"}),
        },
        Code.BAD_TAG,
        "other variants",
    ),
]


def test_a_plain_endpoint_after_its_hours_is_stopped() -> None:
    assert stop_refusals(stop_input()) == ()
    assert stop_refusals(stop_input(last_request=None)) == ()


@pytest.mark.parametrize(("changes", "code", "said"), CASES, ids=[c[2] for c in CASES])
def test_what_stands_against_a_stop_is_a_code_and_a_sentence(changes: dict[str, Any], code: Code, said: str) -> None:
    found = stop_refusals(stop_input(**changes))
    assert any(reason.code is code and said in reason.sentence for reason in found), found


def test_a_scarce_type_may_be_stopped_with_a_fallback_that_its_owner_named_or_with_a_reservation() -> None:
    fallback = config({"InstanceType": "ml.g5.48xlarge"})
    tags = {**TAGS, "rightsizer:fallback-config": "plain"}
    scarce = config({"InstanceType": P5})
    quotas = {P5: 4, "ml.g5.48xlarge": 2}
    assert stop_refusals(stop_input(config=scarce, quotas=quotas, tags=tags, fallback=fallback)) == ()
    held = config({"InstanceType": "ml.p4d.24xlarge", "CapacityReservationConfig": {"MlReservationArn": "arn:r"}})
    quotas = {P5: 4, "ml.p4d.24xlarge": 2}
    plans = {"arn:r": PLAN}
    assert stop_refusals(stop_input(config=scarce, quotas=quotas, tags=tags, fallback=held, reservations=plans)) == ()
    reserved = config({"InstanceType": P5, "CapacityReservationConfig": {"MlReservationArn": "arn:r"}})
    assert stop_refusals(stop_input(config=reserved, quotas={P5: 4}, reservations=plans)) == ()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (None, "the reservation arn:r of its configuration cannot be read"),
        (replace(PLAN, status="Expired"), "the training plan arn:r is Expired and starts no instance"),
        (replace(PLAN, ends_at=MORNING), "the training plan arn:r ends on Tue 3 Nov 2026, 07:00 UTC, and the next"),
        (replace(PLAN, ends_at=None), "the training plan arn:r ends at no known time"),
    ],
)
def test_a_training_plan_that_does_not_last_until_the_morning_needs_a_fallback(
    plan: ReservationSight | None, said: str
) -> None:
    plans = {"arn:r": plan} if plan is not None else {}
    reserved = config({"InstanceType": P5, "CapacityReservationConfig": {"MlReservationArn": "arn:r"}})
    inputs = stop_input(config=reserved, quotas={P5: 4, "ml.g5.48xlarge": 2}, reservations=plans, opens_at=MORNING)
    (reason,) = stop_refusals(inputs)
    assert reason.code is Code.CAPACITY
    assert reason.sentence.startswith(said)
    fallback = config({"InstanceType": "ml.g5.48xlarge"})
    tags = {**TAGS, "rightsizer:fallback-config": "plain"}
    assert stop_refusals(replace(inputs, tags=tags, fallback=fallback)) == ()
    held = config({"InstanceType": "ml.p4d.24xlarge", "CapacityReservationConfig": {"MlReservationArn": "arn:r"}})
    reasons = stop_refusals(replace(inputs, tags=tags, fallback=held, quotas={P5: 4, "ml.p4d.24xlarge": 2}))
    assert [reason.sentence.startswith(f"of the fallback configuration plain: {said}") for reason in reasons] == [True]


def test_instance_pools_need_one_pool_that_is_not_scarce_and_one_with_its_quota() -> None:
    pools = config({"InstanceType": None, "InstancePools": POOLS})
    assert stop_refusals(stop_input(config=pools, quotas={"ml.g5.xlarge": 2})) == ()


def test_a_composite_alarm_that_cannot_page_through_silence_stands_against_nothing() -> None:
    quiet = {**PAGER, "TreatMissingData": "notBreaching"}
    assert stop_refusals(stop_input(alarms=(quiet,), composites=(COMPOSITE,))) == ()
    assert stop_refusals(stop_input(alarms=(PAGER,), composites=({**COMPOSITE, "AlarmRule": "ALARM(other)"},))) == ()
    silent = {**COMPOSITE, "ActionsEnabled": False}
    assert stop_refusals(stop_input(alarms=(PAGER,), composites=(silent,))) == ()


def test_an_alarm_of_several_endpoints_without_actions_stands_against_nothing() -> None:
    both = watching("chat", "search")
    assert stop_refusals(stop_input(alarms=({**both, "ActionsEnabled": False},))) == ()
    assert stop_refusals(stop_input(alarms=({**both, "AlarmActions": []},))) == ()
    assert stop_refusals(stop_input(alarms=(watching("chat"),))) == ()


def test_model_data_of_which_nothing_is_known_stands_against_nothing() -> None:
    assert stop_refusals(stop_input(**model(data="", written_at=None))) == ()


def test_an_image_by_its_version_is_compared_with_the_registry() -> None:
    name = f"{REPO}:1.2.3"
    same = {name: ImageSight(name, (f"sha256:{'a' * 64}",))}
    assert stop_refusals(stop_input(**image(name), registry=same)) == ()


def test_what_sleeps_beside_it_is_counted_against_the_quota_too() -> None:
    assert stop_refusals(stop_input(asleep={KIND: 2})) == ()
    (reason,) = stop_refusals(stop_input(asleep={KIND: 3}))
    assert reason.code is Code.NO_QUOTA
    assert "is 4 and the morning needs 2, beside 3 of endpoints that sleep now" in reason.sentence
    pools = config({"InstanceType": None, "InstancePools": POOLS})
    assert stop_refusals(stop_input(config=pools, quotas={KIND: 2}, asleep={KIND: 1})) != ()
