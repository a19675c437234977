"""The engine as a policy of the referee: views in, the engine's own inputs, its recommendation, an action out.

No second engine: every figure and every decision comes from `flows.judge`. The referee is imported only when an action
is made; what it passes in is typed by the Protocols below.
"""

import importlib
import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from rightsizer.flows.judge import judge_digests
from rightsizer.flows.situation import LEAST
from rightsizer.model.digest import SLOTS, DayDigest, UsageDigest
from rightsizer.model.hardware import Accelerator, Catalogue, InstanceType
from rightsizer.model.history import History, PastChange
from rightsizer.model.observation import Endpoint, EndpointKind, EndpointRef, Mode, Objective, ScalableTarget, Variant
from rightsizer.model.option import OptionKind, Target
from rightsizer.model.policy import Policy
from rightsizer.model.price import Commitment, Price, PriceTable
from rightsizer.model.recommendation import Finding, Gate, Recommendation
from rightsizer.model.usage import MetricWindow, Series, Signal
from rightsizer.rules.demand import latency_of
from rightsizer.rules.digest import Setup, fold
from rightsizer.rules.waiting import without_waiting

DAY_0 = datetime(2026, 9, 1, tzinfo=UTC)
USABLE = {"T4": 14.6, "L4": 22.0, "A10G": 22.0, "L40S": 44.0, "H100": 79.0}

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
    idle_days=3,
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
)
"""Acts from the first day: how much evidence the gate asks for is a setting, the engine is the same.

New versions of the model come onto whatever runs there, so a smaller card keeps room for one.
"""
PRODUCTION = replace(
    Policy(), by_itself=IN_PLACE, several_at_once=True, ask_without_objective=False, act_without_gpu_metrics=True
)
"""The product's own gates, in an account that lets every dimension be applied and approves what is proposed."""


class _Type(Protocol):
    name: str
    usd_per_hour: float
    gpu_model: str
    gpu_count: int
    gpu_memory_gib_each: float
    fp16_tflops_each: float
    memory_bandwidth_gbps_each: float
    vcpu: int
    host_memory_gib: float


class _Day(Protocol):
    day: int
    segments: tuple[Any, ...]
    instance_count_by_hour: tuple[float, ...]
    series: tuple[tuple[tuple[str, str, int], Any], ...]


class _View(Protocol):
    endpoint_name: str
    variant_name: str
    instance_type: str
    instance_counts: tuple[int, ...]
    autoscale_max: int | None
    scale_to_zero_minutes: float | None
    routing: str
    slo_p95_ms: float | None
    framework: str
    tags: tuple[tuple[str, str], ...]
    days: tuple[_Day, ...]
    trials: tuple[Any, ...]
    notices: tuple[Any, ...]


class _Account(Protocol):
    day: int
    catalogue: Iterable[_Type]
    endpoints: tuple[_View, ...]


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


class RightsizerPolicy:
    """The engine in eager mode."""

    name = "rightsizer"
    policy = EAGER

    def __init__(self) -> None:
        self._memory: dict[str, _Memory] = {}
        self._catalogue: Catalogue | None = None
        self._prices: PriceTable | None = None
        self.log: list[tuple[int, Recommendation]] = []

    def decide(self, account: _Account) -> dict[str, Any]:
        """One action per endpoint that should change."""
        actions = importlib.import_module("referee.actions")
        if self._catalogue is None:
            self._catalogue, self._prices = _facts(account.catalogue)
        assert self._prices is not None
        out: dict[str, Any] = {}
        for view in account.endpoints:
            memory = self._memory.setdefault(view.endpoint_name, _Memory())
            _remember(memory, view, self._catalogue)
            found = self._judge(view, memory, account.day)
            self.log.append((account.day, found))
            action = _action(actions, found, view)
            if action is not None:
                out[view.endpoint_name] = action
        return out

    def _judge(self, view: _View, memory: _Memory, day: int) -> Recommendation:
        assert self._catalogue is not None
        assert self._prices is not None
        now = DAY_0 + timedelta(days=day)
        usage = UsageDigest(view.endpoint_name, view.variant_name, tuple(memory.digests))
        tests = sum(1 for c in memory.changes if c.ended == "tested")
        history = History(endpoint=tuple(memory.changes), tests_this_month=tests)
        endpoint = _endpoint(view)
        return judge_digests(endpoint, usage, self._prices, self._catalogue, {}, history, self.policy, now)


class ProductionPolicy(RightsizerPolicy):
    """The engine with the product's own gates (run with --days 15 --warmup 7)."""

    name = "rightsizer (production gates)"
    policy = PRODUCTION


class MetricsOnlyPolicy(RightsizerPolicy):
    """The engine without shadow tests."""

    name = "rightsizer (no tests)"
    policy = replace(EAGER, tests=False, untested_chance=0.5)


