"""Fleets that failed under today's load, and what late requests since our changes say: each rule by itself."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.demand import ReplayResult
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from rightsizer.recommender import late_requests
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.finding import LatencyDegradation
from rightsizer.recommender.late_requests import (
    budget_sentence,
    extra_margin,
    failed_by_hour,
    failed_instances,
    find_degradation,
    hardness,
    late_budget_used,
    unevenness,
)
from tests.recommender import kit, plain
from tests.recommender.plain_context import OTHER, SCALED, TYPE, context, day, noted, ours, running, stub

WEEKEND = DayCounts((5, 6), (1,) * 12 + (3,) * 12)
WEEKDAYS = DayCounts((0, 1, 2, 3, 4), (2,) * 24)


def back(**more: Any) -> PastChange:
    """Two instances that were taken back three days ago."""
    return replace(ours(ended=PastEnd.ROLLED_BACK, failure="alarm"), **more)


def failed(seen: EvaluationContext, name: str = TYPE, slower: float = 1.0, workers: int = 1, **more: Any) -> float:
    return failed_instances(seen, name, slower, workers, **more)


def late_day(seen: EvaluationContext, mean: float = 2.0, per_slot: float = 20.0, **more: Any) -> EvaluationContext:
    """The same with a last day on which half of the requests of a smaller fleet were late."""
    return replace(seen, days=[*seen.days[:-1], replace(day(6, mean, per_slot, late=0.5), **more)])


# fleets that failed


def test_a_fleet_that_was_taken_back_failed_while_it_rests() -> None:
    assert failed(context(past=(back(),))) == 2
    assert failed(context(past=(back(mean_instances=2.5), back(to_count=1)))) == 2.5, "the largest"
    assert failed(context(past=(ours(),))) == 0, "it stands"
    assert failed(context(past=(back(failure="capacity"),))) == 0
    assert failed(context(past=(back(from_type=OTHER),))) == 0, "another type came with it"
    long_ago = kit.NOW - timedelta(days=30)
    assert failed(context(past=(back(at=long_ago),))) == 0
    assert failed(context(past=(back(at=long_ago + timedelta(minutes=1)),))) == 2, "the first failure rests a month"
    busy = context().demand.load.peak_busy_gpus
    assert busy is not None
    assert failed(context(past=(back(demand=busy / 0.74),))) == 0, "it failed under another load"
    assert failed(context(past=(back(demand=busy / 0.76),))) == 2


def test_what_failed_on_the_reference_type_fails_on_one_that_is_no_faster() -> None:
    seen = context(past=(back(),))
    assert failed(seen, OTHER, 0.95) == 2
    assert failed(seen, OTHER, 0.94) == 0
    assert failed(seen, OTHER, 1.0, seen.workers + 1) == 0
    assert failed(context(past=(back(from_type=OTHER, to_type=OTHER),))) == 0
    assert failed(context(past=(back(from_type=OTHER, to_type=OTHER),)), OTHER, 0.5) == 2, "it is that type itself"


def test_of_target_tracking_the_minimum_or_the_mean_counts() -> None:
    seen = context(past=(back(tracked=True, mean_instances=3.2),))
    assert (failed(seen), failed(seen, tracked=True)) == (3.2, 2)
    fixed = context(past=(back(mean_instances=3.2),))
    assert (failed(fixed), failed(fixed, tracked=True)) == (3.2, 3.2)


def test_a_schedule_by_weekdays_counts_with_its_days_that_are_looked_at() -> None:
    seen = context(past=(back(day_counts=(WEEKDAYS, WEEKEND), mean_instances=9.0),))
    assert failed(seen) == 2.0
    assert failed_by_hour(seen, TYPE, 1.0, 1) == (2,) * 12 + (3,) * 12
    saturday = replace(seen, days=seen.days[1:3])
    assert [one.day.weekday() for one in saturday.days] == [5, 6]
    alone = back(day_counts=(replace(WEEKDAYS, counts=(4,) * 24), WEEKEND))
    told = replace(saturday, inputs=context(past=(alone,)).inputs)
    assert failed(told) == 2.0
    assert failed_by_hour(told, TYPE, 1.0, 1) == WEEKEND.counts
    assert failed_by_hour(told, OTHER, 0.5, 1) == (0,) * 24
    assert failed_by_hour(context(past=(back(),)), TYPE, 1.0, 1) == (0,) * 24, "only its mean is known"


def test_the_fleet_before_growth_was_too_small() -> None:
    grown = plain.past(TYPE, from_type=TYPE, counts=(3, 4), days_ago=3, grows=True)
    assert failed(context(past=(grown,))) == 3
    assert failed(context(past=(back(), grown))) == 3
    assert failed(context(past=(replace(grown, from_count=1), back()))) == 2
    assert failed(context(past=(replace(grown, grows=False),))) == 0
    assert failed(context(past=(replace(grown, ended=PastEnd.ROLLED_BACK, failure="capacity"),))) == 0
    assert failed(context(past=(replace(grown, at=kit.NOW - timedelta(days=31)),))) == 0
    assert failed(context(past=(replace(grown, from_type=OTHER),))) == 0


def test_a_day_of_ours_with_late_requests_failed_with_what_it_ran() -> None:
    since = ours(at=kit.NOW - timedelta(days=1))
    seen = late_day(context(past=(since,)))
    assert failed(seen) == 2.0
    assert failed_by_hour(seen, TYPE, 1.0, 1) == (2,) * 24
    counts = (None, 0.0, 2.52, *(2.5,) * 21)
    assert failed(late_day(seen, instances=counts)) == pytest.approx((2.52 + 21 * 2.5) / 22)
    assert failed_by_hour(late_day(seen, instances=counts), TYPE, 1.0, 1) == (0, 0, *(3,) * 22)
    assert failed(late_day(seen, 3.98)) == pytest.approx(3.98)
    assert failed(late_day(seen, 3.99)) == 0, "as many as the owner's"
    assert failed(late_day(seen, instance_type=OTHER)) == 0
    assert failed(late_day(seen, instances=(None,) * 24)) == 0.0
    assert failed(late_day(context())) == 0, "no change of ours"
    returned = back(at=kit.NOW - timedelta(days=1), from_type=OTHER)
    assert failed(late_day(context(past=(since, returned)))) == 0, "a day on which one came back mixes both"
    assert failed(replace(seen, days=seen.base)) == 0, "nothing was late"


@pytest.mark.parametrize(("per_slot", "counts"), [(25.0, True), (25.1, False)])
def test_a_day_that_was_much_busier_than_the_last_week_says_nothing(per_slot: float, counts: bool) -> None:
    """A quarter more than the busiest of the last seven days; the busy one is eight days ago."""
    seen = context(past=(ours(at=kit.NOW - timedelta(days=8)),))
    before = replace(day(-1, 2.0, per_slot, late=0.5))
    assert (failed(replace(seen, days=[before, *seen.days])) == 2.0) is counts


# what is late on any fleet


def harder(monkeypatch: pytest.MonkeyPatch, usual: tuple[int, int], then: tuple[int, int]) -> list[Any]:
    """The reference fleet has so many late of so many requests on usual days and on those in question."""
    asked: list[Any] = []

    def replayed(seen: EvaluationContext, days: Any, limit: int) -> ReplayResult:
        asked.append((list(days), limit))
        late_ones, requests = usual if list(days) == list(seen.base[-7:]) else then
        return ReplayResult(requests, late_ones, 0.0)

    monkeypatch.setattr(EvaluationContext, "reference_replay_of", replayed)
    return asked


@pytest.mark.parametrize(
    ("usual", "then", "times"),
    [
        ((100, 10_000), (300, 10_000), 3 / (1 + 2 * math.sqrt(1 / 300 + 1 / 100))),
        ((100, 10_000), (150, 5_000), 3 / (1 + 2 * math.sqrt(1 / 150 + 1 / 100))),
        ((100, 10_000), (110, 10_000), 1.0),
        ((100, 10_000), (9_000, 10_000), 3.0),
        ((0, 10_000), (400, 10_000), 1.0),
        ((100, 10_000), (0, 10_000), 1.0),
        ((1, 10_000), (1, 1_000), 10 / (1 + 2 * math.sqrt(2))),
    ],
)
def test_days_are_harder_by_what_chance_does_not_explain_and_thrice_at_most(
    monkeypatch: pytest.MonkeyPatch, usual: tuple[int, int], then: tuple[int, int], times: float
) -> None:
    harder(monkeypatch, usual, then)
    seen = context()
    assert hardness(seen, [day(9)]) == pytest.approx(times)


def test_as_many_requests_of_each_day_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = harder(monkeypatch, (1, 10), (1, 10))
    seen = context(policy={"replay_requests": 5000})
    seen = replace(seen, base=[day(-1), *seen.base])
    quiet = day(11, per_slot=1.0)
    hardness(seen, [day(9), day(10), quiet])
    assert asked == [(list(seen.base[-7:]), 7 * 2500), ([day(9), day(10), quiet], 5000)]
    asked.clear()
    hardness(seen, [])
    assert asked[1] == ([], 0)


def test_uneven_days_differ_by_more_than_chance() -> None:
    """Six ordinary days with 5 % of 5,760 late on each, of which two had more and two less; the worst is left out."""
    shares = (0.05, 0.05, 0.06, 0.06, 0.04, 0.04, 0.5)
    seen = context()
    base = [day(number, late=share) for number, share in enumerate(shares)]
    uneven = replace(seen, base=base)
    usual = 0.05 * 5760
    assert unevenness(uneven) == pytest.approx(4 * (0.01 * 5760) ** 2 / usual / 6)
    assert unevenness(replace(seen, base=[*base[:5], base[6]])) > 1
    assert unevenness(replace(seen, base=[*base[:4], base[6]])) == 1.0, "fewer than a working week of others"
    assert unevenness(seen) == 1.0, "none is late"
    even = [day(number, late=0.05) for number in range(7)]
    assert unevenness(replace(seen, base=even)) == 1.0
    silent = replace(base[0], latency=())
    assert unevenness(replace(uneven, base=[*base, silent])) == unevenness(uneven)
    loose = replace(uneven, objective=LatencyObjective(6.0, True, "tag"))
    assert unevenness(loose) == 1.0


@pytest.mark.parametrize(("excess", "explained"), [(0, True), (67, True), (69, False)])
def test_two_standard_deviations_of_uneven_days_explain_as_many_late_requests(
    monkeypatch: pytest.MonkeyPatch, excess: int, explained: bool
) -> None:
    """Of 5,760 requests 288 are usual; with four times the variance of chance 2 x sqrt(4 x 288) = 68 more are too."""
    seen = context()
    usual = ((1.0, 0.95), (5.0, 0.05))
    seen = replace(seen, latency=replace(seen.latency, bins=usual))
    days = [day(9, late=(288 + excess) / 5760)]
    stub(monkeypatch, late_requests, "unevenness", lambda _: 4.0)
    assert late_requests._is_explained(seen, days) is explained
    assert not late_requests._is_explained(seen, [])
    assert (late_requests._budget_used(seen, days) == 0.0) is explained
    stub(monkeypatch, late_requests, "unevenness", lambda _: 1.0)
    assert not late_requests._is_explained(seen, days)


@pytest.mark.parametrize(("first", "second", "had"), [(True, True, True), (True, False, False), (False, True, False)])
def test_a_day_degraded_where_no_harder_day_explains_it(
    monkeypatch: pytest.MonkeyPatch, first: bool, second: bool, had: bool
) -> None:
    asked: list[Any] = []
    found = LatencyDegradation(Reason(Code.UNDER_PROVISIONED, "late"), is_severe=False)

    def degraded(*given: Any) -> LatencyDegradation | None:
        asked.append(given)
        return found if (first, second)[len(asked) - 1] else None

    stub(monkeypatch, late_requests, "latency_degradation", degraded)
    stub(monkeypatch, late_requests, "hardness", lambda _, days: 2.0 * len(days))
    stub(monkeypatch, late_requests, "unevenness", lambda _: 1.5)
    seen = context()
    seen = replace(seen, latency=replace(seen.latency, bins=((1.0, 0.95), (5.0, 0.05))))
    assert late_requests._had_degradation(seen, day(9)) is had
    assert asked[0] == ([day(9)], seen.objective, pytest.approx(0.05), seen.policy, 1.5)
    if first:
        assert asked[1] == ([day(9)], seen.objective, pytest.approx(0.1), seen.policy, 1.5)


# the budget


@pytest.mark.parametrize(
    ("used", "peak", "margin"), [(0.5, 4.0, 0.0), (0.7, 4.0, 0.2), (1.5, 4.0, 1.0), (9.0, 4.0, 3.0), (1.5, 1.0, 0.0)]
)
def test_caution_grows_with_the_part_of_the_budget_that_is_used(
    monkeypatch: pytest.MonkeyPatch, used: float, peak: float, margin: float
) -> None:
    asked: list[Any] = []
    stub(monkeypatch, late_requests, "_budget_used", lambda _, days: noted(asked, list(days), used))
    seen = context((peak,) * 24, past=(ours(at=kit.NOW - timedelta(days=2)), ours(at=kit.NOW - timedelta(days=1))))
    assert extra_margin(seen) == pytest.approx(margin)
    if peak > 1:
        assert asked == [seen.days[-2:]]
    pair = replace(seen, base=[replace(one, instances=(2.0,) * 24) for one in seen.base])
    assert extra_margin(pair) == pytest.approx(min(max(used - 0.5, 0.0), 3.0))


def test_only_what_harder_days_leave_is_used_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    past = (ours(at=kit.NOW - timedelta(days=4)), back(at=kit.NOW - timedelta(days=2)))
    seen = context(past=past)
    asked: list[Any] = []
    stub(monkeypatch, late_requests, "hardness", lambda _, days: 2.0)
    used = {1.0: 1.5, 2.0: 1.2}

    def budget(_: EvaluationContext, days: Any, times: float = 1.0) -> float:
        asked.append([one.day.day for one in days])
        return used[times]

    stub(monkeypatch, late_requests, "_budget_used", budget)
    assert late_budget_used(seen) == 1.2
    assert asked == [[16, 17, 19]] * 2, "not the day of the change that came back"
    for plain_days, hard_days in ((1.0, 9.0), (9.0, 1.0)):
        used.update({1.0: plain_days, 2.0: hard_days})
        assert late_budget_used(seen) is None
    used.update({1.0: 9.0, 2.0: 1.01})
    assert late_budget_used(seen) == 1.01
    assert late_budget_used(context((2.0,) * 24, past=past)) == 1.01
    assert late_budget_used(context((1.0,) * 24, past=past)) is None, "one instance is mended by no count"


def test_late_requests_are_held_against_the_usual_share() -> None:
    seen = context()
    days = [day(9, late=0.07)]
    usual = replace(seen, latency=replace(seen.latency, bins=((1.0, 0.95), (5.0, 0.05))))
    may = usual.policy.late_allowed(usual.policy.late_budget, True, 0.05, 5760, 7)
    assert late_requests._budget_used(usual, days) == pytest.approx(0.02 / may)
    assert late_requests._budget_used(usual, days, 1.2) == pytest.approx(0.01 / may, rel=0.01)


def test_the_budget_is_said_with_what_may_be_late() -> None:
    seen = context()
    text = "since our first change 1.25 times as many requests as allowed came later than before (0.2 % of them may"
    week = f"{seen.policy.late_a_week:g}"
    assert budget_sentence(1.25, seen) == f"{text}, of few {week} a week)"
    undeclared = replace(seen, objective=LatencyObjective(4.0, False, "today"))
    assert budget_sentence(1.25, undeclared) == f"{text})"


# harm


@pytest.fixture
def hurts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What each look at the late requests finds; the first is at the last two days."""
    said: dict[str, Any] = {"answers": [], "asked": [], "grown": None}

    def degraded(days: Any, _: Any, baseline: float, __: Any, uneven: float) -> LatencyDegradation | None:
        said["asked"].append(([one.day.day for one in days], round(baseline, 4), uneven))
        return said["answers"].pop(0) if said["answers"] else None

    stub(monkeypatch, late_requests, "latency_degradation", degraded)
    stub(monkeypatch, late_requests, "outgrown_reason", lambda *_: said["grown"])
    stub(monkeypatch, late_requests, "hardness", lambda _, days: 2.0)
    stub(monkeypatch, late_requests, "unevenness", lambda _: 1.5)
    return said


