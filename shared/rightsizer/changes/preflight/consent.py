"""Consent to a change: the endpoint's tag, a person, or the settings of automatic mode.

A person counts whom the list of approvers lets decide (`changes.approval`). The approval of a change permits its way
back too, for some days. What is the owner's already needs no new consent: a minimum that only goes up again, within the
maximum that they registered.
"""

from decimal import Decimal

from rightsizer.domain.endpoint import MODE_TAG, EndpointKind, Mode, growth_refusal
from rightsizer.domain.history import minimum_before_changes
from rightsizer.domain.option import OptionKind
from rightsizer.domain.preflight import PreflightInput, RunningFleet, approved_change
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.domain.tags import bad_tag_refusal
from rightsizer.recommender.growth import minimum_beyond_owner


def is_by_policy(inputs: PreflightInput) -> bool:
    """Whether automatic mode decided, and no person."""
    return inputs.proposal.decision is not None and inputs.proposal.decision.is_automatic


def mode_refusal(inputs: PreflightInput) -> Reason | None:
    """The endpoint's tag lets it be changed, and by itself only with a gate of apply."""
    said = inputs.tags.get(MODE_TAG, "")
    by_itself = is_by_itself(inputs)
    if by_itself and (said != Mode.AUTO or inputs.proposal.recommendation.gate is not Gate.APPLY):
        return Reason(
            Code.NOT_OPTED_IN, f"automatic changes need the tag {MODE_TAG}=auto and a gate of apply, not {said!r}"
        )
    if by_itself and not inputs.option.restores and (unclear := bad_tag_refusal(inputs.tags)) is not None:
        return unclear
    if by_itself and not inputs.limits.automatic and not inputs.limits.misread:
        return Reason(Code.NOT_OPTED_IN, "the policy document lets nothing of this endpoint change by itself any more")
    if said in (Mode.PROPOSE, Mode.AUTO) or (not said and inputs.limits.change_untagged):
        return None
    text = f"the tag {MODE_TAG} is {said or 'absent'}; the role may change endpoints tagged propose or auto"
    return Reason(Code.MODE_OFF if said == Mode.OFF else Code.NOT_OPTED_IN, text)


def approval_refusal(inputs: PreflightInput) -> Reason | None:
    """Somebody, or automatic mode, decided."""
    if inputs.proposal.decision is not None:
        return None
    return Reason(Code.NEEDS_APPROVAL, f"proposal {inputs.proposal.id} carries no decision")


def is_by_itself(inputs: PreflightInput) -> bool:
    """Whether no person agreed: automatic mode decided, and no approval of an earlier change permits it."""
    return is_by_policy(inputs) and not is_permitted_way_back(inputs)


def is_permitted_way_back(inputs: PreflightInput) -> bool:
    """Whether a person approved the change that is undone, by what was recorded of it and what runs now.

    The proposal says only where to: that, and who approved what, is held against the record (`domain.preflight`).
    """
    judged, option, config = inputs.proposal.recommendation, inputs.option, inputs.config
    live = inputs.endpoint.variants
    bodies = list(config.body.get("ProductionVariants") or []) if config is not None else []
    if not option.restores or judged.gate is not Gate.APPLY or inputs.scaling or inputs.read_at is None:
        return False
    if judged.kind is not EndpointKind.REAL_TIME or len(live) != 1 or len(bodies) != 1:
        return False
    name = str(bodies[0].get("InstanceType", ""))
    runs = RunningFleet(name, live[0].desired_count, inputs.endpoint.config_name)
    return approved_change(inputs.past, runs, option.target, inputs.read_at) is not None


def deletion_refusal(inputs: PreflightInput) -> Reason | None:
    """Only a person begins the two steps of a deletion."""
    if inputs.option.kind is not OptionKind.DELETE or not is_by_policy(inputs):
        return None
    return Reason(Code.NEEDS_APPROVAL, "an endpoint is marked for deletion only after a person approved it")


def dimension_refusal(inputs: PreflightInput) -> Reason | None:
    """Automatic mode changes the dimensions that the settings name now, not those of when it was decided."""
    judged = inputs.proposal.recommendation
    kind, gate = (
        (judged.chosen_option or inputs.option).kind,
        judged.gate,
    )  # pools that stand in were not what was judged
    if is_by_policy(inputs) and _lowers_a_minimum_that_comes_back(inputs):
        text = "a minimum of autoscaling only rises by itself, and only within the maximum that is registered now"
        beyond = _minimum_beyond_owner(inputs)
        return Reason(Code.NEEDS_APPROVAL, text if beyond is None else f"{text}; {beyond.sentence}")
    free = {OptionKind.DELETE, *inputs.limits.by_itself}  # a deletion has its own refusal
    if judged.kind is EndpointKind.ASYNC:
        free.add(OptionKind.SCALE_TO_ZERO)  # the queue keeps what comes meanwhile
    if not is_by_policy(inputs) or gate is not Gate.APPLY or kind in free or is_minimum_given_back(inputs):
        return None
    known = ", ".join(sorted(inputs.limits.by_itself))
    return Reason(Code.NEEDS_APPROVAL, f"{kind.value} is changed only after an approval; by itself only {known}")


def _lowers_a_minimum_that_comes_back(inputs: PreflightInput) -> bool:
    """Whether a restore would set another minimum than upwards: its owner changed it since."""
    option = inputs.option
    bounds = option.restores and option.kind is OptionKind.AUTOSCALING and option.target.minimum is not None
    return bounds and not is_minimum_given_back(inputs)


def is_minimum_given_back(inputs: PreflightInput) -> bool:
    """Whether a restore raises the minimum to what was the owner's before our changes, or to what their tag allows.

    Users suffer from an earlier change of ours, and what comes back was the owner's: that is no other dimension.
    """
    return is_minimum_raised(inputs) and _minimum_beyond_owner(inputs) is None


def is_minimum_raised(inputs: PreflightInput) -> bool:
    """Whether a restore moves nothing but the minimum of the owner's autoscaling, upwards, as it is registered now."""
    option, target = inputs.option, inputs.option.target
    if not option.restores or option.kind is not OptionKind.AUTOSCALING or target.minimum is None:
        return False
    variant = inputs.proposal.recommendation.variant
    own = [t for t in inputs.scaling if t.variant_name == variant]
    return bool(own) and all(t.minimum <= target.minimum <= t.maximum == target.maximum for t in own)


def _minimum_beyond_owner(inputs: PreflightInput) -> Reason | None:
    """Why the minimum is more than comes back, by what was recorded of our changes and the tags as they are now."""
    if minimum_before_changes(inputs.past) is None:
        return Reason(Code.NEEDS_APPROVAL, "no change of ours is in force, so there is no minimum to bring back")
    return minimum_beyond_owner(inputs.past, inputs.option, inputs.tags)


def growth_limit_refusal(inputs: PreflightInput) -> Reason | None:
    """Automatic mode grows within the owner's tag and the maximum of their autoscaling, as both are now."""
    option = inputs.option
    if not option.grows or not is_by_policy(inputs):
        return None
    variant, target = inputs.proposal.recommendation.variant, option.target
    most = max((t.maximum for t in inputs.scaling if t.variant_name == variant), default=None)
    if most is not None and max(target.maximum or 0, target.instance_count) > most:
        text = f"up to {max(target.maximum or 0, target.instance_count)} instances, and the maximum of its autoscaling"
        return Reason(Code.NEEDS_APPROVAL, f"{text} is {most}: only a person goes beyond it")
    return growth_refusal(inputs.tags, option.growth_usd or Decimal(0))
