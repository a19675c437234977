"""Why an alternative that is not done on the same endpoint does not apply: each answer with its numbers."""

import math
from decimal import Decimal

from rightsizer.domain.demand import Demand
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.reason import Code, Reason

ASYNC_TAG = "rightsizer:async-ok"
UNUSED_SHARE = 0.05
"""Share of a request's time up to which the GPU counts as unused: rare requests keep the utilisation low too."""
SERVERLESS_GB = 6
"""The most memory of a serverless endpoint, GB."""
SERVERLESS_REQUEST_S = 60.0
"""The longest request that serverless inference answers."""
SECONDS_PER_MONTH = int(HOURS_PER_MONTH) * 3600


def async_refusal(tag: str, p95_s: float, asleep: float, minutes: int, days: int, policy: Policy) -> Reason | None:
    """Why asynchronous inference is no option, or None. `asleep`: share of the time that it would be at zero."""
    if p95_s <= policy.async_from_s:
        sentence = f"p95 is {p95_s:.2f} s; asynchronous calls are for requests above {policy.async_from_s:g} s"
        return Reason(Code.NOT_APPLICABLE, sentence)
    if tag.lower() != "true":
        sentence = f"p95 is {p95_s:.1f} s, but no tag {ASYNC_TAG}=true says that its callers can wait for their answers"
        return Reason(Code.NOT_OPTED_IN, sentence)
    if asleep <= 0:
        sentence = f"no pause of {minutes} minutes in {days} days: it would never sleep and cost the same"
        return Reason(Code.NOT_CHEAPER, sentence)
    return None


def delete_refusal(endpoint: Endpoint, demand: Demand, policy: Policy) -> Reason:
    """Why an endpoint that is not idle is not to be deleted."""
    silent = f"{policy.idle_days} silent days make it idle"
    if demand.requests > 0:
        sentence = (
            f"{demand.requests:,.0f} requests in {demand.days:.1f} days, the last {demand.silent_days} days silent"
        )
        if demand.silent_days >= policy.idle_days:
            silent = f"a look-back of {policy.lookback_days} days without one makes it idle"
        return Reason(Code.NOT_APPLICABLE, f"it is used ({sentence}); {silent}")
    if len(endpoint.variants) > 1:
        return Reason(Code.OTHER_KIND, "it has several variants, and the calls of one do not tell whether all are idle")
    if EndpointKind.ASYNC in endpoint.kinds and demand.backlog != 0:
        held = "is not known" if demand.backlog is None else f"was up to {demand.backlog:.0f}"
        return Reason(Code.NOT_APPLICABLE, f"the backlog of its queue {held}, and only an empty one makes it idle")
    if demand.gpu_peak is not None and demand.gpu_peak > policy.cpu_class_share:
        return Reason(Code.NOT_APPLICABLE, f"its GPU works without requests (up to {100 * demand.gpu_peak:.1f} %)")
    return Reason(Code.TOO_FEW_DAYS, f"silent for {demand.silent_days} days; {silent}")


def chip_refusal(
    now: InstanceType, candidate: InstanceType, demand: Demand, stretch: float, policy: Policy, quota: int | None
) -> Reason | None:
    """Why another vendor's chips cannot serve, or None. `stretch`: how much slower requests may become.

    No measured bound is known for these chips, so the one for GPUs is taken without the credit for faster cards.
    """
    chip, old = candidate.accelerator, now.accelerator
    if chip is None or old is None:
        return Reason(Code.NO_ACCELERATOR, f"{candidate.name} has no accelerator")
    used = demand.gpus_used or now.accelerator_count
    need = memory_of(now, demand)
    if need > chip.usable_gib * candidate.accelerator_count:
        room = chip.usable_gib * candidate.accelerator_count
        sentence = f"the model needs up to {need:.1f} GiB on {used} GPU, {candidate.name} offers {room:.1f} GiB"
        return Reason(Code.MEMORY_TOO_SMALL, sentence)
    if candidate.accelerator_count < used:
        sentence = f"{candidate.name} has {candidate.accelerator_count} chips, the model may use {used} GPUs"
        return Reason(Code.OTHER_GPU_COUNT, sentence)
    if (host := host_refusal(now, candidate, demand, 0.0)) is not None:
        return host
    if quota is not None and quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {candidate.name} endpoints is {quota}")
    slower = latency_ratio(demand, chip_ratio(now, candidate, policy))
    if slower > stretch:
        sentence = f"{candidate.name} may be {slower:.2f} times slower by its datasheet, {stretch:.2f} is allowed"
        return Reason(Code.TOO_SLOW, sentence)
    return None


def chip_ratio(now: InstanceType, candidate: InstanceType, policy: Policy) -> float:
    """How many times slower the work on the chip may be, by the datasheets and the bound for GPUs."""
    chip, old = candidate.accelerator, now.accelerator
    if chip is None or old is None:
        return math.inf
    return policy.slowdown_bound * old.phi(chip)


