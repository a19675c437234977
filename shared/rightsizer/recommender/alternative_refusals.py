"""What is not done on the same endpoint: why it does not apply, with its numbers, or its price and risk.

Asynchronous calls, other chips, no GPU at all, deletion, and instance pools as the fallback of a downsize whose new
type has no capacity. Nothing here is ever applied by the program; each option says who has to do what, and until which
load it pays. Sources: the SageMaker guide on asynchronous inference, on supported instances, and on heterogeneous
endpoints (instance pools), with its list of Regions.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, RiskResource, Target, priced
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import HOURS_PER_MONTH, Price
from rightsizer.domain.reason import Code, Reason

ASYNC_TAG = "rightsizer:async-ok"
UNUSED_SHARE = 0.05
"""Share of a request's time up to which the GPU counts as unused: rare requests keep the utilisation low too."""
SERVERLESS_GB = 6
"""The most memory of a serverless endpoint, GB."""
SERVERLESS_REQUEST_S = 60.0
"""The longest request that serverless inference answers."""
SECONDS_PER_MONTH = int(HOURS_PER_MONTH) * 3600
ASYNC_TIMEOUT_MINUTES = 15
ASYNC_CALLERS = (
    "call InvokeEndpointAsync of a new endpoint with the input in S3 (inline up to 128,000 bytes), and read the answer"
    " from S3 or wait for its SNS notice"
)
NEURON_CALLERS = (
    "change nothing once its owner has compiled the model with AWS Neuron and serves it from a Neuron image;"
    " name a second endpoint while the answers of both are compared"
)
CPU_CALLERS = {
    "x86_64": "change nothing once its owner serves the model from an image without CUDA",
    "arm64": "change nothing once its owner serves the model from an image built for arm64 (Graviton), without CUDA",
}

SERVERLESS_CALLERS = (
    "name a new endpoint: a real-time one cannot become serverless; requests and answers up to 4 MB, 60 s, and a wait"
    " for the start after a pause"
)
POOL_READERS = "change nothing; programs that read the variant's InstanceType must read its InstancePools"
POOL_REGIONS = frozenset(
    {
        "us-east-1",
        "us-east-2",
        "us-west-2",
        "ca-central-1",
        "sa-east-1",
        "eu-west-1",
        "eu-west-2",
        "eu-central-1",
        "eu-central-2",
        "eu-north-1",
        "ap-south-1",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
    }
)


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


@dataclass(frozen=True, slots=True)
class Bill(Money):
    """US dollars of an alternative against today's."""

    now_usd: Decimal


def async_option(runs: tuple[str, int], price: Price, bill: Bill, demand: Demand, asleep: float) -> Option:
    """A new asynchronous endpoint of the same type that sleeps between bursts; its queue keeps what comes meanwhile."""
    hour = 60 / ASYNC_TIMEOUT_MINUTES
    return _option(
        OptionKind.ASYNC,
        Target(runs[0], runs[1], minimum=0, idle_minutes=ASYNC_TIMEOUT_MINUTES),
        price,
        bill,
        demand,
        risks={RiskResource.LATENCY: Risk.MEDIUM},
        effort=Effort.HIGH,
        client_change=ASYNC_CALLERS,
        notes=(f"at zero {100 * asleep:.0f} % of the look-back, after {ASYNC_TIMEOUT_MINUTES} silent minutes",),
        facts={
            "asleep": f"{100 * asleep:.0f} %",
            "break-even": f"no longer cheaper from {hour:g} requests per hour evenly spread day and night, today"
            f" {3600 * demand.load.mean_rate:.1f} per hour in bursts",
            "needs": "a policy on ApproximateBacklogSizePerInstance and one on HasBacklogWithoutCapacity to wake it",
        },
        not_checked=(
            "the size of inputs and answers (at most 1 GB) and the longest request (at most 1 hour)",
            "how long an instance takes to start: the first request of a burst waits for it",
            "how long both endpoints run until every caller has moved",
        ),
    )


def chip_option(to: InstanceType, count: int, price: Price, bill: Bill, demand: Demand) -> Option:
    """Inferentia or Trainium: the same load after the model was compiled for it."""
    model = to.accelerator.model if to.accelerator else ""
    unknown = demand.memory.need_gib is None or demand.memory.kind is MemoryClass.PREALLOCATED
    return _option(
        OptionKind.OTHER_ARCHITECTURE,
        Target(to.name, count),
        price,
        bill,
        demand,
        risks={
            RiskResource.COMPILATION: Risk.HIGH,
            RiskResource.LATENCY: Risk.MEDIUM,
            RiskResource.GPU_MEMORY: Risk.MEDIUM if unknown else Risk.LOW,
        },
        effort=Effort.VERY_HIGH,
        client_change=NEURON_CALLERS,
        notes=(f"the model has to be compiled for {model} with AWS Neuron, and be served from a Neuron image",),
        facts={"break-even": _break_even(bill)},
        not_checked=(
            f"whether AWS Neuron compiles every operator of the model for {model}",
            "whether the compiled model answers the same, and how fast: no measured bound is known for this chip",
            "how requests wait for each other there: the past days were not replayed on it",
            "the engineering time of the migration: it is not in the payback",
            f"capacity of {to.name} in the Availability Zones",
        ),
    )


