"""Options as they are priced: their kind, their money, their words, and what of them is not known."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment
from rightsizer.recommender import pricing
from rightsizer.recommender.other_endpoint import volume_notes
from rightsizer.recommender.pricing import (
    MANAGED,
    RatedTarget,
    cost_of,
    delete_option,
    kept_by_commitment,
    mean_while_running,
    monthly_cost,
    restore_option,
    scale_to_zero_option,
    type_option,
    usd_of_variants,
)
from tests.recommender import kit
from tests.recommender.plain import PRICE, option

POLICY = Policy()
ONE, FOUR = kit.catalogue().types["ml.g5.xlarge"], kit.catalogue().types["ml.g5.12xlarge"]
OTHER = kit.catalogue().types["ml.g6.xlarge"]
MONEY = Money(Decimal(1000), Decimal(500), Decimal(10), 0.6)
RISKS = {RiskResource.LATENCY: Risk.LOW, RiskResource.CAPACITY: Risk.HIGH}
REAL_TIME = EndpointKind.REAL_TIME


def typed(
    target: Target, runs: Any = (FOUR, 2), to: Any = ONE, money: Money = MONEY, kind: EndpointKind = REAL_TIME
) -> Option:
    return type_option(kind, runs, to, RatedTarget(target, PRICE, money, RISKS, 9.876), {"a": "b"}, ("that",))


def test_another_type_carries_what_was_reckoned_of_it() -> None:
    found = typed(Target("ml.g6.xlarge", 2), (ONE, 2), OTHER)
    assert (found.kind, found.target, found.price) == (OptionKind.INSTANCE_TYPE, Target("ml.g6.xlarge", 2), PRICE)
    assert (found.usd_per_month, found.saving_usd_per_month) == (Decimal(1000), Decimal(500))
    assert (found.switch_usd, found.payback_days) == (Decimal(10), 0.6)
    assert (found.risks, found.risk) == (RISKS, Risk.HIGH)
    assert (found.confidence, found.p95_s, found.effort) == (9.876, None, Effort.LOW)
    assert (found.in_place, found.restart_needed, found.rollback_possible) == (True, True, True)
    assert (found.client_change, found.notes, found.not_checked, found.restores) == ("", (), ("that",), False)
    assert found.facts == {"a": "b", "break-even": "as dear as today at 1.50 times the planned instance hours"}


@pytest.mark.parametrize(
    ("target", "kind", "anew"),
    [
        (Target("ml.g5.xlarge", 1), OptionKind.INSTANCE_COUNT, False),
        (Target("ml.g5.xlarge", 1, minimum=1), OptionKind.AUTOSCALING, False),
        (Target("ml.g5.xlarge", 1, routing="LEAST_OUTSTANDING_REQUESTS"), OptionKind.ROUTING, True),
        (Target("ml.g5.xlarge", 2, hourly_counts=(1,) * 24), OptionKind.SCHEDULE, False),
        (Target("ml.g6.xlarge", 2, hourly_counts=(1,) * 24), OptionKind.SCHEDULE, True),
        (Target("ml.g6.xlarge", 2), OptionKind.INSTANCE_TYPE, True),
        (Target("ml.g6.xlarge", 1), OptionKind.TYPE_AND_COUNT, True),
    ],
)
def test_the_kind_says_what_differs_from_today(target: Target, kind: OptionKind, anew: bool) -> None:
    found = typed(target, (ONE, 2), OTHER if target.instance_type == OTHER.name else ONE)
    assert (found.kind, found.restart_needed) == (kind, anew)
    same = target.instance_type == ONE.name
    assert found.effort is (Effort.VERY_LOW if same else Effort.LOW)


def test_as_many_instances_with_fewer_of_the_same_card_are_fewer_gpus() -> None:
    found = typed(Target("ml.g5.xlarge", 2))
    assert (found.kind, found.effort) == (OptionKind.FEWER_GPUS, Effort.MEDIUM)
    assert found.notes == (
        "1 in place of 4 GPUs in an instance: a server that is told how many (tensor parallel degree,"
        " CUDA_VISIBLE_DEVICES) has to be told anew",
    )
    assert typed(Target("ml.g5.xlarge", 1)).kind is OptionKind.TYPE_AND_COUNT
    other = typed(Target("ml.g6.xlarge", 2), to=OTHER)
    assert (other.kind, other.effort) == (OptionKind.INSTANCE_TYPE, Effort.MEDIUM)
    assert typed(Target("ml.g5.12xlarge", 2), (ONE, 2), FOUR).kind is OptionKind.INSTANCE_TYPE


def test_the_program_changes_no_endpoint_of_components() -> None:
    assert not typed(Target("ml.g6.xlarge", 2), to=OTHER, kind=EndpointKind.INFERENCE_COMPONENTS).in_place


@pytest.mark.parametrize(("usd", "saving"), [("1000", "0"), ("1000", "-1"), ("0", "500")])
def test_what_saves_nothing_has_no_break_even(usd: str, saving: str) -> None:
    found = typed(Target("ml.g5.xlarge", 2), money=Money(Decimal(usd), Decimal(saving), Decimal(0), 0.0))
    assert found.facts["break-even"] == "it saves nothing: it serves what today's fleet does not"


def test_a_cent_is_a_saving_too() -> None:
    found = typed(Target("ml.g5.xlarge", 2), money=Money(Decimal("0.5"), Decimal("0.5"), Decimal(0), 0.0))
    assert found.facts["break-even"] == "as dear as today at 2.00 times the planned instance hours"


def test_the_saving_has_to_pay_for_the_test_and_for_the_change() -> None:
    found = pricing.with_test_cost(option(saving_usd_per_month=Decimal(300), switch_usd=Decimal(2)), Decimal(8))
    assert (found.test_usd, found.payback_days, found.switch_usd) == (Decimal(8), 1.0, Decimal(2))


def test_deleting_saves_all_of_it_and_is_its_owners_act() -> None:
    found = delete_option(("ml.g5.xlarge", 2), PRICE, Decimal(900), 14.0, 21)
    assert (found.kind, found.target) == (OptionKind.DELETE, Target("ml.g5.xlarge", 0))
    assert (found.usd_per_month, found.saving_usd_per_month) == (Decimal(0), Decimal(900))
    assert (found.switch_usd, found.payback_days, found.confidence) == (Decimal(0), 0.0, 14.0)
    assert (found.price, found.risks) == (PRICE, {RiskResource.AVAILABILITY: Risk.MEDIUM})
    assert (found.effort, found.in_place, found.rollback_possible) == (Effort.MEDIUM, False, False)
    assert found.client_change == "calls fail once the endpoint is deleted"
    assert found.notes == ("keep the endpoint configuration: CreateEndpoint with it brings the endpoint back",)
    assert found.facts == {"days without a request": "21", "break-even": "from the first hour"}
    assert found.not_checked == ("whether the endpoint is kept for rare or seasonal use",)


def test_scaling_to_zero_names_its_timeout_and_what_callers_must_do() -> None:
    found = scale_to_zero_option(("ml.g5.xlarge", 2), PRICE, MONEY, 14.0, 30, 0.625, in_place=False)
    assert (found.kind, found.effort) == (OptionKind.SCALE_TO_ZERO, Effort.HIGH)
    assert found.target == Target("ml.g5.xlarge", 2, minimum=0, idle_minutes=30)
    assert (found.usd_per_month, found.price, found.confidence) == (Decimal(1000), PRICE, 14.0)
    assert (found.risks, found.in_place) == ({RiskResource.AVAILABILITY: Risk.LOW}, False)
    assert found.client_change == "must name an inference component and retry while the endpoint wakes"
    assert found.notes == ("asleep 62 % of the look-back with a timeout of 30 minutes",)
    assert found.facts == {
        "idle timeout": "30 minutes",
        "asleep": "62 %",
        "break-even": "saves nothing once a request comes every 30 minutes",
    }
    assert (found.not_checked, found.restart_needed) == ((), True)


def test_an_endpoint_of_components_or_with_a_queue_sleeps_without_another_name() -> None:
    parts = scale_to_zero_option(("ml.g5.xlarge", 2), PRICE, MONEY, 14.0, 30, 0.5, in_place=False, of_components=True)
    assert parts.client_change == "must retry while the endpoint wakes"
    assert (parts.not_checked, parts.restart_needed) == ((MANAGED,), False)
    queue = scale_to_zero_option(("ml.g5.xlarge", 2), PRICE, MONEY, 14.0, 30, 0.5, in_place=True)
    assert (queue.client_change, queue.in_place, queue.restart_needed) == ("", True, False)


@pytest.mark.parametrize(
    ("target", "kind", "anew"),
    [
        (Target("ml.g5.xlarge", 4), OptionKind.INSTANCE_COUNT, False),
        (Target("ml.g6.xlarge", 2), OptionKind.INSTANCE_TYPE, True),
        (Target("ml.g6.xlarge", 2, hourly_counts=(2,) * 24), OptionKind.SCHEDULE, True),
    ],
)
def test_the_last_good_configuration_comes_back_as_what_it_was(target: Target, kind: OptionKind, anew: bool) -> None:
    found = restore_option(REAL_TIME, ("ml.g5.xlarge", 2), target, PRICE, MONEY, 3.0)
    assert (found.kind, found.target, found.restart_needed) == (kind, target, anew)
    assert (found.restores, found.in_place, found.effort) == (True, True, Effort.LOW)
    assert (found.risks, found.confidence) == ({RiskResource.CAPACITY: Risk.LOW}, 3.0)
    assert (found.price, found.usd_per_month) == (PRICE, Decimal(1000))
    assert found.notes == ("the configuration that ran before our last change",)
    serverless = restore_option(EndpointKind.SERVERLESS, ("ml.g5.xlarge", 2), target, PRICE, MONEY, 3.0)
    assert not serverless.in_place


def test_volumes_are_said_to_be_in_no_figure_unless_both_types_have_their_own_disks() -> None:
    types = kit.catalogue(kit.OTHERS).types
    assert volume_notes(ONE, OTHER) == ()
    line = "what the EBS volumes of {} cost (up to 512 GB an instance): they are in no figure"
    assert volume_notes(ONE, types["ml.t3.2xlarge"]) == (line.format("ml.t3.2xlarge"),)
    both = line.format("ml.m5.2xlarge and ml.t3.2xlarge")
    assert volume_notes(types["ml.t3.2xlarge"], types["ml.m5.2xlarge"]) == (both,)


def test_a_month_has_730_hours_and_is_rounded_to_cents() -> None:
    assert monthly_cost(PRICE, 1) == Decimal("1027.84")
    assert monthly_cost(PRICE, 1.33333) == Decimal("1370.42")


NO_PLAN = Commitment(Decimal(0), known=True)


def test_the_cost_of_a_new_fleet_counts_both_fleets_for_half_an_hour_and_its_risk() -> None:
    """Two instances at USD 1.408 an hour and USD 3 beside them, for 0.5 hours and a tenth more."""
    found = cost_of(Decimal(3000), PRICE, 1.5, 2, 0.1, NO_PLAN, POLICY, new_fleet=True, beside_usd_per_hour=Decimal(3))
    assert (found.usd_per_month, found.saving, found.committed) == (Decimal("1541.76"), Decimal("1458.24"), Decimal(0))
    assert found.switch_usd == Decimal("3.20")
    assert found.payback_days == pytest.approx(0.07)
    alone = cost_of(Decimal(3000), PRICE, 1.5, 2, 0.0, NO_PLAN, POLICY, new_fleet=True)
    assert alone.switch_usd == Decimal("1.41")


def test_a_change_of_count_switches_for_nothing() -> None:
    found = cost_of(Decimal(3000), PRICE, 1.5, 2, 0.1, NO_PLAN, POLICY, new_fleet=False, beside_usd_per_hour=Decimal(3))
    assert (found.switch_usd, found.payback_days) == (Decimal(0), 0.0)


def test_a_mean_over_all_hours_is_made_one_of_those_that_run() -> None:
    price = kit.prices().running(Decimal(365)).find(ONE.name)
    always = kit.prices().find(ONE.name)
    assert price is not None
    assert always is not None
    assert mean_while_running(2.0, 1, 3, price) == pytest.approx(3.0), "one at night, three by day"
    assert mean_while_running(2.9, 1, 3, price) == 3.0, "never more than the most"
    assert mean_while_running(2.0, 2, 2, price) == pytest.approx(2.0)
    assert mean_while_running(2.0, 1, 3, always) == 2.0


def test_variants_cost_what_runs_of_them_and_those_without_a_price_or_a_type_nothing() -> None:
    first = kit.endpoint("ml.g5.xlarge").variants[0]
    others = (
        replace(first, current_count=2),
        replace(first, instance_type="ml.g6.xlarge", current_count=1),
        replace(first, instance_type="ml.odd.large"),
        replace(first, instance_type=""),
    )
    assert usd_of_variants(others, kit.prices()) == Decimal("2055.68") + Decimal("822.49")
    assert usd_of_variants((), kit.prices()) == 0


def test_a_commitment_of_nothing_or_a_saving_of_nothing_keeps_nothing() -> None:
    plan = Commitment(Decimal(10), known=True)
    assert kept_by_commitment(Decimal(-5), Decimal(100), plan) == 0
    assert kept_by_commitment(Decimal(0), Decimal(100), plan) == 0
    assert kept_by_commitment(Decimal(50), Decimal(100), Commitment(Decimal(0), known=True)) == 0
    assert kept_by_commitment(Decimal(50), Decimal(100), plan) == 50


def test_a_deletion_restarts_nothing() -> None:
    assert not delete_option(("ml.g5.xlarge", 1), PRICE, Decimal(10), 14.0, 14).restart_needed
