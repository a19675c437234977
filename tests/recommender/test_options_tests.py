"""What a shadow test could make sure of, what it costs and tells, and what rules a fleet out before it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.option import Option, OptionKind, Risk, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.recommender import options
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.options import size_and_price
from rightsizer.recommender.slowdown import Ratio, chance_within
from tests.recommender import plain
from tests.recommender.plain_context import HOURS, SCALED, TYPE, context, noted, stub
from tests.recommender.test_options import BUSY, SMALL, TYPES, candidate, priced, shadow, unsure

# what a test could make sure of


def test_the_four_most_promising_cheaper_types_are_sized_as_if_their_test_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    stub(
        monkeypatch,
        options,
        "_assume_test_passes",
        lambda _, one: noted(asked, one.hardware.name, shadow(one.hardware.name)),
    )
    seen = context(policy={"minimum_saving_share": 0.1})
    names = ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.g5.xlarge", "ml.g5.2xlarge", "ml.g6e.xlarge"]
    wanted = [unsure(name, 100.0 + n) for n, name in enumerate(names)]
    wanted[4] = unsure(names[4], 100.0, fast=0.9)
    wanted[3] = unsure(names[3], 100.0, fit=0.1)
    others = [unsure(TYPE, 1.0), candidate("ml.p5.4xlarge", 1.0), unsure("ml.g5.12xlarge", 900.0)]
    found = options._find_test_candidates(seen, [*wanted, *others], 1000.0)
    assert asked == [names[4], names[0], names[1], names[2]], "the saving by its chance decides"
    assert [one.option.target.instance_type for one in found] == asked
    for usd, names in ((900.0, []), (899.9, ["ml.g5.12xlarge"])):
        asked.clear()
        options._find_test_candidates(seen, [unsure("ml.g5.12xlarge", usd)], 1000.0)
        assert asked == names
    stub(monkeypatch, options, "_assume_test_passes", lambda *_: None)
    assert options._find_test_candidates(seen, wanted, 1000.0) == []


def seeing(
    monkeypatch: pytest.MonkeyPatch, carried: Callable[[CandidateType], bool], room: bool = True
) -> list[CandidateType]:
    """Candidates are options where they are carried; those that were sized."""
    asked: list[CandidateType] = []

    def size(_: EvaluationContext, one: CandidateType) -> Option | Reason:
        asked.append(one)
        return priced(one.hardware.name, 100.0) if carried(one) else BUSY

    stub(monkeypatch, options, "size_and_price", size)
    stub(monkeypatch, options, "has_gpu_room", lambda *_: room)
    return asked


def allowing(slowdown: float = 2.0, share: float = 1.0) -> EvaluationContext:
    seen = context()
    seen = replace(seen, demand=replace(seen.demand, gpu_share=share))
    vars(seen).update(allowed_slowdown=slowdown, outcomes=(), share_of_wanted_requests=0.7)
    return seen


def test_a_test_is_assumed_to_find_the_middle_or_a_little_less_than_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for allowed, tried in ((2.0, 1.2), (1.0, 0.9)):
        asked = seeing(monkeypatch, lambda _: True)
        found = options._assume_test_passes(allowing(allowed), unsure(fit=0.5))
        assert found is not None
        assert found.chance == 0.25
        (sized,) = asked
        assert (sized.ratio, sized.fit, sized.fast) == (Ratio(tried, tried), 1.0, 1.0)
    assert seeing(monkeypatch, lambda _: True, room=False) == []
    assert options._assume_test_passes(allowing(), unsure()) is None


def test_where_the_middle_is_too_busy_a_quick_card_may_do(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = 1.2 - 0.2 * 1.2
    chance = chance_within(0.8 * 1.2, 1.5)
    asked = seeing(monkeypatch, lambda one: one.ratio.mid < 1.2)
    found = options._assume_test_passes(allowing(), unsure())
    assert found is not None
    assert [one.ratio.mid for one in asked] == [1.2, pytest.approx(quick)]
    assert found.chance == pytest.approx(min(chance, 0.5))
    unlikely = options._assume_test_passes(allowing(), unsure(fast=0.1))
    assert unlikely is not None
    assert unlikely.chance == 0.1
    asked.clear()
    measured = replace(unsure().speed, source=SlowdownSource.TESTED)
    assert options._assume_test_passes(allowing(), unsure(speed=measured)) is None
    assert len(asked) == 1, "nobody guesses at what was measured"
    assert options._assume_test_passes(allowing(0.5), unsure(ratio=Ratio(0.4, 0.5))) is not None
    assert asked[-1].ratio.mid == pytest.approx(0.4), "no quicker than what is allowed anyway"


def test_a_fleet_too_busy_at_the_bound_of_a_guess_is_worth_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = seeing(monkeypatch, lambda _: True)
    open_one = candidate(ratio=Ratio(1.2, 1.5))
    found = options._assume_faster(allowing(), open_one)
    assert found is not None
    assert [one.ratio.mid for one in asked] == [1.2]
    assert found.chance == pytest.approx(chance_within(1.2, 1.5))
    assert asked[0].fast == found.chance
    assert options._assume_faster(allowing(), candidate(ratio=Ratio(1.2, 1.2))) is None
    assert options._assume_faster(allowing(), candidate(TYPE, ratio=Ratio(1.2, 1.5))) is None
    measured = replace(open_one, speed=replace(open_one.speed, source=SlowdownSource.TESTED))
    assert options._assume_faster(allowing(), measured) is None
    asked = seeing(monkeypatch, lambda one: one.ratio.mid < 1.0)
    assert options._assume_faster(allowing(), open_one) is not None
    assert [one.ratio.mid for one in asked] == [1.2, pytest.approx(0.96)]
    seeing(monkeypatch, lambda _: True, room=False)
    assert options._assume_faster(allowing(), open_one) is None


def test_a_faster_card_is_also_tried_as_fast_as_todays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = seeing(monkeypatch, lambda _: True)
    speed = Slowdown(0.9, 0.6, 0.5, 0.8, SlowdownSource.DATASHEET)
    faster = candidate(ratio=Ratio(0.8, 0.95), speed=speed)
    found = options._assume_faster(allowing(share=0.5), faster)
    assert found is not None
    assert [one.ratio.mid for one in asked] == [pytest.approx(1.0), pytest.approx(0.8)]
    likely = max(chance_within(0.6, 0.8), chance_within(1.0, 0.8))
    assert found.chance == pytest.approx(likely), "the one that may save more is named"
    assert options._share_as_today(allowing(share=0.5), faster) == pytest.approx(1 + 0.2 / 0.3)
    assert options._share_as_today(allowing(share=0.0), faster) == 1.0
    assert options._share_as_today(allowing(), candidate(ratio=Ratio(1.0, 1.2))) == 1.0


@pytest.mark.parametrize(
    ("busy", "share", "tried", "count", "room"),
    [
        (None, 1.0, 1.2, 1, True),
        (9.0, 0.0, 1.2, 1, True),
        (1.0, 1.0, 1.0, 1, True),
        (1.01, 1.0, 1.0, 1, False),
        (2.0, 1.0, 1.0, 2, True),
        (0.99, 0.5, 1.1, 1, True),
        (1.01, 0.5, 1.1, 1, False),
        (99.0, 0.5, 0.5, 1, True),
    ],
)
def test_no_card_works_longer_than_the_hour(
    busy: float | None, share: float, tried: float, count: int, room: bool
) -> None:
    """A ratio 0.1 below the middle, of which half is the GPU's, is a slowdown 0.2 below the middle of 1.2."""
    seen = context()
    load = replace(seen.demand.load, peak_busy_gpus=busy)
    seen = replace(seen, demand=replace(seen.demand, load=load, gpu_share=share))
    one = candidate(ratio=Ratio(1.2, 1.5))
    assert options.has_gpu_room(seen, one, plain.option(target=Target(SMALL, count)), tried) is room


