"""Each refusal of a stop, whole: what stands against it with its figures, and on which side of each bound."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.hours.refusals import stop_refusals
from rightsizer.domain.live_state import ConfigSight, ImageSight, VariantSight
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code
from tests.changes.hours.kit import (
    BODY,
    CONFIG,
    KIND,
    MADE,
    MODEL,
    NIGHT,
    PAGER,
    POLICY_ARN,
    ROW,
    SCALER,
    TAGS,
    TARGET,
    endpoint,
    stop_input,
)

G4, P5 = "ml.g4dn.xlarge", "ml.p5.48xlarge"
REPO = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat"
RUNS = f"{REPO}@sha256:{'a' * 64}"


def refusals(**changes: Any) -> list[tuple[Code, str]]:
    return [(reason.code, reason.sentence) for reason in stop_refusals(stop_input(**changes))]


def config(*rows: dict[str, Any], name: str = CONFIG, **body: Any) -> ConfigSight:
    return ConfigSight(name, {**BODY, "ProductionVariants": [{**ROW, **row} for row in rows or ({},)], **body}, MADE)


def variant(name: str, count: int, *images: tuple[str, str]) -> VariantSight:
    return VariantSight(name, count, count, 1.0, 1.0, images)


# capacity


def quota(kind: str, said: str, count: int, more: str = "") -> tuple[Code, str]:
    return Code.NO_QUOTA, f"the quota '{kind} for endpoint usage' {said} and the morning needs {count}{more}"


@pytest.mark.parametrize(
    ("named", "live", "limit", "needs"),
    [(1, 2, 2, None), (1, 2, 1, 2), (4, 2, 4, None), (4, 2, 3, 4), (None, 2, 1, 2), (1, None, 0, 1)],
)
def test_a_morning_needs_the_count_of_the_configuration_and_that_of_today(
    named: int | None, live: int | None, limit: int, needs: int | None
) -> None:
    """CreateEndpoint starts as many as the configuration names; only then the count of the evening is set."""
    seen = endpoint(variants=() if live is None else (variant("AllTraffic", live),))
    found = refusals(config=config({"InitialInstanceCount": named}), endpoint=seen, quotas={KIND: limit})
    assert found == ([] if needs is None else [quota(KIND, f"is {limit}", needs)])


def test_variants_of_one_type_need_its_quota_together_and_an_unknown_one_is_none() -> None:
    both = config({}, {"VariantName": "B"}, {"VariantName": "C", "InstanceType": G4})
    seen = endpoint(variants=(variant("AllTraffic", 2), variant("B", 1), variant("C", 1)))
    assert refusals(config=both, endpoint=seen, quotas={KIND: 2}) == [
        quota(KIND, "is 2", 3),
        quota(G4, "is not known", 1),
    ]
    assert refusals(config=both, endpoint=seen, quotas={KIND: 3, G4: 1}) == []


def test_instance_pools_need_one_of_their_types_with_room_for_all_of_today() -> None:
    pools = config({"InstanceType": None, "InstancePools": [{"InstanceType": G4}, {"InstanceType": KIND}]})
    said = f"the quota for endpoint usage of no instance pool ({G4}, {KIND}) is known to be at least 2"
    assert refusals(config=pools, quotas={KIND: 1}) == [(Code.NO_QUOTA, said)]
    assert refusals(config=pools, quotas={KIND: 2}) == refusals(config=pools, quotas={G4: 2}) == []


SCARCE = f"{P5} is scarce, and a morning may find none; name a configuration of another type by "


def test_a_scarce_type_needs_a_fallback_or_a_reservation() -> None:
    text = f"{SCARCE}the tag rightsizer:fallback-config, or reserve capacity"
    assert refusals(config=config({"InstanceType": P5}), quotas={P5: 2}) == [(Code.CAPACITY, text)]


SPARE = {"tags": {**TAGS, "rightsizer:fallback-config": "small"}, "quotas": {KIND: 4, G4: 2}}


@pytest.mark.parametrize(
    ("fallback", "said"),
    [
        (None, "the tag rightsizer:fallback-config names configuration small, which does not exist"),
        (config({}), "the fallback configuration small has the same instance type as the endpoint"),
        (
            config({"InstanceType": G4, "ModelName": "other"}),
            "the fallback configuration small names other models than the endpoint, so a morning would bring them",
        ),
    ],
)
def test_a_fallback_has_another_type_and_the_same_models(fallback: ConfigSight | None, said: str) -> None:
    assert refusals(fallback=fallback, **SPARE) == [(Code.BAD_TAG, said)]


def test_a_fallback_of_other_variants_says_so_and_that_its_models_are_others() -> None:
    found = refusals(fallback=config({"InstanceType": G4, "VariantName": "other"}), **SPARE)
    assert [sentence.split(" small ")[1] for _, sentence in found] == [
        "has other variants than the endpoint",
        "names other models than the endpoint, so a morning would bring them",
    ]


@pytest.mark.parametrize(("named", "limit", "needs"), [(1, 2, None), (1, 1, 2), (3, 2, 3), (None, 1, 2)])
def test_a_fallback_needs_its_quota_at_the_larger_of_its_count_and_that_of_today(
    named: int | None, limit: int, needs: int | None
) -> None:
    other = config({"InstanceType": G4, "InitialInstanceCount": named})
    found = refusals(fallback=other, **{**SPARE, "quotas": {KIND: 2, G4: limit}})
    said = quota(G4, f"is {limit}", needs or 0, " for the fallback configuration small")
    assert found == ([] if needs is None else [said])


# what it runs


def test_a_key_of_another_account_is_named_with_its_configuration() -> None:
    other = "arn:aws:kms:eu-west-1:999988887777:key/k"
    assert refusals(config=config(KmsKeyId=other))[0][1].startswith(
        f"configuration {CONFIG} encrypts with a KMS key of"
    )
    found = refusals(fallback=config({"InstanceType": G4}, name="small", KmsKeyId=other), **SPARE)
    assert [sentence.split(" encrypts")[0] for _, sentence in found] == ["configuration small"]


def test_a_configuration_that_was_made_anew_is_named() -> None:
    found = refusals(config=replace(config(), created_at=MADE + timedelta(days=1)))
    said = f"configuration {CONFIG} was created anew after it was deployed, so its content proves nothing"
    assert found == [(Code.CONFIGURATION_REPLACED, said)]


def test_an_asynchronous_configuration_is_told_by_itself() -> None:
    said = "an asynchronous endpoint may scale to zero while its queue is empty; a delete drops the queue"
    assert refusals(config=config(AsyncInferenceConfig={"OutputConfig": {}})) == [(Code.OTHER_KIND, said)]


def test_model_data_that_is_younger_than_the_deployment_says_when_it_was_written() -> None:
    def found(**changes: Any) -> list[tuple[Code, str]]:
        return refusals(models={MODEL.name: replace(MODEL, **changes)})

    said = (
        "the model data of chat-model was written on Sun 4 Oct 2026, 18:05 UTC, after the last deployment, "
        "so the morning would bring another model; deploy it, and it is stopped by its hours"
    )
    assert found(written_at=MADE + timedelta(days=1)) == [(Code.CONFIGURATION_REPLACED, said)]
    assert found(written_at=MADE) == []


def images(*pairs: tuple[str, str]) -> Any:
    return endpoint(variants=(variant("AllTraffic", 2, *pairs),))


def test_every_image_is_looked_at_by_its_digest() -> None:
    moved = f"{REPO}:latest"
    may_move = (
        f"the image {moved} is named by a tag that may move, so the morning could bring other code; "
        "name it by its digest or a version"
    )
    for pairs in (((RUNS, RUNS), (moved, RUNS)), ((f"{REPO}:1.2.3", RUNS), (moved, RUNS))):
        registry = {f"{REPO}:1.2.3": ImageSight(f"{REPO}:1.2.3", (f"sha256:{'a' * 64}",))}
        assert refusals(endpoint=images(*pairs), registry=registry) == [(Code.MOVING_TAG, may_move)]


def test_the_digest_of_a_resolved_image_stands_after_its_last_at_sign() -> None:
    name = f"{REPO}:1.2.3"
    registry = {name: ImageSight(name, (f"sha256:{'a' * 64}",))}
    assert refusals(endpoint=images((name, RUNS)), registry=registry) == []


# what is under way


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "Updating"}, "the endpoint is Updating;"),
        ({"pending_config": "new"}, "the endpoint is InService and deploys new;"),
    ],
)
def test_only_what_serves_with_nothing_under_way_is_stopped(changes: dict[str, str], said: str) -> None:
    text = f"{said} only one that serves, with nothing under way, is stopped"
    assert refusals(endpoint=endpoint(**changes)) == [(Code.NOT_IN_SERVICE, text)]


@pytest.mark.parametrize(("minutes", "is_told"), [(29.5, True), (30, False)])
def test_requests_within_the_grace_time_keep_it_running(minutes: float, is_told: bool) -> None:
    limits = ChangeLimits(rewire_alarms=True)
    limits = replace(limits, hours=replace(limits.hours, grace=timedelta(minutes=30)))
    said = (Code.TOO_BUSY, "requests came 29 minutes ago, and the grace time is 30 minutes")
    assert refusals(limits=limits, last_request=NIGHT - timedelta(minutes=minutes)) == ([said] if is_told else [])


# alarms


def test_alarms_that_start_policies_are_put_right_only_where_the_settings_say_so() -> None:
    seen = {"scaling": (TARGET,), "alarms": (SCALER,), "wired": (SCALER,)}
    assert refusals(**seen) == []
    assert refusals(**seen, limits=ChangeLimits()) != []
    assert SCALER["AlarmActions"] == [POLICY_ARN]


def test_alarms_with_fields_that_nobody_knows_are_listed_in_order() -> None:
    odd = [{**PAGER, "AlarmName": name, "UnknownFields": ["New"]} for name in ("b", "a")]
    said = "alarms with fields that this program does not know: a, b"
    assert refusals(alarms=(PAGER, *odd)) == [(Code.UNKNOWN_FIELD, said)]


QUIET = {**PAGER, "TreatMissingData": "notBreaching"}


@pytest.mark.parametrize(
    ("alarm", "rule", "pages"),
    [
        (PAGER, 'ALARM("chat-errors")', True),
        (PAGER, "ALARM(arn:aws:cloudwatch:eu-west-1:111122223333:alarm:chat-errors)", True),
        (PAGER, 'ALARM("other:alarm:chat-errors")', False),
        (QUIET, 'ALARM("chat-errors")', False),
        (QUIET, 'INSUFFICIENT_DATA("chat-errors")', True),
        (QUIET, 'NOT ALARM("chat-errors")', True),
        (QUIET, 'NOT ALARM("other")', False),
    ],
)
def test_a_composite_alarm_pages_at_night_by_what_breaches_or_turns_without_data(
    alarm: dict[str, Any], rule: str, pages: bool
) -> None:
    composite = {"AlarmName": "site", "AlarmRule": rule, "AlarmActions": ["arn:pager"]}
    said = (Code.ALARM_NOT_OK, "the composite alarm site would page through chat-errors while it is stopped")
    assert refusals(alarms=(alarm,), composites=(composite,)) == ([said] if pages else [])


def test_a_composite_alarm_without_a_rule_pages_through_nothing() -> None:
    assert refusals(alarms=(PAGER,), composites=({"AlarmName": "site", "AlarmActions": ["arn:pager"]},)) == []
