"""When a shadow test has seen enough, what it measured, and whether the change follows it.

The shadow's answers go to nobody, so only the production variant can be harmed: it is watched as after any change. The
shadow itself must answer: a model that fails at once looks quick. What is measured is what it answered, beside what
production did in the same hours, each period with the weight of its requests.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from rightsizer.changes.baseline import (
    BAD_REQUESTS,
    BAD_SHARE,
    BASELINE_FACTOR,
    ERRORS,
    GPU,
    GPU_MEMORY,
    LATENCY,
    MEAN,
    REQUESTS,
    SAMPLE_S,
)
from rightsizer.domain.change import Change, ChangeState, FailureClass, JournalEvent, PassedTest
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.plan import PlanKind, order_command
from rightsizer.domain.proposal import DecidedBy, id_after_test
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.usage import MetricStatistic, MetricWindow, NoMetrics, unread_reason

MODEL_ERRORS = MetricStatistic("InvocationModelErrors", "Sum")
"""Answers of the model that are no 2XX: out of memory may be told as a fault of the client."""
FAILED = (ERRORS, MODEL_ERRORS)
FAILING_SHARE = 0.005
"""Share of failed requests that a guarded change may have (docs/shadow-tests.md, "What the result says")."""
WARM_UP = 3
"""Periods of five minutes in which a model that starts may fail."""
PATIENCE = timedelta(hours=6)
"""How long the end of a test waits for metrics that cannot be read; its shadow costs money."""
ANSWERED = 2
"""Answers from which anything is measured."""

WIDEST = 4.0
"""Squared variation beyond which the tail tells nothing more, as of the latencies of the days."""

type Window = MetricWindow | NoMetrics


def shadow_test_verdict(change: Change, production: Sequence[Window], shadow: Window, now: datetime) -> ProofVerdict:
    """Bad where production suffers, not yet while the test runs, proven with figures or given up without. Total."""
    since, lasts = change.turned_at or now, timedelta(seconds=change.plan.test_s)
    served = sum(_sum_of(w, REQUESTS) for w in production)
    failed = sum(_sum_of(w, ERRORS) for w in production)
    baseline = change.baseline.get("error_share", 0.0)
    if failed >= BAD_REQUESTS and failed > max(BAD_SHARE, BASELINE_FACTOR * baseline) * max(served, failed):
        text = f"{failed:.0f} of {served:.0f} requests failed while the shadow test ran"
        return ProofVerdict("bad", Reason(Code.ROLLED_BACK, text), FailureClass.PERFORMANCE)
    missed = unread_reason([*production, shadow])
    if missed is not None:
        text = f"not all metrics of the shadow test could be read: {missed.sentence}"
        over = now - since >= lasts + PATIENCE
        return ProofVerdict("given-up" if over else "not-yet", Reason(Code.UNPROVEN, text))
    failing = _failing_shadow_verdict(change, production, shadow, now - since >= lasts)
    if failing is not None:
        return failing
    if now - since < lasts:
        return ProofVerdict("not-yet", Reason(Code.UNPROVEN, f"the shadow test runs until {time_text(since + lasts)}"))
    return _measured_verdict(change, production, shadow, now - since)


def passed_test(change: Change) -> PassedTest | None:
    """The shadow test whose change follows by the same approval. None where it proved nothing, or was decided alone.

    It proved well where it ended as planned and measured the type. Whether the type is fast enough, and for which
    fleet, is for the next evaluation, which knows what was measured.
    """
    if not change.leads_on or not _has_proved_well(change) or change.reason is None:
        return None
    mean, live, usual = change.measured.get("mean_s"), change.measured.get("live_mean_s"), change.baseline.get("p95_s")
    p95_s = usual * mean / live if mean and live and usual else None
    return PassedTest(change.id, change.journal[-1].at, change.reason.sentence, p95_s)


def change_id_after(test: PassedTest) -> str:
    """Id of the change that follows a shadow test; there is one for each test."""
    return id_after_test(test.change_id)


def _has_proved_well(change: Change) -> bool:
    """Whether it is a shadow test that is over, measured what it should, and was stopped by nobody."""
    over = change.state is ChangeState.ROLLED_BACK and change.plan.kind is PlanKind.SHADOW_TEST
    proved = change.reason is not None and change.reason.code is Code.PROVEN
    return over and proved and change.failure is FailureClass.NONE and not change.asked_back_by


def asker_of_test(test: Change) -> str:
    """Who asked for the shadow test, where somebody else has to approve the change after it; else empty."""
    return next((entry.detail for entry in test.journal if entry.step == JournalEvent.ASK_TEST), "")


def follow_up_text(change: Change) -> str:
    """Clause about the change that follows a shadow test, as the end of its outcome. Empty where none was decided."""
    if not change.leads_on or change.plan.kind is not PlanKind.SHADOW_TEST:
        return ""
    asked_by = asker_of_test(change)
    if asked_by and _has_proved_well(change):
        who = DecidedBy.read(asked_by).person
        return f"; the change needs the approval of somebody else than {who}, who asked for the test: it is asked again"
    if _has_proved_well(change):
        text = "; the change follows by the same approval, once an evaluation has judged by what was measured"
        stop = order_command("reject", change.proposal_id, change.ref.region)
        return f"{text}; until it begins, {stop} stops it"
    return "; the change does not follow"


def _measured_verdict(change: Change, production: Sequence[Window], shadow: Window, ran: timedelta) -> ProofVerdict:
    """What a test that is over measured."""
    kind = change.option.target.instance_type
    old, new = _mean(production, MEAN), _mean([shadow], MEAN)
    answered = _sum_of(shadow, REQUESTS) - max(_sum_of(shadow, signal) for signal in FAILED)
    if old is None or new is None or old <= 0 or answered < ANSWERED:
        text = f"the shadow test on {kind} served {max(answered, 0.0):.0f} requests, too few to measure anything"
        return ProofVerdict("given-up", Reason(Code.UNPROVEN, text))
    text = f"tested: the mean latency on {kind} was {new / old:.2f} times today's for the same requests"
    return ProofVerdict("proven", Reason(Code.PROVEN, text), figures=_figures(production, shadow, answered, ran))


def _failing_shadow_verdict(
    change: Change, production: Sequence[Window], shadow: Window, over: bool
) -> ProofVerdict | None:
    """The end of the test where the shadow fails requests that production answers; None elsewhere.

    A few too many are no proof against the type, and none for it. Where production got more instances than at the
    start, the shadow had more than its share to do, and its failures say nothing either.
    """
    served = _sum_of(shadow, REQUESTS, WARM_UP)
    excess = max(_excess_failures(production, shadow, signal) for signal in FAILED)
    if excess <= (FAILING_SHARE if over else BAD_SHARE) * served or not (over or excess >= BAD_REQUESTS):
        return None
    kind = change.option.target.instance_type
    failed = max(_sum_of(shadow, signal, WARM_UP) for signal in FAILED)
    text = f"{failed:.0f} of {max(served, failed):.0f} requests failed on the shadow on {kind}, so the test ended"
    sure = excess >= BAD_REQUESTS and not change.has_scaled_out
    return ProofVerdict("given-up", Reason(Code.UNPROVEN, text), FailureClass.ERRORS if sure else FailureClass.NONE)


def _excess_failures(production: Sequence[Window], shadow: Window, signal: MetricStatistic) -> float:
    """Failed requests of the shadow beyond those that production's share, twice its chance up, would have failed."""
    calls = sum(_sum_of(w, REQUESTS, WARM_UP) for w in production)
    share = min(sum(_sum_of(w, signal, WARM_UP) for w in production) / calls, 1.0) if calls > 0 else 0.0
    expected = share * _sum_of(shadow, REQUESTS, WARM_UP)
    return _sum_of(shadow, signal, WARM_UP) - expected - 2 * math.sqrt(expected)


