"""Rule out the types that cannot serve, each with its reason, before anything costly is computed.

GPU memory: what the model needs, as far as it can be seen from outside.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rightsizer.domain.demand import Demand, KvPool, MemoryClass, MemoryNeed
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.usage import DailyUsage

PREALLOCATING = frozenset({"vllm", "lmi", "tgi", "sglang", "tensorflow"})
"""Servers that take a fixed share of whatever card they get, whatever the model needs."""
WEIGHTS_FACTOR = 1.2
JUMP = 1.03
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    """Limits of the account and the Region for one candidate."""

    price: Price | None
    quota: int | None
    """Applied quota; None when unknown."""
    runs_now: bool = False
    """Whether the endpoint runs on this type already, so that nobody has to sell it a first instance."""


def fit_refusal(now: InstanceType, candidate: InstanceType, demand: Demand, limits: CandidateLimits) -> Reason | None:
    """Why the candidate is no option, or None. Cheap checks first; memory before speed."""
    if limits.price is None:
        return Reason(Code.NO_PRICE, f"{candidate.name} has no price in this Region, so it is no candidate")
    if not limits.price.listed and not limits.runs_now:
        sentence = f"no price list shows that {limits.price.region} sells {candidate.name} for hosting"
        return Reason(Code.NOT_SOLD, f"{sentence}; its price is an estimate of {limits.price.as_of}")
    return (
        _hardware_refusal(now, candidate, min(gpus_per_request(now, demand), demand.gpus_used or now.accelerator_count))
        or _memory_refusal(now, candidate, demand)
        or _host_refusal(now, candidate, demand)
        or _quota_refusal(candidate, limits)
    )


def gpus_per_request(now: InstanceType, demand: Demand) -> int:
    """GPUs that one request needs at once: one, unless it works longer than it takes."""
    if demand.gpu_s_per_request is None or demand.latency is None:
        return demand.gpus_used or now.accelerator_count
    return max(1, min(now.accelerator_count, round(demand.gpu_s_per_request / demand.latency.mean_s + 0.3)))


def _hardware_refusal(now: InstanceType, candidate: InstanceType, used: int) -> Reason | None:
    chip, old = candidate.accelerator, now.accelerator
    if chip is None or old is None:
        return Reason(Code.NO_ACCELERATOR, f"{candidate.name} has no accelerator")
    if chip.vendor != old.vendor:
        return Reason(Code.ANOTHER_VENDOR, f"{candidate.name} carries {chip.vendor}, the model runs on {old.vendor}")
    if candidate.cpu_arch != now.cpu_arch:
        sentence = f"{candidate.name} is {candidate.cpu_arch}, the image runs on {now.cpu_arch}"
        return Reason(Code.ANOTHER_ARCHITECTURE, sentence)
    if candidate.accelerator_count > now.accelerator_count or candidate.accelerator_count < (used or 1):
        today = f"{now.accelerator_count} of {now.name}"
        more = candidate.accelerator_count > now.accelerator_count
        why = f"more than the {today}" if more else f"and a request may need {used or 1} of the {today}"
        return Reason(Code.OTHER_GPU_COUNT, f"{candidate.name} has {count(candidate.accelerator_count, 'GPU')}, {why}")
    if _is_too_old(chip.compute_capability, old.compute_capability):
        return Reason(
            Code.COMPUTE_CAPABILITY_TOO_OLD,
            f"{candidate.name} has compute capability {_capability_text(chip.compute_capability)}, below 7.0",
        )
    return None


def _is_too_old(candidate: tuple[int, int] | None, now: tuple[int, int] | None) -> bool:
    """Images built for today's frameworks begin at 7.0 (Volta, Turing)."""
    return candidate is not None and now is not None and candidate < (7, 0) <= now


def _capability_text(capability: tuple[int, int] | None) -> str:
    return ".".join(map(str, capability)) if capability else "none"


def _room_text(now: InstanceType, memory: MemoryNeed) -> str:
    """What a need has room for beyond what was seen: a margin, and a leak with the days until the card is full."""
    margin = f"a margin of {100 * (memory.margin - 1):.0f} %"
    if memory.leak_gib <= 0 or now.accelerator is None:
        return f"and {margin}"
    left = max(now.accelerator.usable_gib - memory.peak_gib, 0.0) / memory.leak_gib
    return (
        f"{margin}, and room for a leak of {memory.leak_gib:.1f} GiB a day, which fills the card of {now.name} in"
        f" {left:.0f} days"
    )


def _memory_refusal(now: InstanceType, candidate: InstanceType, demand: Demand) -> Reason | None:
    usable = candidate.accelerator.usable_gib if candidate.accelerator else 0.0
    need = _need_of_gpu(demand.memory.need_gib, now, demand)
    if need is not None and now.accelerator and now.accelerator.model == candidate.accelerator.model:  # type: ignore[union-attr]
        return None
    if need is not None and need > usable:
        return Reason(
            Code.MEMORY_TOO_SMALL,
            f"{candidate.name} offers {usable:.1f} GiB, and the model needs {need:.1f} GiB per GPU"
            f" ({demand.memory.peak_gib:.1f} GiB seen, {_room_text(now, demand.memory)})",
        )
    if demand.memory.kind is MemoryClass.PREALLOCATED and demand.memory.lower_gib > usable:
        return Reason(
            Code.MEMORY_TOO_SMALL,
            f"{candidate.name} offers {usable:.1f} GiB, and the weights alone need {demand.memory.lower_gib:.1f} GiB",
        )
    return None


