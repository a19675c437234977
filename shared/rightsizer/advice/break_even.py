"""What each kind of hosting costs as a function of traffic, and where one becomes cheaper than another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rightsizer.advice.answer import AdviceReason, AdvisedOption
from rightsizer.advice.hosting import ASSUMED_S, HOLD_H, serverless_of, serverless_refusal
from rightsizer.advice.rules import Rule
from rightsizer.advice.speed import TARGET_USE
from rightsizer.advice.workload import Workload
from rightsizer.recommender.serverless import break_even_requests

SHOWN_POWERS = tuple(float(power) for power in range(2, 9))
"""Powers of ten of requests a month in the table."""
CURVE_POWERS = tuple(2 + step / 10 for step in range(61))
"""The same for a chart."""


def costs_by_traffic(
    workload: Workload, always_on: Sequence[AdvisedOption], powers: Sequence[float] = SHOWN_POWERS
) -> tuple[Mapping[str, Any], ...]:
    """US dollars a month of each kind of hosting at several volumes, with the cheapest; empty without an option."""
    first = next((each for each in always_on if each.cost.usd_per_hour is not None), None)
    if first is None or first.cost.usd_per_hour is None:
        return ()
    hourly = float(first.cost.usd_per_hour) / first.count
    return tuple(_row(workload, hourly, first, 10.0**power) for power in powers)


def _row(workload: Workload, hourly: float, first: AdvisedOption, requests: float) -> Mapping[str, Any]:
    rate = next((e.interval.middle for e in first.estimates if e.name.startswith("requests a second")), None)
    number = max(1, -(-requests / (730 * 3600) // (TARGET_USE * rate))) if rate else 1
    seconds = workload.data.seconds_per_request or (1 / rate if rate else ASSUMED_S)
    costs = {"real-time": hourly * 730 * number}
    costs["asynchronous or scaled to zero"] = hourly * max(min(730.0, requests * HOLD_H), number * 730 * (number > 1))
    costs["batch transform once a day"] = hourly * max(30 * 0.1, requests * seconds / 3600)
    if serverless_refusal(workload) is None:
        monthly = serverless_of(workload).monthly(requests)
        if monthly is not None:
            costs["serverless"] = monthly
    rounded = {name: round(value, 2) for name, value in costs.items()}
    online = {name: value for name, value in rounded.items() if not name.startswith("batch")}
    return {"requests_per_month": requests, **rounded, "cheapest_online": min(online, key=lambda name: online[name])}


def break_even(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[AdviceReason]:
    """The traffic at which one kind of hosting becomes cheaper than another, as notes."""
    first = next((each for each in options if each.cost.usd_per_hour is not None), None)
    if first is None or first.cost.usd_per_hour is None:
        return
    month = float(first.cost.usd_per_hour) / first.count * 730
    if serverless_refusal(workload) is None and (each := serverless_of(workload).usd_per_request):
        even = break_even_requests(month, each)
        text = f"serverless is cheaper than one {first.instance_type} below {even:,.0f} requests a month"
        yield AdviceReason(text, Rule.SERVERLESS_BREAK_EVEN)
    alone = 730 / (HOLD_H + (workload.data.seconds_per_request or 1.0) / 3600)
    if first.accelerators:
        text = f"giving the instance back pays below {alone:,.0f} requests a month that come alone; bursts allow more"
        yield AdviceReason(text, "arithmetic")
