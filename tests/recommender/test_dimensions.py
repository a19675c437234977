"""Dimensions that an operator adds: what is offered is what the journal carries out, one dimension at a time."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, Mode, Objective, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import TYPE_AND_COUNT, ChangeLimits, Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from tests.recommender import kit
from tests.recommender.kit import judge

TRACKING = {"PolicyName": "keep", "PolicyType": "TargetTrackingScaling", "TargetTrackingScalingPolicyConfiguration": {}}
SCALED = ScalableTarget("endpoint/e/variant/AllTraffic", "d", 4, 6, policies=(TRACKING,))


def allowing(*kinds: OptionKind) -> Policy:
    return Policy(by_itself=ChangeLimits(dimensions=frozenset(kinds)).by_itself)


def judged(endpoint: Endpoint, policy: Policy, **usage: Any) -> Recommendation:
    window = kit.window(kit.steady(**{"memory": 90.0} | usage))
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)


def by_day_only(endpoint: Endpoint, policy: Policy, per_slot: float = 60.0) -> Recommendation:
    """Twenty times busier from 8 to 18 h."""
    made = kit.steady(per_slot=per_slot, memory=90.0)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        value = made[key]
        assert isinstance(value, float)
        made[key] = lambda i, value=value: value if 96 <= i % 288 < 216 else value / 20  # type: ignore[misc]
    return judge(endpoint, [kit.window(made)], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)


def smaller(**changes: Any) -> Endpoint:
    made = kit.endpoint("ml.g5.xlarge", 4, p95_s=0.9)
    return replace(made, **changes)


def chosen(found: Recommendation) -> Option:
    assert found.chosen_option is not None, found.reason.sentence
    return found.chosen_option


def test_what_the_settings_open_by_default_is_what_the_engine_takes_by_itself() -> None:
    assert ChangeLimits().by_itself == Policy().by_itself


def test_where_the_settings_close_them_only_type_and_count_are_changed_by_themselves() -> None:
    assert ChangeLimits(dimensions=frozenset()).by_itself == TYPE_AND_COUNT
    found = by_day_only(smaller(), Policy(by_itself=TYPE_AND_COUNT))
    assert chosen(found).target.hourly_counts is None
    assert all(option.target.routing is None for option in found.options)
    behind = [option for option in found.options if option.target.hourly_counts is not None]
    assert all("only where Limits says" in option.notes[-1] and not option.by_itself for option in behind)


def test_hours_are_offered_on_the_type_that_runs_and_applied_by_themselves() -> None:
    runs = replace(kit.endpoint("ml.g6.xlarge", 8), objective=Objective(2.0, min_instances=1))
    found = by_day_only(runs, allowing(OptionKind.SCHEDULE), 1500.0)
    assert (found.gate, found.gate_reason.code) == (Gate.APPLY, Code.SAFE_TO_APPLY)
    assert chosen(found).target.instance_count == 4, "half of eight at first"
    assert "more than half in one step" in chosen(found).notes[-1]
    (best,) = (o for o in found.options if o.kind is OptionKind.SCHEDULE)
    assert best.target.instance_type == "ml.g6.xlarge"
    others = [o for o in found.options if o.target.instance_type != "ml.g6.xlarge"]
    assert all(o.target.hourly_counts is None for o in others), "the journal sets hours or a type, never both"


def test_hours_are_not_offered_where_autoscaling_would_fight_with_them() -> None:
    found = by_day_only(smaller(scaling=(SCALED,)), allowing(OptionKind.SCHEDULE))
    assert all(option.target.hourly_counts is None for option in found.options)


def test_routing_of_the_same_type_is_a_change_of_routing_and_not_of_a_count_alone() -> None:
    random = replace(kit.endpoint("ml.g5.xlarge", 4, p95_s=0.9, routing="RANDOM"))
    found = judged(random, allowing(OptionKind.ROUTING), per_slot=60.0, gpu=2.0)
    same = [o for o in found.options if o.target.instance_type == "ml.g5.xlarge"]
    routed = [o for o in same if o.target.routing]
    assert routed, [o.target for o in found.options]
    assert {o.kind for o in routed} == {OptionKind.ROUTING}, "a count alone would leave the routing as it is"


def test_hours_wait_until_the_routing_is_switched() -> None:
    random = smaller(variants=kit.endpoint("ml.g5.xlarge", 4, routing="RANDOM").variants)
    found = by_day_only(random, allowing(OptionKind.ROUTING, OptionKind.SCHEDULE))
    assert found.options
    assert not [o for o in found.options if o.target.routing and o.target.hourly_counts]


def test_bounds_of_the_owners_autoscaling_are_lowered_and_its_maximum_stays() -> None:
    found = judged(smaller(scaling=(SCALED,)), allowing(OptionKind.AUTOSCALING), per_slot=20.0)
    same = [o for o in found.options if o.target.instance_type == "ml.g5.xlarge"]
    assert {o.kind for o in same} == {OptionKind.AUTOSCALING}, [o.target for o in found.options]
    assert {o.target.maximum for o in same} == {6}
    assert [o.target.minimum for o in same] == [2, 1], "half of the minimum now, and what the load needs behind it"
    assert found.gate_reason.code is not Code.AUTOSCALED


def test_no_autoscaling_is_promised_where_there_is_none() -> None:
    found = judged(smaller(), allowing(OptionKind.AUTOSCALING), per_slot=20.0)
    assert found.options
    assert all((o.target.minimum, o.target.maximum) == (None, None) for o in found.options)


@pytest.mark.parametrize("bare", [replace(SCALED, policies=())])
def test_a_target_without_a_policy_does_not_scale_so_its_minimum_stays(bare: ScalableTarget) -> None:
    found = judged(smaller(scaling=(bare,)), allowing(OptionKind.AUTOSCALING), per_slot=20.0)
    assert all(o.kind is not OptionKind.AUTOSCALING for o in found.options)


def test_fewer_gpus_are_asked_about_also_where_a_test_went_well() -> None:
    endpoint = replace(kit.endpoint("ml.g5.12xlarge", 1, Mode.AUTO, 60.0))
    window = kit.window(kit.steady(gpu=8.0, memory=20.0, per_slot=48.0, cpu=100.0, host=4.0))
    first = judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert first.gate is Gate.TEST
    then, to = kit.NOW - timedelta(days=3), chosen(first).target.instance_type
    passed = PastChange(then, "ml.g5.12xlarge", to, 1, 1, PastEnd.TESTED, realised_slowdown=1.0, latency_ratio=1.0)
    history = History((passed,))
    found = judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, history, Policy(), kit.NOW)
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NEEDS_APPROVAL)
    assert "1 in place of 4 GPUs" in found.gate_reason.sentence
