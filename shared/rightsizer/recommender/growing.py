"""Raise the owner's own minimum again where a fleet that we made smaller no longer carries its load.

Under the owner's policies a fleet grows by its minimum: a count alone would be undone by them. Their maximum stays.
"""

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.context import Situation


def grows(at: Situation, candidate: str) -> bool:
    """Whether more of this type means a higher minimum, whatever dimensions the settings open.

    It takes nothing of the owner's that a change of ours had not taken before, and deploys nothing.
    """
    return at.tight and candidate == at.runs.name and bool(_scaled(at)) and not at.policy.several_at_once


def room(at: Situation) -> int:
    """The owner's own maximum, above which nothing grows."""
    return max(target.maximum for target in _scaled(at))


def raises(at: Situation, option: Option) -> bool:
    """Whether the option raises the minimum that is registered now, and leaves the maximum as it is."""
    target = option.target
    bounds = option.kind is OptionKind.AUTOSCALING and target.instance_type == at.runs.name
    if not bounds or target.minimum is None or not _scaled(at):
        return False
    return target.minimum > max(t.minimum for t in _scaled(at)) and target.maximum == room(at)


def held(at: Situation, option: Option) -> Reason | None:
    """Why bounds that should grow do not; None where they do, or where the option moves something else."""
    if option.kind is not OptionKind.AUTOSCALING or not _scaled(at) or at.policy.several_at_once or raises(at, option):
        return None
    low = max(t.minimum for t in _scaled(at))
    text = f"the load needs more, and autoscaling already starts from {low} of at most {room(at)} instances: raise "
    return Reason(Code.AUTOSCALED, f"{text}its maximum, or lower the target of its policy")


def _scaled(at: Situation) -> list[ScalableTarget]:
    return [target for target in at.endpoint.scaling if target.policies]
