"""From stored rows to a report: totals, contents of the window, and rightsizer's own cost."""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import batched

from rightsizer import catalog
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.money import Saving, Stage
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.outcome import LedgerEntry, Occurrence
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import SHOWN, CostLine, FunctionUse, Report, RunningCost, Stack
from rightsizer.reporting.money import MoneySources, Observed, money_table
from rightsizer.reporting.split_money import LAPSED, Ends, PlanPart, plan_parts

DAYS = HOURS_PER_MONTH / 24
"""Days of a month of 730 hours."""
OCCASIONS: Mapping[str, Decimal] = {
    "day": DAYS,
    "light sweep": DAYS * 24,
    "tick": DAYS * 24 * 12,
    "report": DAYS / 7 + 1,
}
"""How often in a month each occasion of `catalog.own_use` comes, by the template's schedules."""
POLLS = Decimal(5 * 3 * 60) * HOURS_PER_MONTH
"""ReceiveMessage requests of a month: five pollers, each waits up to 20 s (Lambda developer guide)."""
KEY_REQUESTS = DAYS * 24 * 12
"""Requests to KMS for the table's key, which DynamoDB keeps for five minutes (DynamoDB developer guide)."""
LOGS_KEPT = 3
"""Months that the log group keeps a line."""
PROPOSALS = Decimal("0.1")
"""Proposals of one endpoint in a month, approved and carried out: more than the labelled accounts have."""
OF_A_PROPOSAL: Mapping[str, Decimal] = {
    "function call": Decimal(40),
    "GB-second": Decimal(45),
    "table read": Decimal(400),
    "table write": Decimal(250),
    "bucket write": Decimal(4),
    "message": Decimal(4),
    "event": Decimal(10),
    "metric read": Decimal(120),
    "metric hour": Decimal(8),
    "log byte": Decimal(80_000),
}
"""A proposal from its making to its proof, rounded up: 40 invocations of `propose`, `picture` and `apply`."""
COST_LINES: Mapping[str, tuple[str, ...]] = {
    "functions": ("function call", "GB-second"),
    "metric reads": ("metric read",),
    "queue": ("queue request",),
    "table": ("table read", "table write", "table byte", "key request"),
    "bucket": ("bucket write", "bucket read", "bucket byte"),
    "logs": ("log byte", "log byte month"),
    "own metrics": ("metric hour",),
    "schedules, events, messages": ("schedule", "event", "message", "cost explorer request"),
}
"""The lines of the bill, and the quantities in each."""


@dataclass(frozen=True, slots=True)
class OwnCost:
    """One part of the own bill of a month."""

    what: str
    usd: Decimal
    quantities: Mapping[str, Decimal]
    """Quantities by the names of the price list."""

    @property
    def description(self) -> str:
        """The quantities in words."""
        return ", ".join(f"{quantity:,.0f} x {item}" for item, quantity in self.quantities.items() if quantity)


def quantities(endpoints: int, proposals: Decimal | None = None) -> dict[str, Decimal]:
    """A month of a stack with so many endpoints of one variant, by the names of the price list."""
    found: dict[str, Decimal] = {}

    def add(item: str, quantity: Decimal) -> None:
        found[item] = found.get(item, Decimal(0)) + quantity

    for row in catalog.own_use():
        kept = row.item.endswith(" byte") and row.item != "log byte"
        add(row.item, (row.fixed + row.each * endpoints) * (1 if kept else OCCASIONS[row.occasion]))
    for item, quantity in OF_A_PROPOSAL.items():
        add(item, quantity * (PROPOSALS * endpoints if proposals is None else proposals))
    add("queue request", POLLS)
    add("key request", KEY_REQUESTS)
    add("schedule", sum(OCCASIONS.values(), Decimal(0)))
    add("log byte month", found["log byte"] * LOGS_KEPT)
    return found


