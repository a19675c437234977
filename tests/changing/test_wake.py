"""An asynchronous endpoint sleeps with no instance, and an alarm on its queue wakes it."""

from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, World, world

BOTH = (scenarios.ZERO, scenarios.ZERO_AUTOSCALED)


def asleep(w: World) -> tuple[Any, set[str], Any]:
    """The scalable target, its policies by name, and the alarm that wakes."""
    (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    alarm = w.apply.changer.alarms((f"rightsizer-wake-{NAME}",)).get(f"rightsizer-wake-{NAME}")
    return target, {p["PolicyName"] for p in target.policies}, alarm


@pytest.mark.parametrize("scenario", BOTH, ids=lambda s: s.name)
def test_the_minimum_becomes_zero_and_the_alarm_starts_the_first_instance(scenario: Scenario) -> None:
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        w.start()
        change = w.run(48)
        target, policies, alarm = asleep(w)
        wake = next(p["PolicyARN"] for p in target.policies if p["PolicyName"] == "rightsizer-wake")
    assert change.state is ChangeState.PROVEN
    assert target.minimum == 0
    assert policies >= {"rightsizer-wake", "rightsizer-backlog"}
    assert alarm.body["MetricName"] == "HasBacklogWithoutCapacity"
    assert alarm.body["AlarmActions"] == [wake]


@pytest.mark.parametrize("scenario", BOTH, ids=lambda s: s.name)
def test_the_way_back_leaves_no_policy_and_no_alarm_of_ours(scenario: Scenario) -> None:
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        before = w.apply.changer.scaling(NAME, ["AllTraffic"])
        w.start()
        w.run(48)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(48)
        after = w.apply.changer.scaling(NAME, ["AllTraffic"])
        alarms = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
        count = w.live()["ProductionVariants"][0]["DesiredInstanceCount"]
    assert change.state is ChangeState.ROLLED_BACK
    assert [(t.minimum, t.maximum, len(t.policies)) for t in after] == [
        (t.minimum, t.maximum, len(t.policies)) for t in before
    ]
    assert alarms == []
    assert count == 2 if scenario is scenarios.ZERO else count >= 1


def test_the_wake_up_is_there_before_the_minimum_becomes_zero() -> None:
    scenario = scenarios.ZERO_AUTOSCALED
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        w.start()
        w.run(1)
        writes = [c.operation for c in w.box.calls if c.writes and c.service != "dynamodb"]
    assert writes.index("PutMetricAlarm") < writes.index("RegisterScalableTarget")


def test_an_endpoint_without_a_queue_does_not_sleep() -> None:
    with world(scenarios.ZERO.option, kind=EndpointKind.REAL_TIME, count=2) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "has no queue" in change.outcome
