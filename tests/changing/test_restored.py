"""Back from a change of bounds or of hours: what is asked for, and that it really comes."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from tests.changing.scenarios import VARIANT
from tests.changing.world import NAME, OLD_TYPE, World, an_option, world


def by_our_hours(box: Sandbox, names: str = "rightsizer-c-1-{:02d}") -> None:
    """What a change of ours registered: one instance, two by day, and no policy."""
    who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
    scaling = box.client("application-autoscaling")
    scaling.register_scalable_target(**who, ScalableDimension=VARIANT, MinCapacity=1, MaxCapacity=1)
    for hour, count in ((8, 2), (20, 1)):
        scaling.put_scheduled_action(
            **who,
            ScalableDimension=VARIANT,
            ScheduledActionName=names.format(hour),
            Schedule=f"cron(0 {hour} * * ? *)",
            ScalableTargetAction={"MinCapacity": count, "MaxCapacity": count},
        )


def count(w: World) -> int:
    return int(w.live()["ProductionVariants"][0]["DesiredInstanceCount"])


def scaling(w: World) -> Any:
    return w.apply.changer.scaling(NAME, ["AllTraffic"])


def test_a_restored_minimum_is_registered_and_the_fleet_grows_to_it() -> None:
    back = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 4, minimum=4, maximum=4), restores=True)
    with world(back, count=1, seed=lambda box: box.autoscale(NAME, 1, 4)) as w:
        w.start()
        change = w.run(6)
        (target,) = scaling(w)
        (past,) = w.store.history(NAME).endpoint
        assert change.state is ChangeState.PROVEN, change.outcome
        assert (target.minimum, target.maximum, count(w)) == (4, 4, 4)
        assert past.stated_risk is None, "a way back states no risk"
        assert past.restores


def test_a_restored_count_takes_our_hours_away_and_stays_over_the_next_ones() -> None:
    with world(
        an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 3), restores=True), count=1, seed=by_our_hours
    ) as w:
        w.start()
        change = w.run(30)
        w.box.clock.advance(timedelta(days=2))
        assert change.state is ChangeState.PROVEN, change.outcome
        assert (scaling(w), count(w)) == ((), 3)


def test_the_way_back_from_a_restored_count_registers_our_hours_again() -> None:
    with world(
        an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 3), restores=True), count=1, seed=by_our_hours
    ) as w:
        w.start()
        w.run(30)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        w.box.clock.advance(timedelta(minutes=5))
        w.apply.tick(w.now)
        change = w.run(12)
        (target,) = scaling(w)
        w.box.clock.advance(timedelta(days=1))
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert sorted(a["ScheduledActionName"] for a in target.scheduled) == ["rightsizer-c-1-08", "rightsizer-c-1-20"]
        assert count(w) in (1, 2)


@pytest.mark.parametrize("names", ["day-{:02d}", "rightsizer-office-{:02d}h"])
def test_an_owners_schedule_is_never_taken_for_ours(names: str) -> None:
    option = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 3), restores=True)
    with world(option, count=1, seed=lambda box: by_our_hours(box, names)) as w:
        assert w.start().state is ChangeState.REFUSED
        assert scaling(w)
