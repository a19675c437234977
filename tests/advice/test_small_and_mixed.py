"""Mixtures of experts that are known by sizes alone, and networks too small for a GPU."""

from typing import Any

import pytest

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Action, Advice, HardwareClass, Purchase
from rightsizer.advice.describe import workload_of
from rightsizer.advice.models import active_in_name, architectures, estimated_architecture, names_a_mixture
from rightsizer.errors import InputError


def served(model: dict[str, Any]) -> Advice:
    return advise({"task": "real-time", "model": {"kind": "llm", **model}, "traffic": {"requests_per_second": 1}})


def speed(answer: Advice, kind: str = "ml.g6e.12xlarge") -> tuple[float, float, float]:
    """Tokens a second of one instance of the type."""
    option = next(each for each in answer.options if each.instance_type == kind)
    made = next(each.interval for each in option.estimates if each.name.startswith("tokens a second"))
    return made.low, made.middle, made.high


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("Qwen/Qwen3-30B-A3B", 3e9),
        ("nvidia/Nano-30B-A3.5B-FP8", 3.5e9),
        ("x/Scout-17B-16E", 17e9),
        ("llama-3-8b", None),
        ("mixtral-8x7b", None),
        ("some-a3b", None),
    ],
)
def test_active_parameters_in_a_name(name: str, active: float | None) -> None:
    assert active_in_name(name) == active


@pytest.mark.parametrize(
    ("name", "is_one"), [("a/b-8x3b", True), ("a/olmoe-7b", False), ("x/moe-7b", True), ("x-7b", False)]
)
def test_a_mixture_by_its_name(name: str, is_one: bool) -> None:
    assert names_a_mixture(name) is is_one


@pytest.mark.parametrize(
    ("parameters", "active"), [(30.5e9, 3.3e9), (235e9, 22e9), (671e9, 37e9), (109e9, 17e9), (21e9, 3.6e9)]
)
def test_an_estimated_mixture_has_the_sizes_that_were_given(parameters: float, active: float) -> None:
    made = estimated_architecture(parameters, active)
    assert made.parameters == pytest.approx(parameters, rel=0.1)
    assert made.parameters_used == pytest.approx(active, rel=0.2)
    assert "experts" in made.name


def test_a_known_mixture_comes_near_its_estimate() -> None:
    known = architectures()["mixtral-8x7b"]
    made = estimated_architecture(known.parameters, known.parameters_used)
    assert made.parameters_used == pytest.approx(known.parameters_used, rel=0.2)


def test_active_parameters_make_a_mixture_faster_and_not_smaller() -> None:
    dense, mixed = served({"parameters": 40e9}), served({"parameters": 40e9, "active_parameters": 4e9})
    assert speed(mixed)[1] > 1.3 * speed(dense)[1]
    weights = [each.options[0].memory.parts[0] for each in (dense, mixed) if each.options[0].memory]
    assert weights[0] == weights[1]
    assert "a token passes 4 of 40 billion parameters" in mixed.words


def test_the_interval_is_wider_where_only_sizes_are_known_and_widest_where_nobody_knows_the_active_ones() -> None:
    dense, mixed = served({"parameters": 40e9}), served({"parameters": 40e9, "active_parameters": 4e9})
    unknown = served({"name": "someone/secret-moe-40b", "parameters": 40e9})
    widths = [high / low for low, _, high in (speed(dense), speed(mixed), speed(unknown))]
    assert widths[0] < widths[1] < widths[2]
    assert "give model.active_parameters" in unknown.words


def test_more_active_parameters_than_parameters_are_refused() -> None:
    with pytest.raises(InputError, match=r"active_parameters is 9e\+09, more than 8e\+09"):
        workload_of({"task": "real-time", "model": {"kind": "llm", "parameters": 8e9, "active_parameters": 9e9}})


TINY = [
    {"framework": "DeepAR"},
    {"framework": "blazing-text"},
    {"kind": "deep-learning", "parameters": 3e5, "framework": "pytorch"},
    {"kind": "vision", "parameters": 1.2e6},
    {"kind": "vision", "parameters": 6e4, "gflop": 0.001},
]
LARGE = [
    {"name": "resnet-18"},
    {"kind": "vision", "parameters": 1.5e6, "gflop": 0.6},
    {"kind": "deep-learning", "parameters": 5e7},
]


