"""Roll-back alarms that never get data: AWS may publish nothing under the new configuration while it deploys."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from rightsizer.domain.change import ChangeState, Course, FailureClass
from sandbox.sagemaker.load import Served
from tests.changing.world import NAME, NEW_TYPE, World, world


def failing(at: datetime, instance_type: str, count: int) -> Served:
    """The new type fails every other request."""
    return Served(60, latency_ms=100.0, errors_5xx=30 if instance_type == NEW_TYPE else 0)


@contextmanager
def silent() -> Iterator[World]:
    """An account that publishes nothing by configuration."""
    with world(load=failing) as w:
        w.box.world.fleet.load.by_config = False
        yield w


def test_a_change_whose_alarms_get_no_data_goes_back_by_the_variants_own_metrics_within_minutes() -> None:
    with silent() as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.1)
        arrived = w.change.turned_at
        while w.change.course is not Course.BACK:
            w.run(0.1)
            assert w.now - arrived < timedelta(minutes=35)
        change = w.run(4)
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.PERFORMANCE), change.outcome
    assert w.box.config_name(NAME) == f"{NAME}-config"


def test_the_plan_says_what_watches_where_the_alarms_may_see_nothing() -> None:
    with silent() as w:
        w.start()
        (plan,) = [entry.detail for entry in w.change.journal if entry.step == "plan"]
    assert "should AWS publish nothing under its name while it deploys, they cannot fire" in plan
