"""What somebody meets who describes a workload for the first time: names, contradictions, deadlines, sizes."""

import io
from typing import Any

import pytest
from rich.console import Console

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Action, Hosting, Purchase
from rightsizer.advice.market import NO_ON_DEMAND, known_types, snapshot
from rightsizer.advice.memory import Optimiser, TrainingModel, training_memory
from rightsizer.catalog import priced_regions
from rightsizer.terminal.advise_page import page


def text_of(described: dict[str, Any], width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(page(advise(described), width))
    return out.getvalue()


@pytest.mark.parametrize("name", ["xgboost", "XGBoost", "random forest", "k-means", "xgboost-churn"])
def test_the_name_of_an_algorithm_is_enough(name: str) -> None:
    served = advise({"task": "real-time", "model": {"name": name}, "traffic": {"requests_per_second": 3}})
    trained = advise({"task": "training", "model": {"name": name}, "data": {"size_gib": 2}})
    assert served.contradictions == trained.contradictions == ()
    assert served.options[0].hardware is not None
    assert trained.options[0].hardware is not None
    assert served.options[0].hardware.is_cpu
    assert trained.options[0].hardware.is_cpu


@pytest.mark.parametrize("name", ["gpt-4o", "claude-3-opus", "gemini-1.5-pro"])
def test_a_model_that_only_its_vendor_serves_is_named(name: str) -> None:
    (said,) = advise({"task": "real-time", "model": {"name": name}}).contradictions
    assert f"the weights of {name} are not published" in said


def test_a_peak_below_the_mean_is_named_and_the_larger_one_is_sized_for() -> None:
    described = {"task": "real-time", "model": {"name": "llama-3-8b"}}
    low = advise({**described, "traffic": {"requests_per_second": 5, "peak_requests_per_second": 1}})
    assert "below the mean rate" in low.contradictions[0]
    assert low.options[0] == advise({**described, "traffic": {"requests_per_second": 5}}).options[0]


def test_a_fleet_of_many_instances_is_measured_before_it_is_bought() -> None:
    described = {"task": "real-time", "model": {"name": "llama-3-8b"}, "traffic": {"requests_per_second": 5000}}
    first = advise(described).options[0]
    assert (first.count > 10, first.action) == (True, Action.TEST)


def test_serverless_is_not_advised_where_a_cpu_misses_the_objective() -> None:
    model = {"kind": "transformer", "parameters": 33e6}
    limits = {"objectives": {"p95_ms": 20}, "constraints": {"no_gpu": True}, "ask": ["serverless", "lambda"]}
    answer = advise({"task": "real-time", "model": model, "traffic": {"requests_per_second": 50}, **limits})
    assert answer.options == ()
    asked = {each.subject: each.reason.text for each in answer.refused if each.subject in ("serverless", "lambda")}
    assert all("six vCPUs take" in text and "the objective is 20 ms" in text for text in asked.values())
    assert len(asked) == 2
    busy = {"task": "real-time", "model": {"kind": "classical"}, "traffic": {"requests_per_second": 900}}
    refused = advise({**busy, "data": {"seconds_per_request": 0.5}, "ask": ["serverless"]}).refused
    assert "answers 200 requests at once, the peak has 450" in refused[0].reason.text


def test_the_reason_of_a_family_is_that_of_its_largest_size_and_the_same_reason_stands_once() -> None:
    answer = advise({"task": "real-time", "model": {"kind": "llm", "parameters": 5e12}})
    texts = {each.subject: each.reason.text for each in answer.refused}
    assert "ml.g5.48xlarge offers 8 x 22 GiB usable on A10G, the model needs" in texts["ml.g5.48xlarge"]
    assert "several hosts" in answer.contradictions[0]
    page_text = text_of({"task": "real-time", "model": {"name": "llama-3-8b"}, "objectives": {"p95_ms": 1}})
    assert page_text.count("misses the objective even at the hopeful end") == 1


@pytest.mark.parametrize("shape", ["steady", "fluctuating", "spiky", "unknown"])
def test_the_second_instance_of_production_is_said_whatever_is_bought(shape: str) -> None:
    traffic = {"requests_per_second": 0.5, "shape": shape}
    described = {"task": "real-time", "model": {"name": "llama-3-8b"}, "traffic": traffic}
    shown = text_of(described)
    first = advise(described).options[0]
    twice = 2 * float(first.cost.usd_per_month or 0)
    assert f"Safer:   2 x {first.instance_type}, USD {twice:,.2f} a month" in shown


def test_scaling_to_zero_can_be_told_from_an_endpoint_that_always_runs() -> None:
    traffic = {"requests_per_month": 60, "shape": "intermittent"}
    described = {"task": "real-time", "model": {"kind": "deep-learning", "memory_gib": 3}, "traffic": traffic}
    options = [each for each in advise(described).options if each.hosting is Hosting.REALTIME]
    cheap = next(each for each in options if each.purchase is Purchase.AUTOSCALE)
    assert "scales to zero" in cheap.words


def test_a_batch_takes_as_many_instances_as_its_deadline_asks_for() -> None:
    described = {"task": "batch-inference", "model": {"name": "bert-base"}, "traffic": {"requests_per_month": 2e7}}
    free = advise(described).options[0]
    bound = advise({**described, "objectives": {"deadline_hours": 2}}).options[0]
    assert (free.count, bound.count > 1) == (1, True)
    assert bound.cost.usd_per_run == free.cost.usd_per_run
    assert any("within the deadline of 2 h" in each.text for each in bound.reasons)
    assert any(each.name == "duration of a run" for each in bound.estimates)


def test_a_deadline_that_nothing_meets_is_named_first() -> None:
    training = {"task": "training", "model": {"name": "llama-3-8b"}, "data": {"tokens": 1e13}}
    answer = advise({**training, "objectives": {"deadline_hours": 5}})
    assert any(each.startswith("objectives.deadline_hours is 5") for each in answer.contradictions)


def test_data_beyond_the_largest_host_are_spread_and_below_it_they_need_not_be() -> None:
    small, middle, large = (
        advise({"task": "preprocessing", "data": {"size_gib": size}}).options for size in (20, 100, 200)
    )
    assert {each.count for each in small} == {1}
    assert (middle[0].count, middle[-1].count > 1) == (1, True)
    assert (large[0].count > 1, large[-1].count) == (True, 1)
    assert "S3 key" in large[0].words
    assert float(large[0].cost.usd_per_hour or 0) < float(large[-1].cost.usd_per_hour or 0)
    huge = advise({"task": "preprocessing", "data": {"size_gib": 200_000}}).options[0]
    assert "several jobs" in huge.words


def test_an_optimiser_of_eight_bits_takes_ten_bytes_a_parameter() -> None:
    whole = {each: training_memory(TrainingModel(1e9, optimiser=each)).states_gib * 2**30 / 1e9 for each in Optimiser}
    assert whole == {Optimiser.ADAMW: pytest.approx(16), Optimiser.ADAMW_8BIT: pytest.approx(10)}
    model = {"name": "llama-3-8b", "optimiser": "adamw-8bit"}
    answer = advise({"task": "fine-tuning", "model": model, "ask": ["ml.g7e.2xlarge", "ml.g6e.xlarge"]})
    refused = {each.subject for each in answer.refused}
    assert "ml.g6e.xlarge" in refused
    assert "ml.g7e.2xlarge" not in refused
    assert "rule M10" in answer.words


def test_a_type_without_a_price_is_named_with_where_one_can_be_had() -> None:
    described = {"task": "real-time", "model": {"name": "llama-3.1-405b"}, "objectives": {"goal": "cost"}}
    (found,) = [each for each in advise(described).refused if each.subject == "ml.trn2.48xlarge"]
    assert "SearchTrainingPlanOfferings" in found.reason.text
    assert "USD" not in found.reason.text
    compared = advise({**described, "compare": ["ml.p5.48xlarge", "ml.trn2.48xlarge"]}).words
    assert "ml.trn2.48xlarge has no On-Demand price" in compared
    small = advise({"task": "real-time", "model": {"name": "mistral-7b"}, "objectives": {"goal": "cost"}})
    assert "ml.trn2.48xlarge" not in small.words


def test_no_region_prices_a_family_that_is_said_to_have_no_price() -> None:
    families = {each.family for each in known_types()} & NO_ON_DEMAND
    priced = {
        each.family for region in priced_regions() for each in known_types() if each.name in snapshot(region).prices
    }
    assert families == NO_ON_DEMAND
    assert not families & priced


def test_amounts_can_be_read() -> None:
    tiny = {"kind": "classical", "memory_gib": 0.01}
    shown = text_of(
        {
            "task": "real-time",
            "model": tiny,
            "traffic": {"requests_per_month": 60},
            "data": {"seconds_per_request": 0.05},
        }
    )
    assert "less than USD 0.01 a month" in shown
    assert "e+0" not in shown
    assert all(line == line.rstrip() for line in shown.splitlines() if line.startswith("  - "))
