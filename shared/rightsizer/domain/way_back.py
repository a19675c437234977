"""The way back of a change that a person approved: that approval permits it too, for some days.

Exactly what ran before comes back, on an endpoint that runs exactly what the change made: one variant, without
autoscaling. Whatever is more, or was touched by anybody since, is asked about as before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Target
from rightsizer.domain.proposal import DecidedBy, DecisionSource

WAY_BACK = timedelta(days=14)
"""How long an approval permits the way back: two whole weeks show each weekday twice, which is also the look-back."""


@dataclass(frozen=True, slots=True)
class RunningFleet:
    """The fleet of an endpoint with one variant and without autoscaling, as it runs."""

    instance_type: str
    count: int
    config_name: str


def approved_change(
    history: Sequence[PastChange], runs: RunningFleet, target: Target, now: datetime
) -> PastChange | None:
    """The change of which the approval permits `target` now; None where a person has to be asked.

    `history` is what was recorded of the endpoint's changes, oldest first.
    """
    last = next((past for past in reversed(history) if past.ended is not PastEnd.TESTED), None)
    if last is None or last.ended not in (PastEnd.PROVEN, PastEnd.APPLIED) or last.approved_at is None:
        return None
    if not is_person(last.approved_by) or not timedelta(0) <= now - last.approved_at <= WAY_BACK:
        return None
    if last.restores or last.grows or last.others or last.day_counts or last.from_minimum is not None:
        return None
    running_fleet = RunningFleet(last.to_type, last.to_count, last.to_config)
    is_constant = last.mean_instances is None or last.mean_instances == last.to_count
    exact = running_fleet == runs and is_constant and bool(last.to_config)
    return last if exact and target == Target(last.from_type, last.from_count) else None


def is_person(by: str) -> bool:
    """Whether a person decided, whom a channel or AWS named."""
    decider = DecidedBy.read(by)
    return decider.source in (DecisionSource.SLACK, DecisionSource.CLI) and bool(decider.person)
