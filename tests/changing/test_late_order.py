"""The way back is asked for when others have moved on: what is theirs is left alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.world import NAME, World, others, world


@contextmanager
def proven() -> Iterator[World]:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        yield w


def release(w: World, name: str = "release-42") -> None:
    """The owner deploys, with bounds and a threshold of their own."""
    sagemaker, scaling, cloudwatch = (w.box.client(s) for s in ("sagemaker", "application-autoscaling", "cloudwatch"))
    with others(w):
        who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
        who["ScalableDimension"] = scenarios.VARIANT
        if name == f"{NAME}-config":  # of another type: AWS refuses it while a target is registered
            scaling.deregister_scalable_target(**who)
        else:
            body = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
            sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=body["ProductionVariants"])
        sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName=name)
        w.box.clock.advance(timedelta(minutes=45))
        scaling.register_scalable_target(**who, MinCapacity=5, MaxCapacity=40)
        (alarm,) = cloudwatch.describe_alarms(AlarmNames=["burst-now"])["MetricAlarms"]
        keys = ("AlarmName", "Namespace", "MetricName", "Dimensions", "Statistic", "Period", "EvaluationPeriods")
        kept = {key: alarm[key] for key in (*keys, "ComparisonOperator", "AlarmActions")}
        cloudwatch.put_metric_alarm(**kept, Threshold=777.0)
        w.box.clock.advance(timedelta(minutes=30))


def owners(w: World) -> tuple[Any, ...]:
    (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    threshold = w.apply.changer.alarms(["burst-now"])["burst-now"].body["Threshold"]
    return w.box.config_name(NAME), target.minimum, target.maximum, threshold


@pytest.mark.parametrize("name", ["release-42", f"{NAME}-config"])
def test_a_release_after_the_change_keeps_its_autoscaling_and_alarms(name: str) -> None:
    with proven() as w:
        release(w, name)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(24)
        found = owners(w)
    assert change.is_closed
    assert found == (name, 5, 40, 777.0)


def test_a_way_back_on_which_nobody_else_deployed_restores_what_was_stored() -> None:
    with proven() as w:
        Orders(w.journal, w.apply.changer.endpoint).request_rollback(w.change.id, "U1", w.now)
        change = w.run(24)
        found = owners(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert found == (f"{NAME}-config", 1, 4, 100_000.0)
