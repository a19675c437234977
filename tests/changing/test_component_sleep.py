"""Inference components go to no copy and no instance, wake for a request, and come back by the same change."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.plan.components import MOST_COMPONENTS
from rightsizer.domain.change import Change, ChangeState
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, World, steady, world

SLEEP = scenarios.COMPONENTS_ZERO


def opened(scenario: Scenario = SLEEP, **more: Any) -> Any:
    return world(scenario.option, seed=scenario.seed, kind=scenario.kind, **{**scenario.endpoint, **more})


def least(w: World) -> int:
    (row,) = w.box.world.fleet.config(w.box.config_name(NAME)).request["ProductionVariants"]
    found: int = row["ManagedInstanceScaling"]["MinInstanceCount"]
    return found


def targets(w: World) -> dict[str, tuple[int, int, tuple[str, ...]]]:
    rows = w.apply.changer.scaling(NAME, [], ["small", "large"])
    return {
        t.component_name or "": (t.minimum, t.maximum, tuple(sorted(p["PolicyName"] for p in t.policies))) for t in rows
    }


def copies(w: World) -> dict[str, int]:
    return {name: component.desired for name, component in w.box.world.components.known.items()}


def ours(w: World) -> list[str]:
    found = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
    return sorted(alarm["AlarmName"] for alarm in found)


def carried_out(w: World) -> Change:
    w.start()
    return w.run(48)


def test_the_minimum_of_instances_then_the_copies_and_an_alarm_that_one_request_fires() -> None:
    with opened() as w:
        change = carried_out(w)
        assert change.state is ChangeState.PROVEN, change.outcome
        policies = ("rightsizer-backlog", "rightsizer-wake")
        assert least(w) == 0
        assert targets(w) == {"small": (0, 3, policies), "large": (0, 1, policies)}
        assert ours(w) == ["rightsizer-wake-large", "rightsizer-wake-small"]
        alarm = w.box.client("cloudwatch").describe_alarms(AlarmNames=["rightsizer-wake-small"])["MetricAlarms"][0]
    assert (alarm["MetricName"], alarm["Threshold"], alarm["ComparisonOperator"], alarm["EvaluationPeriods"]) == (
        "NoCapacityInvocationFailures",
        1.0,
        "GreaterThanOrEqualToThreshold",
        1,
    )


def test_nothing_scales_in_before_the_configuration_lets_it() -> None:
    with opened() as w:
        w.start()
        w.run(4)
        writes = [c.operation for c in w.box.calls if c.writes and c.service != "dynamodb"]
    assert writes.index("UpdateEndpoint") < writes.index("RegisterScalableTarget")


def test_it_is_proven_by_a_request_after_it_had_no_instance_and_says_how_long_calls_failed() -> None:
    with opened() as w:
        change = carried_out(w)
    assert "; it woke " in change.outcome
    assert "and requests failed for " in change.outcome


def test_what_never_slept_stays_unproven() -> None:
    with opened(load=steady()) as w:
        change = carried_out(w)
        assert not change.is_closed
    assert "no request came while it had no instance" in change.outcome


def test_the_way_back_leaves_configuration_copies_and_autoscaling_as_they_were() -> None:
    with opened() as w:
        carried_out(w)
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(48)
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert w.box.config_name(NAME) == f"{NAME}-config"
        assert (least(w), targets(w), copies(w), ours(w)) == (1, {}, {"small": 3, "large": 1}, [])
        assert w.box.counts(NAME)["AllTraffic"] >= 1


def test_asleep_it_goes_back_with_the_instances_of_its_old_configuration() -> None:
    with opened() as w:
        carried_out(w)
        while w.box.counts(NAME)["AllTraffic"]:
            w.box.clock.advance(timedelta(minutes=5))
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(48)
        back = [c for c in w.box.calls.of("sagemaker", "UpdateEndpoint")][-1].params
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert back["RetainAllVariantProperties"] is False
        assert (copies(w), w.box.counts(NAME)) == ({"small": 3, "large": 1}, {"AllTraffic": 1})


def test_autoscaling_of_the_owner_stays_and_comes_back_with_its_bounds() -> None:
    def autoscaled(box: Sandbox) -> None:
        scenarios.may_pass(box)
        scaling = box.client("application-autoscaling")
        who = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": "inference-component/small",
            "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        }
        scaling.register_scalable_target(**who, MinCapacity=2, MaxCapacity=5)
        config = {
            "TargetValue": 5.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"},
        }
        scaling.put_scaling_policy(
            **who,
            PolicyName="theirs",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration=config,
        )

    with opened(replace(SLEEP, seed=autoscaled)) as w:
        assert carried_out(w).state is ChangeState.PROVEN
        assert targets(w)["small"] == (0, 5, ("rightsizer-wake", "theirs"))
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        assert w.run(48).state is ChangeState.ROLLED_BACK
        assert targets(w) == {"small": (2, 5, ("theirs",))}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tags": {"rightsizer:mode": "propose"}}, "the tag rightsizer:cold-start-ok=true is gone"),
        ({"variant_extra": {}}, "has no managed instance scaling that is enabled"),
    ],
)
def test_what_cannot_be_woken_or_taken_back_is_refused(more: dict[str, Any], said: str) -> None:
    with opened(**more) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert said in change.outcome


def test_a_component_whose_copies_could_not_be_set_again_is_refused() -> None:
    def untagged(box: Sandbox) -> None:
        scenarios.may_pass(box)
        box.add_component("third", NAME)

    with opened(replace(SLEEP, seed=untagged)) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "the tag rightsizer:mode of component third is absent" in change.outcome


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"rightsizer:mode": "off"}, "the tag rightsizer:mode of component third is off"),
        ({"rightsizer:mode": "report"}, "the tag rightsizer:mode of component third is report"),
        (
            {"rightsizer:mode": "propose", "aws:cloudformation:stack-name": "models"},
            "CloudFormation stack models owns component third",
        ),
    ],
)
@pytest.mark.parametrize("autoscaled", [True, False])
def test_a_component_whose_own_tags_say_no_is_refused_with_autoscaling_too(
    tags: dict[str, str], said: str, autoscaled: bool
) -> None:
    def seed(box: Sandbox) -> None:
        scenarios.may_pass(box)
        box.add_component("third", NAME)
        box.world.tags.put(box.world.fleet.arn("inference-component", "third"), tags)
        if autoscaled:
            box.client("application-autoscaling").register_scalable_target(
                ServiceNamespace="sagemaker",
                ResourceId="inference-component/third",
                ScalableDimension="sagemaker:inference-component:DesiredCopyCount",
                MinCapacity=1,
                MaxCapacity=2,
            )

    with opened(replace(SLEEP, seed=seed)) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert said in change.outcome


def test_an_adapter_that_nobody_knows_to_wake_is_refused() -> None:
    adapter = {"BaseInferenceComponentName": "large", "Container": {"ArtifactUrl": "s3://adapters/a.tar.gz"}}

    def seed(box: Sandbox) -> None:
        scenarios.may_pass(box)
        box.world.components.known["small"].specification = dict(adapter)

    with opened(replace(SLEEP, seed=seed)) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "component small is an adapter of large, and whether its calls wake that one is not known" in change.outcome


def test_more_components_than_one_change_covers_are_refused() -> None:
    def many(box: Sandbox) -> None:
        scenarios.may_pass(box)
        for number in range(MOST_COMPONENTS):
            box.add_component(f"part-{number}", NAME)

    with opened(replace(SLEEP, seed=many)) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert f"{MOST_COMPONENTS + 2} components, and one change covers {MOST_COMPONENTS}" in change.outcome


def test_without_the_grant_of_its_role_nothing_is_touched() -> None:
    with opened(replace(SLEEP, seed=scenarios.components)) as w:
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "iam:PassRole" in change.outcome or "put-role-policy" in change.outcome
