"""Turn daily usage into demand: GPU seconds per request, load by hour, latency, host needs."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import cast

from rightsizer.domain.demand import Demand, Latency, Load, MemoryNeed, RefusedShares
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.office_hours import StoppedTime, stopped_hours
from rightsizer.domain.policy import Policy
from rightsizer.domain.usage import (
    BIN,
    PER_HOUR,
    SLOT_S,
    SLOTS,
    DailyUsage,
    EachGpu,
    Fit,
    Spread,
    known_values,
    quantile,
    weighted_quantile,
)
from rightsizer.recommender.daily_usage import full_slots

THREADS_MARGIN = 1.15
"""Error of the host's own seconds, which are what the GPU leaves of the latency."""
IDLE_GPU, GPU_SKEW = 0.01, 3.0
"""Below the first a GPU does nothing; further apart than the second, one does the work of others (decision model)."""
GROWS, GREW_ON = 1.1, 5
"""Growth in a week from which it is more than chance, and the days of a week that have to be known for it."""
GAPS, ONE_DAY, SEVEN_DAYS = 0.1, timedelta(days=1), timedelta(days=7)
"""Share of its slots without a datapoint up to which a day counts as whole."""
LINE_SLOTS = 48
"""Slots with GPU and CPU utilisation from which a line is drawn through them: four hours."""
LATELY, SEEN_FAILED = timedelta(days=2), 10.0
"""Latest days that must not have failed more than may, however good those before were, and failures that tell it."""
SEEN_REFUSED = 10.0
"""4XX answers to be expected of requests before that none came says something."""


def demand_of(
    days: Sequence[DailyUsage],
    same: Sequence[DailyUsage],
    runs: InstanceType,
    memory: MemoryNeed,
    policy: Policy,
    unqueued: float = 1.0,
) -> Demand:
    """The demand behind `days`, not empty. `same` are the days on the reference type `runs`, with its own fleet.

    Requests count from all days; latency, GPU seconds and host needs only from the reference days. `unqueued` is the
    share of the latency that is no waiting. Silent days add no confidence, and slots stopped by us take none away.
    """
    requests = sum(d.request_count for d in days)
    valid = sum(d.valid_slots for d in days)
    known = sum(len(d.requests) - d.requests.count(None) for d in days)
    dates = len({d.day for d in days if d.request_count > 0})
    latency = latency_of(same)
    gpu_s, share, concurrency = _service(same, latency, runs, policy, unqueued)
    (used, seen), since = _gpus_used(same, runs), [d for d in days if d.day > same[-1].day]
    minutes = (max(valid, known if runs.accelerator is None else valid) + _stopped_count(days)) * SLOT_S / 60
    return Demand(
        days=max(valid, known) * SLOT_S / 86400,
        valid_share=valid / _expected_slots(days),
        requests=requests,
        confidence=min(dates, minutes / 1440),
        load=_load(days, policy),
        latency=latency,
        gpu_s_per_request=gpu_s,
        gpu_share=share,
        concurrency=concurrency,
        memory=memory,
        host_memory_gib=_peak([d.host_memory for d in same], runs.memory_gib * policy.host_memory_margin),
        vcpu=_p99([d.cpu for d in same], runs.vcpu * policy.vcpu_margin),
        cpu_p95=max((d.cpu.p95 for d in same if d.cpu), default=None),
        gpu_mean=gpu_mean(same, runs),
        gpu_peak=max((d.gpu.peak for d in same if d.gpu), default=None),
        gpus_used=used,
        error_share=max(_failed_share(same), _failed_share(since)),
        failed_lately=_failed_lately(days),
        silent_days=_silent_days(days, runs),
        backlog=max((d.backlog for d in days if d.backlog is not None), default=None),
        oldest_request_s=max((d.oldest_request_s for d in days if d.oldest_request_s is not None), default=None),
        expired=sum(d.expired for d in days),
        expiry_s=min((d.oldest_request_s for d in days if d.expired and d.oldest_request_s is not None), default=None),
        host_threads=_threads(same, latency, gpu_s, runs, unqueued) if share < 1 else None,
        refused=max(_refused_shares(same), _refused_shares(since), key=lambda shares: (shares.busy, shares.of_all)),
        gpus_seen=seen,
        gpu_skew=_gpu_skew(same),
    )


def overhead_of(days: Sequence[DailyUsage]) -> float:
    """Mean of what passes around the model of a request, seconds; 0 where it is not known."""
    known = [(d.overhead_s, d.request_count) for d in days if d.overhead_s is not None]
    requests = sum(count for _, count in known)
    return sum(seconds * count for seconds, count in known) / requests if requests > 0 else 0.0


def _failed_share(days: Sequence[DailyUsage]) -> float:
    return sum(d.errors for d in days) / max(sum(d.request_count for d in days), 1.0)


