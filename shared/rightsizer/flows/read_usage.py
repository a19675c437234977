"""Read usage of endpoints and inference components: missing days from CloudWatch, others from the bucket."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.domain.component import (
    COMPONENT_SIGNALS,
    PER_COPY,
    Component,
    ComponentSight,
    ReadComponents,
    UnreadComponent,
)
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, ScalableTarget
from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.usage import (
    ASYNC_SIGNALS,
    DAY_S,
    OF_A_DAY,
    OVERHEAD,
    SIGNALS,
    SLOT_S,
    EndpointUsage,
    KeptUsage,
    MetricStatistic,
    MetricWindow,
    NoMetrics,
    VariantUsage,
)
from rightsizer.errors import ReadError, RightsizerError
from rightsizer.ports.evaluation import ComponentReader, DailyUsageStore, MetricReader, MetricRequest
from rightsizer.recommender.component_finding import component_usage
from rightsizer.recommender.recommend import add_daily_usage, configuration_start
from rightsizer.recommender.usage_days import DAYS, ReadPlan, mark_stopped, page_of, plan_reading, usage_to_keep

COUNTED = MetricStatistic("CPUUtilization", "SampleCount")
"""Tells how many instances ran, where the count moves; of a fleet of fixed size, day by day, how many published."""


@dataclass(frozen=True, slots=True)
class UsageCache:
    """Where complete days are kept; the size of the fleet and the account's look-back in days name the pages."""

    store: DailyUsageStore
    fleet: int
    days: int = DAYS


type OfVariant = VariantUsage | NoMetrics | Exception
"""Usage of one variant; an exception where its data could not be folded."""
type Usage = OfVariant | EndpointUsage
"""Usage of an endpoint: of its variant, or of each where there are several."""


