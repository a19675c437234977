"""EC2 Spot and Auto Scaling events to triggers.

Shapes: EC2 User Guide, "Spot Instance interruption notices" and "Rebalance recommendations"; EC2 Auto Scaling User
Guide, "Event reference". The Spot event's ARN carries the zone where others carry the Region, and no account.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rightsizer.domain.reason import one_line
from rightsizer.domain.trigger import InstanceMoved, LaunchFailed, RebalanceRecommended, SpotInterruption, Trigger
from rightsizer.intake.fields import Envelope, EventModel, GroupName, Name, Parsers, Text, read_model

INTERRUPTION = "EC2 Spot Instance Interruption Warning"
REBALANCE = "EC2 Instance Rebalance Recommendation"
STATE_CHANGE = "EC2 Instance State-change Notification"
LAUNCH_FAILED = "EC2 Instance Launch Unsuccessful"

_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+(-[a-z]+-\d+)?[a-z]")
"""An Availability or Local Zone, such as ``us-east-2a``; a Region has no letter at the end."""


InstanceId = Annotated[str, StringConstraints(max_length=60, pattern=r"^i-[0-9a-zA-Z]+$")]
"""EC2's ids are ``i-`` and eight or seventeen digits today (EC2 User Guide, "Resource IDs"); longer ones may come."""


class Warned(EventModel):
    instance_id: InstanceId = Field(alias="instance-id")
    action: Literal["terminate", "stop", "hibernate"] = Field(alias="instance-action")


class Instance(EventModel):
    instance_id: InstanceId = Field(alias="instance-id")


class InstanceStateChange(EventModel):
    instance_id: InstanceId = Field(alias="instance-id")
    state: Name


class Where(EventModel):
    zone: Text = Field("", alias="Availability Zone")


class Launch(EventModel):
    group: GroupName = Field(alias="AutoScalingGroupName")
    activity: Name = Field(alias="ActivityId")
    message: Text = Field("", alias="StatusMessage")
    where: Where | None = Field(None, alias="Details")


def parse_interruption(event: Mapping[str, Any]) -> Trigger:
    """EC2 takes a Spot instance back in two minutes (at once for hibernation)."""
    envelope = read_model(Envelope[Warned], event, INTERRUPTION)
    warned = envelope.detail
    key = f"{warned.instance_id}:{INTERRUPTION}"
    return SpotInterruption(warned.instance_id, warned.action, _zone(envelope.resources), envelope.time, key)


def parse_rebalance(event: Mapping[str, Any]) -> Trigger:
    """EC2 sees an elevated risk of interruption."""
    envelope = read_model(Envelope[Instance], event, REBALANCE)
    found = envelope.detail.instance_id
    return RebalanceRecommended(found, envelope.time, f"{found}:{REBALANCE}")


def parse_instance_state(event: Mapping[str, Any]) -> Trigger:
    """An instance changed state."""
    envelope = read_model(Envelope[InstanceStateChange], event, STATE_CHANGE)
    state_change = envelope.detail
    state = one_line(state_change.state, 60)
    key = f"{state_change.instance_id}:{state}:{envelope.time.isoformat()}"
    return InstanceMoved(state_change.instance_id, state, envelope.time, key)


def parse_launch_failure(event: Mapping[str, Any]) -> Trigger:
    """An Auto Scaling group could not launch an instance; the message says whether capacity was missing."""
    envelope = read_model(Envelope[Launch], event, LAUNCH_FAILED)
    launch = envelope.detail
    zone = launch.where.zone if launch.where else ""
    message = one_line(launch.message, 1024)
    return LaunchFailed(launch.group, one_line(zone, 60), message, envelope.time, f"{launch.group}:{launch.activity}")


def _zone(resources: tuple[str, ...]) -> str:
    parts = resources[0].split(":") if resources else []
    return parts[3] if len(parts) > 3 and _ZONE.fullmatch(parts[3]) else ""


PARSERS: Parsers = {
    ("aws.ec2", INTERRUPTION): parse_interruption,
    ("aws.ec2", REBALANCE): parse_rebalance,
    ("aws.ec2", STATE_CHANGE): parse_instance_state,
    ("aws.autoscaling", LAUNCH_FAILED): parse_launch_failure,
}
