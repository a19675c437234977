"""The engine as a policy of the referee: views in, the engine's own inputs, its recommendation, an action out.

No second engine: every figure and every decision comes from `recommender.recommend.judge_digests`. The referee is
imported only when an action is made; what it passes in is typed by the Protocols of `bench.views`.
"""

import importlib
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from bench.views import Account, Actions, Day, Notice, Segment, Trial, Type, View
from rightsizer import catalog
from rightsizer.aws.prices import OrderedPrices, PriceList, Snapshot
from rightsizer.catalog import catalogue as compiled
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import (
    LEAST,
    Endpoint,
    EndpointKind,
    EndpointRef,
    Mode,
    Objective,
    ScalableTarget,
    Variant,
)
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment, PriceTable
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.slowdown import Promise
from rightsizer.domain.usage import SLOTS, DayDigest, MetricWindow, Series, Signal, UsageDigest
from rightsizer.recommender.context import Given
from rightsizer.recommender.daily_usage import Setup, fold
from rightsizer.recommender.demand import latency_of
from rightsizer.recommender.past_changes import gpu_ratios
from rightsizer.recommender.queueing import ShadowRun, ratios
from rightsizer.recommender.recommend import judge_digests

DAY_0 = datetime(2026, 9, 1, tzinfo=UTC)
LEAST_REQUESTS = 200  # on either type, from which a change tells a slowdown, as in the product

IN_PLACE = frozenset(OptionKind) - {OptionKind.DELETE, OptionKind.OTHER_ARCHITECTURE, OptionKind.PACKING}
EAGER = replace(
    Policy(),
    by_itself=IN_PLACE,
    several_at_once=True,
    ask_without_objective=False,
    act_without_gpu_metrics=True,
    valid_share=0.0,
    requests_needed=20,
    days_for_hours=1,
    nap_days=5,
    idle_days=2,  # as long as the referee looks for what an endpoint is used to (decision 32)
    stopped_hours=9.0,
    minimum_saving_share=0.02,
    minimum_saving_usd=Decimal(5),
    confidence_propose=0.0,
    confidence_apply=0.0,
    confidence_smaller=0.0,
    cooldown_hours=0.0,
    cooldown_type_hours=0.0,
    tests_per_month=6,
    test_value=1.0,
    test_chance=0.2,
    test_requests=8,
    test_hours_most=2.0,
    memory_room_smaller=0.3,
    untested_chance=0.9,
    untested_requests=8,
)
"""Acts on little evidence from the first day. New versions come onto whatever runs: a smaller card keeps room."""
PRODUCTION = replace(
    Policy(), by_itself=IN_PLACE, several_at_once=True, ask_without_objective=False, act_without_gpu_metrics=True
)
"""The product's own gates, in an account that lets every dimension be applied and approves what is proposed."""


@dataclass(frozen=True, slots=True)
class _Segment:
    start: int
    end: int
    instance_type: str


@dataclass(slots=True)
class _Memory:
    """What the adapter keeps of one endpoint between days: digests and where its configuration began."""

    digests: list[DayDigest] = field(default_factory=list)
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
    promise: Promise | None = None
    """Of the change that was made last."""


class RightsizerPolicy:
    """The engine in eager mode."""

    name = "rightsizer"
    policy = EAGER

    def __init__(self) -> None:
        self._memory: dict[str, _Memory] = {}
        self._catalogue: Catalogue | None = None
        self._prices: PriceTable | None = None
        self.log: list[tuple[int, Recommendation]] = []

    def decide(self, account: Account) -> dict[str, object]:
        """One action per endpoint that should change."""
        actions: Actions = importlib.import_module("referee.actions")
        if self._catalogue is None:
            self._catalogue, self._prices = _facts(account.catalogue)
        assert self._prices is not None
        for view in account.endpoints:
            _remember(self._memory.setdefault(view.endpoint_name, _Memory()), view, self._catalogue)
        known = {name: tuple(_outcomes(memory)) for name, memory in self._memory.items()}
        out: dict[str, object] = {}
        for view in account.endpoints:
            memory = self._memory[view.endpoint_name]
            others = tuple(past for name, some in known.items() if name != view.endpoint_name for past in some)
            found = self._judge(view, memory, others, account.day)
            self.log.append((account.day, found))
            action = _action(actions, found, view)
            if action is not None:
                out[view.endpoint_name] = action
                memory.promise = found.chosen.promise if found.chosen else None
        return out

    def _judge(self, view: View, memory: _Memory, others: tuple[PastChange, ...], day: int) -> Recommendation:
        assert self._catalogue is not None
        assert self._prices is not None
        now = DAY_0 + timedelta(days=day)
        usage = UsageDigest(view.endpoint_name, view.variant_name, tuple(memory.digests))
        tests = sum(1 for c in memory.changes if c.ended is PastEnd.TESTED)
        history = History(endpoint=tuple(memory.changes), account=others, tests_this_month=tests)
        endpoint = _endpoint(view)
        given = Given(self._prices, self._catalogue, {}, history, self.policy, now)
        return judge_digests(endpoint, usage, given, DIMENSIONS)


