"""Dimensions that an operator added, carried out by automatic mode and by an approval, as the evaluation words them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.recommendation import Gate
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, OLD_TYPE, an_option, world

ROUTED = Scenario(
    "fewer instances behind another routing",
    an_option(kind=OptionKind.ROUTING, target=Target(OLD_TYPE, 2, routing="LEAST_OUTSTANDING_REQUESTS")),
    {"count": 3},
)


def allowing(*kinds: OptionKind) -> ChangeLimits:
    return ChangeLimits(probation=timedelta(hours=2), rewire_alarms=True, dimensions=frozenset(kinds))


def test_another_routing_and_count_arrive_together_and_go_back_together() -> None:
    with world(ROUTED.option, limits=allowing(OptionKind.ROUTING), **ROUTED.endpoint) as there:
        there.start()
        there.run(6)
        client = there.box.client("sagemaker")
        config = client.describe_endpoint_config(EndpointConfigName=there.live()["EndpointConfigName"])
        (variant,) = config["ProductionVariants"]
        assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
        assert there.live()["ProductionVariants"][0]["DesiredInstanceCount"] == 2


def test_several_variants_are_changed_only_after_an_approval() -> None:
    other = {"VariantName": "Second", "InstanceType": OLD_TYPE, "InitialInstanceCount": 1}
    auto: dict[str, Any] = {"tags": {"rightsizer:mode": "auto"}, "more_variants": (other,)}
    many = replace(an_option())
    with world(many, kind=EndpointKind.MULTI_VARIANT, by="policy", judged={"gate": Gate.APPLY}, **auto) as there:
        assert there.start().state is ChangeState.REFUSED
        assert "only after an approval" in there.change.outcome
    with world(many, kind=EndpointKind.MULTI_VARIANT, **auto) as there:
        there.start()
        assert there.run(48).state is ChangeState.PROVEN
        assert there.live()["EndpointName"] == NAME
