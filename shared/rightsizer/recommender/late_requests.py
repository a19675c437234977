"""Late requests since our own changes: what they forbid, and how much more room they ask for."""

from collections.abc import Sequence
from datetime import date

from rightsizer.domain.demand import Plan
from rightsizer.domain.history import PastChange
from rightsizer.domain.usage import DayDigest
from rightsizer.recommender.context import Situation
from rightsizer.recommender.finding import Suffering, outgrown, spent, suffering
from rightsizer.recommender.latency_objective import late_share
from rightsizer.recommender.past_changes import resting
from rightsizer.recommender.replay import serve, stream_of

BUDGET = 1.0
"""Multiple of the allowed late requests from which nothing gets smaller, and a fleet of ours grows."""
WEEK = 7
HARDER = 3.0
"""Times its usual share of late requests that the old fleet is given credit for on harder days."""
NO_FASTER = 0.95
"""Slowdown against the reference type from which a type is no faster than it."""
FREE, GAIN, WARIEST = 0.5, 1.0, 3.0
"""Part of the allowed late requests that costs nothing, caution for each allowance beyond it, and its limit."""


def hurt(at: Situation) -> Suffering | None:
    """Evidence that a change of ours must be taken back at once."""
    changes = [p for p in at.given.history.endpoint if p.is_in_force]
    if not changes:
        return None
    since = [d for d in at.days if d.day >= changes[-1].at.date() and d.instance_type == at.runs.name]
    grown = outgrown(at.runs, at.reference, at.demand.memory)
    if grown is not None:
        return Suffering(grown, severe=True)
    if at.runs.name == at.reference.name and at.instances >= sum(at.fleet) / 24 - 0.01:
        return None
    usual = late_share(at.latency.bins, at.goal.p95_s)
    for days in (since[-2:], since):
        found = suffering(days, at.goal, usual, at.policy)
        if found is not None and not found.severe and usual > 0:
            found = suffering(days, at.goal, usual * harder(at, days), at.policy)
        if found is not None:
            return found
    return None


def caution(at: Situation) -> float:
    """Caution for the share of the allowed late requests that was used since our first change; a fleet can grow."""
    return min(max(GAIN * (_used(at, _since(at)) - FREE), 0.0), WARIEST) if at.peak > 1 else 0.0


def budget_spent(at: Situation) -> float | None:
    """Multiple of the allowed late requests that the fleets which we left standing used up; None within the budget.

    Days of a change that was taken back do not count here: what runs since is not to blame for them.
    """
    returned = {p.at.date() for p in _changes(at) if p.refuted}
    days = [d for d in _since(at) if d.day not in returned]
    if at.peak == 1 or _used(at, days) <= BUDGET:
        return None
    used = _used(at, days, harder(at, days))
    return used if used > BUDGET else None


def overdrawn(used: float, at: Situation) -> str:
    """The beginning of the sentence that says how much of the budget was used."""
    few = f", of few {at.policy.late_a_week:g} a week" if at.goal.declared else ""
    return (
        f"since our first change {used:.2f} times as many requests as allowed came later than before"
        f" ({100 * at.policy.late_budget:g} % of them may{few})"
    )


def failed_instances(at: Situation, name: str, slower: float, workers: int) -> float:
    """Mean instances of the largest fleet of a type that failed under such a load as today's; 0 when none did.

    It failed when its change was taken back, or when a day under it had more late requests than days differ by. What
    failed on the reference type fails on one that is no faster (`slower` is its slowdown) and serves no more at once.
    """
    policy, load = at.policy, at.demand.load.peak_busy_gpus
    back = [p for p in _changes(at) if p.refuted]
    rests = [p for p in back if resting(p, 1, load, policy, at.given.now) is not None]
    alike = {name, at.reference.name} if slower >= NO_FASTER and workers <= at.workers else {name}
    failed = [p.mean_instances or p.to_count for p in rests if p.from_type == p.to_type and p.to_type in alike]
    returned, least = {p.at.date() for p in back}, sum(at.fleet) / 24 - 0.01
    busiest = max((d.request_count for d in at.days[-WEEK:]), default=0.0) * (1 + policy.blacklist_demand)
    for day in _since(at):
        counts = [c for c in day.instances if c]
        mean = sum(counts) / max(len(counts), 1)
        ours = day.instance_type in alike and day.day not in returned and mean < least
        if ours and day.request_count <= busiest and _suffered(at, day):
            failed.append(mean)
    return max(failed, default=0.0)


def _suffered(at: Situation, day: DayDigest) -> bool:
    usual = late_share(at.latency.bins, at.goal.p95_s)
    found = suffering([day], at.goal, usual, at.policy)
    return found is not None and suffering([day], at.goal, usual * harder(at, [day]), at.policy) is not None


def _changes(at: Situation) -> list[PastChange]:
    return [p for p in at.given.history.endpoint if p.was_deployed]


def _since(at: Situation) -> list[DayDigest]:
    """The days since our first change."""
    first = min((p.at.date() for p in _changes(at)), default=date.max)
    return [d for d in at.days if d.day >= first]


def _used(at: Situation, days: Sequence[DayDigest], harder: float = 1.0) -> float:
    """The part of the allowed late requests that was used, where days were that much harder on any fleet."""
    return spent(days, at.goal, late_share(at.latency.bins, at.goal.p95_s) * harder, at.policy)


def harder(at: Situation, days: Sequence[DayDigest]) -> float:
    """How many times more requests the reference fleet would have had late on these days, 1 to HARDER."""
    fleet = Plan(at.fleet, at.workers, at.random_base, 1.0)
    shares = []
    for some in (at.base, days):
        served = serve(stream_of(some, at.service, at.policy.replay_requests), fleet, at.goal.p95_s)
        shares.append(served.late / max(served.requests, 1))
    return min(max(shares[1] / shares[0], 1.0), HARDER) if shares[0] > 0 else 1.0
