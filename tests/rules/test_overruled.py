"""The newest judgement still has to allow what was approved before it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.model.option import Option, OptionKind, Target
from rightsizer.model.reason import Code, Reason
from rightsizer.model.recommendation import Finding, Recommendation
from rightsizer.rules.overruled import overruled
from tests import samples

DECIDED = samples.recommendation()
LATER = samples.NOW + timedelta(days=3)
SMALL = "ml.g5.xlarge"


def approved(count: int = 1, kind: OptionKind = OptionKind.INSTANCE_TYPE, **target: Any) -> Option:
    return samples.option(kind=kind, target=Target(SMALL, count, **target))


def newest(*options: Option, **changes: Any) -> Recommendation:
    fields: dict[str, Any] = {"evaluated_at": LATER, "options": options, "excluded": ()} | changes
    return replace(DECIDED, **fields)


def test_the_same_fleet_and_a_smaller_one_still_allow_the_target() -> None:
    assert overruled(approved(2), DECIDED, newest(approved(2))) is None
    assert overruled(approved(2), DECIDED, newest(approved(1))) is None


def test_a_judgement_that_needs_more_of_the_type_forbids_it_with_both_numbers() -> None:
    found = overruled(approved(1), DECIDED, newest(approved(2)))
    assert found is not None
    assert found.code is Code.NEWER_JUDGEMENT
    assert "needs 2 instance(s) of ml.g5.xlarge, and 1 instance(s) was approved" in found.sentence


def test_an_endpoint_that_is_under_provisioned_now_is_not_made_smaller() -> None:
    why = Reason(Code.UNDER_PROVISIONED, "requests wait for 4 s")
    found = overruled(approved(), DECIDED, newest(approved(), finding=Finding.UNDER_PROVISIONED, reason=why))
    assert found is not None
    assert "requests wait for 4 s" in found.sentence


def test_a_type_that_is_ruled_out_now_is_not_deployed() -> None:
    out = replace(DECIDED.excluded[0], instance_type=SMALL)
    found = overruled(approved(), DECIDED, newest(excluded=(out,)))
    assert found is not None
    assert "rules ml.g5.xlarge out: p95 would be 0.9 s" in found.sentence


def test_a_target_that_the_newest_judgement_no_longer_lists_is_not_deployed() -> None:
    found = overruled(approved(), DECIDED, newest(finding=Finding.OPTIMIZED))
    assert found is not None
    assert "no longer lists 1 x ml.g5.xlarge" in found.sentence


def test_counts_by_the_hour_are_compared_hour_by_hour() -> None:
    peaks = (1,) * 8 + (3,) * 10 + (1,) * 6
    schedule = approved(3, OptionKind.SCHEDULE, hourly_counts=peaks)
    assert overruled(approved(3), DECIDED, newest(schedule)) is None
    assert overruled(approved(2), DECIDED, newest(schedule)) is not None


def test_bounds_of_autoscaling_that_are_too_narrow_now_are_not_registered() -> None:
    narrow, wide = (approved(1, OptionKind.AUTOSCALING, minimum=1, maximum=most) for most in (2, 4))
    assert overruled(narrow, DECIDED, newest(wide)) is not None
    assert overruled(wide, DECIDED, newest(narrow)) is None


def test_only_an_endpoint_that_is_still_idle_is_marked_for_deletion() -> None:
    delete = approved(kind=OptionKind.DELETE)
    assert overruled(delete, DECIDED, newest(finding=Finding.IDLE)) is None
    assert overruled(delete, DECIDED, newest(finding=Finding.OPTIMIZED)) is not None
    assert overruled(delete, DECIDED, newest(finding=Finding.NOT_ENOUGH_DATA)) is None


def test_an_idle_endpoint_allows_every_smaller_fleet() -> None:
    assert overruled(approved(), DECIDED, newest(finding=Finding.IDLE)) is None


WORST = newest(finding=Finding.UNDER_PROVISIONED)


@pytest.mark.parametrize(
    ("option", "judged"),
    [
        (replace(approved(), restores=True), WORST),
        (approved(kind=OptionKind.SCALE_IN), WORST),
        (approved(kind=OptionKind.PLACEMENT), WORST),
        (approved(), None),
        (approved(), replace(WORST, evaluated_at=DECIDED.evaluated_at)),
        (approved(), newest(finding=Finding.NOT_ENOUGH_DATA)),
    ],
    ids=["restores", "scale-in", "placement", "no judgement", "the same judgement", "missing data"],
)
def test_what_no_newer_judgement_speaks_about_is_allowed(option: Option, judged: Recommendation | None) -> None:
    assert overruled(option, DECIDED, judged) is None


@given(needed=st.lists(st.integers(0, 9), min_size=24, max_size=24), count=st.integers(0, 9))
def test_a_fleet_is_allowed_exactly_where_no_hour_needs_more(needed: list[int], count: int) -> None:
    schedule = approved(max(needed), OptionKind.SCHEDULE, hourly_counts=tuple(needed))
    found = overruled(approved(count), DECIDED, newest(schedule))
    assert (found is None) == (max(needed) <= count)
