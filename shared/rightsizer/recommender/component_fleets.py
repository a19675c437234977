"""Fleets of an endpoint of inference components: those that do not hold what its copies reserve are ruled out.

The load of an endpoint says nothing about what its copies reserve: an idle model keeps its GPU as long as a copy runs.
Instances that copies hold without need are asked about where no option is left.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from rightsizer.domain.component import Component, ComputeNeeds, ReadComponents
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.option import Excluded, Option, OptionKind, Target, changed_types, fleet
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.component_copies import (
    CopyRoom,
    Sizes,
    copy_room,
    copy_sizes,
    first_fit_decreasing,
    gate_of_components,
    lasting_copies,
)
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.gate import ask_person, small_saving_reason
from rightsizer.recommender.pricing import cost_of, kept_by_commitment, monthly_cost

OF_FLEETS = frozenset(
    {
        OptionKind.INSTANCE_TYPE,
        OptionKind.INSTANCE_COUNT,
        OptionKind.TYPE_AND_COUNT,
        OptionKind.AUTOSCALING,
        OptionKind.SCHEDULE,
        OptionKind.INSTANCE_POOLS,
        OptionKind.FEWER_GPUS,
        OptionKind.OTHER_ARCHITECTURE,
    }
)
"""Options after which the same copies stand on other instances, or on fewer."""


def without_tight_fleets(
    recommendation: Recommendation, endpoint: Endpoint, components: ReadComponents | None, inputs: AccountInputs
) -> Recommendation:
    """The recommendation without the fleets that are not known to hold the copies of the endpoint's components."""
    if components is None or not any(option.kind in OF_FLEETS for option in recommendation.options):
        return recommendation
    room = components if isinstance(components, Reason) else copy_room(endpoint, components, inputs)
    needs = _needs(components)
    judged = [(option, _holding(recommendation, option, room, needs, inputs)) for option in recommendation.options]
    if all(held is option for option, held in judged):
        return recommendation
    left = tuple(held for _, held in judged if isinstance(held, Option))
    out = [(option, held) for option, held in judged if isinstance(held, Reason)]
    excluded = (Excluded(option.target.instance_type, why, option.kind) for option, why in out)
    kept = replace(recommendation, options=left, excluded=(*recommendation.excluded, *excluded))
    first, held = judged[0]
    if held is first:
        return kept
    kept = replace(kept, replay=None, stages=())
    if left:
        text = f"{fleet(left[0].target)} would save ${left[0].saving_usd_per_month:,.2f} a month and hold its copies"
        text += f"; performance risk {int(left[0].performance_risk)} of 4"
        gate, reason = gate_of_components(recommendation, left[0], endpoint, inputs)
        return replace(kept, reason=Reason(Code.CHEAPER_OPTION, text), gate=gate, gate_reason=reason)
    _, why = out[0]
    kept = replace(kept, gate=Gate.SILENT, gate_reason=why)
    if recommendation.finding is not Finding.OVER_PROVISIONED:
        return kept
    text = f"a smaller fleet would carry its load, but is not proposed, because {why.sentence}"
    return replace(kept, finding=Finding.OPTIMIZED, reason=Reason(why.code, text))


