"""Whether autoscaling that a change takes away could be given back, asked before anything is touched."""

from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason


def restoring(ground: Ground) -> Reason | None:
    """IAM says no to what puts autoscaling again: the endpoint would stay without it."""
    if not ground.unrestorable:
        return None
    text = f"the change takes the autoscaling of {ground.proposal.ref.name} away for a while, and IAM denies our role "
    text += f"{', '.join(ground.unrestorable)}, without which it could not be given back; the stack's own policy "
    return Reason(Code.PERMISSION_MISSING, text + "allows it, so a boundary or an organisation's policy may forbid it")
