"""Verdict from the served requests: a change is proven, rolled back or watched on; an endpoint at zero has to wake."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rightsizer.changes.baseline import (
    BAD_REQUESTS,
    BAD_SHARE,
    BASELINE_FACTOR,
    BREACHES,
    ERRORS,
    FACTOR,
    FLOOR_S,
    HOST_MEMORY,
    LATENCY,
    LEAST,
    NO_CAPACITY,
    OFTEN,
    PEAK,
    PERIOD_S,
    REQUESTS,
    SIGNALS,
    STUCK_S,
    USUAL,
    WAKING_S,
    WINDOW,
    ServicePeriod,
    Windows,
    baseline,
    breaches,
    periods_by_day,
    periods_of,
    queue_waits,
    requests_by_hour,
    serving_figures,
    slow_before_s,
    usual_p95_s,
    watched_metrics,
)
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.endpoint import ERROR_TAG
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import SLOW_FACTOR, ChangeLimits
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.tags import allowed_errors
from rightsizer.domain.usage import MetricWindow, unread_reason

__all__ = [
    "ERRORS",
    "HOST_MEMORY",
    "LATENCY",
    "PERIOD_S",
    "REQUESTS",
    "SIGNALS",
    "baseline",
    "proof_verdict",
    "watched_metrics",
]


type Periods = Sequence[ServicePeriod]
"""Periods of one variant, or of one inference component."""
OF_COMPONENT = (REQUESTS, NO_CAPACITY)
"""What is read of an inference component that may sleep."""
SERVED_WITHIN = 6
"""Periods after the last one without an instance in which the requests that waited have to be served."""


@dataclass(frozen=True, slots=True)
class WakeUp:
    """One start from no instance."""

    first: ServicePeriod
    periods: int
    """Periods from the first to the last in which requests waited without an instance, or failed."""
    wait_s: float
    """The longest that a request waited, as far as it was published."""
    expired: float
    """Requests that expired meanwhile."""
    served: bool
    """Whether requests left the queue afterwards."""


def sleeps(change: Change) -> bool:
    """Whether the change lets the fleet go to no instance, so that its proof is a wake-up."""
    return change.option.kind is OptionKind.SCALE_TO_ZERO


def wake_ups(rows: Periods, queued: bool = True) -> list[WakeUp]:
    """The wake-ups of these periods, oldest first; the last one may still go on.

    Without a queue (`queued`) a wake-up lasts from the first failing call to the last one before a request was served.
    """
    found: list[WakeUp] = []
    start, end = None, 0
    for i, row in enumerate(rows):
        if row.is_asleep:
            start, end = i if start is None else start, i + 1
        if start is not None and (not row.is_asleep if queued else row.requests > 0):
            found.append(_wake_up(rows, start, end))
            start = None
    return found if start is None else [*found, _wake_up(rows, start, end)]


def _wake_ups_since(change: Change, rows: Periods) -> list[WakeUp]:
    return wake_ups(rows, queued=not change.option.restart_needed)


def _wake_up(rows: Periods, start: int, end: int) -> WakeUp:
    after = rows[end - 1 : end + SERVED_WITHIN]  # a period can end awake
    waited = [p.oldest_s for p in (*rows[start:end], *after) if p.oldest_s is not None]
    return WakeUp(
        first=rows[start],
        periods=end - start,
        wait_s=max(waited, default=float(PERIOD_S * (end - start))),
        expired=sum(p.expired for p in (*rows[start : end - 1], *after)),
        served=any(p.requests > 0 for p in after),
    )


def waking_verdict(change: Change, rows: Periods) -> ProofVerdict | None:
    """Bad where nothing wakes it for half an hour, or requests expired meanwhile; None elsewhere."""
    if not sleeps(change):
        return None
    for wake in _wake_ups_since(change, rows):
        since = f"since {time_text(wake.first.at)}"
        if PERIOD_S * (wake.periods - 1) > WAKING_S:
            did = "failed" if change.option.restart_needed else "waited"
            text = f"requests {did} without an instance {since}, for more than {WAKING_S / 60:.0f} minutes"
        elif wake.expired > 0:
            text = f"{wake.expired:.0f} requests expired in the queue while an instance started, {since}"
        else:
            continue
        return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)
    return None


def unproven_wake_sentence(change: Change, parts: Sequence[Periods]) -> str:
    """Why no wake-up is proven yet; empty where one is, or none is asked for. `parts` are what sleeps, one by one."""
    if not sleeps(change) or any(wake.served for rows in parts for wake in _wake_ups_since(change, rows)):
        return ""
    return "no request came while it had no instance, so that nobody knows whether it wakes"


def wake_figures(change: Change, parts: Sequence[Periods]) -> dict[str, float]:
    """The longest wait of a wake-up that was served, as `Change.measured` has it; nothing where it did not wake."""
    waits = (
        [wake.wait_s for rows in parts for wake in _wake_ups_since(change, rows) if wake.served]
        if sleeps(change)
        else []
    )
    return {"wake_s": max(waits)} if waits else {}


def wake_text(change: Change, parts: Sequence[Periods]) -> str:
    """Clause on how often the endpoint woke since the change; empty where it never did."""
    served = [wake for rows in parts for wake in _wake_ups_since(change, rows) if wake.served] if sleeps(change) else []
    if not served:
        return ""
    times = "once" if len(served) == 1 else f"{len(served)} times"
    longest = max(wake.wait_s for wake in served) / 60
    if change.option.restart_needed:
        return f"; it woke {times}, and requests failed for {longest:.0f} minutes at most"
    return f"; it woke {times} for a request, which waited {longest:.0f} minutes at most"


MEMORY_LIMIT = 97.0
ON_TARGET = 0.5
"""Of the instance hours of a fleet with pools, the share that may run elsewhere while the first pool is proven."""
PROBATION_OF_WEEKDAYS = timedelta(days=7)
"""A schedule by days of the week is watched for this long at least: each of its counts has to have run."""
STILL_LATE = 0.05
"""Share of the periods whose p95 may miss the objective after growth: an objective for the p95 lets as many pass."""


def proof_verdict(change: Change, windows: Windows, now: datetime, limits: ChangeLimits) -> ProofVerdict:
    """The verdict on an applied change; `windows` cover the time since it was turned, one a variant. Total."""
    since, periods = change.turned_at or now, dict[str, list[ServicePeriod]]()
    bad: ProofVerdict | None = None
    for window in windows:
        if isinstance(window, MetricWindow):
            own = [p for p in periods_of(window) if p.at >= since]
            bad = bad or _bad_verdict(change, window.variant, own)
            periods.setdefault(window.variant, []).extend(own)
    verdict = bad or _verdict(change, windows, periods, now, limits)
    return replace(verdict, figures={**serving_figures(windows), **wake_figures(change, [*periods.values()])})


def _verdict(
    change: Change, windows: Windows, by_variant: Mapping[str, list[ServicePeriod]], now: datetime, limits: ChangeLimits
) -> ProofVerdict:
    """The verdict on what serves no worse than before, by the periods of each variant since it was turned."""
    since, parts = change.turned_at or now, [*by_variant.values()]
    seen = {name: _counted_periods(change, name, by_variant.get(name, [])) for name in _changed_variants(change)}
    requests = min(sum(p.requests for p in periods) for periods in seen.values())
    elsewhere = _fallback_sentence(change) or _still_late_sentence(change, seen)
    elsewhere = elsewhere or unproven_wake_sentence(change, parts)
    enough = (not elsewhere and sleeps(change)) or (
        not elsewhere
        and all(
            sum(p.requests for p in periods) >= limits.proof_requests or _has_served_peak(change, name, periods)
            for name, periods in seen.items()
        )
    )
    hours = (now - since).total_seconds() / 3600
    missed = unread_reason(windows)
    if missed is not None:
        if now - since < limits.proof_limit:
            text = f"{requests:,.0f} requests were seen in {hours:.1f} h, but not all could be read: {missed.sentence}"
            return ProofVerdict("not-yet", Reason(Code.UNPROVEN, text))
        text = f"not all could be read for {hours / 24:.0f} days: {missed.sentence}; applied, unproven"
        return ProofVerdict("given-up", Reason(Code.UNPROVEN, text))
    probation = max(limits.probation, PROBATION_OF_WEEKDAYS) if change.option.target.day_counts else limits.probation
    if enough and now - since >= probation:
        text = f"{requests:,.0f} requests served well in {hours:.1f} h on {change.option.target.instance_type}"
        text += wake_text(change, parts)
        return ProofVerdict("proven", Reason(Code.PROVEN, text))
    if not enough and now - since >= limits.proof_limit:
        text = elsewhere or f"only {requests:,.0f} requests in {hours / 24:.0f} days"
        return ProofVerdict("given-up", Reason(Code.UNPROVEN, f"{text}; applied, unproven"))
    watched = f"it is watched for {probation.total_seconds() / 3600:g} h"
    wanted = watched if enough else elsewhere or f"the proof takes {limits.proof_requests:,}"
    return ProofVerdict(
        "not-yet", Reason(Code.UNPROVEN, f"{requests:,.0f} requests served well in {hours:.1f} h; {wanted}")
    )


def _changed_variants(change: Change) -> set[str]:
    """The variants that must serve: what the others serve proves nothing about new hardware (law 2)."""
    old = {v.name: (v.instance_type, v.count) for v in (change.before.variants if change.before else ())}
    moved = {v.name for v in change.plan.after if old.get(v.name) != (v.instance_type, v.count)}
    return moved | {change.variant}


def _counted_periods(change: Change, variant: str, periods: Sequence[ServicePeriod]) -> list[ServicePeriod]:
    """The variant's periods that count for the proof: those with a latency where a p95 limit is set."""
    judged = latency_limit_s(change, variant) is not None
    return [p for p in periods if p.p95_s is not None or not judged]