def _holding(
    recommendation: Recommendation,
    option: Option,
    room: CopyRoom | Reason,
    needs: dict[str, ComputeNeeds],
    inputs: AccountInputs,
) -> Option | Reason:
    """The option where its fleet holds the copies; the same type more times where that does; or why none is known."""
    if option.kind not in OF_FLEETS:
        return option
    if isinstance(room, Reason):
        return Reason(room.code, f"whether its copies fit is not known: {room.sentence}")
    held = _least_that_holds(option.target, room, needs, inputs)
    if isinstance(held, Reason):
        return held
    least, kind = held
    if least <= _least_count(option.target):
        return option
    copies = sum(room.copies.values())
    text = f"{count(copies, 'copy', 'copies')} of its components {'reserves' if copies == 1 else 'reserve'}"
    text += f" {count(least, 'instance')} of {kind}"
    usd, policy = recommendation.usd_per_month or Decimal(0), inputs.policy
    cost = cost_of(usd, option.price, least, least, 0.0, inputs.prices.commitment, policy, option.switch_usd > 0)
    larger = replace(
        option,
        target=replace(option.target, instance_count=least),
        usd_per_month=cost.usd_per_month,
        saving_usd_per_month=cost.saving,
        switch_usd=cost.switch_usd,
        payback_days=cost.payback_days,
        notes=(*option.notes, f"{text}; its load alone takes {option.target.instance_count}"),
    )
    one_count = option.kind in (OptionKind.INSTANCE_TYPE, OptionKind.TYPE_AND_COUNT, OptionKind.FEWER_GPUS)
    one_count = one_count and inputs.quotas.get(option.target.instance_type, least) >= least
    if one_count and _least_count(larger.target) == least:
        share = float(larger.saving_usd_per_month / usd) if usd else 0.0
        if small_saving_reason(larger, share, policy) is None:
            return larger
    return Reason(Code.NOT_APPLICABLE, f"{text}, and {_least_count(option.target)} would run")


def _needs(components: ReadComponents) -> dict[str, ComputeNeeds]:
    if isinstance(components, Reason):
        return {}
    sights = (one.sight for one in components if isinstance(one, Component))
    return {sight.name: sight.needs for sight in sights if sight.needs is not None}


def _least_that_holds(
    target: Target, room: CopyRoom, needs: dict[str, ComputeNeeds], inputs: AccountInputs
) -> tuple[int, str] | Reason:
    """Instances that hold the copies, and of what type; why that is not known."""
    most = 0, ""
    for kind in changed_types(target):
        hardware = inputs.catalogue.find(kind)
        if hardware is None:
            return Reason(Code.NO_SPECIFICATION, f"the hardware of {kind} is not known, nor whether its copies fit")
        sizes = list[Sizes]()
        for name, copies in room.copies.items():
            size = copy_sizes(needs[name], hardware)
            if isinstance(size, Reason):
                return Reason(size.code, f"component {name} {size.sentence}")
            sizes += [size] * copies
        need = first_fit_decreasing(sizes)
        if kind == room.variant.instance_type:
            need = min(need, room.variant.current_count)  # AWS placed them so
        most = max(most, (need, kind), key=lambda found: found[0])
    return most


def _least_count(target: Target) -> int:
    """The fewest instances that the target lets run."""
    return min(n for n in (target.instance_count, target.minimum or target.instance_count, *target.week_counts))


def tell_of_held_instances(
    recommendation: Recommendation, endpoint: Endpoint, components: ReadComponents | None, inputs: AccountInputs
) -> Recommendation:
    """A question about instances that copies hold until their owner takes a step, where nothing else is worth asking.

    Options that save too little go: the question is about more. On reserved capacity nothing is asked: it is paid for.
    """
    little = not recommendation.options or recommendation.gate_reason.code is Code.SAVING_TOO_SMALL
    quiet = (
        recommendation.finding in (Finding.OPTIMIZED, Finding.OVER_PROVISIONED)
        and recommendation.gate is Gate.SILENT
        and little
    )
    if not quiet or recommendation.price is None or isinstance(components, Reason | None):
        return recommendation
    if EndpointKind.RESERVED in endpoint.kinds:
        return recommendation
    room = copy_room(endpoint, components, inputs)
    short = any(one.finding is Finding.UNDER_PROVISIONED for one in recommendation.components)
    if short or isinstance(room, Reason):
        return recommendation
    held = _held_by_owner(recommendation, room, inputs) or _held_by_few(
        recommendation, room, _needs(components), inputs
    )
    if held is None:
        return recommendation
    verdict, why = ask_person(endpoint, held[1])
    small = (Excluded(o.target.instance_type, recommendation.gate_reason, o.kind) for o in recommendation.options)
    recommendation = replace(
        recommendation, options=(), excluded=(*recommendation.excluded, *small), replay=None, stages=()
    )
    reason = Reason(Code.CHEAPER_OPTION, held[0])
    return replace(recommendation, finding=Finding.OVER_PROVISIONED, reason=reason, gate=verdict, gate_reason=why)


