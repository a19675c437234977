"""Plans of training and the market: durations by hand, the least sharding that fits, families that are gone."""

import pytest

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import HardwareClass
from rightsizer.advice.market import LEGACY, snapshot
from rightsizer.advice.memory import Method
from rightsizer.advice.plans import joins_nodes, operations, plan_of, smallest_plan, training_model, utilisation
from rightsizer.advice.workload import Model, ModelKind

MARKET = snapshot("us-east-1")


def test_a_run_takes_six_operations_a_parameter_and_token() -> None:
    model = Model(ModelKind.LLM, parameters=7e9)
    assert operations(model, 1e9) == 6 * 7e9 * 1e9
    assert operations(Model(ModelKind.LLM, parameters=7e9, method=Method.LORA), 1e9) == 4 * 7e9 * 1e9


def test_a_mixture_of_experts_counts_the_experts_that_work() -> None:
    mixture = Model(ModelKind.LLM, name="mixtral-8x7b")
    assert mixture.size is not None
    assert operations(mixture, 1.0) < 6 * mixture.size / 3


def test_the_duration_is_that_of_the_middle_of_the_range_by_hand() -> None:
    offer = MARKET.find("ml.p4d.24xlarge")
    assert offer is not None
    plan = plan_of(offer, training_model(Model(ModelKind.LLM, parameters=13e9)), 1)
    assert plan is not None
    hours = plan.hours(6 * 13e9 * 1e9)
    assert hours.middle == pytest.approx(6 * 13e9 * 1e9 / (8 * 312e12 * 0.42) / 3600)
    assert hours.low < hours.middle < hours.high
    assert utilisation("A100-SXM4-40GB") == (0.28, 0.42, 0.56)


def test_the_least_sharding_that_fits_is_taken() -> None:
    offer = MARKET.find("ml.p4de.24xlarge")
    assert offer is not None
    stages = []
    for parameters in (2e9, 7e9, 20e9, 30e9):
        plan = smallest_plan(offer, training_model(Model(ModelKind.LLM, parameters=parameters)))
        assert plan is not None
        stages.append(plan.sharding.stage)
    assert stages == sorted(stages)
    assert stages[0] == 0
    assert stages[-1] == 3


def test_only_strong_instances_join_over_efa() -> None:
    names = ("ml.p5.48xlarge", "ml.trn1.32xlarge", "ml.g5.48xlarge", "ml.trn1.2xlarge")
    offers = [MARKET.find(name) for name in names]
    assert [joins_nodes(each) for each in offers if each] == [True, True, False, False]


def test_no_legacy_family_is_proposed() -> None:
    every = {each.type.family for each in MARKET.offers(tuple(HardwareClass))}
    assert not every & LEGACY
    assert "inf1" in LEGACY
    options = advise({"task": "real-time", "model": {"kind": "transformer", "name": "bert-base"}}).options
    assert not {each.instance_type.split(".")[1] for each in options if each.instance_type} & LEGACY
    assert any(each.hardware is HardwareClass.INF for each in options)


def test_giving_the_instance_back_pays_below_a_quarter_of_an_hour_for_each_request() -> None:
    notes = advise({"task": "real-time", "model": {"kind": "llm", "name": "llama-3-8b"}}).notes
    (text,) = (each.text for each in notes if each.text.startswith("giving the instance back"))
    assert "below 2,917 requests" in text