def cpu_option(to: InstanceType, count: int, price: Price, bill: Bill, demand: Demand) -> Option:
    """A type without a GPU, for a model that does not use the one it has."""
    peak = 100 * (demand.gpu_peak or 0.0)
    return _option(
        OptionKind.OTHER_ARCHITECTURE,
        Target(to.name, count),
        price,
        bill,
        demand,
        risks={RiskResource.LATENCY: Risk.MEDIUM, RiskResource.VCPU: Risk.MEDIUM},
        effort=Effort.HIGH,
        client_change=CPU_CALLERS[to.cpu_arch],
        notes=(f"the GPU was used for at most {peak:.1f} % of the time in {demand.days:.0f} days of requests",),
        facts={"break-even": _break_even(bill)},
        not_checked=(
            "whether the model runs without CUDA, and how fast: try it on the type before callers are moved",
            *(("whether every library of the image exists for arm64",) if to.cpu_arch == "arm64" else ()),
        ),
    )


def serverless_option(gigabytes: int, seconds: float, price: Price, bill: Bill, demand: Demand) -> Option:
    """A new serverless endpoint, billed by the second of requests, for a model that does not use its GPU."""
    ratio = float(bill.now_usd / bill.usd_per_month) if bill.usd_per_month > 0 else math.inf
    return _option(
        OptionKind.SERVERLESS,
        Target("", 0),
        price,
        bill,
        demand,
        risks={RiskResource.LATENCY: Risk.HIGH, RiskResource.VCPU: Risk.MEDIUM},
        effort=Effort.HIGH,
        client_change=SERVERLESS_CALLERS,
        notes=(f"{gigabytes} GB for {seconds:.0f} s of requests a month, priced by the GB-second",),
        facts={"break-even": f"as dear as today at {ratio:.2f} times the seconds of requests"},
        not_checked=(
            "whether the model runs without CUDA, and how fast: slower requests are billed for longer",
            "how long it takes to start after a pause",
            "what data in and out cost: the size of requests is not published",
            "whether the model needs a VPC, network isolation or an image above 10 GB, which serverless does not have",
            "whether 200 requests at once are enough",
        ),
    )


def _break_even(bill: Bill) -> str:
    ratio = float(bill.now_usd / bill.usd_per_month) if bill.usd_per_month > 0 else math.inf
    return f"as dear as today if it carries {ratio:.2f} times less per instance than planned"


def _option(
    kind: OptionKind,
    target: Target,
    price: Price,
    bill: Bill,
    demand: Demand,
    *,
    risks: dict[RiskResource, Risk],
    effort: Effort,
    client_change: str,
    notes: tuple[str, ...],
    facts: dict[str, str],
    not_checked: tuple[str, ...],
) -> Option:
    return priced(
        kind,
        target,
        price,
        bill,
        demand.confidence,
        risks,
        effort,
        in_place=False,
        restarts=True,
        client_change=client_change,
        notes=notes,
        facts=facts,
        not_checked=not_checked,
    )


def pool_refusal(best: Option | None, now: tuple[str, int], region: str, plain: bool) -> Reason | None:
    """Why no instance pool is offered as the fallback of a downsize, or None."""
    if not plain:
        return Reason(Code.OTHER_KIND, "instance pools are offered for plain real-time endpoints only")
    if best is None or best.target.instance_type == now[0] or not best.in_place:
        return Reason(Code.NOT_APPLICABLE, "a pool secures a new type against missing capacity, and none is chosen")
    if best.target.instance_count != now[1] or best.target.hourly_counts is not None:
        return Reason(Code.NOT_APPLICABLE, f"{now[1]} instances of {now[0]} are no fallback for another count")
    if region not in POOL_REGIONS:
        return Reason(Code.NOT_APPLICABLE, f"instance pools are not offered in {region}")
    return None


def pool_option(best: Option, now: tuple[str, int], now_usd: Decimal) -> Option:
    """The chosen type first, today's type where the first has no capacity: the same saving while the first serves.

    The program takes this way by itself after the change to the first type ended for want of capacity.
    """
    pools = (best.target.instance_type, now[0])
    return replace(
        best,
        kind=OptionKind.INSTANCE_POOLS,
        target=replace(best.target, pools=pools),
        effort=Effort.LOW,
        client_change=POOL_READERS,
        notes=(f"{pools[0]} first; {pools[1]} only where that has no capacity",),
        test_hours=None,
        policy_changes=(),
        facts={"while the fallback serves": f"USD {now_usd} per month, as today", "break-even": "from the first hour"},
        not_checked=(
            *best.not_checked,
            "whether AWS changes this endpoint to pools in place; routing to least outstanding requests may be needed",
        ),
    )
