"""GPU memory: what the model needs, as far as it can be seen from outside."""

import math
from collections.abc import Sequence
from itertools import pairwise

from rightsizer.domain.demand import KvPool, MemoryClass, MemoryNeed
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import DayDigest

PREALLOCATING = frozenset({"vllm", "lmi", "tgi", "sglang", "tensorflow"})
"""Servers that take a fixed share of whatever card they get, whatever the model needs."""
WEIGHTS_FACTOR = 1.2
JUMP = 1.03
_GIB = 1024**3


def memory_need(
    days: Sequence[DayDigest],
    catalogue: Catalogue,
    policy: Policy,
    framework: str,
    model_bytes: int | None,
    kills: int = 0,
) -> MemoryNeed:
    """The GPU memory one GPU must offer, GiB. Pre-allocated means unknown: only a start on the candidate tells.

    Unless the use of the KV cache was seen on every day: then weights and what of the pool was in use have to fit into
    the share of a card that the server takes.
    """
    fewest, most = (pick((max(d.gpus, 1) for d in days), default=1) for pick in (min, max))
    weights = (model_bytes or 0) / _GIB * WEIGHTS_FACTOR / most  # at least: it may lie on all GPUs together
    seen = [(d, _per_gpu(d, catalogue, fewest)) for d in days if d.gpu_memory is not None]
    if not seen:
        return MemoryNeed(MemoryClass.UNKNOWN, None, weights, 0.0, 1.0)
    margin = 1 + policy.memory_margin + policy.memory_margin_small_sample / math.sqrt(len({d.day for d, _ in seen}))
    if kills:
        margin += policy.memory_bump_after_kill
    peak = max(top for _, top in seen)
    if framework in PREALLOCATING or _preallocated([d for d, _ in seen], policy):
        return _pooled([d for d, _ in seen], [top for _, top in seen], weights, margin, policy) or MemoryNeed(
            MemoryClass.PREALLOCATED, None, weights, peak, margin
        )
    ratio = max(d.gpu_memory.p99 / max(d.gpu_memory.p5, 1e-9) for d, _ in seen if d.gpu_memory)
    kind = MemoryClass.STATIC if ratio < policy.static_ratio else MemoryClass.ELASTIC
    tops = [top for _, top in seen]
    growth, growing = _growth(tops, policy)
    return MemoryNeed(kind, peak * margin + growth, peak, peak, margin, growing)


def _pooled(
    days: Sequence[DayDigest], held: Sequence[float], weights: float, margin: float, policy: Policy
) -> MemoryNeed | None:
    """The need of a server that filled its only GPU; None where the use of its KV cache is not known of every day.

    A pool that was hardly ever in use when it was looked at tells nothing: the requests fell between two looks.
    """
    cards, pools = [], []
    for digest, gib in zip(days, held, strict=True):
        if digest.kv_cache is None or digest.gpu_memory is None or digest.gpus != 1 or not 0 < weights < gib:
            return None
        pool = KvPool(gib - weights, digest.kv_cache.peak, margin / digest.gpu_memory.peak)
        cards.append((weights + pool.gib * pool.used) / digest.gpu_memory.peak)
        pools.append(pool)
    if not any(digest.kv_cache and digest.kv_cache.p95 > 0 for digest in days):
        return None
    growth, growing = _growth(cards, policy)
    most = pools[cards.index(max(cards))]
    used = weights + most.gib * most.used
    return MemoryNeed(MemoryClass.PREALLOCATED, max(cards) * margin + growth, weights, used, margin, growing, most)


def _growth(tops: Sequence[float], policy: Policy) -> tuple[float, bool]:
    """GiB to leave for a need that rises, of the daily maxima `tops`, and whether it does."""
    slope = _slope(tops)
    growth = slope * policy.growth_days if slope > 0 else 0.0
    jump = tops[-1] / max(tops[:-1]) if len(tops) > 1 and max(tops[:-1]) > 0 else 1.0
    if jump > JUMP:
        # A leak shows first as one day above all days before: leave room for two more such days.
        growth = max(growth, max(tops) * (jump**2 - 1))
    return growth, slope > 0 or jump > JUMP


def _per_gpu(digest: DayDigest, catalogue: Catalogue, fewest: int) -> float:
    """GiB that one GPU held. With more GPUs than the `fewest` some may have been idle: all of it may have been on one,
    though never more than its card offers. Where single GPUs were seen it is the fullest one's.
    """
    if digest.each_gpu is not None:
        return _gib(digest, catalogue)
    mean, found = _gib(digest, catalogue), catalogue.find(digest.instance_type)
    card = found.accelerator.usable_gib if found and found.accelerator else mean
    return max(mean, min(mean * max(digest.gpus, 1) / fewest, card))


def _gib(digest: DayDigest, catalogue: Catalogue) -> float:
    found = catalogue.find(digest.instance_type)
    listed = found.accelerator.memory_gib if found and found.accelerator else 0.0
    return digest.gpu_memory.peak * listed if digest.gpu_memory else 0.0


def _preallocated(days: Sequence[DayDigest], policy: Policy) -> bool:
    spreads = [d.gpu_memory for d in days if d.gpu_memory is not None]
    flat = all(s.p99 < policy.prealloc_ratio * max(s.p5, 1e-9) for s in spreads)
    return flat and all(s.p50 > policy.prealloc_share for s in spreads)


def _slope(tops: Sequence[float]) -> float:
    """GiB per day by Theil-Sen over the daily maxima; 0 unless nearly every day was higher than the one before."""
    if len(tops) < 4:
        return 0.0
    rises = sum(1 for a, b in pairwise(tops) if b > a * 1.005)
    if rises < 0.8 * (len(tops) - 1):
        return 0.0
    slopes = sorted((b - a) / (j - i) for i, a in enumerate(tops) for j, b in enumerate(tops) if j > i)
    return slopes[len(slopes) // 2]
