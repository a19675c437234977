"""The rest of the bill: read what the account holds beside its endpoints, and say what it costs.

A part that cannot be read stops no other, and is named. Nothing is written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.account_finding import AccountFinding, ServedResources
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import RightsizerError
from rightsizer.flows.evaluate import reason_of
from rightsizer.ports.account import AccountReader
from rightsizer.ports.evaluation import PriceBook
from rightsizer.reporting.rest_of_bill import (
    WARM_POOL_DAYS,
    StoredResources,
    batch_findings,
    orphan_findings,
    warm_pool_finding,
)
from rightsizer.reporting.savings_plan import savings_plan_finding, steady_fleet
from rightsizer.reporting.serverless_bill import ServerlessInputs, serverless_findings, weighed_endpoints

MOST_DESCRIBED = 300
"""Endpoints that are described to see what they use; with more of them orphans are not looked for."""
MOST_WEIGHED = 300
"""Endpoints without accelerators whose traffic is read: three metrics each."""
TRAFFIC_DAYS = 14
"""Days of their traffic."""


@dataclass(frozen=True, slots=True)
class BillPorts:
    """Ports from which the rest of the bill is read."""

    account: AccountReader
    prices: PriceBook
    catalogue: Catalogue


@dataclass(frozen=True, slots=True)
class BillScope:
    """Parts of the account that are known already."""

    region: str
    recommendations: Sequence[Recommendation]
    served: ServedResources | None = None
    """What the endpoints use that were looked at; None where none was: then every endpoint is described."""
    to_describe: Sequence[str] = ()
    """Endpoints that were not looked at, or are being deployed."""
    is_whole: bool = True
    """False where some endpoints alone were asked about: then nothing of the account is read."""


@dataclass(frozen=True, slots=True)
class RestOfBill:
    """Account findings, the largest saving first, and what could not be read for them."""

    findings: tuple[AccountFinding, ...] = ()
    unread: tuple[Reason, ...] = ()


def read_rest_of_bill(ports: BillPorts, scope: BillScope, now: datetime) -> RestOfBill:
    """Every account finding. RestOfBill.unread names each part that could not be read."""
    found = list(batch_findings(scope.recommendations))
    unread: list[Reason] = []
    parts: list[Callable[[], Iterable[AccountFinding]]] = [lambda: _serverless(ports, scope, now)]
    if scope.is_whole:
        parts += [
            lambda: _warm_pools(ports, scope, now),
            lambda: _savings_plan(ports, scope, unread),
            lambda: _orphans(ports, scope, now, unread),
        ]
    for read in parts:
        try:
            found += read()
        except RightsizerError as error:
            unread.append(reason_of(error))
    ordered = sorted(found, key=lambda each: (-(each.usd_per_month or 0), each.code, each.endpoint))
    return RestOfBill(tuple(ordered), tuple(unread))


def _serverless(ports: BillPorts, scope: BillScope, now: datetime) -> list[AccountFinding]:
    """Serverless against real-time, of the endpoints without accelerators."""
    weighed = weighed_endpoints(scope.recommendations)[:MOST_WEIGHED]
    if not weighed:
        return []
    traffic = ports.account.traffic(
        [(one.ref.name, one.variant) for one in weighed], now - timedelta(days=TRAFFIC_DAYS), now
    )
    serverless = [one.ref.name for one in weighed if one.kind is EndpointKind.SERVERLESS]
    types = [kind.name for kind in ports.catalogue if kind.accelerator is None]
    prices = ports.prices.table(scope.region, types)
    sizes = ports.account.serverless_sizes([name for name in serverless if traffic[name].requests > 0])
    kept = {name: seen for name, seen in traffic.items() if name in sizes or name not in serverless}
    return list(serverless_findings(weighed, ServerlessInputs(kept, sizes, prices, ports.catalogue)))


def _warm_pools(ports: BillPorts, scope: BillScope, now: datetime) -> list[AccountFinding]:
    uses = ports.account.warm_pools(now - timedelta(days=WARM_POOL_DAYS), now)
    if not uses:
        return []
    prices = ports.prices.table(scope.region, sorted({each.instance_type for each in uses if each.instance_type}))
    found = warm_pool_finding(uses, prices, WARM_POOL_DAYS)
    return [] if found is None else [found]


def _savings_plan(ports: BillPorts, scope: BillScope, unread: list[Reason]) -> list[AccountFinding]:
    """A plan for what remains; where its rates cannot be read, the what-if alone."""
    names = sorted(steady_fleet(scope.recommendations).counts)
    if not names:
        return []
    rates: Mapping[str, Decimal] | None = None
    try:
        rates = ports.account.plan_rates(names)
    except RightsizerError as error:
        unread.append(reason_of(error))
    found = savings_plan_finding(scope.recommendations, ports.prices.table(scope.region, names), rates)
    return [] if found is None else [found]


def _orphans(ports: BillPorts, scope: BillScope, now: datetime, unread: list[Reason]) -> list[AccountFinding]:
    names = scope.to_describe if scope.served is not None else ports.account.endpoint_names()
    if len(names) > MOST_DESCRIBED:
        text = f"{len(names)} endpoints are too many to describe for orphans; `rightsizer scan` lists them"
        unread.append(Reason(Code.READ_FAILED, text))
        return []
    served = (scope.served or ServedResources()).joined(ports.account.served_by(names))
    served = served.joined(ServedResources(models=ports.account.component_models()))
    try:
        lately = ports.account.configurations_seen_lately()
    except RightsizerError as error:  # only the last use of some: the list is as good without it
        unread.append(reason_of(error))
        lately = frozenset()
    stored = StoredResources(ports.account.configurations(), ports.account.models(), served, lately)
    return list(orphan_findings(stored, now))
