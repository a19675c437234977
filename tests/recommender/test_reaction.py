"""What the engine does about its own changes: traffic that jumped, tests not run."""

import math
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import SLOTS, DailyUsage, VariantUsage
from rightsizer.recommender.shadow_test import (
    ShadowTestCandidate,
    choose_test,
    cost_of_test,
    hours_of_test,
    no_test_reason,
    share_of_wanted_requests,
)
from tests.recommender import kit
from tests.recommender.kit import judge, judge_digests


def day(number: int, per_slot: float, latency_s: float = 1.0, instances: float = 4.0, gpu_s: float = 0.8) -> DailyUsage:
    index = round(math.log(1000 * latency_s) / math.log(1.02))
    calls = per_slot * SLOTS
    return DailyUsage(
        date(2026, 11, 1) + timedelta(days=number),
        "ml.g6e.xlarge",
        1,
        (per_slot,) * SLOTS,
        (per_slot * gpu_s,) * SLOTS,
        (instances,) * 24,
        ((index, calls),),
        calls * latency_s,
        0.0,
        None,
        None,
        None,
        None,
    )


def reacted(jump: float) -> Recommendation:
    """Four instances became one ten days ago; yesterday had `jump` times the requests."""
    days = tuple(day(i, 60.0 * (jump if i == 18 else 1.0), instances=4.0 if i < 9 else 1.0) for i in range(6, 19))
    changed = PastChange(kit.NOW - timedelta(days=10), "ml.g6e.xlarge", "ml.g6e.xlarge", 4, 1, PastEnd.PROVEN)
    usage = VariantUsage("chat", "AllTraffic", days)
    endpoint = kit.endpoint(count=1, p95_s=3.0)
    history = History((changed,))
    return judge_digests(endpoint, usage, kit.prices(), kit.catalogue(), {}, history, Policy(), kit.NOW)


def test_traffic_that_jumped_brings_the_last_good_fleet_back_without_asking() -> None:
    found = reacted(jump=6.0)
    assert found.finding is Finding.UNDER_PROVISIONED
    assert found.chosen_option is not None
    assert (found.chosen_option.target.instance_type, found.chosen_option.target.instance_count) == ("ml.g6e.xlarge", 4)
    assert found.gate is Gate.APPLY
    assert "jumped" in found.reason.sentence
    assert found.replay is not None, "what comes back was replayed too"
    assert found.replay.hours_above_80 < 24 < len(found.replay.hourly_load)


def test_traffic_as_before_brings_nothing_back() -> None:
    assert reacted(jump=1.0).finding is not Finding.UNDER_PROVISIONED


def test_a_test_is_as_long_as_its_requests_need() -> None:
    busy, sparse = (0.0,) * 10 + (400.0,) + (0.0,) * 13, (1.0,) * 24
    assert hours_of_test([busy, busy], 1, Policy()) == 2
    assert hours_of_test([sparse], 1, Policy()) == 16  # for four of five wanted requests
    assert hours_of_test([sparse, sparse], 4, Policy()) == 24


def test_requests_that_come_at_another_hour_every_day_make_a_test_tell_little() -> None:
    days = [(0.0,) * hour + (50.0,) + (0.0,) * (23 - hour) for hour in (3, 17, 9, 22)]
    assert share_of_wanted_requests(days, 1, 2, Policy()) == 0.0
    assert share_of_wanted_requests([days[0]] * 3, 1, 2, Policy()) == 1.0


