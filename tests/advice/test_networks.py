"""Vision, speech and diffusion models that are known by name, and what follows from their operations."""

import pytest

from rightsizer import catalog
from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Action, HardwareClass
from rightsizer.advice.describe import workload_of
from rightsizer.advice.memory import Precision
from rightsizer.advice.models import architectures, find_architecture, find_network, networks
from rightsizer.advice.workload import ModelKind
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Catalogue
from scripts.advise_deviation import network_deviations, share_inside


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("resnet50", "resnet-50"),
        ("microsoft/resnet-50", "resnet-50"),
        ("google/vit-base-patch16-224", "vit-base-patch16-224"),
        ("openai/whisper-large", "whisper-large"),
        ("YOLOv8n", "yolov8n"),
        ("stable-diffusion-1.5", "stable-diffusion-1.5"),
        ("stabilityai/stable-diffusion-2-1-base", "stable-diffusion-2-1"),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8", "llama-4-maverick-17b-128e-instruct"),
    ],
)
def test_a_network_is_found_as_people_write_it(name: str, known: str) -> None:
    found = find_network(name)
    assert found is not None
    assert found.name == known


@pytest.mark.parametrize(
    ("name", "known", "precision"),
    [
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen2.5-72b", Precision.INT4),
        ("TheBloke/Llama-2-13B-chat-GPTQ", "llama-2-13b", Precision.INT4),
        ("unsloth/Llama-3.3-70B-Instruct-bnb-4bit", "llama-3-70b", Precision.INT4),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "llama-3-70b", Precision.INT8),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3-70b", Precision.FP8),
        ("distilbert-base-uncased-finetuned-sst-2-english", "distilbert-base", Precision.BF16),
        ("BAAI/bge-reranker-base", "xlm-roberta-base", Precision.BF16),
        ("roberta-base", "roberta-base", Precision.BF16),
    ],
)
def test_a_repository_tells_architecture_and_precision(name: str, known: str, precision: Precision) -> None:
    model = workload_of({"task": "real-time", "model": {"name": name}}).model
    assert model.architecture is not None
    assert model.architecture.name == known
    assert model.precision is precision


def test_weights_that_are_published_in_few_bits_are_served_in_them_and_trained_in_sixteen() -> None:
    described = {"task": "real-time", "model": {"name": "openai/gpt-oss-120b"}}
    answer = advise(described)
    assert "weights of openai/gpt-oss-120b are counted in int4, as they are published" in answer.words
    assert answer.options[0].accelerators == 1, "one card of 96 GB holds it"
    assert workload_of({**described, "task": "fine-tuning"}).model.precision is Precision.BF16
    given = {"task": "real-time", "model": {"name": "openai/gpt-oss-120b", "precision": "bf16"}}
    assert workload_of(given).model.precision is Precision.BF16


@pytest.mark.parametrize("name", ["awq", "llama", "base", "-fp8", "///", "ラマ-3", " "])
def test_a_name_that_tells_nothing_is_no_model(name: str) -> None:
    assert find_network(name) is None
    assert find_architecture(name) is None


def test_no_name_means_two_models_and_each_has_a_source() -> None:
    assert not set(networks()) & set(architectures())
    assert all(each.url.startswith("https://") and each.parameters > 1e6 for each in networks().values())
    assert all(each.item for each in networks().values() if each.gflop)
    assert find_network("resnet") is None
    assert find_network("resnet-500") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [("llama-3-8b", ModelKind.LLM), ("bert-base", ModelKind.TRANSFORMER), ("resnet-50", ModelKind.VISION)],
)
def test_the_kind_of_a_known_model_need_not_be_said(name: str, kind: ModelKind) -> None:
    assert workload_of({"task": "real-time", "model": {"name": name}}).model.kind is kind


def test_a_known_language_model_without_its_kind_gets_the_same_answer_as_with_it() -> None:
    short = {"task": "real-time", "model": {"name": "llama-3-8b"}, "traffic": {"requests_per_second": 2}}
    assert advise(short) == advise({**short, "model": {"name": "llama-3-8b", "kind": "llm"}})


