"""What rightsizer itself costs: quantities that were counted, times list prices. Pure.

`bench.own_bill` counts what a sweep, a tick and a report use, and keeps it in the catalogue. What cannot be counted
on a simulated account (pollers of a queue, key requests, the way of a proposal) is assumed here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rightsizer import catalog
from rightsizer.domain.price import HOURS_PER_MONTH

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
LINES: Mapping[str, tuple[str, ...]] = {
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
    """By the names of the price list."""

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
        _line(what, {item: used.get(item, Decimal(0)) for item in items}, arm) for what, items in LINES.items()
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
