"""Hours in which an endpoint with office hours ran: its cost and what a change saves are reckoned by these alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Recommendation


@dataclass(frozen=True, slots=True)
class AwakeHours:
    """Awake hours of one endpoint: all of them, but those in which office hours had it stopped."""

    per_month: Decimal = HOURS_PER_MONTH
    """Hours of a month in which it runs, as its latest recommendation was priced."""
    stopped: Sequence[StoppedTime] = ()
    """Oldest first; empty where there are none, or they cannot be read."""

    def between(self, start: datetime, end: datetime) -> Decimal:
        """Awake hours of a stretch; where the stopped times are not known, the mean of the month."""
        if not self.stopped:
            return _hours(start, end) * self.per_month / HOURS_PER_MONTH
        asleep = (_hours(max(stop.start, start), min(stop.end or end, end)) for stop in self.stopped)
        return _hours(start, end) - sum(asleep, Decimal(0))

    def begin(self, end: datetime, hours: float) -> datetime:
        """When so many awake hours began that ended at `end`."""
        if not self.stopped:
            return end - timedelta(hours=hours * float(HOURS_PER_MONTH / self.per_month))
        start, left = end, timedelta(hours=hours)
        for stop in reversed(self.stopped):
            woken = min(stop.end or end, start)
            if stop.start >= start:
                continue
            if start - woken >= left:
                break
            start, left = stop.start, left - (start - woken)
        return start - left

    def known_until(self, end: datetime, made_at: datetime) -> datetime:
        """Until when it is known that was known until `end`: nothing runs in the stopped time that follows."""
        for stop in self.stopped:
            if stop.start <= end:
                end = max(end, stop.end or made_at)
        return min(end, made_at)


class AwakeByName(dict[str, AwakeHours]):
    """The awake hours of endpoints by name, by their latest recommendations; all hours where nothing says otherwise."""

    def __init__(self, judged: Mapping[str, Recommendation], stopped: Mapping[str, Sequence[StoppedTime]]) -> None:
        super().__init__()
        self.judged = judged
        self.stopped = stopped

    def __missing__(self, name: str) -> AwakeHours:
        """Made when it is asked for."""
        recommendation = self.judged.get(name)
        prices = (
            [recommendation.price, *(option.price for option in recommendation.options)]
            if recommendation is not None
            else []
        )
        month = next((price.hours_per_month for price in prices if price), HOURS_PER_MONTH)
        self[name] = AwakeHours(month, self.stopped.get(name, ()))
        return self[name]


def _hours(start: datetime, end: datetime) -> Decimal:
    """Hours of a stretch; none where it ends before it begins."""
    return Decimal((end - start) // timedelta(microseconds=1)) / 3_600_000_000 if start < end else Decimal(0)


def first_looks(ledger: Iterable[LedgerEntry], proposals: Iterable[Proposal]) -> Mapping[str, datetime]:
    """Since when endpoints with booked changes are known: their latest look has only the days after the change."""
    booked = {entry.change_id for entry in ledger if entry.kind in ("realised", "growth-cost")}
    asked = [(one.ref.name, one.recommendation.evidence) for one in proposals if one.change_id in booked]
    return dict(sorted(((name, seen.start) for name, seen in asked if seen), reverse=True))  # the earliest comes last
