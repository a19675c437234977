"""One type against one load: why it is ruled out, how sure it is, and what it costs at least."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.demand import Latency, MemoryClass, MemoryNeed
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import PastEnd
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.slowdown import Slowdown, SlowdownSource
from rightsizer.recommender import candidates
from rightsizer.recommender.candidates import (
    CandidateType,
    check_candidate,
    check_candidates,
    is_missed_today,
    may_skip_test,
)
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.slowdown import Lesson, Ratio
from tests.recommender import kit, plain
from tests.recommender.plain_context import TYPE, context

SMALL = "ml.g4dn.xlarge"
"""A cheaper type with another, smaller card."""
SIZE = "ml.g6.2xlarge"
"""The same card with a larger host."""
HALF = MemoryNeed(MemoryClass.STATIC, need_gib=8.0, lower_gib=7.0, peak_gib=7.0, margin=1.1)


def hardware(name: str = SMALL) -> InstanceType:
    found = kit.catalogue({"ml.g6.48xlarge": (192, 768, 8, "16.69")}).find(name)
    assert found is not None
    return found


def loaded(memory: MemoryNeed = HALF, policy: dict[str, Any] | None = None, **more: Any) -> EvaluationContext:
    """One instance that is busy for four fifths of the time; a slowdown up to two is allowed, and three at worst."""
    seen = context((1.0,) * 24, policy=policy)
    demand = replace(seen.demand, memory=memory, gpu_share=1.0, requests=50_000.0)
    seen = replace(seen, demand=demand, instances=4.0, **more)
    vars(seen).update(allowed_slowdown=2.0, worst_slowdown=3.0, share_of_wanted_requests=1.0)
    return seen


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says how slow the type is, what was learnt about it, and whether it fits."""

    def tell(
        bound: float = 1.5, mid: float = 1.2, source: SlowdownSource = SlowdownSource.DATASHEET,
        lesson: Lesson | None = None, refused: Reason | None = None, fit: float | None = None,
    ) -> None:  # fmt: skip
        speed = Slowdown(bound, mid, mid, 1.5, source)
        monkeypatch.setattr(candidates, "fit_refusal", lambda *_: refused)
        monkeypatch.setattr(candidates, "_lesson", lambda *_: lesson or Lesson())
        monkeypatch.setattr(candidates, "_slowdowns", lambda *_: (speed, 1.0, Ratio(mid, bound)))
        if fit is not None:
            monkeypatch.setattr(candidates, "fit_chance", lambda *_: fit)

    return tell


def checked(seen: EvaluationContext, name: str = SMALL) -> CandidateType:
    found = check_candidate(seen, hardware(name))
    assert isinstance(found, CandidateType), found
    return found


def refusal(seen: EvaluationContext, name: str = SMALL) -> Reason:
    found = check_candidate(seen, hardware(name))
    assert isinstance(found, Reason), found
    return found


def test_a_type_that_is_fast_enough_at_its_bound_is_certain(told: Any) -> None:
    told(bound=2.0, mid=1.2, lesson=Lesson(started=True))
    found = checked(loaded())
    assert (found.fit, found.fast, found.likely, found.started, found.is_certain) == (1.0, 1.0, 1.0, True, True)
    assert (found.ratio, found.hardware, found.price.instance_type) == (Ratio(1.2, 2.0), hardware(), SMALL)
    assert found.workers == 1


def test_what_does_not_fit_is_ruled_out_by_its_own_reason_and_what_has_no_price_by_that(told: Any) -> None:
    why = Reason(Code.MEMORY_TOO_SMALL, "too small")
    told(refused=why)
    assert refusal(loaded()) == why
    told()
    seen = loaded()
    unpriced = replace(seen, inputs=replace(seen.inputs, prices=kit.prices(without=(SMALL,))))
    assert refusal(unpriced) == Reason(Code.NO_ACCELERATOR, f"{SMALL} has no accelerator")


@pytest.mark.parametrize(("gib", "name", "refused"), [(14.6, SMALL, True), (14.5, SMALL, False), (22.0, SIZE, False)])
def test_a_card_no_larger_than_one_that_was_too_small_is_ruled_out(
    told: Any, gib: float, name: str, refused: bool
) -> None:
    """Not one of the same model: it holds the model now."""
    told(lesson=Lesson(too_small_gib=gib))
    found = check_candidate(loaded(), hardware(name))
    assert isinstance(found, Reason) is refused
    if isinstance(found, Reason):
        said = "the model did not fit 14.6 GiB, ml.g4dn.xlarge has 14.6 GiB"
        assert (found.code, found.sentence) == (Code.MEMORY_TOO_SMALL, said)


