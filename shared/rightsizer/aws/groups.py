"""Auto Scaling groups and EC2 instances: GroupReader and GroupChanger.

Sources: EC2 Auto Scaling API reference, DescribeAutoScalingInstances, DescribeAutoScalingGroups, DetachInstances,
TerminateInstanceInAutoScalingGroup. A row that cannot be understood raises InputError.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import code_of, translate_read_errors, translate_write_errors
from rightsizer.domain.endpoint import MODE_TAG, Mode
from rightsizer.domain.ownership import handler_of, named_owner, owner_of
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.scaling_group import (
    AutoScalingGroup,
    ForeignInstance,
    GroupMember,
    InstanceHome,
    PurchaseOptions,
    ReplacementMethod,
    UngroupedInstance,
)
from rightsizer.errors import InputError, RightsizerError, VanishedError
from rightsizer.ports.spot import UnreadGroup
from rightsizer.telemetry import Failure, attempt

if TYPE_CHECKING:
    from types_boto3_autoscaling import AutoScalingClient
    from types_boto3_ec2 import EC2Client

DEAD = frozenset({"terminated", "shutting-down"})
FALLBACK_TAG = "rightsizer:fallback"


class Groups:
    """Reads groups and instances; keeps the promises of `ports.spot.GroupReader`."""

    def __init__(self, autoscaling: "AutoScalingClient", ec2: "EC2Client", region: str) -> None:
        self._autoscaling, self._ec2, self._region = autoscaling, ec2, region

    def find(self, instance_id: str) -> InstanceHome:
        """Where an instance belongs: one call for a member of a group, two for any other."""
        with translate_read_errors("autoscaling:DescribeAutoScalingInstances", f"finding the group of {instance_id}"):
            rows = self._autoscaling.describe_auto_scaling_instances(InstanceIds=[instance_id])["AutoScalingInstances"]
        for row in rows:
            return GroupMember(
                instance_id,
                row["AutoScalingGroupName"],
                row["LifecycleState"],
                row.get("InstanceType", ""),
                row["AvailabilityZone"],
            )
        return self._ungrouped_instance(instance_id)

    def _ungrouped_instance(self, instance_id: str) -> UngroupedInstance | ForeignInstance:
        try:
            with translate_read_errors("ec2:DescribeInstances", f"looking up {instance_id}"):
                pages = self._ec2.describe_instances(InstanceIds=[instance_id])
        except RightsizerError as error:
            cause = error.__cause__
            if isinstance(cause, ClientError) and code_of(cause).startswith("InvalidInstanceID"):
                return ForeignInstance(instance_id)
            raise
        for reservation in pages["Reservations"]:
            for row in reservation.get("Instances", []):
                if row.get("State", {}).get("Name") in DEAD:
                    return ForeignInstance(instance_id)
                tags = {tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", [])}
                zone = row.get("Placement", {}).get("AvailabilityZone", "")
                return UngroupedInstance(instance_id, handler_of(tags), str(row.get("InstanceType", "")), zone)
        return ForeignInstance(instance_id)

    def groups(self, now: datetime) -> Iterator[AutoScalingGroup | UnreadGroup]:
        """Every group that may buy Spot or carries the opt-in tag; one that cannot be read stops no other."""
        pages = self._autoscaling.get_paginator("describe_auto_scaling_groups").paginate()
        with translate_read_errors("autoscaling:DescribeAutoScalingGroups", "listing the Auto Scaling groups"):
            rows = [row for page in pages for row in page["AutoScalingGroups"]]
        yield from self.groups_of_rows(rows, now)

    def groups_of_rows(
        self, rows: Iterable[Mapping[str, Any]], now: datetime
    ) -> Iterator[AutoScalingGroup | UnreadGroup]:
        """The groups of these rows that are ours to look at; one that AWS describes oddly is Unread."""
        for row in rows:
            found = attempt(
                "reading a group", str(row.get("AutoScalingGroupName")), partial(self._wanted_group, row, now)
            )
            if isinstance(found, Failure):
                yield UnreadGroup(str(row.get("AutoScalingGroupName")), Reason(Code.READ_FAILED, str(found)))
            elif found is not None:
                yield found

    def _wanted_group(self, row: Mapping[str, Any], now: datetime) -> AutoScalingGroup | UnreadGroup | None:
        return self._group(row, now) if is_wanted(row) else None

    def live_group(self, name: str, now: datetime) -> AutoScalingGroup | UnreadGroup:
        """One group as it stands now; VanishedError when it is gone."""
        with translate_read_errors("autoscaling:DescribeAutoScalingGroups", f"reading the group {name}"):
            rows: Any = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        for row in rows["AutoScalingGroups"]:
            return self._group(row, now)
        raise VanishedError(f"reading the group {name}: it no longer exists")

    def _group(self, row: Mapping[str, Any], now: datetime) -> AutoScalingGroup | UnreadGroup:
        name = str(row.get("AutoScalingGroupName", ""))
        try:
            types = named_types(row) or self._template_types(name, template_of(row))
            return group_of(row, self._region, types, self._has_waiting_hook(name), now)
        except InputError as error:
            return UnreadGroup(name or "a group without a name", Reason(Code.READ_FAILED, str(error)))
        except RightsizerError as error:
            return UnreadGroup(name, reason_of(error))

    def _has_waiting_hook(self, group: str) -> bool:
        with translate_read_errors("autoscaling:DescribeLifecycleHooks", f"reading the lifecycle hooks of {group}"):
            hooks = self._autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
        return any(hook.get("LifecycleTransition") == "autoscaling:EC2_INSTANCE_TERMINATING" for hook in hooks)

    def _template_types(self, group: str, template: Mapping[str, str]) -> tuple[str, ...]:
        if not template:
            return ()
        by = {key: template[key] for key in ("LaunchTemplateId",) if key in template} or {
            "LaunchTemplateName": template["LaunchTemplateName"]
        }
        version = template.get("Version") or "$Default"
        with translate_read_errors("ec2:DescribeLaunchTemplateVersions", f"reading the launch template of {group}"):
            found: Any = self._ec2.describe_launch_template_versions(Versions=[version], **by)  # type: ignore[arg-type]
        data = [row.get("LaunchTemplateData", {}) for row in found["LaunchTemplateVersions"]]
        return tuple(kind for row in data if (kind := row.get("InstanceType")))


class GroupWrites:
    """Writes to groups; keeps the promises of `ports.spot.GroupChanger`. No call here can lower a capacity."""

    def __init__(self, autoscaling: "AutoScalingClient") -> None:
        self._autoscaling = autoscaling

    def replace(self, group: str, instance_id: str, way: ReplacementMethod) -> None:
        """Ask for a replacement of the instance; the desired capacity stays."""
        with translate_write_errors(f"autoscaling:{way}", f"replacing {instance_id} in {group}"):
            if way is ReplacementMethod.DETACH:
                self._autoscaling.detach_instances(
                    InstanceIds=[instance_id], AutoScalingGroupName=group, ShouldDecrementDesiredCapacity=False
                )
            else:
                self._autoscaling.terminate_instance_in_auto_scaling_group(
                    InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
                )


def is_wanted(row: Mapping[str, Any]) -> bool:
    """Whether the group may buy Spot or carries our tag; other groups are none of our business."""
    distribution = row.get("MixedInstancesPolicy", {}).get("InstancesDistribution", {})
    buys_spot = bool(distribution) and distribution.get("OnDemandPercentageAboveBaseCapacity", 100) < 100
    return buys_spot or any(tag.get("Key") == MODE_TAG for tag in row.get("Tags", []))


def template_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The LaunchTemplateSpecification that the group uses; empty for a launch configuration."""
    mixed = row.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    found = mixed.get("LaunchTemplateSpecification") or row.get("LaunchTemplate") or {}
    return {key: str(value) for key, value in found.items()}


