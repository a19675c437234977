"""Evidence for a person: the window, the figures, the picture."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from statistics import fmean, median

from rightsizer.domain.demand import Demand, MemoryNeed, Peak
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.recommendation import Evidence
from rightsizer.domain.usage import SLOT_S, SLOTS, DailyUsage
from rightsizer.recommender.demand import known_by_hour

HALF = 0.5
QUIET_DAYS = 3
"""Days without a request from which a recommendation says so first: a weekend is shorter."""


def evidence_of(
    days: Sequence[DailyUsage], demand: Demand, runs: InstanceType, past: Sequence[PastChange], until: datetime
) -> Evidence:
    """The evidence behind a recommendation, figures with their units; `days` must not be empty.

    It begins with the first datapoint and ends with the last one; `until` is the end of the last hour that was read.
    """
    start, end = _evidence_window(days)
    end = min(end, until)
    figures = {
        "peak rate planned": f"{demand.load.peak_rate:.3f} requests/s",
        "GPU memory": f"{demand.memory.kind.value}, peak {_held_memory(demand.memory):.1f} GiB per GPU",
        **_memory_figures(demand.memory),
    }
    if demand.load.weekly_growth > 1:
        figures["growth"] = f"{100 * (demand.load.weekly_growth - 1):.0f} % a week; fleets are sized for a week of it"
    if demand.gpu_mean is not None and demand.gpu_peak is not None:
        figures["GPU utilisation"] = f"mean {100 * demand.gpu_mean:.1f} %, peak {100 * demand.gpu_peak:.1f} % per GPU"
    if runs.accelerator_count > 1:
        figures["GPUs"] = f"uses {gpus_text(demand, runs)}"
    if demand.gpu_skew is not None:
        busiest, least = (100 * share for share in demand.gpu_skew)
        figures["GPU skew"] = f"busiest {busiest:.1f} %, least busy {least:.1f} % on average"
    if demand.latency is not None:
        figures["model latency"] = (
            f"p50 {demand.latency.p50_s:.3f} s, p95 {demand.latency.p95_s:.3f} s, p99 {demand.latency.p99_s:.3f} s"
        )
    if demand.gpu_s_per_request is not None:
        figures["GPU seconds per request"] = f"{demand.gpu_s_per_request:.4f} s"
        figures["GPU share of latency"] = f"{100 * demand.gpu_share:.0f} %"
    if demand.host_memory_gib is not None:
        figures["host memory needed"] = f"{demand.host_memory_gib:.1f} of {runs.memory_gib:.0f} GiB with margin"
    if demand.vcpu is not None:
        figures["vCPU needed"] = f"{demand.vcpu:.1f} of {runs.vcpu} with margin"
    share = min(demand.valid_share, 1.0)
    rung = _rung(demand, past)
    return Evidence(start, end, round(demand.days, 2), round(share, 4), round(demand.requests), rung, figures)


def _evidence_window(days: Sequence[DailyUsage]) -> tuple[datetime, datetime]:
    """From the first slot with a datapoint to the end of the last one; whole days where there is none."""
    first, last = (datetime.combine(day, time(), UTC) for day in (min(d.day for d in days), max(d.day for d in days)))
    seen = []
    for usage in days:
        begins = datetime.combine(usage.day, time(), UTC)
        for slots in (range(SLOTS), reversed(range(SLOTS))):
            known = (i for i in slots if usage.requests[i] is not None or usage.busy_s[i] is not None)
            seen += [begins + slot * SLOT for slot in islice(known, 1)]
    return (min(seen), max(seen) + SLOT) if seen else (first, last + timedelta(days=1))


def _held_memory(memory: MemoryNeed) -> float:
    return memory.peak_gib if memory.pool is None else memory.lower_gib + memory.pool.gib


def _memory_figures(memory: MemoryNeed) -> dict[str, str]:
    found = {}
    if memory.need_gib is not None:
        found["GPU memory needed"] = f"{memory.need_gib:.1f} GiB per GPU with margin"
    if memory.leak_gib > 0:
        found["GPU memory leak"] = f"{memory.leak_gib:.1f} GiB per GPU and day"
    if memory.pool is not None:
        found["KV cache"] = f"at most {100 * memory.pool.used:.0f} % of {memory.pool.gib:.1f} GiB in use"
        found["model weights"] = f"{memory.lower_gib:.1f} GiB"
    return found


def silence_text(demand: Demand) -> str:
    """Days without a call, as the end of a sentence; empty where somebody called within a weekend."""
    return f"; nobody has called for {demand.told_silent_days} days" if demand.silent_days >= QUIET_DAYS else ""


def unused_text(hourly: Sequence[Sequence[float]], usd_per_month: Decimal) -> str:
    """Hours without a request and their cost, as the end of a sentence; empty where they are fewer than half."""
    hours = [requests for day in hourly for requests in day]
    unused = hours.count(0) / len(hours) if hours else 0.0
    if unused < HALF:
        return ""
    usd = float(usd_per_month) * unused
    return f"; no request came in {100 * unused:.0f} % of its hours, which cost ${usd:,.0f} a month"


def gpus_text(demand: Demand, measured: InstanceType) -> str:
    """The GPUs that worked, in words, of an instance of the type they were `measured` on.

    A bound from above, unless they were seen one by one.
    """
    used = f"at most {demand.gpus_used}" if demand.gpus_used else "perhaps all"
    if demand.gpus_seen:
        used = str(demand.gpus_used or "all")
    return f"{used} of the {measured.accelerator_count} GPUs of {measured.name}"


def _rung(demand: Demand, past: Sequence[PastChange]) -> str:
    """The best rung of the signal ladder that the recommendation stands on: L0 to L5."""
    if demand.gpu_mean is None and demand.latency is None:
        return "L0"
    past_changes = [p for p in past if p.latency_ratio is not None or p.realised_slowdown is not None]
    if any(p.ended is not PastEnd.TESTED for p in past_changes):
        return "L5"
    if past_changes:
        return "L4"
    if demand.memory.pool is not None:
        return "L3"
    return "L2" if demand.gpus_seen else "L1"


HOUR = timedelta(hours=1)
SLOT = timedelta(seconds=SLOT_S)
STANDS_OUT = 1.2
"""Times the mean hour from which an hour is a peak worth waiting for."""
USUAL = 0.5
"""Share of the hour's mean that a weekday has to carry."""


