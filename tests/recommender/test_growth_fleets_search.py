"""Each way to grow by itself: which counts and bounds end a shortage, and what another type is worth."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.demand import Fleet, ReplayResult
from rightsizer.domain.endpoint import LEAST, EndpointKind
from rightsizer.domain.option import Excluded, Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.slowdown import SlowdownSource
from rightsizer.recommender import growth_fleets
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.growth_fleets import (
    GrowthNeed,
    GrowthOffer,
    NeedKind,
    chance_of_speed,
    growth_offers,
    slow_alone_reason,
)
from rightsizer.recommender.slowdown import Ratio, chance_within
from tests.recommender import kit, plain
from tests.recommender.plain_context import SCALED, TYPE, context, fleet, late, serve, stub
from tests.recommender.test_growth_fleets_shortages import HOURS_OF_DAY, LARGER, demanding, need, of_kind
from tests.recommender.test_options import SMALL, candidate, unsure

CPU = replace(kit.catalogue().types[LARGER], accelerator=None)
ALONE = Reason(Code.TOO_SLOW, "alone too slow")


# which fleets


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A search on one type whose fleets serve from a count on."""

    def price(
        _: EvaluationContext, one: CandidateType, made: Fleet, routing: str | None, mean: float | None = None
    ) -> Option:
        target = Target(one.hardware.name, max(made.counts), routing=routing, maximum=made.maximum or None)
        return plain.option(target=target, mean_instances=mean, notes=())

    monkeypatch.setattr(growth_fleets, "price_fleet", price)
    stub(monkeypatch, growth_fleets, "replayed_p95_s", lambda *_: 1.5)
    stub(monkeypatch, growth_fleets, "mean_instances", lambda *_: 3.5)
    monkeypatch.setattr(growth_fleets, "slow_alone_reason", lambda _: None)

    def begin(
        serves: int | Callable[[Fleet], bool], seen: EvaluationContext | None = None, kind: NeedKind = NeedKind.LATE,
        least: int = 1, one: CandidateType | None = None, **more: Any,
    ) -> Any:  # fmt: skip
        enough = serves if callable(serves) else lambda made: max(made.counts) >= serves
        monkeypatch.setattr(growth_fleets._Search, "_serves", lambda _, made: enough(made))
        found = {"today": 4, "most": 10, **more}
        return growth_fleets._Search(seen or context(), need(kind, least), one or candidate(TYPE), **found)

    return begin


def offered(answers: Any) -> list[Any]:
    """The targets that are offered, and the reasons against others."""
    return [a.option.target if isinstance(a, GrowthOffer) else (a.dimension, a.reason) for a in answers]


def test_the_fewest_more_instances_that_serve_are_offered(search: Callable[..., Any]) -> None:
    assert offered(search(6).more_instances()) == [Target(TYPE, 6)]
    assert offered(search(1).more_instances()) == [Target(TYPE, 5)], "as many as today are no growth"
    assert offered(search(1, least=7).more_instances()) == [Target(TYPE, 7)]
    assert offered(search(10).more_instances()) == [Target(TYPE, 10)]
    (said,) = offered(search(11).more_instances())
    text = "even 10 × ml.g6.xlarge would not serve it, and for more than 10 its owner has to size it anew"
    assert said == (OptionKind.INSTANCE_COUNT, Reason(Code.TOO_BUSY, text))
    (alone,) = search(6).more_instances()
    assert (alone.is_guess, alone.option.p95_s, alone.option.notes) == (False, 1.5, ())


def limited(seen: EvaluationContext, name: str, quota: int) -> EvaluationContext:
    return replace(seen, inputs=replace(seen.inputs, quotas={name: quota}))


def test_the_quota_limits_more_instances_but_not_those_that_run(search: Callable[..., Any]) -> None:
    (said,) = offered(search(6, limited(context(), TYPE, 5)).more_instances())
    text = "6 instances are needed, and the account's quota for ml.g6.xlarge endpoints is 5"
    assert said == (OptionKind.INSTANCE_COUNT, Reason(Code.NO_QUOTA, text))
    assert offered(search(6, limited(context(), TYPE, 6)).more_instances()) == [Target(TYPE, 6)]
    assert search(6, limited(context(), TYPE, 1))._quota_reason(4) is None
    assert search(6, limited(context(), TYPE, 1))._quota_reason(5) is not None
    other = search(6, limited(context(), SMALL, 1), one=candidate(SMALL))
    assert (other._quota_reason(1), other._quota_reason(2) is None) == (None, False)