MILD = LatencyDegradation(Reason(Code.UNDER_PROVISIONED, "mild"), is_severe=False)
SEVERE = LatencyDegradation(Reason(Code.UNDER_PROVISIONED, "severe"), is_severe=True)


def small(**more: Any) -> EvaluationContext:
    """Two of four instances for four days; one request in twenty was late before."""
    seen = context(past=(ours(at=kit.NOW - timedelta(days=9)), ours(at=kit.NOW - timedelta(days=4))), instances=2.0)
    return replace(replace(seen, latency=replace(seen.latency, bins=((1.0, 0.95), (5.0, 0.05)))), **more)


def test_the_last_two_days_and_then_all_since_the_change_are_looked_at(hurts: dict[str, Any]) -> None:
    assert find_degradation(small()) is None
    assert hurts["asked"] == [([18, 19], 0.05, 1.5), ([16, 17, 18, 19], 0.05, 1.5)]
    hurts.update(answers=[SEVERE], asked=[])
    assert find_degradation(small()) is SEVERE
    assert len(hurts["asked"]) == 1, "what is severe counts however hard the days are"
    hurts.update(answers=[MILD, MILD], asked=[])
    assert find_degradation(small()) is MILD
    assert hurts["asked"] == [([18, 19], 0.05, 1.5), ([18, 19], 0.1, 1.5)]
    hurts.update(answers=[MILD, None, SEVERE], asked=[])
    assert find_degradation(small()) is SEVERE
    hurts.update(answers=[MILD], asked=[])
    never = small(latency=replace(small().latency, bins=((1.0, 1.0),)))
    assert find_degradation(never) is MILD, "where nothing was late before no day is harder"


