"""Results of automatic mode on past mornings, and of the days after."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from rightsizer.domain.checks import aware
from rightsizer.domain.option import Option
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation, Replay


class HindsightVerdict(StrEnum):
    """Whether a fleet would have served the days after as the days before were served."""

    HELD = "held"
    LATE = "late"
    """More requests over the objective than a choice may cause, even where it is as fast as most likely."""
    NO_MEMORY = "out-of-memory"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Hindsight:
    """Whole days that the recommendation had not seen, served by the replay on a fleet that never ran."""

    days: int
    requests: int
    late: int | None
    """Requests over the objective at the bound of the slowdown; None where nothing could be replayed: no whole day yet,
    or no latency was published."""
    late_likely: int | None
    """Late requests at the middle of the slowdown; as many as at its bound where the instance type stays."""
    late_before: int | None
    """Late requests on the fleet that really ran."""
    objective_s: float | None
    """The p95 to keep, as the recommendation knew it."""
    strain: Replay | None
    """Hours above 80 and 100 %, worst p95 and memory margin at the bound of the slowdown; None as for `late`."""
    saved_usd: Decimal
    """US dollars of these days against the fleet that really ran, net of commitments, less the switch; by the instances
    of the replay, or, where nothing could be replayed, by those that were planned."""
    verdict: HindsightVerdict
    reason: Reason

    @property
    def was_replayed(self) -> bool:
        """Whether the replay served these days; where not, nothing but the plan speaks for `saved_usd`."""
        return self.late is not None


@dataclass(frozen=True, slots=True)
class BacktestChange:
    """One change that automatic mode would have made."""

    decided_at: datetime
    first_day: date
    """The first whole day on the new fleet."""
    until: date | None
    """The first day that it serves no more: the next change, or the rollback; None where it stands to the end."""
    recommendation: Recommendation
    option: Option
    """What would have been applied."""
    promised_late: float | None
    """Share of the requests over the objective in the replay of the look-back, 0..1; None where there was none."""
    taken_back: Reason | None
    """Why the fleet before would have come back; None where it would not."""
    after: Hindsight

    def __post_init__(self) -> None:
        aware("Rehearsed.decided_at", self.decided_at)


@dataclass(frozen=True, slots=True)
class MissedOption:
    """The best option that would have held, and was not taken or not in time."""

    option: Option
    judged_at: datetime
    after: Hindsight
    why: Reason
    """Why it was not applied on that morning."""
    regret_usd: Decimal
    """Its saving over the days after, less what was saved on them; above 0."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """One endpoint over the window, had it been opted in."""

    endpoint: str
    changes: tuple[BacktestChange, ...]
    """Changes that automatic mode would have made, oldest first."""
    last: Recommendation | None
    """The recommendation of the last morning that was judged; None without a day of datapoints."""
    mornings: Mapping[str, int]
    """How many mornings ended at each gate, ``waits`` (for its window, its rest or the day's budget; or the fleet that
    it was decided on was gone when it was to start) or ``watched``."""
    missed: MissedOption | None = None
    left_out: tuple[str, ...] = ()
    """Variants behind the first, which alone was played: nothing here is about them."""

    @property
    def saved_usd(self) -> Decimal:
        """US dollars over the window, less the switches; those by plan included."""
        return sum((change.after.saved_usd for change in self.changes), Decimal(0))

    @property
    def by_plan_usd(self) -> Decimal:
        """The part of `saved_usd` that is by plan alone, for nothing could be replayed."""
        return sum((change.after.saved_usd for change in self.changes if not change.after.was_replayed), Decimal(0))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Promises of a back-test against the days after, over the changes that were to save."""

    changes: int
    told: int
    """Changes of which the days after tell whether they held."""
    held: int
    replayed: int
    """Changes whose days after the replay could serve; US dollars and late requests, promised and seen, are theirs."""
    brier: float | None
    """Mean of (stated chance of harm - harm)^2, harm being 0 or 1: 0 is best. None where none can be told."""
    brier_without: float | None
    """Score of a forecast that calls every change harmless."""
    promised_late: float | None
    """Share of the requests over the objective as the replays promised, weighted by the requests that came; 0..1."""
    seen_late: float | None
    """Share of them that the days after show, at the bound of the slowdown too; 0..1."""
    promised_usd: Decimal
    """US dollars that the promised savings come to over the days they stood, less the switches."""
    saved_usd: Decimal
    """By the replay, less the switches."""
    regret_usd: Decimal
    """Of all endpoints together; of those that changed nothing too."""