def random(seen: EvaluationContext) -> EvaluationContext:
    return replace(seen, endpoint=replace(seen.endpoint, variants=(replace(seen.variant, routing="RANDOM"),)))


def test_another_routing_comes_first_where_requests_are_late_and_it_suffices(search: Callable[..., Any]) -> None:
    routed = random(context())
    enough = lambda made: max(made.counts) >= (8 if made.random_routing else 4)  # noqa: E731
    both = [Target(TYPE, 4, routing=LEAST), Target(TYPE, 8)]
    assert offered(search(enough, routed).more_instances()) == both
    assert offered(search(enough, routed, today=1).more_instances()) == both
    assert offered(search(lambda _: True, routed, today=1).more_instances())[0] == Target(TYPE, 2, routing=LEAST)
    assert offered(search(enough, routed, least=5).more_instances())[0] == Target(TYPE, 5, routing=LEAST)
    assert offered(search(enough, routed, NeedKind.MEMORY).more_instances()) == both[1:]
    assert offered(search(enough, of_kind(routed, EndpointKind.ASYNC)).more_instances()) == both[1:]
    limited_one = limited(routed, TYPE, 5)
    assert (
        offered(search(lambda made: max(made.counts) >= 6, limited_one).more_instances())[0][0]
        is OptionKind.INSTANCE_COUNT
    )
    assert offered(search(10, routed).more_instances())[0] == Target(TYPE, 10, routing=LEAST)
    assert len(offered(search(11, routed).more_instances())) == 1


