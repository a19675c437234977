"""What the end of a past change says about the fleet that serves."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rightsizer.domain.history import PastChange, PastEnd, minimum_before_changes

AT = datetime(2026, 11, 1, tzinfo=UTC)


def past(ended: PastEnd, failure: str = "") -> PastChange:
    return PastChange(AT, "ml.g5.12xlarge", "ml.g5.xlarge", 1, 1, ended, failure=failure)


@pytest.mark.parametrize(
    ("ended", "was_deployed", "is_in_force"),
    [
        (PastEnd.PROVEN, True, True),
        (PastEnd.APPLIED, True, True),
        (PastEnd.HANDED_OVER, True, True),
        (PastEnd.RUNNING, True, True),
        (PastEnd.ROLLED_BACK, True, False),
        (PastEnd.UPDATE_FAILED, False, False),
        (PastEnd.TESTED, False, False),
    ],
)
def test_a_fleet_that_served_was_deployed_and_is_in_force_until_it_is_rolled_back(
    ended: PastEnd, was_deployed: bool, is_in_force: bool
) -> None:
    assert (past(ended).was_deployed, past(ended).is_in_force) == (was_deployed, is_in_force)


@pytest.mark.parametrize("ended", PastEnd)
def test_only_what_went_back_or_was_handed_over_fell_short(ended: PastEnd) -> None:
    back = {PastEnd.ROLLED_BACK, PastEnd.UPDATE_FAILED, PastEnd.HANDED_OVER}
    assert past(ended, "alarm").has_fallen_short is (ended in back)


def test_the_owners_minimum_is_the_largest_before_any_change_that_stands() -> None:
    first = replace(past(PastEnd.PROVEN), from_count=6, from_minimum=4)
    second = replace(past(PastEnd.APPLIED), from_count=3, from_minimum=3)
    gone = replace(past(PastEnd.ROLLED_BACK), from_count=9, from_minimum=9)
    assert minimum_before_changes((first, second, gone)) == 4
    assert minimum_before_changes((replace(first, from_minimum=None), second)) == 6, "an older row tells what ran"
    assert minimum_before_changes((gone, past(PastEnd.TESTED))) is None
