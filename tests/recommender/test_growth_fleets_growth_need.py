"""What counts as a shortage, and what does not."""

from typing import Any

from rightsizer.domain.recommendation import Finding
from rightsizer.recommender.growth_fleets import FULL, QUEUE_DAYS, QUEUE_S
from tests.recommender.test_growth import LATE, judged

QUEUE: dict[str, Any] = {"per_slot": 60, "latency_s": 5, "gpu": 99, "memory": 90}
ASYNC = {**LATE["endpoint"], "kind": "asynchronous", "p95_s": None}


def test_a_queue_is_too_long_from_an_hour_of_work_on() -> None:
    assert (QUEUE_S, QUEUE_DAYS) == (3600, 2)
    for backlog, finding in ((719, Finding.OPTIMIZED), (721, Finding.UNDER_PROVISIONED)):
        assert judged(endpoint=ASYNC, usage={**QUEUE, "backlog": backlog}).finding is finding


def test_one_day_with_a_long_queue_is_a_burst() -> None:
    assert judged(endpoint=ASYNC, usage={**QUEUE, "backlog": 1508, "days": 2}).finding is Finding.UNDER_PROVISIONED
    assert judged(endpoint=ASYNC, usage={**QUEUE, "backlog": 1508, "days": 1}).finding is not Finding.UNDER_PROVISIONED


def test_a_busy_queue_is_too_small_where_ten_requests_a_day_expire_on_two_days() -> None:
    busy = {"latency_s": 12, "per_slot": 22, "gpu": 88, "memory": 60, "backlog": 8}
    for lost, days, finding in ((10.1, 2, True), (9.9, 2, False), (10.1, 1, False)):
        found = judged(endpoint=ASYNC, usage={**busy, "expired_per_day": lost, "days": days})
        assert (found.finding is Finding.UNDER_PROVISIONED) is finding, (lost, days)


def test_requests_that_wait_in_no_queue_of_sagemaker_are_no_backlog() -> None:
    plain = {**ASYNC, "kind": "real-time"}
    assert judged(endpoint=plain, usage={**QUEUE, "backlog": 1508}).finding is not Finding.UNDER_PROVISIONED


def test_full_memory_counts_only_where_requests_fail() -> None:
    assert FULL == 0.97
    usage = {"per_slot": 6, "gpu": 40, "memory": 98.5, "swing": 0.5}
    loose = {**LATE["endpoint"], "p95_s": 60.0}
    assert judged(endpoint=loose, usage=usage).finding is not Finding.UNDER_PROVISIONED
    failing = judged(endpoint=loose, usage={**usage, "errors_per_hour": 2})
    assert failing.finding is Finding.UNDER_PROVISIONED
    assert "while the GPU memory was full" in failing.reason.sentence
    serves = {**loose, "framework": "vllm"}
    assert "full" not in judged(endpoint=serves, usage={**usage, "errors_per_hour": 2}).reason.sentence


def test_a_declared_minimum_that_is_met_is_no_shortage() -> None:
    quiet = {"per_slot": 60, "gpu": 10, "memory": 90}
    for least, finding in ((1, Finding.OPTIMIZED), (3, Finding.UNDER_PROVISIONED)):
        found = judged(endpoint={**LATE["endpoint"], "p95_s": 6.0, "min_instances": least}, usage=quiet)
        assert found.finding is finding


def test_late_days_on_a_smaller_fleet_say_nothing_about_the_one_that_runs() -> None:
    before = {"until_days_ago": 2, "type": "ml.g6.xlarge", "count": 1, "usage": LATE["usage"]}
    calm = {"per_slot": 560, "gpu": 46, "memory": 90, "latency_s": 0.3}
    found = judged(endpoint={**LATE["endpoint"], "count": 2}, before=before, usage=calm)
    assert found.finding is not Finding.UNDER_PROVISIONED
