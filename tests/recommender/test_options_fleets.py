"""The smallest fleet of a candidate: where it is searched, how it is routed, and the owner's bounds on another type."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.demand import Fleet
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.option import Option, Target
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from rightsizer.domain.slowdown import SlowdownSource
from rightsizer.recommender import options
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.slowdown import Ratio
from tests.recommender import plain
from tests.recommender.plain_context import HOURS, OTHER, SCALED, TYPE, context, fleet, ours, stub
from tests.recommender.test_options import SMALL, candidate
from tests.recommender.test_options_tests import allowing

CLOSED = {"by_itself": TYPE_AND_COUNT}


@pytest.fixture
def sized(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the search was asked; `fleet` is what it finds, and `single` whether one instance carries."""
    asked: dict[str, Any] = {"fleet": fleet(2), "single": False, "shapes": [], "priced": []}

    def find(_: EvaluationContext, shape: Any, keeps: bool) -> Fleet | None:
        asked["shapes"].append((shape, keeps))
        found: Fleet | None = asked["fleet"]
        return found

    def price(_: EvaluationContext, one: CandidateType, made: Fleet, *how: Any) -> Option:
        asked["priced"].append((made, *how, None)[:3])
        saving, target = asked.get("saving", Decimal(10)), Target(one.hardware.name, max(made.counts))
        return plain.option(target=target, saving_usd_per_month=saving, usd_per_month=Decimal("1234.5"))

    def track(_: EvaluationContext, __: CandidateType, made: Fleet, rerouted: bool) -> Fleet:
        asked["rerouted"] = rerouted
        return made

    stub(monkeypatch, options, "find_fleet", find)
    stub(monkeypatch, options, "carries_like_reference", lambda *_: asked["single"])
    stub(monkeypatch, options, "find_weekly_counts", lambda *_: ())
    monkeypatch.setattr(options, "with_tracking", track)
    monkeypatch.setattr(options, "price_fleet", price)
    return asked


def routed(seen: EvaluationContext, routing: str = "RANDOM") -> EvaluationContext:
    made = replace(seen, endpoint=replace(seen.endpoint, variants=(replace(seen.variant, routing=routing),)))
    vars(made).update(allowed_slowdown=2.0, outcomes=())
    return made


def alone() -> EvaluationContext:
    """One instance."""
    seen = context((1.0,) * 24)
    variant = replace(seen.variant, current_count=1)
    return routed(replace(seen, endpoint=replace(seen.endpoint, variants=(variant,)), instances=1.0), LEAST)


def test_the_search_goes_up_to_twice_todays_instances_and_two_spare(sized: dict[str, Any]) -> None:
    assert isinstance(options._size_fleet(allowing(), candidate()), Option)
    shape, keeps = sized["shapes"][0]
    assert (shape.name, shape.slower, shape.workers) == (SMALL, 1.0, 1)
    assert (shape.random_routing, shape.hourly, shape.most, keeps) == (False, False, 2 * 4 + 2, True)
    assert sized["priced"] == [(fleet(2), None, None)]
    assert sized["rerouted"] is False
    options._size_fleet(allowing(), candidate(workers=3, ratio=Ratio(1.2, 1.5)))
    shape, keeps = sized["shapes"][1]
    assert (shape.workers, shape.slower, shape.most, keeps) == (3, 1.5, 2 * 2 + 2, False)


def test_hours_are_open_on_the_type_that_runs_after_three_days_and_not_with_another_routing(
    sized: dict[str, Any],
) -> None:
    seen = routed(context(), LEAST)
    own = candidate(TYPE)
    two = routed(replace(context(), days=context().days[:2]), LEAST)
    three = routed(replace(context(), days=context().days[:3]), LEAST)
    for one, kind, hourly in (
        (seen, own, True), (two, own, False), (three, own, True), (seen, candidate(), False),
        (routed(context()), own, False), (routed(context(policy=CLOSED)), own, False),
    ):  # fmt: skip
        options._size_fleet(one, kind)
        assert sized["shapes"][-1][0].hourly is hourly


