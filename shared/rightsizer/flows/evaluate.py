"""Evaluate endpoints: observe, read usage, recommend. An error of one endpoint stops no other.

`recommendations` is the whole evaluation and writes nothing; a terminal uses it as it is. `evaluate` is what the
evaluation queue asks for: endpoints by name, each at most once in twenty hours unless it changed, the recommendation
saved. The work is done in turns, so that an invocation ends in time: what was not begun is named, and done elsewhere.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import batched

from rightsizer.changes.preflight import withhold_refused
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import Endpoint, Unobserved
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History, OpenQuestion
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.policy import Policy
from rightsizer.domain.policy_document import PolicyDocument, place_endpoint, policy_for_endpoint
from rightsizer.domain.price import PriceTable
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.trigger import EvaluationReason
from rightsizer.domain.usage import EndpointUsage, NoMetrics, VariantUsage
from rightsizer.errors import RightsizerError
from rightsizer.flows.read_usage import Usage, UsageCache, UsageReader, read_components, with_stopped_times
from rightsizer.flows.turns import Turns
from rightsizer.ports.evaluation import (
    ComponentReader,
    EndpointSummary,
    FleetReader,
    MetricReader,
    PriceBook,
    QuotaReader,
    RecommendationStore,
)
from rightsizer.recommender import proposal
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.dimension import find
from rightsizer.recommender.proposal import ChangePermission, proposal_for, withhold_undone_count
from rightsizer.recommender.recommend import recommend
from rightsizer.telemetry import Failure, attempt, count, logger

NO_TIME = Reason(Code.NO_TIME, "the invocation has no time left for it; it is evaluated by another one")
ONCE_IN = timedelta(hours=20)
"""An endpoint that did not change is evaluated at most once in this, however often its alarm fires."""
FULL_ONCE_IN = timedelta(hours=3)
"""The same for the full sweep. A page of which one endpoint failed comes again three times, half an hour apart; the
others of it are done and are left out."""
PART = 25
"""Recommendations that are saved together."""


@dataclass(frozen=True, slots=True)
class EvaluatePorts:
    """Ports from which an evaluation reads."""

    fleet: FleetReader
    metrics: MetricReader
    prices: PriceBook
    quotas: QuotaReader
    catalogue: Catalogue
    dimensions: Sequence[Dimension]
    history: Callable[[str], History] = lambda _: History()
    hours: Callable[[Collection[str]], Mapping[str, HoursRecord]] = lambda _: {}
    """Records of office hours of these endpoints, by name."""
    questions: Callable[[Collection[str]], Mapping[str, OpenQuestion]] = lambda _: {}
    """What was asked about these endpoints and waits, by name."""
    memory: UsageCache | None = None
    """Digests of complete days from earlier evaluations; without it everything is read."""
    document: PolicyDocument = field(default_factory=PolicyDocument)
    """What differs from the account's policy for an endpoint."""
    components: ComponentReader | None = None
    """Describes inference components; without it they are not judged."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Prices and quotas that an evaluation reads once for all its endpoints."""

    prices: PriceTable
    quotas: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ProgressWatcher:
    """Listener of an evaluation: `done` after each endpoint, `told` once for each read problem.

    `described` comes after each endpoint that was looked at, before the metrics of its group are read.
    """

    done: Callable[[], None] = lambda: None
    told: Callable[[Reason], None] = lambda _: None
    described: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An endpoint with its recommendation."""

    endpoint: Endpoint
    recommendation: Recommendation


@dataclass(frozen=True, slots=True)
class RecommendationSink:
    """Where recommendations are saved, and what the deployed role may change."""

    store: RecommendationStore
    reach: Callable[[Endpoint], ChangePermission]
    proposal_days: int


@dataclass(frozen=True, slots=True)
class AskedEndpoints:
    """Names of endpoints to evaluate, and why."""

    names: Sequence[str]
    because: EvaluationReason


@dataclass(frozen=True, slots=True)
class NotDone:
    """An endpoint that could not be read or stored, and has to be tried again."""

    name: str
    reason: Reason


def evaluate(
    ports: EvaluatePorts,
    keeping: RecommendationSink,
    policy: Policy,
    asked_endpoints: AskedEndpoints,
    now: datetime,
    turns: Turns | None = None,
) -> Iterator[Recommendation | Unobserved | NotDone]:
    """Evaluate and save the asked endpoints; those evaluated lately and unchanged since are left out.

    A full sweep evaluates what was not evaluated in the hours before. What fails at one endpoint is its own; reads of
    the table that serve all fail for all. One that its office hours stopped, stop or start waits for its next start.
    """
    names, is_full = asked_endpoints.names, asked_endpoints.because is EvaluationReason.FULL_SWEEP
    once_in = FULL_ONCE_IN if is_full else ONCE_IN
    due: list[EndpointSummary] = []
    read = attempt(
        "reading when endpoints were evaluated",
        f"{len(names)}",
        lambda: (keeping.store.last_evaluated(names), ports.hours(names), keeping.store.open_questions(names)),
    )
    if isinstance(read, Failure):
        yield from (NotDone(name, _failure_reason(f"looking up {name}", read)) for name in names)
        return
    last, hours, questions = read
    names = [name for name in names if name not in hours or not hours[name].holds_lock]
    for name in names:
        found = attempt("looking up an endpoint", name, partial(ports.fleet.find, [name]))
        if isinstance(found, Failure):
            yield NotDone(name, _failure_reason(f"looking up {name}", found))
        else:
            due += [summary for summary in found if _is_due(last.get(name), summary, once_in, now)]
    if is_full:
        modified = {summary.ref.name: summary.modified_at for summary in due}
        ports = replace(ports, history=lambda name: keeping.store.history(name, modified.get(name)))
    ports = replace(ports, history=with_open_questions(with_stopped_times(ports.history, hours), questions))
    watcher = ProgressWatcher(
        told=lambda reason: logger.warning("not read", extra={"code": reason.code, "why": str(reason)})
    )
    unread = 0
    for results in _results_in_parts(ports, due, policy, now, watcher, turns):
        yield from (result for result in results if isinstance(result, Unobserved))
        evaluated = [result for result in results if isinstance(result, Evaluated)]
        unread += len(results) - len(evaluated) + sum(one.endpoint.tags_unread is not None for one in evaluated)
        yield from _save_part(ports, keeping, evaluated, now)
    if unread:
        count(EndpointsUnread=unread)


def with_open_questions(
    history: Callable[[str], History], asked: Mapping[str, OpenQuestion]
) -> Callable[[str], History]:
    """The history of endpoints that also tells what was asked about them and waits."""

    def read(name: str) -> History:
        found = history(name)
        return replace(found, asked=asked[name]) if name in asked else found

    return read if asked else history


def _save_part(
    ports: EvaluatePorts, keeping: RecommendationSink, results: Sequence[Evaluated], now: datetime
) -> Iterator[Recommendation | NotDone]:
    """Save these recommendations together; where that fails, one by one: only the one to blame is not done."""
    ready: list[tuple[Recommendation, Proposal | None]] = []
    for result in results:
        name = result.endpoint.ref.name
        made = attempt("proposing a change", name, partial(_with_proposal, ports, keeping, result, now))
        if isinstance(made, Failure):
            yield NotDone(name, _failure_reason(f"storing the recommendation of {name}", made))
        else:
            ready.append(made)
    together = attempt("storing recommendations", f"{len(ready)}", partial(keeping.store.save_all, ready))
    for recommendation, asked in ready:
        name = recommendation.ref.name
        if together is None:
            yield recommendation
            continue
        kept = attempt("storing a recommendation", name, partial(keeping.store.save, recommendation, asked))
        yield (
            NotDone(name, _failure_reason(f"storing the recommendation of {name}", kept))
            if isinstance(kept, Failure)
            else recommendation
        )


def _with_proposal(
    ports: EvaluatePorts, keeping: RecommendationSink, result: Evaluated, now: datetime
) -> tuple[Recommendation, Proposal | None]:
    permission = permission_for(keeping, ports.catalogue, ports.dimensions, result)
    return result.recommendation, proposal_for(result.recommendation, permission, keeping.proposal_days, now)


def permission_for(
    keeping: RecommendationSink, catalogue: Catalogue, dimensions: Sequence[Dimension], result: Evaluated
) -> ChangePermission:
    """Permission of the role, with the exact act by which an owner allows more."""
    permission = withhold_undone_count(result.endpoint, result.recommendation, keeping.reach(result.endpoint))
    option = result.recommendation.chosen_option
    dimension = None if option is None else find(dimensions, option.kind)
    deploys = option is not None and dimension is not None and dimension.is_deployed(option)
    permission = withhold_refused(result.endpoint, option, deploys, catalogue, permission)
    refusals = () if dimension is None else (dimension.kind_refusal(kind) for kind in result.endpoint.kinds)
    other = next((refusal for refusal in refusals if refusal is not None), None)
    if other is not None and (permission.approvable or permission.tag):
        permission = ChangePermission(False, other.sentence)
    if permission.approvable:
        return permission
    text = proposal.permission_instructions(result.endpoint, result.recommendation, permission.enable)
    return replace(
        permission, enable=f"{text}\n{proposal.tag_command(result.endpoint.ref)}" if permission.tag else text
    )


def recommendations(
    ports: EvaluatePorts,
    summaries: Sequence[EndpointSummary],
    policy: Policy,
    now: datetime,
    watcher: ProgressWatcher | None = None,
    turns: Turns | None = None,
) -> Iterator[Evaluated | Unobserved]:
    """The recommendation of each endpoint, in turns; Unobserved where it was not read or judged, or no time is left."""
    for results in _results_in_parts(ports, summaries, policy, now, watcher or ProgressWatcher(), turns):
        yield from results


def _results_in_parts(
    ports: EvaluatePorts,
    summaries: Sequence[EndpointSummary],
    policy: Policy,
    now: datetime,
    watcher: ProgressWatcher,
    turns: Turns | None = None,
) -> Iterator[Sequence[Evaluated | Unobserved]]:
    """The results, `PART` at a time; none of one turn together with those of the next."""
    if not summaries:
        return
    around = read_surroundings(ports, summaries[0].ref.region, watcher)
    reasons: set[Reason] = set()
    turns = turns or Turns()
    for some, timely in turns.divide(summaries):
        if not timely:
            yield [Unobserved(summary.ref, NO_TIME) for summary in some]
            continue
        chunk: list[Endpoint] = []
        for observation in ports.fleet.observe(some):
            watcher.described()
            if isinstance(observation, Unobserved):
                watcher.done()
                yield [observation]
                continue
            for note in observation.notes:
                if note not in reasons:
                    reasons.add(note)
                    watcher.told(note)
            chunk.append(place_endpoint(observation, ports.document))
        for part in batched(chunk, turns.together):
            yield from batched(_recommend_chunk(ports, part, around, policy, now, watcher), PART)


def _recommend_chunk(
    ports: EvaluatePorts,
    chunk: Sequence[Endpoint],
    around: Surroundings,
    policy: Policy,
    now: datetime,
    watcher: ProgressWatcher,
) -> Iterator[Evaluated | Unobserved]:
    """The recommendations of a chunk, whose metrics are read together."""
    if not chunk:
        return
    ports = replace(ports, history=cache(ports.history))
    reader = UsageReader(ports.metrics, ports.catalogue, ports.history, policy, ports.memory)
    usage = reader.read(chunk, now)
    _report_read_problems(usage.values(), watcher)
    for endpoint in chunk:
        yield _recommend_or_reason(ports, endpoint, usage.get(endpoint.ref.name), around, policy, now)
        watcher.done()


def _recommend_or_reason(
    ports: EvaluatePorts, endpoint: Endpoint, usage: Usage | None, around: Surroundings, policy: Policy, now: datetime
) -> Evaluated | Unobserved:
    """The recommendation of one endpoint, or why there is none: its trouble is its own."""
    throttled = next(
        (no_metrics.reason for no_metrics in _unread(usage) if no_metrics.reason.code is Code.THROTTLED), None
    )
    if throttled is not None:
        return Unobserved(endpoint.ref, throttled)

    def find() -> Recommendation:
        if isinstance(usage, Exception):
            raise usage
        past = ports.history(endpoint.ref.name)
        here = policy_for_endpoint(endpoint, policy, ports.document)
        inputs = AccountInputs(around.prices, ports.catalogue, around.quotas, past, here, now)
        parts = read_components(ports.components, ports.metrics, endpoint, here, now)
        return recommend(endpoint, usage, inputs, ports.dimensions, parts)

    found = attempt("judging an endpoint", endpoint.ref.name, find)
    if isinstance(found, Failure):
        return Unobserved(endpoint.ref, _failure_reason(f"judging {endpoint.ref.name}", found))
    return Evaluated(endpoint, found)


def _report_read_problems(usage: Iterable[Usage], watcher: ProgressWatcher) -> None:
    """Report each kind of read problem once; missing datapoints become the finding of the endpoint."""
    told: set[Code] = {Code.NO_DATAPOINTS}
    beside: set[Code] = set()
    for read in usage:
        for unread in _unread(read):
            if unread.reason.code not in told:
                told.add(unread.reason.code)
                watcher.told(unread.reason)
        for one in read.variants if isinstance(read, EndpointUsage) else (read,):
            for note in one.notes if isinstance(one, VariantUsage) else ():
                if note.code not in beside:
                    beside.add(note.code)
                    watcher.told(note)


def _unread(usage: Usage | None) -> tuple[NoMetrics, ...]:
    """The variants of which nothing could be read."""
    some = usage.variants if isinstance(usage, EndpointUsage) else (usage,)
    return tuple(one for one in some if isinstance(one, NoMetrics))


def read_surroundings(ports: EvaluatePorts, region: str, watcher: ProgressWatcher) -> Surroundings:
    """Prices of every type, which an endpoint may run or move to, and the account's quotas."""
    prices = ports.prices.table(region, [*ports.catalogue.types, *ports.catalogue.incomplete])
    for note in prices.notes:
        watcher.told(note)
    try:
        quotas = ports.quotas.endpoint_quotas()
    except RightsizerError as error:
        watcher.told(reason_of(error))
        quotas = {}
    return Surroundings(prices, quotas)


def _is_due(last: datetime | None, summary: EndpointSummary, once_in: timedelta, now: datetime) -> bool:
    return last is None or summary.modified_at > last or now - last >= once_in


def _failure_reason(doing: str, failed: Failure) -> Reason:
    """Why something was not done; a fault of ours says so and asks to be reported."""
    if isinstance(failed.error, RightsizerError):
        return reason_of(failed.error)
    return Reason(Code.UNKNOWN_FAILURE, f"{doing} {failed}")
