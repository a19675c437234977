"""Larger counts by the hour in place of ours: room at once, then by the hour, and the old hours where it goes back."""

from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.flows.orders import Orders
from tests.changing.scenarios import LARGER_HOURS
from tests.changing.test_scenarios import WHO, carried_out
from tests.changing.world import NAME, World


def hours(w: World) -> dict[str, int]:
    """The counts of the scheduled actions by their time."""
    scaling = w.box.client("application-autoscaling")
    found: list[dict[str, Any]] = scaling.describe_scheduled_actions(**WHO)["ScheduledActions"]
    return {one["Schedule"]: one["ScalableTargetAction"]["MinCapacity"] for one in found}


def running(w: World) -> int:
    (variant,) = w.box.world.fleet.endpoint(NAME).variants.values()
    return variant.desired_count


def begun(w: World) -> None:
    w.start()
    while w.change.turned_at is None:
        w.run(0.25)


def test_the_most_of_the_new_hours_serve_at_once() -> None:
    with carried_out(LARGER_HOURS) as w:
        begun(w)
        first = running(w)
        w.run(0.5)
        found = hours(w)
    assert first == 3, "a scheduled action acts at its hour alone, and users wait now"
    assert found == {"cron(45 7 * * ? *)": 3, "cron(0 20 * * ? *)": 1}


def test_the_way_back_registers_the_old_hours_again() -> None:
    with carried_out(LARGER_HOURS) as w:
        begun(w)
        w.run(0.5)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(4)
        found, count = hours(w), running(w)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert found == {"cron(0 8 * * ? *)": 2, "cron(0 20 * * ? *)": 1}
    assert count == 2


@pytest.mark.parametrize("count", [3])
def test_where_the_most_run_already_that_many_stay_as_one_count(count: int) -> None:
    """Nothing lies between taking one schedule away and registering another, so that the old one would never go."""
    with carried_out(LARGER_HOURS) as w:
        (variant,) = w.box.world.fleet.endpoint(NAME).variants.values()
        variant.count = variant.desired_count = count
        w.start()
        change = w.run(30)
        found = hours(w)
        assert (change.state, running(w), found) == (ChangeState.PROVEN, 3, {}), change.outcome
