"""Office hours are wall time; both clock changes are read in the callers' favour, and a malformed tag says why."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.office_hours import (
    FIRST_LEAD,
    LEAST_LEAD,
    MOST_LEAD,
    HoursLimits,
    Opening,
    lead_time,
    parse_hours,
)
from rightsizer.errors import InputError

OFFICE = parse_hours("mon-fri 08:00-19:00 Europe/Berlin")
MOMENTS = st.integers(1_767_225_600, 1_861_920_000).map(lambda at: datetime.fromtimestamp(at, UTC))
MINUTE = timedelta(minutes=1)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
CLOCK = st.integers(0, 1439).map(lambda minutes: f"{minutes // 60:02}:{minutes % 60:02}")
DAY = st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Tags that can be read."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        first, last = draw(DAY), draw(DAY)
        start, end = draw(CLOCK), draw(CLOCK)
        parts += [f"{first}-{last}", f"{start}-{end if end != start else '24:00' if start == '00:00' else '00:00'}"]
    return " ".join((*parts, draw(ZONES)))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


def test_a_working_day_opens_and_closes_by_the_clock_of_its_zone() -> None:
    assert OFFICE.opening(utc(2026, 11, 2, 6, 59)) is None
    assert OFFICE.opening(utc(2026, 11, 2, 7)) == Opening(utc(2026, 11, 2, 7), utc(2026, 11, 2, 18))
    assert OFFICE.opening(utc(2026, 11, 2, 18)) is None
    assert OFFICE.next_opening(utc(2026, 11, 6, 18)) == Opening(utc(2026, 11, 9, 7), utc(2026, 11, 9, 18))


def test_summer_time_moves_the_opening_and_not_the_clock() -> None:
    friday, monday = utc(2026, 3, 27, 12), utc(2026, 3, 30, 12)
    assert OFFICE.opening(friday) == Opening(utc(2026, 3, 27, 7), utc(2026, 3, 27, 18))
    assert OFFICE.opening(monday) == Opening(utc(2026, 3, 30, 6), utc(2026, 3, 30, 17))


def test_a_start_that_the_clock_skips_is_early_and_an_end_is_late() -> None:
    night = parse_hours("sun 02:30-05:00 Europe/Berlin")
    assert night.opening(utc(2026, 3, 29, 1)) == Opening(utc(2026, 3, 29, 0, 30), utc(2026, 3, 29, 3))
    until = parse_hours("sun 00:00-02:30 Europe/Berlin").opening(utc(2026, 3, 29, 0))
    assert until is not None
    assert until.end == utc(2026, 3, 29, 1, 30)


def test_an_hour_that_comes_twice_belongs_to_the_opening_both_times() -> None:
    until = parse_hours("sun 00:00-02:30 Europe/Berlin")
    assert until.opening(utc(2026, 10, 25, 1, 15)) is not None, "02:15 for the second time"
    since = parse_hours("sun 02:30-04:00 Europe/Berlin")
    assert since.opening(utc(2026, 10, 25, 0, 45)) is not None, "02:45 for the first time"


def test_several_spans_and_days_stand_with_spaces_between_them() -> None:
    split = parse_hours("mon-thu 08:00-12:00 13:00-18:00 fri 08:00-12:00 sat sun 10:00-11:00 UTC")
    assert split.opening(utc(2026, 11, 2, 12, 30)) is None
    assert split.opening(utc(2026, 11, 2, 13)) is not None
    assert split.opening(utc(2026, 11, 6, 13)) is None
    assert split.opening(utc(2026, 11, 8, 10, 59)) is not None


def test_a_night_shift_belongs_to_the_day_on_which_it_starts() -> None:
    night = parse_hours("fri 22:00-06:00 UTC")
    assert night.opening(utc(2026, 11, 7, 5, 59)) == Opening(utc(2026, 11, 6, 22), utc(2026, 11, 7, 6))
    assert night.opening(utc(2026, 11, 6, 5)) is None


def test_openings_that_touch_are_one() -> None:
    assert parse_hours("mon 08:00-12:00 12:00-18:00 UTC").opening(utc(2026, 11, 2, 9)) == Opening(
        utc(2026, 11, 2, 8), utc(2026, 11, 2, 18)
    )
    always = parse_hours("daily 00:00-24:00 UTC")
    assert always.opening(utc(2026, 11, 2, 9)) is not None
    assert always.next_opening(utc(2026, 11, 2, 9)) is None


def test_a_holiday_stays_closed_and_its_eve_does_not_end_earlier() -> None:
    christmas = frozenset({date(2026, 12, 25)})
    assert OFFICE.opening(utc(2026, 12, 25, 12), christmas) is None
    found = OFFICE.next_opening(utc(2026, 12, 24, 18), christmas)
    assert found is not None
    assert found.start == utc(2026, 12, 28, 7)
    night = parse_hours("daily 22:00-06:00 UTC")
    assert night.opening(utc(2026, 12, 25, 5), christmas) is not None, "it began on the eve"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "it should look like"),
        ("mon-fri 08:00-19:00", "it should look like"),
        ("mon-fri 08:00-19:00 Berlin", "no time zone 'Berlin'"),
        ("mon-fri 08:00-19:00 ../etc/passwd", "no time zone"),
        ("mon-fri 8-19 Europe/Berlin", "'8-19' is no time"),
        ("mon-fri 08:00-25:00 Europe/Berlin", "'08:00-25:00' is no time"),
        ("mon-fri 08:00-24:30 Europe/Berlin", "is no time"),
        ("mon-fri 08:00-08:00 Europe/Berlin", "starts when it ends"),
        ("mo-fr 08:00-19:00 Europe/Berlin", "'mo-fr' is neither days"),
        ("mon- 08:00-19:00 Europe/Berlin", "'mon-' is neither days"),
        ("08:00-19:00 mon-fri Europe/Berlin", "has no days before it"),
        ("mon 08:00-19:00 tue Europe/Berlin", "no time follows"),
    ],
)
def test_a_malformed_tag_says_which_part_cannot_be_read(text: str, part: str) -> None:
    with pytest.raises(InputError, match="rightsizer:hours") as found:
        parse_hours(text)
    assert part in str(found.value)


@given(st.text(max_size=60))
def test_any_text_is_hours_or_an_input_error(text: str) -> None:
    with suppress(InputError):
        assert parse_hours(text).spans


@given(texts(), MOMENTS)
def test_the_next_opening_lies_ahead_and_nothing_opens_before_it(text: str, now: datetime) -> None:
    hours = parse_hours(text)
    following = hours.next_opening(now)
    inside = hours.opening(now)
    assert inside is None or inside.start <= now < inside.end
    if following is None:
        return
    assert following.start > now
    assert hours.opening(following.start) == following
    assert hours.opening(following.start - MINUTE) is None
    between = now if inside is None else inside.end
    middle = between + (following.start - between) / 2
    if between < following.start:
        assert hours.opening(middle) is None


@given(texts(), MOMENTS)
def test_whatever_the_clock_on_the_wall_shows_inside_a_span_is_open(text: str, now: datetime) -> None:
    """The plain reading of the tag, minute by minute, never says open where the answer says closed."""
    hours = parse_hours(text)
    wall = now.astimezone(ZoneInfo(hours.zone))
    minutes, day = 60 * wall.hour + wall.minute, wall.weekday()
    plain = any(
        (day in one.days and one.start <= minutes < (one.end if one.end > one.start else 1440))
        or (one.end <= one.start and (day - 1) % 7 in one.days and minutes < one.end)
        for one in hours.spans
    )
    assert not plain or hours.opening(now) is not None


def test_the_lead_is_learnt_from_the_longest_of_the_last_starts() -> None:
    assert lead_time(()) == FIRST_LEAD
    assert lead_time((60.0,)) == LEAST_LEAD
    assert lead_time((600.0, 1200.0, 300.0)) == timedelta(minutes=50)
    assert lead_time((36_000.0,)) == MOST_LEAD
    assert lead_time((3600.0, *(600.0,) * 10)) == timedelta(minutes=35), "ten starts ago is forgotten"


def test_limits_that_would_cut_off_callers_or_never_end_are_refused() -> None:
    with pytest.raises(InputError, match="stop_grace_minutes"):
        HoursLimits(grace=timedelta(minutes=1))
    with pytest.raises(InputError, match="longest_wake_hours"):
        HoursLimits(longest_wake=timedelta(days=30))
