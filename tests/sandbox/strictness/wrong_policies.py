"""Mixed instances policies that EC2 Auto Scaling refuses, and those beside the border."""

from typing import Any

type Change = dict[str, Any]

_TEMPLATE = {"LaunchTemplateId": "lt-0123456789abcdef0"}
_NEEDS = {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1}}


def policy(*overrides: Change, template: Change = _TEMPLATE, **distribution: Any) -> Change:
    """An update of a group with this policy."""
    launch = {"LaunchTemplateSpecification": template, "Overrides": [*overrides]}
    return {"MixedInstancesPolicy": {"LaunchTemplate": launch, "InstancesDistribution": distribution}}


def needs(**more: Any) -> Change:
    """An override by attributes."""
    return {"InstanceRequirements": _NEEDS | more}


def _types(count: int) -> list[Change]:
    return [{"InstanceType": f"g5.{n}xlarge"} for n in range(count)]


POLICIES: Change = {
    "one template": policy(template=_TEMPLATE | {"LaunchTemplateName": "gpu"}),
    "many": policy(*_types(41)),
    "type and needs": policy({"InstanceType": "g5.xlarge", **needs()}),
    "weights": policy({"InstanceType": "g5.xlarge", "WeightedCapacity": "1"}, {"InstanceType": "g6.xlarge"}),
    "excluding": policy(needs(AllowedInstanceTypes=["g5.*"], ExcludedInstanceTypes=["g4dn.*"])),
    "strategy": policy(SpotAllocationStrategy="cheapest"),
    "by attributes": policy(needs(), OnDemandAllocationStrategy="prioritized"),
    "pools": policy(SpotAllocationStrategy="price-capacity-optimized", SpotInstancePools=2),
    "spot price": policy(SpotMaxPrice="0.0001"),
}
MORE_POLICIES: list[tuple[str, Change]] = [
    ("one template", policy({"InstanceType": "g5.xlarge", "LaunchTemplateSpecification": {"Version": "1"}})),
    ("many", policy(*(needs() for _ in range(5)))),
    ("many", policy(*(
        {"InstanceType": "g5.xlarge", "LaunchTemplateSpecification": {"LaunchTemplateId": f"lt-{n:017x}"}}
        for n in range(20)
    ))),
    ("weights", policy({"InstanceType": "g5.xlarge", "WeightedCapacity": "1000"})),
    ("excluding", policy(
        needs(SpotMaxPricePercentageOverLowestPrice=10, MaxSpotPriceAsPercentageOfOptimalOnDemandPrice=10)
    )),
    ("strategy", policy(OnDemandPercentageAboveBaseCapacity=101)),
    ("by attributes", policy(needs(), SpotAllocationStrategy="capacity-optimized-prioritized")),
    ("pools", policy(SpotInstancePools=21)),
    ("spot price", policy(SpotMaxPrice="cheap")),
]  # fmt: skip
FINE_POLICIES: list[Change] = [
    policy(*_types(40)),
    policy({"InstanceType": "g5.xlarge", "WeightedCapacity": "999"}),
    policy(needs(), SpotAllocationStrategy="price-capacity-optimized", OnDemandAllocationStrategy="lowest-price"),
    policy(SpotAllocationStrategy="lowest-price", SpotInstancePools=20, SpotMaxPrice=""),
    policy(SpotInstancePools=2, SpotMaxPrice="0.001"),
]