def _failed_lately(days: Sequence[DailyUsage]) -> float:
    """What failed of the requests of the latest days; 0 where that was a handful, which tells no share."""
    last = max(d.day for d in days)
    latest = [d for d in days if d.day > last - LATELY]
    return _failed_share(latest) if sum(d.errors for d in latest) >= SEEN_FAILED else 0.0


def _refused_shares(days: Sequence[DailyUsage]) -> RefusedShares:
    """Where less comes, the share is known from as many requests as would see ten 4XX by the share where much comes."""
    if not any(sum(d.refused) for d in days):
        return RefusedShares()
    while_full = sum(d.requests[i] or 0.0 for d in days for i in full_slots(d))
    requests, refused = sum(d.request_count for d in days), sum(d.refused[0] for d in days)
    rest, busy = requests - while_full, refused / max(while_full, 1.0)
    others = sum(d.refused[1] for d in days)
    quiet = others / rest if busy * rest >= SEEN_REFUSED else None
    return RefusedShares((refused + others) / max(requests, 1.0), busy, quiet)


def latency_of(days: Sequence[DailyUsage]) -> Latency | None:
    """Latency of these days as it was, waiting included; None without a datapoint."""
    bins: dict[int, float] = {}
    for usage in days:
        for index, weight in usage.latency:
            bins[index] = bins.get(index, 0.0) + weight
    pairs = [(BIN**index / 1000, weight) for index, weight in sorted(bins.items())]
    total = sum(weight for _, weight in pairs)
    if total <= 0:
        return None
    mean = sum(d.latency_total_s for d in days) / total
    middle = sum(value * weight for value, weight in pairs) / total
    variance = sum(weight * (value - middle) ** 2 for value, weight in pairs) / total
    p50, p95, p99 = (weighted_quantile(pairs, q) for q in (0.5, 0.95, 0.99))
    shares = tuple((value, weight / total) for value, weight in pairs)
    return Latency(mean, p50, p95, p99, min(variance / middle**2, 4.0), shares)


def _service(
    days: Sequence[DailyUsage], latency: Latency | None, runs: InstanceType, policy: Policy, unqueued: float
) -> tuple[float | None, float, float]:
    """GPU seconds per request, GPU share of the latency, mean concurrency per GPU (utilisation law, Little's law)."""
    busy = calls = active = 0.0
    gpus = max(runs.accelerator_count, 1)
    for usage in days:
        for instances, pairs in zip(usage.instances, _known_pairs_by_hour(usage), strict=True):
            works, counts = pairs
            busy += sum(works)
            calls += sum(counts)
            active += SLOT_S * (instances or 1.0) * gpus * (len(counts) - counts.count(0))
    if latency is None or calls < policy.requests_needed or busy <= 0:
        return None, 1.0, 1.0
    gpu_s = busy / calls
    concurrency = max(1.0, calls * latency.mean_s / max(active, 1.0))
    if concurrency > policy.batching_concurrency:
        return gpu_s, 1.0, concurrency
    return gpu_s, min(max(gpu_s * concurrency / (latency.mean_s * unqueued), 0.0), 1.0), concurrency


def _known_pairs_by_hour(usage: DailyUsage) -> Iterable[tuple[Sequence[float], Sequence[float]]]:
    """Work and requests of each hour's slots for which both are known."""
    if None not in usage.busy_s and None not in usage.requests:
        return zip(known_by_hour(usage.busy_s), known_by_hour(usage.requests), strict=True)
    slots = list(zip(usage.busy_s, usage.requests, strict=True))
    hours = [slots[first : first + PER_HOUR] for first in range(0, SLOTS, PER_HOUR)]
    both = ([(work, count) for work, count in hour if work is not None and count is not None] for hour in hours)
    return (([work for work, _ in hour], [count for _, count in hour]) for hour in both)


def known_by_hour(values: Sequence[float | None]) -> Sequence[Sequence[float]]:
    """The known values of each of the 24 hours of a day's slots."""
    hours = [values[first : first + PER_HOUR] for first in range(0, SLOTS, PER_HOUR)]
    return [known_values(hour) for hour in hours] if None in values else cast("list[Sequence[float]]", hours)


