"""Better capacity: what fits, what it costs, and the exact request."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.hardware import Accelerator, InstanceType
from rightsizer.domain.option import Excluded
from rightsizer.domain.reason import Code
from rightsizer.domain.scaling_group import AutoScalingGroup, CapacityKind, Handler, MeasuredUse, PurchaseOptions
from rightsizer.domain.spot import Pool, PoolSight, SpotNeed, SpotPlacement
from rightsizer.spot.group_options import alternatives, fitting_types, need_of, outlook, policy_change

A10G = Accelerator("A10G", "NVIDIA", 70, 600, 24, 22, (8, 6))
L4 = Accelerator("L4", "NVIDIA", 121, 300, 24, 22, (8, 9))
T4 = Accelerator("T4", "NVIDIA", 65, 320, 16, 15, (7, 5))
INF = Accelerator("Inferentia2", "AWS", 190, 380, 32, 32, None)


def kind(name: str, gpu: Accelerator | None, **over: Any) -> InstanceType:
    return replace(InstanceType(f"ml.{name}", 4, 16, "x86_64", gpu, 1), **over)


def use(gpu: float = 4.0, host: float | None = 6.0, share: float | None = None, days: float = 14.0) -> MeasuredUse:
    return MeasuredUse(gpu, share, host, 4, days)


G5 = kind("g5.xlarge", A10G)
TYPES = [
    G5,
    kind("g6.xlarge", L4),
    kind("g4dn.xlarge", T4),
    kind("g6.12xlarge", L4, accelerator_count=4),
    kind("g5g.xlarge", A10G, cpu_arch="arm64"),
    kind("g6.small", L4, memory_gib=8),
    kind("inf2.xlarge", INF),
]
MIXED: dict[str, Any] = {
    "LaunchTemplate": {
        "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "3"},
        "Overrides": [{"InstanceType": "g5.xlarge"}],
    },
    "InstancesDistribution": {
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 10,
        "SpotAllocationStrategy": "lowest-price",
        "SpotInstancePools": 2,
        "SpotMaxPrice": "1.0",
    },
}


def group(**purchase: Any) -> AutoScalingGroup:
    bought = {"instance_types": ("g5.xlarge",), "on_demand_percent": 10, "mixed": MIXED, **purchase}
    return AutoScalingGroup(
        "gpu",
        "arn",
        "eu-west-1",
        Mode.AUTO,
        "nlp",
        0,
        8,
        4,
        ("a", "b"),
        ("subnet-1",),
        PurchaseOptions(**bought),
        Handler.NOBODY,
        False,
        frozenset(),
        datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_types_that_fit_have_the_gpus_the_memory_and_the_architecture() -> None:
    fits, out = fitting_types(need_of(G5, None), G5, TYPES)
    assert [found.ec2_name for found in fits] == ["g5.xlarge", "g6.xlarge"]
    assert {row.instance_type: row.reason.code for row in out} == {
        "g4dn.xlarge": Code.MEMORY_TOO_SMALL,
        "g6.12xlarge": Code.OTHER_GPU_COUNT,
        "g5g.xlarge": Code.ANOTHER_ARCHITECTURE,
        "g6.small": Code.HOST_MEMORY_TOO_SMALL,
    }


def test_a_measured_need_lets_smaller_types_in_but_never_older_gpus() -> None:
    fits, out = fitting_types(need_of(G5, use()), G5, TYPES)
    assert "g6.small" in [found.ec2_name for found in fits]
    assert next(row for row in out if row.instance_type == "g4dn.xlarge").reason.code is Code.COMPUTE_CAPABILITY_TOO_OLD


def test_a_need_above_the_present_size_is_held_to_it() -> None:
    assert need_of(G5, use(gpu=22.0, host=16.0)).gpu_memory_gib == 22


def test_the_request_adds_types_and_keeps_everything_else() -> None:
    found = policy_change(group(), ["g5.xlarge", "g6.xlarge"], 2)
    assert isinstance(found, tuple)
    request, undo = found
    policy = request["MixedInstancesPolicy"]
    assert policy["LaunchTemplate"]["Overrides"] == [{"InstanceType": "g5.xlarge"}, {"InstanceType": "g6.xlarge"}]
    assert policy["LaunchTemplate"]["LaunchTemplateSpecification"] == {"LaunchTemplateId": "lt-1", "Version": "3"}
    assert policy["InstancesDistribution"] == {
        "OnDemandBaseCapacity": 2,
        "OnDemandPercentageAboveBaseCapacity": 10,
        "SpotAllocationStrategy": "price-capacity-optimized",
        "SpotMaxPrice": "1.0",
    }
    assert undo == {"AutoScalingGroupName": "gpu", "MixedInstancesPolicy": MIXED}


def test_no_request_touches_the_size_of_the_group() -> None:
    found = policy_change(group(), ["g6.xlarge"], 0)
    assert isinstance(found, tuple)
    assert all(set(request) == {"AutoScalingGroupName", "MixedInstancesPolicy"} for request in found)


SEGMENTS = MIXED | {"InstancesDistribution": {"DistributionSegments": [{"TargetCapacityTypes": ["spot"]}]}}


@pytest.mark.parametrize("purchase", [{"mixed": {}}, {"weighted": True}, {"mixed": SEGMENTS}])
def test_policies_that_are_the_owner_s_to_write_are_not_changed(purchase: dict[str, Any]) -> None:
    assert isinstance(policy_change(group(**purchase), ["g6.xlarge"], 0), Excluded)


def test_a_base_above_the_maximum_is_refused() -> None:
    assert isinstance(policy_change(group(), [], 9), Excluded)


def test_attribute_based_groups_keep_their_requirements() -> None:
    found = policy_change(group(attribute_based=True), ["g6.xlarge"], 0)
    assert isinstance(found, tuple)
    assert found[0]["MixedInstancesPolicy"]["LaunchTemplate"] == MIXED["LaunchTemplate"]


def test_the_outlook_counts_running_and_launched_instances_at_price_and_rate() -> None:
    a, b = Pool("g5.xlarge", "a"), Pool("g5.xlarge", "b")
    sights = [PoolSight(a, 0.4), PoolSight(b, 0.5)]
    seen = outlook(SpotPlacement({b: 1}, 2, ()), {a: 1}, sights, SpotNeed(4, 1.0), lambda sight: 0.1)
    assert (seen.spot, seen.on_demand) == (2, 2)
    assert seen.usd_per_month == pytest.approx((0.4 + 0.5 + 2.0) * 730)
    assert seen.interruptions_per_month == pytest.approx(0.2 * 730)
    assert seen.lost_hours_per_month == pytest.approx(0.2 * 730 * 180 / 3600)


def test_on_demand_of_another_type_is_named_when_it_undercuts_spot_and_an_endpoint_too() -> None:
    fits, _ = fitting_types(need_of(G5, use()), G5, TYPES)
    hosting = {"ml.g6.small": 0.30, "ml.g5.xlarge": 1.40}
    found = alternatives(group(), G5, fits, hosting, 0.35)
    assert [kind for kind, _ in found] == [CapacityKind.SMALLER_ON_DEMAND, CapacityKind.ENDPOINT_TYPE]
    assert "On-Demand g6.small at 0.24 USD an hour" in str(found[0][1])
    assert "ml.g6.small at 0.30 USD an hour" in str(found[1][1])
    assert [kind for kind, _ in alternatives(group(), G5, fits, hosting, 0.25)] == [CapacityKind.SMALLER_ON_DEMAND]
    assert alternatives(group(), G5, fits, hosting, 0.20) == []


def test_less_than_a_week_of_data_is_no_measurement() -> None:
    assert not need_of(G5, use(days=6.9)).measured
    assert need_of(G5, use(days=6.9)).gpu_memory_gib == A10G.usable_gib


def test_a_busy_gpu_is_not_moved_to_one_with_half_the_bandwidth() -> None:
    fits, out = fitting_types(need_of(G5, use(share=0.5)), G5, TYPES)
    assert [kind.ec2_name for kind in fits] == ["g5.xlarge"]
    reason = next(row.reason for row in out if row.instance_type == "g6.xlarge")
    assert (reason.code, "2.0 times slower" in reason.sentence) == (Code.TOO_SLOW, True)
    assert "g6.xlarge" in [kind.ec2_name for kind in fitting_types(need_of(G5, use(share=0.39)), G5, TYPES)[0]]
