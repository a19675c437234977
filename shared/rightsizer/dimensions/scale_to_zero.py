"""No instance while nobody calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rightsizer.changes.dimension import Approved, Planned
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Excluded, Money, Option, OptionKind
from rightsizer.domain.plan import Plan
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import SLOT_S, DayDigest
from rightsizer.recommender.dimension import Restart
from rightsizer.recommender.pricing import cost_of, nap_option
from rightsizer.recommender.scale_to_zero import ASLEEP_ALREADY, COLD_TAG, Nap, best_nap, stopped, tolerates_cold

if TYPE_CHECKING:
    from rightsizer.recommender.context import Situation


class ScaleToZero(Dimension):
    """Carried out where a queue keeps the requests; elsewhere it takes inference components, which owners make."""

    kinds = (OptionKind.SCALE_TO_ZERO,)
    applies_to = frozenset({EndpointKind.ASYNC})
    """The queue of an asynchronous endpoint keeps what comes while no instance runs."""
    restart = Restart.NEW_ENDPOINT
    competes = True

    def describe(self, option: Option) -> str:
        """The same for every endpoint."""
        return "scale to zero when nobody calls"

    def undo(self, option: Option) -> str:
        """In place the bounds, of components their copies, elsewhere the endpoint that was kept."""
        if option.in_place:
            return "puts back the old bounds and count"
        if not option.restart_needed:
            return "puts back the old least copies of its components"
        return "sends the callers back to this endpoint, as long as it is kept"

    def plan(self, given: Approved) -> Planned | tuple[Reason, ...]:
        """No instance while nobody asks: for an asynchronous endpoint alone, whose queue keeps what comes meanwhile."""
        from rightsizer.autoscaling import policies
        from rightsizer.changes.plan.capacity import capacity_step

        change, before = given.change, given.before
        kind = given.ground.proposal.recommendation.kind
        if kind not in self.applies_to:
            text = f"an endpoint of kind {kind.value} has no queue: requests fail while it has no instance"
            return (Reason(Code.OTHER_KIND, text),)
        name, mine = change.ref.name, [v for v in before.variants if v.name == change.variant]
        own = next((t for t in given.ground.scaling if t.variant_name == change.variant), None)
        if not mine or (own is not None and own.minimum == 0):
            return (Reason(Code.CHANGED_SINCE, f"{name} scales to zero already"),)
        alarm = f"{given.limits.alarm_prefix}wake-{name}"
        most = change.option.target.maximum or mine[0].count
        settle, restore = policies.to_zero(name, change.variant, own, most, alarm, change.id)
        plan = Plan(
            settle=settle,
            restore=restore if own is not None else (*restore, capacity_step(name, mine)),
            after=before.variants,
            guardrail="no instance while the queue is empty: no deployment; an alarm on the queue starts the first one",
        )
        return Planned(before, plan)

    def offer(self, at: Situation, found: Recommendation) -> Iterable[Option | Excluded]:
        """One option, where the owner tolerates cold starts or nobody would have met one; or why not."""
        best = _nap(at)
        option = best if isinstance(best, Reason) else _option(at, best)
        return [Excluded(at.runs.name, option, OptionKind.SCALE_TO_ZERO) if isinstance(option, Reason) else option]


def _nap(at: Situation) -> Nap | Reason:
    queued = EndpointKind.ASYNC in at.endpoint.kinds
    if queued and any(target.minimum == 0 for target in at.endpoint.scaling):
        return Reason(Code.NOT_APPLICABLE, ASLEEP_ALREADY)
    tolerated = tolerates_cold(at.endpoint)
    days = [_awake(d, at.policy) for d in at.days] if queued else at.days
    found = stopped(days, at.policy.stopped_hours)
    if found is not None:
        return found
    if not tolerated and at.peak > 1:
        return Reason(
            Code.NOT_OPTED_IN,
            f"not scaled to zero: callers would wait for a cold start (the tag {COLD_TAG}=true accepts that)",
        )
    return best_nap(days, tolerated, at.policy.cold_share, at.policy.nap_days)


def _awake(digest: DayDigest, policy: Policy) -> DayDigest:
    """The day of a queue, whose requests are counted where they end: while the GPU works nobody sleeps."""
    least = policy.cpu_class_share * SLOT_S * max(digest.gpus, 1)
    rows = zip(digest.requests, digest.busy_s, strict=True)
    known = tuple(None if calls == 0 and work is not None and work > least else calls for calls, work in rows)
    return replace(digest, requests=known)


def _option(at: Situation, found: Nap) -> Option | Reason:
    awake = at.instances * (1 - found.asleep_share)
    plan = at.given.prices.commitment
    in_place = at.may(OptionKind.SCALE_TO_ZERO) or at.endpoint.kind is EndpointKind.ASYNC
    of_components = EndpointKind.INFERENCE_COMPONENTS in at.endpoint.kinds
    beside = not (in_place or of_components)
    cost = cost_of(at.usd, at.price, awake, at.variant.current_count, 0.0, plan, at.policy, new_fleet=beside)
    if cost.saving <= 0:
        slept = f"asleep {100 * found.asleep_share:.0f} % of the time it would save nothing"
        return Reason(Code.NOT_CHEAPER, f"{slept} of ${at.usd:,.2f} a month (committed: ${plan.usd_per_hour} an hour)")
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    now = (at.runs.name, at.variant.current_count)
    sure, share = at.demand.confidence, found.asleep_share
    nap = nap_option(now, at.price, money, sure, found.minutes, share, in_place, of_components)
    return replace(nap, mean_instances=round(awake, 4))
