"""Fewer copies of inference components: how copies pack on instances, what each costs, and which instances come back.

Copies are packed by what they reserve (CPU cores, accelerators, memory); a copy is never split. AWS does not show which
instance holds which copy, so two bounds are told: no placement needs fewer than the sums do, and first-fit decreasing
finds one. What AWS keeps of an instance for itself is not published and not taken off.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.component import Component, ComponentUsage, ComputeNeeds, ReadComponents, UnreadComponent
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, Variant
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Effort, Excluded, Money, Option, OptionKind, Risk, RiskResource, Target, new_option
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.price import CENT
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import ComponentPacking, Finding, Gate, Recommendation
from rightsizer.recommender.component_finding import copies_that_may_run, judge_component
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.gate import OFF, GateAnswer, ask_person, cooldown_reason, small_saving_reason
from rightsizer.recommender.latency import promised_objective
from rightsizer.recommender.pricing import cost_of, monthly_cost

type Sizes = tuple[float, ...]
"""Shares of one instance that a copy takes, by resource."""
NOT_CHECKED = (
    "which instance holds which copy: AWS does not show it",
    "what SageMaker keeps of an instance's memory for itself",
    "whether AWS still has the instances that go, should the copies come back: without them a person is told",
)


@dataclass(frozen=True, slots=True)
class CopyRoom:
    """The copies of an endpoint and the instances that they stand on."""

    variant: Variant
    sizes: Mapping[str, Sizes]
    """Of each component that reserves anything, by name."""
    copies: Mapping[str, int]
    """That run now."""
    most: Mapping[str, int] | Reason
    """That may run: asked for, seen, or the maximum of autoscaling; why that is not known of one component."""
    declared: int
    """Instances that stay by the tag of the owner, at least 1."""
    floor: int
    """Instances that stay: the minimum of managed instance scaling and the owner's."""
    consolidates: bool
    """Whether the scale-in policy may move copies together: no component asks for balance between zones."""

    def bounds(self, copies: Mapping[str, int]) -> tuple[int, int]:
        """Least instances of any placement, and what first-fit decreasing needs, for these copies."""
        each = [self.sizes[name] for name, number in copies.items() for _ in range(number)]
        return least_instances(each), first_fit_decreasing(each)

    def surely_left(self, copies: Mapping[str, int]) -> int:
        """The most instances that may run after, wherever AWS takes copies away: those without a copy leave."""
        held = max(self.bounds(copies)[1], sum(copies.values()))
        return max(self.floor, min(held, self.variant.current_count))

    def remaining(self, copies: Mapping[str, int]) -> int:
        """Instances that run after: as first-fit decreasing packs where the policy consolidates, else those left."""
        packed = max(self.floor, min(self.bounds(copies)[1], self.variant.current_count))
        return packed if self.consolidates else self.surely_left(copies)


def least_instances(each: Sequence[Sizes]) -> int:
    """Instances without which no placement is possible: the largest sum of any resource, in whole instances."""
    return max((math.ceil(sum(column) - 1e-9) for column in zip(*each, strict=True)), default=0)


def first_fit_decreasing(each: Sequence[Sizes]) -> int:
    """Instances that first-fit decreasing takes; the largest share of any resource sorts."""
    free: list[list[float]] = []
    for sizes in sorted(each, key=lambda s: (-max(s, default=0.0), s)):
        home = next((f for f in free if all(a >= b - 1e-9 for a, b in zip(f, sizes, strict=True))), None)
        if home is None:
            home = [1.0] * len(sizes)
            free.append(home)
        home[:] = [a - b for a, b in zip(home, sizes, strict=True)]
    return len(free)


