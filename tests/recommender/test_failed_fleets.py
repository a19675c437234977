"""What the engine learns from fleets of its own that were too small."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest

from rightsizer.domain.endpoint import EndpointKind, Mode, ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import LatencyObjective, OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import SLOTS, DailyUsage, VariantUsage
from rightsizer.recommender.finding import late_budget_multiple
from tests.recommender import kit
from tests.recommender.kit import judge_digests
from tests.recommender.test_dimensions import TRACKING

TYPE = "ml.g6e.xlarge"
PER_SLOT, SERVICE_S = 3000.0, 1.0
"""Ten requests a second of a second each: ten workers are busy on average."""
POLICY = Policy(
    cooldown_hours=0.0,
    tests_per_month=0,
    by_itself=frozenset(OptionKind),
    untested_chance=1.0,
)
GOAL = LatencyObjective(3.0, True, "tag")
POLICIES = ScalableTarget("endpoint/e/variant/AllTraffic", "d", 8, 40, policies=(TRACKING,))


def index(latency_s: float) -> int:
    return round(math.log(1000 * latency_s) / math.log(1.02))


def day(number: int, instances: float, late: float = 0.0) -> DailyUsage:
    """A day of the fleet on which the share `late` of the requests took five seconds in place of one."""
    calls = PER_SLOT * SLOTS
    bins = ((index(SERVICE_S), calls * (1 - late)), (index(5.0), calls * late))
    return DailyUsage(
        date(2026, 11, 1) + timedelta(days=number),
        TYPE,
        1,
        (PER_SLOT,) * SLOTS,
        (PER_SLOT * SERVICE_S,) * SLOTS,
        (instances,) * 24,
        bins if late else bins[:1],
        calls * SERVICE_S,
        0.0,
        None,
        None,
        None,
        None,
    )


def judged(
    days: Sequence[DailyUsage],
    now: int,
    changes: Sequence[PastChange] = (),
    kind: EndpointKind = EndpointKind.REAL_TIME,
) -> Recommendation:
    usage = VariantUsage("chat", "AllTraffic", tuple(days))
    endpoint = kit.endpoint(count=now, p95_s=GOAL.p95_s, kind=kind)
    history, others = History(tuple(changes)), tuple(name for name in kit.TYPES if name != TYPE)
    prices = kit.prices(without=others)  # only counts are left to choose
    return judge_digests(endpoint, usage, prices, kit.catalogue(), {}, history, POLICY, kit.NOW)


def changed(days_ago: int, count: int, ended: str) -> PastChange:
    at = kit.NOW - timedelta(days=days_ago)
    failure = "alarm" if ended == "rolled-back" else ""
    return PastChange(at, TYPE, TYPE, 40, count, PastEnd(ended), failure=failure, mean_instances=float(count))


def count_of(found: Recommendation) -> float:
    assert found.chosen_option is not None
    target = found.chosen_option.target
    assert target.instance_type == TYPE
    return sum(target.hourly_counts) / 24 if target.hourly_counts else target.instance_count


def fewest_of(found: Recommendation) -> int:
    """Of all options: half of today's instances go at most at first, and the rest is named behind that step."""
    return min(option.target.instance_count for option in found.options if option.target.instance_type == TYPE)


def test_after_a_fleet_was_taken_back_a_larger_one_is_chosen_and_not_silence() -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    first = fewest_of(judged(days, 40))
    again = judged(days, 40, [changed(2, first, "rolled-back")])
    assert first < 20
    assert 1.05 * first < fewest_of(again) < 40
    assert again.gate is not Gate.SILENT
    assert again.gate_reason.code is not Code.BLACKLISTED


def test_the_fleet_that_had_to_grow_is_not_offered_again_as_a_saving_while_its_load_lasts() -> None:
    days = [day(i, 40.0) for i in range(5, 19)]
    first = count_of(judged(days, 40))
    grown = PastChange(
        kit.NOW - timedelta(days=2), TYPE, TYPE, round(first), 40, PastEnd.PROVEN, demand=10.0, grows=True
    )
    assert 1.2 * first < fewest_of(judged(days, 40, [grown])) < 40
    assert count_of(judged(days, 40, [replace(grown, grows=False)])) == first
    assert count_of(judged(days, 40, [replace(grown, demand=20.0)])) <= first, "it was another load"


def test_a_day_with_too_many_late_requests_under_our_fleet_makes_the_next_one_larger() -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    small = count_of(judged(before, 40))
    after = [day(i, small, late=0.02) for i in range(16, 19)]
    assert count_of(judged([*before, *after], round(small), [changed(3, round(small), "proven")])) > small


