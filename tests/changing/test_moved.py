"""Facts may change between the plan and the first write that the endpoint feels; nobody's counts are overwritten."""

from datetime import timedelta

from rightsizer.changes.reconcile import leftover_configs
from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import Target
from rightsizer.domain.policy import ChangeLimits
from sandbox.account import Sandbox
from tests.changing.world import NAME, NEW_TYPE, World, an_option, world


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
        fleet, kept = counts(w), leftover_configs(change)
    assert change.state is ChangeState.PROVEN
    assert fleet == [3]
    assert any(entry.step == "moved" for entry in change.journal)
    assert change.plan.new_config in kept
    assert len(kept) > 1, "the configuration of the first plan stays, and is listed"


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


def test_an_incident_that_begins_after_autoscaling_was_taken_away_gives_it_back() -> None:
    with world(limits=PAGED, seed=pager, count=1) as w:
        w.box.gate.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", "Rate exceeded", times=3)
        w.start()
        while registered(w):
            w.run(0.05)
        incident(w, "ALARM")
        change = w.run(6)
        bounds, config = registered(w), w.box.config_name(NAME)
    assert change.state is ChangeState.ROLLED_BACK
    assert (bounds, config) == ([(1, 6)], f"{NAME}-config")
