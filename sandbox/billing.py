"""Cost Explorer, from the instances that really ran in the sandbox.

Sources: API reference of GetCostAndUsage and GetSavingsPlansUtilization. The bill of an hour is instances x
hours x the hosting price; data is up to 24 hours late, and DataUnavailableException answers where there is none.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.prices import PREFIXES, SavingsPlans, hourly
from sandbox.refusals import AwsRefusal, NotSimulated, invalid
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]

USED = "GetSavingsPlansUtilization"
LATE = timedelta(hours=24)


class CostExplorer:
    """One method for each simulated operation."""

    def __init__(self, world: "World", plans: SavingsPlans) -> None:
        self._world, self._plans = world, plans

    def GetCostAndUsage(self, p: Params) -> Params:
        """Cost of SageMaker by day or month, whole or by USAGE_TYPE or INSTANCE_TYPE."""
        if p["Granularity"] not in {"DAILY", "MONTHLY"}:
            raise NotSimulated(f"GetCostAndUsage with Granularity {p['Granularity']}")
        groups = [row["Key"] for row in p.get("GroupBy", [])]
        if groups not in ([], ["USAGE_TYPE"], ["INSTANCE_TYPE"]):
            raise NotSimulated(f"GetCostAndUsage grouped by {groups}")
        if not _only_sagemaker(p.get("Filter")):
            raise NotSimulated("GetCostAndUsage with a filter other than SERVICE = Amazon SageMaker")
        rows = [
            self._row(start, end, groups, p["Metrics"]) for start, end in _periods(p["TimePeriod"], p["Granularity"])
        ]
        return {"ResultsByTime": rows, "GroupDefinitions": p.get("GroupBy", []), "DimensionValueAttributes": []}

    def _row(self, start: datetime, end: datetime, groups: list[str], metrics: list[str]) -> Params:
        known = min(end, self._world.clock.now - LATE)
        hours = self._hours(start, known)
        row: Params = {
            "TimePeriod": {"Start": f"{start:%Y-%m-%d}", "End": f"{end:%Y-%m-%d}"},
            "Total": {},
            "Groups": [],
            "Estimated": known < end,
        }
        if not groups:
            cost = sum(count * hourly(self._world.region, kind) for kind, count in hours.items())
            row["Total"] = _amounts(metrics, cost, sum(hours.values()))
            return row
        prefix = PREFIXES.get(self._world.region, self._world.region.upper())
        for kind, count in sorted(hours.items()):
            key = f"{prefix}-Host:{kind}" if groups == ["USAGE_TYPE"] else kind
            cost = count * hourly(self._world.region, kind)
            row["Groups"].append({"Keys": [key], "Metrics": _amounts(metrics, cost, count)})
        return row

    def _hours(self, start: datetime, end: datetime) -> dict[str, float]:
        """Instance hours by type."""
        found: dict[str, float] = defaultdict(float)
        for past in self._world.fleet.ran.values():
            for (since, fleet), (until, _) in zip(past, [*past[1:], (end, {})], strict=True):
                span = (min(until, end) - max(since, start)).total_seconds() / 3600
                if span > 0:
                    for kind, count in fleet.items():
                        found[kind] += count * span
        return dict(found)

    def GetSavingsPlansUtilization(self, p: Params) -> Params:
        """How much of the commitment was used; an error when there is no plan."""
        active = [plan for plan in self._plans.plans if plan["state"] == "active"]
        if not active and on(USED, "no data"):
            raise AwsRefusal("DataUnavailableException", "The requested data is unavailable.")
        commitment = sum(float(plan["commitment"]) for plan in active if _matches(plan, p.get("Filter")))
        start, end = _day(p["TimePeriod"]["Start"]), _day(p["TimePeriod"]["End"])
        today = self._world.clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
        if end >= today and on(USED, "future"):  # API text: "before the current date"; [assumed] text
            raise invalid("The end date must be before the current date.")
        if start < today - timedelta(days=396) and on(USED, "old"):  # API text: within 13 months; [assumed] text
            raise invalid("The start date must be within 13 months.")
        total = commitment * (end - start).total_seconds() / 3600
        spent = sum(count * hourly(self._world.region, kind) for kind, count in self._hours(start, end).items())
        used = min(total, spent)
        return {
            "Total": {
                "Utilization": {
                    "TotalCommitment": f"{total:.6f}", "UsedCommitment": f"{used:.6f}",
                    "UnusedCommitment": f"{total - used:.6f}",
                    "UtilizationPercentage": f"{100 * used / total:.2f}" if total else "0",
                }
            }
        }  # fmt: skip


BILLED_AS = {"SageMaker": "SageMakerSavingsPlans", "Compute": "ComputeSavingsPlans"}
"""Cost Explorer's word for a plan type, the bill's, where DescribeSavingsPlans has its own."""


def _matches(plan: Params, wanted: Params | None) -> bool:
    """Whether the filter covers the plan; a value that nothing has matches nothing, and is no error."""
    if not wanted:
        return True
    row = wanted.get("Dimensions") or {}
    known = {
        "SAVINGS_PLAN_ARN": plan["savingsPlanArn"],
        "SAVINGS_PLANS_TYPE": BILLED_AS.get(plan["savingsPlanType"], plan["savingsPlanType"]),
        "REGION": plan["region"],
        "PAYMENT_OPTION": plan["paymentOption"],
    }
    if list(wanted) != ["Dimensions"] or row.get("Key") not in known:
        raise NotSimulated(f"GetSavingsPlansUtilization with the filter {wanted}")
    return known[row["Key"]] in row["Values"]


def _amounts(metrics: list[str], cost: float, usage: float) -> Params:
    return {
        name: {"Amount": f"{usage:.6f}", "Unit": "Hrs"}
        if name == "UsageQuantity"
        else {"Amount": f"{cost:.6f}", "Unit": "USD"}
        for name in metrics
    }


def _only_sagemaker(wanted: Params | None) -> bool:
    if not wanted:
        return True
    row = wanted.get("Dimensions") or {}
    return list(wanted) == ["Dimensions"] and row.get("Key") == "SERVICE" and row.get("Values") == ["Amazon SageMaker"]


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
