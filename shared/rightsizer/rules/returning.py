"""How many instances the way back needs: the fleet may have grown since the plan.

Deploying a configuration resets the counts to what it says (UpdateEndpoint without RetainAllVariantProperties), so the
counts of the plan's hour would take instances away in the middle of a peak.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from rightsizer.model.change import Change, VariantCount
from rightsizer.model.sight import EndpointSight
from rightsizer.model.step import StepKind


def counts(change: Change, endpoint: EndpointSight, quotas: Mapping[str, int]) -> tuple[VariantCount, ...]:
    """What each variant shall run once it is back: as stored, or more where the live fleet is larger than was asked.

    Never fewer than an earlier look of the same return asked for. Pure; `quotas` are instances by type, absent is
    unknown. Empty when there is nothing to go back to.
    """
    if change.before is None:
        return ()
    live = {v.name: max(v.current_count, v.desired_count) for v in endpoint.variants}
    asked = {v.name: v.count for v in change.plan.after}
    earlier = {v.name: v.count for v in change.plan.grown}
    most = {s.subject: s.params["MaxCapacity"] for s in change.plan.restore if s.kind is StepKind.REGISTER_TARGET}
    made = []
    for old in change.before.variants:
        need = old.count
        if live.get(old.name, 0) > asked.get(old.name, old.count):
            exchanged = _exchanged(live[old.name], change.plan.exchange) if old.name == change.variant else 0
            limits = (
                most.get(f"endpoint/{change.ref.name}/variant/{old.name}"),
                quotas.get(old.instance_type),
            )
            need = _within(max(old.count, live[old.name], exchanged), old.count, limits)
        made.append(replace(old, count=max(need, earlier.get(old.name, 0))))
    return tuple(made)


def _exchanged(live: int, exchange: tuple[int, int]) -> int:
    """Old instances that serve what `live` new ones do, by the exchange that was decided on."""
    old, new = exchange
    return math.ceil(live * old / new - 1e-9) if new > 0 else live


def _within(need: int, stored: int, limits: tuple[int | None, ...]) -> int:
    """Not beyond the old bounds, which would take it away, nor beyond the quota, which would refuse the return."""
    known = [limit for limit in limits if limit is not None]
    return max(stored, min([need, *known]))
