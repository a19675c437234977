"""What the end of a shadow test believes of its metrics."""

from array import array
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.baseline import ERRORS, GPU, GPU_MEMORY, LATENCY, MEAN, REQUESTS
from rightsizer.changes.shadow_test_result import MODEL_ERRORS, shadow_test_verdict
from rightsizer.domain.change import FailureClass
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.plan import Before, Plan, PlanKind, VariantCount
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import MetricWindow, NoMetrics, Series
from tests import samples
from tests.recommender.kit import NOW

SIGNALS = {
    "model_errors": MODEL_ERRORS,
    "requests": REQUESTS,
    "errors": ERRORS,
    "mean": MEAN,
    "p95": LATENCY,
    "gpu": GPU,
    "memory": GPU_MEMORY,
}
NAN = float("nan")


def window(**given: Any) -> MetricWindow:
    """Two hours of five-minute periods; a number stands for all of them, milliseconds for latencies."""
    series = {}
    for name, value in given.items():
        values = list(value) if isinstance(value, (list, tuple)) else [value] * 24
        scale = 1000.0 if name in ("mean", "p95") else 1.0
        series[SIGNALS[name]] = Series(NOW, 300, array("d", [v * scale for v in values]))
    return MetricWindow("chat", "AllTraffic", NOW, NOW + timedelta(hours=2), 300, series)


def ended(
    shadow: MetricWindow | NoMetrics, live: MetricWindow, after_hours: float = 2.0, instances: float = 1.0
) -> ProofVerdict:
    """The verdict on a test beside one instance, which became `instances` meanwhile."""
    plan = Plan(kind=PlanKind.SHADOW_TEST, shadow="AllTraffic-shadow", test_s=7200)
    before = Before("chat-1", NOW, "", (VariantCount("AllTraffic", "ml.g5.4xlarge", 1, 1.0),))
    then = NOW + timedelta(hours=1)
    change = samples.change(
        NOW, variant="AllTraffic", before=before, plan=plan, turned_at=NOW, counted_until=then, instance_hours=instances
    )
    return shadow_test_verdict(change, [live], shadow, NOW + timedelta(hours=after_hours))


LIVE = window(requests=10.0, mean=100.0, p95=200.0, errors=0.0, gpu=50.0)


def test_a_shadow_that_fails_every_request_at_once_is_no_quick_type() -> None:
    found = ended(window(requests=10.0, errors=10.0, mean=1.0), LIVE)
    assert (found.judgement, found.failure, found.figures) == ("given-up", FailureClass.ERRORS, {})
    assert "210 of 210 requests failed on the shadow on" in found.reason.sentence


def test_a_shadow_that_fails_one_request_in_ten_ends_before_its_time() -> None:
    failing = window(requests=[10.0] * 6 + [NAN] * 18, errors=[4.0] * 6 + [NAN] * 18, mean=100.0)
    assert ended(failing, LIVE, after_hours=0.5).failure is FailureClass.ERRORS
    assert ended(window(requests=10.0, errors=0.0, mean=100.0), LIVE, after_hours=0.5).judgement == "not-yet"


def test_a_model_that_starts_may_fail_for_a_quarter_of_an_hour() -> None:
    starting = [8.0] * 3 + [0.0] * 21
    assert ended(window(requests=10.0, errors=starting, mean=100.0), LIVE, after_hours=0.5).judgement == "not-yet"
    assert ended(window(requests=10.0, errors=starting, mean=100.0), LIVE).judgement == "proven"


def late(*counts: float) -> list[float]:
    """Failures after the warm-up."""
    return [0.0] * 3 + list(counts) + [0.0] * (21 - len(counts))


@pytest.mark.parametrize("signal", ["errors", "model_errors"])
@pytest.mark.parametrize(
    ("failed", "judgement", "failure"),
    [
        (late(5.0), "given-up", FailureClass.ERRORS),
        (late(4.0), "given-up", FailureClass.NONE),  # neither against the type nor for it
        (late(2.0), "proven", FailureClass.NONE),
        ([NAN] * 24, "proven", FailureClass.NONE),
    ],
)
def test_failures_beyond_half_a_percent_are_no_proof_for_the_type_and_from_five_on_one_against_it(
    signal: str, failed: list[float], judgement: str, failure: FailureClass
) -> None:
    found = ended(window(requests=20.0, mean=150.0, **{signal: failed}), LIVE)
    assert (found.judgement, found.failure, bool(found.figures)) == (judgement, failure, judgement == "proven")


