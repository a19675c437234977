"""Vision, speech and diffusion models that are known by name, and what follows from their operations."""

import pytest

from rightsizer import catalog
from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Action, HardwareClass
from rightsizer.advice.describe import workload_of
from rightsizer.advice.deviation import network_deviations, share_inside
from rightsizer.advice.models import architectures, find_network, networks
from rightsizer.advice.workload import ModelKind
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Catalogue


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("resnet50", "resnet-50"),
        ("microsoft/resnet-50", "resnet-50"),
        ("google/vit-base-patch16-224", "vit-base-patch16-224"),
        ("openai/whisper-large", "whisper-large"),
        ("YOLOv8n", "yolov8n"),
        ("stable-diffusion-1.5", "stable-diffusion-1.5"),
    ],
)
def test_a_network_is_found_as_people_write_it(name: str, known: str) -> None:
    found = find_network(name)
    assert found is not None
    assert found.name == known


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
    for option, least, most in ((gpu, 400, 4000), (cpu, 3, 100)):
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
