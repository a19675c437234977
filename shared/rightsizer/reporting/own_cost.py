"""From what the functions used to what rightsizer costs. An estimate from list prices, never a bill."""

from collections.abc import Sequence
from decimal import Decimal

from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.running import CostLine, FunctionUse, RunningCost, Stack

AS_OF = "2026-11-20"
PER_GB_SECOND = {True: Decimal("0.0000133334"), False: Decimal("0.0000166667")}
"""US dollars for a GB-second, arm64 and x86_64; first tier, us-east-1 (AWS Lambda pricing)."""
PER_MILLION_REQUESTS = Decimal("0.20")
"""US dollars (AWS Lambda pricing)."""
PER_THOUSAND_METRICS = Decimal("0.01")
"""US dollars for 1,000 metrics asked of GetMetricData; no free tier (Amazon CloudWatch pricing)."""
PER_ALARM_METRIC = Decimal("0.10")
"""US dollars a month for a metric in a standard alarm, and for each metric that a query alarm analyses."""
ALARM_METRICS = 11
"""Metrics in the stack's own alarms; a test counts them in the template."""
BASIS = (
    f"Estimate from list prices of us-east-1 as of {AS_OF} (AWS Lambda and Amazon CloudWatch pricing), without free "
    "tiers. Not in it: logs, custom metrics, metrics of single GPUs, roll-back alarms of changes, table, bucket, "
    "queues, topic, events."
)


def running_cost(
    used: Sequence[FunctionUse], stack: Stack, variants: int, metrics_each: int, days: float
) -> RunningCost | None:
    """The cost of a window of `days` in which `variants` were read once a day, `metrics_each` metrics for each.

    None when no function was seen at all: nothing is deployed, or its metrics cannot be read.
    """
    if not any(one.invocations for one in used):
        return None
    months = Decimal(str(days)) * 24 / HOURS_PER_MONTH
    alarm_metrics = ALARM_METRICS + (variants if stack.grouped_alarm else 0)
    reads = int(variants * metrics_each * days)
    lines = [
        _functions(used, stack),
        CostLine(
            "alarms",
            alarm_metrics * PER_ALARM_METRIC * months,
            f"{alarm_metrics} metrics in alarms at ${PER_ALARM_METRIC} a month each",
        ),
        CostLine(
            "metric reads",
            reads * PER_THOUSAND_METRICS / 1000,
            f"about {reads:,} metrics read, {metrics_each} a variant and day, at ${PER_THOUSAND_METRICS} for 1,000",
        ),
    ]
    return RunningCost(tuple(lines), BASIS)


def _functions(used: Sequence[FunctionUse], stack: Stack) -> CostLine:
    calls = sum(one.invocations for one in used)
    gb_seconds = sum((Decimal(str(one.duration_ms)) * one.memory_mb / 1024 / 1000 for one in used), Decimal(0))
    rate = PER_GB_SECOND[stack.arm]
    usd = gb_seconds * rate + calls * PER_MILLION_REQUESTS / 1_000_000
    how = (
        f"{calls:,} invocations at ${PER_MILLION_REQUESTS} a million, "
        f"{gb_seconds:,.0f} GB-seconds at ${rate} ({'arm64' if stack.arm else 'x86_64'})"
    )
    return CostLine("functions", usd, how)
