"""A type of another architecture: without a GPU, or with Inferentia or Trainium."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rightsizer.dimensions.dimension import Elsewhere
from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.option import Effort, Excluded, Option, OptionKind, Risk, RiskResource, Target, fleet, new_option
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.dimension import OfferAnswer
from rightsizer.recommender.other_endpoint import (
    Bill,
    bill_of,
    break_even,
    cheaper_types,
    no_saving_reason,
    other_kind,
    volume_notes,
)

if TYPE_CHECKING:
    from rightsizer.domain.hardware import InstanceType
    from rightsizer.domain.policy import Policy
    from rightsizer.recommender.context import EvaluationContext

UNPROVEN_SHARE = 0.5
"""Chance that a migration to another chip takes a second run of both fleets."""
UNUSED_SHARE = 0.05
"""Share of a request's time up to which the GPU counts as unused: rare requests keep the utilisation low too."""
NEURON_CALLERS = (
    "change nothing once its owner has compiled the model with AWS Neuron and serves it from a Neuron image;"
    " name a second endpoint while the answers of both are compared"
)
CPU_CALLERS = {
    "x86_64": "change nothing once its owner serves the model from an image without CUDA",
    "arm64": "change nothing once its owner serves the model from an image built for arm64 (Graviton), without CUDA",
}

type Sold = tuple[InstanceType, Price]


class OtherArchitecture(Elsewhere):
    """The cheapest type of each architecture that may serve; its owner builds the image or compiles the model."""

    kinds = (OptionKind.OTHER_ARCHITECTURE,)
    applies_to = frozenset()
    """The model has to be built for it first."""

    def describe(self, option: Option) -> str:
        """``run on 1 x ml.inf2.xlarge after a migration to another architecture``."""
        return f"run on {fleet(option.target)} after a migration to another architecture"

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """The cheapest type of each CPU architecture, as an option or with its reason."""
        reason = cpu_refusal(context.demand, context.policy)
        if reason is not None:
            return [reason]
        held = memory_of(context.reference, context.demand)
        plain = cheaper_types(
            context, [h for h in context.inputs.catalogue if h.accelerator is None and not h.family.startswith("t")]
        )
        return [
            _cheapest(context, arch, [sold for sold in plain if sold[0].cpu_arch == arch], held) for arch in CPU_CALLERS
        ]


class OtherChips(OtherArchitecture):
    """Inferentia and Trainium: said apart, behind the ways without a GPU."""

    def out_of_scope(self, context: EvaluationContext) -> Reason | None:
        """Said of the architecture already."""
        return None

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """The cheapest type of Inferentia or Trainium that may serve; each cheaper one that may not, and why."""
        if other_kind(context) is not None:
            return []
        answers: list[OfferAnswer] = []
        for hardware, price in cheaper_types(
            context, [h for h in context.inputs.catalogue if h.accelerator and not h.has_gpu]
        ):
            quota = context.inputs.quotas.get(hardware.name)
            reason = chip_refusal(
                context.reference, hardware, context.demand, context.allowed_slowdown, context.policy, quota
            )
            if reason is not None:
                answers.append(Excluded(hardware.name, reason, OptionKind.OTHER_ARCHITECTURE))
                continue
            more = _instances_factor(
                context, latency_ratio(context.demand, chip_ratio(context.reference, hardware, context.policy))
            )
            count = math.ceil(context.variant.current_count * more - 0.01)
            mean = count if not context.endpoint.scaling else context.instances * more
            bill = bill_of(context, price, mean, count, UNPROVEN_SHARE)
            if bill.saving > 0:
                option = chip_option(hardware, count, price, bill, context.demand)
                return [
                    *answers,
                    replace(option, not_checked=option.not_checked + volume_notes(context.runs, hardware)),
                ]
            answers.append(
                Excluded(hardware.name, no_saving_reason(context, hardware.name), OptionKind.OTHER_ARCHITECTURE)
            )
        if not answers:
            sentence = "no type with Inferentia or Trainium is cheaper here than what runs"
            return [Reason(Code.NOT_CHEAPER, sentence)]
        return answers


