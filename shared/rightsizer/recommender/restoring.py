"""Bring back what was good before a change of ours, or as much of it as the load needs."""

from collections.abc import Sequence
from dataclasses import replace

from rightsizer.domain.option import Money, Option
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.recommender.context import Situation
from rightsizer.recommender.cost import cost_of
from rightsizer.recommender.fleet_size import before_ours
from rightsizer.recommender.gate import asked, restoring
from rightsizer.recommender.growing import grows, held, raises
from rightsizer.recommender.late_requests import overdrawn
from rightsizer.recommender.pricing import restore_option

TIGHT = Reason(Code.UNDER_PROVISIONED, "the fleet we set no longer carries the load")


def restored(base: Recommendation, at: Situation, why: Reason) -> Recommendation:
    """The last good configuration comes back, because of `why`."""
    price = at.given.prices.find(at.reference.name)
    if price is None:
        return replace(base, finding=Finding.UNDER_PROVISIONED, reason=why, gate_reason=why)
    target, mean = before_ours(at), sum(at.fleet) / 24
    moved = target.instance_type != at.runs.name
    cost = cost_of(at.usd, price, mean, target.instance_count, 0.0, at.given.prices.commitment, at.policy, moved)
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    now = (at.runs.name, at.variant.current_count)
    option = restore_option(at.endpoint.kind, now, target, price, money, at.demand.confidence)
    stays = held(at, option)
    if stays is not None:
        verdict, reason = asked(at.endpoint, stays)
        return replace(
            base, finding=Finding.UNDER_PROVISIONED, reason=why, gate=verdict, gate_reason=reason, options=()
        )
    verdict, reason = restoring(at.endpoint, why)
    return replace(
        base, finding=Finding.UNDER_PROVISIONED, reason=why, options=(option,), gate=verdict, gate_reason=reason
    )


def why_larger(at: Situation) -> Reason:
    """Why a fleet of ours has to grow: its load, or the late requests that it left standing."""
    if at.strained or at.spent is None:
        return TIGHT
    return Reason(Code.UNDER_PROVISIONED, f"{overdrawn(at.spent, at)}: the fleet we set gets larger")


def raised(base: Recommendation, at: Situation, sure: Sequence[Option]) -> Recommendation | None:
    """The owner's minimum goes up before anything else is asked; None where it does not, or cannot.

    To what the load needs, within the owner's maximum; where no such fleet carries it, to the owner's own minimum. A
    fleet that carries its load, and only used up what may be late, keeps its minimum where the sizing asks for no more.
    """
    if not grows(at, at.runs.name):
        return None
    option = next((o for o in sure if raises(at, o)), None)
    if option is None and not at.strained:
        return None
    larger = why_larger(at)
    if option is None:
        back = restored(base, at, larger)
        return back if back.options or not sure else None
    verdict, why = restoring(at.endpoint, larger)
    option = replace(option, restores=True)
    return replace(
        base, finding=Finding.UNDER_PROVISIONED, reason=larger, options=(option,), gate=verdict, gate_reason=why
    )
