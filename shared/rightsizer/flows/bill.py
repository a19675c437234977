"""The bill beside a report, and what the account pays for beside its endpoints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.account_finding import AccountFinding, ServedResources
from rightsizer.domain.bill import BillWindow, Reconciliation
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.errors import RightsizerError
from rightsizer.flows.propose_hours import HoursSources, propose_hours
from rightsizer.ports.account import AccountReader, BillReader
from rightsizer.ports.changes import HoursBook
from rightsizer.ports.evaluation import MetricReader, PriceBook
from rightsizer.reporting.bill import BillSums, expected_costs, reconcile
from rightsizer.reporting.payment import (
    ServerlessInputs,
    savings_plan_finding,
    serverless_findings,
    steady_fleet,
    weighed_endpoints,
)
from rightsizer.reporting.rest_of_bill import (
    WARM_POOL_DAYS,
    StoredResources,
    batch_findings,
    orphan_findings,
    warm_pool_finding,
)
from rightsizer.reporting.totals import Records
from rightsizer.telemetry import logger


def reconcile_with_bill(
    make_reader: Callable[[], BillReader], records: Records, start: datetime, end: datetime, now: datetime
) -> Reconciliation:
    """The report's figures against the bill. A bill that cannot be read is a reason, and the report goes on."""
    sums = BillSums(BillWindow(records.account, records.region, start, end))
    try:
        reader = make_reader()
        for line in reader.lines(sums.scope):
            sums.add(line)
        return reconcile(sums, reader.nature(), expected_costs(records, start, end, now), now)
    except RightsizerError as error:
        logger.warning("the bill was not read", extra={"problem": str(error)})
        return Reconciliation(reason=str(error))


MOST_DESCRIBED = 300
"""Endpoints that are described to see what they use; with more of them orphans are not looked for."""
MOST_WEIGHED = 300
"""Endpoints without accelerators whose traffic is read: three metrics each."""
MOST_RUNS = 200
"""Newest training jobs that a report describes."""
TRAFFIC_DAYS = 14
"""Days of their traffic."""


@dataclass(frozen=True, slots=True)
class BillPorts:
    """Ports from which the rest of the bill is read."""

    account: AccountReader
    prices: PriceBook
    catalogue: Catalogue
    hours: HoursBook | None = None
    """Records of office hours; None where no stack is at hand."""
    metrics: MetricReader | None = None
    """Past requests, from which office hours are proposed; None: they are not."""
    zone: str = "UTC"
    """IANA name of the time zone of proposed hours."""


