"""What preflight tells: each refusal in a whole sentence, each wait with its end, and what replaces the button."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.preflight import (
    MISSING,
    alarm_visibility_problem,
    cooldown_deferral,
    preflight_deferral,
    preflight_refusals,
    restore_refusal,
    role_pass_refusal,
    role_pass_sentences,
    start_hold,
    unchecked_sentences,
    withhold_refused,
)
from rightsizer.domain.endpoint import Endpoint, EndpointKind, ScalableTarget
from rightsizer.domain.live_state import AlarmSight, Hold, ImageSight
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.policy import ChangeLimits, Switch
from rightsizer.domain.preflight import Deferral, RolePass
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender.proposal import ChangePermission
from tests import samples
from tests.changes.test_preflight import ARN, CONFIG, HOUR, LIVE, NOW, POLICY, VARIANT, preflight_input, proposed
from tests.changes.test_rollback import CATALOGUE
from tests.recommender import kit

SOON = NOW + timedelta(minutes=15)
HALF_AN_HOUR = NOW + timedelta(minutes=30)
PAGER = AlarmSight("pager", "ALARM", {})
SUFFERING = replace(preflight_input().option, restores=True)
GROWING = samples.option(growth_usd=9)
ORDERED = samples.option(kind=OptionKind.SCALE_IN)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"limits": ChangeLimits(dry_run=True)},
            Reason(
                Code.PERMISSION_MISSING,
                "the stack was deployed with MayChange=nothing or read-only, so it changes no endpoint;"
                " MayChange=tagged allows it",
            ),
        ),
        (
            {"endpoint": replace(LIVE, status="Failed")},
            Reason(Code.NOT_IN_SERVICE, "the endpoint is Failed; only an endpoint in service is changed"),
        ),
        (
            {"tags": {"rightsizer:mode": "propose", "managed-by": "Terraform"}},
            Reason(Code.OWNED_BY_STACK, "Terraform owns the endpoint; its next deployment would undo the change"),
        ),
        (
            {"proposal": proposed(kind=EndpointKind.SERVERLESS)},
            Reason(Code.OTHER_KIND, "endpoints of kind serverless are proposed for, never changed by this program"),
        ),
        (
            {"proposal": proposed(kind=EndpointKind.INSTANCE_POOLS)},
            Reason(
                Code.OTHER_KIND,
                "endpoints of kind instance pools are proposed for, never changed by this program;"
                " deploy a configuration with one type first",
            ),
        ),
        (
            {"option": samples.option(in_place=False, target=Target("ml.g5.xlarge", 2))},
            Reason(Code.NOT_IN_PLACE, "instance-type cannot be carried out on the same endpoint"),
        ),
        (
            {"config": None},
            Reason(
                Code.CONFIGURATION_REPLACED,
                "configuration old does not exist any more, so there is nothing to roll back to",
            ),
        ),
        (
            {"config": replace(CONFIG, created_at=NOW)},
            Reason(
                Code.CONFIGURATION_REPLACED,
                "configuration old was created anew after it was deployed, so its content proves nothing",
            ),
        ),
        (
            {"endpoint": replace(LIVE, config_name="theirs")},
            Reason(Code.CHANGED_SINCE, "it ran configuration old when this was decided, and runs theirs now"),
        ),
        (
            {"endpoint": replace(LIVE, variants=(replace(VARIANT, desired_count=3),))},
            Reason(
                Code.CHANGED_SINCE,
                "its counts were AllTraffic=1 when this was decided, and are AllTraffic=3 now",
            ),
        ),
        ({"sold": False}, Reason(Code.NOT_SOLD, "ml.g5.xlarge is not offered in the zones of its subnets")),
        ({"blind": "nobody reads"}, Reason(Code.ALARM_NOT_OK, "the roll-back alarms would be blind: nobody reads")),
    ],
)
def test_each_refusal_names_the_thing_the_cause_and_the_remedy(changes: dict[str, Any], reason: Reason) -> None:
    assert preflight_refusals(preflight_input(**changes)) == (reason,)


def test_a_configuration_as_old_as_its_deployment_is_no_other_one() -> None:
    assert preflight_refusals(preflight_input(config=replace(CONFIG, created_at=LIVE.modified_at))) == ()


def test_a_deletion_needs_no_change_in_place_and_an_endpoint_that_is_updating_is_only_waited_for() -> None:
    found = preflight_refusals(preflight_input(option=samples.option(kind=OptionKind.DELETE, in_place=False)))
    assert Code.NOT_IN_PLACE not in [reason.code for reason in found]
    for status in ("Updating", "SystemUpdating"):
        busy = preflight_input(endpoint=replace(LIVE, status=status))
        assert preflight_refusals(busy) == ()
        assert preflight_deferral(busy, NOW, NOW) == Deferral(SOON, f"the endpoint is {status}")


def test_automatic_mode_changes_plain_endpoints_and_lets_only_queues_sleep() -> None:
    def codes(kind: EndpointKind, option: Option) -> list[Code]:
        said = proposed(POLICY, gate=Gate.APPLY, kind=kind, options=(option,))
        return [r.code for r in preflight_refusals(preflight_input(proposal=said, option=option))]

    plain, sleep = preflight_input().option, samples.option(kind=OptionKind.SCALE_TO_ZERO)
    assert Code.NEEDS_APPROVAL not in codes(EndpointKind.REAL_TIME, plain)
    assert Code.NEEDS_APPROVAL in codes(EndpointKind.ASYNC, plain)
    asked = preflight_refusals(
        preflight_input(proposal=proposed(POLICY, gate=Gate.APPLY, kind=EndpointKind.MULTI_VARIANT))
    )
    said = "an endpoint with several production variants is changed only after an approval"
    assert Reason(Code.NEEDS_APPROVAL, said) in asked
    assert Code.NEEDS_APPROVAL not in codes(EndpointKind.ASYNC, sleep)


def test_an_endpoint_of_components_is_changed_only_by_what_the_program_carries_out_there() -> None:
    components = proposed(kind=EndpointKind.INFERENCE_COMPONENTS)
    assert preflight_refusals(preflight_input(proposal=components, applies=True)) == ()
    assert [r.code for r in preflight_refusals(preflight_input(proposal=components))] == [Code.OTHER_KIND]


def test_a_person_orders_a_scale_in_whatever_the_counts_are_and_for_its_own_configuration_only() -> None:
    moved = replace(LIVE, variants=(replace(VARIANT, desired_count=3),))
    found = preflight_refusals(preflight_input(option=ORDERED, endpoint=moved))
    assert Code.CHANGED_SINCE not in [reason.code for reason in found]
    other = preflight_refusals(preflight_input(option=ORDERED, endpoint=replace(moved, config_name="theirs")))
    assert Code.CHANGED_SINCE in [reason.code for reason in other]


def test_who_may_not_pass_the_role_reads_the_command_that_allows_it() -> None:
    passes = RolePass("arn:aws:iam::1:role/model", "apply", False)
    found = role_pass_refusal(preflight_input(passes=passes))
    assert found == Reason(
        Code.PERMISSION_MISSING,
        "the configuration names the execution role arn:aws:iam::1:role/model; creating another one like it needs"
        f" iam:PassRole on that role, which apply does not hold. An operator allows it with: {passes.command}",
    )
    unnamed = role_pass_refusal(preflight_input(passes=replace(passes, by="")))
    assert unnamed is not None
    assert "which the role in use does not hold" in unnamed.sentence
    for answer in (None, replace(passes, allowed=True), replace(passes, allowed=None)):
        assert role_pass_refusal(preflight_input(passes=answer)) is None


def test_a_role_that_nobody_could_ask_about_is_named_in_the_plan() -> None:
    passes = RolePass("arn:aws:iam::1:role/model", "apply", None)
    said = ("nobody could ask whether iam:PassRole on arn:aws:iam::1:role/model is held",)
    assert role_pass_sentences(preflight_input(passes=passes)) == said
    assert said[0] in unchecked_sentences(preflight_input(passes=passes))
    for answer in (None, replace(passes, allowed=True), replace(passes, allowed=False)):
        assert role_pass_sentences(preflight_input(passes=answer)) == ()


def test_all_that_could_not_be_checked_is_told() -> None:
    passes = RolePass("arn:aws:iam::1:role/model", "apply", None)
    image = ImageSight("repo/image:v1", problem="nobody may read it")
    said = unchecked_sentences(preflight_input(passes=passes, registry={"repo/image:v1": image}, deploys=True))
    assert [sentence.split(" ")[:3] for sentence in said] == [
        ["the", "digest", "of"],
        ["the", "quota", "'ml.g5.xlarge"],
        ["nobody", "could", "ask"],
    ]


def test_autoscaling_that_could_not_be_given_back_is_not_taken_away() -> None:
    denied = ("application-autoscaling:PutScalingPolicy", "cloudwatch:PutMetricAlarm")
    assert restore_refusal(preflight_input(unrestorable=denied)) == Reason(
        Code.PERMISSION_MISSING,
        "the change takes the autoscaling of chat away for a while, and IAM denies our role"
        " application-autoscaling:PutScalingPolicy, cloudwatch:PutMetricAlarm, without which it could not be given"
        " back; the stack's own policy allows it, so a boundary or an organisation's policy may forbid it",
    )
    assert restore_refusal(preflight_input()) is None


def test_the_roles_that_read_the_alarms_are_named_with_the_permission_that_they_miss() -> None:
    denied = "SageMaker reads them with r, which may not call cloudwatch:DescribeAlarms; allow it that"
    assert alarm_visibility_problem({"q": True, "r": False}, {}, ARN) == denied
    unknown = (
        "nobody could ask whether r may call cloudwatch:DescribeAlarms (iam:SimulatePrincipalPolicy);"
        f" its owner confirms it once with: aws sagemaker add-tags --region eu-west-1 --resource-arn {ARN}"
        " --tags Key=rightsizer:alarms,Value=visible"
    )
    assert alarm_visibility_problem({"r": None}, {"rightsizer:alarms": "yes"}, ARN) == unknown
    assert alarm_visibility_problem({"q": None, "r": False}, {"rightsizer:alarms": "visible"}, ARN) == denied
    assert alarm_visibility_problem({}, {}, ARN) == ""


def test_a_setting_that_cannot_be_understood_holds_before_the_window_and_the_window_before_an_alarm() -> None:
    text = "a setting cannot be understood, and no change begins until it is put right: CAP is 'x'"
    misread = Hold(HALF_AN_HOUR, Reason(Code.BAD_SETTING, text))
    opens = NOW + 5 * HOUR
    assert start_hold((PAGER,), NOW, opens, ["CAP is 'x'", "y"]) == misread
    window = Hold(opens, Reason(Code.OUTSIDE_WINDOW, "the change window opens on Mon 2 Nov 2026, 14:00 UTC"))
    assert start_hold((PAGER,), NOW, opens) == window
    assert start_hold((), NOW, NOW) is None


def test_an_alarm_that_is_firing_or_missing_holds_for_half_an_hour_and_no_other_state_does() -> None:
    quiet = replace(PAGER, name="quiet", state="INSUFFICIENT_DATA")
    firing = Hold(HALF_AN_HOUR, Reason(Code.INCIDENT, "the incident alarm pager is firing"))
    assert start_hold((quiet, PAGER), NOW, NOW) == firing
    said = "the incident alarm pager does not exist, so nobody knows of an incident"
    missing = Hold(HALF_AN_HOUR, Reason(Code.INCIDENT, said))
    assert start_hold((replace(PAGER, state=MISSING),), NOW, NOW) == missing
    assert start_hold((quiet, replace(PAGER, state="OK")), NOW, NOW) is None


def test_a_wait_says_what_it_waits_for_and_until_when() -> None:
    frozen = preflight_input(switch=Switch(True, False, "slack:U1"), option=SUFFERING)
    assert preflight_deferral(frozen, NOW, NOW) == Deferral(SOON, "changes are frozen by U1")
    held = preflight_deferral(preflight_input(incident_alarms=(PAGER,)), NOW, NOW)
    assert held == Deferral(HALF_AN_HOUR, "the incident alarm pager is firing")
    window = preflight_deferral(preflight_input(), NOW, NOW + HOUR)
    assert window == Deferral(NOW + HOUR, "the change window opens on Mon 2 Nov 2026, 10:00 UTC")
    misread = preflight_deferral(preflight_input(limits=ChangeLimits(misread=("CAP is 'x'",))), NOW, NOW)
    assert misread is not None
    assert misread.sentence.endswith("CAP is 'x'")


def test_an_endpoint_rests_after_its_last_change_unless_users_suffer_meanwhile() -> None:
    option, day = preflight_input().option, timedelta(days=1)
    rests = Deferral(NOW - HOUR + day, "the last change of this endpoint was on Mon 2 Nov 2026, 08:00 UTC")
    assert cooldown_deferral(option, NOW - HOUR, day, NOW) == rests
    assert preflight_deferral(preflight_input(last_change_at=NOW - HOUR), NOW, NOW) == rests
    assert cooldown_deferral(option, NOW - day, day, NOW) is None
    assert cooldown_deferral(option, None, day, NOW) is None
    for urgent in (SUFFERING, GROWING):
        assert cooldown_deferral(urgent, NOW - HOUR, day, NOW) is None


MAY = ChangePermission(True, "")
KEY = "arn:aws:kms:us-east-1:999988887777:key/k"
ODD = ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4, {}, ({"PolicyName": "p", "PolicyType": "Odd"},))
UNREAD = ScalableTarget(
    "endpoint/chat/variant/AllTraffic", "d", 1, 4, scheduled=({"ScheduledActionName": "n", "Schedule": "odd"},)
)


def button(option: Option | None = None, deploys: bool = True, permission: ChangePermission = MAY, **known: Any) -> str:
    endpoint: Endpoint = replace(kit.endpoint(), **known)
    made = withhold_refused(endpoint, option or preflight_input().option, deploys, CATALOGUE, permission)
    assert made is permission or (made.approvable, made.tag) == (False, False)
    return made.enable


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {"configuration_replaced": True},
            "configuration chat-1 was created anew after it was deployed, so its content proves nothing",
        ),
        (
            {"scaling": (ODD,)},
            "policy p of endpoint/chat/variant/AllTraffic is of type Odd,"
            " which this program does not know how to put back",
        ),
        (
            {"unknown_fields": ("New",)},
            "configuration chat-1 has fields that this program does not know: New",
        ),
        (
            {"kms_key": KEY},
            "configuration chat-1 encrypts with a KMS key of account 999988887777; creating another one like it needs"
            " kms:CreateGrant there, and rightsizer holds it for keys of account 111122223333 only",
        ),
    ],
)
def test_what_preflight_would_refuse_replaces_the_button(known: dict[str, Any], said: str) -> None:
    plain = samples.option(target=Target("ml.g6e.xlarge", 1))
    assert button(plain, **known) == f"preflight would refuse it: {said}"


def test_a_clean_endpoint_and_one_that_may_not_be_changed_anyway_keep_their_permission() -> None:
    assert button() == ""
    never = ChangePermission(False, "the stack is read-only")
    assert button(permission=never, configuration_replaced=True) == never.enable
    tag = ChangePermission(False, "tag it", tag=True)
    assert button(permission=tag, configuration_replaced=True).startswith("preflight would refuse it: ")
    assert withhold_refused(replace(kit.endpoint(), configuration_replaced=True), None, True, CATALOGUE, MAY) is MAY


def test_what_deploys_nothing_asks_for_nothing_that_a_clone_would_need() -> None:
    for known in ({"unknown_fields": ("New",)}, {"kms_key": KEY}, {"scaling": (UNREAD,)}):
        assert button(**known) != ""
        assert button(deploys=False, **known) == ""
    assert button(deploys=False, scaling=(ODD,)) != ""
    assert button(ORDERED, deploys=False, scaling=(ODD,)) == "", "a person's order leaves autoscaling alone"


def test_a_type_with_local_storage_that_the_key_does_not_encrypt_is_refused_where_it_is_new() -> None:
    own = KEY.replace("999988887777", "111122223333")
    new = button(kms_key=own)
    assert new == (
        "preflight would refuse it: the configuration encrypts its volume with a KMS key, and ml.g5.xlarge has local"
        " NVMe storage that the key does not encrypt"
    )
    runs = replace(kit.endpoint("ml.g5.xlarge"), kms_key=own)
    assert withhold_refused(runs, preflight_input().option, True, CATALOGUE, MAY) is MAY


def test_several_refusals_are_told_together() -> None:
    both = button(unknown_fields=("New",), configuration_replaced=True)
    assert both.count("; ") == 1
    assert "created anew" in both
    assert both.endswith("New")
