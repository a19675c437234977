"""Between the plan and the first write that the endpoint feels the ground may move; nobody's counts are overwritten."""

from datetime import time, timedelta

from rightsizer.changes.reconcile import leftovers
from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Target
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalState
from sandbox.account import Sandbox
from tests.changing.world import MONDAY, NAME, NEW_TYPE, World, an_option, world

WHO = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}


def autoscaled(box: Sandbox) -> None:
    box.autoscale(NAME, 1, 6)


def scale(w: World, count: int) -> None:
    """A person, or autoscaling, sets the count; the endpoint is in service again after it."""
    w.scale(count)
    w.box.clock.advance(timedelta(minutes=20))


def counts(w: World) -> list[int]:
    return [v["DesiredInstanceCount"] for v in w.live()["ProductionVariants"]]


def registered(w: World) -> list[tuple[int, int]]:
    return [(t.minimum, t.maximum) for t in w.apply.changer.scaling(NAME, ["AllTraffic"])]


def test_a_fleet_that_grew_while_the_alarms_warmed_up_is_planned_again_at_its_new_size() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        w.start()
        assert registered(w) == [(1, 6)], "the alarms are not OK yet"
        scale(w, 3)
        change = w.run(6)
        fleet, kept = counts(w), leftovers(change)
    assert change.state is ChangeState.PROVEN
    assert fleet == [3]
    assert any(entry.step == "moved" for entry in change.journal)
    assert change.plan.new_config in kept
    assert len(kept) > 1, "the configuration of the first plan stays, and is listed"


def test_a_person_who_scales_before_anything_was_touched_is_not_overwritten() -> None:
    with world() as w:
        w.start()
        scale(w, 3)
        change = w.run(6)
        fleet, shown, config = counts(w), w.shown().state, w.box.config_name(NAME)
        alarms = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
        past = list(w.store.history(NAME).endpoint)
    assert change.state is ChangeState.REFUSED
    assert "AllTraffic 1 x weight 1 and is AllTraffic 3 x weight 1" in change.outcome
    assert (fleet, config, shown) == ([3], f"{NAME}-config", ProposalState.WITHDRAWN)
    assert alarms == []
    assert past == [], "a refusal teaches nothing about the hardware"


def test_a_person_who_scales_after_autoscaling_was_taken_away_brings_the_change_back() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        w.box.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", "Rate exceeded", times=3)
        w.start()
        while registered(w):
            w.run(0.05)
        scale(w, 4)
        change = w.run(6)
        fleet, bounds, config = counts(w), registered(w), w.box.config_name(NAME)
    assert change.state is ChangeState.ROLLED_BACK
    assert change.outcome.startswith(f"{NAME} was never updated by this change: the fleet moved since the plan")
    assert "autoscaling goes back as it was" in change.outcome
    assert (fleet, bounds, config) == ([4], [(1, 6)], f"{NAME}-config")


def test_a_policy_that_was_edited_while_the_alarms_warmed_up_is_the_one_that_is_given_back() -> None:
    with world(an_option(target=Target(NEW_TYPE, 1)), seed=autoscaled, count=1) as w:
        w.start()
        scaling = w.box.client("application-autoscaling")
        with w.box.gate.unrecorded():
            dimension = "sagemaker:variant:DesiredInstanceCount"
            scaling.register_scalable_target(**WHO, ScalableDimension=dimension, MinCapacity=1, MaxCapacity=9)
        change = w.run(6)
        bounds = registered(w)
    assert change.state is ChangeState.PROVEN
    assert bounds == [(1, 9)]


def test_a_window_that_closes_while_the_alarms_warm_up_is_waited_for() -> None:
    window = ChangeWindow(start=time(8, 0), end=time(9, 1))
    limits = ChangeLimits(probation=timedelta(hours=2), window=window)
    with world(limits=limits, seed=autoscaled, count=1) as w:
        w.start()
        w.box.clock.advance(timedelta(minutes=2))
        w.run(6)
        assert w.box.config_name(NAME) == f"{NAME}-config"
        assert registered(w) == [(1, 6)]
        assert "the change window opens at 2026-11-03 08:00 UTC" in w.change.outcome
        change = w.run(48)
    assert change.state is ChangeState.PROVEN
    assert change.turned_at is not None
    assert change.turned_at.date() == (MONDAY + timedelta(days=1)).date()


def incident(w: World, state: str) -> None:
    with w.box.gate.unrecorded():
        w.box.client("cloudwatch").set_alarm_state(AlarmName="pager", StateValue=state, StateReason="test")


def pager(box: Sandbox) -> None:
    autoscaled(box)
    box.client("cloudwatch").put_metric_alarm(
        AlarmName="pager",
        Namespace="Shop",
        MetricName="Orders",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="LessThanThreshold",
        TreatMissingData="ignore",
    )
    box.client("cloudwatch").set_alarm_state(AlarmName="pager", StateValue="OK", StateReason="test")


PAGED = ChangeLimits(probation=timedelta(hours=2), incident_alarms=("pager",))


def test_an_incident_that_begins_while_the_alarms_warm_up_keeps_autoscaling_where_it_is() -> None:
    with world(limits=PAGED, seed=pager, count=1) as w:
        w.start()
        incident(w, "ALARM")
        w.run(2)
        assert registered(w) == [(1, 6)]
        assert "the incident alarm pager is firing" in w.change.outcome
        incident(w, "OK")
        change = w.run(6)
    assert change.state is ChangeState.PROVEN


def test_an_incident_that_begins_after_autoscaling_was_taken_away_gives_it_back() -> None:
    with world(limits=PAGED, seed=pager, count=1) as w:
        w.box.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", "Rate exceeded", times=3)
        w.start()
        while registered(w):
            w.run(0.05)
        incident(w, "ALARM")
        change = w.run(6)
        bounds, config = registered(w), w.box.config_name(NAME)
    assert change.state is ChangeState.ROLLED_BACK
    assert (bounds, config) == ([(1, 6)], f"{NAME}-config")
