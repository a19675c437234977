"""What is read of an endpoint, period by period, and the figures that its change is held against."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.changes.baseline import (
    BACKLOG,
    ERRORS,
    EXPIRED,
    FAILURES,
    GPU,
    GPU_MEMORY,
    HOST_MEMORY,
    LATENCY,
    MEAN,
    PROCESSED,
    QUEUED,
    REFUSED,
    REQUESTS,
    SIGNALS,
    ServicePeriod,
    baseline,
    longest_wait_s,
    periods_of,
    requests_by_hour,
    serving_figures,
    usual_overhead_s,
    watched_metrics,
)
from rightsizer.changes.proof import queue_verdict
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import Before, Plan, VariantCount
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import OVERHEAD, MetricStatistic, MetricWindow, NoMetrics, Series
from tests import samples

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
FIVE_MINUTES = timedelta(minutes=5)
NAN = float("nan")
NOTHING = NoMetrics("chat", "v", Reason(Code.NO_DATAPOINTS, "none"))


def window(rows: Mapping[MetricStatistic, Sequence[float]], variant: str = "v") -> MetricWindow:
    series = {signal: Series(START, 300, array("d", values)) for signal, values in rows.items()}
    return MetricWindow("chat", variant, START, START + timedelta(days=3), 300, series)


def queue(backlog: Sequence[float | None], requests: Sequence[float]) -> list[ServicePeriod]:
    rows = enumerate(zip(backlog, requests, strict=True))
    return [ServicePeriod(START + n * FIVE_MINUTES, r, 0.0, None, None, b) for n, (b, r) in rows]


def test_only_an_asynchronous_endpoint_is_asked_about_its_queue() -> None:
    assert watched_metrics(asynchronous=False) == SIGNALS
    assert watched_metrics(asynchronous=True) == (*SIGNALS, *QUEUED)


def test_a_period_has_what_was_published_in_it_and_none_where_nothing_was() -> None:
    rows: dict[MetricStatistic, list[float]] = {
        REQUESTS: [10.0, NAN],
        ERRORS: [2.0],
        LATENCY: [250_000.0, NAN, 1e6],
        HOST_MEMORY: [40.0, 41.0],
        BACKLOG: [NAN, 3.0],
    }
    assert list(periods_of(window(rows))) == [
        ServicePeriod(START, 10.0, 2.0, 0.25, 40.0, None),
        ServicePeriod(START + FIVE_MINUTES, 0.0, 0.0, None, 41.0, 3.0),
        ServicePeriod(START + 2 * FIVE_MINUTES, 0.0, 0.0, 1.0, None, None),
    ]
    assert list(periods_of(window({}))) == []


def test_what_passes_around_the_model_is_the_mean_of_all_requests_of_all_variants() -> None:
    one = window({REQUESTS: [10.0, NAN, 30.0], OVERHEAD: [10_000.0, 7e6, 50_000.0]})
    other = window({REQUESTS: [60.0, 0.0, 5.0], OVERHEAD: [80_000.0, 9e6, NAN]}, "w")
    assert usual_overhead_s([one, NOTHING, other]) == pytest.approx(0.064)
    assert usual_overhead_s([window({REQUESTS: [1.0]})]) == 0.0


@pytest.mark.parametrize("spelling", PROCESSED)
def test_what_left_a_queue_is_a_request_under_either_spelling(spelling: MetricStatistic) -> None:
    rows: dict[MetricStatistic, list[float]] = {spelling: [7.0, 9.0]}
    assert [p.requests for p in periods_of(window(rows))] == [7.0, 9.0]


def test_a_failure_of_the_model_is_counted_once_and_what_expired_is_counted_beside_it() -> None:
    rows: dict[MetricStatistic, list[float]] = {
        ERRORS: [4.0, 1.0, NAN],
        FAILURES: [3.0, 2.0, 1.0],
        EXPIRED: [0.0, 5.0, 1.0],
    }
    assert [p.errors for p in periods_of(window(rows))] == [4.0, 7.0, 2.0]


def test_requests_are_added_up_by_the_hour_in_which_they_were_served() -> None:
    late = START + timedelta(minutes=55, seconds=7, microseconds=9)
    rows = [ServicePeriod(at, n, 0.0, None, None) for at, n in ((START, 1.0), (late, 2.0), (late + FIVE_MINUTES, 4.0))]
    assert requests_by_hour(rows) == {START: 3.0, START + timedelta(hours=1): 4.0}


def test_latencies_are_medians_in_seconds_and_memory_is_the_largest_seen() -> None:
    rows: dict[MetricStatistic, list[float]] = {
        MEAN: [100_000.0, 150_000.0, 900_000.0, NAN, 200_000.0, 950_000.0],
        LATENCY: [300_000.0, 1_900_000.0, 400_000.0, NAN],
        GPU_MEMORY: [30.0, 80.0, 50.0, NAN],
    }
    found = serving_figures([NOTHING, window(rows)])
    assert found == {"mean_s": pytest.approx(0.2), "p95_s": pytest.approx(0.4), "gpu_memory_percent": 80.0}
    assert serving_figures([NOTHING]) == {}


def test_gpu_seconds_of_a_request_are_taken_over_the_periods_that_have_both() -> None:
    rows: dict[MetricStatistic, list[float]] = {
        MEAN: [100_000.0],
        GPU: [50.0, NAN, 100.0, 70.0, 30.0],
        REQUESTS: [10.0, 90.0, NAN, 20.0],
    }
    found = serving_figures([window(rows)])
    assert found == {"mean_s": pytest.approx(0.1), "gpu_requests": 30.0, "gpu_s": pytest.approx(60 / 100 * 120 / 30)}
    one: dict[MetricStatistic, list[float]] = {GPU: [50.0], REQUESTS: [1.0]}
    assert serving_figures([window(one)])["gpu_s"] == pytest.approx(30.0), "one request is enough"
    for alone in (GPU, REQUESTS):
        assert serving_figures([window({alone: [5.0]})]) == {}
    nobody: dict[MetricStatistic, list[float]] = {GPU: [5.0], REQUESTS: [0.0]}
    assert serving_figures([window(nobody)]) == {}


def test_the_baseline_has_the_share_and_the_rate_of_errors_and_the_usual_latency() -> None:
    rows: dict[MetricStatistic, list[float]] = {
        REQUESTS: [40.0, 50.0, 10.0],
        ERRORS: [0.0, 10.0, 5.0],
        LATENCY: [100_000.0, 300_000.0, 1_900_000.0, 400_000.0, 900_000.0],
        MEAN: [200_000.0] * 3,
        GPU: [50.0] * 3,
        GPU_MEMORY: [50.0] * 3,
    }
    assert baseline([NOTHING, window(rows)]) == {
        "peak_hour_requests": 100.0,
        "peak_hour_requests/v": 100.0,
        "error_share": 0.15,
        "errors_per_minute": 2.0,
        "refused_per_minute": 0.0,
        "refused_share": 0.0,
        "p95_s": pytest.approx(0.4),
        "mean_s": pytest.approx(0.2),
        "gpu_s": pytest.approx(0.9),
        "gpu_requests": 100.0,
    }


def test_what_was_answered_by_4xx_before_is_known_by_its_worst_half_hour() -> None:
    rows: dict[MetricStatistic, list[float]] = {REQUESTS: [10.0] * 18, REFUSED: [*[0.0] * 8, *[5.0] * 6, *[1.0] * 4]}
    found = baseline([window(rows)])
    assert (found["refused_per_minute"], found["refused_share"]) == (1.0, 0.5)
    burst = {REQUESTS: [10.0] * 18, REFUSED: [6.0] + [0.0] * 17}
    assert baseline([window(burst)])["refused_share"] == 0.1, "a share of half an hour, not of five minutes"
    assert baseline([window({REQUESTS: [10.0] * 18})])["refused_share"] == 0.0, "none is known, and not unknown"
    assert "refused_share" not in baseline([window({REQUESTS: [float("nan")] * 18})])


def test_without_a_request_there_is_no_share_of_errors_but_one_request_has_one() -> None:
    rows: dict[MetricStatistic, list[float]] = {REQUESTS: [0.0], ERRORS: [0.0]}
    assert baseline([window(rows)]) == {}
    rows[REQUESTS] = [1.0]
    assert baseline([window(rows)])["error_share"] == 0.0


def test_the_usual_peak_is_the_median_of_the_busiest_hours_of_the_days() -> None:
    hours = {14: 30.0, 17: 90.0, 24 + 15: 20.0, 24 + 16: 60.0, 48 + 15: 6.0}
    calls = [0.0] * 12 * 64
    for hour, requests in hours.items():
        calls[12 * (hour - 10)] = requests
    quiet = [0.0] * 12 * 64
    quiet[0] = 0.5
    rows: dict[MetricStatistic, list[float]] = {REQUESTS: calls}
    other: dict[MetricStatistic, list[float]] = {REQUESTS: quiet}
    found = baseline([window(rows), window(other, "w")])
    assert found["peak_hour_requests/v"] == 60.0, "90, 60 and 6 a day"
    assert found["peak_hour_requests"] == 60.0
    assert found["peak_hour_requests/w"] == 0.0, "half a request on one day of three"


def test_a_wait_needs_half_an_hour_of_which_half_is_known_and_five_that_wait() -> None:
    assert longest_wait_s(queue([10.0] * 6, [30.0] * 6)) == pytest.approx(100.0)
    assert longest_wait_s(queue([10.0] * 5, [30.0] * 5)) is None, "25 minutes"
    assert longest_wait_s(queue([10.0, None] * 3, [30.0] * 6)) == pytest.approx(100.0)
    assert longest_wait_s(queue([10.0, None, 10.0, None, None, None], [30.0] * 6)) is None
    assert longest_wait_s(queue([5.0] * 6, [30.0] * 6)) == pytest.approx(50.0)
    assert longest_wait_s(queue([4.9] * 6, [30.0] * 6)) is None
    later = [None] * 6 + [20.0] * 6
    assert longest_wait_s(queue(later, [30.0] * 12)) == pytest.approx(200.0), "after an hour of which nothing is known"


def test_a_queue_of_which_nothing_is_worked_off_waits_for_a_day() -> None:
    assert longest_wait_s(queue([5.0] * 6, [0.0] * 6)) == 86_400.0
    assert longest_wait_s(queue([50_000.0] * 6, [1.0] * 6)) == 86_400.0, "and no longer"


def change(**baseline: float) -> Change:
    made = samples.change(START, turned_at=START, baseline=baseline)
    return replace(made, plan=Plan(after=(VariantCount("v", "ml.g5.xlarge", 4, 1.0),)))


def test_the_verdict_on_a_queue_names_its_length_its_wait_and_the_limit() -> None:
    found = queue_verdict(change(queue_s=40.0), queue([100.0] * 6, [30.0] * 6))
    assert found is not None
    said = (
        "100 requests were in the queue (25.0 per instance) within 30 minutes from Mon 2 Nov 2026, 10:00 UTC and"
        " a request "
        "waited 1000 s; the limit is 80 s, the longest before was 40 s"
    )
    assert (found.judgement, found.failure) == ("bad", FailureClass.PERFORMANCE)
    assert found.reason == Reason(Code.ROLLED_BACK, said)


def test_a_wait_of_exactly_the_limit_is_no_harm_and_five_that_wait_are_judged() -> None:
    assert queue_verdict(change(queue_s=40.0), queue([8.0] * 6, [30.0] * 6)) is None, "80 s"
    assert queue_verdict(change(queue_s=40.0), queue([8.1] * 6, [30.0] * 6)) is not None
    assert queue_verdict(change(queue_s=40.0), queue([5.0] * 6, [3.0] * 6)) is not None
    assert queue_verdict(change(queue_s=40.0), queue([4.9] * 6, [3.0] * 6)) is None


@pytest.mark.parametrize(("minimum", "judged"), [(0, True), (1, False)])
def test_a_fleet_that_may_sleep_is_judged_without_a_baseline_and_may_wake_for_half_an_hour(
    minimum: int, judged: bool
) -> None:
    target = ScalableTarget("endpoint/chat/variant/v", "sagemaker:variant:DesiredInstanceCount", minimum, 4)
    asked = replace(change(), before=Before("old", START, "", (), scaling=(target,)))
    found = queue_verdict(asked, queue([200.0] * 6, [30.0] * 6))
    assert (found is not None) is judged
    if found is not None:
        assert found.reason.sentence.endswith("waited 2000 s; the limit is 1800 s, the longest before was 0 s")
    assert queue_verdict(asked, queue([180.0] * 6, [30.0] * 6)) is None


def test_a_fleet_that_learns_to_sleep_may_wait_as_long() -> None:
    asked = replace(change(), option=samples.option(kind=OptionKind.SCALE_TO_ZERO))
    assert queue_verdict(asked, queue([180.0] * 6, [30.0] * 6)) is None
    assert queue_verdict(asked, queue([180.1] * 6, [30.0] * 6)) is not None


def woken(asleep: int, backlog: list[float], processed: list[float]) -> list[ServicePeriod]:
    """Periods of five minutes, of which the first waited without an instance."""
    rows = queue(backlog, processed)
    return [replace(row, is_asleep=True) for row in rows[:asleep]] + list(rows[asleep:])


def test_what_waits_for_the_first_instance_is_judged_by_the_wake_up_and_not_as_a_slow_queue() -> None:
    asked = replace(change(), option=samples.option(kind=OptionKind.SCALE_TO_ZERO))
    assert queue_verdict(asked, woken(2, [60.0, 120.0, 10.0, 0, 0, 0], [0, 0, 0, 0, 0, 0])) is None
    assert longest_wait_s(woken(2, [60.0, 120.0, 10.0, 0, 0, 0], [0, 0, 0, 0, 0, 0])) is None


def test_a_queue_whose_instances_come_and_go_is_judged() -> None:
    asked = replace(change(), option=samples.option(kind=OptionKind.SCALE_TO_ZERO))
    rising = [100.0 + 50 * number for number in range(12)]
    comes_and_goes = [
        replace(row, is_asleep=number % 3 == 1) for number, row in enumerate(queue(rising, [2.0, 0.0, 2.0] * 4))
    ]
    assert queue_verdict(asked, comes_and_goes) is not None


def test_half_an_hour_without_an_instance_is_judged_and_so_is_what_comes_after_the_start() -> None:
    asked = replace(change(), option=samples.option(kind=OptionKind.SCALE_TO_ZERO))
    found = queue_verdict(asked, woken(6, [60.0] * 6, [0.0] * 6))
    assert found is not None
    assert "nothing was worked off" in found.reason.sentence
    assert queue_verdict(asked, woken(2, [400.0] * 8, [0.0, 0.0, *[30.0] * 6])) is not None
