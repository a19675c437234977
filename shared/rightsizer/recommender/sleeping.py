"""Scaling to zero: what it would save, or why it is not offered."""

from dataclasses import replace

from rightsizer.domain.digest import SLOT_S, DayDigest
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.implementation import starts_anew
from rightsizer.domain.option import Excluded, Money, Option, OptionKind, carried_out
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.context import Situation
from rightsizer.recommender.cost import cost_of
from rightsizer.recommender.pricing import nap_option
from rightsizer.recommender.scale_to_zero import ASLEEP_ALREADY, COLD_TAG, Nap, best_nap, stopped, tolerates_cold


def sleep(at: Situation) -> Option | Excluded:
    """Scaling to zero, where the owner tolerates cold starts or nobody would have met one; or why not."""
    found = _nap(at)
    option = found if isinstance(found, Reason) else _option(at, found)
    if isinstance(option, Reason):
        return Excluded(at.runs.name, option, OptionKind.SCALE_TO_ZERO)
    return option


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
    asleep = OptionKind.SCALE_TO_ZERO
    in_place = at.may(asleep) or carried_out(at.endpoint.kind, asleep)
    of_components = EndpointKind.INFERENCE_COMPONENTS in at.endpoint.kinds
    beside = starts_anew(asleep, in_place, of_components=of_components)
    cost = cost_of(at.usd, at.price, awake, at.variant.current_count, 0.0, plan, at.policy, new_fleet=beside)
    if cost.saving <= 0:
        slept = f"asleep {100 * found.asleep_share:.0f} % of the time it would save nothing"
        return Reason(Code.NOT_CHEAPER, f"{slept} of ${at.usd:,.2f} a month (committed: ${plan.usd_per_hour} an hour)")
    money = Money(cost.usd_per_month, cost.saving, cost.switch_usd, cost.payback_days)
    now = (at.runs.name, at.variant.current_count)
    sure, share = at.demand.confidence, found.asleep_share
    nap = nap_option(now, at.price, money, sure, found.minutes, share, in_place, of_components)
    return replace(nap, mean_instances=round(awake, 4))
