"""What is the owner's already: a minimum that only goes up again, within the maximum that they registered."""

from rightsizer.domain.option import OptionKind
from rightsizer.domain.preflight import Ground


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
