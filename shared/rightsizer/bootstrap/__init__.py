"""Settings to adapters to flows: the only place that chooses.

`evaluation`, `proposals` and `changes` build the flow of each door, on its first call and not at import, so that an
invocation pays only for its own door; imports stand inside for the same reason. Here is what they share. `now` is the
only clock; a simulated account replaces it by `set_clock`, and `reset` forgets everything built so far.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from math import inf
from typing import TYPE_CHECKING, Any

from rightsizer.settings import Settings, from_environment, require_settings

if TYPE_CHECKING:
    from rightsizer.aws.local_cache import LocalCache
    from rightsizer.aws.policy_parameter import PolicyParameter
    from rightsizer.aws.recommendations import Recommendations
    from rightsizer.aws.session import Session
    from rightsizer.aws.table import Table
    from rightsizer.domain.hardware import Catalogue
    from rightsizer.domain.policy import ChangeLimits
    from rightsizer.domain.policy_document import PolicyDocument
    from rightsizer.flows.bill import BillPorts
    from rightsizer.flows.evaluate import EvaluatePorts
    from rightsizer.ports.changes import HoursBook
    from rightsizer.ports.evaluation import PriceBook, PriceSource


def _wall_clock() -> datetime:
    return datetime.now(UTC)


POLICY_WAIT_S = 2.0
"""Seconds for one answer of Parameter Store: a door that waits for it does nothing else."""
_clock: Callable[[], datetime] = _wall_clock
_built: dict[Callable[[], Any], Any] = {}


def now() -> datetime:
    """The time, aware and in UTC."""
    return _clock()


def seconds_left(context: Any) -> Callable[[], float]:
    """Seconds that Lambda gives the invocation still; infinite where nobody says, outside of Lambda."""
    told = getattr(context, "get_remaining_time_in_millis", None)
    return (lambda: told() / 1000) if told is not None else (lambda: inf)


def set_clock(clock: Callable[[], datetime]) -> None:
    """Let the time come from a simulated account."""
    global _clock
    _clock = clock


def build_once[T](build: Callable[[], T]) -> Callable[[], T]:
    """Build on the first call, keep for the life of the process, and forget at `reset`."""

    @wraps(build)
    def built() -> T:
        if build not in _built:
            _built[build] = build()
        found: T = _built[build]
        return found

    return built


def build_per_policy[T](build: Callable[[], T]) -> Callable[[], T]:
    """As `build_once`, and anew where the policy document was changed since."""

    @wraps(build)
    def built() -> T:
        document = policy_document() if settings().policy_parameter else None
        if build not in _built or _built[build][0] is not document:
            _built[build] = document, build()
        found: T = _built[build][1]
        return found

    return built


def reset() -> None:
    """Forget every flow and adapter, and go back to the wall clock."""
    set_clock(_wall_clock)
    _built.clear()


def exchange_built(other: dict[Callable[[], Any], Any]) -> dict[Callable[[], Any], Any]:
    """Put `other` in place of everything built so far, and return that.

    For a simulated account: its functions share one process, and on AWS each has a process of its own.
    """
    global _built
    before, _built = _built, other
    return before


@build_once
def settings() -> Settings:
    """The settings of this function."""
    return from_environment()


@build_once
def session() -> Session:
    """The session whose clients all adapters share."""
    from rightsizer.aws.session import Session

    warn_about_botocore()
    return Session()


@build_once
def _policy_parameter() -> PolicyParameter:
    from rightsizer.aws.policy_parameter import PolicyParameter

    return PolicyParameter(lambda: session().client("ssm", seconds=POLICY_WAIT_S), settings().policy_parameter, now)


@build_once
def _no_policy() -> PolicyDocument:
    from rightsizer.domain.policy_document import PolicyDocument

    return PolicyDocument()


def policy_document() -> PolicyDocument:
    """The stack's policy document, at most a minute old. In a stack without one it is empty, and nothing is read."""
    return _policy_parameter().document() if settings().policy_parameter else _no_policy()


def misread() -> tuple[str, ...]:
    """Sentences about what could not be understood of the stack's settings and of its policy document."""
    of_document = policy_document().problems if settings().policy_parameter else ()
    return (*settings().misread, *of_document)


