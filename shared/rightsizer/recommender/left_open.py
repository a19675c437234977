"""What an option of a type and a count leaves open, for the person who decides on it."""

from rightsizer.domain.hardware import InstanceType
from rightsizer.recommender.context import Situation
from rightsizer.recommender.cost import volumes

ALONE = ("whether one instance in one Availability Zone is enough while a failed one is replaced",)
OLDER = "whether the model runs without what compute capability {} has and {} has not (BF16, FP8, attention kernels)"
SMALLER_POOL = (
    "what a smaller KV cache costs: prefixes kept for later requests count as free, and will be found less often",
    "that the server's share of the card and its longest context suit the smaller card",
)
WEEKDAYS = ("other counts on some days of the week: each hour has the count of its busiest day",)
NOT_CHECKED = ("a start of the model on the candidate", "capacity of the candidate in the Availability Zones")


def left_open(at: Situation, candidate: InstanceType, unstarted: bool, *, alone: bool, hourly: bool) -> tuple[str, ...]:
    """What nobody knows of the candidate, of a single instance, and of counts by the hour."""
    always = (ALONE if alone else ()) + (WEEKDAYS if hourly else ())
    return _not_checked(at, candidate, unstarted) + always


def _not_checked(at: Situation, candidate: InstanceType, unstarted: bool) -> tuple[str, ...]:
    """What a candidate that the model never ran on leaves open."""
    stored = volumes(at.runs, candidate) + _smaller_pool(at, candidate)
    if not unstarted:
        return stored
    old, new = (h.accelerator.compute_capability if h.accelerator else None for h in (at.runs, candidate))
    if old is None or new is None or new >= old:
        return NOT_CHECKED + stored
    return (*NOT_CHECKED, *stored, OLDER.format(*(".".join(map(str, capability)) for capability in (old, new))))


def _smaller_pool(at: Situation, candidate: InstanceType) -> tuple[str, ...]:
    """What the use of a KV cache leaves open where it gets smaller."""
    old, new = at.reference.accelerator, candidate.accelerator
    smaller = old is not None and new is not None and new.usable_gib < old.usable_gib
    return SMALLER_POOL if smaller and at.demand.memory.pool is not None else ()
