"""Auto Scaling groups of the simulated account: they hold their desired capacity, launch into pools and may be refused.

Sources: EC2 Auto Scaling API reference (texts of refusals as seen in public reports) and User Guide: lifecycle of an
instance, suspend and resume processes, capacity rebalancing, scale-in protection. moto's own replaces at once, knows no
pools and keeps the machine's time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.refusals import AwsRefusal
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.spot_pools import Pools
    from sandbox.world import World

type Params = dict[str, Any]

BOOT = timedelta(minutes=5)
NOTICE = timedelta(minutes=2)
RETRY = timedelta(minutes=1)
NO_ROOM = (
    "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available that matches "
    "your request. Launching EC2 instance failed."
)


@dataclass(eq=False, slots=True)
class SimInstance:
    """One instance of a group, or one that was detached and lives on until EC2 takes it."""

    id: str
    type: str
    zone: str
    launched: datetime
    lifecycle: str = "Pending"
    protected: bool = False
    spot: bool = True
    taken_at: datetime | None = None
    """When EC2 takes it back; None while it may stay."""


@dataclass(eq=False, slots=True)
class SimGroup:
    """One Auto Scaling group."""

    name: str
    minimum: int
    maximum: int
    desired: int
    types: list[str]
    zones: list[str]
    tags: dict[str, str]
    mixed: Params = field(default_factory=dict)
    template_tags: dict[str, str] = field(default_factory=dict)
    """Tags of its launch templates."""
    subnets: str = ""
    capacity_rebalance: bool = False
    hooks: list[str] = field(default_factory=list)
    """Transitions with a lifecycle hook."""
    suspended: set[str] = field(default_factory=set)
    instances: list[SimInstance] = field(default_factory=list)
    retry_at: datetime | None = None
    wanted: list[int] = field(default_factory=list)
    """Every value that the desired capacity has had."""

    @property
    def serving(self) -> int:
        """Instances in service."""
        return sum(1 for found in self.instances if found.lifecycle == "InService")

    def counted(self) -> list[SimInstance]:
        """Instances that count towards the desired capacity."""
        return [found for found in self.instances if not found.lifecycle.startswith(("Terminat", "Detach"))]


class AutoScaling:
    """One method for each simulated operation; groups keep themselves at their desired capacity as time passes."""

    def __init__(self, world: "World", pools: "Pools") -> None:
        self._world, self._pools = world, pools
        self.groups: dict[str, SimGroup] = {}
        self.detached: dict[str, SimInstance] = {}
        self._serial = 0

    # what a test or the demo asks

    def add(self, group: SimGroup) -> SimGroup:
        """A group whose instances run already."""
        self.groups[group.name] = group
        group.wanted.append(group.desired)
        self._fill(group)
        for found in group.instances:
            found.lifecycle = "InService"
        return group

    def warn(self, instance_id: str) -> None:
        """EC2 takes the instance back in two minutes and says so."""
        found = self._instance(instance_id)[1]
        found.taken_at = self._world.clock.now + NOTICE
        arn = f"arn:aws:ec2:{found.zone}:instance/{instance_id}"  # the zone, and no account, as EC2 sends it
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        self._world.emit("aws.ec2", "EC2 Spot Instance Interruption Warning", [arn], detail)

    def described(self, instance_id: str) -> Params | None:
        """The instance as EC2 describes it, or None."""
        held = [found for group in self.groups.values() for found in group.instances if found.id == instance_id]
        for found in [*held, *filter(None, [self.detached.get(instance_id)])]:
            return {
                "InstanceId": found.id,
                "InstanceType": found.type,
                "Placement": {"AvailabilityZone": found.zone},
                "State": {"Code": 16, "Name": "running"},
                "Tags": [],
            }
        return None

    # time

    def next_due(self, now: datetime) -> datetime | None:
        """The next boot that ends, loss, or retry."""
        dues = [found.launched + BOOT for found in self._all() if found.lifecycle == "Pending"]
        dues += [found.taken_at for found in self._all() if found.taken_at]
        dues += [found.taken_at for found in self.detached.values() if found.taken_at]
        dues += [group.retry_at for group in self.groups.values() if group.retry_at]
        return min((due for due in dues if due > now), default=None)

    def happen(self, now: datetime) -> None:
        """Boots end, interrupted instances go, groups fill up."""
        self.detached = {key: found for key, found in self.detached.items() if not _gone(found, now)}
        for group in self.groups.values():
            group.instances = [found for found in group.instances if not _gone(found, now)]
            for found in group.instances:
                if found.lifecycle == "Pending" and found.launched + BOOT <= now:
                    found.lifecycle = "InService"
            self._fill(group)

    # operations

    def DescribeAutoScalingInstances(self, p: Params) -> Params:
        """Members by id; ids that no group holds are left out, without an error."""
        asked = p.get("InstanceIds")
        rows = [
            {
                "InstanceId": found.id,
                "InstanceType": found.type,
                "AutoScalingGroupName": group.name,
                "AvailabilityZone": found.zone,
                "LifecycleState": found.lifecycle,
                "HealthStatus": "HEALTHY",
                "ProtectedFromScaleIn": found.protected,
            }
            for group in self.groups.values()
            for found in group.instances
            if asked is None or found.id in asked
        ]
        return {"AutoScalingInstances": rows}

    def DescribeAutoScalingGroups(self, p: Params) -> Params:
        """Groups by name, or all."""
        asked = p.get("AutoScalingGroupNames")
        return {"AutoScalingGroups": [self._row(g) for g in self.groups.values() if not asked or g.name in asked]}

    def DescribeLifecycleHooks(self, p: Params) -> Params:
        """The group's hooks."""
        group = self._group(p["AutoScalingGroupName"], "DescribeLifecycleHooks")
        rows = [
            {"LifecycleHookName": f"hook-{n}", "AutoScalingGroupName": group.name, "LifecycleTransition": transition}
            for n, transition in enumerate(group.hooks)
        ]
        return {"LifecycleHooks": rows}

    def DetachInstances(self, p: Params) -> Params:
        """Take instances out; they live on. Without decrement the group starts others."""
        group = self._group(p["AutoScalingGroupName"], "DetachInstances")
        for instance_id in p.get("InstanceIds", []):
            found = next((held for held in group.instances if held.id == instance_id), None)
            if found is None and on("DetachInstances", "member"):
                text = f"The instance {instance_id} is not part of Auto Scaling group {group.name}."
                raise AwsRefusal("ValidationError", text)
            assert found is not None
            if found.lifecycle not in ("InService", "Standby"):
                text = f"The instance {instance_id} is in {found.lifecycle} and cannot be detached."
                raise AwsRefusal("ValidationError", text)
            group.instances.remove(found)
            found.lifecycle = "Detached"
            self.detached[found.id] = found
            if p["ShouldDecrementDesiredCapacity"]:
                self._want(group, group.desired - 1)
        self._fill(group)
        return {"Activities": []}

    def TerminateInstanceInAutoScalingGroup(self, p: Params) -> Params:
        """End an instance; a terminating hook holds it first."""
        try:
            group, found = self._instance(p["InstanceId"])
        except KeyError:
            if not on("TerminateInstanceInAutoScalingGroup", "member"):
                raise
            text = f"Instance Id not found - No managed instance found for instance ID: {p['InstanceId']}"
            raise AwsRefusal("ValidationError", text) from None
        found.lifecycle = "Terminating:Wait" if group.hooks else "Terminating"
        found.taken_at = found.taken_at or self._world.clock.now + NOTICE
        if p["ShouldDecrementDesiredCapacity"]:
            self._want(group, group.desired - 1)
        self._fill(group)
        return {"Activity": {"ActivityId": self._world.unique(), "AutoScalingGroupName": group.name, "Cause": "asked",
                             "StartTime": self._world.clock.now, "StatusCode": "InProgress"}}  # fmt: skip

    def UpdateAutoScalingGroup(self, p: Params) -> Params:
        """Set what is given; a mixed instances policy replaces its parts, the rest stays."""
        group = self._group(p["AutoScalingGroupName"], "UpdateAutoScalingGroup")
        if "MixedInstancesPolicy" in p:
            group.mixed = p["MixedInstancesPolicy"]
            overrides = group.mixed.get("LaunchTemplate", {}).get("Overrides", [])
            group.types = [row["InstanceType"] for row in overrides if "InstanceType" in row] or group.types
        group.subnets = p.get("VPCZoneIdentifier", group.subnets)
        if "DesiredCapacity" in p:
            self._want(group, p["DesiredCapacity"])
        self._fill(group)
        return {}

    # inside

    def _fill(self, group: SimGroup) -> None:
        """Launch what is missing: On-Demand up to its share, Spot in the first pool that has room."""
        group.retry_at = None
        if "Launch" in group.suspended:
            return
        while len(group.counted()) < min(group.desired, group.maximum):
            if not self._launch(group):
                group.retry_at = self._world.clock.now + RETRY
                return

    def _launch(self, group: SimGroup) -> bool:
        distribution = group.mixed.get("InstancesDistribution", {})
        on_demand = sum(1 for found in group.counted() if not found.spot)
        if on_demand < distribution.get("OnDemandBaseCapacity", 0):
            self._start(group, group.types[0], group.zones[0], spot=False)
            return True
        for zone in sorted(group.zones, key=lambda zone: sum(1 for found in group.counted() if found.zone == zone)):
            for kind in group.types:
                if self._pools.take((kind, zone)):
                    self._start(group, kind, zone, spot=True)
                    return True
        self._refused(group)
        return False

    def _start(self, group: SimGroup, kind: str, zone: str, spot: bool) -> None:
        self._serial += 1
        started = SimInstance(f"i-{self._serial:017x}", kind, zone, self._world.clock.now, spot=spot)
        group.instances.append(started)

    def _refused(self, group: SimGroup) -> None:
        now = self._world.clock.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        for zone in group.zones:
            detail = {
                "StatusCode": "Failed",
                "AutoScalingGroupName": group.name,
                "ActivityId": self._world.unique(),
                "Details": {"Availability Zone": zone, "Subnet ID": "subnet-0123456789abcdef0"},
                "RequestId": self._world.unique(),
                "StatusMessage": NO_ROOM,
                "StartTime": now,
                "EndTime": now,
                "EC2InstanceId": "",
                "Cause": "An instance was started to reach the desired capacity.",
                "Origin": "EC2",
                "Destination": "AutoScalingGroup",
            }
            self._world.emit("aws.autoscaling", "EC2 Instance Launch Unsuccessful", [self._arn(group)], detail)

    def _want(self, group: SimGroup, desired: int) -> None:
        if not group.minimum <= desired <= group.maximum and on("UpdateAutoScalingGroup", "desired"):
            raise AwsRefusal("ValidationError", f"Desired capacity:{desired} must be between the minimum and maximum")
        group.desired = desired
        group.wanted.append(desired)

    def _row(self, group: SimGroup) -> Params:
        row: Params = {
            "AutoScalingGroupName": group.name,
            "AutoScalingGroupARN": self._arn(group),
            "MinSize": group.minimum,
            "MaxSize": group.maximum,
            "DesiredCapacity": group.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": group.zones,
            "VPCZoneIdentifier": group.subnets,
            "HealthCheckType": "EC2",
            "CreatedTime": self._world.clock.now,
            "CapacityRebalance": group.capacity_rebalance,
            "SuspendedProcesses": [{"ProcessName": name} for name in sorted(group.suspended)],
            "Tags": [{"Key": key, "Value": value, "ResourceId": group.name, "ResourceType": "auto-scaling-group",
                      "PropagateAtLaunch": False} for key, value in group.tags.items()],
            "Instances": [{"InstanceId": i.id, "InstanceType": i.type, "AvailabilityZone": i.zone,
                           "LifecycleState": i.lifecycle, "HealthStatus": "Healthy",
                           "ProtectedFromScaleIn": i.protected} for i in group.instances],
        }  # fmt: skip
        return row | ({"MixedInstancesPolicy": group.mixed} if group.mixed else {})

    def _arn(self, group: SimGroup) -> str:
        return self._world.arn("autoscaling", f"autoScalingGroup:0000:autoScalingGroupName/{group.name}")

    def _group(self, name: str, operation: str) -> SimGroup:
        if name not in self.groups and on(operation, "group"):
            raise AwsRefusal("ValidationError", "AutoScalingGroup name not found - null")
        return self.groups[name]

    def _instance(self, instance_id: str) -> tuple[SimGroup, SimInstance]:
        for group in self.groups.values():
            for found in group.instances:
                if found.id == instance_id:
                    return group, found
        raise KeyError(instance_id)

    def _all(self) -> Iterator[SimInstance]:
        return (found for group in self.groups.values() for found in group.instances)


def _gone(found: SimInstance, now: datetime) -> bool:
    return found.taken_at is not None and found.taken_at <= now
