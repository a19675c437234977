"""Target tracking for a fleet of fixed size: whether it is offered, how small it gets, and what it is held against."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.autoscaling.target_tracking import REQUESTS
from rightsizer.backtest.standing_change import endpoint_after
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import LEAST, Endpoint, Mode, Objective
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind, Target, fleet
from rightsizer.domain.policy import TYPE_AND_COUNT, Policy
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import VariantUsage
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.fleet_size import may_add_tracking
from rightsizer.recommender.proposal import proposal_id
from rightsizer.recommender.recommend import add_daily_usage, recommend
from rightsizer.recommender.workload import evaluation_context
from tests import samples
from tests.dimensions.kit import why
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.test_dimensions import SCALED, allowing

OPEN = allowing(OptionKind.AUTOSCALING)
BOTH = allowing(OptionKind.AUTOSCALING, OptionKind.SCHEDULE)


def runs(count: int = 4, min_instances: int | None = 1, **changes: Any) -> Endpoint:
    made = kit.endpoint("ml.g6.xlarge", count)
    variants = (replace(made.variants[0], routing=LEAST),)
    return replace(made, objective=Objective(2.0, min_instances=min_instances), variants=variants, **changes)


def by_day(
    endpoint: Endpoint, policy: Any = OPEN, per_slot: float = 900.0, history: History | None = None, **usage: float
) -> Recommendation:
    """A tenth of the load outside 8 to 18 h; no other type has a price."""
    made = kit.steady(**{"per_slot": per_slot, "memory": 90.0, "latency_s": 0.5} | usage)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        value = made[key]
        assert isinstance(value, float)
        made[key] = lambda i, value=value: value if 96 <= i % 288 < 216 else value / 10  # type: ignore[misc]
    alone = kit.prices(without=[name for name in kit.prices().prices if name != "ml.g6.xlarge"])
    return judge(endpoint, [kit.window(made)], alone, kit.catalogue(), {}, history or History(), policy, kit.NOW)


def by_curve(endpoint: Endpoint, policy: Any = OPEN, per_slot: float = 1400.0) -> Recommendation:
    """A load that rises and falls once a day without a step, from a twentieth of its peak."""
    made = kit.steady(per_slot=per_slot, memory=90.0, latency_s=0.5)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        value = made[key]
        assert isinstance(value, float)
        made[key] = lambda i, value=value: value * max(0.05, math.sin(math.pi * (i % 288) / 288) ** 2)  # type: ignore[misc]
    alone = kit.prices(without=[name for name in kit.prices().prices if name != "ml.g6.xlarge"])
    return judge(endpoint, [kit.window(made)], alone, kit.catalogue(), {}, History(), policy, kit.NOW)


def first(found: Recommendation) -> Option:
    assert found.chosen_option is not None, found.reason.sentence
    return found.chosen_option


def test_a_fixed_fleet_gets_a_policy_with_what_runs_as_its_maximum() -> None:
    option = first(by_day(runs()))
    assert (option.kind, option.target.minimum, option.target.maximum) == (OptionKind.AUTOSCALING, 2, 4)
    assert option.target.metric == "SageMakerVariantInvocationsPerInstance"
    assert option.target.instance_type == "ml.g6.xlarge"
    assert fleet(option.target) == "2 to 4 × ml.g6.xlarge"


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        (runs(1), "of use only where two instances or more run"),
        (runs(2, None), "no minimum below what runs carries the load"),
        (runs(scaling=(replace(SCALED, policies=()),)), "no target-tracking policy has a minimum above one"),
    ],
    ids=["one instance", "two without leave for one", "registered already"],
)
def test_a_policy_is_not_added_where_it_would_leave_nothing_or_meet_another(endpoint: Endpoint, reason: str) -> None:
    assert reason in why(by_day(endpoint), OptionKind.AUTOSCALING)


def test_an_even_load_gets_none() -> None:
    made = kit.steady(per_slot=1500.0, memory=90.0, latency_s=0.5)
    found = judge(runs(), [kit.window(made)], kit.prices(), kit.catalogue(), {}, History(), OPEN, kit.NOW)
    assert "the load is too even for it" in why(found, OptionKind.AUTOSCALING)


def test_the_simpler_schedule_is_taken_where_both_need_the_same_instances() -> None:
    option = first(by_day(runs(), BOTH))
    assert option.kind is OptionKind.SCHEDULE
    assert option.target.metric is None


def test_never_fewer_than_the_owner_asks_for() -> None:
    """Two carry the load; where four of six have to run at all times, the policy starts from four."""
    assert first(by_day(runs(6, mode=Mode.PROPOSE), per_slot=900.0)).target.minimum in (None, 2)
    option = first(by_day(runs(6, 4), per_slot=2000.0))
    assert (option.target.minimum or option.target.instance_count) >= 4


def test_what_failed_lately_is_not_the_minimum_of_a_policy() -> None:
    """Two were taken back five days ago: the next fleet has to be a fifth larger than them."""
    at = kit.NOW.replace(day=kit.NOW.day - 5) if kit.NOW.day > 5 else kit.NOW
    past = PastChange(at, "ml.g6.xlarge", "ml.g6.xlarge", 4, 2, PastEnd.ROLLED_BACK, failure="performance")
    found = by_day(runs(), history=History(endpoint=(past,)))
    for option in found.options:
        assert option.target.minimum is None or option.target.minimum >= 3


def test_a_tracked_fleet_that_failed_is_no_smaller_than_what_ran_and_its_next_minimum_only_goes_up() -> None:
    """Two to four with 3.2 on average were taken back: three at all times are fewer, a minimum of three is more."""
    at = kit.NOW.replace(day=kit.NOW.day - 5) if kit.NOW.day > 5 else kit.NOW
    same = "ml.g6.xlarge"
    past = PastChange(
        at, same, same, 4, 2, PastEnd.ROLLED_BACK, failure="performance", mean_instances=3.2, tracked=True
    )
    for option in by_day(runs(), history=History(endpoint=(past,))).options:
        tracked = option.target.metric is not None
        assert (option.target.minimum or 0) >= 3 if tracked else option.target.instance_count > 3.2
    assert (past.instances_against(tracked=True), past.instances_against(tracked=False)) == (2, 3.2)
    assert replace(past, mean_instances=None, tracked=False).instances_against(tracked=True) == 2


def test_the_id_of_its_proposal_follows_the_policy_and_not_its_target() -> None:
    found = by_day(runs())
    option = first(found)
    slower = replace(option, target=replace(option.target, target_value=80.0))
    bounds = replace(option, target=replace(option.target, target_value=None, metric=None))
    assert proposal_id(found, slower) == proposal_id(found, option)
    assert proposal_id(found, bounds) != proposal_id(found, option)


def test_the_person_reads_why_this_metric_and_what_the_replay_assumed() -> None:
    option = first(by_day(runs()))
    note = next(note for note in option.notes if note.startswith("why target tracking on SageMakerVariantInvocations"))
    assert note.endswith(": it follows the mean load of a minute, as the replay of past days does")
    assert any("ten minutes after the load" in left for left in option.not_checked)


def test_a_fleet_that_the_policy_would_hardly_leave_is_not_offered_as_one() -> None:
    """Bursts of five minutes once a day: two carry them nearly alone, which is a bold count and no target tracking."""
    made = kit.steady(per_slot=30.0, memory=90.0, latency_s=0.5)
    value = made["Invocations", "Sum"]
    assert isinstance(value, float)
    made["Invocations", "Sum"] = lambda i: 900.0 if 120 <= i % 288 < 132 else value
    alone = kit.prices(without=[name for name in kit.prices().prices if name != "ml.g6.xlarge"])
    found = judge(runs(6), [kit.window(made)], alone, kit.catalogue(), {}, History(), OPEN, kit.NOW)
    assert all(option.target.metric is None for option in found.options)


@pytest.mark.parametrize("by_day_count", [3.0, 4.0])
@pytest.mark.parametrize(
    "policy", [Policy(by_itself=TYPE_AND_COUNT), OPEN, BOTH], ids=["closed", "open", "schedules too"]
)
@pytest.mark.parametrize("days_ago", [2, 5, 13])
def test_once_it_follows_the_load_nothing_more_is_asked(by_day_count: float, policy: Policy, days_ago: int) -> None:
    wanted = Target("ml.g6.xlarge", 2, minimum=2, maximum=4, metric=REQUESTS, target_value=85.0)
    at, seen = kit.NOW - timedelta(days=days_ago), VariantUsage("chat", "AllTraffic", ())
    made = kit.steady(per_slot=900.0, memory=90.0, latency_s=0.5)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        value = made[key]
        assert isinstance(value, float)
        made[key] = lambda i, value=value: value if 96 <= i % 288 < 216 else value / 10  # type: ignore[misc]
    hardware = kit.catalogue().find("ml.g6.xlarge")
    assert hardware is not None
    hours = (2.0,) * 8 + (by_day_count - 0.3,) + (by_day_count,) * 9 + (2.4,) + (2.0,) * 5
    read = add_daily_usage(runs(), [kit.window(made)], hardware, History(), policy).days
    days = tuple(replace(d, instances=hours if d.day > at.date() else (4.0,) * 24) for d in read)
    after = endpoint_after(runs(), samples.option(kind=OptionKind.AUTOSCALING, target=wanted))
    history = History(endpoint=(PastChange(at, "ml.g6.xlarge", "ml.g6.xlarge", 4, 2, PastEnd.PROVEN),))
    alone = kit.prices(without=[name for name in kit.prices().prices if name != "ml.g6.xlarge"])
    inputs = AccountInputs(alone, kit.catalogue(), {}, history, policy, kit.NOW)
    found = recommend(after, replace(seen, days=days), inputs, DIMENSIONS)
    assert (found.finding, found.gate, found.options) == (Finding.OPTIMIZED, Gate.SILENT, ())


@pytest.mark.parametrize(
    ("min_instances", "per_slot", "least"), [(1, 1400.0, 1), (None, 1400.0, 2), (2, 1400.0, 2), (3, 1800.0, 3)]
)
def test_a_load_that_rises_slowly_is_followed_from_what_its_owner_accepts(
    min_instances: int | None, per_slot: float, least: int
) -> None:
    option = first(by_curve(runs(5, min_instances, mode=Mode.PROPOSE), per_slot=per_slot))
    assert (option.target.minimum, option.target.maximum) == (least, 5)
    assert option.mean_instances is not None
    assert option.mean_instances > least


def test_automatic_mode_starts_from_half_of_what_runs() -> None:
    """One of five is more than half in one step: the policy comes now, and its minimum goes down later."""
    found = by_curve(runs(5, 1))
    step, rest = found.options[0], found.options[1]
    assert found.gate is Gate.APPLY
    assert (step.kind, step.target.minimum, step.target.maximum) == (OptionKind.AUTOSCALING, 3, 5)
    assert step.target.metric == REQUESTS
    assert "a first step: 1 to 5 × ml.g6.xlarge (autoscaling) would save" in step.notes[-1]
    assert rest.target.minimum == 1


@pytest.mark.parametrize(("word", "least"), [("dev", 1), ("staging", 1), ("production", 2)])
def test_where_one_instance_is_enough_the_policy_goes_down_to_one(word: str, least: int) -> None:
    option = first(by_curve(runs(5, None, mode=Mode.PROPOSE, tags={"environment": word})))
    assert (option.target.minimum, option.target.maximum) == (least, 5)
    assert option.target.metric == REQUESTS


def test_a_policy_that_would_hardly_act_is_left_to_a_count() -> None:
    found = by_day(runs(4, None), per_slot=1200.0)
    assert first(found).kind is OptionKind.INSTANCE_COUNT
    assert "the policy would hardly act" in why(found, OptionKind.AUTOSCALING)


def test_one_change_does_not_route_otherwise_and_add_a_policy() -> None:
    at_random = runs(5, 2)
    at_random = replace(at_random, variants=(replace(at_random.variants[0], routing=""),))
    opened = allowing(OptionKind.AUTOSCALING, OptionKind.ROUTING)
    options = by_curve(at_random, opened).options
    assert options
    assert not any(option.target.routing and option.target.metric for option in options)


def test_a_fleet_that_users_wait_for_gets_no_policy() -> None:
    made = kit.steady(per_slot=1400.0, memory=90.0, latency_s=0.5)
    hardware = kit.catalogue().find("ml.g6.xlarge")
    assert hardware is not None
    days = add_daily_usage(runs(5), [kit.window(made)], hardware, History(), OPEN).days
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), OPEN, kit.NOW)
    context = evaluation_context(runs(5), days, inputs)
    assert context is not None
    assert may_add_tracking(context, "ml.g6.xlarge")
    assert not may_add_tracking(context, "ml.g5.xlarge"), "the type stays"
    assert not may_add_tracking(replace(context, is_strained=True), "ml.g6.xlarge")
