"""Another routing: a part of the configuration."""

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.routing import Routing
from rightsizer.domain.endpoint import LEAST
from rightsizer.domain.option import Target
from tests.dimensions.kit import TYPE, planned, said


def test_it_says_the_strategy_and_the_fleet() -> None:
    does, back = said(Routing(), Target(TYPE, 2, routing=LEAST))
    assert does == "run on 2 × ml.g5.xlarge, routed by LEAST_OUTSTANDING_REQUESTS"
    assert back == "deploys the old configuration again"


def test_it_is_deployed_as_a_clone_with_that_strategy() -> None:
    found = planned(Routing(), Target(TYPE, 2, routing=LEAST), deploys=True)
    assert isinstance(found, PlannedChange)
    (variant,) = found.plan.prepare[0].params["ProductionVariants"]
    assert variant["RoutingConfig"] == {"RoutingStrategy": LEAST}
    assert found.plan.back_config
