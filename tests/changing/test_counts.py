"""No change takes instances away that autoscaling or a person put there meanwhile."""

from datetime import timedelta
from typing import Any

from rightsizer.domain.endpoint import EndpointKind
from sandbox.account import Sandbox
from tests.changing import scenarios
from tests.changing.world import NAME, OLD_TYPE, world


def scale(box: Sandbox, count: int) -> None:
    """What autoscaling or a person does."""
    with box.gate.unrecorded():
        rows = [{"VariantName": "AllTraffic", "DesiredInstanceCount": count}]
        judge, box.gate.judge = box.gate.judge, lambda _: None
        box.client("sagemaker").update_endpoint_weights_and_capacities(
            EndpointName=NAME, DesiredWeightsAndCapacities=rows
        )
        box.gate.judge = judge
        box.clock.advance(timedelta(minutes=20))


def test_new_bounds_are_those_of_the_judged_variant_alone() -> None:
    second = {"VariantName": "Second", "InstanceType": OLD_TYPE, "InitialInstanceCount": 4}
    dimension = "sagemaker:variant:DesiredInstanceCount"

    def seed(box: Any) -> None:
        for variant, low, high in (("AllTraffic", 2, 8), ("Second", 4, 20)):
            box.client("application-autoscaling").register_scalable_target(
                ServiceNamespace="sagemaker",
                ResourceId=f"endpoint/{NAME}/variant/{variant}",
                ScalableDimension=dimension,
                MinCapacity=low,
                MaxCapacity=high,
            )

    kind = EndpointKind.MULTI_VARIANT
    with world(scenarios.BOUNDS.option, kind=kind, seed=seed, count=2, more_variants=(second,)) as w:
        w.start()
        found = w.box.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
    bounds = {
        t["ResourceId"].rpartition("/")[2]: (t["MinCapacity"], t["MaxCapacity"]) for t in found["ScalableTargets"]
    }
    assert bounds == {"AllTraffic": (1, 2), "Second": (4, 20)}


def test_a_count_of_one_variant_moves_beside_another_that_is_autoscaled() -> None:
    second = {"VariantName": "Second", "InstanceType": OLD_TYPE, "InitialInstanceCount": 4}
    dimension = "sagemaker:variant:DesiredInstanceCount"

    def seed(box: Any) -> None:
        box.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"endpoint/{NAME}/variant/Second",
            ScalableDimension=dimension,
            MinCapacity=4,
            MaxCapacity=20,
        )

    kind = EndpointKind.MULTI_VARIANT
    with world(scenarios.COUNT.option, kind=kind, seed=seed, count=2, more_variants=(second,)) as w:
        w.start()
        w.run(2)
        counts = w.box.counts(NAME)
        moved = w.box.calls.of("application-autoscaling", "Deregister*")
    assert counts == {"AllTraffic": 1, "Second": 4}
    assert moved == []