def copy_sizes(needs: ComputeNeeds, hardware: InstanceType) -> Sizes | Reason:
    """Shares of one instance that a copy takes; else what keeps its component from being packed there."""
    if needs.partition:
        return Reason(Code.OTHER_KIND, f"has copies on parts of a GPU ({needs.partition}), which are not packed here")
    if needs.accelerators and not hardware.accelerator_count:
        return Reason(Code.NOT_APPLICABLE, f"needs an accelerator, and {hardware.name} has none")
    found = (
        needs.cpu_cores / hardware.vcpu,
        needs.accelerators / max(hardware.accelerator_count, 1),
        needs.memory_mb / (1024 * hardware.memory_gib),
    )
    if max(found) > 1 + 1e-9:
        return Reason(Code.NOT_APPLICABLE, f"reserves more for one copy than one {hardware.name} has")
    return found


def with_components(
    recommendation: Recommendation,
    endpoint: Endpoint,
    components: ReadComponents | None,
    inputs: AccountInputs,
    overhead_s: float = 0.0,
) -> Recommendation:
    """The recommendation with each component judged, the price split by what they reserve, and fewer copies offered.

    `overhead_s`: what passes around the models of the endpoint, the mean of a request.
    """
    if components is None:
        return recommendation
    if isinstance(components, Reason):
        return replace(recommendation, notes=(*recommendation.notes, components))
    used = [one.usage for one in components if isinstance(one, Component)]
    slowest_s = max((one.p95_s or 0.0 for one in used if isinstance(one, ComponentUsage)), default=0.0)
    objective = promised_objective(endpoint, overhead_s, slowest_s)
    judged = tuple(judge_component(one, endpoint.ref.region, objective, inputs.policy) for one in components)
    room = copy_room(endpoint, components, inputs)
    recommendation = replace(recommendation, components=judged)
    if isinstance(room, Reason):
        return replace(recommendation, excluded=(*recommendation.excluded, _excluded(recommendation, room)))
    recommendation = _priced(recommendation, room)
    if EndpointKind.RESERVED in endpoint.kinds:
        return recommendation  # what fewer copies give back is paid for all the same
    offered = fewer_copies(recommendation, endpoint, room, inputs)
    if isinstance(offered, Reason):
        return replace(recommendation, excluded=(*recommendation.excluded, _excluded(recommendation, offered)))
    return _with_option(recommendation, offered, endpoint, inputs)


def _excluded(recommendation: Recommendation, why: Reason) -> Excluded:
    return Excluded(recommendation.instance_type or recommendation.kind.value, why, OptionKind.COPIES)


def copy_room(
    endpoint: Endpoint, components: Sequence[Component | UnreadComponent], inputs: AccountInputs
) -> CopyRoom | Reason:
    """Room that the copies take on their instances; why it is not known: then nothing is packed."""
    if len(endpoint.variants) != 1:
        return Reason(Code.OTHER_KIND, "it has several variants, and its components are not split by them")
    variant = endpoint.variants[0]
    hardware = inputs.catalogue.find(variant.instance_type)
    if hardware is None:
        return Reason(Code.NO_SPECIFICATION, f"the hardware of {variant.instance_type or 'its pools'} is not known")
    sizes: dict[str, Sizes] = {}
    for one in components:
        if isinstance(one, UnreadComponent):
            text = f"component {one.name} could not be read, so what its copies take is unknown"
            return Reason(Code.READ_FAILED, text)
        if one.sight.base_component:
            continue
        needs = one.sight.needs
        if needs is None:
            text = f"component {one.sight.name} names what it reserves for each type, or not at all"
            return Reason(Code.NOT_APPLICABLE, text)
        size = copy_sizes(needs, hardware)
        if isinstance(size, Reason):
            return Reason(size.code, f"component {one.sight.name} {size.sentence}")
        sizes[one.sight.name] = size
    held = {one.sight.name: one.sight.current for one in components if isinstance(one, Component)}
    copies = {name: held[name] for name in sizes}
    most = copies_that_may_run([one for one in components if isinstance(one, Component) and one.sight.name in sizes])
    declared = endpoint.objective.min_instances or 1
    floor = max(variant.least_instances or 0, declared)
    balanced = any(_is_zone_balanced(one) for one in components if isinstance(one, Component))
    return CopyRoom(variant, sizes, copies, most, declared, floor, variant.consolidates and not balanced)