def own_bill(endpoints: int, *, arm: bool = True, proposals: Decimal | None = None) -> tuple[OwnCost, ...]:
    """A month at the list prices of us-east-1, without free tiers, alarms and dashboard."""
    used = quantities(endpoints, proposals)
    return tuple(
        _line(what, {item: used.get(item, Decimal(0)) for item in items}, arm) for what, items in COST_LINES.items()
    )


def usd_of(lines: Sequence[OwnCost]) -> Decimal:
    """The sum of the lines."""
    return sum((line.usd for line in lines), Decimal(0))


def price(item: str, *, arm: bool = True) -> Decimal:
    """US dollars for one of it; KeyError for what the price list lacks."""
    name = f"{item} {'arm64' if arm else 'x86_64'}" if item == "GB-second" else item
    return catalog.own_prices()[name].usd


def price_date() -> str:
    """The date of the prices; of the oldest, should they differ."""
    return min(row.as_of for row in catalog.own_prices().values())


def _line(what: str, used: Mapping[str, Decimal], arm: bool) -> OwnCost:
    return OwnCost(what, sum((quantity * price(item, arm=arm) for item, quantity in used.items()), Decimal(0)), used)


STANDING = frozenset({Stage.WAITING, Stage.DECLINED, Stage.UNDER_WAY})
"""Stages that belong into each window until something moves."""
MOMENT = timedelta(microseconds=1)
RENEWED = timedelta(days=14)
"""A recommendation of an endpoint that was made so long after a window says nothing about what ran in it."""
ALARM_METRICS = 19
"""Metrics in the stack's own alarms; a test counts them in the template."""
BASIS = (
    "Estimate from list prices of us-east-1 as of {as_of}, without free tiers (docs/cost.md). Functions and endpoints "
    "are counted, the other quantities are those of a stack of this size. Not in it: metrics of single GPUs, roll-back "
    "alarms of changes, a dashboard, the Slack secret."
)
LINES = 1000
"""Recommendations in one file of JSON lines: about 27 MB before it is compressed."""


@dataclass(frozen=True, slots=True)
class Records:
    """Everything that a report is made from."""

    account: str
    region: str
    recommendations: Sequence[Recommendation]
    proposals: Sequence[Proposal]
    ledger: Sequence[LedgerEntry]
    """Entries of the window, and the `estimated` ones before it that they are measured against."""
    occurrences: Sequence[Occurrence]
    unobserved: Sequence[tuple[EndpointRef, Reason]] = ()
    running_cost: RunningCost | None = None
    ended: Mapping[str, datetime] = field(default_factory=dict)
    """When each change ended, by its id, those after the window too."""
    returned: Collection[str] = ()
    """Ids of those that are not in force since they ended."""
    replaced: Collection[str] = ()
    """Ids of those that went not back and save no more."""
    stopped: Mapping[str, Sequence[StoppedTime]] = field(default_factory=dict)
    """When office hours had endpoints stopped, by their name."""
    later: Sequence[LedgerEntry] = ()
    """Entries after the window: they tell what was in force in its last hours, and are in no sum."""
    observed: Observed | None = None
    """What the courses of the recommendations say; None where the recommendations here still have them."""


def make_report(records: Records, start: datetime, end: datetime, made_at: datetime) -> Report:
    """The report of one window, `start` included and `end` not. Nothing of another window is in any figure."""
    recommendations = [
        recommendation for recommendation in records.recommendations if is_evaluated_in(recommendation, start, end)
    ]
    records = replace(records, recommendations=recommendations)
    ends = Ends(records.ended, records.returned)
    parts = {proposal.id: plan_parts(proposal, ends, start, end) for proposal in records.proposals}
    funnel = _funnel(records, parts)
    money = money_table(money_sources(records), funnel, start, end, made_at)
    return Report(
        account=records.account,
        region=records.region,
        start=start,
        end=end,
        made_at=made_at,
        totals=money.totals(),
        money=money,
        recommendations=tuple(recommendations),
        funnel=funnel,
        proposals=tuple(
            proposal for proposal in records.proposals if parts[proposal.id] or _has_lapsed_in(proposal, start, end)
        ),
        ledger=tuple(records.ledger),
        occurrences=tuple(records.occurrences),
        unobserved=tuple(records.unobserved),
        running_cost=records.running_cost,
        price_sources=price_sources(recommendations),
    )