class ProductionPolicy(RightsizerPolicy):
    """The engine with the product's own gates (run with --days 15 --warmup 7)."""

    name = "rightsizer (production gates)"
    policy = PRODUCTION


class MetricsOnlyPolicy(RightsizerPolicy):
    """The engine without shadow tests."""

    name = "rightsizer (no tests)"
    policy = replace(EAGER, tests=False, untested_chance=0.5)


def _facts(types: Iterable[Type]) -> tuple[Catalogue, PriceTable]:
    """The product's own figures and prices of the types that the referee offers, of which only names are taken."""
    names = {t.name for t in types}
    known = compiled(catalog.instances(), catalog.accelerators())
    catalogue = Catalogue({t.name: t for t in known if t.name in names})

    def clock() -> datetime:
        return datetime.min.replace(tzinfo=UTC)

    committed = Commitment(Decimal(0), 0.0, known=True)
    book = OrderedPrices([PriceList(None, clock), Snapshot()], clock, lambda: committed)
    return catalogue, book.table("us-east-1", names)


def _remember(memory: _Memory, view: View, catalogue: Catalogue) -> None:
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
        memory.changes.append(_tested(trial, memory))
    memory.trials = len(view.trials)
    memory.now = (view.instance_type, view.instance_counts)
    memory.routing = view.routing
    memory.framework = _framework(view)


def _outcomes(memory: _Memory) -> Iterable[PastChange]:
    """What other endpoints learn from: measured slowdowns, of tests and of changes as their days showed them."""
    for past in memory.changes:
        if past.realised_slowdown is not None:
            yield past
        elif past.from_type != past.to_type and past.ended is PastEnd.PROVEN:
            base = [d for d in memory.digests if d.instance_type == past.from_type]
            seen = gpu_ratios(memory.digests, base, LEAST_REQUESTS).get(past.to_type)
            if seen is not None:
                yield replace(past, realised_slowdown=seen)


def _learn(memory: _Memory, notice: Notice) -> None:
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
    memory.changes.append(
        PastChange(
            at,
            memory.now[0],
            notice.instance_type,
            max(memory.now[1], default=1),
            max(counts, default=1),
            {"deployed": PastEnd.PROVEN, "rolled-back": PastEnd.ROLLED_BACK}.get(notice.kind, PastEnd.UPDATE_FAILED),
            failure=failure,
            mean_instances=sum(counts) / 24 if counts else None,
            from_routing=memory.routing,
            framework=memory.framework,
            demand=memory.promise.peak_busy_gpus if memory.promise else None,
            promised_slowdown=memory.promise.slowdown if memory.promise else None,
        )
    )


