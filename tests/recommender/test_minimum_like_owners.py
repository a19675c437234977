"""Another type under the owner's autoscaling: the minimum at which it has no more late requests than theirs."""

from dataclasses import replace

import pytest

from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.scaling_options import minimum_like_owners
from tests.recommender.test_dimensions import SCALED
from tests.recommender.test_late_requests import context, day

MOST = 6


def stepped(crowd: float) -> EvaluationContext:
    """A load that comes all at once in the morning, under autoscaling from one instance."""
    found = context([day(7 + number, 0.02, 4.0, crowd=crowd) for number in range(3)])
    own: ScalableTarget = replace(SCALED, minimum=1, maximum=MOST)
    return replace(found, endpoint=replace(found.endpoint, scaling=(own,)))


def minimum(found: EvaluationContext, slower: float, maximum: int = MOST) -> int | None:
    fleet = minimum_like_owners(found, Fleet((1,) * 24, found.workers, False, slower, maximum=maximum))
    return None if fleet is None else min(fleet.counts)


def test_the_same_speed_needs_the_same_minimum() -> None:
    found = replace(stepped(2.0), random_base=False)
    assert minimum(found, 1.0) == 1


@pytest.mark.parametrize("slower", [1.2, 1.3])
def test_a_slower_type_starts_from_more_where_requests_would_wait_longer_for_added_instances(slower: float) -> None:
    found = replace(stepped(2.0), random_base=False)
    least = minimum(found, slower, 2 * MOST)
    assert least is not None
    assert least > 1
    theirs = found.replay(Fleet((1,) * 24, found.workers, False, 1.0, maximum=MOST))
    one, more = (found.replay(Fleet((n,) * 24, found.workers, False, slower, maximum=2 * MOST)) for n in (1, least))
    assert one.late > theirs.late + found.policy.excess_share * one.requests
    assert more.late <= theirs.late + found.policy.excess_share * more.requests


def test_a_type_that_is_late_at_its_maximum_too_gets_no_minimum() -> None:
    assert minimum(replace(stepped(2.0), random_base=False), 1.6, 2) is None