@dataclass(frozen=True, slots=True)
class BillScope:
    """Parts of the account that are known already."""

    region: str
    recommendations: Sequence[Recommendation]
    served: ServedResources | None = None
    """What the endpoints use that were looked at; None where none was: then every endpoint is described."""
    kept: ServedResources = field(default_factory=ServedResources)
    """What endpoints need that are stopped for the night, or fall back to: no orphans either."""
    to_describe: Sequence[str] = ()
    """Endpoints that were not looked at, or are being deployed."""
    resting: frozenset[str] = frozenset()
    """Endpoints with office hours: they do not run at every hour."""
    starts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Seconds of the starts after stopped hours, by endpoint."""
    finds_orphans: bool = True
    """False where it is not known what stopped endpoints need."""
    reads_training_runs: bool = False
    """Whether finished training jobs are described, one call each: a report has the time, a scan has not."""
    is_whole: bool = True
    """False where some endpoints alone were asked about: then nothing of the account is read."""


@dataclass(frozen=True, slots=True)
class RestOfBill:
    """Account findings, the largest saving first, and what could not be read for them."""

    findings: tuple[AccountFinding, ...] = ()
    unread: tuple[Reason, ...] = ()


def read_rest_of_bill(ports: BillPorts, scope: BillScope, now: datetime) -> RestOfBill:
    """Every account finding. RestOfBill.unread names each part that could not be read."""
    findings = list(batch_findings(scope.recommendations))
    unread: list[Reason] = []
    scope = _with_hours(ports, scope, unread)
    parts: list[Callable[[], Iterable[AccountFinding]]] = [
        lambda: _serverless(ports, scope, now),
        lambda: _office_hours(ports, scope, now),
    ]
    if scope.is_whole:
        parts += [lambda: _warm_pools(ports, scope, now, unread), lambda: _savings_plan(ports, scope, unread)]
    if scope.is_whole and scope.reads_training_runs:
        parts.append(lambda: _training_runs(ports, scope, now, unread))
    if scope.is_whole and scope.finds_orphans:
        parts.append(lambda: _orphans(ports, scope, now, unread))
    for read in parts:
        try:
            findings += read()
        except RightsizerError as error:
            unread.append(reason_of(error))
    ordered = sorted(findings, key=lambda finding: (-(finding.usd_per_month or 0), finding.code, finding.endpoint))
    return RestOfBill(tuple(ordered), tuple(unread))


def _with_hours(ports: BillPorts, scope: BillScope, unread: list[Reason]) -> BillScope:
    """The scope with the endpoints of office hours, and what those need that are stopped now."""
    if ports.hours is None or not scope.is_whole:
        return scope
    rows: list[UnreadRow] = []
    try:
        records = list(ports.hours.records(rows))
    except RightsizerError as error:
        unread.append(reason_of(error))
        return replace(scope, finds_orphans=False)
    if rows:  # what a stopped endpoint needs must never be called an orphan
        text = f"orphans are not looked for: {len(rows)} records of office hours cannot be read"
        unread.append(Reason(Code.READ_FAILED, text))
    kept = ServedResources()
    for before in (record.before for record in records if record.before is not None):
        names = {before.config_name, before.deployed_config, before.fallback_config} - {""}
        variants = before.config_body.get("ProductionVariants") or ()
        models = frozenset(str(each["ModelName"]) for each in variants if each.get("ModelName"))
        kept = kept.joined(ServedResources(frozenset(names), models))
    resting = scope.resting | {record.ref.name for record in records if record.hours}
    starts = {record.ref.name: record.starts for record in records if record.starts}
    return replace(scope, kept=scope.kept.joined(kept), resting=resting, starts=starts, finds_orphans=not rows)


def _serverless(ports: BillPorts, scope: BillScope, now: datetime) -> list[AccountFinding]:
    """Serverless against real-time, of the endpoints without accelerators."""
    weighed = weighed_endpoints(scope.recommendations)[:MOST_WEIGHED]
    if not weighed:
        return []
    traffic = ports.account.traffic(
        [(recommendation.ref.name, recommendation.variant) for recommendation in weighed],
        now - timedelta(days=TRAFFIC_DAYS),
        now,
    )
    serverless = [
        recommendation.ref.name for recommendation in weighed if recommendation.kind is EndpointKind.SERVERLESS
    ]
    types = [kind.name for kind in ports.catalogue if kind.accelerator is None]
    prices = ports.prices.table(scope.region, types)
    sizes = ports.account.serverless_sizes([name for name in serverless if traffic[name].requests > 0])
    sized = {name for name in traffic if name in sizes or name not in serverless}
    kept = {name: seen for name, seen in traffic.items() if name in sized or seen.requests <= 0}
    return list(serverless_findings(weighed, ServerlessInputs(kept, sizes, prices, ports.catalogue)))


def _office_hours(ports: BillPorts, scope: BillScope, now: datetime) -> list[AccountFinding]:
    """Office hours for endpoints that have none."""
    if ports.metrics is None:
        return []
    recommendations = [
        recommendation for recommendation in scope.recommendations if recommendation.ref.name not in scope.resting
    ]
    return propose_hours(HoursSources(ports.account, ports.metrics, ports.zone, scope.starts), recommendations, now)


def _warm_pools(ports: BillPorts, scope: BillScope, now: datetime, unread: list[Reason]) -> list[AccountFinding]:
    uses = ports.account.warm_pools(now - timedelta(days=WARM_POOL_DAYS), now)
    if not uses:
        return []
    unread += dict.fromkeys(pool.tags_unread for pool in uses if pool.tags_unread is not None)
    prices = ports.prices.table(scope.region, sorted({pool.instance_type for pool in uses if pool.instance_type}))
    finding = warm_pool_finding(uses, prices, WARM_POOL_DAYS)
    return [] if finding is None else [finding]


def _training_runs(ports: BillPorts, scope: BillScope, now: datetime, unread: list[Reason]) -> list[AccountFinding]:
    runs = ports.account.training_runs(now - timedelta(days=WARM_POOL_DAYS), now, MOST_RUNS)
    if not runs:
        return []
    unread += dict.fromkeys(run.tags_unread for run in runs if run.tags_unread is not None)
    # Imported here: most accounts have no training jobs, and each start of the function would pay for the rules.
    from rightsizer.advice.market import snapshot
    from rightsizer.advice.training_history import advise_runs, training_finding

    finding = training_finding(advise_runs(runs, snapshot(scope.region)), len(runs), WARM_POOL_DAYS)
    return [] if finding is None else [finding]


def _savings_plan(ports: BillPorts, scope: BillScope, unread: list[Reason]) -> list[AccountFinding]:
    """A plan for what remains; where its rates cannot be read, the what-if alone."""
    recommendations = [
        recommendation for recommendation in scope.recommendations if recommendation.ref.name not in scope.resting
    ]
    names = sorted(steady_fleet(recommendations).counts)
    if not names:
        return []
    rates: Mapping[str, Decimal] | None = None
    try:
        rates = ports.account.plan_rates(names)
    except RightsizerError as error:
        unread.append(reason_of(error))
    plan = savings_plan_finding(recommendations, ports.prices.table(scope.region, names), rates)
    return [] if plan is None else [plan]


def _orphans(ports: BillPorts, scope: BillScope, now: datetime, unread: list[Reason]) -> list[AccountFinding]:
    names = scope.to_describe if scope.served is not None else ports.account.endpoint_names()
    if len(names) > MOST_DESCRIBED:
        text = f"orphans are not looked for: {len(names)} endpoints are too many to describe one by one"
        unread.append(Reason(Code.READ_FAILED, text))
        return []
    served = (scope.served or ServedResources()).joined(scope.kept).joined(ports.account.served_by(names))
    served = served.joined(ServedResources(models=ports.account.component_models()))
    try:
        lately = ports.account.configurations_seen_lately()
    except RightsizerError as error:  # only the last use of some: the list is as good without it
        unread.append(reason_of(error))
        lately = frozenset()
    stored_resources = StoredResources(ports.account.configurations(), ports.account.models(), served, lately)
    return list(orphan_findings(stored_resources, now))