def sendable_policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    """A MixedInstancesPolicy as it was described, fit for a request: a launch template by its id or its name.

    The description has both; a request with both is refused (API, LaunchTemplateSpecification). A number of Spot pools
    goes with lowest-price only, where it is at least 1 (API, InstancesDistribution).
    """
    distribution = dict(policy.get("InstancesDistribution") or {})
    by_price = distribution.get("SpotAllocationStrategy") in (None, "", "lowest-price")
    if not by_price or not distribution.get("SpotInstancePools"):
        distribution.pop("SpotInstancePools", None)
    policy = {**policy, **({"InstancesDistribution": distribution} if "InstancesDistribution" in policy else {})}
    template = policy.get("LaunchTemplate")
    if not template:
        return dict(policy)
    rows = [_template_reference(row) for row in template.get("Overrides", [])]
    return {**policy, "LaunchTemplate": _template_reference(template) | ({"Overrides": rows} if rows else {})}


def _template_reference(row: Mapping[str, Any]) -> dict[str, Any]:
    found = row.get("LaunchTemplateSpecification")
    if not found or "LaunchTemplateId" not in found:
        return dict(row)
    kept = {key: value for key, value in found.items() if key != "LaunchTemplateName"}
    return {**row, "LaunchTemplateSpecification": kept}


def named_types(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Types that the overrides name, else those that run; empty when only the launch template names one."""
    overrides = row.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {}).get("Overrides", [])
    named = [str(found["InstanceType"]) for found in overrides if found.get("InstanceType")]
    if not named and any(found.get("InstanceRequirements") for found in overrides):
        named = sorted({str(found["InstanceType"]) for found in row.get("Instances", []) if found.get("InstanceType")})
    return tuple(dict.fromkeys(named))


def group_of(
    row: Mapping[str, Any], region: str, types: tuple[str, ...], waits: bool, now: datetime
) -> AutoScalingGroup:
    """The group; InputError names the group and what is wrong with it."""
    try:
        tags = {str(tag["Key"]): str(tag.get("Value", "")) for tag in row.get("Tags", [])}
        return AutoScalingGroup(
            name=str(row["AutoScalingGroupName"]),
            arn=str(row.get("AutoScalingGroupARN", "")),
            region=region,
            mode=mode_of(tags, str(row["AutoScalingGroupName"])),
            owner=named_owner(tags),
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


def _purchase(row: Mapping[str, Any], types: tuple[str, ...]) -> PurchaseOptions:
    mixed = sendable_policy(row.get("MixedInstancesPolicy") or {})
    distribution = mixed.get("InstancesDistribution", {})
    overrides = mixed.get("LaunchTemplate", {}).get("Overrides", [])
    return PurchaseOptions(
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
