"""Bounds of autoscaling that a fleet needs, what comes back after our changes, and what is registered already."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.domain.reason import Code
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.fleet_size import (
    autoscaling_maximum,
    fleet_before_changes,
    is_minimum_raised,
    is_minimum_raised_to_grow,
    largest_count,
    may_add_tracking,
    may_choose_bounds,
    minimum_refusal,
    registered_reason,
    wanted_bounds,
)
from rightsizer.recommender.slowdown import MeasuredType
from tests.recommender import plain
from tests.recommender.plain_context import HOURS, OTHER, SCALED, TYPE, context, fleet, ours, running

WIDER = replace(SCALED, minimum=3, maximum=40)
CLOSED = {"by_itself": TYPE_AND_COUNT}


def strained(**more: Any) -> EvaluationContext:
    return context(scaling=(SCALED,), is_strained=True, **more)


# bounds


def test_bounds_may_be_chosen_on_the_type_that_runs_where_they_are_open_or_the_minimum_grows() -> None:
    scaled = context(scaling=(SCALED,))
    assert (may_choose_bounds(scaled, TYPE), may_choose_bounds(scaled, OTHER)) == (True, False)
    closed = context(scaling=(SCALED,), policy=CLOSED)
    assert not may_choose_bounds(closed, TYPE)
    grows = replace(closed, is_strained=True)
    assert (may_choose_bounds(grows, TYPE), may_choose_bounds(grows, OTHER)) == (True, False)
    scheduled = replace(SCALED, policies=())
    assert not is_minimum_raised_to_grow(context(scaling=(scheduled,), is_strained=True), TYPE)


@pytest.mark.parametrize(
    ("name", "counts", "now", "more", "may"),
    [
        (TYPE, 2.0, 2, {}, True),
        (OTHER, 2.0, 2, {}, False),
        (TYPE, 1.0, 1, {}, False),
        (TYPE, 4.0, 1, {}, False),
        (TYPE, 4.0, 4, {"scaling": (SCALED,)}, False),
        (TYPE, 4.0, 4, {"is_strained": True}, False),
        (TYPE, 4.0, 4, {"policy": CLOSED}, False),
    ],
)
def test_tracking_may_be_added_to_two_fixed_instances_of_the_type_that_runs(
    name: str, counts: float, now: int, more: dict[str, Any], may: bool
) -> None:
    seen = context((counts,) * 24, **more)
    variant = replace(seen.variant, current_count=now)
    assert may_add_tracking(replace(seen, endpoint=replace(seen.endpoint, variants=(variant,))), name) is may


def test_the_largest_maximum_of_the_owner_limits_what_autoscaling_and_growth_may_add() -> None:
    scaled = context(scaling=(SCALED, WIDER, replace(SCALED, maximum=60, policies=())))
    assert (autoscaling_maximum(scaled, TYPE), autoscaling_maximum(scaled, OTHER)) == (60, 0)
    grows = replace(scaled, is_strained=True)
    assert [largest_count(grows, TYPE, most) for most in (39, 41)] == [39, 40]
    assert largest_count(grows, OTHER, 41) == 41
    assert largest_count(scaled, TYPE, 41) == 41


def test_the_bounds_that_a_fleet_needs() -> None:
    scaled, plain_fleet = context(scaling=(SCALED,)), context()
    assert wanted_bounds(strained(), TYPE, fleet(3)) == (3, 8)
    assert wanted_bounds(plain_fleet, TYPE, fleet(2, maximum=4)) == (2, 4)
    assert wanted_bounds(plain_fleet, TYPE, fleet(2)) == (None, None)
    assert wanted_bounds(plain_fleet, OTHER, fleet(2, maximum=4)) == (None, None)
    assert wanted_bounds(scaled, TYPE, fleet(3)) == (3, 8)
    assert wanted_bounds(scaled, TYPE, fleet(8)) == (None, None), "as many as the maximum is no bound"
    assert wanted_bounds(scaled, TYPE, fleet(counts=(9,) * 12 + (1,) * 12)) == (1, 9)
    assert wanted_bounds(scaled, OTHER, fleet(3)) == (None, None)


# what comes back


def test_a_fixed_fleet_comes_back_with_its_hours_where_they_may_be_set() -> None:
    assert fleet_before_changes(context()) == Target(TYPE, 4)
    assert fleet_before_changes(context(HOURS)) == Target(TYPE, 3, HOURS)
    assert fleet_before_changes(context(HOURS, policy=CLOSED)) == Target(TYPE, 3)


@pytest.mark.parametrize(
    ("counts", "minimum", "maximum", "owners", "expected"),
    [
        (HOURS, 2, 8, None, (3, 8)),
        ((4,) * 12 + (3,) * 12, 2, 8, None, (3, 8)),
        ((4,) * 12 + (3,) * 12, 3, 8, None, (4, 8)),
        ((4,) * 12 + (3,) * 12, 1, 2, None, (2, 2)),
        ((4,) * 24, 2, 8, 1, (1, 8)),
        ((4,) * 24, 2, 8, 5, (4, 8)),
    ],
)
def test_under_the_owners_policies_their_minimum_comes_back(
    counts: tuple[int, ...], minimum: int, maximum: int, owners: int | None, expected: tuple[int, int]
) -> None:
    """The least that any hour ran; the most, where the registered minimum is no lower than that; never above theirs."""
    past = (ours(from_minimum=owners),) if owners else ()
    target = fleet_before_changes(context(counts, (replace(SCALED, minimum=minimum, maximum=maximum),), past))
    assert (target.minimum, target.maximum) == expected
    assert (target.instance_type, target.instance_count, target.hourly_counts) == (TYPE, max(counts), None)


def test_with_another_type_the_owners_bounds_and_targets_come_back() -> None:
    seen = running(context(HOURS, scaling=(replace(SCALED, maximum=10), SCALED), past=(ours(),)), OTHER)
    vars(seen)["measured_types"] = {}
    assert fleet_before_changes(seen) == Target(TYPE, 3, minimum=1, maximum=10, per_instance=1.0)
    for latency, maximum, per_instance in (
        (2.0, 5, 2.0),
        (2.5, 4, 2.5),
        (9.0, 3, 9.0),
        (0.5, 10, 1.0),
        (1.23456, 9, 1.2346),
    ):
        vars(seen)["measured_types"] = {OTHER: MeasuredType(1.0, latency)}
        target = fleet_before_changes(seen)
        assert (target.maximum, target.per_instance) == (maximum, per_instance)
    for runs, least in ((2.99, 3), (2.98, 2), (0.4, 1)):
        base = [
            replace(seen.base[0], instances=(4.0,) * 24),
            replace(seen.base[1], instances=(runs, 0.0, None, *(4.0,) * 21)),
        ]
        assert fleet_before_changes(replace(seen, base=base)).minimum == least


# reasons


def bounded(minimum: int | None, maximum: int = 8, **more: Any) -> Any:
    return plain.option(kind=OptionKind.AUTOSCALING, target=Target(TYPE, 3, minimum=minimum, maximum=maximum, **more))


def test_only_a_higher_minimum_of_the_same_type_and_maximum_raises_it() -> None:
    seen = strained()
    assert is_minimum_raised(seen, bounded(3))
    assert not is_minimum_raised(seen, bounded(2))
    assert not is_minimum_raised(seen, bounded(3, 9))
    assert not is_minimum_raised(seen, bounded(None))
    assert not is_minimum_raised(seen, replace(bounded(3), kind=OptionKind.INSTANCE_COUNT))
    assert not is_minimum_raised(seen, replace(bounded(3), target=replace(bounded(3).target, instance_type=OTHER)))
    assert not is_minimum_raised(context(), bounded(3))
    two = context(scaling=(SCALED, replace(SCALED, minimum=4)))
    assert [is_minimum_raised(two, bounded(minimum)) for minimum in (4, 5)] == [False, True]


def test_a_minimum_that_cannot_go_up_is_said_with_the_bounds_that_are_registered() -> None:
    seen = context(scaling=(SCALED, replace(SCALED, minimum=3)))
    refused = minimum_refusal(seen, bounded(3))
    assert refused is not None
    assert (refused.code, refused.sentence) == (
        Code.AUTOSCALED,
        "the load needs more, and autoscaling already starts from 3 of at most 8 instances: raise its maximum, or lower"
        " the target of its policy",
    )
    assert minimum_refusal(seen, bounded(4)) is None
    assert minimum_refusal(seen, replace(bounded(3), kind=OptionKind.INSTANCE_COUNT)) is None
    assert minimum_refusal(context(), bounded(3)) is None


def test_what_is_registered_already_saves_nothing() -> None:
    seen = context(scaling=(SCALED, replace(SCALED, minimum=3)), instances=2.5)
    said = registered_reason(seen, bounded(2))
    assert said is not None
    assert (said.code, said.sentence) == (
        Code.NOT_CHEAPER,
        "its autoscaling starts from 2 already, and ran 2.5 instances on average: bounds of 2 to 8 save nothing",
    )
    assert registered_reason(seen, bounded(1)) is None
    assert registered_reason(seen, bounded(2, target_value=70.0)) is None
    assert registered_reason(seen, bounded(None)) is None
    fixed = plain.option(kind=OptionKind.INSTANCE_COUNT, target=Target(TYPE, 2))
    said = registered_reason(seen, fixed)
    assert said is not None
    assert (said.code, said.sentence) == (
        Code.NOT_CHEAPER,
        "its autoscaling comes down to 2 instances by itself, and ran 2.5 instances on average",
    )
    assert registered_reason(seen, replace(fixed, target=Target(TYPE, 1))) is None
    assert registered_reason(seen, replace(fixed, target=Target(OTHER, 2))) is None
    assert registered_reason(replace(seen, is_strained=True), fixed) is None
    assert registered_reason(context(), fixed) is None


def test_the_owners_scheduled_actions_keep_the_minimum_from_going_down() -> None:
    seen = context(scaling=(replace(SCALED, scheduled=({"ScheduledActionName": "day"},)),))
    said = registered_reason(seen, bounded(1))
    assert said is not None
    assert said.code is Code.AUTOSCALED
    fixed = plain.option(kind=OptionKind.INSTANCE_COUNT, target=Target(TYPE, 1))
    assert registered_reason(seen, fixed) is None
