"""Cost Explorer, from the instances that really ran in the sandbox.

Source: API reference of GetCostAndUsage. The bill of an hour is instances x hours x the hosting price; data is up to
24 hours late.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.charges import SERVICES, Charge, Payer, Plan, Ran, charges
from sandbox.prices import PREFIXES, SavingsPlans, hourly
from sandbox.refusals import NotSimulated

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]

LATE = timedelta(hours=24)


def ran_until(world: "World", end: datetime) -> Iterator[Ran]:
    """Everything that ran in the account until `end`."""
    for name, past in world.fleet.ran.items():
        for (since, fleet), (until, _) in zip(past, [*past[1:], (end, {})], strict=True):
            for kind, count in fleet.items():
                if count and since < until:
                    yield Ran(name, kind, since, min(until, end), count)


class CostExplorer:
    """One method for each simulated operation."""

    def __init__(self, world: "World", plans: SavingsPlans) -> None:
        self._world, self._plans = world, plans

    def GetCostAndUsage(self, p: Params) -> Params:
        """Cost by day or month, whole or by up to two of USAGE_TYPE, INSTANCE_TYPE, RECORD_TYPE and a tag."""
        if p["Granularity"] not in {"DAILY", "MONTHLY"}:
            raise NotSimulated(f"GetCostAndUsage with Granularity {p['Granularity']}")
        groups = p.get("GroupBy", [])
        for row in groups:
            if row["Type"] != "TAG" and (row["Type"] != "DIMENSION" or row["Key"] not in GROUPS):
                raise NotSimulated(f"GetCostAndUsage grouped by {row}")
        wanted = _dimensions(p.get("Filter"))
        if unknown := set(wanted) - {*FILTERS, "SERVICE"}:
            raise NotSimulated(f"GetCostAndUsage with a filter by {sorted(unknown)}")
        spans = list(_periods(p["TimePeriod"], p["Granularity"]))
        known = self._world.clock.now - LATE
        found = [one for one in self._charges(spans[0][0], min(spans[-1][1], known)) if _is_wanted(one, wanted)]
        rows = [self._row(span, groups, p["Metrics"], found) for span in spans]
        first, size = int(p.get("NextPageToken") or 0), PAGE
        answer: Params = {"GroupDefinitions": groups, "DimensionValueAttributes": []}
        if first + size < len(rows):
            answer["NextPageToken"] = str(first + size)
        return answer | {"ResultsByTime": rows[first : first + size]}

    def _charges(self, start: datetime, end: datetime) -> Iterator[Charge]:
        """The bill of everything that ran, under the account's active plan."""
        world = self._world
        active = [
            plan for plan in self._plans.plans if plan["state"] == "active" and "SageMaker" in plan["productTypes"]
        ]
        commitment = sum(float(plan["commitment"]) for plan in active)
        payer = Payer(
            world.account,
            world.region,
            PREFIXES.get(world.region, world.region.upper()),
            lambda kind: hourly(world.region, kind),
            Plan(commitment) if commitment else None,
            {name: world.tags.of(endpoint.arn) for name, endpoint in world.fleet.endpoints.items()},
        )
        yield from charges(ran_until(world, end), payer, start, end)

    def _row(
        self, span: tuple[datetime, datetime], groups: list[Params], metrics: list[str], every: list[Charge]
    ) -> Params:
        start, end = span
        sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for one in every:
            if start <= one.start < end:
                amounts = sums[tuple(_group(one, row) for row in groups)]
                for at, amount in enumerate((one.listed, one.effective, one.hours)):
                    amounts[at] += amount
        row: Params = {
            "TimePeriod": {"Start": f"{start:%Y-%m-%d}", "End": f"{end:%Y-%m-%d}"},
            "Total": {},
            "Groups": [],
            "Estimated": self._world.clock.now - LATE < end,
        }
        if not groups:
            row["Total"] = _amounts(metrics, *sums.get((), (0.0, 0.0, 0.0)))
            return row
        row["Groups"] = [{"Keys": list(keys), "Metrics": _amounts(metrics, *sums[keys])} for keys in sorted(sums)]
        return row


GROUPS: Mapping[str, Callable[[Charge], str]] = {
    "USAGE_TYPE": lambda one: one.usage_type,
    "INSTANCE_TYPE": lambda one: one.usage_type.rpartition(":")[2],
    "RECORD_TYPE": lambda one: one.kind,
}
FILTERS: Mapping[str, Callable[[Charge], str]] = {
    "RECORD_TYPE": lambda one: one.kind,
    "REGION": lambda one: one.region,
    "LINKED_ACCOUNT": lambda one: one.account,
    "USAGE_TYPE": lambda one: one.usage_type,
}
PAGE = 200
"""Periods of one answer [assumed]: AWS publishes no number."""


def _group(one: Charge, row: Params) -> str:
    if row["Type"] == "TAG":
        return f"{row['Key']}${one.tags.get(row['Key'], '')}"
    return GROUPS[row["Key"]](one)


def _dimensions(wanted: Params | None) -> dict[str, list[str]]:
    """The values that are wanted, by dimension."""
    if not wanted:
        return {}
    parts = wanted["And"] if list(wanted) == ["And"] else [wanted]
    if any(list(part) != ["Dimensions"] for part in parts):
        raise NotSimulated(f"GetCostAndUsage with the filter {wanted}")
    return {part["Dimensions"]["Key"]: part["Dimensions"]["Values"] for part in parts}


def _is_wanted(one: Charge, wanted: dict[str, list[str]]) -> bool:
    """Whether a charge passes the filter; a value that nothing has matches nothing, and is no error."""
    if "SERVICE" in wanted and SERVICES.get(one.service, one.service) not in wanted["SERVICE"]:
        return False
    return all(read(one) in wanted[key] for key, read in FILTERS.items() if key in wanted)


def _amounts(metrics: list[str], listed: float, effective: float, hours: float) -> Params:
    known = {"UnblendedCost": listed, "AmortizedCost": effective, "UsageQuantity": hours}
    if unknown := [name for name in metrics if name not in known]:
        raise NotSimulated(f"GetCostAndUsage with the metrics {unknown}")
    return {
        name: {"Amount": f"{known[name]:.10f}", "Unit": "Hrs" if name == "UsageQuantity" else "USD"} for name in metrics
    }


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _periods(span: Params, granularity: str) -> Iterator[tuple[datetime, datetime]]:
    start, end = _day(span["Start"]), _day(span["End"])
    while start < end:
        step = (
            start + timedelta(days=1)
            if granularity == "DAILY"
            else (start.replace(day=1) + timedelta(days=32)).replace(day=1)
        )
        yield start, min(step, end)
        start = min(step, end)
