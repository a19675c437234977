"""Why a shadow test is planned, or is not, and how long it runs: each sentence with its figures."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode
from rightsizer.domain.history import History
from rightsizer.domain.option import Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.recommender.shadow_test import (
    NO_SHADOW,
    ShadowTestCandidate,
    choose_test,
    cost_of_test,
    hours_of_test,
    is_test_first,
    no_test_reason,
    shadow_test_refusal,
    share_of_wanted_requests,
    tag_refusal,
)
from tests.recommender import kit
from tests.recommender.plain import option

POLICY = Policy()
NOTHING = Decimal(0)


def unsure(
    saving: str = "600", chance: float = 0.5, cost: float = 10.0, telling: float = 1.0, **more: Any
) -> ShadowTestCandidate:
    return ShadowTestCandidate(option(saving_usd_per_month=Decimal(saving), **more), chance, cost, telling)


def endpoint(**more: Any) -> Endpoint:
    return replace(kit.endpoint(), **more)


def why_not(of: Endpoint) -> tuple[Code, str] | None:
    found = shadow_test_refusal(of)
    return None if found is None else (found.code, found.sentence)


def test_an_endpoint_in_mode_auto_whose_requests_may_be_served_twice_can_be_tested() -> None:
    assert why_not(endpoint()) is None


@pytest.mark.parametrize("kind", NO_SHADOW)
def test_kinds_that_cannot_have_a_shadow_variant(kind: EndpointKind) -> None:
    sentence = f"no shadow test is possible: {NO_SHADOW[kind]}; use a guarded canary"
    assert why_not(endpoint(kinds=(EndpointKind.REAL_TIME, kind))) == (Code.TEST_NOT_POSSIBLE, sentence)


def test_a_kind_that_its_owner_changes_is_not_tested() -> None:
    hidden = endpoint(kind=EndpointKind.SERVERLESS, kinds=(EndpointKind.REAL_TIME,))
    sentence = "no shadow test: it would change the endpoint, and serverless ones are changed by their owner"
    assert why_not(hidden) == (Code.TEST_NOT_POSSIBLE, sentence)


def test_the_owner_is_told_which_tags_allow_a_test() -> None:
    auto = "a shadow test needs the tag rightsizer:mode=auto"
    assert why_not(endpoint(mode=Mode.PROPOSE)) == (Code.TEST_NOT_ALLOWED, f"{auto}; the mode is propose")
    both = f"{auto} and rightsizer:shadow-ok=true (it serves each request twice); the mode is report"
    assert why_not(endpoint(mode=Mode.REPORT, tags={})) == (Code.TEST_NOT_ALLOWED, both)
    twice = "a shadow test serves each request twice; only the tag rightsizer:shadow-ok=true allows that"
    assert why_not(endpoint(tags={})) == (Code.TEST_NOT_ALLOWED, twice)


@pytest.mark.parametrize(
    ("value", "allowed"), [("true", True), (" TRUE ", True), ("yes", True), ("", False), ("y", False), ("false", False)]
)
def test_only_true_or_yes_says_that_a_request_may_be_served_twice(value: str, allowed: bool) -> None:
    assert (tag_refusal({"rightsizer:shadow-ok": value}) is None) is allowed


def hourly(**requests: float) -> tuple[float, ...]:
    """A day with requests in some hours, as h8=20."""
    return tuple(requests.get(f"h{hour}", 0.0) for hour in range(24))


def test_a_test_tells_what_the_busiest_hour_of_the_day_before_would_have_brought_on_each_day() -> None:
    days = [hourly(h8=20), hourly(h8=10, h9=5), hourly(h8=4, h7=2)]
    assert share_of_wanted_requests(days, 1.0, 1, POLICY) == pytest.approx((10 + 4) / 2 / 20)
    assert share_of_wanted_requests(days, 1.0, 2, POLICY) == pytest.approx((15 + 4) / 2 / 20), (
        "the hour and the next one"
    )
    assert share_of_wanted_requests(days, 1.0, 3, POLICY) == pytest.approx((15 + 6) / 2 / 20), "and the one before"
    assert share_of_wanted_requests(days, 2.0, 1, POLICY) == pytest.approx((5 + 2) / 2 / 20), (
        "the share of one instance of two"
    )
    assert share_of_wanted_requests(days, 0.5, 1, POLICY) == pytest.approx((10 + 4) / 2 / 20), (
        "one instance is the least"
    )


def test_a_test_at_either_end_of_the_day_stays_within_it() -> None:
    early, late = [hourly(h0=9)] * 2, [hourly(h23=9)] * 2
    for days in (early, late):
        assert share_of_wanted_requests(days, 1.0, 5, POLICY) == pytest.approx(9 / 20)
    assert share_of_wanted_requests([hourly(h0=9), hourly(h0=3, h4=4, h5=8)], 1.0, 5, POLICY) == pytest.approx(7 / 20)
    assert share_of_wanted_requests([hourly(h23=9), hourly(h18=8, h19=4)], 1.0, 5, POLICY) == pytest.approx(4 / 20)
    assert share_of_wanted_requests([hourly(h23=9), hourly(h0=3)], 1.0, 24, POLICY) == pytest.approx(3 / 20)
    assert share_of_wanted_requests([hourly(h23=9), hourly(h0=3)], 1.0, 99, POLICY) == pytest.approx(3 / 20), (
        "a day at most"
    )


def test_no_day_tells_more_than_the_wanted_requests() -> None:
    assert share_of_wanted_requests([hourly(h8=1), hourly(h8=1000), hourly()], 1.0, 1, POLICY) == pytest.approx(0.5)


def test_of_a_single_day_the_mean_over_its_hours_counts() -> None:
    assert share_of_wanted_requests([hourly(h8=240)], 1.0, 1, POLICY) == pytest.approx(10 / 20)
    assert share_of_wanted_requests([hourly(h8=240)], 2.0, 2, POLICY) == pytest.approx(10 / 20)
    assert share_of_wanted_requests([hourly(h8=4800)], 1.0, 3, POLICY) == 1.0
    assert share_of_wanted_requests([hourly(h8=240)], 0.0, 1, POLICY) == pytest.approx(10 / 20)
    assert share_of_wanted_requests([], 1.0, 1, POLICY) == 0.0


def test_a_test_is_as_short_as_sees_four_fifths_of_the_wanted_requests() -> None:
    assert hours_of_test([hourly(h8=16)] * 2, 1.0, POLICY) == 2.0, "two hours are the least"
    assert hours_of_test([hourly(h8=15, h9=0.9)] * 2, 1.0, POLICY) == 24.0
    three = [hourly(h7=1, h8=14, h9=1)] * 2
    assert hours_of_test(three, 1.0, POLICY) == 3.0
    assert hours_of_test(three, 1.0, replace(POLICY, test_hours=2.5)) == 3.0
    assert hours_of_test(three, 1.0, replace(POLICY, test_hours=3.5)) == 4.0
    assert hours_of_test([hourly(h8=16)] * 2, 1.0, replace(POLICY, test_hours=0.5)) == 1.0
    assert hours_of_test([], 1.0, replace(POLICY, test_hours_most=6.9)) == 6.0
    assert hours_of_test([], 1.0, replace(POLICY, test_hours=9.0, test_hours_most=6.0)) == 9.0


def test_the_hours_of_the_option_go_before_those_of_the_policy() -> None:
    """USD 1.408 an hour for ten hours and a half, and USD 4 an hour of the fleet for twice half an hour."""
    assert cost_of_test(option(test_hours=10.0), 4.0, POLICY) == pytest.approx(1.408 * 10.5 + 4.0)
    assert cost_of_test(option(), 4.0, POLICY) == pytest.approx(1.408 * 2.5 + 4.0)
    assert cost_of_test(option(), 4.0, replace(POLICY, provision_minutes=15.0)) == pytest.approx(1.408 * 2.25 + 2.0)


def test_the_reason_of_a_test_names_its_hours_its_cost_and_what_it_wins() -> None:
    found = choose_test([unsure("1600", 0.42, 12.345, test_hours=8.0)], Decimal(100), History(), POLICY)
    assert found is not None
    assert found[1].code is Code.TEST_WORTH_IT
    assert found[1].sentence == (
        "worth a test first: it runs 8 h on ml.g5.xlarge beside today's fleet, through the busiest hour, costs about"
        " $12.35 and brings $630 a month on average (42 % likely to be fast and large enough)"
    )
    usual = choose_test([unsure("1600")], NOTHING, History(), POLICY)
    assert usual is not None
    assert usual[1].sentence.startswith("worth a test first: it runs 2 h on ml.g5.xlarge")


def test_of_two_tests_that_win_as_much_the_later_name_goes_first() -> None:
    """Some order has to hold, or two evaluations of the same days would name two types."""
    one, two = unsure("1600"), unsure("1600", target=Target("ml.g6.xlarge", 1))
    for both in ([one, two], [two, one]):
        found = choose_test(both, NOTHING, History(), POLICY)
        assert found is not None
        assert found[0] is two


def said(
    item: ShadowTestCandidate, sure: Decimal = NOTHING, of: Endpoint | None = None, policy: Policy = POLICY, **past: Any
) -> str:
    return no_test_reason(item, sure, of or endpoint(), History(**past), policy)


def test_why_a_test_is_not_run_now() -> None:
    assert said(unsure(), policy=replace(POLICY, tests_per_month=0)) == (
        "shadow tests are switched off (Limits says tests_per_month: 0)"
    )
    assert said(unsure(), of=endpoint(tags={"rightsizer:shadow-ok": "no"})).startswith(
        "a shadow test serves each request twice"
    )
    assert said(unsure(), tests_this_month=4) == "4 shadow tests ran this month, 4 are allowed"
    assert said(unsure(chance=0.09)) == "a shadow test takes a chance of 10 % at least"
    spent: dict[str, Any] = {"gpu_usd_per_month": Decimal(1000), "tests_usd_this_month": Decimal("20.5")}
    assert said(unsure(), **spent) == (
        "a shadow test would cost $10.00; the tests of this month have cost $20.50 of $30.00 (3 % of what GPU endpoints"
        " cost a month)"
    )


def test_a_test_that_is_not_worth_its_money_names_both_sides() -> None:
    close = "a shadow test is not worth its money: it would cost $10.00 and bring ${} a month on average; it has to"
    close += " bring $60"
    assert said(unsure("119"), tests_this_month=3, gpu_usd_per_month=Decimal(1000)) == close.format("60")
    assert said(unsure("600", chance=0.3, telling=0.1), Decimal(100)) == close.format("15")
    assert said(unsure("600", chance=0.3), Decimal(700)) == close.format("0"), "it never brings less than nothing"


def test_a_test_of_what_saves_too_little_for_a_change_says_so() -> None:
    wanted = "it would save 5 % of the cost, and no change is made for less than 10 %"
    assert said(unsure("50", usd_per_month=Decimal(950))) == wanted


def test_the_prize_is_the_saving_by_its_chance() -> None:
    assert unsure("600", chance=0.25).expected_saving == 150.0
    assert not is_test_first(unsure("600", chance=0.5), Decimal(200)), "waiting loses as much as it wins"