def test_late_requests_that_use_up_what_is_allowed_cost_room_before_any_day_is_bad() -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    small = count_of(judged(before, 40))
    fleets = [small + 6] * 3
    calm = [day(i, fleet) for i, fleet in enumerate(fleets, 16)]
    strained = [day(i, fleet, late=0.0018) for i, fleet in enumerate(fleets, 16)]
    change = [changed(3, round(small + 6), "proven")]
    kept = judged([*before, *calm], round(small + 6), change)
    wary = judged([*before, *strained], round(small + 6), change)
    assert count_of(kept) < count_of(wary)
    assert kept.gate is wary.gate is Gate.APPLY


def test_nothing_gets_smaller_while_the_allowed_late_requests_are_used_up() -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    strained = [day(i, 36.0, late=0.0035) for i in range(16, 19)]
    found = judged([*before, *strained], 36, [changed(3, 36, "proven")])
    assert count_of(found) < 36
    assert found.gate is Gate.SILENT
    assert found.gate_reason.code is Code.LATE_BUDGET_SPENT
    assert "1.75 times as many requests as allowed" in found.gate_reason.sentence
    since = [day(17, 40.0), day(18, 40.0)]
    taken_back = judged([*before, *strained[:1], *since], 40, [changed(3, 16, "rolled-back")])
    assert taken_back.gate is Gate.APPLY
    assert count_of(taken_back) > 1.2 * 16


def test_a_fleet_whose_late_requests_used_up_the_budget_gets_larger_though_the_replay_carries_the_load() -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    strained = [day(i, 12.0, late=0.003) for i in range(16, 19)]
    found = judged([*before, *strained], 12, [changed(3, 12, "proven")])
    assert count_of(found) > 12
    assert found.gate is Gate.APPLY
    assert "1.50 times as many requests as allowed" in found.gate_reason.sentence
    assert [option.restores for option in found.options] == [True], "no approval of it waits for another judgement"
    calm = [day(i, 12.0, late=0.0001) for i in range(16, 19)]
    assert judged([*before, *calm], 12, [changed(3, 12, "proven")]).gate_reason.code is not Code.UNDER_PROVISIONED


def test_a_cooldown_does_not_hide_that_the_allowed_late_requests_are_used_up() -> None:
    days = [*(day(i, 40.0) for i in range(3, 16)), *(day(i, 36.0, late=0.0035) for i in range(16, 19))]
    usage, history = VariantUsage("chat", "AllTraffic", tuple(days)), History((changed(3, 36, "proven"),))
    rests = replace(POLICY, cooldown_hours=500.0, cooldown_type_hours=500.0)
    endpoint = kit.endpoint(count=36, p95_s=GOAL.p95_s)
    found = judge_digests(endpoint, usage, kit.prices(), kit.catalogue(), {}, history, rests, kit.NOW)
    assert found.gate_reason.code is Code.LATE_BUDGET_SPENT


def test_what_is_listed_and_needs_a_test_first_shows_what_the_test_costs() -> None:
    usage = VariantUsage("chat", "AllTraffic", tuple(day(i, 40.0) for i in range(3, 19)))
    endpoint = kit.endpoint(count=40, p95_s=GOAL.p95_s)
    found = judge_digests(endpoint, usage, kit.prices(), kit.catalogue(), {}, History(()), POLICY, kit.NOW)
    assert found.gate is Gate.APPLY
    needs_test = {option.target.instance_type: option.test_usd > 0 for option in found.options}
    assert needs_test == {
        "ml.g6e.xlarge": False,
        "ml.g6e.2xlarge": False,
        "ml.p5.4xlarge": False,
        "ml.g6.2xlarge": True,
    }


def test_what_an_owner_set_after_our_change_was_taken_back_is_not_made_larger() -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    owners = [day(i, 12.0, late=0.003) for i in range(16, 19)]
    found = judged([*before, *owners], 12, [changed(3, 16, "rolled-back")])
    assert found.gate is not Gate.APPLY


def test_a_fleet_as_large_as_the_owners_does_not_grow_for_what_was_late_before() -> None:
    before = [day(i, 15.0) for i in range(3, 16)]
    strained = [day(16, 12.0, late=0.02), day(17, 15.0), day(18, 15.0)]
    assert judged([*before, *strained], 15, [changed(3, 12, "proven")]).gate is not Gate.APPLY


