"""What passes around the model (OverheadLatency): callers wait for it too, and no instance changes it."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rightsizer.domain.endpoint import Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import OVERHEAD, SLOTS, DailyUsage, MetricStatistic, MetricWindow, Series
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import latency_of, overhead_of
from rightsizer.recommender.finding import too_late_reason
from rightsizer.recommender.latency import broken_promise, latency_objective
from tests.recommender import kit, plain
from tests.recommender.test_latency import query, scaled, tracking
from tests.recommender.test_reaction import day

LATENCY = latency_of([day(0, 60.0)])
USUAL: Any = pytest.approx(1.1, rel=0.03)
START, END = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC)
CALLS, GPU = MetricStatistic("Invocations", "Sum"), MetricStatistic("GPUUtilization", "Average")


def used(*overhead: float, period_s: int = 300) -> DailyUsage:
    """A day of ten requests in each slot, and of 130 in the last one."""
    series = {
        CALLS: Series(START, 300, array("d", [10.0] * (SLOTS - 1) + [130.0])),
        GPU: Series(START, 300, array("d", [50.0] * SLOTS)),
    } | ({OVERHEAD: Series(START, period_s, array("d", overhead))} if overhead else {})
    (found,) = daily_usage(
        MetricWindow("chat", "v", START, END, 300, series), VariantSetup(kit.catalogue().types["ml.g5.xlarge"], 1)
    )
    return found


def test_a_day_keeps_the_mean_of_a_request_read_by_the_slot_or_by_the_day() -> None:
    by_slot = used(*[30_000.0] * (SLOTS - 1), 330_000.0)
    assert by_slot.overhead_s == pytest.approx(0.043, abs=0.0005)
    assert used(43_000.0, period_s=86400).overhead_s == 0.043
    assert used().overhead_s is None
    assert used(*[float("nan")] * SLOTS).overhead_s is None


def test_days_count_by_their_requests_and_those_without_it_not_at_all() -> None:
    few = replace(used(100_000.0, period_s=86400), requests=(1.0,) * SLOTS)
    many = replace(used(200_000.0, period_s=86400), requests=(3.0,) * SLOTS)
    assert overhead_of([few, used(), many]) == pytest.approx(0.175)
    assert overhead_of([used()]) == 0.0


def test_what_passes_around_the_model_is_taken_off_what_callers_were_promised() -> None:
    assert LATENCY is not None
    own = replace(kit.endpoint(p95_s=None), objective=Objective(0.7))
    kept = latency_objective(own, LATENCY, Policy(), 0.2)
    assert (kept.p95_s, kept.declared, kept.overhead_s) == (plain.near(0.5), True, 0.2)
    assert kept.source == "tag rightsizer:p95-ms: 0.70 s, of which 0.20 s pass around the model (OverheadLatency)"
    noise = latency_objective(own, LATENCY, Policy(), 0.034)
    assert (noise.p95_s, noise.source, noise.overhead_s) == (0.7, "tag rightsizer:p95-ms", 0.0)
    undeclared = latency_objective(kit.endpoint(p95_s=None), LATENCY, Policy(), 0.2)
    assert (undeclared.p95_s, undeclared.overhead_s) == (USUAL, 0.0), "nothing was promised"


def test_a_promise_that_is_spent_around_the_model_leaves_its_latency_as_today() -> None:
    assert LATENCY is not None
    own = replace(kit.endpoint(p95_s=None), objective=Objective(0.7))
    broken = latency_objective(own, LATENCY, Policy(), 0.7)
    assert (broken.p95_s, broken.declared, broken.overhead_s) == (USUAL, False, 0.7)
    text = "tag rightsizer:p95-ms says 0.70 s, and 0.70 s pass around the model (OverheadLatency), which no instance"
    assert broken.source.startswith(f"{text} changes; as today: ")
    tracked = replace(own, scaling=scaled(tracking(query(), target=900_000.0)))
    held = latency_objective(tracked, LATENCY, Policy(), 0.4)
    assert (held.p95_s, held.declared, held.overhead_s) == (0.9, False, 0.4)
    assert (
        "0.40 s pass around the model (OverheadLatency), which no instance changes; its scaling policy" in held.source
    )


@pytest.mark.parametrize(
    ("promised_s", "around_s", "left_s"),
    [(0.7, 0.34, 0.36), (0.7, 0.36, None), (0.7, 0.69, None), (300.0, 20.0, 40.0), (300.0, 31.0, None)],
)
def test_a_promise_of_which_most_passes_around_the_model_is_broken_and_its_rest_no_measure(
    promised_s: float, around_s: float, left_s: float | None
) -> None:
    """Just before the last of it is gone hardly anything is left, which no model holds: that is no want of capacity."""
    assert LATENCY is not None
    kept = latency_objective(replace(kit.endpoint(), objective=Objective(promised_s)), LATENCY, Policy(), around_s)
    assert (kept.declared, kept.p95_s) == (left_s is not None, USUAL if left_s is None else plain.near(left_s))
    assert kept.overhead_s == around_s
    assert (broken_promise(kept) is None) == kept.declared


@pytest.mark.parametrize("around_s", [0.2, 0.29, 0.31])
def test_automatic_mode_asks_first_where_a_promise_is_broken_and_a_note_says_so(around_s: float) -> None:
    """As long as most of 300 ms passes around the model, no alarm and no change by itself, whatever its exact mean."""
    load = kit.steady(latency_s=0.12) | {("OverheadLatency", "Average"): around_s * 1e6}
    found = judged(load)
    assert (found.finding, found.gate) == (Finding.OVER_PROVISIONED, Gate.PROPOSE)
    assert found.gate_reason.sentence.startswith("needs your approval: tag rightsizer:p95-ms says 0.30 s, and ")
    assert [note.sentence for note in found.notes] == [found.gate_reason.sentence.removeprefix("needs your approval: ")]
    kept = judged(kit.steady(latency_s=0.12) | {("OverheadLatency", "Average"): 10_000.0})
    assert (kept.gate, kept.notes) == (Gate.APPLY, ())


def judged(load: Any) -> Recommendation:
    """A large card at a hundredth, whose callers were promised 300 ms; its p95 is 156 ms."""
    endpoint = kit.endpoint("ml.g6e.2xlarge", p95_s=0.3)
    return kit.judge(endpoint, [kit.window(load)], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def test_a_slow_model_with_room_in_what_callers_wait_for_in_all_is_no_want_of_capacity() -> None:
    """100 ms are left for the model, which takes 200; callers wait 1.1 s where one was promised."""
    assert LATENCY is not None
    goal = LatencyObjective(0.1, declared=True, source="tag", overhead_s=0.9)
    slow = replace(LATENCY, mean_s=0.01, p95_s=0.2)
    assert too_late_reason(plain.demand(), slow, goal, Policy(), 1.0) is None
    late = too_late_reason(plain.demand(), replace(slow, p95_s=0.36), goal, Policy(), 1.0)
    assert late is not None
    assert late.sentence == "p95 of the model is 0.36 s, above the objective of 0.10 s (tag)"
