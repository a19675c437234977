"""Which fleets are looked at to grow: within bounds, within the quota, and none that does not help."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.growth_fleets import smallest_that_serves
from tests.recommender.test_growth import LATE, judged


@given(st.integers(0, 40), st.integers(0, 40), st.integers(-2, 42))
def test_the_smallest_count_that_serves_is_found_wherever_it_is(first: int, more: int, least: int) -> None:
    counts = range(first, first + more)
    found = smallest_that_serves(counts, lambda n: n >= least)
    assert found == next((n for n in counts if n >= least), None)


def late(**usage: Any) -> Recommendation:
    return judged(usage={**LATE["usage"], **usage})


def reasons(found: Recommendation, kind: OptionKind | None = OptionKind.INSTANCE_COUNT) -> list[tuple[Code, str]]:
    return [(e.reason.code, e.reason.sentence) for e in found.excluded if e.dimension is kind]


def test_growth_stops_at_twice_the_fleet_and_two_spare_instances() -> None:
    queue = {"per_slot": 600, "latency_s": 5, "backlog": 9000, "gpu": 99}
    found = judged(
        endpoint={**LATE["endpoint"], "kind": "asynchronous", "p95_s": None}, usage={**LATE["usage"], **queue}
    )
    assert found.options == ()
    even = "even 4 × ml.g6.xlarge would not serve it, and for more than 4 its owner has to size it anew"
    assert reasons(found) == [(Code.TOO_BUSY, even)]


def test_no_option_costs_more_than_so_many_of_todays_instances() -> None:
    found = late()
    assert found.usd_per_month is not None
    assert found.options
    assert all(o.usd_per_month <= 4 * found.usd_per_month for o in found.options)


def test_more_instances_are_not_offered_where_one_request_alone_is_too_slow() -> None:
    found = judged(endpoint={**LATE["endpoint"], "p95_s": 0.4}, usage={**LATE["usage"], "per_slot": 6, "gpu": 1})
    assert [o for o in found.options if o.target.instance_type == "ml.g6.xlarge"] == []
    assert [code for code, _ in reasons(found)] == [Code.TOO_SLOW]


@pytest.mark.parametrize(("quota", "offered"), [(1, False), (2, True)])
def test_a_fleet_beyond_the_quota_is_ruled_out_by_its_number(quota: int, offered: bool) -> None:
    found = judged(account={"quota": {"ml.g6.xlarge": quota}})
    counts = [o for o in found.options if o.kind is OptionKind.INSTANCE_COUNT]
    assert bool(counts) is offered
    assert bool([code for code, _ in reasons(found) if code is Code.NO_QUOTA]) is not offered


def test_autoscaling_that_has_not_been_at_its_maximum_gets_no_higher_one() -> None:
    scaled = {"scaled": [1, 9], "policies": {"SageMakerVariantInvocationsPerInstance": 60}, "kind": "asynchronous"}
    queue = {"per_slot": 60, "latency_s": 5, "backlog": 1508, "gpu": 99}
    found = judged(endpoint={**LATE["endpoint"], "p95_s": 60.0, **scaled}, usage={**LATE["usage"], **queue})
    assert found.options == ()
    assert reasons(found, OptionKind.AUTOSCALING) == [
        (
            Code.AUTOSCALED,
            "autoscaling may run 9 instances, and ran 1 at most: its owner lowers the target of its policy",
        )
    ]