@dataclass(frozen=True, slots=True)
class UsageReader:
    """Reads the usage of endpoints, with a memory or without."""

    metrics: MetricReader
    catalogue: Catalogue
    history: Callable[[str], History]
    policy: Policy
    memory: UsageCache | None = None

    def read(self, endpoints: Sequence[Endpoint], now: datetime) -> dict[str, Usage]:
        """The usage of each endpoint that has an accelerator; variants read over the same time share their requests."""
        kept = self._load_kept(endpoints)
        found: dict[tuple[str, str], OfVariant] = {}
        wanted: dict[tuple[datetime, datetime], list[tuple[Endpoint, ReadPlan]]] = {}
        for view in (view for endpoint in endpoints for view in endpoint.views):
            if self._hardware(view) is None:
                continue
            try:
                past = self.history(view.ref.name)
            except RightsizerError as error:
                found[_key(view)] = error
                continue
            done = plan_reading(view, kept.get(_key(view)), past, self.policy.lookback_days, now)
            wanted.setdefault((done.start, done.end), []).append((view, done))
        fresh: list[KeptUsage] = []
        for (start, end), group in wanted.items():
            for (view, done), window in zip(group, self._windows(group, start, end), strict=True):
                usage = self._add_window(view, done, window)
                found[_key(view)] = self._mark_stopped(view, usage)
                if isinstance(usage, VariantUsage) and not _is_incomplete(window) and not _is_passing_gap(window):
                    fresh.append(usage_to_keep(view, done, usage.days, now))
        self._remember(fresh)
        joined = ((endpoint.ref.name, _join(endpoint, found)) for endpoint in endpoints)
        return {name: usage for name, usage in joined if usage is not None}

    def _windows(
        self, group: Sequence[tuple[Endpoint, ReadPlan]], start: datetime, end: datetime
    ) -> Iterator[MetricWindow | NoMetrics]:
        """What CloudWatch knows of each; nothing is asked where every complete day is known already."""
        requests = [self._request(endpoint, done) for endpoint, done in group]
        if start < end:
            return self.metrics.read(requests, start, end, SLOT_S)
        silent = Reason(Code.NO_DATAPOINTS, "no day was completed since it was read last")
        return (NoMetrics(request.endpoint, request.variant, silent) for request in requests)

    def _add_window(self, endpoint: Endpoint, done: ReadPlan, window: MetricWindow | NoMetrics) -> OfVariant:
        hardware = self._hardware(endpoint)
        assert hardware is not None
        if isinstance(window, MetricWindow) and window.notes:
            # A window that was read in part is no evidence: calls that were not read would look like none (law 1).
            return NoMetrics(window.endpoint, window.variant, window.notes[0])
        if isinstance(window, NoMetrics) and not done.known:
            return window
        windows = [window] if isinstance(window, MetricWindow) else []
        if isinstance(window, NoMetrics) and _is_incomplete(window):
            return window
        try:
            past = self.history(endpoint.ref.name)
            return add_daily_usage(endpoint, windows, hardware, past, self.policy, done.known)
        except (RightsizerError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            return error

    def _mark_stopped(self, view: Endpoint, usage: OfVariant) -> OfVariant:
        if not isinstance(usage, VariantUsage):
            return usage
        return replace(usage, days=mark_stopped(usage.days, self.history(view.ref.name).stopped))

    def _request(self, endpoint: Endpoint, done: ReadPlan) -> MetricRequest:
        """What to read. Single GPUs tell more only of several, the KV cache only of one and beside known weights."""
        moves = bool(endpoint.scaling) or EndpointKind.REAL_TIME not in endpoint.kinds
        whole = self._has_whole_days(endpoint, done)
        counted = moves or (whole and endpoint.variants[0].current_count > 1)
        promised = endpoint.objective.p95_s is not None
        signals = [s for s in SIGNALS if (s != COUNTED or counted) and (s != OVERHEAD or promised)]
        more = ASYNC_SIGNALS if EndpointKind.ASYNC in endpoint.kinds else ()
        hardware = self._hardware(endpoint)
        gpus = hardware.accelerator_count if hardware else 0
        each, cache = endpoint.enhanced_metrics, endpoint.may_show_kv_cache and endpoint.model_data_bytes is not None
        names = endpoint.ref.name, endpoint.variants[0].name
        by_day = (OF_A_DAY if moves else OF_A_DAY | {COUNTED}) if whole else frozenset[MetricStatistic]()
        return MetricRequest(*names, (*signals, *more), each and gpus > 1, cache and gpus == 1, by_day=by_day)

    def _has_whole_days(self, endpoint: Endpoint, done: ReadPlan) -> bool:
        """Whether every day of the window counts from midnight to midnight: none is cut by a change or still runs."""
        since = configuration_start(endpoint, self.history(endpoint.ref.name), self.policy)
        midnight = done.start.timestamp() % DAY_S == done.end.timestamp() % DAY_S == 0
        return midnight and (since is None or since <= done.start)

    def _hardware(self, endpoint: Endpoint) -> InstanceType | None:
        hardware = self.catalogue.find(endpoint.variants[0].instance_type) if endpoint.variants else None
        return hardware if hardware is not None and hardware.accelerator is not None else None

    def _load_kept(self, endpoints: Sequence[Endpoint]) -> Mapping[tuple[str, str], KeptUsage]:
        if self.memory is None:
            return {}
        keys = {(e.ref.name, variant.name) for e in endpoints for variant in e.variants}
        pages = self._pages({name for name, _ in keys})
        found = (((usage.endpoint, usage.variant), usage) for page in pages for usage in self.memory.store.load(page))
        return {key: usage for key, usage in found if key in keys}

    def _pages(self, names: Collection[str]) -> Iterator[str]:
        assert self.memory is not None
        yield from sorted({page_of(name, self.memory.fleet, self.memory.days) for name in names})

    def _remember(self, fresh: Sequence[KeptUsage]) -> None:
        if self.memory is None:
            return
        pages: dict[str, list[KeptUsage]] = {}
        for usage in fresh:
            pages.setdefault(page_of(usage.endpoint, self.memory.fleet, self.memory.days), []).append(usage)
        for page, kept in sorted(pages.items()):
            self.memory.store.save(page, kept)


def with_stopped_times(history: Callable[[str], History], hours: Mapping[str, HoursRecord]) -> Callable[[str], History]:
    """The history of endpoints that also tells when their office hours had them stopped."""

    def read(name: str) -> History:
        found = history(name)
        return replace(found, stopped=hours[name].stopped_times) if name in hours else found

    return read if hours else history


def _key(view: Endpoint) -> tuple[str, str]:
    """Endpoint and first variant."""
    return view.ref.name, view.variants[0].name if view.variants else ""


def _join(endpoint: Endpoint, found: Mapping[tuple[str, str], OfVariant]) -> Usage | None:
    """What was read of the endpoint's variants; the error where one of them could not be folded."""
    mine = [found[key] for view in endpoint.views if (key := _key(view)) in found]
    if not endpoint.other_variants or not mine:
        return next(iter(mine), None)
    known: list[VariantUsage | NoMetrics] = []
    for usage in mine:
        if isinstance(usage, Exception):
            return usage
        known.append(usage)
    return EndpointUsage(endpoint.ref.name, tuple(known))


def _is_incomplete(window: MetricWindow | NoMetrics) -> bool:
    """Whether something could not be read; that nothing was published is an answer."""
    if isinstance(window, NoMetrics):
        return window.reason.code is not Code.NO_DATAPOINTS
    return bool(window.notes)


def _is_passing_gap(window: MetricWindow | NoMetrics) -> bool:
    """Whether the KV cache was unread for what may pass: its days are read again, since a day without it undoes all."""
    unread = window.kv_cache_unread if isinstance(window, MetricWindow) else None
    return unread is not None and unread.code in (Code.THROTTLED, Code.READ_FAILED)


def read_components(
    reader: ComponentReader | None, metrics: MetricReader, endpoint: Endpoint, policy: Policy, now: datetime
) -> ReadComponents | None:
    """Every component of the endpoint with its usage over the look-back, or why they could not be listed.

    None where it has none or nothing reads them.
    """
    if reader is None or EndpointKind.INFERENCE_COMPONENTS not in endpoint.kinds:
        return None
    ref = endpoint.ref
    try:
        described = reader.describe(ref.name)
    except ReadError as error:
        return reason_of(error)
    known = [one for one in described if not isinstance(one, UnreadComponent)]
    lost = [one for one in described if isinstance(one, UnreadComponent)]
    return (*_with_usage(metrics, ref, known, policy, now), *lost)


def _with_usage(
    metrics: MetricReader,
    ref: EndpointRef,
    known: Sequence[tuple[ComponentSight, ScalableTarget | Reason | None]],
    policy: Policy,
    now: datetime,
) -> list[Component]:
    """The components with what CloudWatch knows of each, in one reading."""
    if not known:
        return []
    start = now - timedelta(days=policy.lookback_days)
    moved = (*COMPONENT_SIGNALS, PER_COPY)
    requests = [
        MetricRequest(ref.name, sight.name, COMPONENT_SIGNALS if scaling is None else moved, of_component=True)
        for sight, scaling in known
    ]
    windows = metrics.read(requests, start, now, SLOT_S)
    return [
        Component(sight, scaling, component_usage(sight, isinstance(scaling, ScalableTarget), window, policy))
        for (sight, scaling), window in zip(known, windows, strict=True)
    ]