def _fallback_sentence(change: Change) -> str:
    """Why served requests prove nothing about the new type: most hours ran on another pool. Empty where they do not."""
    if change.off_target_share <= ON_TARGET:
        return ""
    kind = change.option.target.instance_type
    hours = change.fallback_hours + change.unseen_hours
    return f"{hours:.1f} of {change.instance_hours:.1f} instance hours are not known to have run on {kind}"


def _still_late_sentence(change: Change, seen: Mapping[str, Sequence[ServicePeriod]]) -> str:
    """Why growth is not proven yet: the p95 is still above the objective. Empty where it is not, or none is known."""
    objective = change.objective_p95_s
    if not change.option.grows or objective is None:
        return ""
    known = [p.p95_s for periods in seen.values() for p in periods if p.p95_s is not None and p.requests >= 1]
    if not known:
        return f"no p95 was published since it grew, so nobody knows whether it holds {objective * 1000:.0f} ms"
    late = sum(p95 > objective for p95 in known)
    if late <= STILL_LATE * len(known):
        return ""
    return f"p95 was above the objective of {objective * 1000:.0f} ms in {late} of {len(known)} periods since it grew"


def _has_served_peak(change: Change, variant: str, periods: Sequence[ServicePeriod]) -> bool:
    """Whether one hour had half the requests of the variant's usual daily peak hour, on one with few requests."""
    baseline = change.baseline.get(f"{PEAK}/{variant}", change.baseline.get(PEAK, 0.0))
    return baseline > 0 and max(requests_by_hour(periods).values(), default=0.0) >= baseline / 2