def test_a_better_routing_is_deployed_where_several_instances_serve(sized: dict[str, Any]) -> None:
    seen = routed(context())
    options._size_fleet(seen, candidate())
    assert not sized["shapes"][-1][0].random_routing
    assert sized["priced"][-1][1] == LEAST
    assert sized["rerouted"] is True
    sized["fleet"] = fleet(1)
    options._size_fleet(seen, candidate())
    assert sized["priced"][-1][1] is None
    closed = routed(context(policy=CLOSED))
    options._size_fleet(closed, candidate())
    assert sized["shapes"][-1][0].random_routing
    assert sized["rerouted"] is False


def test_one_instance_becomes_one_of_another_type_where_that_serves_as_it_does(sized: dict[str, Any]) -> None:
    """No count is chosen then, so that the middle of a likely slowdown is what it is tried with."""
    one = alone()
    sized["single"] = True
    options._size_fleet(one, candidate(ratio=Ratio(1.2, 2.5)))
    assert (sized["priced"][-1][0].counts, sized["priced"][-1][0].slower) == ((1,) * 24, 1.2)
    options._size_fleet(one, candidate(ratio=Ratio(1.2, 1.5), workers=2))
    assert (sized["priced"][-1][0].workers, sized["priced"][-1][0].slower) == (2, 1.5)
    assert sized["shapes"] == []
    sized["single"] = False
    options._size_fleet(one, candidate(TYPE))
    assert sized["priced"][-1][0].counts == (1,) * 24, "what runs serves as it does"
    assert sized["shapes"] == []


def test_two_of_a_type_that_costs_half_as_much_are_no_search_worth(sized: dict[str, Any]) -> None:
    """One instance that another type cannot replace one for one: two have to cost less than it."""
    one = alone()
    half = one.price.usd_per_hour / 2
    for usd, searched in ((half, False), (half - Decimal("0.0001"), True)):
        sized["shapes"].clear()
        found = options._size_fleet(
            one, candidate(price=replace(candidate().price, usd_per_hour=usd), ratio=Ratio(1.2, 1.5))
        )
        assert bool(sized["shapes"]) is searched
        assert isinstance(found, Reason) is not searched
    kept = options._size_fleet(one, candidate(price=replace(candidate().price, usd_per_hour=half)))
    assert isinstance(kept, Option)
    assert sized["priced"][-1][0].counts == (1,) * 24, "as many as today are no worse"