def _load(days: Sequence[DailyUsage], policy: Policy) -> Load:
    by_hour: list[list[float]] = [[] for _ in range(24)]
    busy: list[list[float]] = [[] for _ in range(24)]
    for usage in days:
        for hour, (counts, works) in enumerate(
            zip(known_by_hour(usage.requests), known_by_hour(usage.busy_s), strict=True)
        ):
            by_hour[hour] += counts
            busy[hour] += works
    dates = len({d.day for d in days})
    factor = (1 + policy.load_small_sample / math.sqrt(dates)) / SLOT_S
    planned = [quantile(sorted(v), policy.load_percentile) * factor if v else 0.0 for v in by_hour]
    worked = [quantile(sorted(v), policy.load_percentile) * factor for v in busy if v]
    peak = max(planned)
    count = sum(len(v) for v in by_hour)
    known = dates >= policy.days_for_hours and all(by_hour)
    return Load(
        peak_rate=peak,
        mean_rate=sum(sum(v) for v in by_hour) / max(count * SLOT_S, 1),
        hourly_rate=tuple(planned) if known else (peak,) * 24,
        hourly_known=known,
        peak_busy_gpus=max(worked, default=None),
        weekly_growth=weekly_growth(days),
    )


def weekly_growth(days: Sequence[DailyUsage]) -> float:
    """Requests of a day over those of the same weekday a week before; 1 where they do not grow.

    All but one of the last seven days grew by at least so much: one busy day is no growth, nor is a weekend. A day with
    gaps, or on two types, tells nothing. Too young for that, all but one of its days grew on the day before: no week
    goes up so, and seven such steps make the week, though never more than was seen.
    """
    dates = Counter(usage.day for usage in days)
    whole = (d for d in days if dates[d.day] == 1 and d.requests.count(None) <= GAPS * SLOTS)
    calls = {usage.day: usage.request_count for usage in whole}
    pairs = [(calls[day], calls.get(day - SEVEN_DAYS, 0.0)) for day in calls if day > max(calls) - SEVEN_DAYS]
    ratios = sorted(now / before for now, before in pairs if before > 0)
    if len(ratios) >= GREW_ON:
        grew = ratios[1]
    else:
        before = ((day, calls.get(day - ONE_DAY, 0.0)) for day in calls)
        steps = sorted(calls[day] / yesterday for day, yesterday in before if yesterday > 0)
        grew = min(steps[1] ** 7, math.prod(steps)) if len(steps) >= GREW_ON else 1.0
    return grew if grew >= GROWS else 1.0


def _peak(spreads: Sequence[Spread | None], scale: float) -> float | None:
    return max((s.peak * scale for s in spreads if s), default=None)


def _p99(spreads: Sequence[Spread | None], scale: float) -> float | None:
    return max((s.p99 * scale for s in spreads if s), default=None)


def gpu_mean(days: Sequence[DailyUsage], runs: InstanceType) -> float | None:
    """Mean utilisation per GPU over the slots with datapoints."""
    work = room = 0.0
    for usage in days:
        for count, known in zip(usage.instances, known_by_hour(usage.busy_s), strict=True):
            if count:
                work += sum(known)
                room += SLOT_S * count * max(runs.accelerator_count, 1) * len(known)
    return work / room if room else None


def _threads(
    days: Sequence[DailyUsage], latency: Latency | None, gpu_s: float | None, runs: InstanceType, unqueued: float
) -> float | None:
    """Bound of the vCPUs that the host's part of a request keeps busy: its vCPU seconds over its own seconds.

    The vCPU seconds are the slope of CPU against GPU utilisation over the slots (service demand by regression), plus
    two standard errors: what the machine does without requests is the level of that line. Where the line cannot be
    drawn, CPU above its quiet level, and half as much on top.
    """
    own = latency.mean_s * unqueued - gpu_s if latency is not None and gpu_s is not None else 0.0
    if own <= 0:
        return None
    slope = _slope([d.host for d in days if d.host is not None])
    if slope is not None and gpu_s is not None:
        return THREADS_MARGIN * slope * gpu_s / own
    known = [d for d in days if d.cpu and d.cpu_mean is not None]
    work = calls = 0.0
    for usage in known:
        quiet = usage.cpu.p5 * runs.vcpu if usage.cpu else 0.0
        mean = usage.cpu_mean or 0.0
        counts = [c for c in usage.instances if c]
        work += (mean - (quiet if quiet < 0.5 * mean else 0.0)) * (sum(counts) / len(counts) if counts else 1.0)
        calls += usage.request_count / 86400
    return 1.5 * work / (calls * own) if calls > 0 else None


def _slope(fits: Sequence[Fit]) -> float | None:
    """vCPU seconds of the host for a GPU second, two standard errors up; None where it cannot be told to a fifth."""
    n = sum(f.n for f in fits)
    if n < LINE_SLOTS:
        return None
    x, y = sum(f.x for f in fits), sum(f.y for f in fits)
    xx = sum(f.xx for f in fits) - x * x / n
    xy = sum(f.xy for f in fits) - x * y / n
    yy = sum(f.yy for f in fits) - y * y / n
    if xx <= 0 or xy <= 0:
        return None
    slope = xy / xx
    error = math.sqrt(max(yy - slope * xy, 0.0) / (n - 2) / xx)
    return min(slope + 2 * error, y / x) if 2 * error <= 0.2 * slope else None