def _held_by_owner(recommendation: Recommendation, room: CopyRoom, inputs: AccountInputs) -> tuple[str, Reason] | None:
    """What instances cost that come back once the owner takes a step, and which; None where none do."""
    steps = (e.reason for e in recommendation.excluded if e.dimension is OptionKind.COPIES)
    step = next((why for why in steps if why.code is Code.NOT_IN_PLACE), None)
    lasting = lasting_copies(recommendation, room)
    if step is None or isinstance(lasting, Reason):
        return None
    runs = room.variant.current_count
    then = max(room.declared, room.bounds(lasting)[1])
    usd = _saved_usd(recommendation, runs - then, Decimal(0), inputs)
    if usd is None:
        return None
    text = f"its component copies hold more instances than they need: {runs} run, and {then} would do"
    return f"{text} for ${usd:,.0f} a month less", step


def _held_by_few(
    recommendation: Recommendation, room: CopyRoom, needs: dict[str, ComputeNeeds], inputs: AccountInputs
) -> tuple[str, Reason] | None:
    """The smallest components that keep an instance of their own, and a cheaper fleet of the same card for them.

    Only what the copies of now need packed is held by them: what runs beyond that goes by itself, or by other steps.
    """
    most, kind = room.most, room.variant.instance_type
    if isinstance(most, Reason):
        return None
    runs = min(room.variant.current_count, max(room.floor, room.bounds(room.copies)[1]))
    running = (name for name, copies in room.copies.items() if copies > 0)
    order = sorted(running, key=lambda name: (max(room.sizes[name]) * room.copies[name], name))
    for number in range(1, len(order)):
        moved = order[:number]
        then = max(room.floor, room.bounds({name: copies for name, copies in most.items() if name not in moved})[1])
        if then >= runs:
            continue
        best = _cheapest_fleet([needs[name] for name in moved for _ in range(most[name])], kind, inputs)
        usd = None if best is None else _saved_usd(recommendation, runs - then, best[0], inputs)
        if best is None or usd is None:
            return None
        names, freed = " and ".join(moved), count(runs - then, "instance")
        text = f"{names} alone {'keeps' if number == 1 else 'keep'} {freed} of {room.variant.current_count} × {kind}"
        ways = f"nothing changes by itself: move {names} to an endpoint of {'its' if number == 1 else 'their'} own"
        why = Reason(Code.NEEDS_APPROVAL, f"{ways} (callers then call that one), or make room on the others")
        return f"{text} running: on {best[1]} of the same GPU it would cost ${usd:,.0f} a month less", why
    return None


def _cheapest_fleet(copies: Sequence[ComputeNeeds], kind: str, inputs: AccountInputs) -> tuple[Decimal, str] | None:
    """US dollars a month and the words of the cheapest fleet with the same GPUs that holds the copies."""
    runs, fleets = inputs.catalogue.find(kind), list[tuple[Decimal, str]]()
    for hardware in inputs.catalogue:
        price, same = inputs.prices.find(hardware.name), runs is not None and hardware.accelerator == runs.accelerator
        found = [copy_sizes(needs, hardware) for needs in copies]
        sizes = [size for size in found if not isinstance(size, Reason)]
        least = first_fit_decreasing(sizes)
        held = same and len(sizes) == len(copies) and inputs.quotas.get(hardware.name, least) >= least
        if held and price is not None:
            fleets.append((monthly_cost(price, least), f"{least} × {hardware.name}"))
    return min(fleets, default=None)


def _saved_usd(recommendation: Recommendation, freed: int, instead: Decimal, inputs: AccountInputs) -> Decimal | None:
    """US dollars a month that so many instances less save, `instead` paid; None where that is not worth asking."""
    assert recommendation.price is not None
    usd = recommendation.usd_per_month or Decimal(0)
    gross = monthly_cost(recommendation.price, freed) - instead
    saving = gross - kept_by_commitment(gross, usd, inputs.prices.commitment)
    share = float(saving / usd) if usd else 0.0
    worth = saving >= inputs.policy.minimum_saving_usd and share >= inputs.policy.minimum_saving_share
    return saving if worth else None
