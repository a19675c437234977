"""An asynchronous endpoint sleeps with no instance, and an alarm on its queue wakes it."""

import re
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.recommendation import Gate
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import MONDAY, NAME, World, steady, world

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


def judged_over(w: World, hours: float) -> Any:
    w.start()
    return w.run(hours)


def test_it_is_proven_by_a_request_that_woke_it_and_says_how_long_that_waited() -> None:
    scenario = scenarios.ZERO
    with world(scenario.option, kind=scenario.kind, **scenario.endpoint) as w:
        change = judged_over(w, 48)
    assert change.state is ChangeState.PROVEN
    assert re.search(r"; it woke (once|\d+ times) for a request, which waited \d+ minutes at most", change.outcome)


def test_what_never_slept_is_not_proven_by_the_requests_that_it_served() -> None:
    scenario = scenarios.ZERO
    with world(scenario.option, kind=scenario.kind, load=steady(), **scenario.endpoint) as w:
        change = judged_over(w, 48)
        assert not change.is_closed
        change = w.run(14 * 24)
    assert change.state is ChangeState.APPLIED
    assert "no request came while it had no instance" in change.outcome


def test_it_gets_its_instances_back_where_nothing_wakes_it() -> None:
    scenario = scenarios.ZERO
    with world(scenario.option, kind=scenario.kind, **scenario.endpoint) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        with w.box.gate.unrecorded():
            w.box.world.alarms.delete(f"rightsizer-wake-{NAME}")
        change = w.run(12)
        count = w.live()["ProductionVariants"][0]["DesiredInstanceCount"]
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.PERFORMANCE)
    assert "requests waited without an instance" in change.outcome
    assert count == 2


def test_it_stays_awake_where_a_request_expired_while_an_instance_started() -> None:
    scenario = scenarios.ZERO
    with world(scenario.option, kind=scenario.kind, **scenario.endpoint) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        w.box.put_series(NAME, "AllTraffic", "ExpiredRequests", MONDAY + timedelta(hours=2), 300, [0.0, 2.0, 0.0])
        change = w.run(12)
    assert change.state is ChangeState.ROLLED_BACK
    assert "expired in the queue while an instance started" in change.outcome


def test_automatic_mode_lets_a_queue_sleep_and_changes_nothing_else_of_it() -> None:
    automatic: dict[str, Any] = {
        "kind": EndpointKind.ASYNC,
        "by": "policy",
        "judged": {"gate": Gate.APPLY, "mode": Mode.AUTO},
        "tags": {"rightsizer:mode": "auto"},
    }
    with world(scenarios.ZERO.option, **automatic, **scenarios.ZERO.endpoint) as w:
        assert judged_over(w, 48).state is ChangeState.PROVEN
    with world(asynchronous=True, **automatic) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "is changed only after an approval" in change.outcome
