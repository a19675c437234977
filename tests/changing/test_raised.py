"""Growing the owner's own minimum again, whatever dimensions the settings open: it is asked for, and it comes."""

from dataclasses import replace

import pytest

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from tests.changing.test_restored import chosen, suffering
from tests.recommender.test_failed_fleets import POLICIES

MILD = 0.02
"""Twice what is allowed, and not so much that everything comes back at once."""


@pytest.mark.parametrize("opened", [(), (OptionKind.AUTOSCALING,)])
def test_a_fleet_that_no_longer_carries_the_load_starts_from_a_higher_minimum(opened: tuple[OptionKind, ...]) -> None:
    found = suffering(POLICIES, *opened, late=MILD)
    option = chosen(found)
    assert (option.kind, option.restores, found.gate) == (OptionKind.AUTOSCALING, True, Gate.APPLY)
    assert 8 < (option.target.minimum or 0) < 40
    assert option.target.maximum == 40


@pytest.mark.parametrize("late", [MILD, 0.5])
@pytest.mark.parametrize("most", [12, 15])
def test_it_never_grows_above_the_owners_maximum(most: int, late: float) -> None:
    found = suffering(replace(POLICIES, maximum=most), late=late)
    target = chosen(found).target
    assert (found.gate, target.minimum, target.maximum) == (Gate.APPLY, most, most)


@pytest.mark.parametrize("late", [MILD, 0.5])
def test_where_the_minimum_is_the_maximum_already_a_person_is_told_what_is_in_the_way(late: float) -> None:
    found = suffering(replace(POLICIES, minimum=10, maximum=10), late=late)
    assert (found.gate, found.gate_reason.code, found.options) == (Gate.PROPOSE, Code.AUTOSCALED, ())
    assert "from 10 of at most 10 instances" in found.gate_reason.sentence


def test_without_policies_it_is_still_the_count_that_grows() -> None:
    option = chosen(suffering(replace(POLICIES, policies=()), late=MILD))
    assert (option.kind, option.target.minimum) == (OptionKind.INSTANCE_COUNT, None)


def test_bounds_without_a_policy_are_not_the_owners_scaling() -> None:
    bare = ScalableTarget("endpoint/e/variant/AllTraffic", "d", 8, 40)
    assert chosen(suffering(bare, late=0.5)).kind is OptionKind.INSTANCE_COUNT
