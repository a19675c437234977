"""Answers of AWS that are a while old, and deletes that AWS does not finish: no morning and no past is lost to them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.live_state import EndpointSight, Gone
from tests.hours.world import CLOSES, KIND, NAME, OPENS, fallback, hours_world, stale, whole

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NIGHT = CLOSES + 2 * HOUR


@pytest.mark.parametrize("minutes", [1, 4, 6, 9])
def test_a_night_in_which_each_look_is_late_changes_nothing_but_the_bill(minutes: int) -> None:
    with hours_world() as w:
        before = whole(w.box)
        stale(w, minutes * MINUTE)
        w.until(NIGHT)
        assert (w.state, w.exists()) == (HoursState.STOPPED, False)
        w.until(OPENS + 15 * MINUTE)
        assert (whole(w.box), w.state, w.told) == (before, HoursState.RUNNING, [])
        creates = w.box.calls.of("sagemaker", "CreateEndpoint")
        assert len([c for c in creates if c.error is None]) == 1
        assert w.record.stopped_times[-1].modified_at is not None, "it is the endpoint of before, with its past"


@pytest.mark.parametrize("minutes", [1, 4, 6])
def test_alarms_and_autoscaling_that_are_shown_late_are_written_once_and_all_put_back(minutes: int) -> None:
    with hours_world() as w:
        before = whole(w.box)
        stale(w, minutes * MINUTE, "alarms", "scaling")
        w.until(NIGHT)
        assert (w.state, w.exists()) == (HoursState.STOPPED, False)
        w.until(OPENS + HOUR)
        assert (whole(w.box), w.state, w.told) == (before, HoursState.RUNNING, [])
        for service, operation in (
            ("application-autoscaling", "PutScalingPolicy"),
            ("cloudwatch", "DisableAlarmActions"),
            ("cloudwatch", "EnableAlarmActions"),
        ):
            assert len(w.box.calls.of(service, operation)) < 8, operation


def test_the_endpoint_of_yesterday_that_aws_shows_once_more_is_not_taken_for_a_new_one() -> None:
    with hours_world() as w:
        before = whole(w.box)
        seen = w.flow.ports.changer.endpoint(NAME)
        w.until(NIGHT)
        assert w.state is HoursState.STOPPED
        ports = w.flow.ports

        class Ghost:
            def __getattr__(self, name: str) -> Any:
                return getattr(ports.changer, name)

            def endpoint(self, name: str) -> EndpointSight | Gone:
                return seen

        ghost: Any = Ghost()
        w.flow = replace(w.flow, ports=replace(ports, changer=ghost))
        w.until(NIGHT + 5 * MINUTE)
        assert w.state is HoursState.STOPPED
        w.flow = replace(w.flow, ports=ports)
        w.until(OPENS)
        assert (whole(w.box), w.state) == (before, HoursState.RUNNING)


def test_a_failed_creation_that_is_shown_after_its_delete_counts_as_one_lost_try() -> None:
    with hours_world(scaled=False, more_tags={"rightsizer:fallback-config": "small"}) as w:
        fallback(w)
        w.until(NIGHT)
        stale(w, 4 * MINUTE)
        w.box.world.fleet.scarce.add(KIND)
        while not any(e.step.startswith("DeleteEndpoint") and e.status == "done" for e in w.record.present[1:]):
            w.until(w.now + 5 * MINUTE)
        w.box.world.fleet.scarce.clear()
        w.until(OPENS + HOUR)
        assert (w.state, w.box.config_name(NAME)) == (HoursState.RUNNING, f"{NAME}-config")
