"""A change is held against the slow half hours that its fleet had in the week before, not in two days alone."""

from datetime import datetime, timedelta

import pytest

from rightsizer.domain.change import ChangeState
from sandbox.account import Sandbox
from sandbox.sagemaker.load import Served
from tests.changing.world import MONDAY, NAME, world

SLOW_S = 0.9


def at_times_slow(at: datetime, instance_type: str, count: int) -> Served:
    """Twenty minutes of each hour over the objective, on any type."""
    return Served(60, latency_ms=400.0 if at.minute < 20 else 100.0)


def half_hour(box: Sandbox, days_ago: int) -> None:
    """Half an hour in which the fleet of today answered slowly."""
    start = MONDAY - timedelta(days=days_ago, hours=3)
    box.put_series(NAME, "AllTraffic", "Invocations", start, 300, [60.0] * 6)
    p95 = {"p95": [SLOW_S * 1e6] * 6}
    box.put_series(NAME, "AllTraffic", "ModelLatency", start, 300, [2e5] * 6, samples=60.0, percentiles=p95)


def seed(box: Sandbox) -> None:
    """Two such half hours, both before the last two days."""
    for days in (3, 6):
        half_hour(box, days)


@pytest.mark.parametrize(("age", "state"), [(30, ChangeState.PROVEN), (4, ChangeState.ROLLED_BACK)])
def test_as_slow_as_on_two_days_of_the_week_is_no_reason_to_go_back(age: int, state: ChangeState) -> None:
    """A configuration of four days ago leaves one of these days to another fleet, and one day is no habit."""
    tags, born = {"rightsizer:mode": "propose", "rightsizer:p95-ms": "500"}, MONDAY - timedelta(days=age)
    with world(seed=seed, load=at_times_slow, tags=tags, created=born) as w:
        change = w.start()
        assert change.baseline.get("slow_s/AllTraffic") == (SLOW_S if state is ChangeState.PROVEN else None)
        change = w.run(12)
    assert change.state is state, change.outcome


def test_counts_that_somebody_set_by_hand_make_another_fleet() -> None:
    """What the fleet of before did is no habit of the one that runs, though its configuration is as old."""
    tags, born = {"rightsizer:mode": "propose", "rightsizer:p95-ms": "500"}, MONDAY - timedelta(days=30)
    with world(seed=seed, load=at_times_slow, tags=tags, created=born) as w:
        w.scale(w.live()["ProductionVariants"][0]["CurrentInstanceCount"])
        w.box.clock.advance(timedelta(minutes=30))
        baseline = w.start().baseline
    assert baseline["p95_s"] > 0, "the change has begun"
    assert "slow_s/AllTraffic" not in baseline