def test_the_busiest_hour_of_any_day_has_the_most_cards() -> None:
    seen = context()
    seen = replace(seen, demand=replace(seen.demand, gpu_share=1.0, load=replace(seen.demand.load, peak_busy_gpus=7.0)))
    eight = replace(candidate(), hardware=TYPES["ml.g6.48xlarge"], ratio=Ratio(1.2, 1.5))
    assert options.has_gpu_room(seen, eight, plain.option(target=Target("ml.g6.48xlarge", 1)), 1.2 - 0.1)
    days = (DayCounts((0, 1, 2, 3, 4), (8,) * 24), DayCounts((5, 6), (1,) * 24))
    by_day = plain.option(target=Target(SMALL, 8, day_counts=days))
    assert options.has_gpu_room(seen, candidate(ratio=Ratio(1.2, 1.5)), by_day, 1.0)


def test_a_test_costs_beside_todays_fleet_and_tells_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[float] = []
    stub(monkeypatch, options, "cost_of_test", lambda _, usd, __: noted(paid, usd, 12.5))
    seen = allowing()
    made = options.test_candidate(seen, unsure(fit=0.8), plain.option(risk=Risk.LOW), 0.5)
    assert (made.chance, made.cost, made.share_of_wanted_requests) == (0.4, 12.5, 0.7)
    assert made.untested_risk is Risk.VERY_HIGH or made.untested_risk is Risk.HIGH
    assert paid == [pytest.approx(float(seen.price.usd_per_hour) * seen.instances)]
    assert made.tells == (
        "whether the model fits 15 GiB of GPU memory and how fast ml.g4dn.xlarge answers the same requests"
    )


