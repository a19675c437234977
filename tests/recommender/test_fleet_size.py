"""How large a fleet has to be for the days that were seen, and what a test is worth that nothing else decides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.demand import Plan
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender import choose, recommend
from rightsizer.recommender.candidates import Draft, draft_of, drafts_of
from rightsizer.recommender.context import Situation
from rightsizer.recommender.dimension import Offering
from rightsizer.recommender.fleet_size import carries, carries_alone, still_carries
from rightsizer.recommender.late_requests import failed_instances
from rightsizer.recommender.options import offer, options_for
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.test_failed_fleets import TYPE, changed, day, judged


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Situation]:
    """The situations that were judged."""
    found: list[Situation] = []

    def spy(base: Recommendation, at: Situation, dimensions: Sequence[Offering]) -> Recommendation:
        found.append(at)
        return choose.chosen_or_kept(base, at, dimensions)

    monkeypatch.setattr(recommend, "chosen_or_kept", spy)
    return found


def fleet(count: int, load: float) -> Plan:
    return Plan((count,) * 24, 1, False, 1.0, load)


def test_the_room_shrinks_with_the_days_that_were_seen_and_with_the_rounding_of_a_small_fleet(
    seen: list[Situation],
) -> None:
    """A whole instance is half of a fleet of two: it has that room anyway, a fleet of forty has not."""
    expected = {(1, 40): 0.2, (14, 40): 0.2 - 0.5 / 40, (14, 4): 0.2 - 0.5 / 4, (14, 2): 0.2 / 14**0.5}
    for days, count in expected:
        judged([day(i, float(count)) for i in range(19 - days, 19)], count)
    assert [at.margin for at in seen] == pytest.approx([1 + room for room in expected.values()])


def test_after_something_went_wrong_the_room_is_for_growth_again_and_more(seen: list[Situation]) -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    judged(days, 40, [changed(2, 12, "rolled-back")])
    assert seen[0].cautious == 1
    assert seen[0].margin == pytest.approx(1.2 * 1.15)


def test_a_fleet_that_growth_would_drown_does_not_carry_though_nobody_notices_it_today(seen: list[Situation]) -> None:
    judged([day(i, 40.0) for i in range(5, 19)], 40)
    at = seen[0]
    smallest = next(n for n in range(8, 40) if at.served(fleet(n, 1.05)).late == 0)
    late = [n for n in range(8, smallest + 3) if carries(at, fleet(n, 1.05)) is None]
    drowned = [n for n in late if at.served(fleet(n, 1.05)).late <= at.policy.excess_share * at.stream.requests]
    bold = replace(at, given=replace(at.given, policy=replace(at.policy, down_with_growth=0.0)))
    assert drowned, "no fleet here is good enough today and too small for the growth"
    assert all(carries(bold, fleet(n, 1.05)) is not None for n in drowned)


def test_the_guard_is_asked_at_the_load_that_was_seen_not_at_the_one_that_is_planned_for(
    seen: list[Situation], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged([day(i, 40.0) for i in range(5, 19)], 40)
    at, plan = seen[0], fleet(30, 1.05)
    assert carries(at, plan) is not None
    alarmed = replace(at.served(plan), rung=1)
    quiet = at.served(replace(plan, load=1.0))
    monkeypatch.setitem(at._served, plan, alarmed)
    assert carries(at, plan) is not None
    monkeypatch.setitem(at._served, replace(plan, load=1.0), replace(quiet, rung=1))
    assert carries(at, plan) is None


def test_a_single_instance_must_hold_the_growth_too(seen: list[Situation]) -> None:
    """It cannot be mended by a count: at 20 % more load one request in a hundred more may be late, no more."""
    signals = kit.steady(per_slot=130.0, latency_s=1.0, gpu=40.0, memory=20.0)
    judge(
        kit.endpoint(p95_s=20.0), [kit.window(signals)], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    at = seen[0]
    slow = [Plan((1,) * 24, 1, False, 1 + step / 20) for step in range(40)]
    bold = replace(at, given=replace(at.given, policy=replace(at.policy, grown_share=1.0)))
    refused = [plan for plan in slow if carries_alone(bold, plan) and not carries_alone(at, plan)]
    assert refused, "no slowdown here is good enough today and too much for the growth"


def test_our_fleet_still_carries_while_what_was_late_is_allowed(seen: list[Situation]) -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    judged([*before, *(day(i, 14.0) for i in range(16, 19))], 14, [changed(3, 14, "proven")])
    judged([*before, *(day(i, 8.0) for i in range(16, 19))], 8, [changed(3, 8, "proven")])
    enough, small = seen
    assert still_carries(enough)
    assert not still_carries(small)


def test_what_failed_on_the_type_that_was_measured_fails_on_one_that_is_no_faster(seen: list[Situation]) -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    judged(days, 40, [changed(2, 12, "rolled-back")])
    at = seen[0]
    assert failed_instances(at, TYPE, 1.0, 1) == 12
    assert failed_instances(at, "ml.g6e.2xlarge", 1.0, 1) == 12
    assert failed_instances(at, "ml.p5.4xlarge", 0.5, 1) == 0
    assert failed_instances(at, "ml.g6e.12xlarge", 1.0, 4) == 0


def test_what_failed_on_a_slower_type_says_nothing_of_the_one_that_was_measured(seen: list[Situation]) -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    at = kit.NOW - timedelta(days=2)
    slower = "ml.g6.2xlarge"
    past = PastChange(at, slower, slower, 40, 12, PastEnd.ROLLED_BACK, failure="alarm", mean_instances=12.0)
    judged(days, 40, [past])
    assert failed_instances(seen[0], TYPE, 1.0, 1) == 0


def test_a_type_that_only_a_quick_gpu_would_make_enough_is_worth_a_test_at_one_chance_in_four(
    seen: list[Situation],
) -> None:
    """One busy instance of H100 with a loose objective: a cheaper card fits if it is among the quickest quarter."""
    chances = {}
    for per_slot in range(100, 260, 20):
        signals = kit.steady(per_slot=float(per_slot), latency_s=1.0, gpu=per_slot * 0.3, memory=20.0)
        endpoint = kit.endpoint("ml.p5.4xlarge", p95_s=9.0)
        windows = [kit.window(signals)]
        judge(endpoint, windows, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
        found = options_for(seen[-1]).unsure
        chances[per_slot] = {u.option.target.instance_type: u.chance for u in found}
    single = [c["ml.g6e.2xlarge"] for c in chances.values() if "ml.g6e.2xlarge" in c]
    assert 0.5 in single
    assert 0.25 in single
    assert single == sorted(single, reverse=True), "the busier, the less likely"


def test_fleets_are_sized_with_the_middle_of_a_measured_slowdown_and_with_the_bound_of_a_guessed_one(
    seen: list[Situation],
) -> None:
    past = PastChange(kit.NOW - timedelta(days=2), TYPE, "ml.g6.2xlarge", 1, 1, PastEnd.TESTED, realised_slowdown=2.0)
    for count, history in ((1, History((past,))), (12, History((past,))), (12, History())):
        signals = kit.steady(per_slot=30.0 * count, latency_s=1.0, gpu=9.0, memory=20.0)
        endpoint = kit.endpoint(count=count, p95_s=9.0)
        judge(endpoint, [kit.window(signals)], kit.prices(), kit.catalogue(), {}, history, Policy(), kit.NOW)
        at = seen[-1]
        draft = next(d for d in drafts_of(at)[0] if d.hardware.name == "ml.g6.2xlarge")
        assert (draft.speed.source == "tested") == bool(history.endpoint)
        assert draft.ratio.mid < draft.ratio.bound
        at._served.clear()
        offer(at, draft)
        tried = {plan.slower for plan in at._served if plan.slower > 1}
        assert tried == {round(draft.ratio.mid if history.endpoint else draft.ratio.bound, 4)}


def tailed(seconds: float) -> Callable[[int], float]:
    """Microseconds that double in one slot of two hundred."""
    return lambda i: seconds * (2e6 if i % 200 == 0 else 1e6)


def narrow(seen: list[Situation], slowdown: float | None, p95_s: float = 4.5) -> tuple[Situation, Draft | Reason]:
    """One instance with spread latencies, and a smaller type that a test found slower by that much; None: untested."""
    signals = kit.steady(per_slot=2.0, latency_s=1.0, gpu=0.7, memory=8.0)
    for name, share in (("Average", 1.0), ("p50", 1.0), ("p95", 1.3), ("p99", 1.4)):
        signals["ModelLatency", name] = tailed(share)
    past = PastChange(
        kit.NOW - timedelta(days=2), TYPE, "ml.g6.xlarge", 1, 1, PastEnd.TESTED,
        realised_slowdown=slowdown, latency_ratio=slowdown,
    )  # fmt: skip
    windows, known = [kit.window(signals)], History((past,) if slowdown else ())
    judge(kit.endpoint(p95_s=p95_s), windows, kit.prices(), kit.catalogue(), {}, known, Policy(), kit.NOW)
    at = seen[-1]
    small = at.given.catalogue.find("ml.g6.xlarge")
    assert small is not None
    return at, draft_of(at, small)


@pytest.mark.parametrize("slowdown", [None, 1.1])
def test_an_option_promises_the_likely_slowdown_and_the_bound_that_it_is_to_stay_within(
    seen: list[Situation], slowdown: float | None
) -> None:
    at, draft = narrow(seen, slowdown, p95_s=9.0)
    assert isinstance(draft, Draft)
    option = offer(at, draft)
    assert isinstance(option, Option)
    assert option.promise is not None
    assert (option.promise.slowdown, option.promise.bound) == (round(draft.speed.mid, 4), round(draft.speed.bound, 4))
    assert draft.speed.mid < draft.speed.bound


def test_a_measured_slowdown_needs_its_middle_within_the_objective_and_a_bearable_day_at_its_bound(
    seen: list[Situation],
) -> None:
    at, _ = narrow(seen, 1.0)
    error = 1 + at.policy.measured_error
    assert 1.5 < at.stretch < at.bearable
    for slowdown in (at.stretch * 0.99, at.stretch / error * 1.01):
        at, draft = narrow(seen, slowdown)
        assert isinstance(draft, Draft)
        assert draft.ratio.bound > at.stretch
        assert draft.sure
        option = offer(at, draft)
        assert isinstance(option, Option)
        assert option.risks[RiskResource.LATENCY] is Risk.LOW
    refused = narrow(seen, at.stretch * 1.01)[1]
    assert isinstance(refused, Reason)
    assert refused.code is Code.TOO_SLOW
    at, guessed = narrow(seen, None, p95_s=5.7)
    assert isinstance(guessed, Draft)
    assert guessed.ratio.mid <= at.stretch < guessed.ratio.bound <= at.bearable
    assert not guessed.sure, "nobody measured it: the bound is what is known"


def test_where_tests_are_switched_off_a_likely_type_may_be_taken_under_the_guard_of_its_change(
    seen: list[Situation],
) -> None:
    at, guessed = narrow(seen, None, p95_s=5.7)
    assert isinstance(guessed, Draft)
    assert 0.5 < guessed.fast < 0.6
    for tests, chance, taken in ((True, 0.5, False), (False, 1.0, False), (False, 0.6, False), (False, 0.5, True)):
        policy = replace(at.policy, tests=tests, untested_chance=chance)
        dared = replace(at, given=replace(at.given, policy=policy))
        draft = draft_of(dared, guessed.hardware)
        assert isinstance(draft, Draft)
        assert draft.sure == taken, (tests, chance)
    assert isinstance(draft, Draft)
    option = offer(dared, draft)
    assert isinstance(option, Option)
    assert option.risks[RiskResource.LATENCY] is Risk.LOW
    assert f"{guessed.ratio.mid:.2f}-fold most likely" in option.facts["latency may grow"]