def _gpus_used(days: Sequence[DailyUsage], runs: InstanceType) -> tuple[int | None, bool]:
    """GPUs of an instance that worked, None for all or unknown, and whether they were seen one by one on every day.

    On other days, and where none worked, it is how many can have: neither utilisation nor memory ever needed more.
    """
    gpus, known = runs.accelerator_count, [d for d in days if d.gpu or d.gpu_memory]
    seen = _working_gpus([d.each_gpu for d in known if d.each_gpu is not None])
    together = [d for d in known if d.each_gpu is None or not seen]
    busy = max((d.gpu.peak for d in known if d.gpu), default=None)
    full = max((d.gpu_memory.peak for d in together if d.gpu_memory), default=None)
    if gpus < 2 or busy is None or (together and full is None):
        return None, False
    used = max(math.ceil(busy * gpus - 0.02), math.ceil((full or 0.0) * gpus - 0.02), seen, 1)
    return used if used < gpus else None, not together


def _working_gpus(days: Sequence[EachGpu]) -> int:
    """GPUs that were busy for 1 % at some time; where none was so busy as to tell, those within 3x of the busiest."""
    top = max((peak for day in days for peak in day.peaks), default=0.0)
    least = min(IDLE_GPU, top / GPU_SKEW)
    return max((sum(peak >= least for peak in day.peaks) for day in days), default=0) if top > 0 else 0


def _gpu_skew(days: Sequence[DailyUsage]) -> tuple[float, float] | None:
    """Mean utilisation of the busiest and of the least busy GPU over the days on which they were seen one by one."""
    means = [d.each_gpu.means for d in days if d.each_gpu is not None]
    if not means:
        return None
    return sum(each[0] for each in means) / len(means), sum(each[-1] for each in means) / len(means)


def _expected_slots(days: Sequence[DailyUsage]) -> int:
    """Slots between the first and the last datapoint: before the configuration began nothing was expected.

    Nothing is expected of slots in which office hours had it stopped.
    """
    first = next((i for i, v in enumerate(days[0].busy_s) if v is not None), 0)
    last = next((i for i, v in enumerate(reversed(days[-1].busy_s)) if v is not None), 0)
    stopped = _stopped_slots(days)
    left_out = [s for s in stopped[days[0].day] if s < first] + [s for s in stopped[days[-1].day] if s >= SLOTS - last]
    away = _stopped_count(days) - len(left_out)
    return max(len(stopped) * SLOTS - first - last - away, 1)


def _stopped_count(days: Sequence[DailyUsage]) -> int:
    return sum(map(len, _stopped_slots(days).values()))


def _stopped_slots(days: Sequence[DailyUsage]) -> dict[date, set[int]]:
    """Slots of each day in which office hours had it stopped; a day with two types has two digests."""
    found: dict[date, set[int]] = {}
    for usage in days:
        found.setdefault(usage.day, set()).update(usage.stopped)
    return found


def has_uncounted(usage: DailyUsage) -> bool:
    """Whether the day has slots with utilisation and an unknown number of requests."""
    if None not in usage.requests:
        return False
    return any(calls is None and work is not None for calls, work in zip(usage.requests, usage.busy_s, strict=True))


def unseen_hours(days: Sequence[DailyUsage], until: datetime, stopped: Sequence[StoppedTime]) -> float:
    """Hours before `until` without a GPU datapoint, those in which office hours had it stopped apart; 0 at least."""
    last = days[-1]
    seen = max((slot for slot, work in enumerate(last.busy_s) if work is not None), default=-1)
    end = datetime(last.day.year, last.day.month, last.day.day, tzinfo=UTC) + timedelta(seconds=SLOT_S * (seen + 1))
    return max((until - end) / timedelta(hours=1) - stopped_hours(stopped, end, until), 0.0)


def unseen_instances(days: Sequence[DailyUsage], runs: int) -> float:
    """Instances of `runs` that published on an earlier day and on none of the last two; 0 at least.

    Only what was seen before is missed: what always published less has another rhythm, or was made larger since.
    """
    before = [usage.publishing for usage in days[: -LATELY.days] if usage.publishing is not None]
    lately = [usage.publishing for usage in days[-LATELY.days :] if usage.publishing is not None]
    expected = min(max(before, default=0.0), float(runs))
    return max(expected - max(lately), 0.0) if len(lately) == LATELY.days else 0.0


def _silent_days(days: Sequence[DailyUsage], runs: InstanceType) -> int:
    """Latest days without a request, each with utilisation: of the host on chips of which CloudWatch shows nothing."""
    silent = 0
    for usage in reversed(days):
        seen = usage.valid_slots > 0 or (not runs.has_gpu and usage.cpu is not None)
        if usage.request_count > 0 or not seen or has_uncounted(usage):
            break
        silent += 1
    return silent