@pytest.mark.parametrize(
    ("fit", "fast", "of_gpus", "tells"),
    [
        (1.0, 1.0, 1, "how fast ml.g4dn.xlarge answers the same requests"),
        (0.9, 1.0, 1, "whether the model fits 15 GiB of GPU memory"),
        (0.9, 1.0, 8, "whether the model starts on 1 of 8 GPUs"),
        (1.0, 0.9, 8, "how fast ml.g4dn.xlarge answers the same requests"),
    ],
)
def test_a_test_tells_what_is_not_known(fit: float, fast: float, of_gpus: int, tells: str) -> None:
    seen = context(reference=TYPES["ml.g6.48xlarge" if of_gpus == 8 else TYPE])
    assert options.test_tells(seen, candidate(fit=fit), fast) == tells


@pytest.mark.parametrize(
    ("risk", "fit", "fast", "expected"),
    [
        (Risk.LOW, 1.0, 1.0, Risk.LOW),
        (Risk.LOW, 0.99, 1.0, Risk.HIGH),
        (Risk.VERY_HIGH, 0.5, 1.0, Risk.VERY_HIGH),
        (Risk.VERY_LOW, 1.0, 1.0, Risk.VERY_LOW),
        (Risk.VERY_LOW, 1.0, 0.0, Risk.VERY_HIGH),
    ],
)
def test_without_its_test_a_model_that_may_not_fit_is_a_high_risk(
    risk: Risk, fit: float, fast: float, expected: Risk
) -> None:
    assert options.untested_risk(plain.option(risk=risk), fit, fast, Policy()) is expected


# what rules a fleet out


