"""The model of throughput: against published benchmarks, and how it must move with hardware and load."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.advice.memory import Precision
from rightsizer.advice.models import architectures
from rightsizer.advice.throughput import Interval, RequestLoad, Serving, Throughput, link_of, peak_flops, throughput
from rightsizer.domain.hardware import Accelerator
from scripts.advise_deviation import median_error, share_inside, throughput_deviations

type Chips = Mapping[str, Accelerator]


def run(
    chips: Chips, chip: str, load: RequestLoad, precision: Precision = Precision.BF16, by: int = 1
) -> Throughput | None:
    return throughput(Serving(architectures()["llama-3-8b"], chips[chip], by, precision), load)


def test_the_goals_hold_over_all_benchmarks(chips: Chips) -> None:
    rows = throughput_deviations(chips)
    assert median_error(rows) <= 0.30
    assert share_inside(rows) >= 0.80


def test_the_goals_hold_on_the_benchmarks_that_nothing_was_fitted_to(chips: Chips) -> None:
    rows = [row for row in throughput_deviations(chips) if row.held_out]
    assert len(rows) == 5
    assert median_error(rows) <= 0.30
    assert share_inside(rows) >= 0.80


def test_one_sequence_is_bound_by_bandwidth_and_many_by_compute(chips: Chips) -> None:
    one = run(chips, "A10G", RequestLoad(1, 256, 256))
    many = run(chips, "A100-SXM4-80GB", RequestLoad(300, 256, 256))
    assert one is not None
    assert many is not None
    assert (one.bound_by, many.bound_by) == ("bandwidth", "compute")


def test_memory_limits_the_batch_and_the_interval_says_so(chips: Chips) -> None:
    crowded = run(chips, "L4", RequestLoad(200, 2048, 512))
    assert crowded is not None
    assert crowded.bound_by == "memory"
    assert crowded.batch < 200
    assert any("of 200 sequences" in reason for reason in crowded.tokens_per_second.reasons)


def test_a_card_that_does_not_hold_the_model_serves_nothing(chips: Chips) -> None:
    assert run(chips, "T4", RequestLoad(1, 256, 256)) is None


def test_accelerators_without_nvlink_pay_for_each_layer(chips: Chips) -> None:
    one, four = run(chips, "A10G", RequestLoad(1, 256, 256)), run(chips, "A10G", RequestLoad(1, 256, 256), by=4)
    assert one is not None
    assert four is not None
    gain = four.tokens_per_second.middle / one.tokens_per_second.middle
    assert 1 < gain < 3
    assert link_of(chips["A10G"]) == "pcie"
    assert link_of(chips["H100-SXM-80GB"]) == "nvlink"


def test_8_bits_double_the_rate_only_where_the_chip_computes_in_them(chips: Chips) -> None:
    a100, l40s = chips["A100-SXM4-40GB"], chips["L40S"]
    assert peak_flops(a100, Precision.FP8) == peak_flops(a100, Precision.BF16)
    assert peak_flops(l40s, Precision.FP8) == 2 * peak_flops(l40s, Precision.BF16)
    assert peak_flops(l40s, Precision.INT4) < peak_flops(l40s, Precision.BF16)


@settings(max_examples=200)
@given(st.floats(1, 500), st.floats(1, 8000), st.floats(1, 4000))
def test_an_interval_holds_its_middle_and_more_at_once_never_generates_less(
    chips: Chips, concurrency: float, tokens_in: float, tokens_out: float
) -> None:
    fewer = run(chips, "H100-SXM-80GB", RequestLoad(concurrency, tokens_in, tokens_out))
    more = run(chips, "H100-SXM-80GB", RequestLoad(concurrency + 1, tokens_in, tokens_out))
    assert fewer is not None
    assert more is not None
    for figure in (fewer.tokens_per_second, fewer.first_token_s, fewer.seconds_per_token):
        assert 0 < figure.low < figure.middle < figure.high
        assert figure.reasons
    assert more.tokens_per_second.middle >= fewer.tokens_per_second.middle * 0.999


def test_the_inverse_of_an_interval_swaps_its_ends() -> None:
    assert Interval(1, 2, 4).inverse(8) == Interval(2, 4, 8)
