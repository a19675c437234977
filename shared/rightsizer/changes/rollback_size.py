"""Instance counts of a rollback: the fleet may have grown since the plan.

Deploying a configuration resets the counts to what it says (UpdateEndpoint without RetainAllVariantProperties), so the
counts of the plan's hour would take instances away in the middle of a peak.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rightsizer.changes.plan.capacity import capacity_step
from rightsizer.changes.reconcile.drift import is_given_back, owners_figures, without_owners
from rightsizer.domain.change import Change, Course
from rightsizer.domain.endpoint import variant_resource_id
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.plan import PlanKind, Step, StepKind, VariantCount


def rollback_counts(change: Change, endpoint: EndpointSight, quotas: Mapping[str, int]) -> tuple[VariantCount, ...]:
    """Counts after a rollback: as stored, as the bounds say, or more for a grown fleet.

    It has grown where it runs more than was asked for its load and more than its minimum, which a schedule may have
    raised. A change that nobody approved asks for the maximum: what runs of that stays, and autoscaling takes it away.

    Never fewer than an earlier look of the same return asked for. Pure; `quotas` are instances by type, absent is
    unknown. Empty when there is nothing to go back to.
    """
    if change.before is None:
        return ()
    live = {v.name: max(v.current_count, v.desired_count) for v in endpoint.variants}
    asked = {v.name: v.count for v in change.plan.after}
    earlier = {v.name: v.count for v in change.plan.grown}
    old_bounds, new_bounds = _bounds(change.plan.restore), _bounds(change.plan.settle)
    variant_counts = []
    for old in change.before.variants:
        resource = variant_resource_id(change.ref.name, old.name)
        least, most = old_bounds.get(resource, (0, None))
        need, running = max(old.count, least), live.get(old.name, 0)
        exchange, (new_least, new_most) = _exchange(change, old), new_bounds.get(resource, (0, None))
        for_load = asked.get(old.name, old.count)
        if for_load == new_most:
            for_load = min(for_load, _old_instances_for(old.count, (exchange[1], exchange[0])))
        if running > max(for_load, new_least):
            need = max(need, running, _old_instances_for(running, exchange))
        need = _clamp_to_limits(need, old.count, (most, quotas.get(old.instance_type)))
        variant_counts.append(replace(old, count=max(need, earlier.get(old.name, 0))))
    return tuple(variant_counts)


def owner_edits(change: Change, live: LiveState) -> tuple[str, ...]:
    """Edits of the owner to restored autoscaling, by the keys of steps and by name.

    Empty where nothing was edited, where the change takes no autoscaling away, and once the return has taken it away.
    """
    plan, before = change.plan, change.before
    if before is None or not plan.clear or not is_given_back(change):
        return ()
    return live.edits(plan.settle, before.scaling)


def raise_bounds(change: Change, live_state: LiveState) -> tuple[Step, ...]:
    """The steps that restore autoscaling, with the bounds that the owner raised since, by the exchange of the plan.

    Bounds that a schedule moves are its own, and lower ones are not carried over: the rollback is never smaller.
    """
    settled = _bounds(change.plan.settle)
    steps = []
    for step in change.plan.restore:
        live = live_state.target(step) if step.kind is StepKind.REGISTER_TARGET else None
        least, most = settled.get(step.subject, (0, None))
        if live is not None and not live.scheduled and most is not None:
            mine = live.variant_name == change.variant
            exchange = change.plan.exchange if mine else (1, 1)
            low, high = step.params["MinCapacity"], step.params["MaxCapacity"]
            low = max(low, _old_instances_for(live.minimum, exchange)) if live.minimum > least else low
            high = max(low, high, _old_instances_for(live.maximum, exchange) if live.maximum > most else 0)
            step = replace(step, params={**step.params, "MinCapacity": low, "MaxCapacity": high})
        steps.append(step)
    return tuple(steps)


def raise_in_place(change: Change, live: LiveState) -> Change:
    """The change as it goes back where it deployed nothing: bounds and copies that somebody raised since are kept.

    So is the count that runs, where it is more than the one of before: autoscaling that the change added brought it for
    the load of this moment, and nothing would bring it again once that autoscaling is gone.

    A view for one look, which is stable: what was put back once is not raised by it.
    """
    plan = change.plan
    if plan.turn is not None or plan.kind is not PlanKind.CHANGE:
        return change
    theirs: Mapping[str, str] = {}
    if change.course is Course.FORWARD:
        theirs = owners_figures(change, live)  # left as planned: `forward_obstacle` compares with the figures of before
    else:
        plan = replace(plan, restore=without_owners(change, live))
        change = replace(change, plan=plan)
    asked = {s.subject: _copies(s) for s in plan.settle if s.kind is StepKind.SET_COPIES}
    restore = tuple(
        _with_copies(step, live.copies.get(step.subject, 0), asked.get(step.subject, 0))
        if step.kind is StepKind.SET_COPIES and step.subject not in theirs
        else _with_live_counts(step, change, live)
        for step in (plan.restore if theirs else raise_bounds(change, live))
    )
    return replace(change, plan=replace(plan, restore=restore))


def kept_counts_text(change: Change) -> str:
    """Clause about the counts that a return leaves above those of before; empty where there are none."""
    old = {v.name: v.count for v in (change.before.variants if change.before else ())}
    kept = [row for step in change.plan.restore for row in _count_rows(step)]
    more = [row for row in kept if row["DesiredInstanceCount"] > old.get(row["VariantName"], 0)]
    text = ", ".join(
        f"{r['VariantName']} keeps {r['DesiredInstanceCount']} instances ({old.get(r['VariantName'], 0)} before)"
        for r in more
    )
    return f"what ran for the load stays, and nothing lowers it by itself: {text}" if more else ""


def _with_live_counts(step: Step, change: Change, live: LiveState) -> Step:
    """The step that sets a count, with what runs where that is more; every other step as it is."""
    rows = _count_rows(step)
    if not rows or not isinstance(live.endpoint, EndpointSight):
        return step
    runs = {v.name: max(v.current_count, v.desired_count) for v in live.endpoint.variants}
    raised = {r["VariantName"]: max(r["DesiredInstanceCount"], runs.get(r["VariantName"], 0)) for r in rows}
    if all(raised[row["VariantName"]] == row["DesiredInstanceCount"] for row in rows):
        return step
    counts = [VariantCount(name, "", count, 1.0) for name, count in raised.items()]
    return capacity_step(change.ref.name, counts)


def _count_rows(step: Step) -> list[dict[str, Any]]:
    return list(step.params["DesiredWeightsAndCapacities"]) if step.kind is StepKind.SET_CAPACITY else []


def _copies(step: Step) -> int:
    return int(step.params["DesiredRuntimeConfig"]["CopyCount"])


def _with_copies(step: Step, live: int, asked: int) -> Step:
    if live <= max(asked, _copies(step)):
        return step
    return replace(step, params={**step.params, "DesiredRuntimeConfig": {"CopyCount": live}})


def _bounds(steps: tuple[Step, ...]) -> dict[str, tuple[int, int | None]]:
    """Least and most of each variant whose autoscaling the steps give back: what runs for its minimum is no load."""
    return {
        s.subject: (s.params["MinCapacity"], s.params["MaxCapacity"])
        for s in steps
        if s.kind is StepKind.REGISTER_TARGET
    }


def _exchange(change: Change, old: VariantCount) -> tuple[int, int]:
    """Old instances, and new ones that serve what they did: of each variant that the change moves, its own."""
    if old.name == change.variant:
        return change.plan.exchange
    moved = next((target for target in change.option.target.others if target.name == old.name), None)
    return (1, 1) if moved is None else (max(1, old.count), max(1, moved.instance_count))


def _old_instances_for(live: int, exchange: tuple[int, int]) -> int:
    """Old instances that serve what `live` new ones do, by the exchange that was decided on."""
    old, new = exchange
    return math.ceil(live * old / new - 1e-9) if new > 0 else live


def _clamp_to_limits(need: int, stored: int, limits: tuple[int | None, ...]) -> int:
    """Not beyond the old bounds, which would take it away, nor beyond the quota, which would refuse the return."""
    known = [limit for limit in limits if limit is not None]
    return max(stored, min([need, *known]))
