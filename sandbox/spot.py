"""Spot in the sandbox: Auto Scaling groups, pools and EC2's answers about them, added to an account.

with Sandbox() as box:
    spot = add_spot(box)
    spot.group("gpu", types=["g5.xlarge"], desired=4)
    spot.groups.warn(spot.members("gpu")[0])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.account import Sandbox
from sandbox.spot_groups import AutoScaling, SimGroup
from sandbox.spot_jobs import Jobs
from sandbox.spot_pools import Ec2Spot, Pools

SPOT_ONLY = {
    "OnDemandBaseCapacity": 0,
    "OnDemandPercentageAboveBaseCapacity": 0,
    "SpotAllocationStrategy": "lowest-price",
}


@dataclass(frozen=True, slots=True)
class Spot:
    """The Spot side of one account."""

    box: Sandbox
    pools: Pools
    groups: AutoScaling
    ec2: Ec2Spot
    jobs: Jobs

    def group(
        self,
        name: str,
        *,
        types: Sequence[str] = ("g5.xlarge",),
        zones: Sequence[str] = ("eu-west-1a", "eu-west-1b", "eu-west-1c"),
        desired: int = 4,
        maximum: int = 8,
        mode: str = "auto",
        **more: Any,
    ) -> SimGroup:
        """A Spot group in service, opted in unless `mode` says otherwise (empty: no tag)."""
        tags = {"rightsizer:mode": mode} if mode else {}
        tags |= more.pop("tags", {})
        mixed = {
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "$Latest"},
                "Overrides": [{"InstanceType": kind} for kind in types],
            },
            "InstancesDistribution": dict(SPOT_ONLY),
        }
        suspended = more.pop("suspended", set())
        opted_in = {key: value for key, value in tags.items() if key == "rightsizer:mode"}
        more = {"mixed": mixed, "template_tags": opted_in, **more}
        group = SimGroup(name, 0, maximum, desired, list(types), list(zones), tags, **more)
        self.groups.add(group)
        group.suspended = set(suspended)
        return group

    def members(self, name: str) -> list[str]:
        """Ids of the group's instances."""
        return [found.id for found in self.groups.groups[name].instances]

    def empty(self, name: str) -> None:
        """No pool of the group has room any more."""
        group = self.groups.groups[name]
        self.pools.room.update({(kind, zone): 0 for kind in group.types for zone in group.zones})


def add_spot(box: Sandbox) -> Spot:
    """Let the account have Spot pools and Auto Scaling groups of the sandbox's own."""
    pools = Pools()
    groups = AutoScaling(box.world, pools)
    ec2 = Ec2Spot(box.world, pools, groups)
    box.world.offer("autoscaling", groups)
    box.world.offer("ec2", ec2)
    jobs = Jobs(box.world)
    box.world.offer("sagemaker", jobs)
    box.clock.drive(groups)
    return Spot(box, pools, groups, ec2, jobs)
