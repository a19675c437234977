"""A fleet that the quota has no second time for: it is replaced in batches, and it comes back in batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind, Target
from rightsizer.flows.orders import Orders
from sandbox.sagemaker.deployment import Ending
from tests.changing.scenarios import SCALE_IN
from tests.changing.world import NAME, OLD_TYPE, World, an_option, world
from tests.faults.drive import scenario_world

ROUTED = an_option(kind=OptionKind.ROUTING, target=Target(OLD_TYPE, 8, routing="LEAST_OUTSTANDING_REQUESTS"))


@contextmanager
def eight(quota: int) -> Iterator[World]:
    """Eight instances whose routing is to be changed."""
    with world(ROUTED, count=8) as w:
        w.box.world.quotas.set(OLD_TYPE, quota)
        yield w


def test_aws_takes_a_rolling_deployment_back_in_batches_when_an_alarm_fires() -> None:
    with eight(quota=10) as w:
        w.box.script_deployment(NAME, Ending.ALARM)
        w.start()
        change = w.run(12)
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert (w.live()["EndpointStatus"], w.box.config_name(NAME)) == ("InService", f"{NAME}-config")


def test_a_deployment_that_keeps_the_live_counts_comes_back_in_batches_too() -> None:
    fleet = replace(SCALE_IN, endpoint={**SCALE_IN.endpoint, "count": 4})
    with scenario_world(fleet) as w:
        w.box.world.quotas.set(OLD_TYPE, 5)
        w.start()
        w.run(2)
        assert "rolling, 1 of 4" in w.change.plan.guardrail
        Orders(w.journal, w.apply.changer.endpoint).request_rollback(w.change.id, "terminal:kim", w.now)
        change = w.run(12)
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert w.box.counts(NAME) == {"AllTraffic": 4}
