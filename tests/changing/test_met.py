"""A return that fails gives back the autoscaling that it met, not what the change had settled weeks ago."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import Change, ChangeState, FailureClass
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from sandbox.refusals import Killed
from sandbox.sagemaker.deployment import Ending
from tests.changing import scenarios
from tests.changing.world import NAME, World, others, world

WHO = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/AllTraffic",
    "ScalableDimension": scenarios.VARIANT,
}


@contextmanager
def edited() -> Iterator[World]:
    """In the probation the owner raises the bounds, adds a step policy, and an alarm that starts it."""
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        scaling = w.box.client("application-autoscaling")
        with others(w):
            scaling.register_scalable_target(**WHO, MinCapacity=6, MaxCapacity=40)
            policy = {**scenarios.STEPS, "PolicyName": "owners-new"}
            arn = scaling.put_scaling_policy(**WHO, **policy)["PolicyARN"]
            (alarm,) = w.box.client("cloudwatch").describe_alarms(AlarmNames=["burst-now"])["MetricAlarms"]
            keys = ("Namespace", "MetricName", "Dimensions", "Statistic", "Period", "EvaluationPeriods")
            kept = {key: alarm[key] for key in (*keys, "ComparisonOperator", "TreatMissingData")}
            w.box.client("cloudwatch").put_metric_alarm(
                AlarmName="owners-alarm", Threshold=777.0, AlarmActions=[arn], **kept
            )
            w.box.clock.advance(timedelta(minutes=20))
        yield w


def asked_back(w: World, hours: float = 12) -> Change:
    Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
    return w.run(hours)


def found(w: World) -> tuple[int, int, list[str], list[str]]:
    """Bounds, policies, and which policies the owner's new alarm starts."""
    (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    names = {p["PolicyARN"]: p["PolicyName"] for p in target.policies}
    actions = w.apply.changer.alarms(["owners-alarm"])["owners-alarm"].body["AlarmActions"]
    return target.minimum, target.maximum, sorted(names.values()), [names.get(a, a) for a in actions]


THEIRS = (6, 40, ["burst", "chat-tracking", "owners-new"], ["owners-new"])


def update_denied(w: World) -> None:
    w.box.deny("sagemaker:UpdateEndpoint")


def deployment_rolled_back(w: World) -> None:
    w.box.script_deployment(NAME, Ending.HEALTH_CHECK, Ending.HEALTH_CHECK, Ending.HEALTH_CHECK)


@pytest.mark.parametrize("failing", [update_denied, deployment_rolled_back])
def test_a_return_that_fails_gives_back_what_it_met(failing: Callable[[World], None]) -> None:
    with edited() as w:
        new = w.box.config_name(NAME)
        failing(w)
        change = asked_back(w)
        now, config = found(w), w.box.config_name(NAME)
    assert change.state is ChangeState.HANDED_OVER
    assert (config, now) == (new, THEIRS)


@pytest.mark.parametrize(
    ("failing", "cause"),
    [(update_denied, FailureClass.PERMISSION), (deployment_rolled_back, FailureClass.HEALTH_CHECK)],
)
def test_an_alarm_of_the_owner_is_put_once_and_is_not_the_cause_of_the_failure(
    failing: Callable[[World], None], cause: FailureClass
) -> None:
    with edited() as w:
        failing(w)
        change = asked_back(w)
    puts = [e.status for e in change.journal if e.step == "PutMetricAlarm owners-alarm"]
    assert puts == ["intended", "done"]
    (line,) = change.remaining
    assert line.startswith("aws sagemaker update-endpoint ")
    assert change.failure is cause
    assert "never shows" not in change.outcome


def test_a_return_that_dies_after_each_of_its_writes_and_fails_gives_back_what_it_met() -> None:
    died = 0
    for deadly in range(1, 40, 3):
        with edited() as w:
            update_denied(w)
            seen: list[Call] = []

            def dies(call: Call, seen: list[Call] = seen, deadly: int = deadly) -> None:
                if call.service == "application-autoscaling" and call.writes:
                    seen.append(call)
                    if len(seen) == deadly:
                        raise Killed(f"killed after {call.action}")

            w.box.gate.after = dies
            try:
                change = asked_back(w)
            except Killed:
                died += 1
                w.box.gate.after = None
                w.box.clock.advance(timedelta(minutes=5))
                change = w.run(12)
            now = found(w)
        assert change.state is ChangeState.HANDED_OVER
        assert now == THEIRS, f"killed after write {deadly}"
        if len(seen) < deadly:
            break
    assert died > 1


def test_a_release_in_the_middle_of_a_return_gets_what_the_return_met() -> None:
    with edited() as w:
        w.box.gate.fail("sagemaker", "UpdateEndpoint", "ThrottlingException", "Rate exceeded", times=3)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        while w.apply.changer.scaling(NAME, ["AllTraffic"]):
            w.run(0.05)
        sagemaker = w.box.client("sagemaker")
        with others(w):
            w.box.gate.heal()
            body: Any = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
            sagemaker.create_endpoint_config(
                EndpointConfigName="release-42", ProductionVariants=body["ProductionVariants"]
            )
            sagemaker.update_endpoint(
                EndpointName=NAME, EndpointConfigName="release-42", RetainAllVariantProperties=True
            )
            w.box.clock.advance(timedelta(minutes=45))
        change = w.run(12)
        now, config = found(w), w.box.config_name(NAME)
    assert change.state is ChangeState.HANDED_OVER
    assert (config, now) == ("release-42", THEIRS)


def test_a_return_that_arrives_names_what_was_added_since_with_the_line_that_puts_it_again() -> None:
    with edited() as w:
        change = asked_back(w)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.ROLLED_BACK
    assert sorted(p["PolicyName"] for p in target.policies) == ["burst", "chat-tracking"]
    assert '"PolicyName": "owners-new"' in change.outcome
    assert "aws application-autoscaling put-scaling-policy " in change.outcome
