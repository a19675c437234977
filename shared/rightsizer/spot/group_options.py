"""Better capacity for a Spot group, and its words: more types, price-capacity-optimised allocation, On-Demand base."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Excluded
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import AutoScalingGroup, CapacityKind, GpuNeed, MeasuredUse, Outlook
from rightsizer.domain.spot import Pool, PoolSight, SpotNeed, SpotPlacement

STRATEGY = "price-capacity-optimized"
"""AWS's recommendation for Spot (EC2 User Guide, Spot best practices)."""
MOST_OVERRIDES = 40
"""Overrides that a launch template of a group may have (Auto Scaling API)."""
DISTRIBUTION = frozenset(
    {
        "OnDemandAllocationStrategy",
        "OnDemandBaseCapacity",
        "OnDemandPercentageAboveBaseCapacity",
        "SpotAllocationStrategy",
        "SpotInstancePools",
        "SpotMaxPrice",
    }
)
"""Members of an InstancesDistribution whose effect on each other is known; DistributionSegments go with a base."""
HOURS = float(HOURS_PER_MONTH)
SPARE = 1.1
"""Memory: the measured peak and a tenth."""
ENOUGH_DAYS = 7.0
BUSIEST = 0.8
"""The busiest hour may use so much of another GPU (docs/decision-model.md, headroom)."""


def need_of(kind: InstanceType, use: MeasuredUse | None) -> GpuNeed:
    """Needs of one instance of the group: measured peaks plus a tenth, or the present type's size.

    Fewer than `ENOUGH_DAYS` days of data are no measurement: missing is not idle.
    """
    gpu = kind.accelerator
    own = gpu.usable_gib if gpu else 0.0
    if use is None or use.days < ENOUGH_DAYS:
        return GpuNeed(kind.accelerator_count, own, kind.vcpu, kind.memory_gib, measured=False)
    return GpuNeed(
        gpus=kind.accelerator_count,
        gpu_memory_gib=min(own, use.gpu_memory_gib * SPARE),
        vcpu=kind.vcpu,
        memory_gib=min(kind.memory_gib, use.memory_gib * SPARE) if use.memory_gib is not None else kind.memory_gib,
        measured=True,
        gpu_share=use.gpu_share,
    )


def fitting_types(
    need: GpuNeed, present: InstanceType, types: Iterable[InstanceType]
) -> tuple[list[InstanceType], list[Excluded]]:
    """Types that can stand in for the present one, and what ruled the others with a GPU out.

    Same processor architecture, at least as many GPUs, memory per GPU, vCPUs and memory as needed, and a GPU of at
    least the present compute capability: an AMI and a container that run today run there too.
    """
    fits, out = [], []
    for kind in sorted(types, key=lambda kind: kind.name):
        if not kind.has_gpu:
            continue
        reason = _misfit(need, present, kind)
        if reason is None:
            fits.append(kind)
        else:
            out.append(Excluded(kind.ec2_name, reason))
    return fits, out


def _misfit(need: GpuNeed, present: InstanceType, kind: InstanceType) -> Reason | None:
    gpu, own = kind.accelerator, present.accelerator
    name = kind.ec2_name
    if gpu is None or kind.cpu_arch != present.cpu_arch:
        return Reason(Code.ANOTHER_ARCHITECTURE, f"{name} is {kind.cpu_arch}, the group runs {present.cpu_arch}")
    if kind.accelerator_count != need.gpus:
        return Reason(Code.OTHER_GPU_COUNT, f"{name} has {kind.accelerator_count} GPUs, {need.gpus} are needed")
    if gpu.usable_gib < need.gpu_memory_gib:
        sentence = f"{name} has {gpu.usable_gib:.1f} GiB a GPU, {need.gpu_memory_gib:.1f} GiB are needed"
        return Reason(Code.MEMORY_TOO_SMALL, sentence)
    if kind.vcpu < need.vcpu:
        return Reason(Code.VCPU_TOO_FEW, f"{name} has {kind.vcpu} vCPUs, {need.vcpu} are needed")
    if kind.memory_gib < need.memory_gib:
        sentence = f"{name} has {kind.memory_gib:.0f} GiB of memory, {need.memory_gib:.0f} GiB are needed"
        return Reason(Code.HOST_MEMORY_TOO_SMALL, sentence)
    if own and own.compute_capability and (gpu.compute_capability or (0, 0)) < own.compute_capability:
        return Reason(Code.COMPUTE_CAPABILITY_TOO_OLD, f"{name} has an older GPU ({gpu.model}) than {own.model}")
    if need.gpu_share is not None and need.gpu_share * slowdown_of(present, kind) > BUSIEST:
        sentence = (
            f"{name} may be {slowdown_of(present, kind):.1f} times slower, and the busiest hour uses "
            f"{need.gpu_share:.0%} "
            f"of the present GPU"
        )
        return Reason(Code.TOO_SLOW, sentence)
    return None


