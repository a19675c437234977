"""What dimensions of one sort share: where they are looked at, and what they say open and closed."""

import pytest

from rightsizer.dimensions import DIMENSIONS
from rightsizer.dimensions.dimension import Addable, Elsewhere
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.policy import ADDABLE, TYPE_AND_COUNT, Policy
from rightsizer.domain.reason import Code
from tests.dimensions.kit import judged
from tests.recommender import kit


def test_the_dimensions_that_the_settings_open_are_those_of_the_search() -> None:
    assert {kind for one in DIMENSIONS if Addable in type(one).mro() for kind in one.kinds} == ADDABLE


@pytest.mark.parametrize("opened", [frozenset(), ADDABLE])
def test_each_of_them_says_why_it_saves_nothing_whether_it_is_open_or_closed(opened: frozenset[str]) -> None:
    policy = Policy(by_itself=TYPE_AND_COUNT | {kind for kind in ADDABLE if kind in opened})
    found = judged(kit.endpoint(p95_s=0.72), kit.window(kit.steady()), policy)
    why = [out for out in found.excluded if out.dimension in ADDABLE]
    assert sorted(out.dimension or "" for out in why) == sorted(ADDABLE)
    assert {out.reason.code for out in why} == {Code.NOT_APPLICABLE}


def test_kinds_that_are_not_looked_at_come_last_and_once() -> None:
    endpoint, closed = kit.endpoint(p95_s=0.72, kind=EndpointKind.MULTI_VARIANT), Policy(by_itself=TYPE_AND_COUNT)
    found = judged(endpoint, kit.window(kit.steady()), closed)
    elsewhere = {kind for one in DIMENSIONS if Elsewhere in type(one).mro() for kind in one.kinds}
    said = [out for out in found.excluded if out.dimension in elsewhere]
    assert sorted(out.dimension or "" for out in said) == sorted(elsewhere)
    assert {out.reason.code for out in said} == {Code.OTHER_KIND}
    assert found.excluded.index(said[0]) > [out.dimension for out in found.excluded].index(min(ADDABLE))