def hourly_requests(days: Sequence[DailyUsage], until: datetime | None = None) -> tuple[float | None, ...]:
    """Requests of each hour from the first day on, oldest first, for the small picture. None is unknown (law 1).

    A day without a digest is unknown too, so that each hour has its place. Hours from `until` on are left out.
    """
    if not days:
        return ()
    first = datetime.combine(min(d.day for d in days), time(), UTC)
    end = datetime.combine(max(d.day for d in days), time(), UTC) + timedelta(days=1)
    hours: list[float | None] = [None] * int((end - first) / HOUR)
    for usage in days:
        offset = 24 * (usage.day - first.date()).days
        for hour, count in enumerate(_sums_of_hours(usage)):
            if count is not None:
                hours[offset + hour] = round((hours[offset + hour] or 0.0) + count, 1)
    return tuple(hours if until is None else hours[: max(0, int((until - first) / HOUR))])


def requests_by_hour(days: Sequence[DailyUsage]) -> tuple[tuple[float, ...], ...]:
    """Requests of the 24 hours of each day, oldest first; two digests of one day are added.

    What is not known adds nothing: the sums tell how long a test must be to see enough, and how a day rises and falls.
    """
    found: dict[date, list[float]] = {}
    for usage in days:
        sums = found.setdefault(usage.day, [0.0] * 24)
        for hour, count in enumerate(_sums_of_hours(usage)):
            sums[hour] += round(count or 0.0, 1)
    return tuple(tuple(sums) for sums in found.values())


def _sums_of_hours(usage: DailyUsage) -> list[float | None]:
    """Requests of each of the 24 hours; None where nothing is known."""
    return [sum(known) if known else None for known in known_by_hour(usage.requests)]


def peak_of(days: Sequence[DailyUsage]) -> Peak | None:
    """The busiest hour of the day by the median over the days; None where no hour stands out.

    The median, so that one batch in the night is no peak. A weekday on which the hour carries less than half of its
    mean is not among the peak's. What is not known counts on no day.
    """
    seen: list[dict[date, float]] = [{} for _ in range(24)]
    for usage in days:
        for hour, count in enumerate(_sums_of_hours(usage)):
            if count is not None:
                seen[hour][usage.day] = seen[hour].get(usage.day, 0.0) + count
    means = [fmean(one.values()) if one else 0.0 for one in seen]
    hour = max(range(24), key=lambda h: (median(seen[h].values()) if seen[h] else 0.0, means[h]))
    if means[hour] <= 0 or means[hour] < STANDS_OUT * fmean(means):
        return None
    on: dict[int, list[float]] = {weekday: [] for weekday in range(7)}
    for day, count in seen[hour].items():
        on[day.weekday()].append(count)
    return Peak(hour, tuple(d for d, found in on.items() if not found or fmean(found) >= USUAL * means[hour]))
