"""What was agreed to, and by whom: the tag of the endpoint, a person, or the settings of automatic mode.

A person counts whom the stack's list `Approvers` lets decide. What is the owner's already needs no new consent: a
minimum that only goes up again, within the maximum that they registered.
"""

from rightsizer.domain.approvers import Approvers, Caller
from rightsizer.domain.endpoint import MODE_TAG, Mode
from rightsizer.domain.option import OptionKind
from rightsizer.domain.preflight import Ground
from rightsizer.domain.proposal import DecidedBy, DecisionSource
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate

SHOWN = 10
"""Entries of a list that a sentence names."""


def by_policy(ground: Ground) -> bool:
    """Whether automatic mode decided, and no person."""
    return ground.proposal.decision is not None and ground.proposal.decision.is_automatic


def mode(ground: Ground) -> Reason | None:
    """The endpoint's tag lets it be changed, and by itself only with a gate of apply."""
    said = ground.tags.get(MODE_TAG, "")
    if by_policy(ground) and (said != Mode.AUTO or ground.proposal.recommendation.gate is not Gate.APPLY):
        return Reason(
            Code.NOT_OPTED_IN, f"automatic changes need the tag {MODE_TAG}=auto and a gate of apply, not {said!r}"
        )
    if said in (Mode.PROPOSE, Mode.AUTO) or (not said and ground.limits.change_untagged):
        return None
    text = f"the tag {MODE_TAG} is {said or 'absent'}; the role may change endpoints tagged propose or auto"
    return Reason(Code.MODE_OFF if said == Mode.OFF else Code.NOT_OPTED_IN, text)


def approved(ground: Ground) -> Reason | None:
    """Somebody, or automatic mode, decided."""
    if ground.proposal.decision is not None:
        return None
    return Reason(Code.NEEDS_APPROVAL, f"proposal {ground.proposal.id} carries no decision")


def deletion(ground: Ground) -> Reason | None:
    """Only a person begins the two steps of a deletion."""
    if ground.option.kind is not OptionKind.DELETE or not by_policy(ground):
        return None
    return Reason(Code.NEEDS_APPROVAL, "an endpoint is marked for deletion only after a person approved it")


def dimension(ground: Ground) -> Reason | None:
    """Automatic mode changes the dimensions that the settings name now, not those of when it was decided."""
    judged = ground.proposal.recommendation
    kind, gate = (judged.chosen or ground.option).kind, judged.gate  # pools that stand in were not what was judged
    free = {OptionKind.DELETE, *ground.limits.by_itself}  # a deletion has its own refusal
    if not by_policy(ground) or gate is not Gate.APPLY or kind in free or given_back(ground):
        return None
    known = ", ".join(sorted(ground.limits.by_itself))
    return Reason(Code.NEEDS_APPROVAL, f"{kind.value} is changed only after an approval; by itself only {known}")


def given_back(ground: Ground) -> bool:
    """Whether a restore moves nothing but the minimum of the owner's autoscaling, upwards, as it is registered now.

    Users suffer from an earlier change of ours, and what comes back was the owner's: that is no other dimension.
    """
    option, target = ground.option, ground.option.target
    if not option.restores or option.kind is not OptionKind.AUTOSCALING or target.minimum is None:
        return False
    variant = ground.proposal.recommendation.variant
    own = [t for t in ground.scaling if t.variant_name == variant]
    return bool(own) and all(t.minimum <= target.minimum <= t.maximum == target.maximum for t in own)


def stranger(by: str, approvers: Approvers) -> Reason | None:
    """Why the list does not let `by` (``slack:U1``, ``cli:ARN``) decide; None where it does, or where there is no list.

    `by` is what the decision claims. Automatic mode is held by other rules.
    """
    decider = DecidedBy.read(by)
    if not approvers.entries or decider.source is DecisionSource.POLICY:
        return None
    who = decider.person
    if decider.source is DecisionSource.SLACK:
        text = f"the Slack user {who[:80]} is not on the list Approvers"
        return None if who in approvers.slack else Reason(Code.NOT_APPROVER, text)
    caller = Caller.of(who) if decider.source is DecisionSource.CLI else None
    if caller is not None and approvers.name(caller):
        return None
    if caller is None:
        who = f"{who or by or 'nobody'}"[:200]
        return Reason(Code.NOT_APPROVER, f"{who} is no identity that the list Approvers can name; {_listed(approvers)}")
    entry = caller.entry(approvers.home)
    return Reason(
        Code.NOT_APPROVER,
        f"{entry if entry == who else f'{entry} ({who})'} is not on the list Approvers; {_listed(approvers)}; "
        f"whoever deploys rightsizer adds {entry} to the stack's parameter Approvers"
        + (", or somebody on the list answers in Slack" if approvers.slack else ""),
    )


def _listed(approvers: Approvers) -> str:
    names = approvers.terminal
    if not names:
        return "the list names Slack users only, so that nobody decides at a terminal"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"at a terminal it lets {', '.join(names[:SHOWN])}{more} decide"
