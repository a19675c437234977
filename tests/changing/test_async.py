"""An asynchronous endpoint is judged by what left its queue: it publishes no Invocations."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes import proof
from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.endpoint import EndpointKind
from sandbox.scaling.sleeping import Queue
from tests.changing.world import NAME, World, steady, world

QUEUED: dict[str, Any] = {"kind": EndpointKind.ASYNC, "asynchronous": True}


def metrics_read(w: World) -> set[str]:
    queries = [
        query for call in w.box.calls.of("cloudwatch", "GetMetricData") for query in call.params["MetricDataQueries"]
    ]
    return {query["MetricStat"]["Metric"]["MetricName"] for query in queries}


def test_a_change_of_type_is_proven_by_what_left_the_queue() -> None:
    with world(**QUEUED) as w:
        w.start()
        change = w.run(12)
        published = metrics_read(w)
    assert change.state is ChangeState.PROVEN, change.outcome
    assert published >= {"InvocationsProcessed", "InvocationsProcesssed", "InvocationFailures", "ExpiredRequests"}
    assert "ApproximateBacklogSize" in published


def test_failures_in_the_queue_bring_the_old_type_back() -> None:
    with world(**QUEUED) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        w.box.load(NAME, steady(errors=30))
        change = w.run(12)
    assert change.state is ChangeState.ROLLED_BACK
    assert change.failure is FailureClass.PERFORMANCE
    assert "requests failed" in change.outcome


def test_requests_that_expire_in_the_queue_are_failures() -> None:
    with world(load=steady(requests=2), **QUEUED) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        start = w.now.replace(minute=w.now.minute // 5 * 5, second=0, microsecond=0) + timedelta(minutes=5)
        w.box.put_series(NAME, "AllTraffic", "ExpiredRequests", start, 300, [4.0] * 6)
        change = w.run(12)
    assert change.state is ChangeState.ROLLED_BACK
    assert "requests failed" in change.outcome


def test_a_queue_that_grows_under_the_new_type_brings_the_old_one_back() -> None:
    with world(load=steady(requests=6), **QUEUED) as w:
        queue = Queue(backlog=6, most_a_minute=6)
        w.box.world.fleet.load.queues[NAME] = queue
        w.box.clock.advance(timedelta(hours=1))
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        queue.most_a_minute = 1
        change = w.run(12)
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.PERFORMANCE), change.outcome
    assert "were in the queue" in change.outcome


def test_what_was_usual_comes_from_the_queue_too() -> None:
    with world(load=steady(errors=6), **QUEUED) as w:
        w.box.clock.advance(timedelta(hours=2))
        change = w.start()
    assert change.baseline["error_share"] == pytest.approx(0.1)


def test_other_endpoints_are_not_asked_for_a_queue() -> None:
    with world() as w:
        w.start()
        w.run(1)
        assert "InvocationFailures" not in metrics_read(w)
    assert proof.watched_metrics(asynchronous=False) == proof.SIGNALS
