"""Bringing back what was good: no schedule in its place, and no alarm that would undo it for being slow."""

from dataclasses import replace

from rightsizer.domain.change import ChangeState
from tests.changing import scenarios
from tests.changing.world import world


def test_a_schedule_never_stands_in_for_a_change_of_type() -> None:
    option = scenarios.HOURS.option
    other = replace(option, target=replace(option.target, instance_type="ml.g5.xlarge"))
    with world(other, **scenarios.HOURS.endpoint) as w:
        w.start()
        change = w.run(3)
        assert change.state is ChangeState.REFUSED
        assert "a schedule changes no type" in change.outcome
        assert not w.box.calls.of("application-autoscaling", "RegisterScalableTarget")


def test_what_ends_a_suffering_is_deployed_without_an_alarm_on_latency() -> None:
    urgent = replace(scenarios.PLAIN.option, restores=True)
    with world(urgent, **scenarios.PLAIN.endpoint) as w:
        w.start()
        w.run(30)
        put = w.box.calls.of("cloudwatch", "PutMetricAlarm")
        assert put
        assert not any("p95" in call.params["AlarmName"] for call in put)