def _bad_verdict(change: Change, variant: str, periods: Sequence[ServicePeriod]) -> ProofVerdict | None:
    windows = (periods[start : start + WINDOW] for start in range(len(periods)))
    found = (_errors_verdict(change, w) or _refused_verdict(change, w) or _memory_verdict(w) for w in windows)
    bad = next((verdict for verdict in found if verdict is not None), None)
    bad = bad or latency_verdict(change, variant, periods)
    return bad or waking_verdict(change, periods) or queue_verdict(change, periods)


def _errors_verdict(change: Change, window: Sequence[ServicePeriod]) -> ProofVerdict | None:
    requests, errors = sum(p.requests for p in window), sum(p.errors for p in window)
    declared = allowed_errors(change.before.tags) if change.before else None
    limit = max(BAD_SHARE if declared is None else declared, BASELINE_FACTOR * change.baseline.get("error_share", 0.0))
    if errors < BAD_REQUESTS or errors <= limit * max(requests, errors):
        return None
    text = f"{errors:.0f} of {requests:.0f} requests failed within 30 minutes from {time_text(window[0].at)}"
    if declared is not None:
        text += f"; the tag {ERROR_TAG} allows {100 * declared:g} %"
    return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)


def _refused_verdict(change: Change, window: Sequence[ServicePeriod]) -> ProofVerdict | None:
    """Bad where it refuses far more than in the worst half hour before; None where nobody kept what was refused then.

    So it is of changes that an older release began.
    """
    requests, refused = sum(p.requests for p in window), sum(p.refused for p in window)
    usual = change.baseline.get("refused_share")
    if (
        usual is None
        or refused < BAD_REQUESTS
        or refused <= max(BAD_SHARE, BASELINE_FACTOR * usual) * max(requests, refused)
    ):
        return None
    if change.option.adds_only:
        return None  # what refused before refuses no less
    text = f"{refused:.0f} of {requests:.0f} requests were answered by 4XX within 30 minutes from"
    text += f" {time_text(window[0].at)}, before the change at most {100 * usual:.0f} %: a full server answers 429"
    return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)


