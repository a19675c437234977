"""What the end of a shadow test believes of its metrics."""

from array import array
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.model.change import Change, FailureClass
from rightsizer.model.plan import Plan
from rightsizer.model.sight import Verdict
from rightsizer.model.usage import MetricWindow, NoMetrics, Series
from rightsizer.rules.trial_end import ERRORS, GPU, GPU_MEMORY, MEAN, P95, REQUESTS, judge
from tests import samples
from tests.rules.kit import NOW

SIGNALS = {"requests": REQUESTS, "errors": ERRORS, "mean": MEAN, "p95": P95, "gpu": GPU, "memory": GPU_MEMORY}
NAN = float("nan")


def window(**given: Any) -> MetricWindow:
    """Two hours of five-minute periods; a number stands for all of them, milliseconds for latencies."""
    series = {}
    for name, value in given.items():
        values = list(value) if isinstance(value, (list, tuple)) else [value] * 24
        scale = 1000.0 if name in ("mean", "p95") else 1.0
        series[SIGNALS[name]] = Series(NOW, 300, array("d", [v * scale for v in values]))
    return MetricWindow("chat", "AllTraffic", NOW, NOW + timedelta(hours=2), 300, series)


def ended(shadow: MetricWindow | NoMetrics, live: MetricWindow, after_hours: float = 2.0, **more: Any) -> Verdict:
    change: Change = samples.change(NOW)
    plan = Plan(kind="shadow-test", shadow="AllTraffic-shadow", test_s=7200)
    change = replace(change, plan=plan, turned_at=NOW, baseline=more)
    return judge(change, [live], shadow, NOW + timedelta(hours=after_hours))


LIVE = window(requests=10.0, mean=100.0, p95=200.0, errors=0.0, gpu=50.0)


def test_a_shadow_that_fails_every_request_at_once_is_no_quick_type() -> None:
    found = ended(window(requests=10.0, errors=10.0, mean=1.0), LIVE)
    assert (found.judgement, found.failure, found.figures) == ("given-up", FailureClass.ERRORS, {})
    assert "240 of 240 requests failed on the shadow on" in found.reason.sentence


def test_a_shadow_that_fails_one_request_in_ten_ends_before_its_time() -> None:
    failing = window(requests=[10.0] * 6 + [NAN] * 18, errors=[2.0] * 6 + [NAN] * 18, mean=100.0)
    assert ended(failing, LIVE, after_hours=0.5).judgement == "given-up"
    assert ended(window(requests=10.0, errors=0.0, mean=100.0), LIVE, after_hours=0.5).judgement == "not-yet"


@pytest.mark.parametrize(
    ("failed", "judgement"), [([5.0] + [0.0] * 23, "given-up"), ([4.0] + [0.0] * 23, "proven"), ([NAN] * 24, "proven")]
)
def test_a_share_of_failures_that_an_alarm_would_stop_refutes_the_type(failed: list[float], judgement: str) -> None:
    assert ended(window(requests=20.0, errors=failed, mean=150.0), LIVE).judgement == judgement


def test_failures_that_production_has_too_are_not_the_new_types_fault() -> None:
    live = window(requests=10.0, mean=100.0, errors=0.5)
    shadow = window(requests=10.0, mean=150.0, errors=1.0)
    assert ended(shadow, live).judgement == "proven"
    assert ended(shadow, window(requests=10.0, mean=100.0)).judgement == "given-up"
    assert ended(shadow, window(requests=10.0, mean=100.0), error_share=0.05).judgement == "proven"


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
