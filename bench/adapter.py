"""What the referee shows, as the engine's own inputs: prices, digests of days, past changes and tests.

What it passes in is typed by the Protocols of `bench.views`.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from bench.views import Day, Notice, Segment, Trial, Type, Values, View
from rightsizer import catalog
from rightsizer.autoscaling.schedules import early_hours
from rightsizer.aws.prices import OrderedPrices, PriceList, Snapshot
from rightsizer.catalog import catalogue as compiled
from rightsizer.changes.baseline import HABIT_DAYS, LATENCY, PERIOD_S, REQUESTS, baseline, habit_start, slowness_before
from rightsizer.changes.measurement import ENOUGH
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Option
from rightsizer.domain.price import Commitment, PriceTable
from rightsizer.domain.usage import SLOTS, DailyUsage, MetricStatistic, MetricWindow, Series
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.latency import ShadowRun, shadow_ratios
from rightsizer.recommender.slowdown import gpu_ratios

AGE = MetricStatistic("ApproximateAgeOfOldestRequest", "Maximum")
DAY_0 = datetime(2026, 9, 1, tzinfo=UTC)
SHARES = {"p50": 0.5, "p90": 0.4, "p95": 0.05, "p99": 0.05}
"""Of the requests of a minute those that stand for the percentile."""


@dataclass(frozen=True, slots=True)
class _Segment:
    start: int
    end: int
    instance_type: str


@dataclass(slots=True)
class Memory:
    """What the adapter keeps of one endpoint between days: digests and where its configuration began."""

    digests: list[DailyUsage] = field(default_factory=list)
    folded: int = 0
    version: str = ""
    since: int = 0
    """Day on which the model version began."""
    changes: list[PastChange] = field(default_factory=list)
    notices: int = 0
    trials: int = 0
    now: tuple[str, tuple[int, ...]] = ("", ())
    routing: str = ""
    """Routing yesterday."""
    framework: str = ""
    option: Option | None = None
    """The one that was carried out last."""
    approver: str = ""
    """Who approves the changes, as `Decision.by`; empty where nobody is asked."""


def facts(types: Iterable[Type]) -> tuple[Catalogue, PriceTable]:
    """The product's own figures and prices of the types that the referee offers, of which only names are taken."""
    names = {t.name for t in types}
    known = compiled(catalog.instances(), catalog.accelerators())
    catalogue = Catalogue({t.name: t for t in known if t.name in names})

    def clock() -> datetime:
        return datetime.min.replace(tzinfo=UTC)

    committed = Commitment(Decimal(0), known=True)
    book = OrderedPrices([PriceList(None, clock), Snapshot()], clock, lambda: committed)
    return catalogue, book.table("us-east-1", names)


def remember(memory: Memory, view: View, catalogue: Catalogue) -> None:
    """Fold the new days and turn notices and trials into past changes."""
    version = dict(view.tags).get("model-version", "")
    if memory.version and version != memory.version:
        memory.since = view.days[-1].day
    memory.version = version
    for day in view.days[memory.folded :]:
        memory.digests += _digests(view, day, catalogue)
    memory.folded = len(view.days)
    if not memory.now[0]:
        memory.now = (view.days[0].segments[0].instance_type, view.instance_counts)
    for notice in view.notices[memory.notices :]:
        _learn(memory, notice)
    memory.notices = len(view.notices)
    for trial in view.trials[memory.trials :]:
        memory.changes.append(past_of_trial(trial, memory))
    memory.trials = len(view.trials)
    memory.now = (view.instance_type, view.instance_counts)
    memory.routing = view.routing
    memory.framework = framework(view)


def outcomes(memory: Memory) -> Iterable[PastChange]:
    """What other endpoints learn from: measured slowdowns, of tests and of changes as their days showed them."""
    for past in memory.changes:
        if past.realised_slowdown is not None:
            yield past
        elif past.from_type != past.to_type and past.ended is PastEnd.PROVEN:
            base = [d for d in memory.digests if d.instance_type == past.from_type]
            seen = gpu_ratios(memory.digests, base, ENOUGH).get(past.to_type)
            if seen is not None:
                yield replace(past, realised_slowdown=seen)