def slowdown_of(present: InstanceType, other: InstanceType) -> float:
    """How many times slower the other type's GPU may be: the larger ratio of arithmetic and memory bandwidth.

    1 or less is no slower whatever the work is bound by (docs/decision-model.md, slowdown between accelerators).
    """
    own, gpu = present.accelerator, other.accelerator
    if own is None or gpu is None:
        return 1.0
    ratios = (own.fp16_tflops / gpu.fp16_tflops, own.memory_bandwidth_gbps / gpu.memory_bandwidth_gbps)
    return max(ratios)


def stand_ins(present: InstanceType, types: Iterable[InstanceType]) -> list[str]:
    """Names of other types that can do the same work: same GPU model first, then the smallest."""
    model = present.accelerator.model if present.accelerator else ""
    fits, _ = fitting_types(need_of(present, None), present, types)
    ranked = sorted(
        (kind.accelerator is None or kind.accelerator.model != model, kind.vcpu, kind.name) for kind in fits
    )
    return [name for _, _, name in ranked if name != present.name]


def _unchanged(_: InstanceType) -> float:
    return 1.0


def alternatives(
    group: AutoScalingGroup,
    present: InstanceType,
    fits: Sequence[InstanceType],
    hosting: Mapping[str, float],
    spot_usd: float,
) -> list[tuple[CapacityKind, Reason]]:
    """Cheaper alternatives to the replaced Spot: On-Demand of a fitting type, or a SageMaker endpoint type.

    `hosting` are SageMaker's prices an hour by type, `spot_usd` what an hour of service from Spot costs, interruptions
    included. One sentence each, the cheapest type of each kind.
    """
    found = []
    for kind, over in ((CapacityKind.SMALLER_ON_DEMAND, hosting_over_ec2), (CapacityKind.ENDPOINT_TYPE, _unchanged)):
        priced = sorted((hosting[fit.name] / over(fit), fit.name) for fit in fits if fit.name in hosting)
        if not priced or priced[0][0] >= spot_usd:
            continue
        usd, name = priced[0]
        times = next(slowdown_of(present, fit) for fit in fits if fit.name == name)
        slow = f"; it may be {times:.1f} times slower" if times > 1 else ""
        what = (
            f"On-Demand {name.removeprefix('ml.')}"
            if kind is CapacityKind.SMALLER_ON_DEMAND
            else f"for a group that serves requests, a SageMaker endpoint on {name}"
        )
        text = (
            f"{what} at {usd:.2f} USD an hour would cost {group.name} less than its Spot at {spot_usd:.2f}, "
            f"interruptions counted{slow}"
        )
        found.append((kind, Reason(Code.CHEAPER_OPTION, text)))
    return found


def outlook(
    placement: SpotPlacement,
    running: Mapping[Pool, int],
    sights: Sequence[PoolSight],
    need: SpotNeed,
    rate: Callable[[PoolSight], float],
) -> Outlook:
    """A month of the placement: cost, instances lost and hours without them, at the pools' prices and rates."""
    by_pool = {sight.pool: sight for sight in sights}
    counts = {pool: running.get(pool, 0) + placement.launch.get(pool, 0) for pool in {*running, *placement.launch}}
    spot = [(count, by_pool[pool]) for pool, count in counts.items() if count and pool in by_pool]
    lost = sum(count * rate(sight) for count, sight in spot)
    usd = sum(count * sight.usd_per_hour for count, sight in spot) + placement.on_demand * need.on_demand_usd
    return Outlook(
        usd_per_month=usd * HOURS,
        interruptions_per_month=lost * HOURS,
        lost_hours_per_month=lost * need.gap_hours * HOURS,
        on_demand=placement.on_demand,
        spot=sum(count for count, _ in spot),
    )


