"""A queue that is worked off too slowly brings the old fleet back; one that was always long does not."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.changes import proof
from rightsizer.changes.baseline import BACKLOG, PROCESSED
from rightsizer.domain.change import Change, ChangeState, FailureClass
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.usage import MetricStatistic, MetricWindow, Series
from tests import samples

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
NAN = float("nan")


def change(**baseline: float) -> Change:
    return samples.change(START, state=ChangeState.APPLIED, turned_at=START, objective_p95_s=None, baseline=baseline)


def window(backlog: list[float], processed: list[float]) -> MetricWindow:
    rows: dict[MetricStatistic, list[float]] = {BACKLOG: backlog, PROCESSED[0]: processed}
    series = {signal: Series(START, 300, array("d", values)) for signal, values in rows.items()}
    return MetricWindow("chat", "AllTraffic", START, START + timedelta(hours=3), 300, series)


def judged(backlog: list[float], processed: list[float], at: Change | None = None) -> str:
    limits = ChangeLimits(probation=timedelta(hours=2))
    verdict = proof.proof_verdict(
        at or change(queue_s=30.0), [window(backlog, processed)], START + timedelta(hours=3), limits
    )
    assert verdict.judgement != "bad" or verdict.failure is FailureClass.PERFORMANCE
    return f"{verdict.judgement}: {verdict.reason.sentence}"


def harmless(backlog: list[float], processed: list[float], at: Change | None = None) -> bool:
    return not judged(backlog, processed, at).startswith("bad")


def test_a_queue_in_which_requests_wait_twice_as_long_as_ever_is_bad() -> None:
    said = judged([100.0] * 12, [30.0] * 12)  # 30 in 300 s: 100 waiting take 1,000 s
    assert said.startswith("bad: 100 requests were in the queue (100.0 per instance)")
    assert "waited 1000 s" in said
    assert "the limit is 60 s, the longest before was 30 s" in said


def test_a_longer_queue_that_is_worked_off_as_fast_is_no_harm() -> None:
    assert harmless([100.0] * 36, [1200.0] * 36), "100 at 4 a second wait 25 s"


def test_a_queue_of_which_nothing_is_worked_off_is_bad() -> None:
    assert "nothing was worked off" in judged([20.0] * 12, [0.0] * 12)
    assert harmless([2.0] * 12, [0.0] * 12), "two requests are no evidence"


@pytest.mark.parametrize("backlog", [[100.0, *[0.0] * 11], [100.0, NAN, NAN, NAN, NAN, 100.0]])
def test_a_burst_and_a_queue_that_was_seen_twice_are_no_evidence(backlog: list[float]) -> None:
    assert harmless(backlog, [100.0] * len(backlog))


def test_what_was_long_before_may_be_as_long() -> None:
    assert harmless([100.0] * 36, [30.0] * 36, change(queue_s=900.0))


@pytest.mark.parametrize(
    "at",
    [change(), replace(change(queue_s=30.0), option=replace(change().option, restores=True))],
    ids=["unknown before", "a way back to what was"],
)
def test_without_a_baseline_and_for_a_restore_the_queue_is_not_judged(at: Change) -> None:
    assert harmless([100.0] * 36, [30.0] * 36, at)


def test_a_fleet_that_sleeps_may_let_the_first_requests_wait_for_an_instance() -> None:
    option = replace(change().option, kind=OptionKind.SCALE_TO_ZERO)
    asleep = replace(change(), option=option)
    assert harmless([100.0] * 36, [30.0] * 36, asleep), "1,000 s of waking"
    assert not harmless([300.0] * 36, [30.0] * 36, asleep), "3,000 s is no waking"


def test_the_baseline_holds_the_longest_wait_of_half_an_hour() -> None:
    usual = proof.baseline([window([0.0] * 6 + [60.0] * 6 + [0.0] * 6, [300.0] * 18)])
    assert usual["queue_s"] == pytest.approx(60.0)
    assert "queue_s" not in proof.baseline([window([NAN] * 12, [300.0] * 12)])


def test_a_batch_after_days_without_a_queue_is_not_held_against_the_new_fleet() -> None:
    quiet = proof.baseline([window([0.0] * 12, [0.0] * 12), window([3.0] * 12, [300.0] * 12)])
    assert "queue_s" not in quiet
    batch = [2000.0, 1400.0, 800.0, 200.0, *[0.0] * 8]
    assert harmless(batch, [600.0, 600.0, 600.0, 200.0, *[0.0] * 8], change(**quiet))
    assert harmless([6.0] * 8 + [5.0] * 8, [0.0] * 8 + [1.0] + [0.0] * 7, change(**quiet)), "jobs of forty minutes"
