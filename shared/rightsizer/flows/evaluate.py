"""Evaluate endpoints: observe, read how they were used, judge. One endpoint's trouble is its own.

`judged` is the whole evaluation and writes nothing; a terminal uses it as it is. `evaluate` is what the evaluation
queue asks for: endpoints by name, each at most once in twenty hours unless it changed, the judgement saved.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.errors import PermissionMissingError, RightsizerError, ThrottledError
from rightsizer.flows.judge import judge
from rightsizer.model.hardware import Catalogue
from rightsizer.model.history import History
from rightsizer.model.observation import Endpoint, EndpointKind, Unobserved
from rightsizer.model.policy import Policy
from rightsizer.model.price import PriceTable
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Recommendation
from rightsizer.model.usage import ASYNC_SIGNALS, SIGNALS, MetricWindow, NoMetrics
from rightsizer.ports import (
    EndpointSummary,
    FleetReader,
    MetricReader,
    MetricRequest,
    PriceBook,
    QuotaReader,
    RecommendationStore,
)
from rightsizer.rules import enable
from rightsizer.rules.ask import Reach, proposal_for
from rightsizer.telemetry import logger

PERIOD_S = 300
"""CloudWatch keeps five-minute datapoints for 63 days."""
CHUNK = 25
"""Endpoints whose metrics are held in memory together: about half a megabyte each."""
ONCE_IN = timedelta(hours=20)
"""An endpoint that did not change is evaluated at most once in this, however often its alarm fires."""
FULL_ONCE_IN = timedelta(hours=1)
"""The same for the full sweep, whose pages SQS may deliver twice."""


@dataclass(frozen=True, slots=True)
class EvaluatePorts:
    """What an evaluation reads."""

    fleet: FleetReader
    metrics: MetricReader
    prices: PriceBook
    quotas: QuotaReader
    catalogue: Catalogue
    history: Callable[[str], History] = lambda _: History()


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who follows an evaluation: `done` after each endpoint, `told` once for each thing that could not be read."""

    done: Callable[[], None] = lambda: None
    told: Callable[[Reason], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Judged:
    """An endpoint with its judgement."""

    endpoint: Endpoint
    recommendation: Recommendation


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where judgements go, and what the deployed role could do about them."""

    store: RecommendationStore
    reach: Callable[[Endpoint], Reach]
    proposal_days: int


def evaluate(
    ports: EvaluatePorts, keeping: Keeping, policy: Policy, names: Sequence[str], because: str, now: datetime
) -> Iterator[Recommendation | Unobserved]:
    """Evaluate and save these endpoints; those evaluated lately and unchanged since are left out.

    A full sweep is the truth: it evaluates what was not evaluated in the hour before. A judgement that cannot be
    saved raises: the queue delivers again.
    """
    once_in = FULL_ONCE_IN if because == "full-sweep" else ONCE_IN
    due = [summary for summary in ports.fleet.find(names) if _due(keeping.store, summary, once_in, now)]
    watcher = Watcher(told=lambda reason: logger.warning("not read", extra={"code": reason.code, "why": str(reason)}))
    for result in judged(ports, due, policy, now, watcher):
        if isinstance(result, Unobserved):
            yield result
            continue
        proposal = proposal_for(result.recommendation, within_reach(keeping, result), keeping.proposal_days, now)
        keeping.store.save(result.recommendation, proposal)
        yield result.recommendation


def within_reach(keeping: Keeping, result: Judged) -> Reach:
    """What the role may do, with the exact thing that an owner does to allow more."""
    reach = keeping.reach(result.endpoint)
    if reach.approvable:
        return reach
    said = enable.instructions(result.endpoint, result.recommendation, reach.enable)
    return replace(reach, enable=f"{said}\n{enable.tag_command(result.endpoint.ref)}" if reach.tag else said)


def judged(
    ports: EvaluatePorts,
    summaries: Sequence[EndpointSummary],
    policy: Policy,
    now: datetime,
    watcher: Watcher | None = None,
) -> Iterator[Judged | Unobserved]:
    """The judgement of each endpoint, in order; Unobserved where it could not be read or judged."""
    watcher = watcher or Watcher()
    if not summaries:
        return
    prices, quotas = _surroundings(ports, summaries[0].ref.region, watcher)
    told: set[Reason] = set()
    chunk: list[Endpoint] = []
    for observation in ports.fleet.observe(summaries):
        if isinstance(observation, Unobserved):
            watcher.done()
            yield observation
            continue
        for note in observation.notes:
            if note not in told:
                told.add(note)
                watcher.told(note)
        chunk.append(observation)
        if len(chunk) == CHUNK:
            yield from _judge(ports, chunk, prices, quotas, policy, now, watcher)
            chunk = []
    yield from _judge(ports, chunk, prices, quotas, policy, now, watcher)


def _judge(
    ports: EvaluatePorts,
    chunk: Sequence[Endpoint],
    prices: PriceTable,
    quotas: Mapping[str, int],
    policy: Policy,
    now: datetime,
    watcher: Watcher,
) -> Iterator[Judged | Unobserved]:
    usage = _usage(ports, chunk, policy, now, watcher)
    for endpoint in chunk:
        windows = usage.get(endpoint.ref.name, ())
        throttled = next(
            (w.reason for w in windows if isinstance(w, NoMetrics) and w.reason.code is Code.THROTTLED), None
        )
        if throttled is not None:
            watcher.done()
            yield Unobserved(endpoint.ref, throttled)
            continue
        try:
            past = ports.history(endpoint.ref.name)
            yield Judged(endpoint, judge(endpoint, windows, prices, ports.catalogue, quotas, past, policy, now))
        except RightsizerError as error:
            yield Unobserved(endpoint.ref, _reason(error))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # A fault of ours on one endpoint's odd data: loud in the log, and the other endpoints go on.
            logger.exception("judging failed", extra={"endpoint": endpoint.ref.name})
            sentence = (
                f"judging {endpoint.ref.name} failed with {error!r}; this is a fault of rightsizer, please report it"
            )
            yield Unobserved(endpoint.ref, Reason(Code.UNKNOWN_FAILURE, sentence))
        watcher.done()


def _usage(
    ports: EvaluatePorts, chunk: Sequence[Endpoint], policy: Policy, now: datetime, watcher: Watcher
) -> dict[str, list[MetricWindow | NoMetrics]]:
    """How the endpoints were used; only those that have an accelerator are asked for."""
    requests = [request for endpoint in chunk for request in _requests(endpoint, ports.catalogue)]
    start = now - timedelta(days=policy.lookback_days)
    found: dict[str, list[MetricWindow | NoMetrics]] = {}
    told: set[Code] = set()
    for window in ports.metrics.read(requests, start, now, PERIOD_S) if requests else ():
        whole = _whole(window)
        found.setdefault(window.endpoint, []).append(whole)
        if isinstance(whole, NoMetrics) and whole.reason.code not in (Code.NO_DATAPOINTS, *told):
            told.add(whole.reason.code)
            watcher.told(whole.reason)
    return found


def _whole(window: MetricWindow | NoMetrics) -> MetricWindow | NoMetrics:
    """A window that was read in part is no evidence: calls that could not be read would look like no calls (law 1)."""
    if isinstance(window, MetricWindow) and window.notes:
        return NoMetrics(window.endpoint, window.variant, window.notes[0])
    return window


def _requests(endpoint: Endpoint, catalogue: Catalogue) -> Iterator[MetricRequest]:
    signals = SIGNALS + (ASYNC_SIGNALS if EndpointKind.ASYNC in endpoint.kinds else ())
    for variant in endpoint.variants:
        hardware = catalogue.find(variant.instance_type)
        if hardware is not None and hardware.accelerator is not None:
            yield MetricRequest(endpoint.ref.name, variant.name, signals)


def _surroundings(ports: EvaluatePorts, region: str, watcher: Watcher) -> tuple[PriceTable, Mapping[str, int]]:
    """Prices of every type, which an endpoint may run or move to, and the account's quotas."""
    prices = ports.prices.table(region, [*ports.catalogue.types, *ports.catalogue.incomplete])
    for note in prices.notes:
        watcher.told(note)
    try:
        quotas = ports.quotas.endpoint_quotas()
    except RightsizerError as error:
        watcher.told(_reason(error))
        quotas = {}
    return prices, quotas


def _due(store: RecommendationStore, summary: EndpointSummary, once_in: timedelta, now: datetime) -> bool:
    last = store.last_evaluated(summary.ref.name)
    return last is None or summary.modified_at > last[0] or now - last[0] >= once_in


def _reason(error: RightsizerError) -> Reason:
    match error:
        case PermissionMissingError():
            return Reason(Code.PERMISSION_MISSING, str(error))
        case ThrottledError():
            return Reason(Code.THROTTLED, str(error))
        case _:
            return Reason(Code.READ_FAILED, str(error))
