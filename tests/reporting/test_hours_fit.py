"""Proposed office hours: no request of the look-back falls silently outside of them, whatever the zone."""

import math
from array import array
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.office_hours import parse_hours
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import SLOT_S, MetricStatistic, MetricWindow, Series
from rightsizer.reporting.hours_fit import (
    EVIDENCE,
    FIVE_MINUTES,
    STRAY_DAYS,
    STRAY_SHARE,
    FittedHours,
    fit_hours,
    look_back,
    request_times,
    zone_of,
)
from tests.reporting.hours_kit import NOW, times, total

ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])


def fitted(found: FittedHours | Reason) -> FittedHours:
    assert isinstance(found, FittedHours), found
    return found


@st.composite
def weeks(draw: st.DrawFn) -> tuple[Mapping[int, tuple[int, int]], Mapping[tuple[int, int], float]]:
    """For some weekdays a span of the clock, and a few requests at any minute of any day."""
    spans = {}
    for day in draw(st.sets(st.integers(0, 6), min_size=1)):
        start, length = draw(st.integers(0, 1439)), draw(st.integers(5, 900))
        spans[day] = start, start + length
    strays = draw(st.dictionaries(st.tuples(st.integers(0, 27), st.integers(0, 287)), st.just(1.0), max_size=3))
    return spans, strays