def _is_zone_balanced(component: Component) -> bool:
    """Whether it asks for balance between zones: a consolidation honours that (API, ScaleInPolicy)."""
    return any((s.get("SchedulingConfig") or {}).get("AvailabilityZoneBalance") for s in component.sight.specifications)


def _priced(recommendation: Recommendation, room: CopyRoom) -> Recommendation:
    """Each component with its part of the price: the largest share of an instance that its copies reserve."""
    least, most = room.bounds(room.copies)
    runs, parts = room.variant.current_count, {n: max(room.sizes[n]) * c for n, c in room.copies.items()}
    spread = max(sum(parts.values()), float(runs)) or 1.0
    usd = None if recommendation.price is None else monthly_cost(recommendation.price, runs)

    def part(name: str) -> Decimal | None:
        share = Decimal(str(parts.get(name, 0.0) / spread))
        return None if usd is None else (usd * share).quantize(CENT)

    judged = tuple(
        finding if finding.copies is None else replace(finding, usd_per_month=part(finding.name))
        for finding in recommendation.components
    )
    rest = None if usd is None else usd - sum((p for finding in judged if (p := finding.usd_per_month)), Decimal(0))
    return replace(recommendation, components=judged, packing=ComponentPacking(runs, least, most, rest))


def fewer_copies(
    recommendation: Recommendation, endpoint: Endpoint, room: CopyRoom, inputs: AccountInputs
) -> Option | Reason:
    """Fewer copies where whole instances come back; why there are none.

    No more copies go than give instances back, and none below what the peak of the component takes.
    """
    short = next((one for one in recommendation.components if one.finding is Finding.UNDER_PROVISIONED), None)
    if recommendation.is_short or short is not None:
        name = short.name if short is not None else endpoint.ref.name
        return Reason(Code.UNDER_PROVISIONED, f"{name} is short of capacity, which what others free may have to carry")
    wanted = wanted_copies(recommendation, room)
    refused = _nothing_back(endpoint, room, wanted, lasting_copies(recommendation, room))
    if wanted == room.copies and (refused is None or refused.code is not Code.NOT_IN_PLACE):
        return Reason(Code.ALREADY_RIGHT, "no component has a copy too many that it is known to do without")
    if refused is not None:
        return refused
    if recommendation.price is None:
        return Reason(Code.NO_PRICE, f"{room.variant.instance_type} has no price: no saving can be stated")
    wanted = _without_needless_cuts(room, wanted)
    return _option(recommendation, endpoint, room, wanted, inputs)


def wanted_copies(recommendation: Recommendation, room: CopyRoom) -> Mapping[str, int]:
    """Copies of each component that carry its peak; as many as run where fewer are not known to."""
    needed = {finding.name: finding.needed for finding in recommendation.components if finding.needed is not None}
    return {name: min(runs, needed.get(name, runs)) for name, runs in room.copies.items()}


def lasting_copies(recommendation: Recommendation, room: CopyRoom) -> Mapping[str, int] | Reason:
    """The most copies of each component after a step of its owner; fewer than today where no autoscaling moves them."""
    if isinstance(room.most, Reason):
        return room.most
    fixed = {finding.name for finding in recommendation.components if finding.minimum is None}
    cut = {n: c for n, c in wanted_copies(recommendation, room).items() if n in fixed and c < room.copies[n]}
    return {**room.most, **cut}


