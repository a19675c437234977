"""What an owner is told to do: each reason that closes an approval, and each difference line by line."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, ScalableTarget
from rightsizer.domain.option import OptionKind, ScaleIn, Target
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.proposal import (
    ChangePermission,
    CurrentFleet,
    permission_for_endpoint,
    permission_for_option,
    permission_instructions,
    property_diff,
    proposal_for,
    proposal_id,
    tag_command,
    withhold_undone_count,
)
from tests.recommender.test_proposal import ENDPOINT, IN_REACH, NOW, OPTION, RECOMMENDATION, REF

TAG = ChangePermission(False, "its tag is absent", tag=True)


def reach(writes: bool = True, untagged: bool = False, **more: Any) -> ChangePermission:
    return permission_for_endpoint(replace(ENDPOINT, **more), writes=writes, untagged=untagged)


def test_each_reason_that_closes_an_approval() -> None:
    assert reach() == ChangePermission(True, "")
    unread = Reason(Code.THROTTLED, "AWS throttles")
    assert reach(tags_unread=unread) == ChangePermission(False, "its tags could not be read: AWS throttles")
    owned = "change it in Terraform; a change from outside would drift and be reverted"
    assert reach(owned_by="Terraform") == ChangePermission(False, owned)
    kind = "an endpoint of the kind serverless is changed by its owner"
    assert reach(kind=EndpointKind.SERVERLESS) == ChangePermission(False, kind)
    assert reach(writes=False) == ChangePermission(
        False, "deploy the stack with MayChange=tagged; this one changes nothing"
    )


@pytest.mark.parametrize(
    ("mode", "declared", "untagged", "said"),
    [
        (Mode.PROPOSE, True, False, None),
        (Mode.AUTO, False, True, None),
        (Mode.PROPOSE, False, False, "absent"),
        (Mode.REPORT, True, True, "report"),
        (Mode.OFF, True, False, "off"),
    ],
)
def test_the_owners_tag_opens_the_approval(mode: Mode, declared: bool, untagged: bool, said: str | None) -> None:
    found = reach(mode=mode, mode_declared=declared, untagged=untagged)
    text = f"its tag rightsizer:mode is {said}; its owner lets it be changed with"
    assert found == (ChangePermission(True, "") if said is None else ChangePermission(False, text, tag=True))


def test_what_its_owner_does_is_said_in_place_of_a_button() -> None:
    away = replace(OPTION, kind=OptionKind.SERVERLESS, in_place=False)
    assert permission_for_option(OPTION, IN_REACH) is IN_REACH
    text = "serverless is done by the owner: it is not done on the same endpoint"
    assert permission_for_option(away, IN_REACH) == ChangePermission(False, text)
    renamed = replace(away, client_change="call another endpoint")
    assert permission_for_option(renamed, TAG) == ChangePermission(
        False, "serverless is done by the owner: call another endpoint"
    )
    closed = ChangePermission(False, "read only")
    assert permission_for_option(away, closed) is closed
    assert permission_for_option(replace(away, kind=OptionKind.DELETE), IN_REACH) is IN_REACH


SCALED = ScalableTarget(
    "endpoint/bert/variant/AllTraffic", "sagemaker:variant:DesiredInstanceCount", 2, 8, policies=({},)
)


def undone(
    target: Target, own: ScalableTarget = SCALED, given: ChangePermission = IN_REACH, **more: Any
) -> ChangePermission:
    option = replace(OPTION, **{"kind": OptionKind.INSTANCE_COUNT, "target": target, **more})
    scaled = replace(ENDPOINT, scaling=(own,))
    return withhold_undone_count(scaled, replace(RECOMMENDATION, options=(option,)), given)


ONE = Target("ml.g5.2xlarge", 1)


def test_a_count_that_scaling_would_undo_is_the_owners() -> None:
    policies = "the policies of Application Auto Scaling set its count"
    changes = f"{policies}, from 2 to 8; its owner changes the target of its policy"
    assert undone(replace(ONE, instance_count=2)) == ChangePermission(False, changes)
    assert undone(replace(ONE, instance_count=3), given=TAG) == ChangePermission(False, changes)
    lower = (
        f"{policies} and would undo another one; its owner can lower the minimum of its scalable target to 1, from 2:\n"
        "aws application-autoscaling register-scalable-target --region eu-west-1 --service-namespace sagemaker"
        " --resource-id endpoint/bert/variant/AllTraffic --scalable-dimension sagemaker:variant:DesiredInstanceCount"
        " --min-capacity 1"
    )
    assert undone(ONE) == ChangePermission(False, lower)


@pytest.mark.parametrize(
    "told",
    [
        {"target": ONE, "kind": OptionKind.INSTANCE_TYPE},
        {"target": ONE, "own": replace(SCALED, policies=())},
        {"target": ONE, "own": replace(SCALED, resource_id="endpoint/bert/variant/Other")},
        {"target": replace(ONE, minimum=0)},
        {"target": replace(ONE, maximum=0)},
        {"target": replace(ONE, target_value=0.0)},
        {"target": ONE, "given": ChangePermission(False, "read only")},
    ],
    ids=["no count", "no policy", "another variant", "a minimum", "a maximum", "a target value", "out of reach anyhow"],
)
def test_scaling_undoes_nothing_where(told: dict[str, Any]) -> None:
    assert undone(**told) is told.get("given", IN_REACH)


def test_without_an_option_nothing_is_undone_or_proposed() -> None:
    silent = replace(RECOMMENDATION, options=())
    assert withhold_undone_count(replace(ENDPOINT, scaling=(SCALED,)), silent, IN_REACH) is IN_REACH
    assert proposal_for(silent, IN_REACH, 7, NOW) is None


def test_the_id_is_made_of_the_endpoint_its_configuration_and_the_target() -> None:
    known = proposal_id(RECOMMENDATION, OPTION)
    assert known.startswith("p-")
    assert len(known) == 22
    assert int(known[2:], 16) > 0
    others = {
        proposal_id(replace(RECOMMENDATION, fingerprint="f2"), OPTION),
        proposal_id(replace(RECOMMENDATION, ref=replace(REF, name="other")), OPTION),
        proposal_id(RECOMMENDATION, replace(OPTION, kind=OptionKind.ROUTING)),
        proposal_id(RECOMMENDATION, replace(OPTION, target=ONE)),
    }
    assert len({known, *others}) == 5


def test_a_proposal_carries_its_dates_and_who_decided() -> None:
    found = proposal_for(RECOMMENDATION, IN_REACH, 7, NOW)
    assert found is not None
    assert (found.created_at, found.expires_at) == (NOW, NOW + timedelta(days=7))
    assert (found.state, found.approvable, found.enable) == (ProposalState.APPROVED, True, "")
    assert found.decision is not None
    assert (found.decision.state, found.decision.by) == (ProposalState.APPROVED, "policy")
    assert (found.decision.at, found.decision.comment) == (NOW, "half of it is enough")
    asked = proposal_for(RECOMMENDATION, TAG, 7, NOW)
    assert asked is not None
    assert (asked.state, asked.approvable, asked.enable) == (ProposalState.PENDING, False, "its tag is absent")
    assert asked.decision is None
    assert asked.recommendation is RECOMMENDATION


def test_the_tag_command_in_full() -> None:
    line = "aws sagemaker add-tags --region eu-west-1 --resource-arn {} --tags Key=rightsizer:mode,Value={}"
    assert tag_command(REF) == line.format(REF.arn, "propose")
    assert tag_command(REF, "auto") == line.format(REF.arn, "auto")


PLAIN, BOUNDED = CurrentFleet("ml.g5.2xlarge", 3), CurrentFleet("ml.g5.2xlarge", 3, (2, 8))
HOURS = (1,) * 8 + (2,) * 12 + (1,) * 4


def lines(owner: str, target: Target, today: CurrentFleet = PLAIN) -> list[str]:
    return property_diff(owner, "AllTraffic", today, target).splitlines()


CLOUDFORMATION = {
    "a type": (Target("ml.g5.xlarge", 3), ["- InstanceType: ml.g5.2xlarge", "+ InstanceType: ml.g5.xlarge"]),
    "a count": (Target("ml.g5.2xlarge", 1), ["- InitialInstanceCount: 3", "+ InitialInstanceCount: 1"]),
    "a routing": (
        Target("ml.g5.2xlarge", 3, routing="RANDOM"),
        ["  InitialInstanceCount: 3", "+ RoutingConfig: {RoutingStrategy: RANDOM}"],
    ),
    "pools": (
        Target("ml.g5.xlarge", 3, pools=("ml.g5.xlarge", "ml.g6.xlarge")),
        [
            "- InstanceType: ml.g5.2xlarge",
            "  InitialInstanceCount: 3",
            "+ InstancePools:",
            "+   - {InstanceType: ml.g5.xlarge, Priority: 1}",
            "+   - {InstanceType: ml.g6.xlarge, Priority: 2}",
        ],
    ),
    "a scale-in policy": (
        Target("ml.g5.2xlarge", 3, scale_in=ScaleIn("AllTraffic", "CONSOLIDATION", 2, 30)),
        [
            "  ManagedInstanceScaling:",
            "+   ScaleInPolicy: {Strategy: CONSOLIDATION, MaximumStepSize: 2, CooldownInMinutes: 30}",
        ],
    ),
    "a target value": (
        Target("ml.g5.2xlarge", 3, target_value=70.5),
        ["  # the scalable target of the variant", "+ TargetValue: 70.5"],
    ),
    "hours": (
        Target("ml.g5.2xlarge", 3, hourly_counts=HOURS),
        [
            '+ - {Schedule: "cron(45 7 * * ? *)", ScalableTargetAction: {MinCapacity: 2, MaxCapacity: 2}}',
            '+ - {Schedule: "cron(0 20 * * ? *)", ScalableTargetAction: {MinCapacity: 1, MaxCapacity: 1}}',
        ],
    ),
}
TERRAFORM = {
    "a type": (Target("ml.g5.xlarge", 3), ['- instance_type = "ml.g5.2xlarge"', '+ instance_type = "ml.g5.xlarge"']),
    "a count": (Target("ml.g5.2xlarge", 1), ["- initial_instance_count = 3", "+ initial_instance_count = 1"]),
    "a routing": (Target("ml.g5.2xlarge", 3, routing="RANDOM"), ['+ routing_strategy = "RANDOM"']),
    "pools": (
        Target("ml.g5.xlarge", 3, pools=("ml.g5.xlarge", "ml.g6.xlarge")),
        [
            '+ instance_pools { instance_type = "ml.g5.xlarge", priority = 1 }',
            '+ instance_pools { instance_type = "ml.g6.xlarge", priority = 2 }',
        ],
    ),
    "a scale-in policy": (
        Target("ml.g5.2xlarge", 3, scale_in=ScaleIn("AllTraffic", "IDLE_RELEASE", None, 30)),
        ["  managed_instance_scaling", '+   scale_in_policy { strategy = "IDLE_RELEASE", cooldown_in_minutes = 30 }'],
    ),
    "another scale-in policy": (
        Target("ml.g5.2xlarge", 3, scale_in=ScaleIn("AllTraffic", "IDLE_RELEASE", 5)),
        ["  managed_instance_scaling", '+   scale_in_policy { strategy = "IDLE_RELEASE", maximum_step_size = 5 }'],
    ),
    "hours": (
        Target("ml.g5.2xlarge", 3, hourly_counts=HOURS),
        [
            '+ schedule = "cron(45 7 * * ? *)" scalable_target_action { min_capacity = 2, max_capacity = 2 }',
            '+ schedule = "cron(0 20 * * ? *)" scalable_target_action { min_capacity = 1, max_capacity = 1 }',
        ],
    ),
}


@pytest.mark.parametrize("name", CLOUDFORMATION)
def test_a_difference_in_cloudformation(name: str) -> None:
    target, wanted = CLOUDFORMATION[name]
    found = lines("CloudFormation stack web", target)
    assert found[0] == "  VariantName: AllTraffic"
    assert all(line in found for line in wanted)
    kept = [line for line in found if line.startswith(("+", "-"))]
    assert kept == [line for line in wanted if line.startswith(("+", "-"))]


@pytest.mark.parametrize("name", TERRAFORM)
@pytest.mark.parametrize("owner", ["Terraform", "OpenTofu"])
def test_a_difference_in_hcl(name: str, owner: str) -> None:
    target, wanted = TERRAFORM[name]
    found = lines(owner, target)
    assert found[0] == '  variant_name = "AllTraffic"'
    added = [line for line in found if line.startswith("+")]
    assert added == [line for line in wanted if line.startswith("+")]
    assert all(line in found for line in wanted)


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (Target("a", 1, minimum=1), ["- MinCapacity: 2", "+ MinCapacity: 1", "  MaxCapacity: 8"]),
        (Target("a", 1, maximum=4), ["  MinCapacity: 2", "- MaxCapacity: 8", "+ MaxCapacity: 4"]),
        (Target("a", 1, minimum=0, maximum=8), ["- MinCapacity: 2", "+ MinCapacity: 0", "  MaxCapacity: 8"]),
    ],
)
def test_bounds_stand_with_both_of_their_lines(target: Target, wanted: list[str]) -> None:
    found = lines("CloudFormation", target, BOUNDED)
    assert found[found.index("  # the scalable target of the variant") + 1 :] == wanted
    assert not any(
        "Capacity" in line for line in lines("CloudFormation", Target("a", 1, minimum=2, maximum=8), BOUNDED)
    )


def test_bounds_that_are_new_have_nothing_to_take_away() -> None:
    found = lines("CloudFormation", Target("ml.g5.2xlarge", 3, minimum=1, maximum=4))
    assert found[-3:] == ["  # the scalable target of the variant", "+ MinCapacity: 1", "+ MaxCapacity: 4"]


def test_a_placement_is_told_in_the_source_of_each_component() -> None:
    placed = Target("ml.g5.2xlarge", 3, placement=(("one", "SPREAD"), ("two", "BINPACK")))
    assert lines("CloudFormation", placed) == [
        "  # AWS::SageMaker::InferenceComponent wants an AvailabilityZoneBalance beside it",
        "  # inference component one, in its specification",
        "+ SchedulingConfig: {PlacementStrategy: SPREAD}",
        "  # inference component two, in its specification",
        "+ SchedulingConfig: {PlacementStrategy: BINPACK}",
    ]
    assert lines("Terraform", placed)[:2] == [
        "  # inference component one, in its specification",
        '+ scheduling_config { placement_strategy = "SPREAD" }',
    ]


def told(endpoint: Endpoint, recommendation: Recommendation = RECOMMENDATION) -> str:
    return permission_instructions(endpoint, recommendation, "why")


def test_an_owner_gets_the_reason_and_the_difference() -> None:
    owned = replace(ENDPOINT, owned_by="CloudFormation")
    assert told(ENDPOINT) == "why"
    assert told(owned, replace(RECOMMENDATION, options=())) == "why"
    gone = replace(RECOMMENDATION, options=(replace(OPTION, kind=OptionKind.DELETE),))
    assert told(owned, gone) == "why\n- the endpoint resource of bert (keep its configuration: it brings it back)"
    today = CurrentFleet("ml.g5.2xlarge", 1)
    assert told(owned) == f"why\n{property_diff('CloudFormation', 'AllTraffic', today, OPTION.target)}"
    bounds = replace(RECOMMENDATION, options=(replace(OPTION, target=Target("ml.g5.2xlarge", 1, minimum=1)),))
    scaled = replace(owned, scaling=(replace(SCALED, resource_id="endpoint/bert/variant/Other"), SCALED))
    assert told(scaled, bounds).endswith("- MinCapacity: 2\n+ MinCapacity: 1\n  MaxCapacity: 8")
    assert told(owned, bounds).endswith("+ MinCapacity: 1")