def money_sources(records: Records) -> MoneySources:
    """Everything that the table of money is made from."""
    observed = records.observed
    if observed is None:
        observed = Observed()
        for recommendation in records.recommendations:
            observed.add(recommendation)
    entries = (*records.ledger, *records.later)
    return MoneySources(
        records.account,
        records.region,
        records.recommendations,
        records.proposals,
        entries,
        observed,
        records.returned,
        records.replaced,
        records.stopped,
    )


def is_evaluated_in(recommendation: Recommendation, start: datetime, end: datetime) -> bool:
    """Whether days of the window are among those that it was judged by; one without evidence counts by its time."""
    begin = recommendation.evidence.start if recommendation.evidence else min(recommendation.evaluated_at, end - MOMENT)
    return begin < end and recommendation.evaluated_at >= start and recommendation.evaluated_at - end < RENEWED


def _funnel(records: Records, parts: Mapping[str, Sequence[PlanPart]]) -> tuple[Saving, ...]:
    """The savings that were asked about, and those of the latest recommendations that were not. None is in it twice."""
    asked = [
        (proposal.recommendation, proposal.id, part) for proposal in records.proposals for part in parts[proposal.id]
    ]
    savings = [
        Saving(
            part.stage,
            part.usd_per_month,
            recommendation.ref.name,
            recommendation.owner,
            name,
            recommendation.ref.account,
            recommendation.ref.region,
            part.number,
        )
        for recommendation, name, part in asked
        if part.usd_per_month > 0
    ]
    judged = {(recommendation.ref.name, recommendation.fingerprint) for recommendation, _, _ in asked}
    standing = {recommendation.ref.name for recommendation, _, part in asked if part.stage in STANDING}
    savings += [
        Saving(
            Stage.NOT_ASKED,
            recommendation.identified_usd_per_month,
            recommendation.ref.name,
            recommendation.owner,
            account=recommendation.ref.account,
            region=recommendation.ref.region,
        )
        for recommendation in records.recommendations
        if recommendation.identified_usd_per_month > 0
        and recommendation.ref.name not in standing
        and (recommendation.ref.name, recommendation.fingerprint) not in judged
    ]
    return tuple(
        sorted(savings, key=lambda saving: (-saving.usd_per_month, saving.endpoint, saving.proposal_id, saving.number))
    )


def price_sources(recommendations: Sequence[Recommendation]) -> tuple[str, ...]:
    """Sources of the prices with basis and date, each once."""
    prices = [
        price
        for recommendation in recommendations
        for price in (
            recommendation.price,
            recommendation.chosen_option.price if recommendation.chosen_option else None,
        )
        if price
    ]
    return tuple(sorted({f"{price.source} ({price.basis}, {price.as_of})" for price in prices}))


def _has_lapsed_in(proposal: Proposal, start: datetime, end: datetime) -> bool:
    """Whether it was asked in the window and nobody will answer it any more: it is listed, and in no sum."""
    return proposal.state in LAPSED and start <= proposal.created_at < end