def _nothing_back(
    endpoint: Endpoint, room: CopyRoom, wanted: Mapping[str, int], lasting: Mapping[str, int] | Reason
) -> Reason | None:
    """Why no instance comes back with the wanted copies, and what would bring it; None where one does."""
    runs, name, (least, packed) = room.variant.current_count, endpoint.ref.name, room.bounds(wanted)
    then, managed = max(room.declared, packed), room.variant.least_instances
    cut = ", ".join(f"{c} to {wanted[n]} of {n}" for n, c in sorted(room.copies.items()) if wanted[n] < c)
    what = f"fewer copies ({cut})" if cut else "its copies"
    if least >= runs:
        return Reason(Code.NOT_CHEAPER, f"{what} still take {count(runs, 'instance')}")
    if managed is None and then < runs:
        if isinstance(lasting, Reason):
            text = f"{what} fit on fewer instances now, and how many they will take is not known"
            return Reason(lasting.code, f"{text}: {lasting.sentence}")
        then = max(then, room.bounds(lasting)[1])
        if then >= runs:
            text = f"{what} fit on fewer instances now, and take {count(then, 'instance')} when all run that may"
            return Reason(Code.NOT_CHEAPER, text)
        line = (
            f"aws sagemaker update-endpoint-weights-and-capacities --region {endpoint.ref.region} --endpoint-name"
            f" {name} --desired-weights-and-capacities VariantName={room.variant.name},DesiredInstanceCount={then}"
        )
        text = f"{what} fit on fewer instances, and no managed instance scaling gives these back"
        return Reason(
            Code.NOT_IN_PLACE, f"{text}; its owner sets {'the copies and then ' * bool(cut)}the count: {line}"
        )
    if managed is not None and room.remaining(wanted) < runs:
        return None
    if room.floor >= runs:
        text = f"{what} fit on fewer instances, and its minimum is {room.floor}"
        if then < runs:
            text += " (MinInstanceCount of managed instance scaling): no instance would come back before its owner"
            return Reason(Code.NOT_IN_PLACE, f"{text} deploys a configuration with {then}")
        return Reason(Code.NOT_CHEAPER, f"{text} (the tag rightsizer:min-instances): no instance would come back")
    text = f"{what} may fit on {least} of {runs} instances"
    if packed >= runs:
        return Reason(Code.NOT_CHEAPER, f"{text}, and no placement on fewer than {runs} was found")
    if room.variant.consolidates:
        return Reason(
            Code.NOT_CHEAPER,
            f"{text}, and a component asks for balance between zones, so perhaps no instance becomes free",
        )
    text += ", but its scale-in policy gives back empty instances only, and perhaps none becomes empty"
    consolidate = terminal_command(f"components {name} --scale-in consolidation", endpoint.ref.region)
    return Reason(Code.NOT_IN_PLACE, f"{text}; first let copies move together: {consolidate}")


def _without_needless_cuts(room: CopyRoom, wanted: Mapping[str, int]) -> Mapping[str, int]:
    """The same instances with as many copies as they hold: what gives nothing back is not taken away."""
    best, kept = room.remaining(wanted), dict(wanted)
    for name in sorted(kept):
        for number in range(room.copies[name], kept[name], -1):
            if room.remaining({**kept, name: number}) == best:
                kept[name] = number
                break
    return kept


