"""A policy that is borrowed for a time: it is watched, it goes back by itself, and it is not begun too late."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rightsizer.domain.capacity_change import CapacityChange, Ended, GroupPolicy, GroupSight, LookAgain, Send, TurnBack
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.scaling_group import AutoScalingGroup, Handler, PurchaseOptions
from rightsizer.spot.capacity_change import next_capacity_action
from rightsizer.spot.proposal import STAND_IN, stand_in_capacity_change

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
OLD: dict[str, Any] = {
    "LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1"}, "Overrides": []},
    "InstancesDistribution": {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 0},
}
NEW = {**OLD, "InstancesDistribution": {**OLD["InstancesDistribution"], "OnDemandBaseCapacity": 3}}


def group(**over: Any) -> AutoScalingGroup:
    known: dict[str, Any] = {
        "name": "gpu", "arn": "", "region": "eu-west-1", "mode": Mode.AUTO, "owner": "", "minimum": 0, "maximum": 8,
        "desired": 4, "zones": ("eu-west-1a",), "subnets": (), "purchase": PurchaseOptions(0, 0, mixed=OLD),
        "handler": Handler.NOBODY, "terminating_hook": False, "suspended": frozenset(), "read_at": NOW,
        "running": {"g5.xlarge|eu-west-1a": 1}, "fallback": True,
    }  # fmt: skip
    return AutoScalingGroup(**known | over)


def errand(**over: Any) -> CapacityChange:
    return stand_in_capacity_change(group(**over), NEW, 3.0, writes=True, now=NOW)


def move(one: CapacityChange, policy: dict[str, Any], after: timedelta) -> Any:
    return next_capacity_action(one, GroupSight(Mode.AUTO, "", policy), NOW + after, Switch())


@pytest.mark.parametrize(
    ("over", "state"),
    [
        ({}, ProposalState.APPROVED),
        ({"fallback": False}, ProposalState.PENDING),
        ({"mode": Mode.PROPOSE}, ProposalState.PENDING),
        ({"stack": "the CloudFormation stack ml"}, ProposalState.PENDING),
        ({"handler": Handler.KARPENTER}, ProposalState.PENDING),
    ],
)
def test_only_the_owner_s_own_word_lets_on_demand_stand_in_without_asking(
    over: dict[str, Any], state: ProposalState
) -> None:
    assert errand(**over).state is state


def test_it_is_set_kept_for_an_hour_and_taken_back_though_the_stack_is_frozen() -> None:
    asked = errand()
    assert isinstance(move(asked, OLD, timedelta(minutes=1)), Send)
    stands = replace(asked, state=ProposalState.APPLYING, sent_at=NOW, done_at=NOW)
    assert isinstance(move(stands, NEW, timedelta(minutes=59)), LookAgain)
    assert isinstance(move(stands, NEW, STAND_IN), TurnBack)
    frozen = next_capacity_action(stands, GroupSight(Mode.AUTO, "", NEW), NOW + STAND_IN, Switch(frozen=True))
    assert isinstance(frozen, TurnBack)


def test_an_answer_that_comes_after_the_hour_writes_nothing() -> None:
    found = move(errand(), OLD, STAND_IN)
    assert isinstance(found, Ended)
    assert found.state is ProposalState.WITHDRAWN


def test_a_policy_that_somebody_else_wrote_meanwhile_is_left_and_handed_over() -> None:
    stands = replace(errand(), state=ProposalState.APPLYING, sent_at=NOW, done_at=NOW)
    other = {**OLD, "InstancesDistribution": {"OnDemandBaseCapacity": 1}}
    found = move(stands, other, timedelta(minutes=10))
    assert isinstance(found, Ended)
    assert found.state is ProposalState.HANDED_OVER


def test_the_same_hour_asks_once_and_the_next_one_again() -> None:
    later = stand_in_capacity_change(group(), NEW, 3.0, writes=True, now=NOW + timedelta(hours=1))
    assert errand().id == errand().id != later.id


def test_the_request_carries_no_size_and_says_what_it_costs() -> None:
    asked = errand()
    assert isinstance(asked.work, GroupPolicy)
    assert set(asked.step(back=False).params) == {"AutoScalingGroupName", "MixedInstancesPolicy"}
    assert "3 of 4 instances" in asked.headline
    assert "3.00 USD an hour" in asked.reason.sentence
