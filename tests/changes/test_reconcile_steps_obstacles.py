"""Obstacles right before the first write that the endpoint feels."""

from dataclasses import replace
from datetime import timedelta

from rightsizer.changes.dimension import PlannedChange
from rightsizer.changes.reconcile.drift import added_targets, additions_of_owner
from rightsizer.changes.reconcile.steps import SHOWS, approval_age_reason, expiry_action, unsettled_action
from rightsizer.dimensions.autoscaling_bounds import AutoscalingBounds
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import ScalableTarget, variant_resource_id
from rightsizer.domain.live_state import EndpointSight, LiveState
from rightsizer.domain.next_action import Replan
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from tests import samples
from tests.changes.memory import world
from tests.changes.test_preflight import NOW
from tests.dimensions.kit import planned
from tests.dimensions.test_autoscaling_bounds import ADDED


def test_an_approval_is_good_for_seven_days_and_then_tells_the_cause_of_the_wait() -> None:
    w = world()
    w.start()
    change = w.change
    assert approval_age_reason(change, change.expires_at - timedelta(seconds=1)) is None
    late = approval_age_reason(change, change.expires_at)
    assert late is not None
    assert late.code is Code.EXPIRED
    assert "waited 7 days" in late.sentence
    assert late.sentence.endswith(change.outcome)


def test_an_update_sent_a_moment_ago_is_not_taken_for_one_that_was_never_made() -> None:
    w = world()
    w.advance(timedelta(days=6, hours=23, minutes=40))
    w.start()
    change = w.upto(StepKind.UPDATE_ENDPOINT)
    sent = next(e for e in change.journal if e.detail == StepKind.UPDATE_ENDPOINT.value)
    assert expiry_action(change, change.expires_at + timedelta(minutes=1)) is None
    assert expiry_action(change, sent.at + SHOWS) is not None


SIGHT = EndpointSight("InService", "old", NOW, "", "", ())


def tracked() -> tuple[Change, ScalableTarget]:
    """A change that adds target tracking, before its first write, and the target that it would register."""
    found, change = planned(AutoscalingBounds(), ADDED), samples.change(NOW, variant="AllTraffic")
    assert isinstance(found, PlannedChange)
    resource = variant_resource_id(change.ref.name, "AllTraffic")
    policy = found.plan.settle[1].params
    return found.apply_to(change, NOW), ScalableTarget(resource, str(policy["ScalableDimension"]), 1, 4, {}, (policy,))


def test_a_target_that_somebody_registered_since_the_plan_is_planned_around_and_not_overwritten() -> None:
    change, target = tracked()
    assert unsettled_action(change, LiveState(SIGHT, scaling=()), SIGHT, NOW, touched=False) is None
    found = unsettled_action(change, LiveState(SIGHT, scaling=(target,)), SIGHT, NOW, touched=False)
    assert isinstance(found, Replan)
    assert f"somebody registered autoscaling of {target.resource_id}" in found.reason.sentence
    ours = unsettled_action(change, LiveState(SIGHT, scaling=(target,)), SIGHT, NOW, touched=True)
    assert ours is None, "once a write was begun it may be ours"


def test_what_others_put_on_a_target_that_was_added_is_told_from_what_was_put_with_it() -> None:
    change, target = tracked()
    assert added_targets(change) == {target.resource_id}
    assert additions_of_owner(change, LiveState(SIGHT, scaling=(target,))) == ()
    theirs = replace(
        target,
        policies=(*target.policies, {"PolicyName": "mine"}),
        scheduled=({"ScheduledActionName": "night"},),
    )
    assert additions_of_owner(change, LiveState(SIGHT, scaling=(theirs,))) == ("mine", "night")
    assert change.before is not None
    known = replace(change, before=replace(change.before, scaling=(target,)))
    assert additions_of_owner(known, LiveState(SIGHT, scaling=(theirs,))) == (), "it was theirs before"
