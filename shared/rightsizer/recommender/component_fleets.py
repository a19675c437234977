"""Fleets of an endpoint of inference components: those that do not hold what its copies reserve are ruled out.

The load of an endpoint says nothing about what its copies reserve: an idle model keeps its GPU as long as a copy runs.
"""

from dataclasses import replace

from rightsizer.domain.component import Component, ComputeNeeds, ReadComponents
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.option import Excluded, Option, OptionKind, Target, changed_types
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.component_copies import (
    CopyRoom,
    Sizes,
    copy_room,
    copy_sizes,
    first_fit_decreasing,
    gate_of_components,
)
from rightsizer.recommender.context import AccountInputs

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
    found: Recommendation, endpoint: Endpoint, components: ReadComponents | None, inputs: AccountInputs
) -> Recommendation:
    """The recommendation without the fleets that are not known to hold the copies of the endpoint's components."""
    if components is None or not any(option.kind in OF_FLEETS for option in found.options):
        return found
    room = components if isinstance(components, Reason) else copy_room(endpoint, components, inputs)
    needs = _needs(components)
    judged = [(option, _tight_reason(option, room, needs, inputs)) for option in found.options]
    out = [(option, why) for option, why in judged if why is not None]
    if not out:
        return found
    left = tuple(option for option, why in judged if why is None)
    excluded = (Excluded(option.target.instance_type, why, option.kind) for option, why in out)
    kept = replace(found, options=left, excluded=(*found.excluded, *excluded))
    (first, why), *_ = out
    if found.options[0] is not first:
        return kept
    kept = replace(kept, replay=None, stages=(), gate=Gate.SILENT, gate_reason=why)
    if left:
        text = f"its first option of {len(left)} would save ${left[0].saving_usd_per_month:,.2f} a month"
        gate, asked = gate_of_components(found, left[0], endpoint, inputs)
        return replace(kept, reason=Reason(Code.CHEAPER_OPTION, text), gate=gate, gate_reason=asked)
    if found.finding is not Finding.OVER_PROVISIONED:
        return kept
    text = f"a smaller fleet would carry its load, and not hold its copies: {why.sentence}"
    return replace(kept, finding=Finding.OPTIMIZED, reason=Reason(why.code, text))


def _needs(components: ReadComponents) -> dict[str, ComputeNeeds]:
    if isinstance(components, Reason):
        return {}
    seen = (one.sight for one in components if isinstance(one, Component))
    return {sight.name: sight.needs for sight in seen if sight.needs is not None}


def _tight_reason(
    option: Option, room: CopyRoom | Reason, needs: dict[str, ComputeNeeds], inputs: AccountInputs
) -> Reason | None:
    """Why a fleet is not known to hold the copies; None where it is, or where the option moves no fleet."""
    if option.kind not in OF_FLEETS:
        return None
    if isinstance(room, Reason):
        return Reason(room.code, f"whether its copies fit is not known: {room.sentence}")
    for kind in changed_types(option.target):
        hardware = inputs.catalogue.find(kind)
        if hardware is None:
            return Reason(Code.NO_SPECIFICATION, f"the hardware of {kind} is not known, nor whether its copies fit")
        sizes = list[Sizes]()
        for name, copies in room.copies.items():
            size = copy_sizes(needs[name], hardware)
            if isinstance(size, Reason):
                return Reason(size.code, f"component {name}: {size.sentence}")
            sizes += [size] * copies
        need = first_fit_decreasing(sizes)
        if kind == room.variant.instance_type:
            need = min(need, room.variant.current_count)  # AWS placed them so
        if (least := _least_count(option.target)) < need:
            said = (
                f"{count(len(sizes), 'copy', 'copies')} of its components reserve {count(need, 'instance')} of {kind}"
            )
            return Reason(Code.NOT_APPLICABLE, f"{said}, and {least} would run")
    return None


def _least_count(target: Target) -> int:
    """The fewest instances that the target lets run."""
    return min(n for n in (target.instance_count, target.minimum or target.instance_count, *target.week_counts))