def _tested(trial: Trial, memory: _Memory) -> PastChange:
    """The result of a shadow test as a past change: ratios against production on the same requests."""
    base = [d for d in memory.digests if d.instance_type == trial.production_type]
    alone = max(memory.now[1], default=1) == 1
    work, calls = _during(trial, memory) if alone else (0.0, 0.0)
    alike = calls > 0  # production served exactly the requests that the shadow got
    if not alike:
        work, calls = _busy(base, range(SLOTS))
    found = latency_of(base)
    gpu, latency = ratios(
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


def _during(trial: Trial, memory: _Memory) -> tuple[float, float]:
    """GPU seconds and requests of production in the hours of the test: around yesterday's busiest hour."""
    today = DAY_0.date() + timedelta(days=trial.day)
    eve = [d for d in memory.digests if d.day == today - timedelta(days=1)]
    per_hour = [sum(v or 0.0 for d in eve for v in d.requests[h * 12 : h * 12 + 12]) for h in range(24)]
    peak = max(range(24), key=lambda h: per_hour[h]) if any(per_hour) else 12
    first = min(max(12 * (peak + 0.5 - trial.hours / 2), 0), SLOTS - 12 * trial.hours)
    same = [d for d in memory.digests if d.day == today and d.instance_type == trial.production_type]
    return _busy(same, range(int(first), min(int(first + 12 * trial.hours), SLOTS)))


def _busy(days: Iterable[DayDigest], slots: Iterable[int]) -> tuple[float, float]:
    """GPU seconds and requests of these slots, where both are known."""
    pairs = [(d.busy_s[i], d.requests[i]) for d in days for i in slots]
    known = [(w, n) for w, n in pairs if w is not None and n is not None]
    return sum(w for w, _ in known), sum(n for _, n in known)


def _digests(view: View, day: Day, catalogue: Catalogue) -> list[DayDigest]:
    """Digests of one day, one for each type that ran."""
    start = DAY_0 + timedelta(days=day.day)
    counts = Series(start, 60, array("d", [c for c in day.instance_count_by_hour for _ in range(60)]))
    out: list[DayDigest] = []
    for segment in _merged(day.segments):
        hardware = catalogue.find(segment.instance_type)
        if hardware is None:
            continue
        series: dict[Signal, Series] = {}
        for (metric, statistic, period), values in day.series:
            if period == 60:
                kept = array("d", values.tobytes())
                kept[: segment.start] = array("d", [math.nan] * segment.start)
                kept[segment.end :] = array("d", [math.nan] * (1440 - segment.end))
                series[Signal(metric, statistic)] = Series(start, 60, kept)
        window = MetricWindow(view.endpoint_name, view.variant_name, start, start + timedelta(days=1), 60, series)
        out += fold(window, Setup(hardware, max(view.instance_counts), counts=counts))
    return out


def _merged(segments: Sequence[Segment]) -> list[_Segment]:
    """Neighbouring stretches on the same type as one."""
    out: list[_Segment] = []
    for s in segments:
        if out and out[-1].instance_type == s.instance_type:
            out[-1] = replace(out[-1], end=s.end)
        else:
            out.append(_Segment(s.start, s.end, s.instance_type))
    return out


def _framework(view: View) -> str:
    return view.framework if view.framework != "unknown" else ""


def _endpoint(view: View) -> Endpoint:
    long_ago = DAY_0 - timedelta(days=60)
    scaling: Sequence[ScalableTarget] = ()
    if view.autoscale_max is not None or len(set(view.instance_counts)) > 1:
        top = max(view.autoscale_max or 0, *view.instance_counts)
        scaling = (ScalableTarget("variant", "count", min(view.instance_counts), top),)
    tags = {"rightsizer:cold-start-ok": "true"} if dict(view.tags).get("cold-start-ok") == "true" else {}
    count = max(view.instance_counts)
    return Endpoint(
        ref=EndpointRef("111122223333", "us-east-1", view.endpoint_name),
        status="InService",
        config_name="now",
        created_at=long_ago,
        modified_at=long_ago,
        kind=EndpointKind.REAL_TIME,
        kinds=(EndpointKind.REAL_TIME,),
        variants=(Variant(view.variant_name, "model", view.instance_type, count, count, 1.0, (), view.routing),),
        tags=tags | {"rightsizer:shadow-ok": "true"},
        mode=Mode.AUTO,
        mode_declared=True,
        objective=Objective(view.slo_p95_ms / 1000 if view.slo_p95_ms is not None else None, min_instances=1),
        owner="referee",
        owned_by="",
        scaling=tuple(scaling),
        framework=_framework(view),
    )


def _action(actions: Actions, found: Recommendation, view: View) -> object | None:
    """The recommendation as an action of the referee; None keeps. A proposal counts as approved."""
    option = found.chosen
    if option is None or found.gate is Gate.SILENT:
        return None
    if found.gate is Gate.TEST:
        return actions.Trial(option.target.instance_type, hours=2.0 if option.test_hours is None else option.test_hours)
    if option.kind is OptionKind.SCALE_TO_ZERO:
        minutes = option.target.idle_minutes or 60
        return None if view.scale_to_zero_minutes == minutes else actions.ScaleToZeroWhenIdle(minutes)
    if option.kind is OptionKind.DELETE:
        return None if view.scale_to_zero_minutes else actions.ScaleToZeroWhenIdle(60)
    if not option.in_place:
        return None  # its owner's work: another endpoint, another image
    if option.risk > 1 and found.gate is Gate.PROPOSE:
        return None
    return _deploy(actions, option.target, view, guard=found.finding is not Finding.UNDER_PROVISIONED)


def _deploy(actions: Actions, target: Target, view: View, guard: bool) -> object:
    """The deployment; what brings room back has no guard, for what was before it is worse."""
    counts = target.hourly_counts or (target.instance_count,) * 24
    top = target.maximum
    if top is None and view.autoscale_max is not None:
        top = max(view.autoscale_max, *counts)
    return actions.Deploy(target.instance_type, counts, autoscale_max=top, routing=target.routing, guard=guard)
