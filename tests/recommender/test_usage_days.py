"""From when a variant must be read, what is kept of it, and on which page."""

import zlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.usage import SLOTS, DailyUsage, KeptUsage
from rightsizer.recommender.usage_days import (
    ReadPlan,
    complete_until,
    configured_at,
    known_until,
    page_of,
    plan_reading,
    usage_to_keep,
)
from tests.recommender import kit
from tests.recommender.plain import past

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
TODAY, FIRST = date(2026, 11, 20), date(2026, 11, 6)
OLD = NOW - timedelta(days=60)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def endpoint(**more: Any) -> Endpoint:
    return replace(kit.endpoint(), modified_at=OLD, **more)


def day(when: date) -> DailyUsage:
    none = (None,) * 4
    return DailyUsage(when, "ml.g5.xlarge", 1, (1.0,) * SLOTS, (1.0,) * SLOTS, (1.0,) * 24, (), 0.0, 0.0, *none)


DAYS = tuple(day(date(2026, 11, 5) + timedelta(days=n)) for n in range(15))
KEPT = KeptUsage("chat", "AllTraffic", OLD, FIRST, date(2026, 11, 19), DAYS)


def read(kept: KeptUsage | None, of: Endpoint | None = None, now: datetime = NOW, *changes: Any) -> ReadPlan:
    return plan_reading(of or endpoint(), kept, History(endpoint=changes), 14, now)


def test_a_day_is_complete_an_hour_after_its_end_and_an_hour_after_its_own() -> None:
    assert complete_until(NOW) == TODAY
    assert complete_until(NOW.replace(hour=0, minute=59)) == date(2026, 11, 19)
    assert complete_until(NOW.replace(hour=1, minute=0)) == TODAY
    assert known_until(NOW) == NOW.replace(hour=9, minute=0)
    assert known_until(NOW.replace(minute=59, second=59, microsecond=9)) == NOW.replace(hour=9, minute=0)


def test_without_kept_days_all_of_the_look_back_is_read() -> None:
    assert read(None) == ReadPlan(midnight(FIRST), midnight(TODAY), FIRST)


def test_with_kept_days_only_those_since_are_read() -> None:
    known = tuple(d for d in DAYS if FIRST <= d.day < date(2026, 11, 19))
    assert len(known) == 13
    assert read(KEPT) == ReadPlan(midnight(date(2026, 11, 19)), midnight(TODAY), FIRST, known)


def test_days_outlive_the_nights_of_office_hours_and_no_other_modification() -> None:
    evening, morning = NOW - timedelta(hours=14), NOW - timedelta(hours=2)
    again = replace(endpoint(), modified_at=morning)
    night = StoppedTime(evening, morning, OLD, morning)
    spared = plan_reading(again, KEPT, History(stopped=(night,)), 14, NOW)
    assert spared == read(KEPT), "a morning is no modification, and asks for no look at the running day"
    assert plan_reading(again, KEPT, History(stopped=(replace(night, modified_at=None),)), 14, NOW).known == ()
    by_others = replace(again, modified_at=morning + timedelta(hours=1))
    assert plan_reading(by_others, KEPT, History(stopped=(night,)), 14, NOW).known == ()


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(replace(KEPT, first=date(2026, 11, 7)), id="too short"),
        pytest.param(replace(KEPT, first=date(2026, 11, 5), until=FIRST), id="too old"),
        pytest.param(replace(KEPT, until=date(2026, 11, 21)), id="from the future"),
        pytest.param(replace(KEPT, modified_at=OLD - timedelta(days=1)), id="others modified it since"),
    ],
)
def test_kept_days_are_worth_nothing_where(kept: KeptUsage) -> None:
    assert read(kept) == ReadPlan(midnight(FIRST), midnight(TODAY), FIRST)


def test_kept_days_are_still_worth_something_at_their_bounds() -> None:
    assert read(replace(KEPT, until=TODAY)).known
    assert read(replace(KEPT, until=date(2026, 11, 7))).start == midnight(date(2026, 11, 7))
    assert read(replace(KEPT, first=date(2026, 10, 1))).first == date(2026, 10, 1)