def _memory_verdict(window: Sequence[ServicePeriod]) -> ProofVerdict | None:
    high = [p.memory for p in window if p.memory is not None and p.memory > MEMORY_LIMIT]
    if len(high) < BREACHES:
        return None
    text = f"memory was at {max(high):.0f} % in {len(high)} of {len(window)} periods; the limit is {MEMORY_LIMIT:.0f} %"
    return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.MEMORY)


def latency_limit_s(change: Change, variant: str) -> float | None:
    """The p95 that a variant must keep, seconds: the objective, or a multiple of what was usual; None if unknown.

    Growth begins above the objective: it goes back only where it serves far worse than before.
    """
    if change.option.adds_only:
        return None  # going back to what was slow would help nobody
    baseline, objective = usual_p95_s(change.baseline, variant), change.objective_p95_s
    usual = SLOW_FACTOR * baseline if baseline > 0 else None
    return max(objective, usual or 0.0) if objective and change.option.grows else objective or usual


def latency_verdict(change: Change, variant: str, periods: Sequence[ServicePeriod]) -> ProofVerdict | None:
    """Verdict on a variant that serves too slowly; None while it keeps its limit, or no worse than before."""
    limit = latency_limit_s(change, variant)
    if limit is None:
        return None
    habit = slow_before_s(change.baseline, variant)
    if habit <= limit:
        kind = "objective" if change.objective_p95_s == limit else "bound, twice the p95 of before,"
        return _half_hour_verdict(periods, limit, f"the {kind} is")
    most = SLOW_FACTOR * habit
    return _half_hour_verdict(periods, most, "the bound, twice the slowest half hours of before, is") or _often_verdict(
        periods, limit, change.baseline.get(f"{OFTEN}/{variant}", 0.0)
    )


def _half_hour_verdict(periods: Sequence[ServicePeriod], limit: float, name: str) -> ProofVerdict | None:
    for start in range(len(periods)):
        window = periods[start : start + WINDOW]
        slow = [p.p95_s for p in window if p.p95_s is not None and p.requests >= 1 and p.p95_s > limit]
        if len(slow) >= BREACHES and sum(p.requests for p in window) >= BAD_REQUESTS:
            share = f"{len(slow)} of {len(window)} periods"
            return _bad(f"p95 was {max(slow) * 1000:.0f} ms in {share}; {name} {limit * 1000:.0f} ms")
    return None


def _often_verdict(periods: Sequence[ServicePeriod], limit: float, usual: float) -> ProofVerdict | None:
    """Bad where a day since the change has far more slow periods than the days before it had."""
    most = max((breaches(day, limit) for day in periods_by_day(periods)), default=0)
    if most <= BASELINE_FACTOR * max(usual, 1.0):
        return None
    return _bad(
        f"p95 was over {limit * 1000:.0f} ms in {most} periods of a day; the fleet before had {usual:.0f} on such a day"
    )


def _bad(text: str) -> ProofVerdict:
    return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)


def queue_verdict(change: Change, rows: Sequence[ServicePeriod]) -> ProofVerdict | None:
    """Verdict on a queue that empties too slowly; None for a good queue or an unknown baseline.

    A fleet that sleeps is judged in any case: there the queue alone shows that nothing wakes.
    """
    baseline = change.baseline.get(USUAL, 0.0 if _may_sleep(change) else None)
    if baseline is None or change.option.adds_only:
        return None
    limit = max(FACTOR * baseline, WAKING_S if _may_sleep(change) else FLOOR_S)
    for first, seconds, backlog in queue_waits(rows):
        if backlog >= LEAST and seconds > limit:
            count = max(1, sum(v.count for v in change.plan.after))
            said = "nothing was worked off" if seconds >= STUCK_S else f"a request waited {seconds:.0f} s"
            each = f"{backlog / count:.1f} per instance"
            text = f"{backlog:.0f} requests were in the queue ({each}) within 30 minutes from {time_text(first.at)}"
            text += f" and {said}; the limit is {limit:.0f} s, the longest before was {baseline:.0f} s"
            return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)
    return None


def _may_sleep(change: Change) -> bool:
    asleep = any(target.minimum == 0 for target in (change.before.scaling if change.before else ()))
    return asleep or change.option.kind is OptionKind.SCALE_TO_ZERO