def _facts(types: Iterable[_Type]) -> tuple[Catalogue, PriceTable]:
    found: dict[str, InstanceType] = {}
    prices: dict[str, Any] = {}
    for t in types:
        listed = t.gpu_memory_gib_each
        chip = Accelerator(
            t.gpu_model,
            "NVIDIA",
            t.fp16_tflops_each,
            t.memory_bandwidth_gbps_each,
            listed,
            min(USABLE.get(t.gpu_model, 0.985 * listed), 0.985 * listed),
            None,
        )
        found[t.name] = InstanceType(t.name, t.vcpu, t.host_memory_gib, "x86_64", chip, t.gpu_count)
        usd = Decimal(str(t.usd_per_hour))
        prices[t.name] = Price(t.name, "us-east-1", usd, "snapshot", "direct-hosting", "2026-11")
    return Catalogue(found), PriceTable("us-east-1", prices, Commitment(Decimal(0), 0.0, known=True))


def _remember(memory: _Memory, view: _View, catalogue: Catalogue) -> None:
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


def _learn(memory: _Memory, notice: Any) -> None:
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
            {"deployed": "proven", "rolled-back": "rolled-back"}.get(notice.kind, "update-failed"),  # type: ignore[arg-type]
            failure=failure,
            mean_instances=sum(counts) / 24 if counts else None,
            from_routing=memory.routing,
        )
    )


def _tested(trial: Any, memory: _Memory) -> PastChange:
    """The result of a shadow test as a past change: ratios against production on the same requests."""
    failure = "" if trial.fits else "memory"
    busy = trial.gpu_busy_s_per_request
    base = [d for d in memory.digests if d.instance_type == trial.production_type]
    alone = max(memory.now[1], default=1) == 1
    work, calls = _during(trial, memory) if alone else (0.0, 0.0)
    alike = calls > 0  # production served exactly the requests that the shadow got
    if not alike:
        work, calls = _busy(base, range(SLOTS))
    latency = None
    if trial.latency_mean_ms and trial.production_latency_mean_ms and trial.requests >= 2:
        found, rate = latency_of(base), trial.requests / (3600 * trial.hours)
        spread = found.squared_variation if found else 1.0
        shadow = without_waiting(trial.latency_mean_ms / 1000, rate, spread)
        queued = memory.routing != LEAST or alone  # a queue of its own before each instance, as before the shadow
        live = without_waiting(trial.production_latency_mean_ms / 1000, rate, spread) if queued else None
        live = live or trial.production_latency_mean_ms / 1000
        latency = shadow / live if shadow else None
    return PastChange(
        DAY_0 + timedelta(days=trial.day),
        trial.production_type,
        trial.instance_type,
        1,
        1,
        "tested",
        failure=failure,
        realised_slowdown=busy / (work / calls)
        if busy and calls and work and trial.requests >= (2 if alike else 20)
        else None,
        latency_ratio=latency,
        memory_gib=trial.gpu_memory_max_gib,
    )


def _during(trial: Any, memory: _Memory) -> tuple[float, float]:
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


def _digests(view: _View, day: _Day, catalogue: Catalogue) -> list[DayDigest]:
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


def _merged(segments: Sequence[Any]) -> list[_Segment]:
    """Neighbouring stretches on the same type as one."""
    out: list[_Segment] = []
    for s in segments:
        if out and out[-1].instance_type == s.instance_type:
            out[-1] = replace(out[-1], end=s.end)
        else:
            out.append(_Segment(s.start, s.end, s.instance_type))
    return out


def _endpoint(view: _View) -> Endpoint:
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
        tags=tags,
        mode=Mode.AUTO,
        mode_declared=True,
        objective=Objective(view.slo_p95_ms / 1000 if view.slo_p95_ms is not None else None, min_instances=1),
        owner="referee",
        owned_by="",
        scaling=tuple(scaling),
        framework=view.framework if view.framework != "unknown" else "",
    )


def _action(actions: Any, found: Recommendation, view: _View) -> Any:
    """The recommendation as an action of the referee; None keeps. A proposal counts as approved."""
    option = found.chosen
    if option is None or found.gate is Gate.SILENT:
        return None
    if found.gate is Gate.TEST:
        return actions.Trial(option.target.instance_type, hours=float(option.facts.get("test hours", "2")))
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


def _deploy(actions: Any, target: Target, view: _View, guard: bool) -> Any:
    """The deployment; what brings room back has no guard, for what was before it is worse."""
    counts = target.hourly_counts or (target.instance_count,) * 24
    top = target.maximum
    if top is None and view.autoscale_max is not None:
        top = max(view.autoscale_max, *counts)
    return actions.Deploy(target.instance_type, counts, autoscale_max=top, routing=target.routing, guard=guard)


def day_of(moment: datetime) -> date:
    """The referee's day as a date, for reading the log."""
    return moment.date()