def test_the_type_that_runs_is_sized_again_as_it_is_routed_where_a_better_routing_saves_no_instance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = context()
    routed = replace(seen, endpoint=replace(seen.endpoint, variants=(replace(seen.variant, routing="RANDOM"),)))

    def size(found: EvaluationContext, _: CandidateType) -> Option | Reason:
        return BUSY if found.may_change(OptionKind.ROUTING) else priced(TYPE, 100.0)

    stub(monkeypatch, options, "_size_fleet", size)
    stub(monkeypatch, options, "check_fleet", lambda _, __, option: option)
    own = candidate(TYPE)
    assert isinstance(size_and_price(routed, own), Option)
    assert size_and_price(routed, candidate(SMALL)) == BUSY
    assert size_and_price(seen, own) == BUSY
    assert size_and_price(replace(routed, is_strained=True), own) == BUSY


@pytest.mark.parametrize(
    ("name", "count", "quota", "refused"),
    [(SMALL, 3, 2, True), (SMALL, 2, 2, False), (SMALL, 3, None, False), (TYPE, 3, 2, False)],
)
def test_the_quota_holds_for_the_fleet_that_starts_beside_the_old_one(
    name: str, count: int, quota: int | None, refused: bool
) -> None:
    seen = context()
    seen = replace(seen, inputs=replace(seen.inputs, quotas={} if quota is None else {name: quota}))
    why = options._quota_reason(seen, plain.option(target=Target(name, count)))
    said = Reason(Code.NO_QUOTA, "the account's quota for ml.g4dn.xlarge endpoints is 2, and 3 instances are needed")
    assert why == (said if refused else None)


def test_a_smaller_kv_cache_holds_the_requests_that_fewer_instances_share(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    stub(monkeypatch, options, "pool_refusal", lambda *given: noted(asked, given, BUSY))
    one = candidate(ratio=Ratio(1.2, 1.5), started=False)
    assert options._pool_reason(context(HOURS), candidate(), priced(SMALL, 1.0)) is None, "it has started there"
    for seen, target, factor in (
        (context(HOURS), Target(SMALL, 1), 3.0),
        (context(HOURS), Target(SMALL, 2, (2,) * 12 + (1,) * 12), 1.5),
        (context(HOURS), Target(SMALL, 4), 1.0),
        (context(HOURS), Target(SMALL, 0), 3.0),
        (context(HOURS, scaling=(SCALED,)), Target(SMALL, 1), 1.0),
    ):
        assert options._pool_reason(seen, one, plain.option(target=target)) == BUSY
        assert asked[-1] == (seen.reference, TYPES[SMALL], seen.demand.memory, pytest.approx(1.5 * factor))


def test_a_fleet_is_checked_for_what_is_registered_the_quota_and_the_cache_before_its_p95_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reasons: dict[str, Reason | None] = {"registered_reason": None, "_quota_reason": None, "_pool_reason": None}
    for name in reasons:
        stub(monkeypatch, options, name, lambda _, __, *more, name=name: reasons[name])
    stub(
        monkeypatch,
        options,
        "with_late_share",
        lambda _, option, hardware, slower: replace(option, notes=(f"{slower:g}",)),
    )
    stub(monkeypatch, options, "replayed_p95_s", lambda _, option, hardware: 2.5 if option.notes else 0.0)
    seen = allowing()
    found = options.check_fleet(seen, candidate(ratio=Ratio(1.2, 1.5)), priced(SMALL, 1.0))
    assert isinstance(found, Option)
    assert (found.p95_s, found.notes) == (2.5, ("1.5",))
    for name in reversed(reasons):
        reasons[name] = Reason(Code.TOO_BUSY, name)
        assert options.check_fleet(seen, candidate(), priced(SMALL, 1.0)) == reasons[name]


def test_the_chance_of_a_quick_card_counts_what_the_account_saw() -> None:
    seen = allowing()
    vars(seen)["outcomes"] = (0.5,) * 30 + (0.9,) * 30
    one = unsure()
    ratio, chance = options._ratio_and_chance(seen, one, 0.8)
    assert ratio == pytest.approx(1.2 - 0.2 * 1.2)
    assert chance == 0.5, "half of the moves were within 0.64 of the datasheet"
