"""What moves and tests of other endpoints measured, against what the datasheets said (decision.md 4.8)."""

import math
from collections.abc import Callable, Sequence

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import CONFORMAL, quantile

type Find = Callable[[str], InstanceType | None]

TOO_SLOW = ("alarm", "performance")
"""Failures of a type that was too slow, or may have been."""


def outcomes(history: History, find: Find, framework: str, policy: Policy) -> tuple[float, ...]:
    """Slowdown over phi of the account's moves and tests of a framework, ascending.

    A move to the same chip, or to one that is faster in FLOPS and bandwidth, tells nothing about slower ones. A change
    that went back for its speed before it was measured counts as no quicker than the bound. Endpoints of unknown
    framework have nothing in common.
    """
    seen: list[float] = []
    for past in history.account if framework else ():
        ratio = _phi(find(past.from_type), find(past.to_type))
        if past.framework != framework or ratio <= 1:
            continue
        if past.realised_slowdown is not None:
            seen.append(past.realised_slowdown / ratio)
        elif past.ended == "rolled-back" and past.failure in TOO_SLOW:
            seen.append(policy.slowdown_bound)
    return tuple(sorted(seen))


def _phi(old: InstanceType | None, new: InstanceType | None) -> float:
    """The datasheet ratio of two types; 0 where one has no known accelerator."""
    if old is None or new is None or old.accelerator is None or new.accelerator is None:
        return 0.0
    return old.accelerator.phi(new.accelerator)


def weight(seen: Sequence[float], policy: Policy) -> float:
    """How much the account's own outcomes count beside the prior: n / (n + 20) (decision.md 4.8)."""
    return len(seen) / (len(seen) + policy.shrinkage)


def width(seen: Sequence[float], policy: Policy) -> float:
    """Bound of slowdown over phi: the conformal 97.5 % quantile of the account's `outcomes`, shrunk to the prior.

    With too few for such a quantile the worst stands for it, and one of them as at most twice the prior. Nor do they
    say that everything is quicker than its datasheet: what is below 1 is believed bit by bit up to twice as many, or
    the 39th outcome alone would loosen the bound by all of that.
    """
    if not seen:
        return policy.slowdown_bound
    n = len(seen)
    if n >= CONFORMAL:
        own = quantile(seen, min(math.ceil((n + 1) * 0.975) / n, 1.0))
    else:
        own = min(seen[-1], 2 * policy.slowdown_bound)
    own = max(own, min(2 - n / CONFORMAL, 1.0))
    share = weight(seen, policy)
    return share * own + (1 - share) * policy.slowdown_bound


def middle(seen: Sequence[float], policy: Policy) -> float:
    """Middle of slowdown over phi: the median of the account's `outcomes`, shrunk to the prior."""
    if not seen:
        return policy.slowdown_mid
    share = weight(seen, policy)
    return share * quantile(seen, 0.5) + (1 - share) * policy.slowdown_mid