def test_a_test_that_would_see_nobody_is_not_worth_its_money() -> None:
    found = judge(
        kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert found.chosen_option is not None
    assert (
        choose_test([ShadowTestCandidate(found.chosen_option, 0.9, 3.0)], Decimal(0), History(), Policy()) is not None
    )
    assert (
        choose_test(
            [ShadowTestCandidate(found.chosen_option, 0.9, 3.0, share_of_wanted_requests=0.0)],
            Decimal(0),
            History(),
            Policy(),
        )
        is None
    )


def test_a_test_costs_its_instance_and_the_whole_fleet_twice_while_it_comes_and_goes() -> None:
    found = judge(
        kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert found.chosen_option is not None
    alone = cost_of_test(found.chosen_option, 0.0, Policy(test_hours=2, provision_minutes=30))
    beside = cost_of_test(found.chosen_option, 40.0, Policy(test_hours=2, provision_minutes=30))
    assert alone == pytest.approx(2.5 * float(found.chosen_option.price.usd_per_hour))
    assert beside == pytest.approx(alone + 2 * 0.5 * 40.0)


def test_tests_of_a_month_may_cost_a_share_of_what_the_account_spends() -> None:
    found = judge(
        kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert found.chosen_option is not None
    item, policy = ShadowTestCandidate(found.chosen_option, 0.9, 10.0), Policy(test_budget_share=0.03)

    def history(usd: int, spent: str) -> History:
        return History(gpu_usd_per_month=Decimal(usd), tests_usd_this_month=Decimal(spent))

    enough, spent = history(1000, "20.00"), history(1000, "20.01")
    assert choose_test([item], Decimal(0), enough, policy) is not None
    assert choose_test([item], Decimal(0), spent, policy) is None
    assert "have cost $20.01 of $30.00 (3 %" in no_test_reason(item, Decimal(0), kit.endpoint(), spent, policy)
    assert choose_test([item], Decimal(0), History(), policy) is not None  # what the account spends is not known


@pytest.mark.parametrize(
    ("endpoint", "history", "policy"),
    [
        (replace(kit.endpoint(framework="vllm"), tags={"rightsizer:shadow-ok": "no"}), History(), Policy()),
        (kit.endpoint(framework="vllm", kind=EndpointKind.ASYNC), History(), Policy()),
        (kit.endpoint(framework="vllm"), History(tests_this_month=4), Policy()),
        (
            kit.endpoint(framework="vllm"),
            History(tests_usd_this_month=Decimal(9), gpu_usd_per_month=Decimal(300)),
            Policy(),
        ),
        (kit.endpoint(framework="vllm"), History(), Policy(tests_per_month=0)),
    ],
)
def test_a_test_that_may_not_run_changes_the_gate_and_not_the_finding(
    endpoint: Endpoint, history: History, policy: Policy
) -> None:
    window = [kit.window(kit.steady(memory=90.0, swing=0.0))]
    prices, types = kit.prices(), kit.catalogue()
    allowed = judge(kit.endpoint(framework="vllm"), window, prices, types, {}, History(), Policy(), kit.NOW)
    found = judge(endpoint, window, prices, types, {}, history, policy, kit.NOW)
    assert (allowed.finding, allowed.gate) == (Finding.OVER_PROVISIONED, Gate.TEST)
    assert (found.finding, found.gate, found.chosen_option) == (Finding.OVER_PROVISIONED, Gate.SILENT, None)


def test_an_endpoint_whose_test_would_not_be_worth_it_is_optimized() -> None:
    window = [kit.window(kit.steady(memory=90.0, swing=0.0))]
    policy = Policy(test_chance=0.9)
    found = judge(kit.endpoint(framework="vllm"), window, kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)
    assert (found.finding, found.gate) == (Finding.OPTIMIZED, Gate.SILENT)


def test_why_a_shadow_test_is_not_run_is_said_with_its_number() -> None:
    found = judge(
        kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert found.chosen_option is not None
    item = ShadowTestCandidate(found.chosen_option, 0.09, 3.0)
    sure, policy = Decimal(0), Policy()
    said = [
        no_test_reason(item, sure, kit.endpoint(), History(), policy),
        no_test_reason(item, sure, replace(kit.endpoint(), tags={"rightsizer:shadow-ok": "no"}), History(), policy),
        no_test_reason(item, sure, kit.endpoint(kind=EndpointKind.ASYNC), History(), policy),
        no_test_reason(item, sure, kit.endpoint(), History(tests_this_month=4), policy),
        no_test_reason(item, sure, kit.endpoint(), History(), Policy(tests_per_month=0)),
        no_test_reason(
            ShadowTestCandidate(found.chosen_option, 0.5, 3.0), Decimal(10**6), kit.endpoint(), History(), policy
        ),
    ]
    words = (
        "10 %",
        "rightsizer:shadow-ok=no",
        "asynchronous",
        "4 shadow tests",
        "switched off",
        "it has to bring $50",
    )
    assert [word for word, sentence in zip(words, said, strict=True) if word not in sentence] == []
