"""What each kind of hosting costs as a function of traffic, and where one becomes cheaper than another."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rightsizer.advice.answer import AdviceReason, AdvisedOption
from rightsizer.advice.hosting import ASSUMED_S, HOLD_H, pauses_forbidden, serverless_of, serverless_refusal
from rightsizer.advice.rules import Rule
from rightsizer.advice.speed import TARGET_USE
from rightsizer.advice.workload import Workload

SHOWN_POWERS = tuple(float(power) for power in range(2, 9))
"""Powers of ten of requests a month in the table."""
CURVE_POWERS = tuple(2 + step / 10 for step in range(61))
"""The same for a chart."""


def costs_by_traffic(
    workload: Workload, always_on: Sequence[AdvisedOption], powers: Sequence[float] = SHOWN_POWERS
) -> tuple[Mapping[str, Any], ...]:
    """US dollars a month of each kind of hosting at several volumes, with the cheapest; empty without an option."""
    first = next((option for option in always_on if option.cost.usd_per_hour is not None), None)
    if first is None:
        return ()
    return tuple(_row(workload, first, 10.0**power) for power in powers)


def changes(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[tuple[float, float, str]]:
    """Requests a month from which another kind of hosting is the cheapest online, its US dollars, and its name."""
    rows = costs_by_traffic(workload, options, CURVE_POWERS)
    first = next((option for option in options if option.cost.usd_per_hour is not None), None)
    for before, after in pairwise(rows):
        one, other = before["cheapest_online"], after["cheapest_online"]
        if one != other and first is not None:
            at = _crossing(workload, first, (one, other), (before["requests_per_month"], after["requests_per_month"]))
            yield at, _costs(workload, first, at)[other], other


def _from(workload: Workload, first: AdvisedOption, kind: str, other: str) -> Iterator[float]:
    """Requests a month from which the kind costs no more than the other."""
    points = [10.0**power for power in CURVE_POWERS]
    for low, high in pairwise(points):
        before, after = _costs(workload, first, low), _costs(workload, first, high)
        if other in before and before[other] < before[kind] and after[kind] <= after[other]:
            yield _crossing(workload, first, (other, kind), (low, high))


def _crossing(workload: Workload, first: AdvisedOption, names: tuple[str, str], between: tuple[float, float]) -> float:
    """Requests a month, within the bounds, from which the second kind costs no more than the first: by halving."""
    (one, other), (low, high) = names, between
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        costs = _costs(workload, first, middle)
        low, high = (low, middle) if costs[other] <= costs[one] else (middle, high)
    return high


TO_ZERO = "asynchronous or scaled to zero"
ALONE_S = 1.0
"""Seconds that a request takes where nobody says, beside the time that its instance is held; an assumption."""
HALVINGS = 60
"""Halvings after which the bounds of a crossing are as near as numbers of the machine can be."""


def _costs(workload: Workload, first: AdvisedOption, requests: float) -> dict[str, float]:
    """US dollars a month of each kind at so many requests a month."""
    assert first.cost.usd_per_hour is not None
    hourly = float(first.cost.usd_per_hour) / first.count
    rate = next((e.interval.middle for e in first.estimates if e.name.startswith("requests a second")), None)
    number = max(1, -(-requests / (730 * 3600) // (TARGET_USE * rate))) if rate else 1
    seconds = workload.data.seconds_per_request or (1 / rate if rate else ASSUMED_S)
    costs = {"real-time": hourly * 730 * number}
    held = requests * (HOLD_H + (workload.data.seconds_per_request or ALONE_S) / 3600)
    costs[TO_ZERO] = hourly * max(min(730.0, held), number * 730 * (number > 1))
    costs["batch transform once a day"] = hourly * max(30 * 0.1, requests * seconds / 3600)
    if serverless_refusal(workload) is None:
        monthly = serverless_of(workload).monthly(requests)
        if monthly is not None:
            costs["serverless"] = monthly
    return costs


def _row(workload: Workload, first: AdvisedOption, requests: float) -> Mapping[str, Any]:
    rounded = {name: round(value, 2) for name, value in _costs(workload, first, requests).items()}
    online = {name: value for name, value in rounded.items() if not name.startswith("batch")}
    return {"requests_per_month": requests, **rounded, "cheapest_online": min(online, key=lambda name: online[name])}


def break_even(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[AdviceReason]:
    """The traffic at which one kind of hosting becomes cheaper than another, as notes."""
    first = next((option for option in options if option.cost.usd_per_hour is not None), None)
    if first is None:
        return
    even = next(_from(workload, first, "real-time", "serverless"), None)
    if even is not None:
        text = f"serverless is cheaper than one {first.instance_type} below {even:,.0f} requests a month"
        yield AdviceReason(text, Rule.SERVERLESS_BREAK_EVEN)
    alone = next(_from(workload, first, "real-time", TO_ZERO), None)
    if first.accelerators and alone is not None and not pauses_forbidden(workload, options):
        text = f"giving the instance back pays below {alone:,.0f} requests a month that come alone; bursts allow more"
        yield AdviceReason(text, "arithmetic")