def _learn(memory: Memory, notice: Notice) -> None:
    """A notice of the referee as a past change."""
    if notice.kind not in ("deployed", "rolled-back", "update-failed"):
        return
    at = DAY_0 + timedelta(days=notice.day)
    if notice.kind == "rolled-back" and memory.changes and memory.changes[-1].at == at:
        memory.changes.pop()
    failure = {"rolled-back": "alarm", "update-failed": "health-check"}.get(notice.kind, "")
    if "memory" in notice.text:
        failure = "memory"
    counts = tuple(notice.instance_counts)
    done = memory.option
    promise = done.promise if done is not None else None
    memory.changes.append(
        PastChange(
            at,
            memory.now[0],
            notice.instance_type,
            max(memory.now[1], default=1),
            max(counts, default=1),
            {"deployed": PastEnd.PROVEN, "rolled-back": PastEnd.ROLLED_BACK}.get(notice.kind, PastEnd.UPDATE_FAILED),
            failure=failure,
            mean_instances=(sum(counts) + early_hours(counts)) / 24 if counts else None,
            from_routing=memory.routing,
            framework=memory.framework,
            demand=promise.peak_busy_gpus if promise else None,
            promised_slowdown=promise.slowdown if promise else None,
            restores=done is not None and done.restores,
            grows=done is not None and done.grows,
            approved_by=memory.approver,
            approved_at=at if memory.approver else None,
            to_config=config_name(memory.version),
        )
    )


def config_name(version: str) -> str:
    """The configuration, as far as a view tells it: its owner deploys another one with each model version."""
    return f"model-{version}"


