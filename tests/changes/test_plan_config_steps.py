"""The requests of a deployment: what each names, which counts it keeps, and what it leaves to the other variants."""

from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes import clone, guardrail
from rightsizer.changes.clone import CHANGE_TAG
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan import (
    alarm_steps,
    create_step,
    plan_keeping_counts,
    plan_new_config,
    tag_step,
    update_step,
)
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Target, VariantTarget
from rightsizer.domain.plan import Plan, Step, StepKind, VariantCount
from rightsizer.domain.policy import ChangeLimits
from tests import samples
from tests.changes.test_plan_config import BODY, NEW_TYPE, OLD_TYPE, approved
from tests.changes.test_preflight import NOW

FLEET = (VariantCount("AllTraffic", OLD_TYPE, 2, 1.0),)
MADE = clone.ClonedConfig("new", {"EndpointConfigName": "new"}, "0" * 64)
WATCHED = (Step(StepKind.PUT_ALARM, "a", {"AlarmName": "a"}), Step(StepKind.PUT_ALARM, "b", {"AlarmName": "b"}))
DEPLOYMENT: dict[str, Any] = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}]}}
TAG = [{"Key": CHANGE_TAG, "Value": "c-1"}]


def deployed(given: Approved) -> Plan:
    found = plan_new_config(given)
    assert isinstance(found, PlannedChange), found
    return found.plan


@pytest.mark.parametrize(("arguments", "keeps"), [((), False), ((True,), True), ((False,), False)])
def test_an_update_names_the_endpoint_the_configuration_and_whether_live_counts_stay(
    arguments: tuple[bool, ...], keeps: bool
) -> None:
    names = {"EndpointName": "chat", "EndpointConfigName": "new", "RetainAllVariantProperties": keeps}
    plain = update_step("chat", "new", {}, *arguments)
    assert plain == Step(StepKind.UPDATE_ENDPOINT, "chat to new", names)
    guarded = update_step("chat", "new", DEPLOYMENT, *arguments)
    assert guarded.params == {**names, "DeploymentConfig": DEPLOYMENT}


def test_a_configuration_is_made_with_the_body_of_its_clone_and_the_old_one_gets_the_tag() -> None:
    assert create_step(MADE) == Step(StepKind.CREATE_CONFIG, "new", MADE.body)
    wanted = {"ResourceArn": BODY["EndpointConfigArn"], "Tags": TAG}
    assert tag_step(ConfigSight("old", BODY, NOW), "c-1") == Step(StepKind.TAG_CONFIG, "old", wanted)


def test_a_deployment_that_keeps_counts_goes_there_and_back_with_those_that_are_live() -> None:
    given = approved(limits=ChangeLimits(alarm_prefix="mine-"))
    guard = guardrail.Guardrail(DEPLOYMENT, sentence="all at once", limit_s=1234)
    back = guardrail.rollback_deployment(DEPLOYMENT, 2, 2)
    assert plan_keeping_counts(given, MADE, WATCHED, guard) == Plan(
        prepare=(create_step(MADE), tag_step(given.config, "c-1"), *WATCHED),
        turn=update_step("chat", "new", DEPLOYMENT, True),
        back=update_step("chat", "old", back, True),
        tidy=(Step(StepKind.DELETE_ALARMS, "mine-c-1", {"AlarmNames": ["a", "b"]}),),
        new_config="new",
        back_config="old",
        after=FLEET,
        alarms=("a", "b"),
        deployment_limit_s=1234,
        guardrail="all at once; counts stay as they are live",
    )


def test_a_rolling_deployment_that_keeps_counts_rolls_back_in_batches_of_the_live_fleet() -> None:
    rolling = guardrail.choose_guardrail(guardrail.FleetExchange([4], [4], headroom=0), ("a",), 600)
    assert "RollingUpdatePolicy" in rolling.config
    found = plan_keeping_counts(approved(count=4), MADE, WATCHED, rolling)
    assert found.back is not None
    assert found.back.params["DeploymentConfig"] == guardrail.rollback_deployment(rolling.config, 4, 4)