def test_days_on_another_type_tell_nothing_of_what_runs(hurts: dict[str, Any]) -> None:
    seen = small()
    find_degradation(replace(seen, days=[*seen.days[:-1], replace(seen.days[-1], instance_type=OTHER)]))
    assert hurts["asked"] == [([17, 18], 0.05, 1.5), ([16, 17, 18], 0.05, 1.5)]


def test_without_a_change_in_force_nothing_of_ours_hurts(hurts: dict[str, Any]) -> None:
    hurts["answers"] = [SEVERE]
    assert find_degradation(context()) is None
    assert find_degradation(context(past=(back(),))) is None


@pytest.mark.parametrize(("instances", "looked"), [(3.98, True), (3.99, False)])
def test_as_many_as_the_owner_had_hurt_nobody(hurts: dict[str, Any], instances: float, looked: bool) -> None:
    hurts["answers"] = [SEVERE] * 2
    assert (find_degradation(small(instances=instances)) is SEVERE) is looked
    assert find_degradation(running(small(instances=9.0), OTHER)) is not None or not looked


def test_memory_that_outgrew_the_smaller_card_is_severe(hurts: dict[str, Any]) -> None:
    why = Reason(Code.UNDER_PROVISIONED, "grew")
    hurts["grown"] = why
    assert find_degradation(small(instances=9.0)) == LatencyDegradation(why, is_severe=True)


def test_a_scaled_fleet_is_judged_as_any_other(hurts: dict[str, Any]) -> None:
    hurts["answers"] = [SEVERE]
    seen = small()
    scaled = replace(seen, endpoint=replace(seen.endpoint, scaling=(replace(SCALED, minimum=0),)))
    assert find_degradation(scaled) is SEVERE, "only a queue lets its last instance go"