def test_a_guessed_type_that_may_be_too_slow_has_a_chance_by_its_datasheet(told: Any) -> None:
    told(bound=2.5, mid=1.2)
    found = checked(loaded())
    assert 0.5 < found.fast < 1
    assert (found.likely, found.is_certain) == (found.fast, False)
    looser = loaded()
    vars(looser)["allowed_slowdown"] = 2.2
    assert checked(looser).fast > found.fast


def test_the_chance_of_a_guessed_type_counts_what_the_account_saw(told: Any) -> None:
    told(bound=2.5, mid=1.2)
    seen = loaded()
    vars(seen)["outcomes"] = (0.5,) * 15 + (1.5,) * 45
    assert checked(seen).fast == 0.25, "a quarter of the moves were within what is allowed"


def test_a_measured_type_that_is_too_slow_is_ruled_out_with_what_is_allowed(told: Any) -> None:
    told(bound=2.5, mid=2.25, source=SlowdownSource.TESTED)
    why = refusal(loaded())
    assert (why.code, why.sentence) == (
        Code.TOO_SLOW,
        "ml.g4dn.xlarge may be too slow: latency may grow 2.50-fold (tested), and the p95 of 4.00 s allows 2.00-fold",
    )
    told(bound=3.5, mid=2.0, source=SlowdownSource.TESTED)
    assert refusal(loaded()).sentence.endswith("and the p95 of 4.00 s allows 2.00-fold, 3.00-fold at worst")
    told(bound=3.0, mid=2.0, source=SlowdownSource.TESTED)
    assert checked(loaded()).is_certain
    told(bound=3.0, mid=2.0, lesson=Lesson(latency_ratio=2.0))
    assert checked(loaded()).is_certain, "the latency was measured on exactly this type"
    told(bound=3.5, mid=2.0, lesson=Lesson(latency_ratio=2.0))
    assert refusal(loaded()).code is Code.TOO_SLOW


def test_of_the_same_card_only_the_host_is_in_question(told: Any) -> None:
    told(bound=2.5, source=SlowdownSource.SAME)
    assert checked(loaded(), SIZE).fast == 0.5


@pytest.mark.parametrize(
    ("tests", "lesson", "ruled_out"),
    [
        (1, Lesson(), False),
        (2, Lesson(), True),
        (2, Lesson(gpu_ratio=1.5), False),
        (3, Lesson(gpu_ratio=1.5), True),
        (0, Lesson(latency_ratio=1.5), True),
    ],
)
def test_tests_that_told_nothing_are_not_repeated_for_ever(
    told: Any, tests: int, lesson: Lesson, ruled_out: bool
) -> None:
    told(bound=3.5, mid=1.2, lesson=lesson)
    past = [plain.past(SMALL, ended=PastEnd.TESTED)] * tests
    others = [plain.past(TYPE, ended=PastEnd.TESTED), plain.past(SMALL, ended=PastEnd.PROVEN)] * 3
    seen = loaded()
    history = replace(seen.inputs.history, endpoint=(*past, *others))
    seen = replace(seen, inputs=replace(seen.inputs, history=history))
    vars(seen).update(allowed_slowdown=2.0, worst_slowdown=3.0, share_of_wanted_requests=1.0)
    assert isinstance(check_candidate(seen, hardware()), Reason) is ruled_out


def test_where_the_objective_is_missed_today_no_slower_card_is_guessed_at(told: Any) -> None:
    told(bound=2.5)
    late = Latency(1.0, 1.0, 4.1, 5.0, 1.0, ((1.0, 1.0),))
    for latency, declared, missed in (
        (late, True, True),
        (late, False, False),
        (replace(late, p95_s=4.0), True, False),
    ):
        seen = loaded(latency=latency, objective=LatencyObjective(4.0, declared, "tag"))
        assert is_missed_today(seen) is missed
        assert isinstance(check_candidate(seen, hardware()), Reason) is missed
        faster = check_candidate(seen, hardware("ml.g6e.xlarge"))
        assert not isinstance(faster, Reason) or faster.code is not Code.TOO_SLOW