def test_growth_for_what_was_late_ends_and_never_asks_for_the_count_that_runs() -> None:
    """Day after day with the same late requests: each step is larger, until the sizing asks for no more."""
    days, count = [day(i, 40.0) for i in range(3, 13)], 12.0
    for number in range(13, 19):
        days.append(day(number, count, late=0.003))
        found = judged(days, round(count), [changed(19 - 13, 12, "proven")])
        if found.gate is not Gate.APPLY:
            assert found.gate_reason.code is Code.LATE_BUDGET_SPENT
            continue
        assert count < count_of(found) <= 40
        count = math.ceil(count_of(found))
    assert 12 < count < 40
    assert found.gate is Gate.SILENT


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.REPORT])
def test_nobody_is_asked_to_grow_for_the_budget_where_nobody_is_asked_at_all(mode: Mode) -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    days = [*before, *(day(i, 12.0, late=0.003) for i in range(16, 19))]
    endpoint = kit.endpoint(count=12, p95_s=GOAL.p95_s, mode=mode)
    prices = kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE))
    history = History((changed(3, 12, "proven"),))
    usage = VariantUsage("chat", "AllTraffic", tuple(days))
    found = judge_digests(endpoint, usage, prices, kit.catalogue(), {}, history, POLICY, kit.NOW)
    assert found.gate is Gate.SILENT


def test_no_fleet_grows_beyond_what_the_owner_had_for_a_load_that_it_carried() -> None:
    before = [day(i, 15.0) for i in range(3, 16)]
    strained = [day(i, 13.0, late=0.03) for i in range(16, 19)]
    found = judged([*before, *strained], 13, [changed(3, 13, "proven")])
    assert count_of(found) == 15.0
    grown = [replace(d, requests=(2 * PER_SLOT,) * SLOTS) for d in strained]
    found = judged([*before, *grown], 13, [changed(3, 13, "proven")])
    assert (count_of(found), found.gate) == (15.0, Gate.APPLY), "no tag allows more by itself"
    assert found.options[1].usd_per_month > found.options[0].usd_per_month, "the rest is named behind it"


def test_growth_for_the_budget_comes_before_a_test_that_would_take_a_day() -> None:
    before = [day(i, 40.0) for i in range(3, 16)]
    policy, endpoint = replace(POLICY, tests_per_month=4, test_chance=0.0), kit.endpoint(count=12, p95_s=GOAL.p95_s)
    gates = []
    for late in (0.0, 0.003):
        days = (*before, *(day(i, 12.0, late=late) for i in range(16, 19)))
        usage, history = VariantUsage("chat", "AllTraffic", days), History((changed(3, 12, "proven"),))
        gates.append(judge_digests(endpoint, usage, kit.prices(), kit.catalogue(), {}, history, policy, kit.NOW).gate)
    assert gates == [Gate.TEST, Gate.APPLY]


def test_behind_the_owners_policies_a_spent_budget_alone_does_not_bring_their_minimum_back() -> None:
    """The fleet carries its load, and its sizing asks for less than runs: nothing grows, and nothing gets smaller."""
    days = [*(day(i, 40.0) for i in range(3, 16)), *(day(i, 18.0, late=0.003) for i in range(16, 19))]
    scaled = replace(kit.endpoint(count=18, p95_s=GOAL.p95_s), scaling=(replace(POLICIES, minimum=18, maximum=40),))
    usage, history = VariantUsage("chat", "AllTraffic", tuple(days)), History((changed(3, 18, "proven"),))
    prices = kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE))
    found = judge_digests(scaled, usage, prices, kit.catalogue(), {}, history, POLICY, kit.NOW)
    assert (found.gate, found.gate_reason.code) == (Gate.SILENT, Code.LATE_BUDGET_SPENT)


def test_what_is_spent_of_the_allowed_late_requests_is_a_multiple_of_them() -> None:
    assert late_budget_multiple([], GOAL, 0.0, POLICY) == 0.0
    assert abs(late_budget_multiple([day(1, 4.0, late=0.002)], GOAL, 0.0, POLICY) - 1.0) < 1e-6
    assert abs(late_budget_multiple([day(1, 4.0, late=0.01), day(2, 4.0)], GOAL, 0.001, POLICY) - 2.0) < 1e-6
    assert late_budget_multiple([day(1, 4.0)], GOAL, 0.01, POLICY) < 0


def test_late_requests_of_the_past_do_not_keep_a_fleet_awake_whose_traffic_has_stopped() -> None:
    before = [day(i, 40.0) for i in range(3, 14)]
    strained = [day(i, 36.0, late=0.0035) for i in range(14, 16)]
    silent = [replace(day(i, 36.0), requests=(0.0,) * SLOTS, busy_s=(0.0,) * SLOTS, latency=()) for i in range(16, 20)]
    change = [changed(6, 36, "proven")]
    assert judged([*before, *strained], 36, change).gate_reason.code is Code.LATE_BUDGET_SPENT
    found = judged([*before, *strained, *silent], 36, change, EndpointKind.ASYNC)
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.SCALE_TO_ZERO
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NEEDS_APPROVAL), found.gate_reason.sentence
