"""What to do when EC2 takes an instance back, or says that it may."""

import re
from datetime import datetime, timedelta
from typing import assert_never

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import (
    AutoScalingGroup,
    ForeignInstance,
    GroupMember,
    Handler,
    InstanceHome,
    LeaveAlone,
    Note,
    Reaction,
    Replace,
    ReplacementMethod,
    UngroupedInstance,
)
from rightsizer.domain.trigger import InstanceMoved, LaunchFailed, RebalanceRecommended, SpotInterruption

TOO_OLD = timedelta(seconds=120)
"""EC2 gives two minutes: an older warning speaks of an instance that is gone."""
FACTS_LAST = timedelta(hours=48)
"""The sweep reads groups hourly; facts older than this mean that it does not run."""
NO_CAPACITY = ("InsufficientInstanceCapacity", "no Spot capacity", "UnfulfillableCapacity", "SpotMaxPriceTooLow")
"""What Auto Scaling's StatusMessage says when a pool has nothing to give."""
_GPU = re.compile(r"(g|gr|p)\d")
"""EC2's accelerated families with GPUs: G, GR and P (EC2 User Guide, instance type naming)."""


def stale_note(event: SpotInterruption, now: datetime) -> Note | None:
    """The note of a warning that came too late to act on, or None; asked before anything is read."""
    age = now - event.at
    if age <= TOO_OLD:
        return None
    sentence = (
        f"the warning of {event.instance_id} is {age.total_seconds():.0f} s old, more than "
        f"{TOO_OLD.total_seconds():.0f} s: recorded, nothing changed"
    )
    return Note(Reason(Code.STALE, sentence))


def reaction_to(
    event: SpotInterruption, found: InstanceHome, group: AutoScalingGroup | None, now: datetime, resumed: bool = False
) -> Reaction:
    """Reaction to a warning about one instance.

    Replaces only in groups that opted in and that nobody else looks after.

    `resumed`: an earlier try was cut off, so an instance without a group may be one that it took out.
    """
    if (late := stale_note(event, now)) is not None:
        return late
    if resumed and isinstance(found, UngroupedInstance | ForeignInstance):
        sentence = f"{event.instance_id} left its group after an earlier try that was cut off: the group replaces it"
        return _note(Code.INSTANCE_GONE, sentence)
    match found:
        case ForeignInstance():
            return _note(Code.FOREIGN_INSTANCE, f"{event.instance_id} is no instance of this account, or is gone")
        case UngroupedInstance(handler=Handler.NOBODY):
            sentence = f"{event.instance_id} is in no Auto Scaling group: nothing replaces it; move it into a group"
            return _note(Code.NO_GROUP, sentence)
        case UngroupedInstance():
            return LeaveAlone(_handler_reason(event.instance_id, found.handler))
        case GroupMember():
            return _member_reaction(found, group, now)
        case _:
            assert_never(found)


def _member_reaction(member: GroupMember, group: AutoScalingGroup | None, now: datetime) -> Reaction:
    if group is None or group.mode is not Mode.AUTO:
        sentence = (
            f"the Auto Scaling group {member.group} has not opted in: {member.instance_id} is replaced when the group "
            "notices the loss; the tag rightsizer:mode=auto on the group starts the replacement two minutes earlier"
        )
        return _note(Code.NOT_OPTED_IN, sentence)
    if group.handler is Handler.CAPACITY_REBALANCE:
        sentence = f"{group.name} replaces {member.instance_id} itself: Capacity Rebalancing is on"
        return LeaveAlone(Reason(Code.REPLACES_ITSELF, sentence))
    if group.handler is not Handler.NOBODY:
        return LeaveAlone(_handler_reason(member.instance_id, group.handler))
    if (hindrance := _hindrance(member, group, now)) is not None:
        return LeaveAlone(hindrance)
    way = (
        ReplacementMethod.TERMINATE
        if group.terminating_hook and "Terminate" not in group.suspended
        else ReplacementMethod.DETACH
    )
    sentence = (
        f"{member.instance_id} ({member.instance_type} in {member.zone}) is being taken back: {way} in {group.name}, "
        f"desired capacity stays {group.desired}"
    )
    return Replace(group.name, member.instance_id, way, Reason(Code.INTERRUPTED, sentence))


def _hindrance(member: GroupMember, group: AutoScalingGroup, now: datetime) -> Reason | None:
    if now - group.read_at > FACTS_LAST:
        hours = (now - group.read_at).total_seconds() / 3600
        sentence = f"what is known of {group.name} is {hours:.0f} h old: is the sweep running? Nothing changed"
        return Reason(Code.STALE, sentence)
    if member.lifecycle.startswith(("Terminating", "Terminated", "Detaching", "Detached")):
        return Reason(Code.INSTANCE_GONE, f"{member.instance_id} is leaving {group.name} already ({member.lifecycle})")
    if member.lifecycle != "InService":
        sentence = f"{member.instance_id} is {member.lifecycle} in {group.name} and serves nothing: left to the group"
        return Reason(Code.NOT_SERVING, sentence)
    if "Launch" in group.suspended:
        sentence = (
            f"{group.name} has Launch suspended: taking {member.instance_id} out would lose capacity two minutes "
            "early and bring nothing; resume Launch"
        )
        return Reason(Code.LAUNCH_SUSPENDED, sentence)
    return None


def note_of(event: RebalanceRecommended | InstanceMoved | LaunchFailed) -> Note:
    """The note of an event that is recorded and counted, never acted on."""
    match event:
        case RebalanceRecommended():
            sentence = f"{event.instance_id} has a raised risk of interruption: recorded, not acted on"
        case InstanceMoved():
            sentence = f"{event.instance_id} is {event.state}"
        case LaunchFailed():
            where = f" in {event.zone}" if event.zone else ""
            sentence = f"{event.group} could not launch an instance{where}: {event.message or 'no cause given'}"
            if is_capacity_failure(event):
                return Note(Reason(Code.NO_OPEN_POOL, sentence))
        case _:
            assert_never(event)
    return Note(Reason(Code.RECORDED_ONLY, sentence))


def has_gpu_name(instance_type: str) -> bool:
    """Whether EC2's name of a type is one of the GPU families; other capacity is recorded, not told."""
    return _GPU.match(instance_type) is not None


def is_capacity_failure(event: LaunchFailed) -> bool:
    """Whether the launch failed because the pools have nothing to give, and not for a fault of the group."""
    return any(words in event.message for words in NO_CAPACITY)


def _handler_reason(instance_id: str, handler: Handler) -> Reason:
    return Reason(Code.SOMEONE_ELSE_HANDLES, f"{instance_id} is looked after by {handler}: left alone")


def _note(code: Code, sentence: str) -> Note:
    return Note(Reason(code, sentence))
