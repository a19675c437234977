"""Nights of one endpoint on the simulated account: it goes home in the evening and is back, whole, in the morning."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import Change
from rightsizer.domain.hours_record import HoursRecord, HoursState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Reason
from rightsizer.errors import ConflictError, InputError
from rightsizer.flows.orders import Orders
from tests import samples
from tests.changing.world import steady
from tests.hours.world import CLOSES, KIND, MONDAY_EVENING, NAME, OPENS, TICK, HoursWorld, fallback, hours_world, whole

SMALL = "ml.g4dn.xlarge"

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
NIGHT = CLOSES + 2 * HOUR


def asleep(w: HoursWorld) -> None:
    w.until(NIGHT)
    assert (w.state, w.exists()) == (HoursState.STOPPED, False)


def test_a_night_changes_nothing_but_the_bill() -> None:
    with hours_world() as w:
        before = whole(w.box)
        asleep(w)
        w.until(OPENS)
        assert whole(w.box) == before
        assert (w.state, w.told) == (HoursState.RUNNING, [])
        (night,) = w.record.stopped_times
        assert night.end is not None
        assert night.end - night.start > 12 * HOUR
        assert [(call.action, call.error) for call in w.box.calls if call.error and "Denied" in call.error] == []


def test_the_guardrails_of_the_last_update_are_stored_and_no_start_waits_for_their_alarms() -> None:
    guarded = {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 60}},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "silent"}]},
    }
    with hours_world() as w:
        w.box.world.fleet.endpoints[NAME].last_deployment_config = guarded
        asleep(w)
        assert w.record.before is not None
        assert w.record.before.deployment == guarded
        w.until(OPENS)
        (created,) = w.box.calls.of("sagemaker", "CreateEndpoint")[-1:]
        assert (w.state, "DeploymentConfig" in created.params) == (HoursState.RUNNING, False)


def test_the_second_morning_begins_later_since_the_first_one_was_measured() -> None:
    with hours_world() as w:
        w.until(OPENS)
        assert w.record.starts == (300.0,)
        asked = len(w.box.calls.of("sagemaker", "CreateEndpoint"))
        w.until(OPENS + DAY - 30 * MINUTE)
        assert len(w.box.calls.of("sagemaker", "CreateEndpoint")) == asked, "it takes five minutes"
        w.until(OPENS + DAY)
        assert w.state is HoursState.RUNNING


def test_a_weekend_is_one_stop() -> None:
    with hours_world(scaled=False, evening=MONDAY_EVENING + 4 * DAY) as w:
        w.until(OPENS + 3 * DAY + 12 * HOUR)
        assert w.state is HoursState.STOPPED, "Friday evening"
        deletes = len(w.box.calls.of("sagemaker", "DeleteEndpoint"))
        w.until(OPENS + 5 * DAY + 12 * HOUR, every=HOUR)
        assert (w.exists(), len(w.box.calls.of("sagemaker", "DeleteEndpoint"))) == (False, deletes)
        w.until(OPENS + 6 * DAY - HOUR, every=HOUR)
        w.until(OPENS + 6 * DAY)
        assert (w.state, w.exists()) == (HoursState.RUNNING, True)


def test_no_change_begins_while_it_is_stopped_and_no_stop_while_a_change_is_open() -> None:
    with hours_world() as w:
        change = Change(
            id="c-1",
            proposal_id="p-1",
            ref=w.flow.ports.account.tagged_endpoints()[NAME][0],
            owner="",
            variant="AllTraffic",
            option=samples.option(),
            saving_usd_per_month=samples.option().saving_usd_per_month,
            created_at=w.now,
        )
        with w.box.gate.unrecorded():
            w.flow.ports.journal.create(change)
        w.until(NIGHT)
        assert (w.state, w.exists()) == (HoursState.RUNNING, True)
        assert w.record.reason is not None
        assert "change c-1 holds the endpoint" in w.record.reason.sentence
    with hours_world() as w:
        asleep(w)
        with pytest.raises(ConflictError, match="held by another change"):
            w.flow.ports.journal.create(change)


def test_requests_in_the_evening_keep_it_until_they_end() -> None:
    with hours_world() as w:
        w.box.load(NAME, steady())
        w.until(CLOSES + HOUR)
        assert w.exists()
        w.box.load(NAME, steady(requests=0))
        while w.now < NIGHT:
            w.until(w.now + TICK)
        assert not w.exists()
        assert w.told == []


def test_a_morning_without_capacity_is_told_within_fifteen_minutes_and_ends_whole() -> None:
    with hours_world() as w:
        before = whole(w.box)
        asleep(w)
        w.box.world.fleet.scarce.add(KIND)
        w.until(OPENS + 15 * MINUTE)
        ((subject, text),) = w.told
        assert subject == f"{NAME} does not serve yet, Tue 3 Nov 2026, 07:00 UTC"
        assert "aws sagemaker create-endpoint --region eu-west-1 --cli-input-json" in text
        w.box.world.fleet.scarce.clear()
        w.until(OPENS + 4 * HOUR)
        assert (whole(w.box), w.state) == (before, HoursState.RUNNING)
        assert len(w.told) == 1, "it is said once"


def test_the_fallback_that_its_owner_named_serves_and_the_next_morning_tries_its_own_type_again() -> None:
    with hours_world(more_tags={"rightsizer:fallback-config": "small"}) as w:
        fallback(w)
        asleep(w)
        w.box.world.fleet.scarce.add(KIND)
        w.until(OPENS + 2 * HOUR)
        assert (w.box.config_name(NAME), w.state) == ("small", HoursState.RUNNING)
        w.box.world.fleet.scarce.clear()
        w.until(NIGHT + DAY)
        assert not w.exists()
        w.until(OPENS + DAY)
        assert w.box.config_name(NAME) == f"{NAME}-config"


def test_a_quota_that_is_gone_in_the_morning_is_told_and_asked_again() -> None:
    with hours_world() as w:
        asleep(w)
        w.box.gate.fail("sagemaker", "CreateEndpoint", "ResourceLimitExceeded", "the service limit is 0", times=20)
        w.until(OPENS + 15 * MINUTE)
        assert "the service limit is 0" in w.told[0][1]
        w.until(OPENS + 3 * HOUR)
        assert w.state is HoursState.RUNNING


def test_a_wake_brings_it_back_at_night_and_its_end_stops_it_again() -> None:
    with hours_world() as w:
        before = whole(w.box)
        asleep(w)
        woken = w.wake(w.now + 4 * HOUR)
        assert isinstance(woken, HoursRecord)
        w.until(NIGHT + HOUR)
        assert (w.state, whole(w.box)) == (HoursState.RUNNING, before)
        w.until(NIGHT + 5 * HOUR)
        assert not w.exists()
        w.until(OPENS)
        assert whole(w.box) == before


def test_wakes_have_a_limit_and_a_name_that_sleeps() -> None:
    with hours_world(limits=ChangeLimits(rewire_alarms=True)) as w:
        with pytest.raises(InputError, match="no such endpoint was stopped"):
            w.wake(w.now + HOUR, "nobody")
        asleep(w)
        for _ in range(3):
            assert isinstance(w.wake(w.now + HOUR), HoursRecord)
        assert isinstance(w.wake(w.now + HOUR), Reason)


def test_a_freeze_stops_nothing_more_and_a_due_start_goes_on() -> None:
    with hours_world() as w:
        Orders(w.flow.ports.journal).freeze("U1", w.now)
        w.until(NIGHT)
        assert w.exists()
    with hours_world() as w:
        asleep(w)
        Orders(w.flow.ports.journal).freeze("U1", w.now)
        w.until(OPENS)
        assert w.state is HoursState.RUNNING


def test_a_stack_that_may_change_nothing_undoes_a_stop_that_has_begun() -> None:
    with hours_world() as w:
        w.box.gate.fail("sagemaker", "DeleteEndpoint", "ThrottlingException", "slow down", times=1)
        w.until(CLOSES)
        assert (w.state, w.exists()) == (HoursState.STOPPING, True)
        limits = ChangeLimits(rewire_alarms=True, dry_run=True)
        w.flow = replace(w.flow, ports=replace(w.flow.ports, limits=limits))
        w.until(NIGHT)
        assert (w.state, w.exists()) == (HoursState.RUNNING, True)


def test_a_hard_freeze_keeps_it_asleep_and_whoever_waits_is_told() -> None:
    with hours_world() as w:
        asleep(w)
        Orders(w.flow.ports.journal).freeze("U1", w.now, hard=True)
        w.until(OPENS + 15 * MINUTE)
        assert not w.exists()
        assert "frozen by U1" in w.told[0][1]


def test_a_malformed_tag_is_told_once_and_means_always_on() -> None:
    with hours_world(more_tags={"rightsizer:hours": "mo-fr 8-19 Berlin"}) as w:
        w.until(NIGHT)
        assert w.exists()
        ((subject, text),) = w.told
        assert subject == f"{NAME} is not stopped by its hours"
        assert "mo-fr 8-19 Berlin" in text


def test_what_its_row_has_no_room_for_is_not_stopped_for_a_full_row_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rightsizer.flows.hours.MOST_STORED", 3000)
    with hours_world() as w:
        w.until(NIGHT)
        assert (w.exists(), w.state) == (True, HoursState.RUNNING)
        ((_, text),) = w.told
        assert "kB had to be stored about it, and at most 3 kB leave room" in text


def test_a_lasting_refusal_is_told_once() -> None:
    with hours_world() as w:
        w.box.world.fleet.monitors["drift"] = NAME
        w.until(NIGHT)
        assert w.exists()
        ((_, text),) = w.told
        assert "Model Monitor schedules watch it (drift): they have to be deleted before it is" in text


def test_an_owner_who_creates_it_anew_gets_it_back_with_a_word() -> None:
    with hours_world() as w:
        fallback(w)
        asleep(w)
        with w.others() as sagemaker:
            sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName="small")
        w.until(NIGHT + HOUR)
        assert w.state is HoursState.HANDED_OVER
        assert w.told[0][0] == f"{NAME} is handed over"
        assert all(enabled for name, enabled, _ in whole(w.box)["alarms"] if name != "off")


def test_an_owner_who_deletes_it_while_its_autoscaling_is_put_back_does_not_get_it_again() -> None:
    with hours_world() as w:
        asleep(w)
        w.box.deny("application-autoscaling:PutScalingPolicy")
        w.until(OPENS)
        assert (w.state, w.record.serving_at is None) == (HoursState.STARTING, False)
        with w.others() as sagemaker:
            sagemaker.delete_endpoint(EndpointName=NAME)
        w.box.gate.allow("application-autoscaling:PutScalingPolicy")
        w.until(OPENS + HOUR)
        assert (w.state, w.exists()) == (HoursState.HANDED_OVER, False)
        assert "somebody deleted it after it was in service again" in w.told[-1][1]


def test_a_configuration_that_is_deleted_at_night_is_handed_over_with_its_content() -> None:
    with hours_world() as w:
        asleep(w)
        with w.others() as sagemaker:
            sagemaker.delete_endpoint_config(EndpointConfigName=f"{NAME}-config")
        w.until(OPENS)
        assert w.state is HoursState.HANDED_OVER
        assert "aws sagemaker create-endpoint-config" in w.told[0][1]


@pytest.mark.parametrize("other", [True, False])
def test_a_configuration_that_is_made_anew_at_night_is_deployed_only_where_it_is_the_same(other: bool) -> None:
    with hours_world(scaled=False) as w:
        asleep(w)
        with w.others() as sagemaker:
            name = f"{NAME}-config"
            body = sagemaker.describe_endpoint_config(EndpointConfigName=name)
            row, rest = body["ProductionVariants"][0], {k: body[k] for k in ("MetricsConfig",) if k in body}
            sagemaker.delete_endpoint_config(EndpointConfigName=name)
            changed = {**row, "InstanceType": SMALL} if other else row
            sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[changed], **rest)
        w.until(OPENS)
        assert (w.state, w.exists()) == (HoursState.HANDED_OVER if other else HoursState.RUNNING, not other)


@pytest.mark.parametrize("action", ["sagemaker:CreateEndpoint", "sagemaker:DescribeEndpoint"])
def test_a_role_that_is_lost_at_night_is_told_with_the_commands(action: str) -> None:
    with hours_world() as w:
        asleep(w)
        w.box.deny(action)
        w.until(OPENS + 15 * MINUTE)
        assert "aws sagemaker create-endpoint --region eu-west-1 --cli-input-json" in w.told[0][1]
        assert w.state in (HoursState.STARTING, HoursState.STOPPED)


def test_an_endpoint_of_a_terraform_stays_and_one_without_the_tag_is_not_looked_at() -> None:
    with hours_world(more_tags={"managed-by": "terraform"}) as w:
        w.until(NIGHT)
        assert w.exists()
        assert "Terraform owns" in w.told[0][1]
    with hours_world() as w:
        with w.others() as sagemaker:
            arn: Any = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointArn"]
            sagemaker.delete_tags(ResourceArn=arn, TagKeys=["rightsizer:hours"])
        w.until(NIGHT)
        assert w.exists()
        assert w.flow.ports.book.load(NAME) is None or w.state is HoursState.RUNNING


def test_a_tick_that_comes_late_or_twice_changes_nothing_at_the_end() -> None:
    with hours_world() as w:
        before = whole(w.box)
        for _ in range(4):
            w.box.clock.advance(TICK + 3 * MINUTE)
            w.flow.tick(w.now)
            w.flow.tick(w.now)
        assert not w.exists()
        w.box.clock.advance(OPENS - w.now - 10 * MINUTE)
        for _ in range(6):
            w.flow.tick(w.now)
            w.flow.advance_endpoint(NAME, w.now)
            w.box.clock.advance(TICK)
        assert (whole(w.box), w.state) == (before, HoursState.RUNNING)


def test_what_was_not_put_back_keeps_an_endpoint_that_was_handed_over_until_it_is() -> None:
    """Else the next stop would store it without its autoscaling, and that would be lost for good."""
    with hours_world() as w:
        asleep(w)
        error = ("AccessDeniedException", "no")
        w.box.gate.fail("application-autoscaling", "PutScalingPolicy", *error, times=12)
        w.until(OPENS + HOUR)
        assert w.state is HoursState.HANDED_OVER
        w.box.clock.advance(NIGHT + 2 * DAY - w.now)
        w.until(w.now + 3 * TICK)
        assert (w.state, w.exists()) == (HoursState.HANDED_OVER, True)
        assert w.record.before is not None
        assert w.record.before.scaling[0].policies
        assert "PutScalingPolicy" in w.told[-1][1]


@pytest.mark.parametrize(("lasts", "ends"), [(DAY, HoursState.STOPPED), (HOUR * 3, HoursState.RUNNING)])
def test_an_endpoint_in_a_training_plan_is_stopped_where_the_plan_lasts_until_the_morning(
    lasts: timedelta, ends: HoursState
) -> None:
    plan = "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/chat"
    reserved = {"CapacityReservationPreference": "capacity-reservations-only", "MlReservationArn": plan}
    with hours_world(scaled=False, variant_extra={"CapacityReservationConfig": reserved}) as w:
        w.box.world.fleet.plans["chat"] = (w.now - DAY, w.now + lasts)
        w.until(CLOSES + 2 * TICK)
        assert w.state is ends
        assert [text for _, text in w.told if "name a configuration of another type" in text] == (
            [] if ends is HoursState.STOPPED else [w.told[0][1]]
        )
