"""Memory arithmetic: by hand, against published figures, and what sharding must not do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.advice.memory import (
    Method,
    Precision,
    Sharding,
    TrainingModel,
    kv_bytes_per_token,
    serving_memory,
    tokens_that_fit,
    training_memory,
    weights_gib,
)
from rightsizer.advice.models import architectures, estimated_architecture, find_architecture
from rightsizer.errors import InputError
from scripts.advise_deviation import median_error, memory_deviations


def test_7_billion_parameters_in_16_bits_do_not_fit_a_t4() -> None:
    memory = serving_memory(7e9, Precision.FP16)
    assert memory.total_gib == pytest.approx(15.6, abs=0.05)
    assert weights_gib(7e9, Precision.INT4) == pytest.approx(3.26, abs=0.01)


def test_grouped_queries_shrink_the_kv_cache() -> None:
    llama_2, llama_3 = architectures()["llama-2-7b"], architectures()["llama-3-8b"]
    assert kv_bytes_per_token(llama_2) == 2 * 32 * 32 * 128 * 2
    assert kv_bytes_per_token(llama_2) == 4 * kv_bytes_per_token(llama_3)
    assert kv_bytes_per_token(llama_3, Precision.FP8) == kv_bytes_per_token(llama_3) / 2
    assert kv_bytes_per_token(architectures()["bert-base"]) == 0


def test_the_parameter_count_follows_from_the_configuration() -> None:
    for shape in architectures().values():
        assert shape.parameters == pytest.approx(shape.published_parameters, rel=0.02), shape.name
    mixture = architectures()["mixtral-8x7b"]
    assert mixture.parameters_used < mixture.parameters / 3


def test_full_training_in_mixed_precision_takes_16_bytes_a_parameter() -> None:
    memory = training_memory(TrainingModel(13e9))
    assert memory.states_gib == pytest.approx(13e9 * 16 / 2**30)


@pytest.mark.parametrize(("stage", "published"), [(0, 120e9), (1, 31.4e9), (2, 16.6e9), (3, 1.9e9)])
def test_the_stages_of_zero_give_the_figures_of_the_paper(stage: int, published: float) -> None:
    memory = training_memory(TrainingModel(7.5e9), Sharding(stage, 64))
    assert memory.states_gib * 2**30 == pytest.approx(published, rel=0.02)


def test_adapters_need_little_more_than_the_weights() -> None:
    shape = architectures()["llama-3-8b"]
    full, lora, qlora = (
        training_memory(TrainingModel(shape.parameters, method, architecture=shape)).total_gib for method in Method
    )
    assert qlora < lora / 2 < full / 12


def test_without_recomputation_activations_grow() -> None:
    shape = architectures()["llama-3-8b"]
    lean = training_memory(TrainingModel(8e9, architecture=shape))
    kept = training_memory(TrainingModel(8e9, architecture=shape, recompute=False))
    assert kept.activations_gib > 3 * lean.activations_gib


@given(st.floats(1e6, 1e12), st.sampled_from([0, 1, 2, 3]), st.integers(1, 512), st.integers(1, 8))
def test_more_devices_never_need_more_on_each(parameters: float, stage: int, devices: int, tensor: int) -> None:
    model = TrainingModel(parameters)
    fewer = training_memory(model, Sharding(stage, devices, tensor))
    more = training_memory(model, Sharding(stage, devices + 1, tensor))
    assert 0 < more.total_gib <= fewer.total_gib


def test_no_tokens_fit_where_the_weights_do_not() -> None:
    memory = serving_memory(70e9, Precision.FP16)
    assert tokens_that_fit(79.0, memory, 327_680) == 0
    assert tokens_that_fit(320.0, memory, 327_680) > 100_000


def test_a_sharding_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="stage"):
        Sharding(4)


def test_names_of_models_are_found_as_people_write_them() -> None:
    found = find_architecture("meta-llama/Llama-3.1-8B-Instruct")
    assert found is not None
    assert found.name == "llama-3-8b"
    assert find_architecture("Qwen/Qwen2.5-7B-Instruct") is architectures()["qwen2.5-7b"]
    assert find_architecture("gpt-9") is None


@given(st.floats(1e5, 1e13))
def test_an_estimated_architecture_has_about_the_parameters(parameters: float) -> None:
    shape = estimated_architecture(parameters)
    assert shape.name.startswith("estimated from")
    if parameters > 1e9:
        assert shape.parameters == pytest.approx(parameters, rel=0.35)


def test_the_median_error_of_memory_is_at_most_10_percent() -> None:
    rows = memory_deviations()
    figures = [row for row in rows if row.what != "weights in 16 bits"]
    assert len(rows) - len(figures) >= 25
    assert median_error(rows) <= 0.10
    assert median_error(figures) <= 0.10


def test_a_checkpoint_of_four_bits_keeps_its_embeddings_in_16() -> None:
    shape = find_architecture("Qwen/Qwen-72B-Chat-Int4")
    assert shape is not None
    assert shape.kv_heads == shape.heads == 64
    known = serving_memory(72.3e9, Precision.INT4, shape)
    assert known.weights_gib * 2**30 == pytest.approx(72.3e9 * 0.5 + 2 * 152064 * 8192 * 1.5)
    assert serving_memory(72.3e9, Precision.INT4).weights_gib * 2**30 == pytest.approx(72.3e9 * 0.5)