@pytest.mark.parametrize("model", TINY)
def test_a_tiny_network_trains_on_cpu_and_may_be_held_against_a_gpu(model: dict[str, Any]) -> None:
    options = advise({"task": "training", "model": model, "data": {"size_gib": 1}}).options
    assert options[0].hardware in (HardwareClass.CPU_COMP, HardwareClass.CPU_GEN)
    assert any("rule C11" in each.source for each in options[0].reasons)
    assert HardwareClass.GPU_G in [each.hardware for each in options]
    fast = advise({"task": "training", "model": model, "objectives": {"goal": "performance"}}).options
    assert fast[0].hardware in (HardwareClass.GPU_G, HardwareClass.GPU_P)


@pytest.mark.parametrize("model", LARGE)
def test_a_network_with_arithmetic_trains_on_a_gpu(model: dict[str, Any]) -> None:
    assert advise({"task": "training", "model": model}).options[0].hardware is HardwareClass.GPU_G


@pytest.mark.parametrize(
    ("framework", "trains", "answers"),
    [
        ("DeepAR", "CPU", "CPU"),
        ("object2vec", "CPU", "GPU"),
        ("ntm", "GPU", "CPU"),
        ("ip-insights", "GPU", "CPU"),
        ("autogluon", "GPU", "CPU"),
        ("k-NN", "CPU", "CPU"),
        ("seq2seq", "GPU", "GPU"),
    ],
)
def test_an_algorithm_of_sagemaker_runs_where_its_page_says(framework: str, trains: str, answers: str) -> None:
    for task, wanted in (("training", trains), ("real-time", answers)):
        first = advise({"task": task, "model": {"framework": framework}}).options[0]
        assert first.hardware is not None
        assert first.hardware.value.startswith(wanted), task
        assert first.action is not Action.UNKNOWN


def test_a_job_on_cpu_that_writes_checkpoints_runs_on_managed_spot() -> None:
    described = {"task": "training", "model": {"framework": "xgboost"}, "data": {"size_gib": 5, "known_hours": 2}}
    safe = advise({**described, "constraints": {"checkpoints": True}}).options[0]
    plain = advise(described).options[0]
    assert (safe.purchase, plain.purchase) == (Purchase.SPOT, Purchase.ON_DEMAND)
    assert safe.instance_type == plain.instance_type
    assert safe.cost.usd_per_run is not None
    assert plain.cost.usd_per_run is not None
    assert safe.cost.usd_per_run.middle < 0.5 * plain.cost.usd_per_run.middle
    assert not any("Trainium types is scarce" in each.text for each in safe.reasons)
    assert advise({"task": "preprocessing", "data": {"size_gib": 5}}).options[0].purchase is Purchase.ON_DEMAND


def test_a_type_that_joins_others_is_not_refused_because_one_of_it_is_too_small() -> None:
    described = {"task": "training", "model": {"name": "llama-2-70b"}, "ask": ["ml.trn1.32xlarge", "ml.g5.48xlarge"]}
    assert [each.subject for each in advise(described).refused if each.subject.startswith("ml.trn1.32")] == []
    assert "ml.g5.48xlarge" in [each.subject for each in advise(described).refused]


def test_an_encoder_with_a_loose_objective_answers_from_the_cheapest_cpu_that_surely_keeps_it() -> None:
    described = {"task": "real-time", "model": {"name": "bert-base"}, "traffic": {"requests_per_second": 0.5}}
    loose = advise({**described, "objectives": {"p95_ms": 2000}}).options[0]
    assert loose.hardware is HardwareClass.CPU_COMP
    took = next(each.interval for each in loose.estimates if each.name == "time of one request")
    assert took.high <= 2
    assert advise({**described, "objectives": {"p95_ms": 100}}).options[0].hardware is HardwareClass.GPU_G
    short = {**described, "model": {"name": "bert-base", "tokens_in": 64}}
    assert "an assumed p95 of 1000 ms" in advise(short).options[0].words


def test_sleep_is_noted_only_where_the_slow_end_of_a_cold_start_is_allowed() -> None:
    described = {"task": "real-time", "model": {"name": "llama-3-8b"}, "traffic": {"requests_per_second": 1}}
    patient = {**described, "objectives": {"first_token_ms": 3_600_000}}
    assert "giving the instance back pays" in advise(patient).words
    hurried = {**described, "objectives": {"first_token_ms": 500_000}}
    assert "giving the instance back pays" not in advise(hurried).words, "the middle of the start would do, not its end"
