"""Alarms are seen by name, whatever their type."""

from dataclasses import replace
from typing import Any

from rightsizer.aws.changes import AwsChanger
from tests.changing.world import world


class Watch:
    """CloudWatch as its API is described: without types it answers with metric alarms only."""

    def describe_alarms(self, AlarmTypes: Any = ("MetricAlarm",), **_: Any) -> Any:  # noqa: N803
        rows = {"MetricAlarm": ("MetricAlarms", "pager"), "CompositeAlarm": ("CompositeAlarms", "all-pagers")}
        return {rows[kind][0]: [{"AlarmName": rows[kind][1], "StateValue": "ALARM"}] for kind in AlarmTypes}


def test_a_composite_alarm_is_seen_like_a_metric_alarm() -> None:
    with world() as w:
        watched: Any = Watch()
        assert isinstance(w.apply.changer, AwsChanger)
        seen = replace(w.apply.changer, cloudwatch=watched).alarms(("pager", "all-pagers"))
    assert {name: alarm.state for name, alarm in seen.items()} == {"pager": "ALARM", "all-pagers": "ALARM"}
