"""How large a fleet has to be for the days that were seen, and what a test is worth that nothing else decides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.demand import Fleet
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender import choose, recommend
from rightsizer.recommender.candidates import CandidateType, check_candidate, check_candidates
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.dimension import Offering
from rightsizer.recommender.fleet_size import can_still_carry, carries_like_reference, replay_if_carried, replayed_p95_s
from rightsizer.recommender.late_requests import failed_instances
from rightsizer.recommender.options import options_for, size_and_price
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.test_failed_fleets import TYPE, changed, day, judged


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[EvaluationContext]:
    """The situations that were judged."""
    found: list[EvaluationContext] = []

    def spy(base: Recommendation, context: EvaluationContext, dimensions: Sequence[Offering]) -> Recommendation:
        found.append(context)
        return choose.choose_option(base, context, dimensions)

    monkeypatch.setattr(recommend, "choose_option", spy)
    return found


def fleet(count: int, load: float) -> Fleet:
    return Fleet((count,) * 24, 1, False, 1.0, load)


def test_the_room_shrinks_with_the_days_that_were_seen_and_with_the_rounding_of_a_small_fleet(
    seen: list[EvaluationContext],
) -> None:
    """A whole instance is half of a fleet of two: it has that room anyway, a fleet of forty has not."""
    expected = {(1, 40): 0.2, (14, 40): 0.2 - 0.5 / 40, (14, 4): 0.2 - 0.5 / 4, (14, 2): 0.2 / 14**0.5}
    for days, count in expected:
        judged([day(i, float(count)) for i in range(19 - days, 19)], count)
    assert [context.load_margin for context in seen] == pytest.approx([1 + room for room in expected.values()])


def test_after_something_went_wrong_the_room_is_for_growth_again_and_more(seen: list[EvaluationContext]) -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    judged(days, 40, [changed(2, 12, "rolled-back")])
    assert seen[0].extra_margin == 1
    assert seen[0].load_margin == pytest.approx(1.2 * 1.15)


def test_a_fleet_that_growth_would_drown_does_not_carry_though_nobody_notices_it_today(
    seen: list[EvaluationContext],
) -> None:
    judged([day(i, 40.0) for i in range(5, 19)], 40)
    context = seen[0]
    smallest = next(n for n in range(8, 40) if context.replay(fleet(n, 1.05)).late == 0)
    late = [n for n in range(8, smallest + 3) if replay_if_carried(context, fleet(n, 1.05)) is None]
    drowned = [
        n for n in late if context.replay(fleet(n, 1.05)).late <= context.policy.excess_share * context.stream.requests
    ]
    bold = replace(context, inputs=replace(context.inputs, policy=replace(context.policy, down_with_growth=0.0)))
    assert drowned, "no fleet here is good enough today and too small for the growth"
    assert all(replay_if_carried(bold, fleet(n, 1.05)) is not None for n in drowned)


def test_the_guard_is_asked_at_the_load_that_was_seen_not_at_the_one_that_is_planned_for(
    seen: list[EvaluationContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged([day(i, 40.0) for i in range(5, 19)], 40)
    context, plan = seen[0], fleet(30, 1.05)
    assert replay_if_carried(context, plan) is not None
    alarmed = replace(context.replay(plan), rings_alarm=1)
    quiet = context.replay(replace(plan, load=1.0))
    monkeypatch.setitem(context._replays, plan, alarmed)
    assert replay_if_carried(context, plan) is not None
    monkeypatch.setitem(context._replays, replace(plan, load=1.0), replace(quiet, rings_alarm=1))
    assert replay_if_carried(context, plan) is None


def test_a_single_instance_must_hold_the_growth_too(seen: list[EvaluationContext]) -> None:
    """It cannot be mended by a count: at 20 % more load one request in a hundred more may be late, no more."""
    signals = kit.steady(per_slot=130.0, latency_s=1.0, gpu=40.0, memory=20.0)
    judge(
        kit.endpoint(p95_s=20.0), [kit.window(signals)], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    context = seen[0]
    slow = [Fleet((1,) * 24, 1, False, 1 + step / 20) for step in range(40)]
    bold = replace(context, inputs=replace(context.inputs, policy=replace(context.policy, grown_share=1.0)))
    refused = [
        fleet for fleet in slow if carries_like_reference(bold, fleet) and not carries_like_reference(context, fleet)
    ]
    assert refused, "no slowdown here is good enough today and too much for the growth"


def test_our_fleet_still_carries_while_what_was_late_is_allowed(seen: list[EvaluationContext]) -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    judged([*before, *(day(i, 14.0) for i in range(16, 19))], 14, [changed(3, 14, "proven")])
    judged([*before, *(day(i, 8.0) for i in range(16, 19))], 8, [changed(3, 8, "proven")])
    enough, small = seen
    assert can_still_carry(enough)
    assert not can_still_carry(small)


def test_what_failed_on_the_type_that_was_measured_fails_on_one_that_is_no_faster(
    seen: list[EvaluationContext],
) -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    judged(days, 40, [changed(2, 12, "rolled-back")])
    context = seen[0]
    assert failed_instances(context, TYPE, 1.0, 1) == 12
    assert failed_instances(context, "ml.g6e.2xlarge", 1.0, 1) == 12
    assert failed_instances(context, "ml.p5.4xlarge", 0.5, 1) == 0
    assert failed_instances(context, "ml.g6e.12xlarge", 1.0, 4) == 0


def test_what_failed_on_a_slower_type_says_nothing_of_the_one_that_was_measured(seen: list[EvaluationContext]) -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    at = kit.NOW - timedelta(days=2)
    slower = "ml.g6.2xlarge"
    past = PastChange(at, slower, slower, 40, 12, PastEnd.ROLLED_BACK, failure="alarm", mean_instances=12.0)
    judged(days, 40, [past])
    assert failed_instances(seen[0], TYPE, 1.0, 1) == 0


def test_a_type_that_only_a_quick_gpu_would_make_enough_is_worth_a_test_at_one_chance_in_four(
    seen: list[EvaluationContext],
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
    assert any(chance == pytest.approx(0.25, abs=0.01) for chance in single)
    assert single == sorted(single, reverse=True), "the busier, the less likely"


def test_fleets_are_sized_with_the_middle_of_a_measured_slowdown_and_with_the_bound_of_a_guessed_one(
    seen: list[EvaluationContext],
) -> None:
    past = PastChange(kit.NOW - timedelta(days=2), TYPE, "ml.g6.2xlarge", 1, 1, PastEnd.TESTED, realised_slowdown=2.0)
    for count, history in ((1, History((past,))), (12, History((past,))), (12, History())):
        signals = kit.steady(per_slot=30.0 * count, latency_s=1.0, gpu=9.0, memory=20.0)
        endpoint = kit.endpoint(count=count, p95_s=9.0)
        judge(endpoint, [kit.window(signals)], kit.prices(), kit.catalogue(), {}, history, Policy(), kit.NOW)
        context = seen[-1]
        candidate = next(d for d in check_candidates(context)[0] if d.hardware.name == "ml.g6.2xlarge")
        assert (candidate.speed.source == "tested") == bool(history.endpoint)
        assert candidate.ratio.mid < candidate.ratio.bound
        context._replays.clear()
        size_and_price(context, candidate)
        tried = [fleet.slower for fleet in context._replays if fleet.slower > 1]
        bound = round(candidate.ratio.bound, 4)
        sized = round(candidate.ratio.mid, 4) if history.endpoint else bound
        assert tried[0] == sized
        assert set(tried) == {sized, bound}, "the p95 is promised at the bound"


def test_the_p95_of_fewer_instances_has_the_waiting_of_its_own_counts(seen: list[EvaluationContext]) -> None:
    signals = kit.steady(per_slot=90.0, latency_s=2.0, gpu=27.0, memory=20.0)
    judge(
        kit.endpoint(TYPE, 2, p95_s=60.0), [kit.window(signals)], kit.prices(), kit.catalogue(), {}, History(),
        Policy(), kit.NOW,
    )  # fmt: skip
    context = seen[-1]
    hardware, one = context.runs, next(o for o in options_for(context).sure if o.target.instance_count == 1)
    two = replace(one, target=replace(one.target, instance_count=2))
    promise = one.promise
    assert promise is not None
    alone = [replace(o, promise=replace(promise, latency_ratio=1.0)) for o in (one, two)]
    fewer, same = (replayed_p95_s(context, option, hardware) for option in alone)
    assert same == round(context.latency.p95_s, 4), "today's fleet has today's p95"
    then = context.replay(Fleet((1,) * 24, context.workers, False, 1.0))
    grown = then.p95_s / context.reference_replay.p95_s
    assert fewer == pytest.approx(grown * same, abs=1e-3)
    assert grown > 1.3
    assert one.p95_s == replayed_p95_s(
        context, one, context.inputs.catalogue.find(one.target.instance_type) or hardware
    )


def tailed(seconds: float) -> Callable[[int], float]:
    """Microseconds that double in one slot of two hundred."""
    return lambda i: seconds * (2e6 if i % 200 == 0 else 1e6)


def narrow(
    seen: list[EvaluationContext], slowdown: float | None, p95_s: float = 4.5
) -> tuple[EvaluationContext, CandidateType | Reason]:
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
    context = seen[-1]
    small = context.inputs.catalogue.find("ml.g6.xlarge")
    assert small is not None
    return context, check_candidate(context, small)


@pytest.mark.parametrize("slowdown", [None, 1.1])
def test_an_option_promises_the_likely_slowdown_and_the_bound_that_it_is_to_stay_within(
    seen: list[EvaluationContext], slowdown: float | None
) -> None:
    context, draft = narrow(seen, slowdown, p95_s=9.0)
    assert isinstance(draft, CandidateType)
    option = size_and_price(context, draft)
    assert isinstance(option, Option)
    assert option.promise is not None
    assert (option.promise.slowdown, option.promise.bound) == (round(draft.speed.mid, 4), round(draft.speed.bound, 4))
    assert draft.speed.mid < draft.speed.bound
    assert option.promise.latency_ratio == round(draft.ratio.bound, 4)


def test_a_measured_slowdown_needs_its_middle_within_the_objective_and_a_bearable_day_at_its_bound(
    seen: list[EvaluationContext],
) -> None:
    context, _ = narrow(seen, 1.0)
    error = 1 + context.policy.measured_error
    assert 1.5 < context.allowed_slowdown < context.worst_slowdown
    for slowdown in (context.allowed_slowdown * 0.99, context.allowed_slowdown / error * 1.01):
        context, draft = narrow(seen, slowdown)
        assert isinstance(draft, CandidateType)
        assert draft.ratio.bound > context.allowed_slowdown
        assert draft.is_certain
        option = size_and_price(context, draft)
        assert isinstance(option, Option)
        assert option.risks[RiskResource.LATENCY] is Risk.LOW
    refused = narrow(seen, context.allowed_slowdown * 1.01)[1]
    assert isinstance(refused, Reason)
    assert refused.code is Code.TOO_SLOW
    context, guessed = narrow(seen, None, p95_s=5.7)
    assert isinstance(guessed, CandidateType)
    assert guessed.ratio.mid <= context.allowed_slowdown < guessed.ratio.bound <= context.worst_slowdown
    assert not guessed.is_certain, "nobody measured it: the bound is what is known"


def test_where_tests_are_switched_off_a_likely_type_may_be_taken_under_the_guard_of_its_change(
    seen: list[EvaluationContext],
) -> None:
    context, guessed = narrow(seen, None, p95_s=5.7)
    assert isinstance(guessed, CandidateType)
    assert 0.5 < guessed.fast < 0.6
    for tests, chance, taken in ((4, 0.5, False), (0, 1.0, False), (0, 0.6, False), (0, 0.5, True)):
        policy = replace(context.policy, tests_per_month=tests, untested_chance=chance)
        dared = replace(context, inputs=replace(context.inputs, policy=policy))
        draft = check_candidate(dared, guessed.hardware)
        assert isinstance(draft, CandidateType)
        assert draft.is_certain == taken, (tests, chance)
    assert isinstance(draft, CandidateType)
    option = size_and_price(dared, draft)
    assert isinstance(option, Option)
    assert option.risks[RiskResource.LATENCY] is Risk.LOW
    assert f"{guessed.ratio.mid:.2f}-fold most likely" in option.facts["latency may grow"]