def test_a_change_of_ours_or_scaling_leaves_the_days_worth_what_they_were() -> None:
    other = replace(KEPT, modified_at=OLD - timedelta(days=1))
    ours = replace(past(), at=OLD - timedelta(hours=5, minutes=59))
    assert read(other, None, NOW, ours).known
    assert not read(other, None, NOW, replace(ours, at=OLD - timedelta(hours=6))).known
    assert not read(other, None, NOW, replace(ours, at=OLD + timedelta(hours=6))).known
    scaled = endpoint(scaling=(ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 1, 4),))
    assert read(other, scaled).known


def test_the_running_day_is_read_of_an_endpoint_that_was_modified_in_the_last_two_days() -> None:
    for hours, end in ((47.9, known_until(NOW)), (48.0, midnight(TODAY))):
        lately = replace(endpoint(), modified_at=NOW - timedelta(hours=hours))
        assert read(None, lately).end == end


def test_nothing_is_read_that_cloudwatch_is_about_to_forget() -> None:
    found = plan_reading(endpoint(), None, History(), 90, NOW)
    assert found.start == known_until(NOW) - timedelta(days=63) + timedelta(hours=1)
    assert found.first == TODAY - timedelta(days=90)
    assert plan_reading(endpoint(), None, History(), 62, NOW).start == midnight(TODAY - timedelta(days=62))


def test_complete_days_are_kept_from_the_first_that_was_read() -> None:
    done = ReadPlan(midnight(FIRST), midnight(TODAY), FIRST)
    days = (day(date(2026, 11, 19)), day(TODAY))
    kept = usage_to_keep(endpoint(), done, days, NOW)
    assert kept == KeptUsage("chat", "AllTraffic", OLD, FIRST, TODAY, days[:1])
    early = usage_to_keep(endpoint(), replace(done, first=date(2026, 11, 25)), (), NOW)
    assert (early.first, early.until) == (TODAY, TODAY)


def test_a_page_follows_from_the_name_alone_and_pages_double() -> None:
    check = zlib.crc32(b"chat")
    assert page_of("chat", 0) == page_of("chat", 256) == "1/0000"
    assert page_of("chat", 257) == page_of("chat", 512) == f"2/{check % 2:04}"
    assert page_of("chat", 513) == f"4/{check % 4:04}"
    assert page_of("chat", 128, days=28) == "1/0000"
    assert page_of("chat", 129, days=28) == f"2/{check % 2:04}"
    assert page_of("chat", 256 * 4096) == f"4096/{check % 4096:04}"
    assert page_of("other", 256 * 4096) != page_of("chat", 256 * 4096)


TESTED = NOW - timedelta(hours=3)
"""When a shadow test of ours ended, which was the endpoint's last modification."""
OUR_TEST = replace(past(ended=PastEnd.TESTED), at=TESTED + timedelta(minutes=15), configured_at=OLD)


def test_a_shadow_test_of_ours_left_the_configuration_as_it_was() -> None:
    since = replace(endpoint(), modified_at=TESTED)
    assert configured_at(since, History(endpoint=(OUR_TEST,))) == OLD
    twice = replace(OUR_TEST, at=NOW - timedelta(days=9, hours=-1), configured_at=OLD)
    second = replace(OUR_TEST, configured_at=NOW - timedelta(days=9))
    assert configured_at(since, History(endpoint=(twice, second))) == OLD


@pytest.mark.parametrize(
    "changes",
    [(), (replace(OUR_TEST, configured_at=None),), (replace(OUR_TEST, at=NOW - timedelta(days=2)),)],
    ids=["nobody's test", "kept by an older release", "a release came after it"],
)
def test_any_other_modification_is_a_new_configuration(changes: tuple[PastChange, ...]) -> None:
    since = replace(endpoint(), modified_at=TESTED)
    assert configured_at(since, History(endpoint=changes)) == TESTED


def test_the_days_before_a_test_are_used_or_read_again_where_an_evaluation_beside_it_forgot_them() -> None:
    since = replace(endpoint(), modified_at=TESTED)
    assert read(KEPT, since, NOW, OUR_TEST).known == DAYS[1:14]
    forgot = replace(KEPT, modified_at=TESTED, days=())
    assert read(forgot, since, NOW, OUR_TEST).start == midnight(FIRST)
    assert read(forgot, since, NOW).start == midnight(date(2026, 11, 19)), "without a test nothing is missing"
    whole = replace(KEPT, modified_at=TESTED)
    assert read(whole, since, NOW, OUR_TEST).start == midnight(date(2026, 11, 19)), "they are read again once"