def test_more_of_what_is_too_slow_alone_is_no_help(search: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(6)
    monkeypatch.setattr(growth_fleets, "slow_alone_reason", lambda _: ALONE)
    assert offered(found.more_instances()) == [(OptionKind.INSTANCE_COUNT, ALONE)]
    scaled = replace(found, context=context(scaling=(SCALED,)))
    assert offered(scaled.higher_bounds()) == [(OptionKind.AUTOSCALING, ALONE)]
    failing = replace(found, need=need(NeedKind.FAILING))
    assert offered(failing.more_instances()) == [Target(TYPE, 6)]
    assert offered(replace(scaled, need=need(NeedKind.MINIMUM, 3)).higher_bounds()) != [(OptionKind.AUTOSCALING, ALONE)]


# bounds of autoscaling


def bounds(minimum: int, maximum: int, count: int | None = None) -> Target:
    return Target(TYPE, count or max(minimum, 1), minimum=minimum, maximum=maximum)


def test_a_higher_minimum_ends_what_is_late_within_the_owners_maximum(search: Callable[..., Any]) -> None:
    scaled = context(scaling=(SCALED, replace(SCALED, minimum=3, maximum=7)), instances=2.0)
    assert offered(search(5, scaled).higher_bounds()) == [bounds(5, 8)]
    assert offered(search(1, scaled).higher_bounds()) == [bounds(3, 8)], "above the least minimum"
    assert offered(search(1, scaled, least=6).higher_bounds()) == [bounds(6, 8)]
    (only,) = search(5, scaled).higher_bounds()
    assert (only.option.kind, only.option.mean_instances) == (OptionKind.AUTOSCALING, 5.0)
    (mean,) = search(1, scaled).higher_bounds()
    assert mean.option.mean_instances == 3.5, "what the replay runs"
    (now,) = search(1, replace(scaled, instances=6.0)).higher_bounds()
    assert now.option.mean_instances == 6.0, "no less than today"
    tracked = search(lambda made: made.maximum == 8 and max(made.counts) >= 4, scaled)
    assert offered(tracked.higher_bounds()) == [bounds(4, 8)]


def test_the_owners_minimum_is_set_and_their_maximum_goes_with_it(search: Callable[..., Any]) -> None:
    scaled = context(scaling=(SCALED,), instances=2.0)
    assert offered(search(99, scaled, NeedKind.MINIMUM, 3).higher_bounds()) == [bounds(3, 8)]
    assert offered(search(99, scaled, NeedKind.MINIMUM, 9).higher_bounds()) == [bounds(9, 9)]


def test_scheduled_actions_alone_are_their_owners_to_raise(search: Callable[..., Any]) -> None:
    (said,) = offered(search(5, context(scaling=(HOURS_OF_DAY,))).higher_bounds())
    text = "its count follows scheduled actions: its owner raises the counts of those hours"
    assert said == (OptionKind.AUTOSCALING, Reason(Code.AUTOSCALED, text))


def test_a_maximum_goes_up_where_the_fleet_has_been_at_it(search: Callable[..., Any]) -> None:
    """Half of the hours at eight of eight: half of what is added runs on average."""
    full = context((8.0,) * 12 + (2.0,) * 12, scaling=(SCALED,), instances=5.0)
    for kind in (NeedKind.LATE, NeedKind.QUEUE, NeedKind.FAILING):
        (found,) = search(10, full, kind, most=12).higher_bounds()
        assert found.option.target == bounds(2, 10, 10)
        assert found.option.mean_instances == 5.0 + 0.5 * 2
    (wanted,) = search(10, full, NeedKind.QUEUE, 3, most=12).higher_bounds()
    assert wanted.option.target == bounds(3, 10, 10)
    (said,) = offered(search(13, full, most=12).higher_bounds())
    assert (said[0], said[1].code) == (OptionKind.AUTOSCALING, Code.TOO_BUSY)
    (said,) = offered(search(10, limited(full, TYPE, 9), most=12).higher_bounds())
    assert (said[0], said[1].code) == (OptionKind.AUTOSCALING, Code.NO_QUOTA)
    assert offered(search(9, full, most=4).higher_bounds()) == [bounds(2, 9, 9)], "one more is always tried"


def test_a_maximum_that_was_never_reached_stays(search: Callable[..., Any]) -> None:
    for most, reached in ((7.98, False), (7.99, True)):
        seen = context((most, *(2.0,) * 23), scaling=(SCALED,))
        (found,) = search(10, seen, NeedKind.QUEUE, most=12).higher_bounds()
        assert isinstance(found, GrowthOffer) is reached
    (said,) = offered(search(10, context((3.4, *(2.0,) * 23), scaling=(SCALED,)), NeedKind.QUEUE).higher_bounds())
    text = "autoscaling may run 8 instances, and ran 3 at most: its owner lowers the target of its policy"
    assert said == (OptionKind.AUTOSCALING, Reason(Code.AUTOSCALED, text))
    unknown = context(scaling=(SCALED,))
    unknown = replace(unknown, days=[replace(one, instances=(None,) * 24) for one in unknown.days])
    (said,) = offered(search(10, unknown, NeedKind.QUEUE).higher_bounds())
    assert "ran 4 at most" in said[1].sentence


# another type


def test_the_fewest_of_another_type_within_the_cost_are_offered(search: Callable[..., Any]) -> None:
    faster = candidate(LARGER, ratio=Ratio(0.5, 0.8), speed=replace(candidate().speed, source=SlowdownSource.TESTED))
    wide = context(growth_ceiling_usd=2.327 * 730 * 5.5)
    (found,) = search(3, wide, one=faster).other_type()
    assert (found.option.target, found.is_guess, found.option.notes) == (Target(LARGER, 3), False, ())
    assert offered(search(1, wide, one=faster).other_type()) == [Target(LARGER, 2)], "two zones stay two"
    assert offered(search(1, wide, one=faster, today=1).other_type()) == [Target(LARGER, 1)]
    assert offered(search(1, wide, one=faster, least=4).other_type()) == [Target(LARGER, 4)]
    assert offered(search(5, wide, one=faster).other_type()) == [Target(LARGER, 5)]
    (said,) = search(6, wide, one=faster).other_type()
    text = "5 × ml.g6e.xlarge would not serve it, and more would cost more than 10 × ml.g6.xlarge"
    assert said == Excluded(LARGER, Reason(Code.TOO_BUSY, text))
    (said,) = search(3, limited(wide, LARGER, 2), one=faster).other_type()
    assert said.reason.code is Code.NO_QUOTA
    (few,) = offered(search(4, wide, one=faster, most=4).other_type())
    assert few == Target(LARGER, 4)
    slower = search(lambda made: made.slower == 0.5, wide, one=faster)
    assert isinstance(next(slower.other_type()), GrowthOffer), "sized with the most likely slowdown"


def test_a_guess_is_offered_from_four_in_five_and_said_as_one(
    search: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = context(growth_ceiling_usd=99999.0)
    for chance, likely in ((0.8, True), (0.79, False)):
        stub(monkeypatch, growth_fleets, "chance_of_speed", lambda *_, chance=chance: chance)
        (found,) = search(3, wide, one=candidate(LARGER)).other_type()
        assert isinstance(found, GrowthOffer) is likely
        if likely:
            note = "how fast ml.g6e.xlarge is follows from datasheets: it is 80 % likely to be fast enough"
            assert (found.is_guess, found.option.notes) == (True, (note,))
        else:
            text = "ml.g6e.xlarge is 79 % likely to be fast enough"
            assert found == Excluded(LARGER, Reason(Code.TOO_SLOW, text))
    (full,) = search(3, wide, NeedKind.MEMORY, one=candidate(LARGER)).other_type()
    assert not full.is_guess, "memory that is full asks for no speed"


def test_the_p95_of_a_queue_is_that_of_the_model(search: Callable[..., Any]) -> None:
    asynchronous = of_kind(context(), EndpointKind.ASYNC)
    half = candidate(TYPE, ratio=Ratio(0.5, 0.5))
    (found,) = search(6, asynchronous, NeedKind.QUEUE, one=half).more_instances()
    assert found.option.p95_s == round(asynchronous.latency.p95_s * 0.5, 4)


# what serves


def serving(kind: NeedKind, seen: EvaluationContext, made: Fleet) -> bool:
    return growth_fleets._Search(seen, need(kind), candidate(TYPE), 4, 10)._serves(made)


@pytest.mark.parametrize("kind", [NeedKind.QUEUE, NeedKind.FAILING])
def test_a_queue_is_served_within_the_load_that_many_carry(kind: NeedKind) -> None:
    seen = context()
    rho = seen.policy.rho_many
    for rate, enough in ((2 * 3 * rho / 1.5, True), (2 * 3 * rho / 1.5 + 0.01, False)):
        busy = demanding(seen, load=replace(seen.demand.load, peak_rate=rate))
        busy = replace(busy, latency=replace(busy.latency, mean_s=1.0))
        assert serving(kind, busy, fleet(3, workers=2, slower=1.5)) is enough
    assert serving(NeedKind.MINIMUM, busy, fleet(1))


@pytest.mark.parametrize(("number", "enough"), [(13, True), (14, False)])
def test_for_full_memory_no_more_may_be_late_than_today(
    monkeypatch: pytest.MonkeyPatch, number: int, enough: bool
) -> None:
    serve(monkeypatch, lambda made: late(number if made.counts[0] == 6 else 10))
    assert serving(NeedKind.MEMORY, context(), fleet(6)) is enough


@pytest.mark.parametrize(
    ("number", "p95_s", "now_s", "enough"),
    [
        (50, 2.0, 1.0, True),
        (51, 2.0, 1.0, False),
        (0, 2.1, 1.0, False),
        (0, 4.0, 0.0, True),
        (0, 4.1, 0.0, False),
    ],
)
def test_late_requests_end_where_the_p95_holds_with_the_room_to_grow(
    monkeypatch: pytest.MonkeyPatch, number: int, p95_s: float, now_s: float, enough: bool
) -> None:
    """Two seconds today, four that may be: what the replay makes of today's p95 may double."""
    seen = context()
    seen = replace(seen, latency=replace(seen.latency, p95_s=2.0))

    def played(made: Fleet) -> ReplayResult:
        return late(number, p95_s=p95_s) if made.counts[0] == 6 else late(0, p95_s=now_s)

    for margin, load in ((1.1, 1.2), (1.3, 1.3)):
        monkeypatch.setattr(EvaluationContext, "load_margin", margin)
        asked = serve(monkeypatch, played)
        assert serving(NeedKind.LATE, seen, fleet(6)) is enough
        assert asked[0].load == load


# all ways together


class Ways:
    """Stands for a search, and names what it was asked for."""

    def __init__(self, seen: EvaluationContext, why: GrowthNeed, one: CandidateType, today: int, most: int) -> None:
        self.told = (one.hardware.name, today, most, seen.growth_ceiling_usd)

    def more_instances(self) -> Any:
        yield ("more", *self.told)

    def higher_bounds(self) -> Any:
        yield ("bounds", *self.told)

    def other_type(self) -> Any:
        yield ("type", *self.told)


@pytest.mark.parametrize(
    ("kind", "scaling", "ways"),
    [
        (NeedKind.LATE, (), [("more", TYPE), ("type", LARGER)]),
        (NeedKind.LATE, (SCALED,), [("bounds", TYPE)]),
        (NeedKind.MEMORY, (), [("type", LARGER)]),
        (NeedKind.MEMORY, (SCALED,), []),
        (NeedKind.QUEUE, (), [("more", TYPE)]),
        (NeedKind.MINIMUM, (), [("more", TYPE)]),
    ],
)
def test_counts_are_looked_at_first_and_other_types_where_speed_or_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, kind: NeedKind, scaling: tuple[Any, ...], ways: list[tuple[str, str]]
) -> None:
    seen = context(scaling=scaling)
    monkeypatch.setattr(growth_fleets, "_Search", Ways)
    stub(monkeypatch, growth_fleets, "check_candidates", lambda _: ([candidate(LARGER), candidate(TYPE)], []))
    usd = float(Decimal("1.1267") * 730)
    found: Any = list(growth_offers(seen, need(kind)))
    assert found == [(*way, 4, 10, pytest.approx(10 * usd)) for way in ways]
    found = list(growth_offers(seen, need(kind, 12)))
    assert found == [(*way, 4, 12, pytest.approx(12 * usd)) for way in ways]
    stub(monkeypatch, growth_fleets, "check_candidates", lambda _: ([], []))
    assert list(growth_offers(seen, need(kind))) == []


@pytest.mark.parametrize(
    ("one", "kind", "worth"),
    [
        (candidate(LARGER), NeedKind.LATE, True),
        (candidate(TYPE), NeedKind.LATE, False),
        (candidate(LARGER, ratio=Ratio(1.01, 1.2)), NeedKind.LATE, False),
        (candidate(LARGER, fit=0.99), NeedKind.LATE, False),
        (candidate(SMALL), NeedKind.LATE, True),
        (candidate(SMALL), NeedKind.MEMORY, False),
        (candidate("ml.g5.xlarge"), NeedKind.MEMORY, False),
        (candidate(LARGER), NeedKind.MEMORY, True),
        (
            replace(candidate(LARGER), hardware=replace(kit.catalogue().types[LARGER], accelerator=None)),
            NeedKind.LATE,
            False,
        ),
    ],
)
def test_another_type_is_looked_at_where_it_is_no_slower_fits_and_has_capacity(
    one: CandidateType, kind: NeedKind, worth: bool
) -> None:
    seen = context()
    assert growth_fleets._may_be_faster(seen, need(kind), one) is worth
    vars(seen)["types_without_capacity"] = frozenset({one.hardware.name})
    assert not growth_fleets._may_be_faster(seen, need(kind), one)


# speed


def test_more_instances_do_not_help_where_one_in_twenty_is_late_alone() -> None:
    seen = context()
    for share, slow in ((0.05, False), (0.051, True)):
        vars(seen)["service_times"] = ((1.0, 1 - share), (5.0, share))
        said = slow_alone_reason(seen)
        assert (said is not None) is slow
    assert said == Reason(
        Code.TOO_SLOW,
        "more instances would not help: 5 % of the requests take longer than 4.00 s although they wait for no other;"
        " only a faster type does",
    )


def test_the_chance_of_a_guess_is_what_its_datasheet_leaves_and_never_certain() -> None:
    seen = demanding(context(), gpu_share=1.0)
    vars(seen).update(service_times=((1.0, 0.5), (3.0, 0.5)), outcomes=())
    room = 4.0 / 3.0
    guess = unsure(LARGER, speed=replace(candidate().speed, phi=1.6))
    assert chance_of_speed(seen, guess) == pytest.approx(chance_within(room, 1.6), abs=0.02)
    sure = unsure(LARGER, speed=replace(candidate().speed, phi=0.1))
    assert chance_of_speed(seen, sure) == growth_fleets.OFTEN_FASTER
    measured = unsure(LARGER, fast=0.33, speed=replace(candidate().speed, source=SlowdownSource.TESTED))
    assert chance_of_speed(seen, measured) == 0.33
