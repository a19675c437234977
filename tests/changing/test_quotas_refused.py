"""Quotas and lacks of capacity that AWS tells only when it is asked: a change ends whole, and a person hears of it."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, World, world

QUOTA = (
    "The account-level service limit 'ml.g5.4xlarge for endpoint usage' is 3 Instances, with current utilization of 3 "
    "Instances. Please use AWS Service Quotas to request an increase for this quota."
)
SCALING, COUNTS = "application-autoscaling", "UpdateEndpointWeightsAndCapacities"


@dataclass(frozen=True)
class Refusal:
    """A request that AWS refuses `times_text` times."""

    scenario: Scenario
    service: str
    operation: str
    code: str
    text: str
    times: float = math.inf

    def __str__(self) -> str:
        return f"{self.scenario.name}, {self.operation}, {self.code}"


FOR_GOOD = [
    Refusal(scenarios.COUNT, "sagemaker", COUNTS, "ResourceLimitExceeded", QUOTA),
    Refusal(scenarios.COMPONENTS, "sagemaker", "UpdateInferenceComponentRuntimeConfig", "ResourceLimitExceeded", QUOTA),
    Refusal(scenarios.PLACEMENT, "sagemaker", "UpdateInferenceComponent", "ResourceLimitExceeded", QUOTA),
]
FOR_A_WHILE = [
    Refusal(scenarios.AUTOSCALED, SCALING, "RegisterScalableTarget", "ConcurrentUpdateException", "an update runs", 2),
]


def carried_out(scenario: Scenario) -> Any:
    return world(scenario.option, seed=scenario.seed, kind=scenario.kind, judged=scenario.judged, **scenario.endpoint)


def refuse(w: World, refusal: Refusal) -> None:
    w.box.gate.fail(refusal.service, refusal.operation, refusal.code, refusal.text, times=refusal.times)


def serving(w: World) -> Any:
    """What runs and scales, but for the configurations and alarms that nobody uses."""
    with w.box.gate.unrecorded():
        targets = w.box.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
        bounds = [(t["ResourceId"], t["MinCapacity"], t["MaxCapacity"]) for t in targets["ScalableTargets"]]
    copies = {name: (c.desired, str(c.specification)) for name, c in w.box.world.components.known.items()}
    return w.box.counts(NAME), w.box.config_name(NAME), w.box.status(NAME), bounds, copies


@pytest.mark.parametrize("refusal", FOR_GOOD, ids=str)
def test_what_aws_refuses_before_the_turn_leaves_everything_as_it_was_and_is_told(refusal: Refusal) -> None:
    with carried_out(refusal.scenario) as w:
        before = serving(w)
        refuse(w, refusal)
        w.start()
        change = w.run(72)
        after, asked = serving(w), w.box.calls.of(refusal.service, refusal.operation)
        shown, open_ = w.shown(), list(w.journal.open_changes())
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert after == before
    assert (len(asked), open_, change.remaining) == (1, [], ())
    assert shown.state.value == "rolled-back"
    (told,) = w.told
    assert refusal.text in told[1], "AWS's words name the quota and how to raise it"


@pytest.mark.parametrize("refusal", FOR_A_WHILE, ids=str)
def test_what_aws_refuses_for_a_moment_is_asked_again_and_proven(refusal: Refusal) -> None:
    with carried_out(refusal.scenario) as w:
        refuse(w, refusal)
        w.start()
        change = w.run(72)
        asked = w.box.calls.of(refusal.service, refusal.operation)
    assert change.state is ChangeState.PROVEN, change.outcome
    assert len(asked) == 3


def test_a_count_that_finds_no_capacity_ends_with_the_old_count() -> None:
    """AWS takes each of three tries, and the endpoint is InService with a FailureReason and the instances it had."""
    with carried_out(scenarios.COUNT) as w:
        before = serving(w)
        w.box.script_deployment(NAME, *["capacity"] * 3)
        w.start()
        change = w.run(72)
        after = serving(w)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert after == before
    assert "capacity" in change.outcome.lower()
    assert any("capacity" in text.lower() for _, text in w.told)


def test_autoscaling_that_may_not_be_registered_again_is_handed_over_with_every_line_and_the_cause() -> None:
    """After the turn: the alarm of a policy that could not be made is not sent with a place instead of an ARN."""
    with carried_out(scenarios.AUTOSCALED) as w:
        w.box.gate.fail(SCALING, "RegisterScalableTarget", "LimitExceededException", "too many targets", times=math.inf)
        w.start()
        change = w.run(72)
        alarms = [call for call in w.box.calls.of("cloudwatch", "PutMetricAlarm") if call.error]
    assert change.state is ChangeState.HANDED_OVER
    assert alarms == []
    verbs = [line.partition("aws ")[2].split()[1] for line in change.remaining[:4]]
    assert verbs == ["register-scalable-target", "put-scaling-policy", "put-scaling-policy", "put-scheduled-action"]
    assert "put-metric-alarm" in change.remaining[4]
    assert "a policy that it starts could not be made" in change.outcome
    assert "was refused: too many targets" in change.outcome
    assert "AUTOSCALING IS MISSING" in w.told[0][1]
