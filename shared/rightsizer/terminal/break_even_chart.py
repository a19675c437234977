"""The chart of `rightsizer advise --png`: costs of hosting over traffic, and where the cheapest kind changes."""

from rightsizer.advice.answer import Advice
from rightsizer.advice.break_even import CURVE_POWERS, changes, costs_by_traffic
from rightsizer.advice.workload import Workload
from rightsizer.errors import InputError
from rightsizer.render.pictures import Line, LineChart

CHEAPEST, REQUESTS = "cheapest_online", "requests_per_month"


def break_even_chart(workload: Workload, answer: Advice) -> LineChart:
    """The chart of a service; InputError where the workload is a job or nothing holds the model."""
    rows = costs_by_traffic(workload, answer.options, CURVE_POWERS) if answer.costs_by_traffic else ()
    if not rows:
        raise InputError("a chart over traffic belongs to a service that something can hold; ask for --task real-time")
    names = [name for name in rows[0] if name not in (REQUESTS, CHEAPEST)]
    first = next(option for option in answer.options if option.cost.usd_per_hour is not None)
    return LineChart(
        f"What hosting costs over traffic, real-time on {first.instance_type}",
        "requests a month",
        "US dollars a month",
        [Line(name, [(row[REQUESTS], row[name]) for row in rows if row[name] > 0]) for name in names],
        [(at, usd, f"{name} from {at:,.0f}") for at, usd, name in changes(workload, answer.options)],
        f"On-Demand list prices, {first.cost.region}, {first.cost.as_of}; batch answers nobody who waits",
    )