def _cheapest(context: EvaluationContext, arch: str, sold: list[Sold], held: float) -> OfferAnswer:
    """The cheapest type of the architecture that may serve; else the reason of the dearest, for others are smaller."""
    refused: Excluded | None = None
    for hardware, price in sold:
        option = _option_on_type(context, hardware, price, held)
        if isinstance(option, Option):
            return option
        refused = Excluded(hardware.name, option, OptionKind.OTHER_ARCHITECTURE)
    if refused is not None:
        return refused
    usd = f"USD {context.price.usd_per_hour} per hour of {context.runs.name}"
    sentence = f"no {arch} type without a GPU is sold here for less than the {usd}"
    return Reason(Code.NOT_CHEAPER, sentence)


def _option_on_type(context: EvaluationContext, hardware: InstanceType, price: Price, held: float) -> Option | Reason:
    quota = context.inputs.quotas.get(hardware.name)
    if quota is not None and quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {hardware.name} endpoints is {quota}")
    small = host_refusal(context.reference, hardware, context.demand, held)
    if small is not None:
        return small
    count = context.variant.current_count
    bill = bill_of(context, price, context.instances, count, 0.0)
    if bill.saving <= 0:
        return no_saving_reason(context, hardware.name)
    option = cpu_option(hardware, count, price, bill, context.demand)
    return replace(option, not_checked=option.not_checked + volume_notes(context.runs, hardware))


def _instances_factor(context: EvaluationContext, slower: float) -> float:
    """Instances for each of today's, at least one: so many that the planned load keeps below what one server may."""
    fleet = context.variant.current_count * context.workers
    load = context.demand.load.peak_rate * context.latency.mean_s * slower / fleet
    return max(1.0, load / context.policy.rho_one)


def cpu_refusal(demand: Demand, policy: Policy) -> Reason | None:
    """Why a type without a GPU is no option; None for a GPU that was practically idle during requests."""
    peak = demand.gpu_peak
    if peak is None:
        return Reason(Code.NO_GPU_METRICS, "no GPU utilisation was published, so its GPU counts as needed")
    if peak >= policy.cpu_class_share:
        sentence = f"its GPU works (up to {100 * peak:.1f} %); types with Graviton, x86 alone and serverless have none"
        return Reason(Code.NOT_APPLICABLE, sentence)
    never = peak == 0 and demand.requests >= policy.requests_needed
    works_s = 0.0 if never else demand.gpu_s_per_request
    if works_s is None or demand.latency is None:
        return Reason(Code.TOO_FEW_REQUESTS, f"{demand.requests:,.0f} requests do not tell whether its GPU is needed")
    share = works_s / demand.latency.mean_s
    if share > UNUSED_SHARE:
        sentence = (
            f"its GPU works for {100 * demand.gpu_share:.0f} % of each request, however rarely they come: it is needed"
        )
        return Reason(Code.NOT_APPLICABLE, sentence)
    if demand.days < policy.idle_days - 1:
        sentence = f"its GPU was unused for {demand.days:.1f} days, {policy.idle_days} are needed to call it unneeded"
        return Reason(Code.TOO_FEW_DAYS, sentence)
    return None


