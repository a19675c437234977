"""One change of an endpoint with several variants: forward, back, and what it refuses, on the simulated account."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind, Target, VariantTarget
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from sandbox.sagemaker.load import LoadModel, Served
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, World, an_option, steady, world

SECOND = {
    "VariantName": "Second",
    "InstanceType": OLD_TYPE,
    "InitialInstanceCount": 3,
    "InitialVariantWeight": 3.0,
}
OTHER = VariantTarget("Second", "ml.g5.2xlarge", 2, Decimal("1.515"))
BOTH = an_option(kind=OptionKind.TYPE_AND_COUNT, target=Target(NEW_TYPE, 1, others=(OTHER,)), mean_instances=3.0)


def several(**more: Any) -> Any:
    settings: dict[str, Any] = {"count": 2, "more_variants": (SECOND,)} | more
    return world(settings.pop("option", BOTH), kind=EndpointKind.MULTI_VARIANT, **settings)


def fleet(w: World) -> dict[str, tuple[str, int, float]]:
    """Type, count and weight of each variant as the endpoint runs them."""
    live = w.live()
    config = w.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=live["EndpointConfigName"])
    types = {v["VariantName"]: v["InstanceType"] for v in config["ProductionVariants"]}
    return {
        v["VariantName"]: (types[v["VariantName"]], v["CurrentInstanceCount"], v["DesiredWeight"])
        for v in live["ProductionVariants"]
    }


def failing_on(instance_type: str) -> LoadModel:
    """Half of the requests fail on that type, and none elsewhere."""

    def minute(at: datetime, runs: str, count: int) -> Served:
        return Served(60, latency_ms=100.0, errors_5xx=30 if runs == instance_type else 0)

    return minute


BEFORE = {"AllTraffic": (OLD_TYPE, 2, 1.0), "Second": (OLD_TYPE, 3, 3.0)}


def test_one_deployment_gives_each_variant_its_target_and_keeps_the_weights() -> None:
    with several() as w:
        assert fleet(w) == BEFORE
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        updates = w.box.calls.of("sagemaker", "UpdateEndpoint*")
        assert fleet(w) == {"AllTraffic": (NEW_TYPE, 1, 1.0), "Second": (OTHER.instance_type, 2, 3.0)}
        assert len(updates) == 1
        assert w.change.instance_hours > 0
        names = {step.params["AlarmName"] for step in w.change.plan.prepare if step.kind is StepKind.PUT_ALARM}
        assert {"AllTraffic", "Second"} == {name.split("-")[-2] for name in names if name.endswith("-5xx")}


def test_the_way_back_restores_every_variant_at_once() -> None:
    with several() as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.5)
        w.box.load(NAME, steady(errors=30))
        assert w.run(48).state is ChangeState.ROLLED_BACK
        assert fleet(w) == BEFORE


def test_errors_of_the_second_variant_alone_bring_both_back() -> None:
    with several() as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.5)
        w.box.load(NAME, failing_on(OTHER.instance_type))
        assert w.run(48).state is ChangeState.ROLLED_BACK
        assert fleet(w) == BEFORE


def test_what_is_booked_is_the_saving_of_both_while_their_fleets_are_as_planned() -> None:
    with several() as w:
        w.start()
        change = w.run(48)
        assert change.counted_until is not None
        assert change.turned_at is not None
        hours = (change.counted_until - change.turned_at).total_seconds() / 3600
        assert change.instance_hours == pytest.approx(3 * hours)


def test_the_next_decision_knows_what_became_of_each_variant() -> None:
    with several() as w:
        w.start()
        w.run(48)
        known = w.apply.history.history(NAME, w.now)
        (first,) = known.of_variant("AllTraffic", is_first=True).endpoint
        (second,) = known.of_variant("Second", is_first=False).endpoint
        assert (first.from_type, first.from_count, first.to_type, first.to_count) == (OLD_TYPE, 2, NEW_TYPE, 1)
        assert (second.from_type, second.from_count, second.to_type, second.to_count) == (
            OLD_TYPE,
            3,
            OTHER.instance_type,
            2,
        )


def test_a_variant_that_is_autoscaled_since_is_not_deployed_over() -> None:
    def seed(box: Any) -> None:
        box.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"endpoint/{NAME}/variant/Second",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            MinCapacity=3,
            MaxCapacity=6,
        )

    with several(seed=seed) as w:
        assert w.start().state is ChangeState.REFUSED
        assert "Second of chat is autoscaled since this was decided" in w.change.outcome
        assert fleet(w) == BEFORE


def test_automatic_mode_never_changes_several_variants() -> None:
    auto: dict[str, Any] = {"tags": {"rightsizer:mode": "auto"}, "by": "policy", "judged": {"gate": Gate.APPLY}}
    with several(**auto) as w:
        assert w.start().state is ChangeState.REFUSED
        assert "only after an approval" in w.change.outcome


def test_the_quota_has_to_hold_old_and_new_fleets_of_each_type() -> None:
    to_old = replace(OTHER, instance_type=NEW_TYPE, instance_count=2)
    option = replace(BOTH, target=Target(NEW_TYPE, 1, others=(to_old,)))
    with several(option=option, seed=lambda box: box.set_quota(NEW_TYPE, 2)) as w:
        assert w.start().state is ChangeState.REFUSED
        assert w.change.reason is not None
        assert w.change.reason.code is Code.NO_QUOTA
