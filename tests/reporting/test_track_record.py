"""Promised slowdowns and stated risks against what was measured and what happened."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.domain.history import EndedChange, PastChange, PastEnd
from rightsizer.domain.outcome import TrackRecord
from rightsizer.domain.policy import Policy
from rightsizer.reporting.track_record import exact_range, track_record

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SINCE, UNTIL = NOW - timedelta(days=180), NOW + timedelta(hours=1)
PAST = PastChange(NOW, "ml.g5.2xlarge", "ml.g6.2xlarge", 1, 1, PastEnd.PROVEN, framework="vllm")


def one(endpoint: str = "chat", change_id: str = "c-1", **changes: Any) -> EndedChange:
    return EndedChange(endpoint, change_id, replace(PAST, **changes))


def speed(promised: float | None, measured: float | None, bound: float | None = None, **changes: Any) -> EndedChange:
    return one(promised_slowdown=promised, realised_slowdown=measured, promised_bound=bound, **changes)


def record(*remembered: EndedChange) -> TrackRecord:
    return track_record(remembered, SINCE, UNTIL, Policy())


def test_where_nothing_ended_there_is_no_figure() -> None:
    found = record()
    assert (found.ended, found.changes, found.outcomes, found.levels) == (0, 0, (), ())
    assert (found.overall.bias, found.overall.spread, found.brier, found.brier_without) == (None,) * 4


def test_one_outcome_has_a_bias_and_no_spread() -> None:
    found = record(speed(1.2, 1.5, 1.4))
    (outcome,) = found.outcomes
    assert outcome.ratio == pytest.approx(1.25)
    assert outcome.beyond is True
    assert found.overall.bias == pytest.approx(1.25)
    assert (found.overall.n, found.overall.spread) == (1, None)
    assert (found.overall.bounded, found.overall.beyond) == (1, 1)


def test_twice_as_slow_and_half_as_slow_as_promised_are_no_bias_and_a_wide_spread() -> None:
    overall = record(speed(1.0, 2.0), speed(1.0, 0.5, change_id="c-2")).overall
    assert overall.bias == pytest.approx(1.0)
    assert overall.spread == pytest.approx(math.exp(math.sqrt(2) * math.log(2)))


def test_exactly_at_the_bound_is_not_beyond_it() -> None:
    overall = record(speed(1.0, 1.25, 1.25), speed(1.0, 1.2501, 1.25, change_id="c-2")).overall
    assert (overall.bounded, overall.beyond) == (2, 1)


def test_endpoints_and_frameworks_are_told_apart_and_those_without_a_promise_are_no_group() -> None:
    found = record(
        speed(1.0, 1.1),
        speed(1.0, 1.2, change_id="c-2"),
        speed(1.0, 1.4, endpoint="rank", change_id="c-3", framework="triton"),
        speed(None, 1.4, endpoint="odd", change_id="c-4", framework=""),
    )
    assert [(group.name, group.n) for group in found.frameworks] == [("vllm", 2), ("triton", 1)]
    assert [(group.name, group.n) for group in found.endpoints] == [("chat", 2), ("rank", 1)]
    assert len(found.outcomes) == 4


def test_tests_count_for_the_slowdown_and_never_for_the_risk() -> None:
    found = record(speed(1.0, 1.1, ended=PastEnd.TESTED, stated_risk=1))
    assert (found.ended, found.changes, len(found.outcomes), found.levels) == (1, 0, 1, ())


def test_what_still_runs_is_left_out() -> None:
    found = record(speed(1.0, 1.1, ended=PastEnd.RUNNING, stated_risk=1))
    assert (found.ended, found.outcomes, found.levels) == (0, (), ())


@pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e-300, 1e300])
def test_a_figure_that_can_be_no_slowdown_is_not_measured_not_promised_and_no_bound(odd: float) -> None:
    assert record(speed(1.0, odd)).outcomes == ()
    unpromised = record(speed(odd, 1.3, odd, latency_ratio=odd))
    (outcome,) = unpromised.outcomes
    assert (outcome.promised, outcome.ratio, outcome.bound, outcome.beyond, outcome.latency_ratio) == (None,) * 5
    assert (unpromised.overall.n, unpromised.overall.bounded) == (0, 0)


@pytest.mark.parametrize("failure", ["alarm", "performance", "errors", "memory", "health-check"])
def test_a_change_that_went_back_for_how_it_served_fell_short_of_its_risk(failure: str) -> None:
    for ended in (PastEnd.ROLLED_BACK, PastEnd.UPDATE_FAILED, PastEnd.HANDED_OVER):
        (level,) = record(one(ended=ended, failure=failure, stated_risk=1)).levels
        assert (level.risk, level.n, level.fell_short) == (1, 1, 1)


@pytest.mark.parametrize(
    ("ended", "failure"),
    [
        (PastEnd.APPLIED, ""),
        (PastEnd.HANDED_OVER, "outside"),
        (PastEnd.HANDED_OVER, "unknown"),
        (PastEnd.ROLLED_BACK, "asked"),
        (PastEnd.ROLLED_BACK, "outside"),
        (PastEnd.UPDATE_FAILED, "capacity"),
        (PastEnd.UPDATE_FAILED, "quota"),
    ],
)
def test_what_went_back_for_another_reason_or_stands_unproven_tells_nothing_of_the_risk(
    ended: str, failure: str
) -> None:
    found = record(one(ended=ended, failure=failure, stated_risk=1))
    assert (found.changes, found.levels, found.brier) == (1, (), None)


def test_the_worst_harm_is_in_the_record() -> None:
    found = record(
        one(stated_risk=0),
        one(change_id="c-2", stated_risk=0, ended=PastEnd.HANDED_OVER, failure="errors"),
        one(change_id="c-3", stated_risk=0, ended=PastEnd.HANDED_OVER, failure="performance"),
    )
    assert (found.rated_changes, found.short_changes) == (3, 2)
    assert found.brier == pytest.approx(((0.005) ** 2 + 2 * (0.005 - 1) ** 2) / 3)


@pytest.mark.parametrize("failed_on_the_way", ["capacity", "unknown", "timeout", "permission", "outside"])
def test_a_change_whose_way_back_failed_too_fell_short_whatever_the_way_failed_for(failed_on_the_way: str) -> None:
    found = record(one(ended=PastEnd.HANDED_OVER, back_for="alarm", failure=failed_on_the_way, stated_risk=1))
    assert (found.rated_changes, found.short_changes) == (1, 1)


@pytest.mark.parametrize("failed_on_the_way", ["health-check", "memory", "alarm"])
def test_the_old_fleet_that_does_not_start_on_a_way_back_that_was_asked_for_is_not_the_new_ones_fault(
    failed_on_the_way: str,
) -> None:
    assert (
        record(one(ended=PastEnd.HANDED_OVER, back_for="asked", failure=failed_on_the_way, stated_risk=1)).rated_changes
        == 0
    )


def back(days: float, change_id: str = "c-9", **changes: Any) -> EndedChange:
    """A restoring change, that many days later, from the type that `PAST` led to."""
    types = {"from_type": PAST.to_type, "to_type": PAST.from_type} | changes
    return one(change_id=change_id, at=NOW - timedelta(days=20 - days), restores=True, **types)


def stood(change_id: str = "c-1", days: float = 0, stated_risk: int | None = 0, **changes: Any) -> EndedChange:
    return one(change_id=change_id, at=NOW - timedelta(days=20 - days), stated_risk=stated_risk, **changes)


def levels(*remembered: EndedChange) -> tuple[int, int]:
    found = record(*remembered)
    return found.rated_changes, found.short_changes


@pytest.mark.parametrize("ended", [PastEnd.PROVEN, PastEnd.APPLIED])
@pytest.mark.parametrize(
    "restored", [PastEnd.PROVEN, PastEnd.APPLIED, PastEnd.ROLLED_BACK, PastEnd.UPDATE_FAILED, PastEnd.HANDED_OVER]
)
def test_a_change_that_stood_until_a_restore_fell_short_however_the_restore_went(ended: str, restored: str) -> None:
    assert levels(stood(ended=ended), back(3, ended=restored, failure="capacity")) == (1, 1)


def test_a_count_that_a_restore_raised_again_fell_short() -> None:
    fewer = stood(to_type=PAST.from_type, from_count=4, to_count=2)
    assert levels(fewer, back(3, from_type=PAST.from_type, to_type=PAST.from_type)) == (1, 1)


def test_of_several_changes_a_restore_speaks_against_the_last_one() -> None:
    then = stood("c-2", 1, 2, from_type=PAST.to_type)
    found = record(stood(), then, back(3))
    assert [(level.risk, level.fell_short) for level in found.levels] == [(0, 0), (2, 1)]
    ordered = stood("c-2", 1, None, from_type=PAST.to_type)
    assert levels(stood(), ordered, back(3)) == (1, 0), "what a person ordered last is blamed, and states no risk"


def test_two_tries_of_a_restore_speak_against_one_change() -> None:
    tries = (back(3, "c-8", ended=PastEnd.UPDATE_FAILED, failure="capacity"), back(4))
    assert levels(stood("c-0", -9), stood(), *tries) == (2, 1)


@pytest.mark.parametrize(
    "other",
    [
        back(-1),
        back(0),
        replace(back(3), endpoint="rank"),
        back(3, from_type="ml.g6e.2xlarge"),
        back(3, ended=PastEnd.RUNNING),
        back(20.5),
        replace(back(3), past=replace(back(3).past, restores=False)),
    ],
    ids=["before", "at the same time", "of another", "from another type", "runs still", "after", "an order"],
)
def test_a_change_that_no_restore_took_back_stays_proven(other: EndedChange) -> None:
    assert levels(stood(), other) == (1, 0)


def test_what_was_handed_over_last_is_blamed_by_its_own_failure_alone() -> None:
    assert levels(stood(), stood("c-2", 1, ended=PastEnd.HANDED_OVER, failure="outside"), back(3)) == (1, 0)


def test_records_from_before_restores_were_kept_are_read() -> None:
    old = wire.plain(PAST)
    del old["restores"], old["back_for"]
    assert wire.revive(PastChange, old) == PAST


@pytest.mark.parametrize("stated", [None, -1, 5, 99])
def test_a_risk_that_was_not_stated_is_held_against_nothing(stated: int | None) -> None:
    assert record(one(stated_risk=stated)).levels == ()


def test_the_score_is_of_the_upper_end_of_each_class() -> None:
    found = record(
        one(stated_risk=2),
        one(change_id="c-2", stated_risk=4, ended=PastEnd.ROLLED_BACK, failure="alarm"),
        one(change_id="c-3", stated_risk=2, ended=PastEnd.ROLLED_BACK, failure="memory"),
    )
    assert found.brier == pytest.approx((0.05**2 + (1 - 1) ** 2 + (0.05 - 1) ** 2) / 3)
    assert found.brier_without == pytest.approx(2 / 3)
    assert [(level.risk, level.chance_from, level.chance) for level in found.levels] == [(2, 0.02, 0.05), (4, 0.2, 1.0)]
    assert (found.rated_changes, found.short_changes) == (3, 2)


def test_the_range_of_a_share_is_the_exact_one() -> None:
    many = [one(change_id=f"c-{k}", stated_risk=1, ended=PastEnd.PROVEN) for k in range(9)]
    (level,) = record(*many, one(change_id="c-9", stated_risk=1, ended=PastEnd.ROLLED_BACK, failure="alarm")).levels
    assert level.low == pytest.approx(0.00253, abs=1e-5)  # 1 of 10 in the tables of Clopper and Pearson
    assert level.high == pytest.approx(0.44502, abs=1e-5)
    (clean,) = record(*many).levels
    assert clean.low == 0.0
    assert clean.high == pytest.approx(1 - 0.025 ** (1 / 9))


def test_a_single_change_that_went_back_contradicts_no_stated_chance_above_the_lowest_class() -> None:
    assert exact_range(1, 1)[0] == pytest.approx(0.025)
    assert exact_range(0, 1)[1] == pytest.approx(0.975)


@pytest.mark.parametrize(("hits", "n"), [(0, 5000), (5000, 5000), (40, 5000)])
def test_the_range_of_thousands_of_changes_is_narrow_and_holds_their_share(hits: int, n: int) -> None:
    low, high = exact_range(hits, n)
    assert low <= hits / n <= high
    assert high - low < 0.006


def test_what_ended_before_or_after_is_left_out() -> None:
    ends = (SINCE - timedelta(seconds=1), SINCE, UNTIL - timedelta(seconds=1), UNTIL)
    found = record(*(speed(1.0, 1.1, change_id=f"c-{k}", at=at) for k, at in enumerate(ends)))
    assert [one.change_id for one in found.outcomes] == ["c-2", "c-1"]
    assert (found.ended, found.changes) == (2, 2)


def test_the_newest_outcome_comes_first() -> None:
    old = speed(1.0, 1.1, at=NOW - timedelta(days=3))
    assert [o.change_id for o in record(old, speed(1.0, 1.1, change_id="c-2")).outcomes] == ["c-2", "c-1"]


NUMBERS = st.none() | st.floats() | st.floats(0.2, 5.0)
PASTS = st.builds(
    lambda **fields: replace(PAST, **fields),
    at=st.integers(0, 5).map(lambda days: NOW - timedelta(days=days)),
    ended=st.sampled_from(
        [
            PastEnd.PROVEN,
            PastEnd.APPLIED,
            PastEnd.ROLLED_BACK,
            PastEnd.UPDATE_FAILED,
            PastEnd.HANDED_OVER,
            PastEnd.TESTED,
            PastEnd.RUNNING,
        ]
    ),
    failure=st.sampled_from(["", "alarm", "capacity", "memory", "asked"]),
    back_for=st.sampled_from(["", "alarm", "asked"]),
    restores=st.booleans(),
    to_type=st.sampled_from(["ml.g5.2xlarge", "ml.g6.2xlarge"]),
    framework=st.sampled_from(["", "vllm", "<b>"]),
    promised_slowdown=NUMBERS,
    promised_bound=NUMBERS,
    realised_slowdown=NUMBERS,
    latency_ratio=NUMBERS,
    stated_risk=st.none() | st.integers(-1, 6),
)
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b"]), PASTS), max_size=12).map(
    lambda rows: [EndedChange(name, f"c-{number}", past) for number, (name, past) in enumerate(rows)]
)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_what_is_remembered_is_nothing(rows: list[EndedChange], chance: Any) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)
    assert track_record(mixed, SINCE, UNTIL, Policy()) == track_record(rows, SINCE, UNTIL, Policy())


@given(ROWS)
def test_every_record_adds_up_and_travels_as_json(rows: list[EndedChange]) -> None:
    found = track_record(rows, SINCE, UNTIL, Policy())
    assert wire.loads(TrackRecord, wire.dumps(found)) == found
    for groups in (found.frameworks, found.endpoints):
        assert sum(group.n for group in groups) == found.overall.n
        assert all(group.beyond <= group.bounded for group in groups)
    assert found.overall.n <= len(found.outcomes) <= found.ended
    assert found.short_changes <= found.rated_changes <= found.changes <= found.ended
    assert (found.brier is None) == (found.rated_changes == 0)
    assert (found.overall.bias is None) == (found.overall.n == 0)
    assert (found.overall.spread is None) == (found.overall.n < 2)
    for level in found.levels:
        assert 0 <= level.low <= level.share <= level.high <= 1


@given(st.lists(st.tuples(st.floats(0.5, 4), st.floats(0.5, 4)), min_size=2, max_size=8), st.floats(0.5, 2))
def test_everything_slower_by_a_factor_moves_the_bias_by_it_and_not_the_spread(
    pairs: list[tuple[float, float]], by: float
) -> None:
    once = [speed(promised, measured, change_id=f"c-{k}") for k, (promised, measured) in enumerate(pairs)]
    slower = [speed(promised, measured * by, change_id=f"c-{k}") for k, (promised, measured) in enumerate(pairs)]
    first, then = record(*once).overall, record(*slower).overall
    assert first.bias is not None
    assert then.bias == pytest.approx(first.bias * by)
    assert then.spread == pytest.approx(first.spread, rel=1e-6)