def latency_ratio(demand: Demand, ratio: float) -> float:
    """How many times longer a request may take when its part on the GPU takes `ratio` times as long."""
    return 1 - demand.gpu_share + demand.gpu_share * ratio


def memory_of(now: InstanceType, demand: Demand) -> float:
    """GiB that the model may hold on all GPUs that it uses; the whole card where the need cannot be known."""
    usable = now.accelerator.usable_gib if now.accelerator else 0.0
    per_gpu = demand.memory.need_gib if demand.memory.need_gib is not None else usable
    return per_gpu * (demand.gpus_used or now.accelerator_count)


def host_refusal(now: InstanceType, candidate: InstanceType, demand: Demand, extra_gib: float) -> Reason | None:
    """Why the host is too small, or None; what is not known is taken as what there is. `extra_gib` comes on top."""
    memory = (now.memory_gib if demand.host_memory_gib is None else demand.host_memory_gib) + extra_gib
    cores = float(now.vcpu) if demand.vcpu is None else demand.vcpu
    if candidate.memory_gib < memory:
        sentence = f"the host needs up to {memory:.0f} GiB, {candidate.name} has {candidate.memory_gib:.0f} GiB"
        return Reason(Code.HOST_MEMORY_TOO_SMALL, sentence)
    if candidate.vcpu < cores:
        sentence = f"the host needs up to {cores:.1f} vCPU, {candidate.name} has {candidate.vcpu}"
        return Reason(Code.VCPU_TOO_FEW, sentence)
    return None


def cpu_refusal(demand: Demand, policy: Policy) -> Reason | None:
    """Why a type without a GPU is no option, or None where the GPU was practically never used while requests came."""
    peak = demand.gpu_peak
    if peak is None:
        return Reason(Code.NO_GPU_METRICS, "no GPU utilisation was published, so its GPU counts as needed")
    if peak >= policy.cpu_class_share:
        sentence = f"its GPU works (up to {100 * peak:.1f} %); types with Graviton, x86 alone and serverless have none"
        return Reason(Code.NOT_APPLICABLE, sentence)
    if demand.gpu_s_per_request is None or demand.latency is None:
        return Reason(Code.TOO_FEW_REQUESTS, f"{demand.requests:.0f} requests do not tell whether its GPU is needed")
    share = demand.gpu_s_per_request / demand.latency.mean_s
    if share > UNUSED_SHARE:
        sentence = (
            f"its GPU works for {100 * demand.gpu_share:.0f} % of each request, however rarely they come: it is needed"
        )
        return Reason(Code.NOT_APPLICABLE, sentence)
    if demand.days < policy.idle_days - 1:
        sentence = f"its GPU was unused for {demand.days:.1f} days, {policy.idle_days} are needed to call it unneeded"
        return Reason(Code.TOO_FEW_DAYS, sentence)
    return None


def serverless_refusal(demand: Demand, need_gib: float, cold_ok: bool) -> Reason | None:
    """Why serverless inference, whose price is known, is no option, or None. `need_gib`: model and host together."""
    if need_gib > SERVERLESS_GB:
        sentence = f"host and model need up to {need_gib:.0f} GiB, serverless has {SERVERLESS_GB} GB at most"
        return Reason(Code.HOST_MEMORY_TOO_SMALL, sentence)
    if demand.latency is None or demand.latency.p99_s > SERVERLESS_REQUEST_S / 2:
        slow = f"{demand.latency.p99_s:.0f} s" if demand.latency else "unknown"
        return Reason(Code.TOO_SLOW, f"p99 is {slow} with a GPU beside it; serverless ends a request after 60 s")
    if not cold_ok:
        sentence = "no tag rightsizer:cold-start-ok=true says that callers can wait for a start after a pause"
        return Reason(Code.NOT_OPTED_IN, sentence)
    return None


def busy_seconds(demand: Demand) -> float:
    """Seconds of requests in a month, at today's latency."""
    return (demand.latency.mean_s if demand.latency else 0.0) * demand.load.mean_rate * SECONDS_PER_MONTH


def serverless_reason(demand: Demand, usd: Decimal) -> Reason:
    """Why serverless is named but not offered: its price is not in the table. The break-even needs none."""
    seconds = busy_seconds(demand)
    limit = f"{float(usd) / (SERVERLESS_GB * seconds):.5f}" if seconds > 0 else "any price"
    return Reason(
        Code.NO_PRICE,
        f"no GPU is needed, but the price table has no serverless price here: {SERVERLESS_GB} GB for {seconds:.0f} s of"
        f" requests a month cost less than today below USD {limit} per GB-second; it needs a new endpoint",
    )
