"""Traffic that has stopped: how long it is silent, and the few instances that are enough until it comes back.

An endpoint that cannot sleep keeps what its owner declared, or one instance. Its type stays: a count comes back within
minutes, and what another type has to carry is known again with the traffic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rightsizer.domain.demand import Fleet
from rightsizer.domain.option import Option
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import SLOT_S, SLOTS, DailyUsage
from rightsizer.recommender.candidates import CandidateType, check_candidate
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.demand import gpu_mean
from rightsizer.recommender.finding import IDLE_GPU_MEAN
from rightsizer.recommender.priced_option import price_fleet

EXPECTED = 20.0
"""Requests that had to come in silent hours on every earlier day, before silence says that the traffic has stopped."""


@dataclass(frozen=True, slots=True)
class Silence:
    """How long nothing was asked, and the longest pause before that, hours."""

    hours: float
    longest_before_h: float

    @property
    def sentence(self) -> str:
        """Sentence without an end, that says why the traffic counts as stopped."""
        before = f"{self.longest_before_h:.0f} h" if self.longest_before_h >= 1 else "less than an hour"
        return f"no request for {self.hours:.0f} h, and the longest pause before was {before}"


@dataclass(frozen=True, slots=True)
class SilentFleet:
    """Fleet that a silent endpoint needs, and the context of its silent days alone."""

    context: EvaluationContext
    silence: Silence
    option: Option | Reason
    """As few instances as its owner allows, or why it stays as it is."""


def fleet_while_silent(context: EvaluationContext) -> SilentFleet | None:
    """The fleet of an endpoint whose traffic has stopped, where its count is all that could be less; else None."""
    several = context.variant.current_count > 1 or context.has_active_change
    if not several or not context.endpoint.is_plain or context.endpoint.scaling:
        return None
    silence = find_stopped_traffic(context.days, context.policy.stopped_hours)
    if silence is None:
        return None
    asked = max(day.day for day in context.days if day.request_count > 0)
    quiet = replace(context, days=[day for day in context.days if day.day > asked], _replays={})
    if (gpu_mean(quiet.days, quiet.runs) or 0.0) > IDLE_GPU_MEAN:
        return None  # as an endpoint is not idle whose GPU works: a person looks at what works there
    return SilentFleet(quiet, silence, _fewest(quiet))


def _fewest(quiet: EvaluationContext) -> Option | Reason:
    """The fewest instances of the type that runs."""
    candidate, least = check_candidate(quiet, quiet.runs), quiet.owner_minimum
    if not isinstance(candidate, CandidateType) or least >= quiet.variant.current_count:
        runs = f"{quiet.variant.current_count} × {quiet.runs.name}"
        return Reason(
            Code.ALREADY_RIGHT, f"already right: its traffic has stopped, and {runs} is the least that it keeps"
        )
    fleet = Fleet((least,) * 24, candidate.workers, quiet.is_random_routing, 1.0)
    return price_fleet(quiet, candidate, fleet, None)


def find_stopped_traffic(days: Sequence[DailyUsage], least_hours: float) -> Silence | None:
    """The silence of traffic that has stopped: to the end for `least_hours` and four times any gap before.

    In the same hours every earlier day had requests, and so had an earlier day of each weekday that was silent from
    midnight to midnight: the silence is no habit of the hour or the week, and no accident.
    """
    silent = longest = 0.0
    if not days or days[-1].requests[-1] != 0:
        return None
    for usage in days:
        for count in usage.requests:
            if count is None or count > 0:
                longest, silent = max(longest, silent), 0.0
            else:
                silent += SLOT_S
    slots = round(silent / SLOT_S)
    if silent < 3600 * least_hours or silent < 4 * longest or _expected_requests(days, slots) < EXPECTED:
        return None
    if _is_weekly_silence(days, slots):
        return None
    return Silence(silent / 3600, longest / 3600)


def _expected_requests(days: Sequence[DailyUsage], slots: int) -> float:
    """Requests that the last `slots` of a day had on the day with the fewest, of those before the silence."""
    dates = sorted({d.day for d in days})
    calls = dict.fromkeys(dates[: -slots // SLOTS], 0.0)
    for usage in days:
        if usage.day in calls:
            calls[usage.day] += sum(count or 0.0 for count in usage.requests[-min(slots, SLOTS) :])
    return min(calls.values(), default=0.0)


def _is_weekly_silence(days: Sequence[DailyUsage], slots: int) -> bool:
    """Whether a whole silent day is of a weekday that was never seen with requests: it may be silent each week."""
    dates = sorted({d.day for d in days})
    whole = slots // SLOTS
    asked = {d.day.weekday() for d in days if d.request_count > 0}
    return any(date.weekday() not in asked for date in dates[len(dates) - whole :])