def test_a_kind_that_the_name_contradicts_is_a_contradiction() -> None:
    answer = advise({"task": "real-time", "model": {"name": "llama-3-8b", "kind": "vision"}})
    assert "model.kind says vision, and llama-3-8b is of kind llm" in answer.contradictions


def test_an_unknown_name_is_told_with_those_that_are_near() -> None:
    answer = advise({"task": "real-time", "model": {"name": "reznet50"}})
    assert answer.contradictions[0].startswith("model.name 'reznet50' is no known model")
    assert "resnet-50" in answer.contradictions[0]


def test_a_vision_network_gets_requests_a_second_and_latency_on_a_gpu_and_on_a_cpu() -> None:
    answer = advise(
        {
            "task": "real-time",
            "model": {"name": "resnet-50"},
            "traffic": {"requests_per_second": 20},
            "objectives": {"p95_ms": 300},
        }
    )
    gpu = next(each for each in answer.options if each.hardware and each.hardware.value == "GPU-G")
    cpu = next(each for each in answer.options if each.hardware and each.hardware.is_cpu)
    for option, least, most in ((gpu, 150, 4000), (cpu, 3, 100)):
        rate = next(each.interval for each in option.estimates if each.name.startswith("requests a second"))
        assert least < rate.low < rate.middle < rate.high < most
        assert next(each.interval for each in option.estimates if each.name == "time of one request").middle < 0.3
    assert gpu.count == 1
    assert cpu.count > 1, "a CPU of four threads answers a dozen images a second"


def test_a_cpu_that_misses_the_objective_even_at_best_is_no_option() -> None:
    described = {"task": "real-time", "model": {"name": "yolov8x"}, "objectives": {"p95_ms": 50}}
    options = advise(described).options
    assert options
    assert all(each.hardware and not each.hardware.is_cpu for each in options), "nor a serverless endpoint"


def test_a_small_network_on_a_fast_gpu_is_bound_by_the_host_that_decodes_its_images() -> None:
    described = {"task": "batch-inference", "model": {"name": "resnet-18"}, "data": {"size_gib": 50}}
    first = advise(described).options[0]
    assert first.instance_type == "ml.g4dn.xlarge", "a faster GPU would wait for the same four vCPUs"
    rate = next(each.interval for each in first.estimates if each.name.startswith("requests a second"))
    assert (rate.low, rate.middle) == (200, 1000)
    assert "4 vCPUs decode 200 to 1000 images a second" in rate.reasons[-1]
    given = advise({**described, "model": {"kind": "deep-learning", "parameters": 11.69e6, "gflop": 3.64}})
    assert "vCPUs decode" not in given.words, "only images are decoded"


def test_operations_of_an_unknown_network_can_be_given() -> None:
    described = {"task": "real-time", "model": {"kind": "vision", "parameters": 25.56e6, "gflop": 8.22}}
    known = {"task": "real-time", "model": {"name": "resnet-50"}}
    assert [each.estimates for each in advise(described).options] == [each.estimates for each in advise(known).options]


def test_published_figures_of_vision_networks_lie_inside_the_interval() -> None:
    chips = {each.accelerator.model: each.accelerator for each in _types() if each.accelerator}
    rows = network_deviations(chips)
    assert len(rows) >= 12
    assert share_inside(rows) >= 0.8


def _types() -> Catalogue:
    return catalogue(catalog.instances(), catalog.accelerators())


def test_a_cpu_that_keeps_the_objective_even_at_the_cautious_end_comes_first_by_its_price() -> None:
    described = {"task": "real-time", "model": {"name": "resnet-50"}, "traffic": {"requests_per_second": 0.5}}
    loose, tight = ({**described, "objectives": {"p95_ms": ms}} for ms in (500, 120))
    first, second = advise(loose).options[0], advise(tight).options[0]
    assert first.hardware
    assert first.hardware.is_cpu
    assert first.action is Action.TEST, "a CPU is measured before anybody relies on it"
    assert second.hardware is HardwareClass.GPU_G
