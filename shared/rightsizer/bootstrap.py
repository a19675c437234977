"""Settings to adapters to flows: the only place that chooses.

One cached function per door, built on the first call and not at import, so that an invocation pays only for its own
door; imports stand inside for the same reason. `now` is the only clock; a simulated account replaces it by
`set_clock`, and `reset` forgets everything built so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from rightsizer.settings import Settings, from_environment, require

if TYPE_CHECKING:
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.aws.session import Session
    from rightsizer.aws.table import Table
    from rightsizer.flows.evaluate import EvaluatePorts
    from rightsizer.flows.sweep import Swept
    from rightsizer.model.hardware import Catalogue
    from rightsizer.model.observation import Endpoint, Unobserved
    from rightsizer.model.policy import Policy
    from rightsizer.model.recommendation import Recommendation
    from rightsizer.model.trigger import Received, Trigger
    from rightsizer.rules.ask import Reach


def _wall_clock() -> datetime:
    return datetime.now(UTC)


_clock: Callable[[], datetime] = _wall_clock


def now() -> datetime:
    """The time, aware and in UTC."""
    return _clock()


def set_clock(clock: Callable[[], datetime]) -> None:
    """Let the time come from a simulated account."""
    global _clock
    _clock = clock


def reset() -> None:
    """Forget every flow and adapter, and go back to the wall clock."""
    set_clock(_wall_clock)
    for built in (_settings, _session, _table, _store, _catalogue, sweep, evaluate):
        built.cache_clear()


# ---------------------------------------------------------------- what doors share


@cache
def _settings() -> Settings:
    return from_environment()


@cache
def _session() -> Session:
    from rightsizer.aws.session import Session

    return Session()


@cache
def _table() -> Table:
    from rightsizer.aws.table import Table

    require(_settings(), "table")
    return Table(_session().client("dynamodb"), _settings().table)


@cache
def _store() -> Recommendations:
    from rightsizer.aws.recommendations import Recommendations

    return Recommendations(_table(), now)


@cache
def _catalogue() -> Catalogue:
    from rightsizer.catalog import tables
    from rightsizer.rules.catalogue import catalogue

    return catalogue(tables.instances(), tables.accelerators())


# ---------------------------------------------------------------- sweep


@cache
def sweep() -> Callable[[Trigger], Swept]:
    """The flow of the sweep door."""
    from rightsizer.aws.alarms import CloudWatchAlarms
    from rightsizer.aws.fleet import SageMakerFleet
    from rightsizer.aws.queue import SqsPages
    from rightsizer.flows import sweep as flow

    settings, session = _settings(), _session()
    require(settings, "queue_url")
    queue = SqsPages(session.client("sqs"), settings.queue_url)
    ports = flow.SweepPorts(
        SageMakerFleet(session), CloudWatchAlarms(session), _store(), queue, f"{settings.alarm_prefix}gpu-idle"
    )
    return lambda trigger: flow.sweep(ports, trigger)


# ---------------------------------------------------------------- evaluate


@cache
def evaluate() -> Callable[[Sequence[Received], datetime], list[str]]:
    """The flow of the evaluate door: a batch in, the ids of the messages to deliver again out."""
    from rightsizer.aws.alarms import CloudWatchAlarms
    from rightsizer.aws.ledger import SavingsBook
    from rightsizer.flows.evaluate import Keeping
    from rightsizer.flows.evaluate import evaluate as flow
    from rightsizer.flows.evaluate_batch import BatchPorts, evaluate_batch

    settings = _settings()
    ports, policy = reading_ports(_session(), _store().history), _policy(settings)
    keeping = Keeping(_store(), _reach(settings), settings.proposal_days)

    def one(names: Sequence[str], because: str, at: datetime) -> Iterable[Recommendation | Unobserved]:
        return flow(ports, keeping, policy, names, because, at)

    batch = BatchPorts(one, CloudWatchAlarms(_session()), SavingsBook(_table()))
    return lambda received, at: evaluate_batch(batch, received, at)


def reading_ports(session: Session, history: Callable[[str], Any] | None = None) -> EvaluatePorts:
    """What an evaluation reads of an account; also for a terminal, where nothing is deployed and nothing remembered."""
    from rightsizer.aws.commitments import SavingsPlans
    from rightsizer.aws.fleet import SageMakerFleet
    from rightsizer.aws.metrics import CloudWatchMetrics
    from rightsizer.aws.prices import PriceListBook
    from rightsizer.aws.quotas import EndpointQuotas
    from rightsizer.flows.evaluate import EvaluatePorts

    prices = PriceListBook(session, commitment=SavingsPlans(session, now()))
    fleet, metrics, quotas = SageMakerFleet(session), CloudWatchMetrics(session), EndpointQuotas(session)
    if history is None:
        return EvaluatePorts(fleet, metrics, prices, quotas, _catalogue())
    return EvaluatePorts(fleet, metrics, prices, quotas, _catalogue(), history)


def _policy(settings: Settings) -> Policy:
    from rightsizer.model.policy import Policy

    return Policy(lookback_days=settings.lookback_days, minimum_saving_usd=settings.minimum_saving_usd)


def _reach(settings: Settings) -> Callable[[Endpoint], Reach]:
    from rightsizer.rules.ask import reach_of

    return lambda endpoint: reach_of(endpoint, writes=not settings.dry_run, untagged=settings.change_untagged)
