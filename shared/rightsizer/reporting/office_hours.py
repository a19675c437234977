"""What stopped hours saved against an endpoint that always runs, and what the hours cost in which it ran."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.price import CENT, PriceTable
from rightsizer.domain.report import HoursSaving

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