def warn_about_botocore() -> None:
    """Log a warning where the runtime's botocore is older than what is supported."""
    import botocore

    from rightsizer.aws.session import botocore_warning
    from rightsizer.telemetry import logger

    if complaint := botocore_warning(botocore.__version__):
        logger.warning(complaint)


@build_once
def table() -> Table:
    """The one table."""
    from rightsizer.aws.table import Table

    require_settings(settings(), "table")
    return Table(session().client("dynamodb"), settings().table)


@build_once
def store() -> Recommendations:
    """Recommendations and proposals."""
    from rightsizer.aws.recommendations import Recommendations

    return Recommendations(table(), now)


@build_once
def catalogue() -> Catalogue:
    """The packaged catalogue of hardware."""
    from rightsizer import catalog
    from rightsizer.catalog import catalogue

    return catalogue(catalog.instances(), catalog.accelerators())


def price_sources(account: Session | None) -> tuple[PriceSource, ...]:
    """Where prices come from, in the order of asking. Without an account nothing is asked of AWS."""
    from rightsizer.aws.prices import PriceList, Snapshot

    return (
        PriceList(account, now),
        Snapshot(),
    )


def reading_ports(
    account: Session, history: Callable[[str], Any] | None = None, cache: LocalCache | None = None
) -> EvaluatePorts:
    """Ports from which an evaluation reads an account; also for a terminal without a deployed stack, with a cache."""
    from rightsizer.aws.account import FOR_A_DECISION, EndpointQuotas
    from rightsizer.aws.components import SageMakerComponents
    from rightsizer.aws.endpoint_memory import EndpointMemory
    from rightsizer.aws.endpoints import SageMakerFleet
    from rightsizer.aws.metrics import QUOTA, SHARE, CloudWatchMetrics, RateLimiter
    from rightsizer.aws.prices import OrderedPrices, SavingsPlans
    from rightsizer.dimensions import DIMENSIONS
    from rightsizer.flows.evaluate import EvaluatePorts

    prices = OrderedPrices(price_sources(account), now, SavingsPlans(account))
    quotas, components = EndpointQuotas(account, now, FOR_A_DECISION), SageMakerComponents(account)
    if history is None:
        alone = CloudWatchMetrics(account, pace=RateLimiter(QUOTA * SHARE))
        fleet = SageMakerFleet(account, cache)
        ports = EvaluatePorts(fleet, alone, prices, quotas, catalogue(), DIMENSIONS, components=components)
        return ports if cache is None else _with_cache(ports, cache)
    fleet = SageMakerFleet(account, EndpointMemory(table(), now))
    metrics = CloudWatchMetrics(account, pace=RateLimiter())
    return EvaluatePorts(fleet, metrics, prices, quotas, catalogue(), DIMENSIONS, history, components=components)


def local_cache(account: Session, *, refresh: bool) -> LocalCache:
    """The user's own cache for this account, Region and role; with `refresh` it is only written."""
    from rightsizer.aws.local_cache import LocalCache, cache_folder

    number, role = account.caller()
    return LocalCache(cache_folder(number, account.region, role), now, refresh=refresh)


def _with_cache(ports: EvaluatePorts, cache: LocalCache) -> EvaluatePorts:
    from dataclasses import replace

    from rightsizer.aws.local_cache import OWN_PAGES
    from rightsizer.flows.read_usage import UsageCache

    return replace(ports, memory=UsageCache(cache, OWN_PAGES))


def hours_zone(limits: ChangeLimits) -> str:
    """The time zone of proposed office hours: the setting `hours_zone`, else that of the change window."""
    return limits.hours.zone or limits.window.zone


def bill_ports(account: Session, prices: PriceBook, hours: HoursBook | None = None, zone: str = "UTC") -> BillPorts:
    """Ports from which the rest of an account's bill is read; office hours are proposed in the time zone `zone`.

    `hours`: where the table of a stack is at hand.
    """
    from rightsizer.aws.metrics import QUOTA, SHARE, CloudWatchMetrics, RateLimiter
    from rightsizer.aws.rest_of_bill import AccountBill
    from rightsizer.flows.bill import BillPorts

    metrics = CloudWatchMetrics(account, pace=RateLimiter(QUOTA * SHARE))
    return BillPorts(AccountBill(account), prices, catalogue(), hours, metrics, zone)
