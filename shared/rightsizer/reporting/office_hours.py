"""Office hours in money: hours in which an endpoint ran, and what its stopped hours saved."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, PriceTable
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import HoursSaving


@dataclass(frozen=True, slots=True)
class AwakeHours:
    """Awake hours of one endpoint: all of them, but those in which office hours had it stopped."""

    per_month: Decimal = HOURS_PER_MONTH
    """Hours of a month in which it runs, as its latest recommendation was priced."""
    stopped: Sequence[StoppedTime] = ()
    """Stopped times, oldest first; empty where there are none, or they cannot be read."""

    def between(self, start: datetime, end: datetime) -> Decimal:
        """Awake hours between two times; where the stopped times are not known, by the mean of the month."""
        if not self.stopped:
            return _hours_between(start, end) * self.per_month / HOURS_PER_MONTH
        asleep = (_hours_between(max(stop.start, start), min(stop.end or end, end)) for stop in self.stopped)
        return _hours_between(start, end) - sum(asleep, Decimal(0))

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


def _hours_between(start: datetime, end: datetime) -> Decimal:
    """Hours of a stretch; none where it ends before it begins."""
    return Decimal((end - start) // timedelta(microseconds=1)) / 3_600_000_000 if start < end else Decimal(0)


class _Begun(Protocol):
    @property
    def start(self) -> datetime: ...


def first_looks(
    ledger: Iterable[LedgerEntry],
    proposals: Iterable[Proposal],
    judged: Mapping[str, Recommendation],
    changes: Mapping[str, Sequence[_Begun]],
) -> Mapping[str, datetime]:
    """Since when endpoints with booked changes are known: their latest look has only the days after the change.

    One whose latest look begins with no change of ours was changed by its owner: what ran before is not known.
    """
    booked = {entry.change_id for entry in ledger if entry.kind in ("realised", "growth-cost")}
    asked = [(one.ref.name, one.recommendation.evidence) for one in proposals if one.change_id in booked]
    found = dict(sorted(((name, seen.start) for name, seen in asked if seen), reverse=True))  # the earliest comes last
    return {name: start for name, start in found.items() if _begins_with_ours(judged.get(name), changes.get(name, ()))}


def _begins_with_ours(recommendation: Recommendation | None, changes: Sequence[_Begun]) -> bool:
    """Whether the latest look begins within a day of a change of ours."""
    seen = recommendation.evidence if recommendation is not None else None
    return seen is not None and any(abs(seen.start - change.start) <= timedelta(days=1) for change in changes)


HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Night:
    """The part of a stopped time that lies in the window."""

    hours: Decimal
    ran: tuple[tuple[str, int], ...]


def types_stopped(records: Iterable[HoursRecord]) -> list[str]:
    """Instance types that ran before a stop: what has to be priced."""
    return sorted({kind for record in records for stop in record.stopped_times for kind, _ in stop.ran})


def hours_savings(
    records: Sequence[HoursRecord], prices: PriceTable, start: datetime, end: datetime
) -> Iterator[HoursSaving]:
    """The saving of each endpoint that was stopped in the window, the largest first; `end` is not after now."""
    savings = [saving for record in records if (saving := _saving_of(record, prices, start, end)) is not None]
    yield from sorted(savings, key=lambda each: (-(each.usd or Decimal(0)), each.endpoint))


def _saving_of(record: HoursRecord, prices: PriceTable, start: datetime, end: datetime) -> HoursSaving | None:
    nights = [night for stop in record.stopped_times if (night := _night_of(stop, start, end)) is not None]
    if not nights:
        return None
    first = record.stopped_times[0]
    known_since = max(start, min(first.was_modified_at or first.start, first.start))
    stopped = sum((night.hours for night in nights), Decimal(0))
    ran = max(_hours(known_since, end) - stopped, Decimal(0))
    each = [_hourly(night.ran, prices) for night in nights]
    usd = [night.hours * cost for night, cost in zip(nights, each, strict=True) if cost is not None]
    complete = len(usd) == len(nights)
    last = each[-1]
    return HoursSaving(
        endpoint=record.ref.name,
        owner=record.owner,
        stopped_hours=round(float(stopped), 2),
        ran_hours=round(float(ran), 2),
        usd=sum(usd, Decimal(0)).quantize(CENT) if complete else None,
        ran_usd=(ran * last).quantize(CENT) if last is not None else None,
        priced_by=_priced_by({kind for night in nights for kind, _ in night.ran}, prices),
    )


def _night_of(stop: StoppedTime, start: datetime, end: datetime) -> _Night | None:
    first, last = max(stop.start, start), min(stop.end or end, end)
    return _Night(_hours(first, last), stop.ran) if first < last else None


def _hours(start: datetime, end: datetime) -> Decimal:
    return Decimal(str(round((end - start) / HOUR, 4)))


def _hourly(ran: Sequence[tuple[str, int]], prices: PriceTable) -> Decimal | None:
    """US dollars an hour of these instances; None where they or a price of theirs are not known."""
    known = [(prices.find(kind), count) for kind, count in ran]
    parts = [price.usd_per_hour * count for price, count in known if price is not None]
    return sum(parts, Decimal(0)) if parts and len(parts) == len(ran) else None


def _priced_by(types: Collection[str], prices: PriceTable) -> str:
    known = (price for kind in sorted(types) if (price := prices.find(kind)) is not None)
    return ", ".join(f"{one.instance_type} ${one.usd_per_hour:f} an hour ({one.source}, {one.as_of})" for one in known)