def test_a_deployment_takes_as_long_as_its_guardrail_says_and_its_alarms_go_at_the_end() -> None:
    found = deployed(approved())
    chosen = guardrail.choose_guardrail(guardrail.FleetExchange([2], [2], headroom=2), found.alarms, 600)
    assert (found.deployment_limit_s, found.guardrail) == (chosen.limit_s, chosen.sentence)
    assert found.tidy == (Step(StepKind.DELETE_ALARMS, "rightsizer-c-1", {"AlarmNames": list(found.alarms)}),)


def test_what_its_alarms_may_not_see_is_said() -> None:
    found = plan_new_config(approved())
    assert isinstance(found, PlannedChange)
    assert found.notes[-1] == (
        "the roll-back alarms watch the new configuration; should AWS publish nothing under its name while it "
        "deploys, they cannot fire, and the variant's own metrics are judged 15 and 30 minutes after it"
    )


def test_its_alarms_watch_the_new_configuration() -> None:
    found = deployed(approved())
    alarms = [step for step in found.prepare if step.kind is StepKind.PUT_ALARM]
    watched = {row["Value"] for row in alarms[0].params["Dimensions"] if row["Name"] == "EndpointConfigName"}
    assert watched == {found.new_config}


def test_routing_goes_to_the_changed_variant_and_the_other_one_keeps_its_own() -> None:
    first = BODY["ProductionVariants"][0]
    body = {**BODY, "ProductionVariants": [first, {**first, "VariantName": "B", "InitialInstanceCount": 1}]}
    target = Target(OLD_TYPE, 2, routing="LEAST_OUTSTANDING_REQUESTS")
    found = deployed(approved(target, body=body, beside=(VariantCount("B", OLD_TYPE, 3, 1.0),)))
    rows = {row["VariantName"]: row for row in found.prepare[0].params["ProductionVariants"]}
    assert rows["AllTraffic"]["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert rows["B"] == {**first, "VariantName": "B", "InitialInstanceCount": 3}


@pytest.mark.parametrize(
    ("weight", "goes_back_to_old"), [(None, True), (1.0, True), (1, True), (0.5, False), (2.0, False)]
)
def test_a_weight_that_the_configuration_does_not_name_is_one(weight: float | None, goes_back_to_old: bool) -> None:
    row = {k: v for k, v in BODY["ProductionVariants"][0].items() if k != "InitialVariantWeight"}
    named = row if weight is None else {**row, "InitialVariantWeight": weight}
    found = deployed(approved(body={**BODY, "ProductionVariants": [named]}))
    assert (found.back_config == "old") is goes_back_to_old


def test_what_a_fleet_costs_an_hour_is_that_of_all_changed_variants() -> None:
    """Ten instances that overlap for a linear deployment: one other variant at 1 USD an hour is within 15 USD a day."""
    body = {**BODY, "ProductionVariants": [{**BODY["ProductionVariants"][0], "InitialInstanceCount": 10}]}
    for usd, is_linear in ((Decimal(1), True), (Decimal(100), False)):
        pair = (VariantTarget("B", NEW_TYPE, 1, usd),)
        limits = ChangeLimits(usd_per_day=Decimal(15))
        plan = deployed(approved(Target(NEW_TYPE, 10, others=pair), 10, body=body, limits=limits, quota=None))
        assert plan.guardrail.startswith("linear") is is_linear


def p95_threshold(**known: Any) -> float | None:
    change = samples.change(NOW, variant="v", **known)
    steps = alarm_steps(change, "cfg", (VariantCount("v", NEW_TYPE, 1, 1.0),), ChangeLimits())
    return next((step.params["Threshold"] for step in steps if step.subject.endswith("p95")), None)


def test_slowness_of_growth_is_measured_against_its_own_variant() -> None:
    grows = samples.option(growth_usd=Decimal(9))
    baseline = {"p95_s": 0.1, "p95_s/v": 0.4, "p95_s/w": 0.9}
    assert p95_threshold(option=grows, objective_p95_s=0.5, baseline=baseline) == 800_000
    without = p95_threshold(option=grows, objective_p95_s=None, baseline=baseline)
    assert without == p95_threshold(option=samples.option(), objective_p95_s=None, baseline=baseline)