def test_the_least_cost_is_that_of_the_busy_instances_and_of_one_at_least(told: Any) -> None:
    seen = loaded()
    month = 0.7364 * 730
    told(mid=1.2)
    assert checked(seen).least_usd == pytest.approx(month)
    busier = replace(seen, demand=replace(seen.demand, load=replace(seen.demand.load, mean_rate=3.0)))
    vars(busier).update(allowed_slowdown=2.0, worst_slowdown=3.0, share_of_wanted_requests=1.0)
    busy = 3.0 * busier.latency.mean_s * 1.2 * 0.8
    assert checked(busier).least_usd == pytest.approx(busy * month)
    dearer = replace(busier, instances=busy * 0.7364 / 1.1267 / 0.999)
    vars(dearer).update(allowed_slowdown=2.0, worst_slowdown=3.0, share_of_wanted_requests=1.0)
    why = refusal(replace_cached(dearer, instances=dearer.instances * 0.9999))
    assert why == Reason(
        Code.NOT_CHEAPER,
        f"ml.g4dn.xlarge would cost at least ${busy * month:,.0f} a month, for {busy:.1f} instances on average",
    )
    assert checked(replace_cached(dearer, instances=dearer.instances * 1.0001)).least_usd > 0
    alone = refusal(replace_cached(seen, instances=0.5))
    assert alone.sentence == f"ml.g4dn.xlarge would cost at least ${month:,.0f} a month"
    assert checked(replace_cached(seen, instances=0.5), TYPE).least_usd > 0, "what runs is always looked at"


def replace_cached(seen: EvaluationContext, **more: Any) -> EvaluationContext:
    """The context with other figures and the same allowed slowdowns."""
    made = replace(seen, **more)
    vars(made).update(allowed_slowdown=2.0, worst_slowdown=3.0, share_of_wanted_requests=1.0)
    return made


@pytest.mark.parametrize(
    ("policy", "requests", "wanted", "skipped"),
    [
        ({"tests_per_month": 0, "untested_chance": 0.5}, 200.0, 1.0, True),
        ({"tests_per_month": 0, "untested_chance": 0.5}, 199.0, 1.0, False),
        ({"tests_per_month": 0, "untested_chance": 0.51}, 200.0, 1.0, False),
        ({"untested_chance": 0.5}, 200.0, 1.0, False),
        ({"untested_chance": 0.5, "test_tells": 0.4}, 200.0, 0.39, True),
        ({"untested_chance": 0.5, "test_tells": 0.4}, 200.0, 0.4, False),
    ],
)
def test_a_likely_type_is_taken_untested_where_no_test_may_run_or_would_tell(
    policy: dict[str, Any], requests: float, wanted: float, skipped: bool
) -> None:
    seen = loaded(policy=policy)
    seen = replace_cached(seen, demand=replace(seen.demand, requests=requests))
    vars(seen)["share_of_wanted_requests"] = wanted
    assert may_skip_test(seen, 0.5) is skipped


def test_what_is_taken_untested_keeps_its_chance_for_people(told: Any) -> None:
    told(bound=2.5)
    dared = checked(loaded(policy={"tests_per_month": 0, "untested_chance": 0.1}))
    assert dared.fast == 1.0
    assert 0.1 < dared.likely < 1.0


def test_where_it_surely_does_not_fit_its_speed_is_no_reason(told: Any) -> None:
    told(bound=3.5, mid=2.5, source=SlowdownSource.TESTED, fit=0.0)
    assert (checked(loaded()).fit, checked(loaded()).fast) == (0.0, 0.0)
    told(bound=3.5, mid=2.5, source=SlowdownSource.TESTED, fit=0.1)
    assert refusal(loaded()).code is Code.TOO_SLOW


def test_every_gpu_type_is_a_candidate_or_ruled_out_the_cheapest_first(told: Any) -> None:
    told()
    seen = loaded()
    more = {"ml.m5.2xlarge": (8, 32, 0, "0.461"), "ml.g4dn.4xlarge": (16, 64, 1, "0.94")}
    prices = kit.prices()
    prices = replace(prices, prices={**prices.prices, "ml.g4dn.4xlarge": prices.prices["ml.g4dn.2xlarge"]})
    seen = replace_cached(seen, inputs=replace(seen.inputs, catalogue=kit.catalogue(more), prices=prices))
    found, excluded = check_candidates(seen)
    names = [one.hardware.name for one in found]
    assert names[:3] == ["ml.g4dn.xlarge", "ml.g4dn.4xlarge", "ml.g4dn.2xlarge"], "of equal cost the larger host first"
    assert [one.least_usd for one in found] == sorted(one.least_usd for one in found)
    ruled_out = [one.instance_type for one in excluded]
    assert sorted([*names, *ruled_out]) == sorted([*kit.TYPES, "ml.g4dn.4xlarge"])
    assert ruled_out == ["ml.g5.12xlarge", "ml.p5.4xlarge"]
    assert excluded[0].reason.code is Code.NOT_CHEAPER