def test_four_of_twenty_requests_that_failed_prove_no_quick_start() -> None:
    shadow = window(requests=late(*[1.0] * 20), errors=late(*[1.0] * 4), mean=1.0)
    assert ended(shadow, LIVE).judgement == "given-up"


@pytest.mark.parametrize(("live", "shadow", "refuted"), [(1.0, 1.0, False), (1.0, 3.0, True), (3.4, 9.9, True)])
def test_the_same_requests_fail_on_both_and_only_the_excess_is_the_new_types(
    live: float, shadow: float, refuted: bool
) -> None:
    found = ended(
        window(requests=10.0, mean=150.0, model_errors=shadow),
        window(requests=10.0, mean=100.0, model_errors=live),
    )
    assert (found.failure is FailureClass.ERRORS) is refuted


def test_failures_of_a_shadow_beside_a_fleet_that_grew_are_not_held_against_the_type() -> None:
    """Its weight is that of one instance of the fleet as it was planned: it has more than its share to do."""
    shadow = window(requests=10.0, errors=9.0, mean=1.0)
    assert ended(shadow, LIVE, instances=1.0).failure is FailureClass.ERRORS
    found = ended(shadow, LIVE, instances=4.0)
    assert (found.judgement, found.failure) == ("given-up", FailureClass.NONE)


def test_metrics_that_could_not_be_read_end_no_test_for_six_hours() -> None:
    unknown = NoMetrics("chat", "AllTraffic-shadow", Reason(Code.THROTTLED, "throttled"))
    assert ended(unknown, LIVE).judgement == "not-yet"
    assert ended(unknown, LIVE, after_hours=8.0).judgement == "given-up"
    partly = replace(window(requests=10.0, mean=1.0), notes=(Reason(Code.READ_FAILED, "5XX could not be read"),))
    assert ended(partly, LIVE).judgement == "not-yet"


def test_a_test_that_is_looked_at_late_has_the_hours_that_it_ran() -> None:
    shadow = window(requests=10.0, mean=150.0)
    assert ended(shadow, LIVE, after_hours=3.0).figures["hours"] == 3.0


def test_every_request_counts_alike_and_not_every_five_minutes() -> None:
    busy = [91.0] + [0.0] * 22 + [9.0]
    slow = [200.0] + [NAN] * 22 + [1200.0]
    found = ended(window(requests=busy, mean=slow), window(requests=busy, mean=100.0))
    assert found.figures["mean_s"] == pytest.approx((91 * 0.2 + 9 * 1.2) / 100)
    assert found.figures["live_mean_s"] == pytest.approx(0.1)


def test_gpu_seconds_of_a_request_are_told_of_both() -> None:
    found = ended(window(requests=10.0, mean=150.0, gpu=120.0, memory=41.0), LIVE).figures
    assert found["gpu_s"] == pytest.approx(1.2 * 60 / 10)
    assert found["live_gpu_s"] == pytest.approx(0.5 * 60 / 10)
    assert (found["gpu_memory_percent"], found["requests"], found["hours"]) == (41.0, 240.0, 2.0)


def test_the_spread_of_latencies_follows_from_their_tail() -> None:
    none = ended(window(requests=10.0, mean=150.0), window(requests=10.0, mean=100.0, p95=100.0)).figures
    wide = ended(window(requests=10.0, mean=150.0), window(requests=10.0, mean=100.0, p95=300.0)).figures
    endless = ended(window(requests=10.0, mean=150.0), window(requests=10.0, mean=100.0, p95=9000.0)).figures
    assert none["live_spread"] == 0.0
    assert 1.0 < wide["live_spread"] < endless["live_spread"] == 4.0


@pytest.mark.parametrize("shadow", [window(requests=[1.0] + [0.0] * 23, mean=100.0), window(), window(mean=100.0)])
def test_a_test_that_answered_nobody_measures_nothing(shadow: MetricWindow) -> None:
    found = ended(shadow, LIVE)
    assert (found.judgement, found.failure, found.figures) == ("given-up", FailureClass.NONE, {})


def test_production_that_suffers_ends_the_test_and_says_nothing_of_the_type() -> None:
    found = ended(window(requests=10.0, errors=10.0, mean=1.0), window(requests=10.0, errors=5.0, mean=100.0))
    assert (found.judgement, found.failure) == ("bad", FailureClass.PERFORMANCE)
