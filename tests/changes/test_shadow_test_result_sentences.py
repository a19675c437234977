"""The end of a shadow test in whole sentences, and the bounds at which it ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.changes.shadow_test_result import shadow_test_verdict
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.plan import Before, Plan, PlanKind, VariantCount
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.usage import MetricWindow, NoMetrics
from tests import samples
from tests.changes.test_shadow_test_result import LIVE, NAN, ended, late, window
from tests.recommender.kit import NOW

REFUSED = NoMetrics("chat", "AllTraffic-shadow", Reason(Code.THROTTLED, "Rate exceeded"))
STEADY = window(requests=10.0, mean=150.0)


def said(found: ProofVerdict) -> tuple[str, Code, str, FailureClass]:
    return found.judgement, found.reason.code, found.reason.sentence, found.failure


def under_test(**changes: object) -> Change:
    plan = Plan(kind=PlanKind.SHADOW_TEST, shadow="AllTraffic-shadow", test_s=7200)
    before = Before("chat-1", NOW, "", (VariantCount("AllTraffic", "ml.g5.4xlarge", 1, 1.0),))
    return samples.change(NOW, variant="AllTraffic", before=before, plan=plan, turned_at=NOW, **changes)


def test_a_test_runs_to_its_end_to_the_second_and_says_until_when() -> None:
    until = time_text(NOW + timedelta(hours=2))
    almost = ended(STEADY, LIVE, after_hours=2 - 1 / 3600)
    assert said(almost) == (
        "not-yet",
        Code.UNPROVEN,
        f"the shadow test runs until {until}",
        FailureClass.NONE,
    )
    assert said(ended(STEADY, LIVE)) == (
        "proven",
        Code.PROVEN,
        "tested: the mean latency on ml.g5.xlarge was 1.50 times today's for the same requests",
        FailureClass.NONE,
    )


def test_what_could_not_be_read_is_waited_for_until_six_hours_after_the_end() -> None:
    sentence = "not all metrics of the shadow test could be read: Rate exceeded"
    for hours, judgement in ((1.0, "not-yet"), (7.99, "not-yet"), (8.0, "given-up")):
        found = ended(REFUSED, LIVE, after_hours=hours)
        assert said(found) == (judgement, Code.UNPROVEN, sentence, FailureClass.NONE)
    part = replace(LIVE, notes=(Reason(Code.THROTTLED, "Rate exceeded"),))
    assert said(ended(STEADY, part))[:3] == ("not-yet", Code.UNPROVEN, sentence), "production counts as well"


@pytest.mark.parametrize(
    ("requests", "errors", "usual", "bad"),
    [
        ([45.0], [5.0], 0.0, True),
        ([45.0], [4.0], 0.0, False),
        ([50.0], [5.0], 0.0, False),
        ([45.0], [5.0], 0.05, False),
        ([45.0], [8.0], 0.05, True),
        ([0.0], [5.0], 0.0, True),
    ],
    ids=["more than a tenth", "four", "a tenth", "thrice the usual", "more than thrice", "none counted"],
)
def test_production_suffers_from_five_failures_beyond_a_tenth_and_thrice_the_usual(
    requests: list[float], errors: list[float], usual: float, bad: bool
) -> None:
    live = window(requests=requests, errors=errors)
    change = under_test(baseline={"error_share": usual})
    found = shadow_test_verdict(change, [live], STEADY, NOW + timedelta(minutes=30))
    assert (found.judgement == "bad") is bad
    if bad:
        sentence = f"{errors[0]:.0f} of {requests[0]:.0f} requests failed while the shadow test ran"
        assert said(found) == ("bad", Code.ROLLED_BACK, sentence, FailureClass.PERFORMANCE)


def test_all_variants_of_production_are_looked_at_together() -> None:
    one, two = window(requests=[20.0], errors=[3.0]), window(requests=[20.0], errors=[2.0])
    found = shadow_test_verdict(under_test(), [one, two], STEADY, NOW + timedelta(minutes=30))
    assert found.reason.sentence == "5 of 40 requests failed while the shadow test ran"


@pytest.mark.parametrize(("answered", "judgement"), [(1.0, "given-up"), (2.0, "proven")])
def test_two_answers_measure_something_and_one_does_not(answered: float, judgement: str) -> None:
    found = ended(window(requests=[answered], mean=[100.0]), LIVE)
    assert found.judgement == judgement
    if judgement == "given-up":
        sentence = "the shadow test on ml.g5.xlarge served 1 requests, too few to measure anything"
        assert said(found) == ("given-up", Code.UNPROVEN, sentence, FailureClass.NONE)


def test_failures_while_the_model_starts_are_no_answers() -> None:
    starting = window(requests=[3.0], errors=[2.0], mean=[100.0])
    sentence = "the shadow test on ml.g5.xlarge served 1 requests, too few to measure anything"
    assert ended(starting, LIVE).reason.sentence == sentence
    only = window(requests=[3.0], errors=[5.0], mean=[100.0])
    assert "served 0 requests" in ended(only, LIVE).reason.sentence


def test_without_a_latency_of_either_nothing_is_measured() -> None:
    for shadow, live in ((window(requests=10.0), LIVE), (STEADY, window(requests=10.0, mean=0.0))):
        sentence = "the shadow test on ml.g5.xlarge served 240 requests, too few to measure anything"
        assert said(ended(shadow, live)) == ("given-up", Code.UNPROVEN, sentence, FailureClass.NONE)
    assert ended(STEADY, window(requests=10.0)).judgement == "given-up"


@pytest.mark.parametrize(
    ("requests", "failed", "hours", "sure"),
    [
        (60.0, 6.0, 0.5, None),
        (50.0, 5.0, 0.5, None),
        (49.0, 5.0, 0.5, True),
        (39.0, 4.0, 0.5, None),
        (39.0, 4.0, 2.0, False),
        (1000.0, 5.0, 2.0, None),
        (999.0, 5.0, 2.0, True),
    ],
)
def test_before_its_end_a_tenth_and_five_end_the_test_and_at_its_end_half_a_percent(
    requests: float, failed: float, hours: float, sure: bool | None
) -> None:
    shadow = window(requests=late(requests), errors=late(failed), mean=100.0)
    found = ended(shadow, window(requests=10.0, mean=100.0), after_hours=hours)
    if sure is None:
        assert found.failure is FailureClass.NONE
        assert found.judgement == ("not-yet" if hours < 2 else "proven")
    else:
        sentence = f"{failed:.0f} of {requests:.0f} requests failed on the shadow on ml.g5.xlarge, so the test ended"
        kind = FailureClass.ERRORS if sure else FailureClass.NONE
        assert said(found) == ("given-up", Code.UNPROVEN, sentence, kind)


def test_what_failed_is_named_even_where_no_request_was_counted() -> None:
    shadow = window(requests=late(2.0), model_errors=late(9.0), mean=100.0)
    assert "9 of 9 requests failed on the shadow" in ended(shadow, LIVE).reason.sentence


@pytest.mark.parametrize(("failed", "refuted"), [(8.0 + 5.0, True), (8.0 + 4.9, False)])
def test_the_share_that_fails_in_production_is_expected_with_twice_its_chance(failed: float, refuted: bool) -> None:
    """Of 100 requests 4 are expected, and 2 x sqrt(4) more may fail by chance: 8."""
    live = window(requests=late(1000.0), model_errors=late(40.0), mean=100.0)
    shadow = window(requests=late(100.0), model_errors=late(failed), mean=100.0)
    assert (ended(shadow, live).failure is FailureClass.ERRORS) is refuted


def test_more_failures_than_requests_in_production_expect_no_more_than_every_request_to_fail() -> None:
    live = window(requests=late(4.0), model_errors=late(400.0), mean=100.0)
    shadow = window(requests=late(4.0), model_errors=late(13.0), mean=100.0)
    found = ended(shadow, live)
    assert found.failure is FailureClass.ERRORS, "13 - 4 - 2 x 2 = 5"


def test_the_figures_of_a_test_are_all_there_and_in_seconds() -> None:
    live = window(requests=[10.0, 30.0], mean=[100.0, 200.0], p95=[300.0, 300.0], gpu=[50.0, 30.0])
    shadow = window(requests=[10.0, 30.0, NAN], mean=[200.0, 400.0, 900.0], gpu=[20.0, 60.0, 99.0], memory=[40.0, 30.0])
    found = ended(shadow, live)
    assert found.figures == {
        "requests": 40.0,
        "hours": 2.0,
        "live_spread": pytest.approx(0.14591, abs=1e-4),
        "mean_s": pytest.approx(0.35),
        "live_mean_s": pytest.approx(0.175),
        "gpu_s": pytest.approx(0.8 * 60 / 40),
        "live_gpu_s": pytest.approx(0.8 * 60 / 40),
        "gpu_memory_percent": 40.0,
    }
    assert "was 2.00 times today's" in found.reason.sentence


def test_without_gpu_and_tail_the_spread_is_one_and_nothing_else_is_told() -> None:
    found = ended(window(requests=10.0, mean=150.0), window(requests=10.0, mean=100.0))
    assert set(found.figures) == {"requests", "hours", "live_spread", "mean_s", "live_mean_s"}
    assert found.figures["live_spread"] == 1.0


def test_periods_without_a_request_weigh_nothing() -> None:
    rows: MetricWindow = window(requests=[1.0, 0.0, 1.0], mean=[100.0, 9000.0, 300.0])
    assert ended(rows, rows).figures["mean_s"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("live", "live_failed", "shadow", "shadow_failed", "refuted"),
    [
        ([1000.0] * 3 + [100.0], late(40.0), late(100.0), late(45.0), False),
        (late(100.0), [100.0] * 3 + [4.0], late(100.0), late(13.0), True),
        (late(100.0), late(4.0), [1000.0] * 3 + [100.0], late(13.0), True),
    ],
    ids=["requests of production", "failures of production", "requests of the shadow"],
)
def test_while_the_model_starts_neither_requests_nor_failures_are_compared(
    live: list[float], live_failed: list[float], shadow: list[float], shadow_failed: list[float], refuted: bool
) -> None:
    found = ended(
        window(requests=shadow, model_errors=shadow_failed, mean=100.0),
        window(requests=live, model_errors=live_failed, mean=100.0),
    )
    assert (found.failure is FailureClass.ERRORS) is refuted
