"""Whether the requests that are in service at once fit into the KV cache of a smaller card."""

from rightsizer.domain.demand import MemoryNeed
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.reason import Code, Reason


def pool_refusal(now: InstanceType, candidate: InstanceType, memory: MemoryNeed, crowd: float) -> Reason | None:
    """Why they do not, or None; nothing is said where the use of the pool is unknown or the card is no smaller.

    `crowd`: how many times as many requests an instance has in service at once; those that take longer overlap more
    (Little's law), and fewer instances share them.
    """
    pool, need = memory.pool, memory.need_gib
    if pool is None or need is None or candidate.accelerator is None or now.accelerator is None:
        return None
    usable, more = candidate.accelerator.usable_gib, max(crowd, 1.0)
    needed = need + (more - 1) * pool.gib * pool.used * pool.card_gib
    if usable >= min(now.accelerator.usable_gib, needed):
        return None
    return Reason(
        Code.MEMORY_TOO_SMALL,
        f"weights and KV cache need {needed:.1f} GiB per GPU with {more:.1f} times as many requests in service at once,"
        f" {candidate.name} offers {usable:.1f} GiB",
    )
