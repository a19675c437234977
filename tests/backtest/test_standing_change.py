"""What a change leaves of an endpoint, as the next recommendations of a back-test see it."""

from dataclasses import replace

from rightsizer.autoscaling.target_tracking import REQUESTS
from rightsizer.backtest.standing_change import endpoint_after, past_change
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.option import OptionKind, Target
from tests import samples
from tests.recommender import kit
from tests.recommender.test_dimensions import SCALED

TYPE = "ml.g6.xlarge"


def after(endpoint: Endpoint, target: Target) -> list[tuple[int, int, list[str]]]:
    made = endpoint_after(endpoint, samples.option(kind=OptionKind.AUTOSCALING, target=target))
    return [(t.minimum, t.maximum, [str(p["PolicyName"]) for p in t.policies]) for t in made.scaling]


def test_target_tracking_that_was_added_is_there_with_its_policy() -> None:
    added = Target(TYPE, 1, minimum=1, maximum=4, metric=REQUESTS, target_value=84.0)
    assert after(kit.endpoint(TYPE, 4), added) == [(1, 4, ["rightsizer-tracking"])]


def test_other_bounds_keep_the_policies_and_counts_by_the_hour_bring_none() -> None:
    scaled = replace(kit.endpoint(TYPE, 4), scaling=(SCALED,))
    assert after(scaled, Target(TYPE, 2, minimum=2, maximum=6)) == [(2, 6, ["keep"])]
    hours = Target(TYPE, 4, hourly_counts=(1,) * 12 + (4,) * 12)
    assert after(kit.endpoint(TYPE, 4), hours) == [(1, 4, [])]


def test_a_tracked_fleet_is_remembered_by_its_mean_and_not_by_its_minimum() -> None:
    old = kit.endpoint(TYPE, 4)
    target = Target(TYPE, 1, minimum=1, maximum=4, metric=REQUESTS, target_value=84.0)
    option = replace(samples.option(kind=OptionKind.AUTOSCALING, target=target), mean_instances=2.4)
    past = past_change(old, endpoint_after(old, option), samples.NOW, option)
    assert (past.to_count, past.mean_instances, past.tracked) == (1, 2.4, True)
    hours = samples.option(kind=OptionKind.SCHEDULE, target=Target(TYPE, 4, hourly_counts=(1,) * 12 + (4,) * 12))
    past = past_change(old, endpoint_after(old, hours), samples.NOW, hours)
    assert (past.mean_instances, past.tracked) == (2.5, False)
