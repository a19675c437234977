"""Whether a fleet would have carried the past days, by the replay: now, grown, and as it stands."""

import math
from dataclasses import replace

from rightsizer.domain.demand import Plan, Served
from rightsizer.recommender.context import Situation

JUMP = 1.5
"""Requests of a day over those of the busiest day before, from which its hours are no more those of the past."""


def carries(at: Situation, plan: Plan) -> Served | None:
    """What the plan would have done; None when too many requests would have missed the goal.

    At the plan's own load nobody may notice it. With the growth of the policy on top it still has to hold the
    objective, though not for each request: a load that has grown is met by the next evaluation. The guard of a change
    sees the load that comes, so it may not ring at the load that was seen.
    """
    served = at.served(plan)
    if not _unnoticed(at, served, at.before):
        return None
    if served.rung > at.before.rung and at.served(replace(plan, load=1.0)).rung > at.before.rung:
        return None
    grown = 1 + at.policy.down_with_growth
    if 1 < plan.load < grown:
        held = at.served(replace(plan, load=grown))
        if held.late > at.before.late + at.allowed(at.policy.grown_share) * held.requests:
            return None
    return served


def carries_alone(at: Situation, plan: Plan) -> bool:
    """Whether one instance in place of one does: as it was, and both of them with the margin and with growth on top."""
    if carries(at, plan) is None:
        return False
    more, before = at.served(replace(plan, load=at.margin)), at.before_at(at.margin)
    if not _unnoticed(at, more, before) or more.rung > before.rung:
        return False
    growth = 1 + at.policy.down_with_growth
    held, grown = at.served(replace(plan, load=growth)), at.before_at(growth)
    return held.late <= grown.late + at.allowed(at.policy.grown_share) * held.requests


def jumped(at: Situation) -> bool:
    """Whether the last day had far more requests than any day that the fleet was chosen for."""
    usual = max((d.request_count for d in at.days[:-1]), default=math.inf)
    return at.days[-1].request_count > JUMP * usual


def still_carries(at: Situation) -> bool:
    """Whether the fleet that we set, on the type it was measured on, still carries the last days as they were."""
    if not at.changed or at.runs.name != at.reference.name or at.peak < 2:
        return True
    counts = tuple(max(1, round(c or max(at.fleet))) for c in at.days[-1].instances)
    return _unnoticed(at, at.served(Plan(counts, at.workers, at.random, 1.0)), at.before)


def _unnoticed(at: Situation, served: Served, before: Served) -> bool:
    return served.late <= before.late + at.allowed(at.policy.excess_share) * served.requests
