"""One workload in three environments: what each gets, why, and which tags it has."""

import json
from typing import Any

import pytest

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import EnvironmentVariant, HardwareClass, Hosting, Purchase
from rightsizer.advice.describe import workload_of
from rightsizer.advice.environments import in_production, policy_of
from rightsizer.advice.rules import Rule
from rightsizer.domain.environment import Environment
from rightsizer.policy_reader import read_policy

LLM: dict[str, Any] = {
    "task": "real-time",
    "model": {"kind": "llm", "name": "llama-3-8b"},
    "traffic": {"requests_per_second": 5},
    "objectives": {"p95_ms": 9000},
}
CLASSICAL: dict[str, Any] = {
    "task": "real-time",
    "model": {"kind": "classical"},
    "traffic": {"requests_per_second": 400},
    "data": {"seconds_per_request": 0.05},
}


def variants(described: dict[str, Any]) -> dict[str, EnvironmentVariant]:
    return {each.environment: each for each in advise(described).environments}


def test_production_has_two_instances_a_guard_and_the_objective() -> None:
    found = variants(LLM)["production"]
    first = advise(LLM).options[0]
    assert found.option.count == max(2, first.count)
    each = float(first.cost.usd_per_month or 0) / first.count
    assert float(found.option.cost.usd_per_month or 0) == pytest.approx(found.option.count * each, abs=0.01)
    assert {each.source for each in found.differs} >= {Rule.PRODUCTION_TWO, Rule.GUARDRAIL}
    assert found.tags == {"rightsizer:mode": "propose", "rightsizer:p95-ms": "9000", "rightsizer:min-instances": "2"}


def test_staging_mirrors_production_with_one_instance_in_working_hours() -> None:
    found = variants(LLM)
    staging, production = found["staging"].option, found["production"].option
    assert (staging.instance_type, staging.hosting, staging.plan) == (
        production.instance_type,
        production.hosting,
        production.plan,
    )
    assert (staging.count, staging.purchase) == (1, Purchase.SCHEDULE)
    assert float(staging.cost.usd_per_month or 0) == pytest.approx(
        float(staging.cost.usd_per_hour or 0) * 176, abs=0.01
    )
    assert found["staging"].tags["rightsizer:mode"] == "report"


def test_development_takes_the_smallest_type_that_holds_the_model_without_the_load() -> None:
    found = variants(LLM)
    small = found["development"].option
    assert small.count == 1
    assert (small.cost.usd_per_hour or 0) < (found["staging"].option.cost.usd_per_hour or 0)
    assert small.memory is not None
    assert small.memory.needed_gib <= small.memory.usable_gib
    assert found["development"].tags["rightsizer:cold-start-ok"] == "true"


def test_a_model_for_cpu_is_developed_serverless() -> None:
    found = variants(CLASSICAL)
    assert found["development"].option.hosting is Hosting.SERVERLESS
    assert found["production"].option.hosting is Hosting.REALTIME


def test_what_is_billed_by_the_request_has_one_shape_everywhere() -> None:
    rare = {**CLASSICAL, "traffic": {"requests_per_month": 1000}}
    assert {each.option.hosting for each in variants(rare).values()} == {Hosting.SERVERLESS}
    assert "rightsizer:min-instances" not in variants(rare)["production"].tags


def test_an_asynchronous_endpoint_has_no_instance_between_calls_in_development() -> None:
    found = variants({"task": "asynchronous", "model": {"kind": "vision", "parameters": 1e9}})
    assert {each.option.hosting for each in found.values()} == {Hosting.ASYNC}
    assert Rule.SCALE_TO_ZERO in {each.source for each in found["development"].differs}


def test_development_calls_an_asynchronous_endpoint_as_production_does() -> None:
    rare = {"task": "real-time", "model": {"kind": "vision", "parameters": 3.5e9}, "traffic": {"shape": "intermittent"}}
    assert {each.option.hosting for each in variants(rare).values()} == {Hosting.ASYNC}


@pytest.mark.parametrize(
    "described",
    [
        {"task": "training", "model": {"kind": "llm", "parameters": 1e9}},
        {"task": "batch-inference", "model": {"kind": "classical"}},
        {"task": "real-time", "model": {"kind": "llm", "parameters": 9e12}},
    ],
)
def test_jobs_and_what_nothing_holds_have_no_environments(described: dict[str, Any]) -> None:
    assert advise(described).environments == ()


def test_the_environment_staging_is_advised_as_staging() -> None:
    option = advise({**LLM, "constraints": {"environment": "staging"}}).options[0]
    assert (option.count, option.purchase) == (1, Purchase.SCHEDULE)
    assert Rule.STAGING_MIRRORS in {each.source for each in option.reasons}
    assert Rule.PRODUCTION_TWO not in {each.source for each in option.reasons}


@pytest.mark.parametrize(
    ("word", "meant"),
    [("dev", Environment.DEVELOPMENT), ("stage", Environment.STAGING), ("prod", Environment.PRODUCTION)],
)
def test_short_words_name_an_environment(word: str, meant: Environment) -> None:
    assert workload_of({"task": "real-time", "constraints": {"environment": word}}).constraints.environment is meant


def test_production_ranks_by_what_its_two_instances_cost() -> None:
    """Two small instances may cost more than one large one, and less than the two large ones that production gets."""
    differs = False
    for tenths in range(5, 60, 3):
        described = {
            "task": "real-time",
            "model": {"name": "llama-3-8b"},
            "traffic": {"requests_per_second": tenths / 10},
        }
        gpus = [each for each in advise(described).options if each.hardware is HardwareClass.GPU_G]
        costs = [float(in_production(each).cost.usd_per_month or 0) for each in gpus]
        assert costs == sorted(costs)
        alone = [float(each.cost.usd_per_month or 0) for each in gpus]
        differs = differs or alone != sorted(alone)
    assert differs, "the rule decides in no case"


@pytest.mark.parametrize(("described", "objective_s"), [(LLM, 9.0), (CLASSICAL, None)], ids=["a p95", "as today"])
def test_the_policy_of_the_environments_is_one_that_the_program_reads(
    described: dict[str, Any], objective_s: float | None
) -> None:
    found = read_policy(json.dumps(policy_of(advise(described).environments)))
    assert found.problems == ()
    production = found.environments[Environment.PRODUCTION].values
    assert (production["automatic"], production["objective"]) == (False, objective_s)
    assert "automatic" not in found.environments[Environment.DEVELOPMENT].values
