"""What the look-back would have meant for an option: its load hour by hour, and what came too late."""

from collections.abc import Sequence

from rightsizer.domain.demand import Plan, Served
from rightsizer.domain.recommendation import Replay
from rightsizer.domain.usage import SLOT_S, DayDigest

PER_HOUR = 3600 // SLOT_S


def strain_of(
    days: Sequence[DayDigest],
    service_s: float,
    plan: Plan,
    then: Served,
    today: Served,
    copies: int,
    objective_s: float,
    memory_margin_gib: float | None,
) -> Replay:
    """The replay of an option with `service_s` seconds a request: `then` by its plan, `today` by today's.

    Each request was served `copies` times. Load is requests times service time over worker time, 0..1; an hour without
    a datapoint has none.
    """
    loads: list[float | None] = []
    for digest in days:
        for hour in range(24):
            known = [v for v in digest.requests[hour * PER_HOUR : (hour + 1) * PER_HOUR] if v is not None]
            room = 3600 * plan.counts[hour] * max(plan.workers, 1)
            loads.append(round(sum(known) * service_s / room, 4) if known else None)
    seen = [load for load in loads if load is not None]
    return Replay(
        days=len({d.day for d in days}),
        hours_above_80=float(sum(1 for v in seen if v > 0.8)),
        hours_above_100=float(sum(1 for v in seen if v > 1.0)),
        worst_p95_s=round(then.worst_p95_s, 4) or None,
        memory_margin_gib=round(memory_margin_gib, 2) if memory_margin_gib is not None else None,
        requests_over_objective=round(then.late / copies),
        hourly_load=tuple(loads),
        requests=round(then.requests / copies),
        over_objective_today=round(today.late / copies),
        objective_s=round(objective_s, 4),
    )