def _option(
    recommendation: Recommendation, endpoint: Endpoint, room: CopyRoom, wanted: Mapping[str, int], inputs: AccountInputs
) -> Option:
    assert recommendation.price is not None
    runs, then, policy = room.variant.current_count, room.remaining(wanted), inputs.policy
    now_usd = monthly_cost(recommendation.price, runs)
    cost = cost_of(now_usd, recommendation.price, then, then, 0.0, inputs.prices.commitment, policy, new_fleet=False)
    least = max(room.bounds(wanted)[0], room.floor)
    cut = tuple((name, number) for name, number in sorted(wanted.items()) if number < room.copies[name])
    moved = {finding.name for finding in recommendation.components if finding.minimum is not None}
    fixed = tuple(row for row in cut if row[0] not in moved)
    least_copies = tuple(row for row in cut if row[0] in moved)
    risks = {RiskResource.LATENCY: Risk.LOW}
    if then == 1 < runs and endpoint.objective.min_instances is None:
        risks[RiskResource.AVAILABILITY] = policy.lone_instance
    sure = runs - room.surely_left(wanted)
    how = "for sure" if sure == runs - then else f"as the scale-in policy consolidates, {sure} of them for sure"
    span = f"{runs - then} of {count(runs, 'instance')} come back {how}"
    span += f"; at best {runs - least}" if least < then else ""
    return new_option(
        OptionKind.COPIES,
        Target(room.variant.instance_type, then, copies=fixed, least_copies=least_copies),
        recommendation.price,
        Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days),
        min(finding.days for finding in recommendation.components if finding.name in dict(cut)),
        risks,
        Effort.VERY_LOW,
        in_place=True,
        restarts=False,
        notes=(f"{span}: copies are packed by what they reserve, and AWS does not show which instance holds which",),
        facts={"instances given back": span},
        not_checked=NOT_CHECKED,
    )


def _with_option(
    recommendation: Recommendation, option: Option, endpoint: Endpoint, inputs: AccountInputs
) -> Recommendation:
    """The recommendation with fewer copies: first where it saves most of what rightsizer carries out, else behind."""
    gate, why = gate_of_components(recommendation, option, endpoint, inputs)
    first = recommendation.chosen_option
    if gate is Gate.SILENT and first is None:
        return replace(
            recommendation,
            excluded=(*recommendation.excluded, _excluded(recommendation, why)),
            options=(option,),
            gate=gate,
            gate_reason=why,
        )
    if gate is Gate.SILENT or recommendation.finding is Finding.IDLE or _is_better_asleep(first, option):
        return replace(recommendation, options=(*recommendation.options, option))
    reason = Reason(
        Code.CHEAPER_OPTION,
        f"fewer copies ({_cut_text(recommendation, option)}) would save ${option.saving_usd_per_month:,.2f} a month",
    )
    return replace(
        recommendation,
        finding=Finding.OVER_PROVISIONED,
        reason=reason,
        options=(option, *recommendation.options),
        gate=gate,
        gate_reason=why,
        replay=None,
        stages=(),
    )


def _is_better_asleep(first: Option | None, option: Option) -> bool:
    """Whether what is chosen is a sleep that rightsizer carries out and that saves more than the option."""
    if first is None or first.kind is not OptionKind.SCALE_TO_ZERO or not first.in_place:
        return False
    return first.saving_usd_per_month > option.saving_usd_per_month


def _cut_text(recommendation: Recommendation, option: Option) -> str:
    """``chat 3 to 1, tags 2 to 1``."""
    now = {finding.name: finding.copies for finding in recommendation.components}
    return ", ".join(f"{name} {now[name]} to {number}" for name, number in option.target.all_copies)


def gate_of_components(
    recommendation: Recommendation, option: Option, endpoint: Endpoint, inputs: AccountInputs
) -> GateAnswer:
    """A person is asked; nobody where the owner says off, the saving is small, or a change was made lately."""
    if endpoint.mode is Mode.OFF:
        return Gate.SILENT, OFF
    usd, policy = recommendation.usd_per_month or Decimal(0), inputs.policy
    share = float(option.saving_usd_per_month / usd) if usd else 0.0
    if (small := small_saving_reason(option, share, policy)) is not None:
        return Gate.SILENT, small
    to, runs = option.target.instance_type, recommendation.instance_type
    if (waits := cooldown_reason(inputs.history, policy, inputs.now, to, runs)) is not None:
        return Gate.SILENT, waits
    what = (
        "copies of inference components"
        if option.kind is OptionKind.COPIES
        else f"{recommendation.kind.value} endpoints"
    )
    text = f"needs your approval: {what} are never changed automatically"
    return ask_person(endpoint, Reason(Code.OTHER_KIND, text))
