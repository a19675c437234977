"""What is not done on the same endpoint: asynchronous calls, other chips, no GPU at all. Each priced and rated.

Nothing here is ever applied by the program; each option says who has to do what, and until which load it pays.
Sources: the SageMaker guide on asynchronous inference and on supported instances.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, Target, priced
from rightsizer.domain.price import Price

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
        risks={"latency": Risk.MEDIUM},
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
        risks={"compilation": Risk.HIGH, "latency": Risk.MEDIUM, "gpu-memory": Risk.MEDIUM if unknown else Risk.LOW},
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
        risks={"latency": Risk.MEDIUM, "vcpu": Risk.MEDIUM},
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
        risks={"latency": Risk.HIGH, "vcpu": Risk.MEDIUM},
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
    risks: dict[str, Risk],
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
        client_change=client_change,
        notes=notes,
        facts=facts,
        not_checked=not_checked,
    )