@given(weeks(), ZONES)
def test_no_request_falls_silently_outside_of_the_hours(
    week: tuple[Mapping[int, tuple[int, int]], Mapping[tuple[int, int], float]], zone: str
) -> None:
    spans, strays = week
    first = look_back(zone, 28, NOW)[0].astimezone(zone_of(zone)).date()

    def calls(wall: datetime) -> float:
        minute = 60 * wall.hour + wall.minute
        stray = strays.get(((wall.date() - first).days, minute // 5), 0.0)
        for day, at in ((wall.weekday(), minute), ((wall.weekday() - 1) % 7, minute + 1440)):
            if day in spans and spans[day][0] <= at < spans[day][1]:
                return 50.0 + stray
        return stray

    seen = times(calls, zone)
    found = fit_hours(seen, zone, 28)
    if isinstance(found, Reason):
        assert found.code in (Code.NOT_CHEAPER, Code.IDLE)
        return
    hours = parse_hours(found.text)
    listed = {door.at: door.requests for door in found.closed_doors}
    for number, asked in enumerate(seen.requests):
        at = seen.at(number)
        opening = hours.opening(at) if asked else None
        if asked and (opening is None or at + FIVE_MINUTES > opening.end):
            assert listed.pop(at) == asked
    assert not listed
    assert sum(door.requests for door in found.closed_doors) <= STRAY_SHARE * total(seen.requests)
    assert len({door.at.astimezone(zone_of(zone)).date() for door in found.closed_doors}) <= STRAY_DAYS
    assert 0 < found.closed_hours < 168


def office(wall: datetime) -> float:
    return 20.0 if wall.weekday() < 5 and 9 <= wall.hour < 17 else 0.0


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_hours_follow_the_clock_of_the_zone_through_its_changes(zone: str) -> None:
    found = fitted(fit_hours(times(office, zone), zone, 28))
    assert found.text == f"mon-fri 08:30-17:30 {zone}"
    assert found.closed_doors == ()
    assert (found.days, found.unknown_slots, found.running_share) == (28, 0, 1.0)


def test_bins_of_utc_after_the_clock_change_are_not_the_hours_of_the_clock() -> None:
    """Callers follow Berlin; read in UTC, the hours must cover them before and after the clock changed."""
    now = datetime(2026, 11, 10, 12, tzinfo=UTC)
    start, end = look_back("UTC", 28, now)
    seen = times(office, "UTC")
    walls = [
        (start + n * FIVE_MINUTES).astimezone(zone_of("Europe/Berlin")) for n in range((end - start) // FIVE_MINUTES)
    ]
    calls = tuple(office(wall) for wall in walls)
    moved = type(seen)(start, calls, tuple(1.0 for _ in calls))
    assert fitted(fit_hours(moved, "UTC", 28)).text == "mon-fri 06:30-16:30 UTC"
    berlin_start, berlin_end = look_back("Europe/Berlin", 28, now)
    walls = [
        (berlin_start + n * FIVE_MINUTES).astimezone(zone_of("Europe/Berlin"))
        for n in range((berlin_end - berlin_start) // FIVE_MINUTES)
    ]
    local = type(seen)(berlin_start, tuple(office(w) for w in walls), tuple(1.0 for _ in walls))
    assert fitted(fit_hours(local, "Europe/Berlin", 28)).text == "mon-fri 08:30-17:30 Europe/Berlin"


def test_the_start_before_each_opening_and_the_stop_are_billed() -> None:
    found = fitted(fit_hours(times(office), "UTC", 28))
    open_hours, starts = 5 * 9, 5 * (45 + 10) / 60
    assert found.closed_hours == pytest.approx(168 - open_hours - starts)
    assert found.closed_share == pytest.approx(found.closed_hours / 168)


def test_a_rest_shorter_than_two_hours_beside_the_start_saves_nothing() -> None:
    def long_days(wall: datetime) -> float:
        return 0.0 if 1 <= wall.hour < 4 else 5.0  # three hours of silence, an hour of them margin

    found = fit_hours(times(long_days), "UTC", 28)
    assert isinstance(found, Reason)
    assert found.code is Code.NOT_CHEAPER


def test_days_that_end_alike_share_a_span_and_others_have_their_own() -> None:
    def week(wall: datetime) -> float:
        if wall.weekday() == 5:
            return 5.0 if 10 <= wall.hour < 12 else 0.0
        return 20.0 if wall.weekday() < 5 and 8 <= wall.hour < (18 if wall.weekday() < 4 else 17) else 0.0

    found = fitted(fit_hours(times(week), "UTC", 28))
    assert found.text == "mon-fri 07:30-18:30 sat 09:30-12:30 UTC"


def test_hours_past_midnight_belong_to_the_evening() -> None:
    def evenings(wall: datetime) -> float:
        return 20.0 if wall.hour >= 18 or wall.hour < 2 else 0.0

    assert fitted(fit_hours(times(evenings), "UTC", 28)).text == "daily 17:30-02:30 UTC"


def test_hours_close_half_an_hour_after_the_latest_request_also_where_that_is_past_midnight() -> None:
    def late(wall: datetime) -> float:
        return 20.0 if wall.weekday() < 5 and wall.hour >= 12 else 0.0

    def early(wall: datetime) -> float:
        return 20.0 if wall.weekday() < 5 and wall.hour < 10 else 0.0

    assert fitted(fit_hours(times(late), "UTC", 28)).text == "mon-fri 11:30-00:30 UTC"
    assert fitted(fit_hours(times(early), "UTC", 28)).text == "mon-thu sun 23:30-10:30 UTC"


def test_days_that_are_open_all_day_end_at_midnight() -> None:
    def workdays(wall: datetime) -> float:
        return 20.0 if wall.weekday() < 5 else 0.0

    assert fitted(fit_hours(times(workdays), "UTC", 28)).text == "mon-fri 00:00-24:00 UTC"


def test_one_try_at_night_is_listed_with_its_time_and_count() -> None:
    def tried(wall: datetime) -> float:
        return 2.0 if (wall.day, wall.hour, wall.minute) == (14, 3, 10) else office(wall)

    found = fitted(fit_hours(times(tried), "UTC", 28))
    assert found.text == "mon-fri 08:30-17:30 UTC"
    assert [(door.at, door.requests) for door in found.closed_doors] == [
        (datetime(2026, 11, 14, 3, 10, tzinfo=UTC), 2.0)
    ]


def test_what_comes_on_three_saturdays_is_no_stray() -> None:
    def tried(wall: datetime) -> float:
        often = wall.weekday() == 5 and wall.day > 1 and (wall.hour, wall.minute) == (3, 10)
        return 1.0 if often else office(wall)

    found = fitted(fit_hours(times(tried), "UTC", 28))
    assert "sat 02:30-04:00" in found.text
    assert found.closed_doors == ()


def test_many_requests_of_one_night_are_no_stray() -> None:
    def batch(wall: datetime) -> float:
        return 500.0 if wall.day == 14 and wall.hour == 3 else office(wall)

    assert fitted(fit_hours(times(batch), "UTC", 28)).closed_doors == ()


def test_too_few_days_and_gaps_are_said_and_unknown_is_not_silent() -> None:
    young = fit_hours(times(lambda w: None if w < NOW - timedelta(days=20) else office(w)), "UTC", 28)
    assert isinstance(young, Reason)
    assert (young.code, "metrics begin 19.5 days" in young.sentence, "28 days" in young.sentence) == (
        Code.TOO_FEW_DAYS,
        True,
        True,
    )
    holes = fit_hours(times(lambda w: None if w.hour in (2, 3) else office(w)), "UTC", 28)
    assert isinstance(holes, Reason)
    assert holes.code is Code.TOO_MANY_GAPS
    some = fitted(fit_hours(times(lambda w: None if (w.day, w.hour) == (12, 3) else office(w)), "UTC", 28))
    assert some.unknown_slots == 12
    nothing = fit_hours(times(lambda _: None), "UTC", 28)
    assert isinstance(nothing, Reason)
    assert nothing.code is Code.NO_DATAPOINTS


def test_requests_at_all_hours_leave_no_time_to_close() -> None:
    found = fit_hours(times(lambda _: 1.0), "UTC", 28)
    assert isinstance(found, Reason)
    assert found.code is Code.NOT_CHEAPER


def series(values: list[float]) -> Series:
    return Series(NOW, SLOT_S, array("d", values))


def test_no_request_beside_a_running_instance_is_silence_and_alone_it_is_unknown() -> None:
    def window(of: dict[MetricStatistic, Series]) -> MetricWindow:
        return MetricWindow("e", "v", NOW, NOW + 4 * FIVE_MINUTES, SLOT_S, of)

    calls, samples = EVIDENCE
    nan = math.nan
    read = request_times(window({calls: series([3, nan, nan, 2]), samples: series([20, 10, nan, 10])}))
    assert read is not None
    assert read.requests == (3.0, 0.0, None, 2.0)
    assert read.running == (2.0, 1.0, None, 1.0)
    assert request_times(window({})) is None
