"""Preflight: each check alone refuses with its code, what only takes time defers, and clean inputs pass."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rightsizer.changes import preflight
from rightsizer.changes.preflight import (
    alarm_visibility_problem,
    preflight_deferral,
    preflight_refusals,
    unchecked_sentences,
)
from rightsizer.domain.endpoint import EndpointKind, ScalableTarget
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, VariantSight
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.domain.preflight import Deferral, PreflightInput
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from tests import samples

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
VARIANT = VariantSight("AllTraffic", 1, 1, 1.0, 1.0, (("repo/image@sha256:aa", "repo/image@sha256:aa"),))
LIVE = EndpointSight("InService", "old", NOW - 9 * HOUR, "", "", (VARIANT,))
CONFIG = ConfigSight("old", {"ProductionVariants": []}, NOW - 10 * HOUR)
PERSON = Decision(ProposalState.APPROVED, "slack:U1", NOW)
POLICY = Decision(ProposalState.APPROVED, "policy", NOW)
TARGET = ScalableTarget("endpoint/chat/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", 1, 4)


def proposed(decision: Decision | None = PERSON, **judged: Any) -> Proposal:
    made = samples.recommendation(
        "chat", **{"fingerprint": f"old|{LIVE.modified_at.isoformat()}|AllTraffic=1", **judged}
    )
    return samples.proposal(recommendation=made, decision=decision)


def preflight_input(**changes: Any) -> PreflightInput:
    made = PreflightInput(
        proposal=proposed(),
        option=samples.option(target=Target("ml.g5.xlarge", 2)),
        endpoint=LIVE,
        config=CONFIG,
        tags={"rightsizer:mode": "propose"},
        limits=ChangeLimits(),
        scaling=(),
        quota=2,
        sold=True,
    )
    return replace(made, **changes)


def test_a_clean_ground_passes_and_starts_now() -> None:
    assert preflight_refusals(preflight_input()) == ()
    assert preflight_deferral(preflight_input(), NOW, NOW) is None


REFUSED: list[tuple[Code, dict[str, Any]]] = [
    (Code.PERMISSION_MISSING, {"limits": ChangeLimits(dry_run=True)}),
    (Code.NOT_IN_SERVICE, {"endpoint": replace(LIVE, status="Failed")}),
    (Code.NOT_IN_SERVICE, {"endpoint": replace(LIVE, status="UpdateRollbackFailed")}),
    (Code.NEEDS_APPROVAL, {"proposal": proposed(None)}),
    (Code.NOT_OPTED_IN, {"tags": {}}),
    (Code.NOT_OPTED_IN, {"tags": {"rightsizer:mode": "report"}}),
    (Code.MODE_OFF, {"tags": {"rightsizer:mode": "off"}}),
    (Code.NOT_OPTED_IN, {"proposal": proposed(POLICY, gate=Gate.APPLY)}),
    (Code.OWNED_BY_STACK, {"tags": {"rightsizer:mode": "propose", "aws:cloudformation:stack-name": "ml"}}),
    (Code.OWNED_BY_STACK, {"tags": {"rightsizer:mode": "propose", "managed-by": "Terraform"}}),
    (Code.OTHER_KIND, {"proposal": proposed(kind=EndpointKind.MULTI_MODEL)}),
    (Code.OTHER_KIND, {"proposal": proposed(kind=EndpointKind.SERVERLESS)}),
    (Code.OTHER_KIND, {"marketplace": True}),
    (Code.OTHER_KIND, {"proposal": proposed(kind=EndpointKind.INFERENCE_COMPONENTS)}),
    (Code.NOT_IN_PLACE, {"option": samples.option(in_place=False)}),
    (Code.CONFIGURATION_REPLACED, {"config": None}),
    (Code.CONFIGURATION_REPLACED, {"config": replace(CONFIG, created_at=NOW)}),
    (Code.CHANGED_SINCE, {"endpoint": replace(LIVE, config_name="theirs")}),
    (Code.CHANGED_SINCE, {"endpoint": replace(LIVE, variants=(replace(VARIANT, desired_count=3),))}),
    (Code.NO_QUOTA, {"quota": 1}),
    (Code.NO_QUOTA, {"option": samples.option(target=Target("ml.g5.xlarge", 1, maximum=3))}),
    (Code.NO_QUOTA, {"most": 3}),
    (Code.NOT_SOLD, {"sold": False}),
    (Code.ALARM_NOT_OK, {"blind": "SageMaker reads them with a role that may not"}),
    (
        Code.NEEDS_APPROVAL,
        {
            "proposal": proposed(POLICY, gate=Gate.APPLY),
            "tags": {"rightsizer:mode": "auto"},
            "option": samples.option(kind=OptionKind.DELETE, target=Target("ml.g5.xlarge", 0)),
        },
    ),
]


def test_a_dimension_is_changed_by_itself_only_while_the_settings_name_it() -> None:
    hours = samples.option(kind=OptionKind.SCHEDULE, target=Target("ml.g5.xlarge", 2))
    closed = ChangeLimits(dimensions=frozenset())
    auto: dict[str, Any] = {"tags": {"rightsizer:mode": "auto"}, "option": hours, "limits": closed}
    by_policy = preflight_input(proposal=proposed(POLICY, gate=Gate.APPLY, options=(hours,)), **auto)
    (reason,) = preflight_refusals(by_policy)
    assert reason.code is Code.NEEDS_APPROVAL
    assert "schedule is changed only after an approval" in reason.sentence
    assert (
        preflight_refusals(replace(by_policy, limits=ChangeLimits(dimensions=frozenset({OptionKind.SCHEDULE})))) == ()
    )
    assert preflight_refusals(preflight_input(proposal=proposed(PERSON), **auto)) == ()


@pytest.mark.parametrize(("code", "changes"), REFUSED, ids=[f"{c.value}-{i}" for i, (c, _) in enumerate(REFUSED)])
def test_each_check_alone_refuses_with_its_own_code(code: Code, changes: dict[str, Any]) -> None:
    assert [reason.code for reason in preflight_refusals(preflight_input(**changes))] == [code]


def test_every_reason_is_told_at_once() -> None:
    found = preflight_refusals(preflight_input(tags={}, quota=1, sold=False))
    assert [reason.code for reason in found] == [Code.NOT_OPTED_IN, Code.NO_QUOTA, Code.NOT_SOLD]
    assert "the new fleet needs 2 at once" in found[1].sentence


def pair(first: int, second: int, kind: str = "ml.g5.xlarge") -> dict[str, Any]:
    """The judged variant on ml.g5.4xlarge beside another one of `kind`, on an endpoint that is deployed anew."""
    rows = [("AllTraffic", "ml.g5.4xlarge", first), ("Second", kind, second)]
    body = {"ProductionVariants": [{"VariantName": name, "InstanceType": t} for name, t, _ in rows]}
    variants = tuple(replace(VARIANT, name=name, desired_count=n, current_count=n) for name, _, n in rows)
    counts = ",".join(f"{name}={n}" for name, _, n in rows)
    fingerprint = f"old|{LIVE.modified_at.isoformat()}|{counts}"
    return {
        "config": replace(CONFIG, body=body),
        "endpoint": replace(LIVE, variants=variants),
        "proposal": proposed(kind=EndpointKind.MULTI_VARIANT, fingerprint=fingerprint),
        "deploys": True,
    }


def quota_said(**changes: Any) -> list[str]:
    found = preflight_refusals(preflight_input(**changes))
    assert {reason.code for reason in found} <= {Code.NO_QUOTA}
    return [reason.sentence for reason in found]


def test_other_variants_of_the_same_type_count_towards_its_quota() -> None:
    (said,) = quota_said(**pair(1, 3), quota=4)
    assert "is 4" in said
    assert "needs 2 at once, and other variants of the endpoint run 3" in said
    assert quota_said(**pair(1, 3), quota=8) == []


def test_without_rolling_both_fleets_must_fit_the_quota_of_each_type() -> None:
    (said,) = quota_said(**pair(1, 3), quota=7)
    assert "3 and 5 run at once" in said
    (said,) = quota_said(**pair(1, 3, "ml.g6.xlarge"), quota=9, quotas={"ml.g6.xlarge": 5})
    assert "ml.g6.xlarge" in said
    assert "3 and 3 run at once" in said
    assert quota_said(**pair(1, 3, "ml.g6.xlarge"), quota=9, quotas={"ml.g6.xlarge": 6}) == []


def test_what_deploys_nothing_or_can_roll_needs_no_room_for_a_second_fleet() -> None:
    assert quota_said(**(pair(1, 3) | {"deploys": False}), quota=5) == []
    body = {"ProductionVariants": [{"VariantName": "AllTraffic", "InstanceType": "ml.g5.xlarge"}]}
    same: dict[str, Any] = {"config": replace(CONFIG, body=body), "deploys": True, "quota": 4}
    three = replace(LIVE, variants=(replace(VARIANT, desired_count=3, current_count=3),))
    judged = proposed(fingerprint=f"old|{LIVE.modified_at.isoformat()}|AllTraffic=3")
    assert quota_said(**same, endpoint=three, proposal=judged) == []
    (full,) = quota_said(**same | {"quota": 3}, endpoint=three, proposal=judged)
    assert "needs room for 1 more" in full
    (said,) = quota_said(**(same | {"quota": 2}))
    assert "1 and 2 run at once" in said, "one instance cannot be rolled"


def test_one_pool_that_holds_the_fleet_is_enough() -> None:
    option = samples.option(target=Target("ml.g5.xlarge", 2, pools=("ml.g5.xlarge", "ml.g5.4xlarge")))
    limits = {"ml.g5.xlarge": 1, "ml.g5.4xlarge": 2}
    assert quota_said(option=option, quota=1, quotas=limits) == []
    (said,) = quota_said(option=option, quota=1, quotas=limits | {"ml.g5.4xlarge": 1})
    assert "no pool could hold the fleet" in said


def test_that_other_endpoints_are_not_counted_is_said_where_a_fleet_is_started() -> None:
    (said,) = unchecked_sentences(preflight_input(deploys=True))
    assert "(2) was compared with this endpoint alone" in said
    assert unchecked_sentences(preflight_input()) == ()
    assert unchecked_sentences(preflight_input(deploys=True, quota=None)) == ()


def test_a_quota_below_the_maximum_of_autoscaling_is_said_to_be_about_autoscaling() -> None:
    (found,) = preflight_refusals(preflight_input(most=20))
    assert "endpoint usage' is 2; its autoscaling for the new type could ask for 20 instances" in found.sentence
    assert preflight_refusals(preflight_input(most=2)) == ()


def test_what_could_not_be_asked_is_not_refused() -> None:
    assert preflight_refusals(preflight_input(quota=None, sold=None)) == ()


def test_an_autoscaled_count_may_have_moved_since_the_decision() -> None:
    moved = replace(LIVE, variants=(replace(VARIANT, desired_count=3),))
    assert preflight_refusals(preflight_input(endpoint=moved, scaling=(TARGET,))) == ()


def test_patching_by_aws_that_moves_the_time_alone_is_no_other_state() -> None:
    assert preflight_refusals(preflight_input(endpoint=replace(LIVE, modified_at=NOW))) == ()


MOVING = ("latest", "prod", "latest-cu124", "gpu-py310-latest", "prod-eu1", "1.2-stable", "main-20261101", "cu124")


@pytest.mark.parametrize("image", ["repo/image", "host:5000/repo/image", *(f"repo/image:{tag}" for tag in MOVING)])
def test_an_image_that_may_move_stops_the_policy_and_not_a_person(image: str) -> None:
    latest = replace(VARIANT, resolved_images=((image, "repo/image@sha256:aa"),))
    auto = {"tags": {"rightsizer:mode": "auto"}, "endpoint": replace(LIVE, variants=(latest,))}
    assert preflight_refusals(preflight_input(**auto)) == ()
    (reason,) = preflight_refusals(preflight_input(**auto, proposal=proposed(POLICY, gate=Gate.APPLY)))
    assert (reason.code, image in reason.sentence) == (Code.MOVING_TAG, True)
    for tag in ("2.5.1-gpu", "v3", "0.33.0-lmi15.0.0-cu128", "20261101", "build-4711", "9f8e7d6c5b4a"):
        released = replace(VARIANT, resolved_images=((f"repo/image:{tag}", "repo/image@sha256:aa"),))
        auto["endpoint"] = replace(LIVE, variants=(released,))
        assert preflight_refusals(preflight_input(**auto, proposal=proposed(POLICY, gate=Gate.APPLY))) == (), (
            f"{tag} is a release"
        )
    assert preflight_refusals(preflight_input(tags=auto["tags"], proposal=proposed(POLICY, gate=Gate.APPLY))) == (), (
        "a digest is fixed"
    )


def test_untagged_endpoints_are_changed_only_where_the_stack_says_so() -> None:
    assert preflight_refusals(preflight_input(tags={}, limits=ChangeLimits(change_untagged=True))) == ()
    off = {"rightsizer:mode": "off"}
    assert [
        r.code for r in preflight_refusals(preflight_input(tags=off, limits=ChangeLimits(change_untagged=True)))
    ] == [Code.MODE_OFF]


ALARM = AlarmSight("checkout-down", "ALARM", {})
DEFERRED: list[tuple[str, dict[str, Any]]] = [
    ("frozen by U1", {"switch": Switch(True, False, "U1", NOW)}),
    ("checkout-down does not exist", {"incident_alarms": (replace(ALARM, state=preflight.MISSING),)}),
    ("checkout-down is firing", {"incident_alarms": (replace(ALARM, name="quiet", state="OK"), ALARM)}),
    ("the last change", {"last_change_at": NOW - HOUR}),
    ("is SystemUpdating", {"endpoint": replace(LIVE, status="SystemUpdating")}),
]


@pytest.mark.parametrize(("words", "changes"), DEFERRED, ids=[words for words, _ in DEFERRED])
def test_what_only_takes_time_waits_and_is_not_refused(words: str, changes: dict[str, Any]) -> None:
    found = preflight_deferral(preflight_input(**changes), NOW, NOW)
    assert isinstance(found, Deferral)
    assert words in found.sentence
    assert found.until > NOW
    assert preflight_refusals(preflight_input(**changes)) == ()


def test_a_closed_window_waits_until_it_opens() -> None:
    found = preflight_deferral(preflight_input(), NOW, NOW + 5 * HOUR)
    assert isinstance(found, Deferral)
    assert found.until == NOW + 5 * HOUR


def test_a_cooldown_ends_to_the_second() -> None:
    assert preflight_deferral(preflight_input(last_change_at=NOW - timedelta(hours=24)), NOW, NOW) is None
    almost = preflight_deferral(
        preflight_input(last_change_at=NOW - timedelta(hours=24) + timedelta(seconds=1)), NOW, NOW
    )
    assert isinstance(almost, Deferral)
    assert almost.until == NOW + timedelta(seconds=1)


ARN = "arn:aws:sagemaker:eu-west-1:1:endpoint/chat"


def test_a_role_that_may_not_see_alarms_blinds_them_whatever_the_owner_says() -> None:
    assert "allow it that" in alarm_visibility_problem({"r": False}, {"rightsizer:alarms": "visible"}, ARN)


def test_the_owner_confirms_where_iam_could_not_be_asked() -> None:
    assert f"aws sagemaker add-tags --region eu-west-1 --resource-arn {ARN}" in alarm_visibility_problem(
        {"r": None}, {}, ARN
    )
    assert alarm_visibility_problem({"r": None}, {"rightsizer:alarms": "visible"}, ARN) == ""
    assert alarm_visibility_problem({"r": True}, {}, ARN) == ""


def test_what_ends_a_suffering_waits_for_no_window_no_cooldown_and_no_alarm_that_the_suffering_rings() -> None:
    urgent = replace(preflight_input().option, restores=True)
    ringing = AlarmSight("pager", "ALARM", {})
    held = preflight_input(option=urgent, incident_alarms=(ringing,), last_change_at=NOW - HOUR)
    assert preflight_deferral(held, NOW, NOW + 5 * HOUR) is None
    frozen = preflight_deferral(replace(held, switch=Switch(True, False, "U1")), NOW, NOW)
    assert frozen is not None
    assert "frozen" in frozen.sentence


def test_a_minimum_that_comes_back_is_not_refused_for_a_maximum_above_the_quota() -> None:
    back = replace(
        preflight_input().option, kind=OptionKind.AUTOSCALING, target=Target("ml.g5.xlarge", 2, minimum=2, maximum=4)
    )
    judged = proposed(options=(back,))
    bounds = preflight_input(proposal=judged, option=replace(back, restores=True), scaling=(TARGET,))
    assert preflight_refusals(bounds) == ()
    assert [r.code for r in preflight_refusals(replace(bounds, option=back))] == [Code.NO_QUOTA]
    assert [r.code for r in preflight_refusals(replace(bounds, quota=1))] == [Code.NO_QUOTA]


def test_a_count_of_a_variant_that_is_not_autoscaled_holds_beside_one_that_is() -> None:
    two = (VARIANT, replace(VARIANT, name="Second", desired_count=4))
    second = replace(TARGET, resource_id="endpoint/chat/variant/Second")
    decided = proposed(fingerprint="old|1|AllTraffic=1,Second=2")
    seen = preflight_input(proposal=decided, endpoint=replace(LIVE, variants=two), scaling=(second,))
    assert Code.CHANGED_SINCE not in [r.code for r in preflight_refusals(seen)], "autoscaling moves Second alone"
    eight = (replace(VARIANT, desired_count=8), two[1])
    assert Code.CHANGED_SINCE in [
        r.code for r in preflight_refusals(replace(seen, endpoint=replace(LIVE, variants=eight)))
    ]