def past_of_trial(trial: Trial, memory: Memory) -> PastChange:
    """The result of a shadow test as a past change: ratios against production on the same requests."""
    base = [d for d in memory.digests if d.instance_type == trial.production_type]
    alone = max(memory.now[1], default=1) == 1
    work, calls = _during(trial, memory) if alone else (0.0, 0.0)
    alike = calls > 0  # production served exactly the requests that the shadow got
    if not alike:
        work, calls = _busy(base, range(SLOTS))
    found = latency_of(base)
    gpu, latency = shadow_ratios(
        ShadowRun(
            trial.requests,
            trial.hours,
            _seconds(trial.latency_mean_ms),
            _seconds(trial.production_latency_mean_ms),
            trial.gpu_busy_s_per_request,
            work / calls if calls else None,
            found.squared_variation if found else 1.0,
            queued=memory.routing != LEAST or alone,
            alike=alike,
        )
    )
    return PastChange(
        DAY_0 + timedelta(days=trial.day),
        trial.production_type,
        trial.instance_type,
        1,
        1,
        PastEnd.TESTED,
        failure="" if trial.fits else "memory",
        realised_slowdown=gpu,
        latency_ratio=latency,
        memory_gib=trial.gpu_memory_max_gib,
        framework=memory.framework,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return milliseconds / 1000 if milliseconds else None


def _during(trial: Trial, memory: Memory) -> tuple[float, float]:
    """GPU seconds and requests of production in the hours of the test: around yesterday's busiest hour."""
    today = DAY_0.date() + timedelta(days=trial.day)
    eve = [d for d in memory.digests if d.day == today - timedelta(days=1)]
    per_hour = [sum(v or 0.0 for d in eve for v in d.requests[h * 12 : h * 12 + 12]) for h in range(24)]
    peak = max(range(24), key=lambda h: per_hour[h]) if any(per_hour) else 12
    first = min(max(12 * (peak + 0.5 - trial.hours / 2), 0), SLOTS - 12 * trial.hours)
    same = [d for d in memory.digests if d.day == today and d.instance_type == trial.production_type]
    return _busy(same, range(int(first), min(int(first + 12 * trial.hours), SLOTS)))


def _busy(days: Iterable[DailyUsage], slots: Iterable[int]) -> tuple[float, float]:
    """GPU seconds and requests of these slots, where both are known."""
    pairs = [(d.busy_s[i], d.requests[i]) for d in days for i in slots]
    known = [(w, n) for w, n in pairs if w is not None and n is not None]
    return sum(w for w, _ in known), sum(n for _, n in known)


def _digests(view: View, day: Day, catalogue: Catalogue) -> list[DailyUsage]:
    """Digests of one day, one for each type that ran."""
    start = DAY_0 + timedelta(days=day.day)
    counts = Series(start, 60, array("d", [c for c in day.instance_count_by_hour for _ in range(60)]))
    out: list[DailyUsage] = []
    for segment in _merged(day.segments):
        hardware = catalogue.find(segment.instance_type)
        if hardware is None:
            continue
        series: dict[MetricStatistic, Series] = {}
        for (metric, statistic, period), values in day.series:
            if period == 60:
                kept = array("d", values.tobytes())
                kept[: segment.start] = array("d", [math.nan] * segment.start)
                kept[segment.end :] = array("d", [math.nan] * (1440 - segment.end))
                series[MetricStatistic(metric, statistic)] = Series(start, 60, kept)
        if view.hosting == "async":
            series[AGE] = _age_of_oldest(series, start)
        window = MetricWindow(view.endpoint_name, view.variant_name, start, start + timedelta(days=1), 60, series)
        out += daily_usage(window, VariantSetup(hardware, max(view.instance_counts), counts=counts))
    return out


def is_slow_by_habit(view: View) -> bool:
    """Whether the fleet of today would ring the latency alarm of a change on as many days as the product asks for.

    The alarm is at the declared p95, else at twice the usual one; there it is set at twice those half hours. The
    referee's guard knows no threshold: it is off there.
    """
    end = DAY_0 + timedelta(days=view.days[-1].day + 1)
    start = habit_start(end, end - timedelta(days=view.days_since_last_change + 1))
    days = [day for day in view.days if DAY_0 + timedelta(days=day.day) >= start]
    usual = baseline([_of_five_minutes(view, days[-HABIT_DAYS:])])
    declared_s = view.slo_p95_ms / 1000 if view.slo_p95_ms is not None else None
    return bool(slowness_before([_of_five_minutes(view, days)], usual, declared_s))


def _of_five_minutes(view: View, days: Sequence[Day]) -> MetricWindow:
    """Requests and p95 of these days, as the product reads them for a change."""
    calls = array("d", [value for day in days for value in _five_minutes(day, lambda rows: sum(n for n, _ in rows))])
    slow = array("d", [value for day in days for value in _five_minutes(day, _p95_us)])
    start = DAY_0 + timedelta(days=days[0].day)
    series = {REQUESTS: Series(start, PERIOD_S, calls), LATENCY: Series(start, PERIOD_S, slow)}
    return MetricWindow(
        view.endpoint_name, view.variant_name, start, start + timedelta(days=len(days)), PERIOD_S, series
    )


def _five_minutes(day: Day, of: Callable[[list[tuple[float, tuple[float, ...]]]], float]) -> Iterable[float]:
    """A figure of each five minutes from (requests, p50, p90, p95 and p99 in microseconds) of their minutes."""
    known = {name: array("d", values.tobytes()) for name, values in _minutes_of(day).items()}
    empty = array("d", [math.nan] * 1440)
    calls = known.get("Sum", empty)
    parts = [known.get(name, empty) for name in SHARES]
    for first in range(0, 1440, PERIOD_S // 60):
        minutes = range(first, first + PERIOD_S // 60)
        yield of([(calls[i], tuple(part[i] for part in parts)) for i in minutes if calls[i] > 0])


def _minutes_of(day: Day) -> dict[str, Values]:
    """The series of one minute that are needed, by their statistic."""
    wanted = {("Invocations", "Sum"), *(("ModelLatency", name) for name in SHARES)}
    return {key[1]: values for key, values in day.series if key[2] == 60 and (key[0], key[1]) in wanted}


def _p95_us(rows: list[tuple[float, tuple[float, ...]]]) -> float:
    """The p95 of five minutes from the percentiles of its minutes, each of which stands for its share of requests."""
    parts = [
        (value, n * share)
        for n, values in rows
        for value, share in zip(values, SHARES.values(), strict=True)
        if value == value
    ]
    left = 0.05 * sum(weight for _, weight in parts)
    for value, weight in sorted(parts, reverse=True):
        left -= weight
        if left < 0:
            return value
    return math.nan


def _age_of_oldest(series: Mapping[MetricStatistic, Series], start: datetime) -> Series:
    """What AWS would publish of a queue that the referee has and does not show: its requests wait, and none expires.

    Nobody waited longer than the slowest requests of the minute took, whose latency contains the waiting.
    """
    slowest = series.get(MetricStatistic("ModelLatency", "p99"))
    values = slowest.values if slowest is not None else array("d", [math.nan] * 1440)
    return Series(start, 60, array("d", [value / 1e6 if value == value else 0.0 for value in values]))


def _merged(segments: Sequence[Segment]) -> list[_Segment]:
    """Neighbouring stretches on the same type as one."""
    out: list[_Segment] = []
    for s in segments:
        if out and out[-1].instance_type == s.instance_type:
            out[-1] = replace(out[-1], end=s.end)
        else:
            out.append(_Segment(s.start, s.end, s.instance_type))
    return out


def framework(view: View) -> str:
    return view.framework if view.framework != "unknown" else ""
