"""Rule out the types that cannot serve, each with its reason, before anything costly is computed."""

from dataclasses import dataclass

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason


@dataclass(frozen=True, slots=True)
class Limits:
    """What the account and the Region allow for one candidate."""

    price: Price | None
    quota: int | None
    """Applied quota; None when unknown."""
    memory_room: float = 0.0
    """Room over the largest GPU memory seen that a smaller card has to keep, as a share of it."""
    runs_now: bool = False
    """Whether the endpoint runs on this type already, so that nobody has to sell it a first instance."""


def refusal(now: InstanceType, candidate: InstanceType, demand: Demand, limits: Limits) -> Reason | None:
    """Why the candidate is no option, or None. Cheap checks first; memory before speed."""
    if limits.price is None:
        return Reason(Code.NO_PRICE, f"{candidate.name} has no price in this Region, so it is no candidate")
    if not limits.price.listed and not limits.runs_now:
        sentence = f"no price list shows that {limits.price.region} sells {candidate.name} for hosting"
        return Reason(Code.NOT_SOLD, f"{sentence}; its price is an estimate of {limits.price.as_of}")
    return (
        _hardware(now, candidate, spread_over(now, demand))
        or _memory(now, candidate, demand, limits.memory_room)
        or _host(now, candidate, demand)
        or _quota(candidate, limits)
    )


def spread_over(now: InstanceType, demand: Demand) -> int:
    """GPUs that one request needs at once: one, unless it works longer than it takes."""
    if demand.gpu_s_per_request is None or demand.latency is None:
        return demand.gpus_used or now.accelerator_count
    return max(1, min(now.accelerator_count, round(demand.gpu_s_per_request / demand.latency.mean_s + 0.3)))


def _hardware(now: InstanceType, candidate: InstanceType, used: int) -> Reason | None:
    chip, old = candidate.accelerator, now.accelerator
    if chip is None or old is None:
        return Reason(Code.NO_ACCELERATOR, f"{candidate.name} has no accelerator")
    if chip.vendor != old.vendor:
        return Reason(Code.ANOTHER_VENDOR, f"{candidate.name} carries {chip.vendor}, the model runs on {old.vendor}")
    if candidate.cpu_arch != now.cpu_arch:
        sentence = f"{candidate.name} is {candidate.cpu_arch}, the image runs on {now.cpu_arch}"
        return Reason(Code.ANOTHER_ARCHITECTURE, sentence)
    if candidate.accelerator_count > now.accelerator_count or candidate.accelerator_count < (used or 1):
        have = f"{now.name} has {now.accelerator_count}, of which a request may need {used}"
        sentence = f"{candidate.name} has {candidate.accelerator_count} GPUs, {have}"
        return Reason(Code.OTHER_GPU_COUNT, sentence)
    if _older(chip.compute_capability, old.compute_capability):
        return Reason(
            Code.COMPUTE_CAPABILITY_TOO_OLD,
            f"{candidate.name} has compute capability {_dotted(chip.compute_capability)}, below 7.0",
        )
    return None


def _older(candidate: tuple[int, int] | None, now: tuple[int, int] | None) -> bool:
    """Images built for today's frameworks begin at 7.0 (Volta, Turing)."""
    return candidate is not None and now is not None and candidate < (7, 0) <= now


def _dotted(capability: tuple[int, int] | None) -> str:
    return ".".join(map(str, capability)) if capability else "none"


def _memory(now: InstanceType, candidate: InstanceType, demand: Demand, room: float) -> Reason | None:
    usable = candidate.accelerator.usable_gib if candidate.accelerator else 0.0
    need, seen = (_on_one(gib, now, demand) for gib in (demand.memory.need_gib, demand.memory.peak_gib))
    if need is not None and now.accelerator and now.accelerator.model == candidate.accelerator.model:  # type: ignore[union-attr]
        return None
    if need is not None and need > usable:
        return Reason(
            Code.MEMORY_TOO_SMALL,
            f"{candidate.name} offers {usable:.1f} GiB, and the model needs {need:.1f} GiB per GPU"
            f" ({demand.memory.peak_gib:.1f} GiB seen, and a margin of {100 * (demand.memory.margin - 1):.0f} %)",
        )
    had = now.accelerator.usable_gib if now.accelerator else usable
    if need is not None and seen is not None and (1 + room) * seen > usable and usable < had:
        return Reason(
            Code.MEMORY_TOO_SMALL,
            f"{candidate.name} offers {usable:.1f} GiB, and {seen:.1f} GiB per GPU were seen: on a smaller card"
            f" {100 * room:.0f} % are kept free for a new version of the model",
        )
    if demand.memory.kind is MemoryClass.PREALLOCATED and demand.memory.lower_gib > usable:
        return Reason(
            Code.MEMORY_TOO_SMALL,
            f"{candidate.name} offers {usable:.1f} GiB, and the weights alone need {demand.memory.lower_gib:.1f} GiB",
        )
    return None


def _on_one(gib: float | None, now: InstanceType, demand: Demand) -> float | None:
    """What one GPU holds was averaged over idle ones too; it ran on today's card, so it never needs more than that.

    Where single GPUs were seen it is the fullest one's already.
    """
    if gib is None or not demand.gpus_used or demand.gpus_seen:
        return gib
    whole = now.accelerator.usable_gib if now.accelerator else gib
    return max(gib, min(gib * now.accelerator_count / demand.gpus_used, whole))


def _host(now: InstanceType, candidate: InstanceType, demand: Demand) -> Reason | None:
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


def _quota(candidate: InstanceType, limits: Limits) -> Reason | None:
    if limits.quota is not None and limits.quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {candidate.name} endpoints is {limits.quota}")
    return None
