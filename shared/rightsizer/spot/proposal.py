"""From better capacity to the question: one capacity change for each group and policy, approved by itself only
where safe.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy, ManualStep, PoolRelease
from rightsizer.domain.endpoint import MODE_TAG, Mode
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.job import Handover, NoHandover, ReleaseWarmPool, TrainingJob
from rightsizer.domain.plan import region_of_arn, region_option
from rightsizer.domain.proposal import DecidedBy, Decision, DecisionSource, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import AutoScalingGroup, CapacityOption, Handler, Outlook

STAND_IN = timedelta(hours=1)
"""How long On-Demand stands in before Spot is tried again; marks of pools last 24 minutes at most."""


def is_proven_hardware(present: Sequence[InstanceType], wanted: Sequence[InstanceType]) -> bool:
    """Whether every wanted type has a GPU model that the group runs already: then images and drivers are proven."""
    held = {kind.accelerator.model for kind in present if kind.accelerator}
    return all(kind.accelerator is not None and kind.accelerator.model in held for kind in wanted)


def group_capacity_change(
    option: CapacityOption, group: AutoScalingGroup, *, writes: bool, safe: bool, days: int, now: datetime
) -> CapacityChange:
    """The question about a group's policy. Asked once for a policy: the same old policy has the same id.

    Approved by the policy itself in automatic mode where it is `safe`: the same GPU models, and nothing dearer.
    """
    enable = _group_enable(group, writes)
    automatic = group.mode is Mode.AUTO and not enable and safe and option.saving_usd_per_month >= 0
    work = GroupPolicy(group.name, option.undo["MixedInstancesPolicy"], option.request["MixedInstancesPolicy"])
    return CapacityChange(
        id=_id(work.kind, group.arn or group.name, json.dumps(work.old, sort_keys=True, default=str)),
        subject=group.name,
        owner=group.owner,
        work=work,
        headline=_headline(option),
        reason=option.reasons[0],
        created_at=now,
        expires_at=now + timedelta(days=days),
        state=ProposalState.APPROVED if automatic else ProposalState.PENDING,
        approvable=not enable,
        enable=enable,
        facts=_facts(option),
        not_checked=option.not_checked,
        region=group.region,
        decision=_automatic_decision(now) if automatic else None,
    )


def stand_in_capacity_change(
    group: AutoScalingGroup, policy: Mapping[str, Any], usd_per_hour: float, *, writes: bool, now: datetime
) -> CapacityChange:
    """On-Demand for an hour in place of missing Spot; then the old policy returns.

    Approved by the policy itself only where the owner said so (tag ``rightsizer:fallback=on-demand`` beside ``auto``).
    """
    enable = _group_enable(group, writes)
    automatic = group.mode is Mode.AUTO and group.fallback and not enable
    until = now + STAND_IN
    work = GroupPolicy(group.name, group.purchase.mixed, policy, until)
    base = policy["InstancesDistribution"]["OnDemandBaseCapacity"]
    missing = f"{group.missing_instances} of {group.desired} instances"
    reason = Reason(
        Code.NO_OPEN_POOL,
        f"every Spot pool of {group.name} refused a launch and {missing} are missing: an On-Demand base of {base} "
        f"brings them back for up to {usd_per_hour:.2f} USD an hour, until {until:%H:%M} UTC",
    )
    return CapacityChange(
        id=_id("stand-in", group.arn or group.name, f"{now:%Y-%m-%dT%H}"),
        subject=group.name,
        owner=group.owner,
        work=work,
        headline=f"{group.name} has no Spot capacity: {missing} can run On-Demand",
        reason=reason,
        created_at=now,
        expires_at=until,
        state=ProposalState.APPROVED if automatic else ProposalState.PENDING,
        approvable=not enable,
        enable=enable,
        facts=(("On-Demand, up to", f"${usd_per_hour:,.2f} an hour"), ("Back to the old policy", f"{until:%H:%M} UTC")),
        not_checked=("the EC2 On-Demand price: derived from SageMaker's hosting price",),
        region=group.region,
        decision=_automatic_decision(now) if automatic else None,
    )


def pool_capacity_change(
    job: TrainingJob, release: ReleaseWarmPool, *, writes: bool, days: int, now: datetime
) -> CapacityChange:
    """The release of an idle warm pool of an opted-in owner: approved by the policy, since its owner allowed it."""
    enable = "" if writes else "deploy the stack with MayChange=tagged; this one changes nothing"
    return CapacityChange(
        id=_id("pool-release", job.arn or job.name, ""),
        subject=job.name,
        owner=job.owner,
        work=PoolRelease(job.name),
        headline=f"{job.name} can release its idle warm pool",
        reason=release.reason,
        created_at=now,
        expires_at=now + timedelta(days=days),
        state=ProposalState.PENDING if enable else ProposalState.APPROVED,
        approvable=not enable,
        enable=enable,
        facts=(("Warm pool", f"{job.instance_count} × {job.instance_type}"),),
        region=region_of_arn(job.arn),
        decision=None if enable else _automatic_decision(now),
    )


@dataclass(frozen=True, slots=True)
class ManualWork:
    """Work that only a person can do, and why it is asked for."""

    found: Handover | NoHandover
    """The ready request, or why there is none."""
    scope: str
    """What is asked about once: an ARN, or what begins with one."""
    owner: str
    headline: str
    reason: Reason
    facts: tuple[tuple[str, str], ...] = ()


def manual_capacity_change(manual_work: ManualWork, now: datetime, expires_at: datetime) -> CapacityChange:
    """The capacity change that asks a person for this work, with the ready request where there is one."""
    found, reason = manual_work.found, manual_work.reason
    operation, request = (found.operation, found.request) if isinstance(found, Handover) else ("CreateTrainingJob", {})
    work = ManualStep(found.subject, operation, request)
    way = "send the request yourself; rightsizer has no permission for it" if request else str(found.reason)
    return CapacityChange(
        id=_id(work.kind, operation, manual_work.scope, str(reason.code)),
        subject=found.subject,
        owner=manual_work.owner,
        work=work,
        headline=manual_work.headline,
        reason=reason,
        created_at=now,
        expires_at=expires_at,
        state=ProposalState.PENDING,
        approvable=False,
        enable=way,
        facts=manual_work.facts,
        not_checked=found.not_checked if isinstance(found, Handover) else (),
        region=region_of_arn(manual_work.scope),
    )


def _headline(option: CapacityOption) -> str:
    saving = option.saving_usd_per_month
    money = f"saves ${saving:,.0f} a month" if saving >= 0 else f"costs ${-saving:,.0f} a month more"
    hours = option.now.lost_hours_per_month - option.then.lost_hours_per_month
    kept = f" and keeps {hours:,.0f} instance hours more" if hours >= 1 else ""
    return f"{option.group} can use more Spot pools: {money}{kept}, expected"


def _facts(option: CapacityOption) -> tuple[tuple[str, str], ...]:
    score = f"{option.placement_score} of 10" if option.placement_score is not None else "not known"
    return (
        ("Today", _month(option.now)),
        ("Then", _month(option.then)),
        ("Placement score", score),
        *(("Besides", str(reason)) for reason in option.reasons[1:]),
    )


def _month(seen: Outlook) -> str:
    return (
        f"{seen.spot} Spot and {seen.on_demand} On-Demand, ${seen.usd_per_month:,.0f} a month, "
        f"{seen.interruptions_per_month:,.0f} interruptions and {seen.lost_hours_per_month:,.1f} hours lost, expected"
    )


def _group_enable(group: AutoScalingGroup, writes: bool) -> str:
    """Why the role could not carry it out, as what to do about it; empty when it can."""
    if group.stack:
        return f"change the MixedInstancesPolicy in {group.stack}; a change from outside would be reverted"
    if group.handler not in (Handler.NOBODY, Handler.CAPACITY_REBALANCE):
        return f"{group.name} is looked after by {group.handler}: change it there"
    if not writes:
        return "deploy the stack with MayChange=tagged; this one changes nothing"
    if group.mode in (Mode.PROPOSE, Mode.AUTO):
        return ""
    row = f"ResourceId={group.name},ResourceType=auto-scaling-group,Key={MODE_TAG},Value=propose"
    where = region_option(group.region)
    return f"aws autoscaling create-or-update-tags{where} --tags {row},PropagateAtLaunch=false"


def _automatic_decision(now: datetime) -> Decision:
    return Decision(
        ProposalState.APPROVED, DecidedBy(DecisionSource.POLICY).text, now, "the tag rightsizer:mode=auto allows it"
    )


def _id(*what: str) -> str:
    return "e-" + hashlib.sha256("|".join(what).encode()).hexdigest()[:20]
