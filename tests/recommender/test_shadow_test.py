"""When a shadow test is worth its money, and when it goes before a change that is sure."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.domain.history import History
from rightsizer.domain.option import Effort, Option, OptionKind, Risk, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Price
from rightsizer.recommender.shadow_test import (
    ShadowTestCandidate,
    choose_test,
    cost_of_test,
    is_promising,
    is_test_first,
)

POLICY = Policy(test_chance=0.1, test_value=5.0, tests_per_month=4, minimum_saving_usd=Decimal(50))
NOTHING = Decimal(0)
OPTION = Option(
    kind=OptionKind.INSTANCE_TYPE,
    target=Target("ml.g5.xlarge", 1),
    price=Price("ml.g5.xlarge", "eu-west-1", Decimal("2.00"), "snapshot", "direct-hosting", "2026-04-21"),
    usd_per_month=Decimal(1000),
    saving_usd_per_month=Decimal(120),
    switch_usd=Decimal(1),
    payback_days=0.1,
    risks={},
    risk=Risk.MEDIUM,
    confidence=7.0,
    effort=Effort.LOW,
    restart_needed=True,
    rollback_possible=True,
    in_place=True,
    client_change="",
    p95_s=0.2,
)


def unsure(saving: int = 120, chance: float = 0.5, cost: float = 10.0, telling: float = 1.0) -> ShadowTestCandidate:
    return ShadowTestCandidate(replace(OPTION, saving_usd_per_month=Decimal(saving)), chance, cost, telling)


@pytest.mark.parametrize(("saving", "wanted"), [(120, True), (121, True), (119, False)])
def test_a_test_has_to_win_its_cost_and_five_times_its_cost(saving: int, wanted: bool) -> None:
    """At even odds USD 120 a month win 60: the ten that the test costs, and five times ten."""
    assert is_promising([unsure(saving)], NOTHING, POLICY) is wanted
    assert (choose_test([unsure(saving)], NOTHING, History(), POLICY) is not None) is wanted


@pytest.mark.parametrize(("saving", "wanted"), [(100, True), (99, False)])
def test_a_test_has_to_win_as_much_on_average_as_any_change_has_to_save(saving: int, wanted: bool) -> None:
    """However little it costs: it takes the time of the person who is asked."""
    item = unsure(saving, cost=1.0)
    cheap = replace(item, option=replace(item.option, usd_per_month=Decimal(300)))
    assert is_promising([cheap], NOTHING, POLICY) is wanted


@pytest.mark.parametrize(("saving", "wanted"), [(112, True), (111, False)])
def test_what_saves_too_little_for_a_change_is_not_tested(saving: int, wanted: bool) -> None:
    """USD 111 of 1,111 are just below a tenth."""
    assert is_promising([unsure(saving, cost=1.0)], NOTHING, POLICY) is wanted


def test_an_unlikely_test_that_would_save_a_lot_is_asked_about() -> None:
    assert is_promising([unsure(saving=3500, chance=0.15, cost=15.0)], NOTHING, POLICY)
    assert not is_promising([unsure(saving=400, chance=0.15, cost=15.0)], NOTHING, POLICY)


@pytest.mark.parametrize(("chance", "wanted"), [(0.10, True), (0.09, False)])
def test_a_type_that_is_unlikely_to_pass_is_not_tested_however_much_it_would_save(chance: float, wanted: bool) -> None:
    assert is_promising([unsure(saving=10**6, chance=chance)], NOTHING, POLICY) is wanted


def test_what_is_sure_already_is_no_gain_of_a_test() -> None:
    assert is_promising([unsure(saving=1000)], Decimal(800), POLICY)
    assert not is_promising([unsure(saving=1000)], Decimal(900), POLICY)


def test_a_test_that_sees_few_requests_wins_less() -> None:
    assert is_promising([unsure(saving=240, telling=0.5)], NOTHING, POLICY)
    assert not is_promising([unsure(saving=240, telling=0.49)], NOTHING, POLICY)


def test_the_test_that_wins_most_is_run_first() -> None:
    small, large = unsure(saving=200), unsure(saving=2000, chance=0.4)
    found = choose_test([small, large], NOTHING, History(), POLICY)
    assert found is not None
    assert found[0] is large


@pytest.mark.parametrize(("rival", "stays"), [(2600, True), (2900, False)])
def test_the_test_that_was_asked_about_stays_until_another_brings_a_tenth_of_the_cost_more(
    rival: int, stays: bool
) -> None:
    """At even odds 1,000 a month, against 1,300 where a tenth of the cost is 360, and 1,450 where it is 390."""
    asked = unsure(saving=2000)
    other = unsure(saving=rival)
    other = replace(other, option=replace(other.option, target=Target("ml.g6.xlarge", 1)))
    found = choose_test([asked, other], NOTHING, History(), POLICY, "ml.g5.xlarge")
    assert found is not None
    assert found[0] is (asked if stays else other)
    alone = choose_test([asked, other], NOTHING, History(), POLICY)
    assert alone is not None
    assert alone[0] is other


def test_a_test_that_was_asked_about_does_not_stay_when_it_is_no_longer_worth_its_cost() -> None:
    other = unsure(saving=500)
    other = replace(other, option=replace(other.option, target=Target("ml.g6.xlarge", 1)))
    found = choose_test([unsure(saving=500, chance=0.05), other], NOTHING, History(), POLICY, "ml.g5.xlarge")
    assert found is not None
    assert found[0] is other


def test_no_test_is_run_beyond_those_of_the_month_or_where_they_are_switched_off() -> None:
    worth = [unsure(saving=10**5)]
    assert choose_test(worth, NOTHING, History(tests_this_month=3), POLICY) is not None
    assert choose_test(worth, NOTHING, History(tests_this_month=4), POLICY) is None
    assert choose_test(worth, NOTHING, History(), replace(POLICY, tests_per_month=0)) is None


@pytest.mark.parametrize(("spent", "wanted"), [("19", True), ("20", True), ("20.01", False)])
def test_the_tests_of_a_month_cost_at_most_their_share_of_the_bill(spent: str, wanted: bool) -> None:
    """Three percent of USD 1,000 are 30, and the test costs ten."""
    history = History(gpu_usd_per_month=Decimal(1000), tests_usd_this_month=Decimal(spent))
    assert (choose_test([unsure(saving=10**5)], NOTHING, history, POLICY) is not None) is wanted


@pytest.mark.parametrize(("sure", "wanted"), [("39", True), ("41", False)])
def test_a_test_goes_before_a_sure_change_only_where_waiting_loses_less_than_it_wins(sure: str, wanted: bool) -> None:
    """At even odds USD 120 a month are worth 60; waiting costs one and a half times what is sure."""
    assert is_test_first(unsure(saving=120), Decimal(sure)) is wanted


def test_a_test_costs_an_instance_for_its_hours_and_the_fleet_twice_while_it_comes_and_goes() -> None:
    half_an_hour = replace(POLICY, provision_minutes=30.0, test_hours=2.0)
    assert cost_of_test(OPTION, 10.0, half_an_hour) == pytest.approx(2.00 * 2.5 + 2 * 0.5 * 10.0)