def policy_change(
    group: AutoScalingGroup, types: Sequence[str], base: int
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | Excluded:
    """The UpdateAutoScalingGroup request and the one that undoes it; Excluded where a person has to decide.

    What the policy says already is kept: launch template, overrides, percentages, price limits. Desired, minimum and
    maximum are never part of the request.
    """
    purchase = group.purchase
    if not purchase.mixed:
        sentence = f"{group.name} has no mixed instances policy: its owner has to write one"
        return Excluded(group.name, Reason(Code.UNKNOWN_FIELD, sentence))
    if purchase.weighted:
        sentence = f"{group.name} counts its types with weights; the weight of a new type is the owner's to choose"
        return Excluded(group.name, Reason(Code.UNKNOWN_FIELD, sentence))
    if base > group.maximum:
        sentence = f"an On-Demand base of {base} is above the maximum of {group.name}, {group.maximum}"
        return Excluded(group.name, Reason(Code.NO_QUOTA, sentence))
    old = purchase.mixed
    if unknown := sorted(set(old.get("InstancesDistribution", {})) - DISTRIBUTION):
        sentence = (
            f"{group.name} sets {unknown[0]}, which an On-Demand base may undo: the policy is the owner's to choose"
        )
        return Excluded(group.name, Reason(Code.UNKNOWN_FIELD, sentence))
    template = dict(old.get("LaunchTemplate", {}))
    if not purchase.attribute_based:
        template["Overrides"] = _overrides(template.get("Overrides", []), types)
    distribution = {k: v for k, v in old.get("InstancesDistribution", {}).items() if k != "SpotInstancePools"}
    distribution |= {"SpotAllocationStrategy": STRATEGY, "OnDemandBaseCapacity": base}
    new = {**old, "LaunchTemplate": template, "InstancesDistribution": distribution}
    name = {"AutoScalingGroupName": group.name}
    return {**name, "MixedInstancesPolicy": new}, {**name, "MixedInstancesPolicy": dict(old)}


def _overrides(present: Sequence[Mapping[str, Any]], types: Sequence[str]) -> list[Mapping[str, Any]]:
    held = {row.get("InstanceType") for row in present}
    return [*present, *({"InstanceType": kind} for kind in types if kind not in held)][:MOST_OVERRIDES]


def hosting_over_ec2(kind: InstanceType) -> float:
    """SageMaker's hosting price over EC2's Linux On-Demand price of a GPU type, to derive the one from the other.

    1020 pairs of both prices in 27 Regions agree within 0.5 % with 1.40 for the smallest G types, 1.15 for the large P
    types and 1.25 for the others (docs/data-sources.md). A stand-in where no EC2 price is at hand.
    """
    if kind.family.startswith(("p4", "p5", "p6")):
        return 1.15
    return 1.40 if kind.size == "xlarge" and kind.family in ("g4dn", "g5", "g6", "g6e") else 1.25


def unchecked_sentences(need: GpuNeed) -> tuple[str, ...]:
    """Facts that the need of the group does not rest on."""
    if need.measured:
        return () if need.gpu_share is not None else ("how busy the GPUs are: the agent does not collect it",)
    return (
        "the measured need: no week of the CloudWatch agent's NVIDIA metrics, the present type's own size stands in",
    )


def speed_sentences(need: GpuNeed, present: InstanceType, slow: Sequence[InstanceType]) -> tuple[str, ...]:
    """Types that may be too slow, for a group without measurements."""
    if need.gpu_share is not None or not slow:
        return ()
    named = ", ".join(f"{kind.ec2_name} (up to {slowdown_of(present, kind):.1f} times slower)" for kind in slow)
    return (f"whether the work is fast enough on {named}",)


def no_gain_exclusion(group: AutoScalingGroup, names: Sequence[str], before: Outlook, after: Outlook) -> Excluded:
    """Why nothing is proposed."""
    sentence = (
        f"{group.name} has {len(group.purchase.instance_types)} types in {len(group.zones)} zones; {len(names)} types "
        f"would cost {after.usd_per_month:.0f} USD a month instead of {before.usd_per_month:.0f} and lose "
        f"{after.lost_hours_per_month:.1f} instance hours instead of {before.lost_hours_per_month:.1f}"
    )
    return Excluded(group.name, Reason(Code.ALREADY_RIGHT, sentence))


def option_reason(group: AutoScalingGroup, names: Sequence[str], before: Outlook, after: Outlook) -> Reason:
    """Worth of the option, with the numbers."""
    return Reason(
        Code.MORE_POOLS,
        f"{group.name}: {len(names)} types in {len(group.zones)} zones instead of "
        f"{len(group.purchase.instance_types)} cost {after.usd_per_month:.0f} USD a month instead of "
        f"{before.usd_per_month:.0f}, with {after.interruptions_per_month:.0f} interrupted instances instead of "
        f"{before.interruptions_per_month:.0f} expected",
    )
