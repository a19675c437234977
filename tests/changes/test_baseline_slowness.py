"""A fleet that was slow in some half hours by habit is judged against that habit, and every other against its limit."""

from array import array
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.changes import proof
from rightsizer.changes.baseline import habit_start, slowness_before
from rightsizer.changes.guardrail import WatchedConfig, rollback_alarms
from rightsizer.changes.proof import LATENCY, REQUESTS, proof_verdict
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.usage import MetricWindow, Series
from tests import samples

START = datetime(2026, 11, 2, tzinfo=UTC)
LIMITS = ChangeLimits(probation=timedelta(hours=24))
QUICK, OBJECTIVE_S = 0.3, 0.5
SLOTS = 288


def served(start: datetime, *days: dict[int, float], requests: float = 2.0) -> MetricWindow:
    """Days of five minutes with two requests each, quick ones but where a period says its p95 in seconds."""
    slots = [day.get(slot, QUICK) * 1e6 for day in days for slot in range(SLOTS)]
    series = {
        REQUESTS: Series(start, 300, array("d", [requests] * len(slots))),
        LATENCY: Series(start, 300, array("d", slots)),
    }
    return MetricWindow("chat", "v", start, start + timedelta(days=len(days)), 300, series)


def crowd(at: int, seconds: float, periods: int = 4) -> dict[int, float]:
    """So many slow periods in a row."""
    return {at + number: seconds for number in range(periods)}


def figures(*before: dict[int, float], objective: float | None = OBJECTIVE_S) -> dict[str, float]:
    """The baseline of a change after these days."""
    windows = [served(START - timedelta(days=len(before)), *before)]
    usual = proof.baseline(windows)
    return {**usual, **slowness_before(windows, usual, objective)}


def judged(before: dict[str, float], *since: dict[int, float], objective: float | None = OBJECTIVE_S) -> str:
    made: Change = samples.change(
        START, state=ChangeState.APPLIED, turned_at=START, objective_p95_s=objective, baseline=before
    )
    return proof_verdict(made, [served(START, *since)], START + timedelta(days=len(since)), LIMITS).judgement


EACH_DAY = figures(crowd(100, 0.9), crowd(200, 0.8))


@pytest.mark.parametrize("objective", [OBJECTIVE_S, None])
def test_a_slow_half_hour_as_the_old_fleet_had_each_day_takes_nothing_back(objective: float | None) -> None:
    before = figures(crowd(100, 0.9), crowd(200, 0.8), objective=objective)
    assert before["slow_s/v"] == 0.8, "what both days reached"
    assert before["slow_periods/v"] == 4
    assert judged(before, crowd(50, 1.0), objective=objective) == "proven"


def test_without_such_a_habit_the_same_half_hour_takes_the_change_back() -> None:
    assert judged(figures({}, {}), crowd(50, 1.0)) == "bad"


def test_one_bad_day_is_an_incident_and_no_habit() -> None:
    before = figures(crowd(100, 9.0), {})
    assert "slow_s/v" not in before
    assert judged(before, crowd(50, 0.9)) == "bad"


def test_any_two_days_tell_a_habit_and_one_day_alone_tells_none() -> None:
    assert "slow_s/v" not in figures(crowd(100, 0.9))
    assert figures({}, crowd(100, 0.9), crowd(200, 0.8))["slow_s/v"] == 0.8
    assert figures(crowd(100, 0.9), {}, {}, crowd(200, 0.8), {})["slow_s/v"] == 0.8, "and they need not be the last"


def test_one_incident_that_two_days_share_is_no_habit() -> None:
    over_midnight = crowd(284, 9.0), crowd(0, 9.0)
    assert "slow_s/v" not in figures(*over_midnight, {}, {}, {})
    assert figures(crowd(100, 9.0), crowd(0, 0.9), {})["slow_s/v"] == 0.9, "16 hours apart"


def test_a_habit_is_forgiven_up_to_four_times_the_limit() -> None:
    before = figures(crowd(100, 30.0), crowd(200, 30.0))
    assert before["slow_s/v"] == 4 * OBJECTIVE_S
    assert judged(before, crowd(50, 8 * OBJECTIVE_S + 0.1)) == "bad", "twice the forgiven, however slow it was"


@pytest.mark.parametrize(
    ("changed", "days"),
    [((), 7), ((None, None), 7), ((30, None), 7), ((30, 4), 4), ((5, 12), 5), ((1,), 2), ((0,), 2)],
)
def test_the_habit_is_sought_in_the_week_of_the_fleet_that_runs_and_in_two_days_at_least(
    changed: tuple[int | None, ...], days: int
) -> None:
    ago = [None if n is None else START - timedelta(days=n) for n in changed]
    assert START - habit_start(START, *ago) == timedelta(days=days)


def test_twice_as_slow_as_the_slowest_half_hours_before_is_bad() -> None:
    assert judged(EACH_DAY, crowd(50, 1.59)) == "proven"
    assert judged(EACH_DAY, crowd(50, 1.61)) == "bad"


def test_slow_three_times_as_often_as_before_is_bad() -> None:
    assert judged(EACH_DAY, crowd(50, 0.9, 12)) == "proven"
    assert judged(EACH_DAY, crowd(50, 0.9, 13)) == "bad"
    assert judged(EACH_DAY, crowd(50, 0.9, 12), crowd(50, 0.9, 12)) == "proven", "each day is counted by itself"


def test_each_sentence_names_its_limit() -> None:
    made = samples.change(
        START, state=ChangeState.APPLIED, turned_at=START, objective_p95_s=OBJECTIVE_S, baseline=EACH_DAY
    )
    said = [
        proof_verdict(made, [served(START, day)], START + timedelta(days=1), LIMITS).reason.sentence
        for day in (crowd(50, 2.0), crowd(50, 0.9, 20))
    ]
    assert said[0] == (
        "p95 was 2000 ms in 3 of 6 periods; the bound, twice the slowest half hours of before, is 1600 ms"
    )
    assert said[1] == "p95 was over 500 ms in 20 periods of a day; the fleet before had 4 on such a day"


def test_too_few_requests_in_half_an_hour_make_no_habit() -> None:
    windows = [served(START - timedelta(days=2), crowd(100, 0.9), crowd(200, 0.9), requests=0.5)]
    assert slowness_before(windows, proof.baseline(windows), OBJECTIVE_S) == {}


def test_the_alarm_is_set_where_the_old_fleet_would_not_ring_it() -> None:
    def threshold_s(before: dict[str, float]) -> float:
        steps = rollback_alarms("c-1", WatchedConfig("chat", "new", ["v"]), "rs-", OBJECTIVE_S, before)
        return float(next(s.params["Threshold"] for s in steps if s.params["MetricName"] == "ModelLatency")) / 1e6

    assert threshold_s(figures({}, {})) == OBJECTIVE_S
    assert threshold_s(EACH_DAY) == pytest.approx(1.6)
