"""Environments: which one the tags name, and what it changes in the policy of an endpoint."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.endpoint import Endpoint, Objective, ScalableTarget
from rightsizer.domain.environment import Environment, environment_of_tags, policy_for, read_environment
from rightsizer.domain.history import History
from rightsizer.domain.option import Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.gate import GateCase, decide_gate
from rightsizer.recommender.workload import evaluation_context
from tests.recommender import kit
from tests.recommender.plain import demand, option

DEV, STAGING, PRODUCTION = Environment.DEVELOPMENT, Environment.STAGING, Environment.PRODUCTION


def tagged(objective: Objective | None = None, **tags: str) -> Endpoint:
    return replace(kit.endpoint(p95_s=None), tags=tags, objective=objective or Objective())


@pytest.mark.parametrize(
    ("tags", "expected", "source"),
    [
        ({}, PRODUCTION, "no tag environment, env or stage"),
        ({"environment": "dev"}, DEV, "tag environment=dev"),
        ({"Env": " Sandbox "}, DEV, "tag Env=Sandbox"),
        ({"STAGE": "PreProd"}, STAGING, "tag STAGE=PreProd"),
        ({"stage": "prod"}, PRODUCTION, "tag stage=prod"),
        ({"environment": "dev", "stage": "staging"}, STAGING, "tag stage=staging, stricter than environment=dev"),
        ({"environment": "dev", "env": "prod"}, PRODUCTION, "tag env=prod, stricter than environment=dev"),
        ({"environments": "dev", "my-env": "dev"}, PRODUCTION, "no tag environment, env or stage"),
    ],
)
def test_the_strictest_environment_that_a_tag_names_counts(
    tags: dict[str, str], expected: Environment, source: str
) -> None:
    assert environment_of_tags(tags) == (expected, source)


@pytest.mark.parametrize("value", ["blue", "", "dev-prod", "développement"])
def test_a_value_that_nobody_knows_is_production_and_named(value: str) -> None:
    environment, source = environment_of_tags({"environment": value, "env": "dev"})
    assert environment is PRODUCTION
    assert source.startswith(f"tag environment={value}, which is none of development, dev, ")


def test_development_takes_more_on_less_evidence_and_staging_only_gives_up_a_second_zone() -> None:
    account = Policy()
    dev, staging = (policy_for(tagged(env=name), account) for name in ("dev", "staging"))
    assert dev == replace(
        account, lone_instance=Risk.VERY_LOW, down_with_growth=0.1, risk_apply=2, confidence_smaller=3.0
    )
    assert staging == replace(account, lone_instance=Risk.VERY_LOW)
    assert policy_for(tagged(env="prod"), account) == account == policy_for(tagged(), account)


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_an_account_that_allows_more_keeps_its_figures(name: str) -> None:
    bold = Policy(lone_instance=Risk.VERY_LOW, down_with_growth=0.05, risk_apply=3, confidence_smaller=1.0)
    assert policy_for(tagged(env=name), bold) == bold


def test_a_declared_latency_keeps_headroom_risk_and_evidence_of_the_account() -> None:
    query = {"Metric": {"Namespace": "AWS/SageMaker", "MetricName": "ModelLatency"}, "Stat": "p95"}
    policy = {
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": 2e6,
            "CustomizedMetricSpecification": {"Metrics": [{"Id": "p95", "MetricStat": query}]},
        }
    }
    tracked = replace(tagged(env="dev"), scaling=(ScalableTarget("endpoint/chat/variant/A", "d", 1, 4, {}, (policy,)),))
    for endpoint in (tagged(Objective(p95_s=2.0), env="dev"), tracked):
        assert policy_for(endpoint, Policy()) == Policy(lone_instance=Risk.VERY_LOW)


def test_what_the_environment_changes_is_said_in_figures() -> None:
    assert read_environment(tagged(env="dev"), Policy()).effects == (
        "one instance is enough: no second Availability Zone is kept",
        "room for 10 % more load, not 20 %",
        "automatic mode takes a performance risk of 2 of 4, not 1",
        "3 days' worth of evidence are enough for another type by itself, not 7",
    )
    assert read_environment(tagged(env="prod"), Policy()).effects == ()
    with_minimum = tagged(Objective(p95_s=2.0, min_instances=2), env="dev")
    assert read_environment(with_minimum, Policy()).effects == ()


def test_tags_that_could_not_be_read_are_production_and_say_so() -> None:
    unread = replace(tagged(), tags_unread=Reason(Code.PERMISSION_MISSING, "no tag:GetResources"))
    found = read_environment(unread, Policy())
    assert (found.environment, found.source) == (PRODUCTION, "its tags could not be read")


def test_the_context_of_a_back_test_sizes_by_the_environment_too() -> None:
    inputs = AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    days = daily_usage(kit.window(kit.steady()), VariantSetup(kit.catalogue().types["ml.g6e.xlarge"], 1))
    found = evaluation_context(tagged(env="dev"), days, inputs)
    assert found is not None
    assert found.policy == policy_for(tagged(env="dev"), Policy())


def test_a_policy_for_an_environment_stays_as_it_is_when_it_is_asked_for_again() -> None:
    once = policy_for(tagged(env="dev"), Policy())
    assert policy_for(tagged(env="dev"), once) == once


@pytest.mark.parametrize(
    ("environment", "gate"), [("dev", Gate.APPLY), ("staging", Gate.PROPOSE), ("prod", Gate.PROPOSE)]
)
@pytest.mark.parametrize(
    "odd",
    [{"option": option(risk=Risk.MEDIUM)}, {"demand": demand(confidence=3.5)}],
    ids=["a medium risk", "three and a half days of evidence for another type"],
)
def test_only_development_takes_a_higher_risk_on_shorter_evidence(
    environment: str, gate: Gate, odd: dict[str, Any]
) -> None:
    safe: dict[str, Any] = {"option": option(), "demand": demand(), "instance_type": "ml.g6e.xlarge", "share": 0.4}
    endpoint = tagged(env=environment)
    case = GateCase(endpoint, **{**safe, **odd})
    assert decide_gate(case, History(), policy_for(endpoint, Policy()), kit.NOW)[0] is gate
