"""A return keeps what somebody raised since: copies and bounds of what is changed in place, of each variant its own."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.changes.plan.capacity import capacity_step
from rightsizer.changes.rollback_size import (
    kept_counts_text,
    owner_edits,
    raise_bounds,
    raise_in_place,
    rollback_counts,
)
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, LiveState, VariantSight
from rightsizer.domain.option import VariantTarget
from rightsizer.domain.plan import Plan, PlanKind, Step, StepKind, VariantCount
from tests.changes.test_reconcile import BEFORE, CLEAR, NOW, RESTORE, SETTLE, WHO, change_after, given_back

OLD = "ml.g5.4xlarge"
DIMENSION = WHO["ScalableDimension"]
SERVES = EndpointSight("InService", "new", NOW, "", "", ())


def copies(count: int, name: str = "chat-a") -> Step:
    params = {"InferenceComponentName": name, "DesiredRuntimeConfig": {"CopyCount": count}}
    return Step(StepKind.SET_COPIES, name, params)


def in_place(*settle: Step, restore: tuple[Step, ...]) -> Change:
    plan = Plan(settle=settle, restore=restore, exchange=(1, 1))
    return replace(change_after(), plan=plan, turned_at=NOW - timedelta(hours=5))


@pytest.mark.parametrize(
    ("asked", "before", "runs", "wanted"),
    [
        (1, 3, 1, 3),  # as it was asked: back to what was before
        (1, 3, 2, 3),
        (1, 3, 3, 3),
        (1, 3, 5, 5),  # somebody raised it
        (6, 3, 6, 3),  # what we raised goes back
        (6, 3, 7, 7),
    ],
)
def test_copies_that_somebody_raised_beyond_both_plans_are_kept(
    asked: int, before: int, runs: int, wanted: int
) -> None:
    change = in_place(copies(asked), restore=(copies(before),))
    found = raise_in_place(change, LiveState(SERVES, copies={"chat-a": runs}))
    assert found == replace(change, plan=replace(change.plan, restore=(copies(wanted),)))


def test_copies_that_nobody_sees_and_those_of_another_component_raise_nothing() -> None:
    change = in_place(copies(9, "chat-b"), restore=(copies(3),))
    assert raise_in_place(change, LiveState(SERVES, copies={"chat-b": 20})) == change
    grown = raise_in_place(change, LiveState(SERVES, copies={"chat-a": 4, "chat-b": 20}))
    assert grown.plan.restore == (copies(4),), "the plan asked for none of this component"
    none = in_place(restore=(copies(0),))
    assert raise_in_place(none, LiveState(SERVES)) == none
    one = in_place(restore=(copies(0),))
    assert raise_in_place(one, LiveState(SERVES, copies={"chat-a": 1})).plan.restore == (copies(1),)


@pytest.mark.parametrize("kind", [PlanKind.SHADOW_TEST, PlanKind.DELETE])
def test_a_test_and_a_deletion_go_back_by_their_own_plan(kind: PlanKind) -> None:
    change = in_place(copies(1), restore=(copies(3),))
    change = replace(change, plan=replace(change.plan, kind=kind))
    assert raise_in_place(change, LiveState(SERVES, copies={"chat-a": 9})) == change


def bounds(least: int, most: int, variant: str = "v") -> Step:
    resource = f"endpoint/chat/variant/{variant}"
    params = {**WHO, "ResourceId": resource, "MinCapacity": least, "MaxCapacity": most}
    return Step(StepKind.REGISTER_TARGET, resource, params)


def registered(least: int, most: int, variant: str = "v") -> LiveState:
    target = ScalableTarget(f"endpoint/chat/variant/{variant}", DIMENSION, least, most)
    return LiveState(SERVES, scaling=(target,))


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ((2, 4), (1, 8)),  # nobody moved anything
        ((3, 4), (6, 8)),  # the least was raised: three small ones are six
        ((2, 5), (1, 10)),
        ((1, 3), (1, 8)),  # lowered bounds are not carried over
        ((5, 5), (10, 10)),
    ],
)
def test_bounds_that_were_raised_are_raised_in_old_instances(live: tuple[int, int], wanted: tuple[int, int]) -> None:
    change = in_place(bounds(2, 4), restore=(bounds(1, 8),))
    change = replace(change, plan=replace(change.plan, exchange=(2, 1)))
    assert raise_bounds(change, registered(*live)) == (bounds(*wanted),)


def test_another_variant_keeps_its_type_so_its_bounds_are_carried_over_one_for_one() -> None:
    change = in_place(bounds(1, 2, "w"), restore=(bounds(1, 2, "w"),))
    change = replace(change, plan=replace(change.plan, exchange=(3, 1)))
    assert raise_bounds(change, registered(2, 5, "w")) == (bounds(2, 5, "w"),)


def test_bounds_that_the_change_never_gave_are_left_as_stored() -> None:
    change = in_place(restore=(bounds(1, 2), copies(3)))
    assert raise_bounds(change, registered(4, 9)) == change.plan.restore
    policy = Step(StepKind.PUT_POLICY, WHO["ResourceId"], {**WHO, "PolicyName": "track"})
    both = in_place(bounds(1, 2), restore=(policy,))
    assert raise_bounds(both, registered(4, 9)) == (policy,), "a policy has no bounds"


def test_only_autoscaling_that_the_change_took_away_is_watched_for_edits() -> None:
    edited = registered(2, 9)
    change = given_back(replace(change_after(CLEAR, SETTLE), turned_at=NOW))
    assert owner_edits(change, edited) == (SETTLE.key,)
    assert owner_edits(replace(change, plan=replace(change.plan, clear=())), edited) == ()
    assert owner_edits(replace(change, before=None), edited) == ()
    assert owner_edits(replace(change_after(), turned_at=NOW), edited) == ()


def counted(change: Change, *live: tuple[str, int, int]) -> list[int]:
    rows = tuple(VariantSight(name, current, desired, 1.0, 1.0) for name, current, desired in live)
    return [v.count for v in rollback_counts(change, replace(SERVES, variants=rows), {})]


def two(v: int, w: int, **plan: object) -> Change:
    before = replace(BEFORE, variants=(VariantCount("v", OLD, v, 1.0), VariantCount("w", OLD, w, 1.0)))
    change = replace(change_after(), before=before)
    return replace(change, plan=replace(change.plan, settle=(), restore=(), **plan))  # type: ignore[arg-type]


def test_each_variant_is_counted_for_itself_and_only_the_changed_one_is_exchanged() -> None:
    after = (VariantCount("v", "ml.g5.xlarge", 1, 1.0), VariantCount("w", OLD, 1, 1.0))
    change = two(1, 1, after=after, exchange=(3, 1))
    assert counted(change, ("v", 2, 2), ("w", 2, 2)) == [6, 2]
    assert counted(change, ("v", 1, 2), ("w", 2, 1)) == [6, 2], "the more of what runs and what is asked"
    assert counted(change, ("v", 2, 2)) == [6, 1], "a variant that is gone has not grown"


def test_a_variant_that_the_plan_does_not_name_has_grown_beyond_what_was_stored() -> None:
    change = two(1, 2, after=(VariantCount("v", "ml.g5.xlarge", 1, 1.0),), exchange=(1, 4))
    assert counted(change, ("v", 1, 1), ("w", 2, 2)) == [1, 2]
    assert counted(change, ("v", 1, 1), ("w", 3, 3)) == [1, 3]
    assert counted(change, ("v", 3, 3), ("w", 1, 1)) == [3, 2], "not fewer than run, whatever the exchange says"


def test_fewer_than_one_is_stored_for_a_fleet_that_sleeps() -> None:
    change = two(0, 0, after=(VariantCount("v", "ml.g5.xlarge", 0, 1.0), VariantCount("w", OLD, 0, 1.0)))
    assert counted(change, ("v", 0, 0), ("w", 0, 0)) == [0, 0]
    assert counted(change) == [0, 0]
    assert counted(change, ("v", 1, 1), ("w", 0, 0)) == [1, 0]
    assert rollback_counts(replace(change, before=None), SERVES, {}) == ()


def test_a_larger_store_is_kept_where_the_fleet_grew_a_little() -> None:
    change = two(5, 1, after=(VariantCount("v", "ml.g5.xlarge", 1, 1.0),), exchange=(1, 1))
    assert counted(change, ("v", 2, 2), ("w", 1, 1)) == [5, 1]


def test_what_a_restore_needs_at_least_is_what_was_registered() -> None:
    change = replace(change_after(), plan=replace(change_after().plan, restore=(RESTORE,), settle=(SETTLE,)))
    assert counted(change, ("v", 2, 2)) == [1]


@pytest.mark.parametrize(
    ("current", "desired", "wanted"),
    [(1, 1, 3), (3, 3, 3), (5, 5, 5), (3, 4, 4), (4, 3, 4)],
    ids=["night", "as before", "peak", "scaling out", "scaling in"],
)
def test_the_count_that_a_return_sets_is_never_less_than_what_runs(current: int, desired: int, wanted: int) -> None:
    change = in_place(bounds(1, 6), restore=(capacity_step("chat", [VariantCount("v", OLD, 3, 1.0)]),))
    change = replace(change, before=replace(BEFORE, variants=(VariantCount("v", OLD, 3, 1.0),)))
    live = LiveState(replace(SERVES, variants=(VariantSight("v", current, desired, 1.0, 1.0),)))
    found = raise_in_place(change, live)
    (step,) = found.plan.restore
    assert step == capacity_step(change.ref.name, [VariantCount("v", OLD, wanted, 1.0)])
    assert ("keeps" in kept_counts_text(found)) is (wanted > 3)


def test_each_variant_of_a_joint_change_goes_back_by_its_own_exchange() -> None:
    """Six old ones of `w` became two: three that run now are nine of before."""
    after = (VariantCount("v", "ml.g5.xlarge", 1, 1.0), VariantCount("w", "ml.g5.12xlarge", 2, 1.0))
    change = two(3, 6, after=after, exchange=(3, 1))
    other = VariantTarget("w", "ml.g5.12xlarge", 2, Decimal(7))
    change = replace(change, option=replace(change.option, target=replace(change.option.target, others=(other,))))
    assert counted(change, ("v", 1, 1), ("w", 3, 3)) == [3, 9]
    assert counted(change, ("v", 2, 2), ("w", 2, 2)) == [6, 6]
