"""A row of DescribeAutoScalingGroups to a `Group`. Pure; InputError for what cannot be understood."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.ownership import handler_of, owner_of
from rightsizer.domain.scaling_group import Group, Purchase
from rightsizer.errors import InputError

MODE_TAG = "rightsizer:mode"
OWNER_TAG = "rightsizer:owner"
FALLBACK_TAG = "rightsizer:fallback"


def wanted(row: Mapping[str, Any]) -> bool:
    """Whether the group may buy Spot or carries our tag; other groups are none of our business."""
    distribution = row.get("MixedInstancesPolicy", {}).get("InstancesDistribution", {})
    buys_spot = bool(distribution) and distribution.get("OnDemandPercentageAboveBaseCapacity", 100) < 100
    return buys_spot or any(tag.get("Key") == MODE_TAG for tag in row.get("Tags", []))


def template_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The LaunchTemplateSpecification that the group uses; empty for a launch configuration."""
    mixed = row.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    found = mixed.get("LaunchTemplateSpecification") or row.get("LaunchTemplate") or {}
    return {key: str(value) for key, value in found.items()}


def sendable(policy: Mapping[str, Any]) -> dict[str, Any]:
    """A MixedInstancesPolicy as it was described, fit for a request: a launch template by its id or its name.

    The description has both; a request with both is refused (API, LaunchTemplateSpecification).
    """
    template = policy.get("LaunchTemplate")
    if not template:
        return dict(policy)
    rows = [_one_name(row) for row in template.get("Overrides", [])]
    return {**policy, "LaunchTemplate": _one_name(template) | ({"Overrides": rows} if rows else {})}


def _one_name(row: Mapping[str, Any]) -> dict[str, Any]:
    found = row.get("LaunchTemplateSpecification")
    if not found or "LaunchTemplateId" not in found:
        return dict(row)
    kept = {key: value for key, value in found.items() if key != "LaunchTemplateName"}
    return {**row, "LaunchTemplateSpecification": kept}


def names_types(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Types that the overrides name, else those that run; empty when only the launch template names one."""
    overrides = row.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}).get("Overrides", [])
    named = [str(found["InstanceType"]) for found in overrides if found.get("InstanceType")]
    if not named and any(found.get("InstanceRequirements") for found in overrides):
        named = sorted({str(found["InstanceType"]) for found in row.get("Instances", []) if found.get("InstanceType")})
    return tuple(dict.fromkeys(named))


def group_of(row: Mapping[str, Any], region: str, types: tuple[str, ...], waits: bool, now: datetime) -> Group:
    """The group; InputError names the group and what is wrong with it."""
    try:
        tags = {str(tag["Key"]): str(tag.get("Value", "")) for tag in row.get("Tags", [])}
        return Group(
            name=str(row["AutoScalingGroupName"]),
            arn=str(row.get("AutoScalingGroupARN", "")),
            region=region,
            mode=mode_of(tags, str(row["AutoScalingGroupName"])),
            owner=tags.get(OWNER_TAG, tags.get("owner", "")),
            minimum=int(row["MinSize"]),
            maximum=int(row["MaxSize"]),
            desired=int(row["DesiredCapacity"]),
            zones=tuple(row.get("AvailabilityZones", ())),
            subnets=tuple(part.strip() for part in row.get("VPCZoneIdentifier", "").split(",") if part.strip()),
            purchase=_purchase(row, types),
            handler=handler_of(tags, bool(row.get("CapacityRebalance"))),
            terminating_hook=waits,
            suspended=frozenset(str(found["ProcessName"]) for found in row.get("SuspendedProcesses", [])),
            read_at=now,
            stack=owner_of(tags),
            fallback=tags.get(FALLBACK_TAG) == "on-demand",
            running=Counter(
                f"{found['InstanceType']}|{found['AvailabilityZone']}"
                for found in row.get("Instances", [])
                if found.get("LifecycleState") == "InService" and found.get("InstanceType")
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        name = row.get("AutoScalingGroupName", "?")
        raise InputError(f"reading the Auto Scaling group {name}: the answer lacks or garbles {error}") from None


def _purchase(row: Mapping[str, Any], types: tuple[str, ...]) -> Purchase:
    mixed = sendable(row.get("MixedInstancesPolicy") or {})
    distribution = mixed.get("InstancesDistribution", {})
    overrides = mixed.get("LaunchTemplate", {}).get("Overrides", [])
    return Purchase(
        on_demand_base=int(distribution.get("OnDemandBaseCapacity", 0)),
        on_demand_percent=int(distribution.get("OnDemandPercentageAboveBaseCapacity", 100)),
        spot_strategy=str(distribution.get("SpotAllocationStrategy", "")),
        instance_types=types,
        attribute_based=any(found.get("InstanceRequirements") for found in overrides),
        weighted=any(found.get("WeightedCapacity") for found in overrides),
        mixed=mixed,
        template=template_of(row),
    )


def mode_of(tags: Mapping[str, str], name: str) -> Mode:
    """The mode that the tags declare; OFF without the tag, InputError for a word that is none."""
    text = tags.get(MODE_TAG, Mode.OFF.value)
    try:
        return Mode(text)
    except ValueError:
        allowed = ", ".join(mode.value for mode in Mode)
        raise InputError(f"the tag {MODE_TAG} of {name} is {text!r}; it may be {allowed}") from None