def chip_refusal(
    now: InstanceType,
    candidate: InstanceType,
    demand: Demand,
    allowed_slowdown: float,
    policy: Policy,
    quota: int | None,
) -> Reason | None:
    """Why another vendor's chips cannot serve, or None. `allowed_slowdown`: how much slower requests may become.

    No measured bound is known for these chips, so the one for GPUs is taken without the credit for faster cards.
    """
    chip, old = candidate.accelerator, now.accelerator
    if chip is None or old is None:
        return Reason(Code.NO_ACCELERATOR, f"{candidate.name} has no accelerator")
    used = demand.gpus_used or now.accelerator_count
    need = memory_of(now, demand)
    if need > chip.usable_gib * candidate.accelerator_count:
        room = chip.usable_gib * candidate.accelerator_count
        gpus = count(used, "GPU")
        sentence = f"the model needs up to {need:.1f} GiB on {gpus}, {candidate.name} offers {room:.1f} GiB"
        return Reason(Code.MEMORY_TOO_SMALL, sentence)
    if candidate.accelerator_count < used:
        chips, gpus = count(candidate.accelerator_count, "chip"), count(used, "GPU")
        sentence = f"{candidate.name} has {chips}, the model may use {gpus}"
        return Reason(Code.OTHER_GPU_COUNT, sentence)
    if (host := host_refusal(now, candidate, demand, 0.0)) is not None:
        return host
    if quota is not None and quota < 1:
        return Reason(Code.NO_QUOTA, f"the account's quota for {candidate.name} endpoints is {quota}")
    slower = latency_ratio(demand, chip_ratio(now, candidate, policy))
    if slower > allowed_slowdown:
        sentence = (
            f"{candidate.name} may be {slower:.2f} times slower by its datasheet, {allowed_slowdown:.2f} is allowed"
        )
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
    """GiB that the model may hold on all GPUs it uses; the whole card for an unknown need."""
    usable = now.accelerator.usable_gib if now.accelerator else 0.0
    per_gpu = demand.memory.need_gib if demand.memory.need_gib is not None else usable
    return per_gpu * (demand.gpus_used or now.accelerator_count)


def host_refusal(now: InstanceType, candidate: InstanceType, demand: Demand, extra_gib: float) -> Reason | None:
    """Why the host is too small, or None; what is not known is taken as what there is. `extra_gib` comes on top."""
    memory = (now.memory_gib if demand.host_memory_gib is None else demand.host_memory_gib) + extra_gib
    cores = float(now.vcpu) if demand.vcpu is None else demand.vcpu
    if candidate.memory_gib < memory:
        sentence = f"the host needs up to {memory:.1f} GiB, {candidate.name} has {candidate.memory_gib:g} GiB"
        return Reason(Code.HOST_MEMORY_TOO_SMALL, sentence)
    if candidate.vcpu < cores:
        sentence = f"the host needs up to {cores:.1f} vCPU, {candidate.name} has {candidate.vcpu}"
        return Reason(Code.VCPU_TOO_FEW, sentence)
    return None


def chip_option(to: InstanceType, count: int, price: Price, bill: Bill, demand: Demand) -> Option:
    """Inferentia or Trainium: the same load after the model was compiled for it."""
    model = to.accelerator.model if to.accelerator else ""
    unknown = demand.memory.need_gib is None or demand.memory.kind is MemoryClass.PREALLOCATED
    return new_option(
        OptionKind.OTHER_ARCHITECTURE,
        Target(to.name, count),
        price,
        bill,
        demand.confidence,
        in_place=False,
        restarts=True,
        risks={
            RiskResource.COMPILATION: Risk.HIGH,
            RiskResource.LATENCY: Risk.MEDIUM,
            RiskResource.GPU_MEMORY: Risk.MEDIUM if unknown else Risk.LOW,
        },
        effort=Effort.VERY_HIGH,
        client_change=NEURON_CALLERS,
        notes=(f"the model has to be compiled for {model} with AWS Neuron, and be served from a Neuron image",),
        facts={"break-even": break_even(bill)},
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
    return new_option(
        OptionKind.OTHER_ARCHITECTURE,
        Target(to.name, count),
        price,
        bill,
        demand.confidence,
        in_place=False,
        restarts=True,
        risks={RiskResource.LATENCY: Risk.MEDIUM, RiskResource.VCPU: Risk.MEDIUM},
        effort=Effort.HIGH,
        client_change=CPU_CALLERS[to.cpu_arch],
        notes=(f"the GPU was used for at most {peak:.1f} % of the time in {demand.days:.0f} days of requests",),
        facts={"break-even": break_even(bill)},
        not_checked=(
            "whether the model runs without CUDA, and how fast: try it on the type before callers are moved",
            *(("whether every library of the image exists for arm64",) if to.cpu_arch == "arm64" else ()),
        ),
    )
