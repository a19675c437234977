"""An order to wake: when there is something to wake, when it serves, and how many a day are left."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rightsizer.changes.hours.wake import WakeTimes, awake_until, is_covered, wake_refusal, wake_times, wakes_left
from rightsizer.domain.hours_record import HoursRecord, HoursState, LetGo, Wake, take_wake
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.reason import Code, Reason
from tests.changes.hours.kit import HOURS, MORNING, NIGHT, REF

HOUR, LEAD = timedelta(hours=1), timedelta(minutes=45)
LIMITS = HoursLimits()
ASLEEP = HoursRecord(REF, HoursState.STOPPED, hours=HOURS)
WOKEN = replace(ASLEEP, wakes=(Wake(NIGHT, NIGHT + 4 * HOUR, "U1"),))


def test_the_stay_counts_from_when_it_should_serve() -> None:
    times = wake_times(ASLEEP, 2 * HOUR, LIMITS, NIGHT)
    assert (times.serves_by, times.until) == (NIGHT + LEAD, NIGHT + LEAD + 2 * HOUR)
    measured = wake_times(replace(ASLEEP, starts=(400.0,)), 2 * HOUR, LIMITS, NIGHT)
    assert measured.serves_by == NIGHT + timedelta(minutes=30)


def test_the_longest_wake_counts_from_the_order() -> None:
    assert wake_times(ASLEEP, 12 * HOUR, LIMITS, NIGHT).until == NIGHT + 12 * HOUR


def test_what_runs_serves_now_and_what_is_being_started_when_it_was_to_serve() -> None:
    later = NIGHT + timedelta(minutes=10)
    assert wake_times(replace(WOKEN, state=HoursState.RUNNING), HOUR, LIMITS, later).serves_by == later
    assert wake_times(replace(WOKEN, state=HoursState.STARTING), HOUR, LIMITS, later).serves_by == NIGHT + LEAD
    late = NIGHT + HOUR
    assert wake_times(replace(WOKEN, state=HoursState.STARTING), HOUR, LIMITS, late).serves_by == late


@pytest.mark.parametrize("state", [HoursState.STOPPED, HoursState.STOPPING])
def test_what_is_asleep_may_be_woken(state: HoursState) -> None:
    assert wake_refusal(replace(ASLEEP, state=state), LIMITS, NIGHT) is None


@pytest.mark.parametrize(
    ("record", "at", "code"),
    [
        (replace(ASLEEP, state=HoursState.RUNNING), MORNING + HOUR, Code.ALREADY_RIGHT),
        (replace(ASLEEP, state=HoursState.RUNNING), NIGHT, Code.ALREADY_RIGHT),
        (replace(ASLEEP, state=HoursState.STARTING), MORNING, Code.ALREADY_RIGHT),
        (replace(ASLEEP, state=HoursState.HANDED_OVER), NIGHT, Code.NEEDS_APPROVAL),
        (replace(WOKEN, state=HoursState.HANDED_OVER), NIGHT, Code.NEEDS_APPROVAL),
    ],
)
def test_what_is_not_asleep_has_nothing_to_wake(record: HoursRecord, at: datetime, code: Code) -> None:
    found = wake_refusal(record, LIMITS, at)
    assert found is not None
    assert found.code is code


def test_a_wake_that_holds_may_last_longer_and_covers_a_shorter_one() -> None:
    running, later = replace(WOKEN, state=HoursState.RUNNING), NIGHT + HOUR
    assert wake_refusal(running, LIMITS, later) is None
    assert awake_until(running, later) == NIGHT + 4 * HOUR
    assert awake_until(running, NIGHT + 4 * HOUR) is None
    assert is_covered(running, wake_times(running, HOUR, LIMITS, later), later)
    assert not is_covered(running, wake_times(running, 5 * HOUR, LIMITS, later), later)
    assert not is_covered(ASLEEP, wake_times(ASLEEP, HOUR, LIMITS, later), later)


def test_wakes_are_counted_within_24_hours() -> None:
    assert (wakes_left(ASLEEP, LIMITS, NIGHT), wakes_left(WOKEN, LIMITS, NIGHT)) == (3, 2)
    assert wakes_left(WOKEN, LIMITS, NIGHT + 24 * HOUR) == 3


def test_a_wake_that_holds_for_longer_than_a_day_is_kept_beside_a_new_one() -> None:
    limits = HoursLimits(longest_wake=72 * HOUR)
    long = replace(ASLEEP, wakes=(Wake(NIGHT, NIGHT + 60 * HOUR, "U1"),))
    at = NIGHT + 30 * HOUR
    taken = take_wake(long, Wake(at, at + HOUR, "U1"), limits)
    assert not isinstance(taken, Reason)
    assert awake_until(taken, at) == NIGHT + 60 * HOUR


NEEDED_LONGER = "where it is needed longer, change its tag rightsizer:hours, or wake it once it is asleep"


@pytest.mark.parametrize(
    ("record", "at", "sentence"),
    [
        (
            replace(ASLEEP, state=HoursState.RUNNING),
            MORNING + HOUR,
            f"it is not asleep; its hours end on Tue 3 Nov 2026, 18:00 UTC; {NEEDED_LONGER}",
        ),
        (replace(ASLEEP, state=HoursState.RUNNING), NIGHT, f"it is not asleep; {NEEDED_LONGER}"),
        (
            replace(ASLEEP, state=HoursState.RUNNING, let_go=LetGo(NIGHT, "U1", "")),
            NIGHT,
            f"it is not asleep; {NEEDED_LONGER}",
        ),
        (
            replace(ASLEEP, state=HoursState.STARTING),
            MORNING,
            "it is being started already, for its hours of Tue 3 Nov 2026, 07:00 UTC",
        ),
        (
            replace(ASLEEP, state=HoursState.STARTING, hours="unreadable"),
            NIGHT,
            "it is being started already, for its hours",
        ),
        (
            replace(ASLEEP, state=HoursState.HANDED_OVER),
            NIGHT,
            "it was handed over, so a person brings it back: nothing is done by itself any more",
        ),
        (
            replace(ASLEEP, state=HoursState.HANDED_OVER, reason=Reason(Code.VANISHED, "somebody deleted it")),
            NIGHT,
            "it was handed over, so a person brings it back: somebody deleted it",
        ),
    ],
)
def test_who_wakes_what_is_not_asleep_reads_what_to_do(record: HoursRecord, at: datetime, sentence: str) -> None:
    found = wake_refusal(record, LIMITS, at)
    assert found is not None
    assert found.sentence == sentence


def test_a_wake_covers_what_ends_five_minutes_later_and_holds_from_its_first_moment() -> None:
    running, ends = replace(WOKEN, state=HoursState.RUNNING), NIGHT + 4 * HOUR
    assert awake_until(running, NIGHT) == ends
    for minutes, covers in ((5, True), (6, False)):
        times = WakeTimes(NIGHT, ends + timedelta(minutes=minutes))
        assert is_covered(running, times, NIGHT) is covers


def test_no_wake_is_left_where_all_were_given() -> None:
    many = replace(ASLEEP, wakes=tuple(Wake(NIGHT - n * HOUR, NIGHT, "U1") for n in range(4)))
    assert wakes_left(many, LIMITS, NIGHT) == 0
