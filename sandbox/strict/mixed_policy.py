"""What EC2 Auto Scaling refuses of a mixed instances policy, wherever a request carries one.

Sources: EC2 Auto Scaling API reference, LaunchTemplateSpecification, LaunchTemplateOverrides, InstanceRequirements,
InstancesDistribution.
"""

from collections.abc import Iterator

from sandbox.strict import Check, Params
from sandbox.strict.words import not_exactly_one

ERROR = "ValidationError"
SPOT = frozenset(
    {"lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized", ""}
)
ON_DEMAND = frozenset({"lowest-price", "prioritized", ""})
MOST_TYPES, MOST_TEMPLATES, MOST_REQUIREMENTS = 40, 20, 4
LARGEST_WEIGHT, MOST_POOLS = 999, 20
CHEAPEST_USD = 0.001
_one_name = not_exactly_one("LaunchTemplateId", "LaunchTemplateName")


def _template(p: Params) -> Params:
    found: Params = (p.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    return found


def _overrides(p: Params) -> list[Params]:
    return list(_template(p).get("Overrides") or [])


def _distribution(p: Params) -> Params:
    found: Params = (p.get("MixedInstancesPolicy") or {}).get("InstancesDistribution") or {}
    return found


def _specifications(p: Params) -> Iterator[Params]:
    for holder in (p.get("LaunchTemplate"), _template(p).get("LaunchTemplateSpecification"), *_of_overrides(p)):
        if holder is not None:
            yield holder


def _of_overrides(p: Params) -> list[Params]:
    return [row["LaunchTemplateSpecification"] for row in _overrides(p) if "LaunchTemplateSpecification" in row]


def _requirements(p: Params) -> list[Params]:
    return [row["InstanceRequirements"] for row in _overrides(p) if "InstanceRequirements" in row]


def _two_names(p: Params) -> bool:
    return any(_one_name(one) for one in _specifications(p))


def _many(p: Params) -> bool:
    templates = {str(sorted(one.items())) for one in _specifications(p)}
    types = sum("InstanceType" in row for row in _overrides(p))
    return types > MOST_TYPES or len(templates) > MOST_TEMPLATES or len(_requirements(p)) > MOST_REQUIREMENTS


def _type_and_requirements(p: Params) -> bool:
    return any("InstanceType" in row and "InstanceRequirements" in row for row in _overrides(p))


def _odd_weight(p: Params) -> bool:
    weights = [row["WeightedCapacity"] for row in _overrides(p) if "WeightedCapacity" in row]
    outside = any(not text.isdigit() or not 1 <= int(text) <= LARGEST_WEIGHT for text in weights)
    return outside or 0 < len(weights) < len(_overrides(p))


def _excluding(p: Params) -> bool:
    pairs = (
        ("ExcludedInstanceTypes", "AllowedInstanceTypes"),
        ("SpotMaxPricePercentageOverLowestPrice", "MaxSpotPriceAsPercentageOfOptimalOnDemandPrice"),
    )
    return any(one in needs and other in needs for needs in _requirements(p) for one, other in pairs)


def _odd_strategy(p: Params) -> bool:
    of = _distribution(p)
    odd = of.get("SpotAllocationStrategy", "") not in SPOT or of.get("OnDemandAllocationStrategy", "") not in ON_DEMAND
    return odd or not 0 <= of.get("OnDemandPercentageAboveBaseCapacity", 0) <= 100


def _by_attributes(p: Params) -> bool:
    """Strategies that rest on the order of types, where no types are named."""
    of = _distribution(p)
    named = {of.get("SpotAllocationStrategy"), of.get("OnDemandAllocationStrategy")}
    return bool(_requirements(p)) and bool({"prioritized", "capacity-optimized-prioritized"} & named)


def _pools(p: Params) -> bool:
    of = _distribution(p)
    if "SpotInstancePools" not in of:
        return False
    lowest = of.get("SpotAllocationStrategy") in (None, "", "lowest-price")
    return not lowest or not 1 <= of["SpotInstancePools"] <= MOST_POOLS


def _spot_price(p: Params) -> bool:
    text = _distribution(p).get("SpotMaxPrice", "")
    try:
        return bool(text) and float(text) < CHEAPEST_USD
    except ValueError:
        return True


MIXED_POLICY = (
    Check("one template", "a launch template without exactly one of id and name", ERROR, _two_names),
    Check("many", "more than 40 types, 20 launch templates or 4 sets of requirements in a mixed policy", ERROR, _many),
    Check("type and needs", "an override with InstanceType and InstanceRequirements", ERROR, _type_and_requirements),
    Check("weights", "weights of other than 1 to 999, or of some of the types only", ERROR, _odd_weight),
    Check(
        "excluding", "requirements with allowed and excluded types, or with both price protections", ERROR, _excluding
    ),
    Check("strategy", "an allocation strategy that is none, a share outside 0 to 100 %", ERROR, _odd_strategy),
    Check("by attributes", "requirements with a strategy by the order of types", ERROR, _by_attributes),
    Check("pools", "SpotInstancePools outside 1 to 20, or with another strategy than lowest-price", ERROR, _pools),
    Check("spot price", "a maximum Spot price below 0.001", ERROR, _spot_price),
)
"""Checks of every operation that takes a mixed instances policy."""
