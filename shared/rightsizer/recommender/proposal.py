"""From a recommendation to a proposal: whether to ask, whom to let answer, and for how long."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.domain.endpoint import Endpoint, Mode
from rightsizer.domain.option import CHANGEABLE, Option, OptionKind
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.recommendation import Gate, Recommendation

MODE_TAG = "rightsizer:mode"


@dataclass(frozen=True, slots=True)
class Reach:
    """What the deployed role can do to one endpoint."""

    approvable: bool
    """Whether an approval would be carried out."""
    enable: str
    """Why it would not, and how to make it so; empty when it is."""
    tag: bool = False
    """The owner's tag is all that is missing."""


def reach_of(endpoint: Endpoint, *, writes: bool, untagged: bool) -> Reach:
    """What the role may do to this endpoint, and how to allow more.

    `writes`: the stack was deployed with write permissions. `untagged`: it may change endpoints without the mode tag.
    The answer mirrors the IAM conditions of the template, so that no button is shown that IAM would refuse.
    """
    if endpoint.tags_unread is not None:
        return Reach(False, f"its tags could not be read: {endpoint.tags_unread.sentence}")
    if endpoint.owned_by:
        return Reach(False, f"change it in {endpoint.owned_by}; a change from outside would drift and be reverted")
    if endpoint.kind not in CHANGEABLE:
        return Reach(False, f"an endpoint of the kind {endpoint.kind} is changed by its owner")
    if not writes:
        return Reach(False, "deploy the stack with MayChange=tagged; this one changes nothing")
    if endpoint.mode in (Mode.PROPOSE, Mode.AUTO) and (endpoint.mode_declared or untagged):
        return Reach(True, "")
    said = endpoint.mode.value if endpoint.mode_declared else "absent"
    return Reach(False, f"its tag {MODE_TAG} is {said}; its owner lets it be changed with", tag=True)


def reach_for(option: Option, reach: Reach) -> Reach:
    """The same for one option: what is not carried out on the same endpoint needs its owner, whatever the tag says."""
    if option.in_place or option.kind is OptionKind.DELETE or not (reach.approvable or reach.tag):
        return reach  # a deletion begins with a mark; the deleting itself stays its owner's
    text = option.client_change or "it is not done on the same endpoint"
    return Reach(False, f"{option.kind.value} is done by the owner: {text}")


def unless_undone(endpoint: Endpoint, recommendation: Recommendation, reach: Reach) -> Reach:
    """The same where the option is a count that the owner's scaling policies would undo: the bounds are theirs.

    `apply` refuses it, so that no button is shown; the line lowers their minimum where that is above the count.
    """
    option = recommendation.chosen
    mine = f"/variant/{recommendation.variant}"
    own = next((t for t in endpoint.scaling if t.resource_id.endswith(mine) and t.policies), None)
    if option is None or option.kind is not OptionKind.INSTANCE_COUNT or own is None:
        return reach
    target, text = option.target, "the policies of Application Auto Scaling set its count"
    bounds = (target.minimum, target.maximum, target.target_value)
    if not (reach.approvable or reach.tag) or any(bound is not None for bound in bounds):
        return reach
    count = target.instance_count
    if count >= own.minimum:
        return Reach(False, f"{text}, from {own.minimum} to {own.maximum}; its owner changes the target of its policy")
    text += f" and would undo another one; its owner can lower the minimum of its scalable target to {count}, from "
    line = f"aws application-autoscaling register-scalable-target --region {endpoint.ref.region} "
    line += "--service-namespace sagemaker"
    line += f" --resource-id {own.resource_id} --scalable-dimension {own.dimension}"
    return Reach(False, f"{text}{own.minimum}:\n{line} --min-capacity {count}")


def proposal_id(recommendation: Recommendation, option: Option) -> str:
    """The same option for the same configuration of the same endpoint has the same id, whenever it is evaluated."""
    late = (option.target.scale_in, option.target.placement)  # not in the text of a target
    ordered = (repr(each) for each in late if each)
    parts = (recommendation.ref.arn, recommendation.fingerprint, option.kind, repr(option.target), *ordered)
    what = "|".join(parts)
    return "p-" + hashlib.sha256(what.encode()).hexdigest()[:20]


def proposal_for(recommendation: Recommendation, reach: Reach, days: int, now: datetime) -> Proposal | None:
    """The proposal that follows from a recommendation, or None when the gate says silence or there is no option.

    A gate of APPLY makes a proposal that the policy has approved already. It still needs `reach`: IAM would refuse the
    write otherwise, so it is asked instead.
    """
    option = recommendation.chosen
    if option is None or recommendation.gate is Gate.SILENT:
        return None
    reach = reach_for(option, reach)
    automatic = recommendation.gate is Gate.APPLY and recommendation.mode is Mode.AUTO and reach.approvable
    decision = (
        Decision(ProposalState.APPROVED, "policy", now, recommendation.gate_reason.sentence) if automatic else None
    )
    return Proposal(
        id=proposal_id(recommendation, option),
        recommendation=recommendation,
        created_at=now,
        expires_at=now + timedelta(days=days),
        state=ProposalState.APPROVED if automatic else ProposalState.PENDING,
        approvable=reach.approvable,
        enable=reach.enable,
        decision=decision,
    )