def _need_of_gpu(gib: float | None, now: InstanceType, demand: Demand) -> float | None:
    """What one GPU holds was averaged over idle ones too; it ran on today's card, so it never needs more than that.

    Where single GPUs were seen it is the fullest one's already.
    """
    if gib is None or not demand.gpus_used or demand.gpus_seen:
        return gib
    whole = now.accelerator.usable_gib if now.accelerator else gib
    return max(gib, min(gib * now.accelerator_count / demand.gpus_used, whole))


def _host_refusal(now: InstanceType, candidate: InstanceType, demand: Demand) -> Reason | None:
    need, cores = demand.host_memory_gib, demand.vcpu
    if need is None and candidate.memory_gib < now.memory_gib:
        return Reason(
            Code.HOST_MEMORY_TOO_SMALL,
            f"{candidate.name} has {candidate.memory_gib:.0f} GiB of host memory, {now.name} has"
            f" {now.memory_gib:.0f} GiB, and how much is in use is unknown",
        )
    if need is not None and need > candidate.memory_gib and candidate.memory_gib < now.memory_gib:
        return Reason(
            Code.HOST_MEMORY_TOO_SMALL,
            f"{candidate.name} has {candidate.memory_gib:.0f} GiB of host memory, and with a margin {need:.0f} GiB are"
            " needed",
        )
    if cores is not None and cores > candidate.vcpu and candidate.vcpu < now.vcpu:
        return Reason(
            Code.VCPU_TOO_FEW, f"{candidate.name} has {candidate.vcpu} vCPU, and with a margin {cores:.1f} are needed"
        )
    return None


def _quota_refusal(candidate: InstanceType, limits: CandidateLimits) -> Reason | None:
    if limits.quota is not None and limits.quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {candidate.name} endpoints is {limits.quota}")
    return None


def memory_need(
    days: Sequence[DailyUsage],
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
    if framework in PREALLOCATING or _is_preallocated([d for d, _ in seen], policy):
        return _pool_need([d for d, _ in seen], [top for _, top in seen], weights, margin, policy) or MemoryNeed(
            MemoryClass.PREALLOCATED, None, weights, peak, margin
        )
    ratio = max(d.gpu_memory.p99 / max(d.gpu_memory.p5, 1e-9) for d, _ in seen if d.gpu_memory)
    kind = MemoryClass.STATIC if ratio < policy.static_ratio else MemoryClass.ELASTIC
    tops = [top for _, top in seen]
    growth, growing, leak = _growth(tops, policy)
    return MemoryNeed(kind, peak * margin + growth, peak, peak, margin, growing, leak)


def _pool_need(
    days: Sequence[DailyUsage], held: Sequence[float], weights: float, margin: float, policy: Policy
) -> MemoryNeed | None:
    """The need of a server that filled its only GPU; None where the use of its KV cache is not known of every day.

    A pool that was hardly ever in use when it was looked at tells nothing: the requests fell between two looks.
    """
    cards, pools = [], []
    for usage, gib in zip(days, held, strict=True):
        if usage.kv_cache is None or usage.gpu_memory is None or usage.gpus != 1 or not 0 < weights < gib:
            return None
        pool = KvPool(gib - weights, usage.kv_cache.peak, margin / usage.gpu_memory.peak)
        cards.append((weights + pool.gib * pool.used) / usage.gpu_memory.peak)
        pools.append(pool)
    if not any(usage.kv_cache and usage.kv_cache.p95 > 0 for usage in days):
        return None
    growth, growing, leak = _growth(cards, policy)
    most = pools[cards.index(max(cards))]
    used = weights + most.gib * most.used
    return MemoryNeed(
        MemoryClass.PREALLOCATED, max(cards) * margin + growth, weights, used, margin, growing, leak, most
    )


def _growth(tops: Sequence[float], policy: Policy) -> tuple[float, bool, float]:
    """GiB to leave for a need that rises, of the daily maxima `tops`, whether it does, and GiB a day of a leak."""
    slope = _slope(tops)
    growth = slope * policy.growth_days if slope > 0 else 0.0
    jump = tops[-1] / max(tops[:-1]) if len(tops) > 1 and max(tops[:-1]) > 0 else 1.0
    if jump > JUMP:
        # A leak shows first as one day above all days before: leave room for two more such days.
        growth = max(growth, max(tops) * (jump**2 - 1))
    return growth, slope > 0 or jump > JUMP, max(slope, 0.0)


def _per_gpu(usage: DailyUsage, catalogue: Catalogue, fewest: int) -> float:
    """GiB that one GPU held. With more GPUs than the `fewest` some may have been idle: all of it may have been on one,
    though never more than its card offers. Where single GPUs were seen it is the fullest one's.
    """
    if usage.each_gpu is not None:
        return _gib(usage, catalogue)
    mean, hardware = _gib(usage, catalogue), catalogue.find(usage.instance_type)
    card = hardware.accelerator.usable_gib if hardware and hardware.accelerator else mean
    return max(mean, min(mean * max(usage.gpus, 1) / fewest, card))


def _gib(usage: DailyUsage, catalogue: Catalogue) -> float:
    hardware = catalogue.find(usage.instance_type)
    listed = hardware.accelerator.memory_gib if hardware and hardware.accelerator else 0.0
    return usage.gpu_memory.peak * listed if usage.gpu_memory else 0.0


def _is_preallocated(days: Sequence[DailyUsage], policy: Policy) -> bool:
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


def pool_refusal(now: InstanceType, candidate: InstanceType, memory: MemoryNeed, crowd: float) -> Reason | None:
    """Why the KV cache of smaller cards would not hold the requests; None where nothing is known.

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
