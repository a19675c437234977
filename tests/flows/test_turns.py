"""A long first reading ends in time, keeps what it read, and goes on where it ended or was killed."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from bench.calls import CONTEXT, batches, deploy, seed
from functions.evaluate.app import lambda_handler as evaluate
from functions.sweep.app import lambda_handler as sweep
from rightsizer import bootstrap
from rightsizer.aws.metrics import CloudWatchMetrics, RateLimiter
from rightsizer.flows.turns import Turns, divide_time
from sandbox.account import Sandbox

ENDPOINTS = 8


class Budget:
    """An invocation's time, of which work takes its part."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def left(self) -> float:
        return self.seconds


def test_without_an_end_the_turns_are_as_large_as_they_may_be() -> None:
    assert [(len(some), timely) for some, timely in Turns().divide(range(600))] == [
        (250, True),
        (250, True),
        (100, True),
    ]


def test_quick_turns_double_and_slow_ones_do_not() -> None:
    budget = Budget(290)
    got = []
    for number, (some, timely) in enumerate(Turns(budget.left, 5).divide(range(100))):
        got.append((len(some), timely))
        budget.seconds -= 2 if number < 2 else 40
    assert got == [(5, True), (10, True), (20, True), *[(5, True)] * 4, (45, False)]
    assert budget.seconds > 0


def test_nothing_is_begun_that_cannot_be_ended() -> None:
    assert list(Turns(Budget(59).left).divide("ab")) == [("ab", False)]


def test_a_turn_holds_so_many_days_whatever_the_look_back_is() -> None:
    made = [divide_time(days, Budget(300).left) for days in (14, 30, 63)]
    assert [(one.first, one.most) for one in made] == [(25, 250), (11, 116), (5, 55)]


def test_the_turns_of_an_invocation_leave_more_than_half_of_its_time() -> None:
    budget = Budget(300)
    used = []
    for some, timely in divide_time(63, budget.left).divide(range(1000)):
        used.append((len(some), timely))
        budget.seconds -= 20 if timely else 0
    assert used == [*[(5, True)] * 6, (970, False)]
    assert budget.seconds >= 165


def test_a_long_reading_is_held_to_the_quota_and_a_short_one_does_not_wait() -> None:
    now, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = RateLimiter(100.0, 1000.0, lambda: now[0], sleep)
    for _ in range(10):
        pace.take(100)
    assert slept == []
    for _ in range(10):
        pace.take(100)
    assert sum(slept) == pytest.approx(10.0)
    now[0] += 100
    pace.take(1000)
    assert sum(slept) == pytest.approx(10.0), "what was saved up meanwhile is spent first"


@pytest.fixture
def account() -> Iterator[tuple[Sandbox, str]]:
    """A few endpoints that nobody evaluated yet, and the queue with their page."""
    quiet = {"POWERTOOLS_LOG_LEVEL": "CRITICAL", "POWERTOOLS_METRICS_DISABLED": "true"}
    with Sandbox() as box:
        seed(box, ENDPOINTS)
        variables = deploy(box)
        with patch.dict(os.environ, variables | quiet), patch("rightsizer.flows.turns.FIRST_DAYS", 28):
            bootstrap.reset()
            bootstrap.set_clock(lambda: box.clock.now)
            at = box.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ")
            due = {"source": "rightsizer.scheduler", "detail-type": "Sweep Due", "id": "x", "time": at}
            sweep(due | {"detail": {"sweep": "full"}}, CONTEXT)
            yield box, variables["RIGHTSIZER_QUEUE_URL"]
            bootstrap.reset()


def timed(*millis: int) -> Any:
    """A context that has so much time left each time that it is asked; the last one stays."""
    told = list(millis)
    return SimpleNamespace(
        **asdict(CONTEXT), get_remaining_time_in_millis=lambda: told.pop(0) if len(told) > 1 else told[0]
    )


def asked(reads: list[int]) -> Any:
    """Counts the endpoints of each reading of metrics."""
    read = CloudWatchMetrics.read

    def counted(self: CloudWatchMetrics, requests: Any, *rest: Any) -> Any:
        reads.append(len(requests))
        return read(self, requests, *rest)

    return patch.object(CloudWatchMetrics, "read", counted)


def evaluated(box: Sandbox) -> int:
    with box.gate.unrecorded():
        rows = box.client("dynamodb").scan(TableName="rightsizer")["Items"]
    return sum(row["sk"]["S"] == "RECOMMENDATION" for row in rows)


def test_what_an_invocation_has_no_time_for_is_asked_for_anew_and_done_once(account: tuple[Sandbox, str]) -> None:
    box, queue = account
    reads = list[int]()
    with asked(reads):
        (first,) = list(batches(box, queue))[:1]
        assert (
            evaluate(first, timed(300_000, 300_000, 290_000, 290_000, 200_000, 180_000, 20_000))["batchItemFailures"]
            == []
        )
        done = evaluated(box)
        assert 0 < done < ENDPOINTS
        rest = next(iter(batches(box, queue)))
        assert evaluate(rest, timed(300_000))["batchItemFailures"] == []
    assert evaluated(box) == ENDPOINTS
    assert sum(reads) == ENDPOINTS, "each endpoint's metrics are read once"


def test_killed_in_the_middle_the_next_try_reads_only_the_rest(account: tuple[Sandbox, str]) -> None:
    box, queue = account
    (first,) = list(batches(box, queue))[:1]
    reads = list[int]()
    turns = iter(range(10))

    def killed_in_the_third(self: CloudWatchMetrics, requests: Any, *rest: Any) -> Any:
        if next(turns) == 2:
            raise KeyboardInterrupt
        return read(self, requests, *rest)

    read = CloudWatchMetrics.read
    with patch.object(CloudWatchMetrics, "read", killed_in_the_third), pytest.raises(KeyboardInterrupt):
        evaluate(first, timed(300_000, 294_000))
    done = evaluated(box)
    assert 0 < done < ENDPOINTS
    box.clock.advance(timedelta(minutes=30))
    with asked(reads):
        assert evaluate(first, timed(300_000))["batchItemFailures"] == []
    assert evaluated(box) == ENDPOINTS
    assert sum(reads) == ENDPOINTS - done
