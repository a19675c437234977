"""What was agreed to, and by whom: the tag of the endpoint, a person, or the settings of automatic mode."""

from rightsizer.changes.preflight.owners import given_back
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.option import OptionKind
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate

MODE_TAG = "rightsizer:mode"


def by_policy(ground: Ground) -> bool:
    """Whether automatic mode decided, and no person."""
    return ground.proposal.decision is not None and ground.proposal.decision.by == "policy"


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
