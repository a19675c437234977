"""An option is made with its money spread out, and says what it takes as its maker knows it."""

from decimal import Decimal

import pytest

from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, RiskResource, Target, fleet, new_option
from tests.samples import price

RISKS = {RiskResource.LATENCY: Risk.LOW, RiskResource.CAPACITY: Risk.MEDIUM}


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("keeps", [True, False])
def test_an_option_has_the_worst_of_its_risks_and_says_what_restarts_and_what_can_come_back(
    restarts: bool, keeps: bool
) -> None:
    money, sold = Money(Decimal(10), Decimal(5), Decimal(1), 2.0), price("ml.g5.xlarge", "1.40")
    target, kind = Target("ml.g5.xlarge", 1), OptionKind.ROUTING
    made = new_option(kind, target, sold, money, 9.0, RISKS, Effort.LOW, in_place=True, restarts=restarts, keeps=keeps)
    assert (made.risk, made.saving_usd_per_month, made.payback_days) == (Risk.MEDIUM, Decimal(5), 2.0)
    assert (made.restart_needed, made.rollback_possible) == (restarts, keeps)


def rated(risks: dict[RiskResource, Risk]) -> Option:
    money, sold = Money(Decimal(10), Decimal(5), Decimal(1), 2.0), price("ml.g5.xlarge", "1.40")
    target, kind = Target("ml.g5.xlarge", 1), OptionKind.INSTANCE_COUNT
    return new_option(kind, target, sold, money, 9.0, risks, Effort.LOW, in_place=True, restarts=False)


def test_a_lost_availability_zone_is_a_risk_and_no_performance_risk() -> None:
    alone = rated({RiskResource.LATENCY: Risk.LOW, RiskResource.AVAILABILITY: Risk.MEDIUM})
    assert (alone.risk, alone.performance_risk, alone.leaves_one_zone) == (Risk.MEDIUM, Risk.LOW, True)
    gone = rated({RiskResource.AVAILABILITY: Risk.MEDIUM})
    assert (gone.performance_risk, gone.leaves_one_zone) == (Risk.MEDIUM, False)
    two = rated({RiskResource.LATENCY: Risk.LOW})
    assert (two.performance_risk, two.leaves_one_zone) == (Risk.LOW, False)


def test_a_fleet_by_the_hour_names_its_least_and_its_most() -> None:
    night, day = (1,) * 12, (3,) * 12
    assert fleet(Target("ml.g5.xlarge", 3, hourly_counts=night + day)) == "1 to 3 × ml.g5.xlarge by the hour"
    assert fleet(Target("ml.g5.xlarge", 3, hourly_counts=day * 2)) == "3 × ml.g5.xlarge"


def test_a_fleet_without_a_type_is_serverless() -> None:
    assert [fleet(Target("ml.g5.xlarge", 2)), fleet(Target("", 0))] == ["2 × ml.g5.xlarge", "serverless"]
