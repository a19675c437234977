"""The picture of a proposal: gaps are found, limits are named, and it is a PNG of a phone's width."""

import struct
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.recommendation import WeekSignals
from rightsizer.render.pictures import draw, gaps, two_weeks
from tests.samples import option, recommendation

START = datetime(2026, 11, 2, tzinfo=UTC)
SEEN = WeekSignals(START, (10.0, None, None, None, 20.0) * 67, (6.0,) * 335, (None,) * 335, (40.0,) * 335, 22.0)


def test_a_gap_is_each_stretch_without_data() -> None:
    assert gaps([None, 1.0, None, None, 2.0, None]) == [(0, 0), (2, 3), (5, 5)]
    assert gaps([1.0]) == []


def test_a_change_of_the_count_alone_has_no_new_limit_of_memory() -> None:
    fewer = recommendation(options=(option(target=Target("ml.g5.12xlarge", 1)),))
    assert two_weeks(fewer, SEEN).panels[1].limit is None
    assert two_weeks(recommendation(), SEEN).panels[1].limit == 22.0
    bare = replace(recommendation(), options=(), replay=None)
    assert [panel.limit for panel in two_weeks(bare, SEEN).panels] == [100.0, None, None]


def test_the_picture_says_what_runs_today_and_what_then_and_of_a_deletion_today_alone() -> None:
    idle = recommendation(options=(option(kind=OptionKind.DELETE, in_place=False),))
    days = "2 Nov to 15 Nov, UTC · hatched: no data"
    assert two_weeks(idle, SEEN).subtitle == f"today 1 × g5.12xlarge\n{days}"
    assert two_weeks(recommendation(), SEEN).subtitle == f"today 1 × g5.12xlarge, then 1 × g5.xlarge\n{days}"


@pytest.mark.parametrize("seen", [SEEN, WeekSignals(START, (None,) * 336, (None,) * 336, (None,) * 336)])
def test_it_is_a_png_twice_as_wide_as_a_phone_shows_it(seen: WeekSignals) -> None:
    pytest.importorskip("matplotlib", reason="the extra pictures is not installed: nothing is drawn")
    picture = draw(recommendation(), seen)
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (720, 840)
    assert len(picture) < 200_000
