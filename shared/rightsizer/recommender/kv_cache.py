"""Fold how full the KV cache was (detailed observability) into the digest of its day."""

import math
from dataclasses import replace
from datetime import UTC, datetime, time

from rightsizer.domain.usage import DayDigest, MetricWindow, Signal, Spread

COVERED = 0.8
"""Share of the day's memory datapoints that the cache must have too: the valid minutes that a window needs."""
MEMORY = Signal("GPUMemoryUtilization", "Average")


def with_kv_cache(digest: DayDigest, window: MetricWindow, since: datetime | None) -> DayDigest:
    """The digest with the day's shares of the KV cache in use; as it was where too little of the day was seen.

    Datapoints before `since` belong to another configuration.
    """
    memory = window.series.get(MEMORY)
    if window.kv_cache is None or memory is None:
        return digest
    start, size = datetime.combine(digest.day, time(), UTC), 86400 // window.period_s
    first = math.ceil((since - start).total_seconds() / window.period_s) if since else 0
    first = min(max(first, 0), size)
    pairs = zip(memory.cut(start, size, first), window.kv_cache.cut(start, size), strict=True)
    shares = [share for held, share in pairs if held == held]
    if sum(share == share for share in shares) < COVERED * len(shares):
        return digest
    percent = [100 * share for share in shares]
    return replace(digest, kv_cache=Spread.of(percent, percent, 1))