def test_classes_of_days_take_the_place_of_one_day(sized: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    days = (DayCounts((0, 1, 2, 3, 4), (2,) * 24), DayCounts((5, 6), (1,) * 24))
    stub(monkeypatch, options, "find_weekly_counts", lambda *_: days)
    options._size_fleet(allowing(), candidate())
    assert sized["priced"][-1][0].day_counts == days
    sized["fleet"] = None
    assert isinstance(options._size_fleet(allowing(), candidate()), Reason)


def test_one_instance_at_most_is_said_as_one(sized: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, options, "largest_count", lambda *_: 1)
    sized["fleet"] = None
    found = options._size_fleet(allowing(), candidate())
    assert isinstance(found, Reason)
    assert "even with 1 instance, were it" in found.sentence


def test_no_fleet_is_too_busy_and_one_that_costs_as_much_saves_nothing(sized: dict[str, Any]) -> None:
    sized["saving"] = Decimal(0)
    found = options._size_fleet(allowing(), candidate())
    assert found == Reason(Code.NOT_CHEAPER, "2 × ml.g4dn.xlarge would cost $1,234.50 a month")
    sized["fleet"] = fleet(counts=HOURS)
    found = options._size_fleet(allowing(), candidate())
    assert found == Reason(Code.NOT_CHEAPER, "1 to 3 × ml.g4dn.xlarge would cost $1,234.50 a month")
    strained = allowing()
    strained = routed(replace(strained, is_strained=True), LEAST)
    assert isinstance(options._size_fleet(strained, candidate()), Option), "where it has to grow dearer ones count too"
    sized["saving"] = Decimal("0.01")
    assert isinstance(options._size_fleet(allowing(), candidate()), Option)
    sized["fleet"] = None
    text = "ml.g4dn.xlarge would miss the p95 of 4.00 s even with 10 instances, were it as slow as datasheets allow"
    assert options._size_fleet(allowing(), candidate()) == Reason(Code.TOO_BUSY, text)
    measured = candidate(speed=replace(candidate().speed, source=SlowdownSource.TESTED))
    found = options._size_fleet(allowing(), measured)
    assert isinstance(found, Reason)
    assert found.sentence == "ml.g4dn.xlarge would miss the p95 of 4.00 s even with 10 instances"


@pytest.mark.parametrize(
    ("more", "changes", "kept"),
    [
        ({}, {}, True),
        ({}, {"ratio": Ratio(0.9, 1.01)}, False),
        ({}, {"workers": 2}, False),
        ({"past": (ours(),)}, {}, False),
        ({"scaling": (SCALED,)}, {}, False),
        ({"random_base": True}, {}, False),
    ],
)
def test_as_many_as_today_may_be_kept_where_they_are_no_slower_and_the_owners(
    more: dict[str, Any], changes: dict[str, Any], kept: bool
) -> None:
    seen = context(**{"random_base": False, **more})
    assert options._may_keep_count(seen, candidate(**changes)) is kept


def test_the_saving_is_a_share_of_todays_cost() -> None:
    seen = context()
    option = plain.option(saving_usd_per_month=seen.usd_per_month / 4)
    assert options.saving_share(seen, option) == pytest.approx(0.25)
    assert options.saving_share(replace(seen, instances=0.0), option) == 0.0


# the owner's autoscaling on another type


def scaled(**more: Any) -> EvaluationContext:
    """Two to eight instances, five on average, that a second target scales from three to seven."""
    seen = context(scaling=(SCALED, replace(SCALED, minimum=3, maximum=7)), instances=5.0, **more)
    vars(seen).update(allowed_slowdown=2.0, outcomes=())
    return seen


@pytest.fixture
def like_owners(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    asked: dict[str, Any] = {"minimum": 3, "means": {}}

    def minimum(_: EvaluationContext, first: Fleet) -> Fleet | None:
        asked["first"] = first
        return replace(first, counts=(asked["minimum"],) * 24) if asked["minimum"] else None

    stub(monkeypatch, options, "minimum_like_owners", minimum)
    stub(monkeypatch, options, "mean_instances", lambda _, made: asked["means"].get(min(made.counts), 4.0))
    stub(monkeypatch, options, "may_scale_in", lambda _: asked.get("scales_in", True))
    return asked


def test_bounds_are_scaled_by_what_the_other_type_can_do(sized: dict[str, Any], like_owners: dict[str, Any]) -> None:
    found = options._rescale_bounds(scaled(), candidate(ratio=Ratio(1.25, 1.5), workers=2))
    assert isinstance(found, Option)
    assert (found.target.minimum, found.target.maximum, found.target.per_instance) == (3, 10, 0.8)
    first = like_owners["first"]
    assert (first.counts, first.workers, first.random_routing, first.slower, first.maximum) == (
        (2,) * 24,
        2,
        False,
        1.5,
        10,
    )
    shown, routing, mean = sized["priced"][0]
    assert (shown.counts, shown.slower, shown.maximum, routing) == ((5,) * 24, 1.5, 0, None)
    assert mean == pytest.approx(5.0), "no more than today where it is not busy"
    faster = options._rescale_bounds(scaled(), candidate(ratio=Ratio(0.5, 0.6)))
    assert isinstance(faster, Option)
    assert (faster.target.maximum, faster.target.per_instance) == (8, 1.0)


def test_the_mean_follows_the_replay_of_the_minimum_and_is_never_below_it(
    sized: dict[str, Any], like_owners: dict[str, Any]
) -> None:
    like_owners["means"] = {2: 4.0, 3: 4.8}
    options._rescale_bounds(scaled(), candidate())
    assert sized["priced"][-1][2] == pytest.approx(5.0 * 1.2)
    assert sized["priced"][-1][0].counts == (6,) * 24
    like_owners.update(minimum=7, means={})
    options._rescale_bounds(scaled(), candidate())
    assert sized["priced"][-1][2] == 7


def test_a_busy_fleet_grows_with_the_slowdown_and_no_further(
    sized: dict[str, Any], like_owners: dict[str, Any]
) -> None:
    seen = scaled()
    busy = replace(seen.demand, load=replace(seen.demand.load, mean_rate=3.3 / seen.latency.mean_s))
    seen = replace(seen, demand=busy)
    vars(seen).update(allowed_slowdown=2.0, outcomes=())
    options._rescale_bounds(seen, candidate(ratio=Ratio(1.2, 1.4)))
    assert sized["priced"][-1][2] == pytest.approx(min(5.0 * 1.2, 3.3 * 1.2 / seen.policy.rho_one))
    options._rescale_bounds(seen, candidate(ratio=Ratio(1.2, 1.4), workers=2))
    assert sized["priced"][-1][2] == pytest.approx(5.0)
    much = replace(seen.demand, load=replace(seen.demand.load, mean_rate=99.0))
    seen = replace(seen, demand=much)
    vars(seen).update(allowed_slowdown=2.0, outcomes=())
    options._rescale_bounds(seen, candidate(ratio=Ratio(1.2, 1.4)))
    assert sized["priced"][-1][2] == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("bound", "allowed", "roomy"), [(1.05, 1.0, True), (1.06, 1.37, False), (1.06, 1.38, True), (1.5, 1.96, True)]
)
def test_a_slower_type_needs_room_while_autoscaling_takes_its_minutes(
    sized: dict[str, Any], like_owners: dict[str, Any], bound: float, allowed: float, roomy: bool
) -> None:
    seen = scaled()
    vars(seen)["allowed_slowdown"] = allowed
    found = options._rescale_bounds(seen, candidate(ratio=Ratio(1.0, bound)))
    assert isinstance(found, Option) is roomy
    if isinstance(found, Reason):
        assert (found.code, found.sentence) == (
            Code.TOO_SLOW,
            "ml.g4dn.xlarge may be 1.06 times slower; 1.37 times is the most, which leaves too little room while"
            " autoscaling takes minutes to add instances",
        )


def test_where_no_minimum_serves_as_today_it_is_too_busy_and_without_scale_in_bounds_stay(
    sized: dict[str, Any], like_owners: dict[str, Any]
) -> None:
    like_owners["minimum"] = 0
    assert options._rescale_bounds(scaled(), candidate()) == Reason(
        Code.TOO_BUSY,
        "ml.g4dn.xlarge would have more late requests than today where instances come as late, whatever its minimum,"
        " were it as slow as datasheets allow",
    )
    like_owners["scales_in"] = False
    found = options._rescale_bounds(scaled(), candidate())
    assert isinstance(found, Option)
    assert found.target.minimum == 2
    sized["saving"] = Decimal(0)
    like_owners.update(minimum=3, scales_in=True)
    assert options._rescale_bounds(scaled(), candidate()) == Reason(
        Code.NOT_CHEAPER, "ml.g4dn.xlarge would cost $1,234.50 a month"
    )


def test_the_owners_autoscaling_is_rescaled_where_its_bounds_are_not_ours_to_choose(
    sized: dict[str, Any], like_owners: dict[str, Any]
) -> None:
    options._size_fleet(scaled(), candidate())
    assert sized["shapes"] == []
    options._size_fleet(scaled(), candidate(TYPE))
    assert len(sized["shapes"]) == 1, "the bounds of what runs may be set"
    changed = scaled(past=(ours(),))
    options._size_fleet(changed, candidate(OTHER))
    assert len(sized["shapes"]) == 2, "a fleet of ours is sized by its load"


def test_a_better_routing_comes_with_another_type_under_autoscaling(
    sized: dict[str, Any], like_owners: dict[str, Any]
) -> None:
    for more, random_routing, routing in (({}, False, LEAST), ({"policy": CLOSED}, True, None)):
        seen = scaled(**more)
        made = routed(seen)
        options._rescale_bounds(made, candidate())
        assert like_owners["first"].random_routing is random_routing
        assert sized["priced"][-1][1] == routing
