"""Whether our role may hand the configuration's execution role to SageMaker, asked before anything is touched."""

from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason


def passing(ground: Ground) -> Reason | None:
    """IAM says no: the sentence ends with the one command that allows it."""
    passes = ground.passes
    if passes is None or passes.allowed is not False:
        return None
    text = f"the configuration names the execution role {passes.role}; creating another one like it needs iam:PassRole "
    text += f"on that role, which {passes.by or 'the role in use'} does not hold. An operator allows it with: "
    return Reason(Code.PERMISSION_MISSING, text + passes.command)


def unchecked(ground: Ground) -> tuple[str, ...]:
    """What nobody could ask: AWS refuses the new configuration then, which touches nothing."""
    if ground.passes is None or ground.passes.allowed is not None:
        return ()
    return (f"nobody could ask whether iam:PassRole on {ground.passes.role} is held",)