def _figures(production: Sequence[Window], shadow: Window, answered: float, ran: timedelta) -> dict[str, float]:
    """What `Change.measured` keeps: ``live_`` is production in the same hours, seconds are of a request."""
    figures = {"requests": answered, "hours": ran.total_seconds() / 3600, "live_spread": _spread(production)}
    found = (
        ("mean_s", _mean([shadow], MEAN), 1e-6),
        ("live_mean_s", _mean(production, MEAN), 1e-6),
        ("gpu_s", _work([shadow]), 1.0),
        ("live_gpu_s", _work(production), 1.0),
        ("gpu_memory_percent", max(_values(shadow, GPU_MEMORY), default=None), 1.0),
    )
    return figures | {name: value * scale for name, value, scale in found if value is not None}


def _mean(windows: Sequence[Window], signal: MetricStatistic) -> float | None:
    """The mean of a statistic over the requests, not over the periods; None where no period has both."""
    pairs = [pair for w in windows for pair in _pairs(w, signal) if pair[1] > 0]
    calls = sum(count for _, count in pairs)
    return sum(value * count for value, count in pairs) / calls if calls > 0 else None


def _work(windows: Sequence[Window]) -> float | None:
    """GPU seconds of a request, over the periods with both metrics; None without any."""
    pairs = [pair for w in windows for pair in _pairs(w, GPU)]
    calls = sum(count for _, count in pairs)
    return sum(value for value, _ in pairs) / 100 * SAMPLE_S / calls if calls > 0 else None


def _spread(windows: Sequence[Window]) -> float:
    """Squared variation of log-normal latencies with the mean and the 95th percentile that were seen; 1 unknown."""
    mean, p95 = _mean(windows, MEAN), _mean(windows, LATENCY)
    if mean is None or p95 is None or mean <= 0:
        return 1.0
    ratio = math.log(max(p95 / mean, 1.0))
    sigma = 1.645 - math.sqrt(max(1.645**2 - 2 * ratio, 0.0))
    return min(math.expm1(sigma**2), WIDEST)


def _pairs(window: Window, signal: MetricStatistic) -> list[tuple[float, float]]:
    """(value, requests) of each period that has both."""
    if not isinstance(window, MetricWindow):
        return []
    calls, series = window.series.get(REQUESTS), window.series.get(signal)
    if calls is None or series is None:
        return []
    pairs = zip(series.values, calls.values, strict=False)
    return [(value, count) for value, count in pairs if value == value and count == count]


def _sum_of(window: Window, signal: MetricStatistic, skipped: int = 0) -> float:
    return sum(_values(window, signal, skipped))


def _values(window: Window, signal: MetricStatistic, skipped: int = 0) -> list[float]:
    """The datapoints without those of the first `skipped` periods."""
    series = window.series.get(signal) if isinstance(window, MetricWindow) else None
    return [v for v in series.values[skipped:] if v == v] if series is not None else []
