"""Target tracking is added, follows the load by itself, and goes again; what others put beside it stays."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer.autoscaling.target_tracking import REQUESTS
from rightsizer.domain.change import ChangeState
from rightsizer.flows.orders import Orders
from sandbox.sagemaker.load import Served
from tests.changing.scenarios import TRACKED, VARIANT
from tests.changing.world import MONDAY, NAME, World, world

WHO: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": VARIANT,
}


def office(at: datetime, instance_type: str, count: int) -> Served:
    """Two and a half instances' worth of requests from 8 to 18 h, half of one's else."""
    return Served(210 if 8 <= at.hour < 18 else 40, latency_ms=100.0)


def tracked(load: Any = None) -> Any:
    return world(TRACKED.option, load=load, **TRACKED.endpoint)


def count(w: World) -> int:
    return int(w.live()["ProductionVariants"][0]["DesiredInstanceCount"])


def alarms(w: World) -> list[str]:
    found = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="TargetTracking-")["MetricAlarms"]
    return [alarm["AlarmName"] for alarm in found]


def targets(w: World) -> list[tuple[int, int, list[str]]]:
    live = w.apply.changer.scaling(NAME, ["AllTraffic"])
    return [(t.minimum, t.maximum, [str(p["PolicyName"]) for p in t.policies]) for t in live]


def applied(w: World) -> None:
    w.start()
    while w.change.state is not ChangeState.APPLIED:
        w.run(0.1)


def test_the_fleet_follows_the_load_through_the_night_and_the_change_is_proven() -> None:
    with tracked(office) as w:
        w.box.follow_targets()
        applied(w)
        assert (count(w), targets(w)) == (3, [(1, 3, ["rightsizer-tracking"])]), "registering moves nothing"
        by_hour = {}
        for hour in range(10, 34):
            w.run(1)
            w.box.clock.advance(max(MONDAY.replace(hour=0) + timedelta(hours=hour) - w.now, timedelta(0)))
            by_hour[hour] = count(w)
        change, kept = w.change, alarms(w)
    assert by_hour[12] == by_hour[17] == 3
    assert by_hour[20] == by_hour[30] == 1, "fifteen minutes of alarm, then one instance at a time"
    assert by_hour[33] == 3, "out again in the morning"
    assert change.state is ChangeState.PROVEN
    assert len(kept) == 2, "AWS's alarms of the policy stay"


def test_a_rollback_takes_target_policy_and_alarms_away_and_sets_the_count_of_before() -> None:
    with tracked(office) as w:
        w.box.follow_targets()
        applied(w)
        w.box.clock.advance(timedelta(hours=12))
        assert count(w) == 1
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        left = (count(w), targets(w), alarms(w))
        ours = w.box.calls.of("cloudwatch", "Put*") + w.box.calls.of("cloudwatch", "Delete*")
    assert change.state is ChangeState.ROLLED_BACK
    assert left == (3, [], [])
    assert ours == [], "the alarms of target tracking are made and removed by AWS"


def test_a_rollback_at_the_peak_keeps_what_runs_where_that_is_more_than_the_count_of_before() -> None:
    with tracked(office) as w:
        w.box.follow_targets()
        applied(w)
        scaling = w.box.client("application-autoscaling")
        w.box.gate.judge = lambda call: None  # its owner raises the maximum, and the load needs it
        scaling.register_scalable_target(**WHO, MinCapacity=5, MaxCapacity=6)
        w.box.clock.advance(timedelta(minutes=30))
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        left = (count(w), targets(w))
    assert change.state is ChangeState.ROLLED_BACK
    assert left == (5, [])
    assert "AllTraffic keeps 5 instances (3 before)" in change.outcome


def test_a_target_that_somebody_registers_before_the_first_write_is_left_alone() -> None:
    with tracked() as w:
        w.box.autoscale(NAME, 2, 5)
        w.start()
        change = w.run(2)
        left = targets(w)
    assert change.state is ChangeState.REFUSED
    assert "autoscaled" in change.outcome
    assert left == [(2, 5, [f"{NAME}-tracking"])]


@pytest.mark.parametrize("kind", ["policy", "action"])
def test_what_somebody_puts_on_it_is_not_deleted_by_a_rollback(kind: str) -> None:
    with tracked() as w:
        applied(w)
        scaling = w.box.client("application-autoscaling")
        w.box.gate.judge = lambda call: None
        if kind == "policy":
            steps = [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}]
            config = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": steps}
            scaling.put_scaling_policy(
                **WHO, PolicyName="mine", PolicyType="StepScaling", StepScalingPolicyConfiguration=config
            )
        else:
            bounds = {"MinCapacity": 2}
            scaling.put_scheduled_action(
                **WHO, ScheduledActionName="mine", Schedule="cron(0 6 * * ? *)", ScalableTargetAction=bounds
            )
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        live = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.HANDED_OVER
    assert "carries mine of somebody else" in change.outcome
    assert len(live) == 1
    assert [line.split()[2] for line in change.remaining] == [
        "deregister-scalable-target",
        "update-endpoint-weights-and-capacities",
    ]


def test_another_target_that_somebody_gives_the_policy_stays_and_is_named() -> None:
    with tracked() as w:
        applied(w)
        config = {"TargetValue": 40.0, "PredefinedMetricSpecification": {"PredefinedMetricType": REQUESTS}}
        w.box.gate.judge = lambda call: None
        w.box.client("application-autoscaling").put_scaling_policy(
            **WHO,
            PolicyName="rightsizer-tracking",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=config,
        )
        change = w.run(48)
        (live,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.PROVEN
    assert live.policies[0]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 40.0
    assert "rightsizer-tracking" in change.outcome