def running_cost(
    used: Sequence[FunctionUse], stack: Stack, variants: int, metrics_each: int, days: float
) -> RunningCost | None:
    """The cost of a window of `days` in which `variants` were read once a day, `metrics_each` metrics for each.

    None when no function was seen at all: nothing is deployed, or its metrics cannot be read.
    """
    if not any(use.invocations for use in used):
        return None
    months = Decimal(str(days)) * 24 / HOURS_PER_MONTH
    alarm_metrics = ALARM_METRICS + (variants if stack.grouped_alarm else 0)
    reads = int(variants * metrics_each * days)
    per_alarm, per_read = price("alarm metric"), price("metric read")
    lines = [
        _functions(used, stack),
        CostLine(
            "alarms",
            alarm_metrics * per_alarm * months,
            f"{alarm_metrics} metrics in alarms at ${per_alarm} a month each",
        ),
        CostLine(
            "metric reads",
            reads * per_read,
            f"about {reads:,} metrics read, {metrics_each} a variant and day, at ${per_read * 1000:f} for 1,000",
        ),
    ]
    rest = [
        line for line in own_bill(variants, arm=stack.arm) if line.what not in {cost_line.what for cost_line in lines}
    ]
    lines += [
        CostLine(line.what, line.usd * months, f"estimated for {variants:,} variants: {line.description} a month")
        for line in rest
    ]
    return RunningCost(tuple(lines), BASIS.format(as_of=price_date()))


def _functions(used: Sequence[FunctionUse], stack: Stack) -> CostLine:
    calls = sum(use.invocations for use in used)
    gb_seconds = sum((Decimal(str(use.duration_ms)) * use.memory_mb / 1024 / 1000 for use in used), Decimal(0))
    per_call, rate = price("function call"), price("GB-second", arm=stack.arm)
    how = (
        f"{calls:,} invocations at ${per_call * 1_000_000:.2f} a million, "
        f"{gb_seconds:,.0f} GB-seconds at ${rate} ({'arm64' if stack.arm else 'x86_64'})"
    )
    return CostLine("functions", gb_seconds * rate + calls * per_call, how)


def slim_recommendation(recommendation: Recommendation) -> Recommendation:
    """The recommendation without what no total, row or sentence of a report needs."""
    options = tuple(
        replace(option, facts={}, notes=(), test_hours=None, policy_changes=()) for option in recommendation.options[:1]
    )
    replay = replace(recommendation.replay, hourly_load=()) if recommendation.replay else None
    evidence = replace(recommendation.evidence, figures={}) if recommendation.evidence else None
    return replace(recommendation, options=options, replay=replay, evidence=evidence, excluded=())


def slim_recommendations(recommendations: Iterable[Recommendation]) -> list[Recommendation]:
    """The recommendations, slim; the course of the requests stays with the largest alone, which are drawn."""
    kept: list[Recommendation] = []
    largest: list[tuple[Decimal, Decimal, int]] = []
    for number, recommendation in enumerate(recommendations):
        kept.append(slim_recommendation(recommendation))
        entry = (recommendation.identified_usd_per_month, recommendation.usd_per_month or Decimal(0), number)
        if len(largest) < SHOWN:
            heapq.heappush(largest, entry)
        else:
            smallest = heapq.heappushpop(largest, entry)[2]
            kept[smallest] = replace(kept[smallest], hourly_requests=())
    return sorted(kept, key=lambda recommendation: recommendation.ref.name)


def slim_proposals(proposals: Iterable[Proposal]) -> list[Proposal]:
    """The proposals with slim recommendations; the course of the requests stays with the largest alone."""
    asked = list(_without_facts(proposals))
    drawn = {id(proposal) for proposal in heapq.nlargest(SHOWN, asked, key=_saving_size)}
    return [proposal if id(proposal) in drawn else _without_drawing(proposal) for proposal in asked]


def _without_facts(proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    for proposal in proposals:
        yield replace(proposal, recommendation=slim_recommendation(proposal.recommendation))


def _saving_size(proposal: Proposal) -> Decimal:
    return proposal.recommendation.identified_usd_per_month


def _without_drawing(proposal: Proposal) -> Proposal:
    return replace(proposal, recommendation=replace(proposal.recommendation, hourly_requests=()))


def json_lines(recommendations: Iterable[Recommendation], dumped: Callable[[Recommendation], str]) -> Iterator[bytes]:
    """The recommendations as JSON lines, in files of `LINES`."""
    for some in batched(map(dumped, recommendations), LINES):
        yield "".join(f"{one}\n" for one in some).encode()
