"""What a pool's record says: how often it interrupts, how long to leave it alone, what an hour in it really costs."""

from datetime import datetime, timedelta

from rightsizer.domain.spot import Mark, Need, Pool, PoolSight, Signal

PRIOR_HOURS_PER_INTERRUPTION = 6.0
"""Four losses a day and zone: what public traces of GPU pools show in the median (decision model, section Spot)."""
PRIOR_INTERRUPTIONS = 2.0
"""Weight of that prior, in interruptions: two of our own weigh as much as it."""
FIRST_MARK = timedelta(minutes=3)
"""Karpenter's time for an unavailable offering."""
LONGEST_MARK = timedelta(minutes=24)
FORGIVEN_AFTER = timedelta(hours=1)
"""A pool that held for an hour after its mark begins again with the first one."""


def interruptions_per_hour(sight: PoolSight) -> float:
    """Expected interruptions of the pool per hour of use: our record, drawn to the prior while it is short.

    The posterior mean of a Poisson rate under a gamma prior: (count + a) / (hours + a x prior hours).
    """
    return (sight.interruptions + PRIOR_INTERRUPTIONS) / (
        sight.hours + PRIOR_INTERRUPTIONS * PRIOR_HOURS_PER_INTERRUPTION
    )


def useful_usd(sight: PoolSight, need: Need) -> float:
    """What an hour of service from the pool costs, US dollars: price, boots paid for, and minutes lost.

    Each interruption pays a boot at the Spot price and loses `need.gap_hours`, valued at On-Demand.
    """
    rate = interruptions_per_hour(sight)
    return sight.usd_per_hour * (1 + rate * need.boot_s / 3600) + rate * need.gap_hours * need.on_demand_usd


def mark(pool: Pool, signal: Signal, now: datetime, before: Mark | None) -> Mark:
    """The mark that follows a warning or a refusal: 3 minutes, doubled for each one in a row, 24 at most.

    A second signal while the pool is marked already (many instances warned at once) neither adds a strike nor
    shortens the mark.
    """
    if before is not None and now < before.until:
        return before
    fresh = before is None or now - before.until > FORGIVEN_AFTER
    strikes = 1 if before is None or fresh else before.strikes + 1
    length = min(LONGEST_MARK, FIRST_MARK * 2 ** min(strikes - 1, 10))
    return Mark(pool, signal, now, now + length, strikes)
