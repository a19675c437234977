"""What a server that fills its card needs, where detailed observability shows how much of its KV cache is in use."""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.demand import MemoryClass, MemoryNeed
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.history import History
from rightsizer.domain.option import Risk, RiskResource
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import DailyUsage, MetricWindow, Series
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import demand_of
from rightsizer.recommender.each_gpu import add_kv_cache
from rightsizer.recommender.finding import outgrown_reason
from rightsizer.recommender.fit import memory_need, pool_refusal
from rightsizer.recommender.packing import needs_of
from rightsizer.recommender.pricing import memory_risk
from tests.recommender import kit
from tests.recommender.kit import judge

GIB = 1024**3
HOME, SMALL = "ml.g6e.xlarge", "ml.g5.xlarge"
TYPES = kit.catalogue().types
MARGIN = 1.03 + 0.12 / math.sqrt(14)


def window(share: float | Callable[[int], float] | None, memory: float = 90.0, days: int = 14) -> MetricWindow:
    """A vLLM server on one L40S (44.7 GiB) that holds `memory` % of it, with that share of its pool in use."""
    made = kit.window(kit.steady(gpu=20.0, memory=memory, swing=0.0), days)
    if share is None:
        return made
    values = array("d", [share(i) if callable(share) else share for i in range(days * 288)])
    return replace(made, kv_cache=Series(made.start, made.period_s, values))


def digests(made: MetricWindow) -> list[DailyUsage]:
    return [add_kv_cache(d, made, None) for d in daily_usage(made, VariantSetup(TYPES[HOME], 1))]


def need(days: Sequence[DailyUsage], weights_gib: float | None = 10.0, framework: str = "vllm") -> MemoryNeed:
    size = None if weights_gib is None else int(weights_gib / 1.2 * GIB)
    return memory_need(days, kit.catalogue(), Policy(), framework, size)


def judged(made: MetricWindow, weights_gib: float = 8.0) -> Recommendation:
    endpoint = replace(
        kit.endpoint(HOME, 1, Mode.AUTO, 60.0, framework="vllm"), model_data_bytes=int(weights_gib * GIB)
    )
    return judge(endpoint, [made], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def test_the_need_is_weights_and_the_part_of_the_pool_that_was_in_use() -> None:
    found = need(digests(window(0.2)))
    held = 0.9 * 44.7
    assert found.kind is MemoryClass.PREALLOCATED
    assert found.pool is not None
    assert found.pool.gib == pytest.approx(held - 10.0)
    assert found.peak_gib == pytest.approx(10.0 + 0.2 * (held - 10.0))
    assert found.lower_gib == pytest.approx(10.0)


def test_the_server_takes_its_share_of_the_smaller_card_too() -> None:
    found = need(digests(window(0.2)))
    assert found.need_gib == pytest.approx(found.peak_gib / 0.9 * MARGIN)


def test_the_fullest_five_minutes_of_all_days_count() -> None:
    once = need(digests(window(lambda i: 0.6 if i == 5 * 288 + 7 else 0.1)))
    assert once.pool is not None
    assert once.pool.used == 0.6


def test_a_pool_that_fills_from_day_to_day_is_a_growing_need() -> None:
    found, level = need(digests(window(lambda i: 0.05 + 0.02 * (i // 288)))), need(digests(window(0.31)))
    assert found.growing
    assert found.need_gib is not None
    assert level.need_gib is not None
    assert found.need_gib > level.need_gib + 5


@pytest.mark.parametrize("weights_gib", [None, 41.0])
def test_without_known_weights_nothing_is_lowered(weights_gib: float | None) -> None:
    """41 GiB of weights in a card of which 40.2 GiB are held: what S3 lists is not what was loaded."""
    assert need(digests(window(0.2)), weights_gib).need_gib is None


def test_one_day_without_the_cache_undoes_all() -> None:
    days = digests(window(0.2))
    days[3] = replace(days[3], kv_cache=None)
    assert need(days).need_gib is None


def test_a_pool_that_was_nearly_never_in_use_when_it_was_looked_at_tells_nothing() -> None:
    """Three requests an hour of a few seconds fall between two scrapes of a minute."""
    assert need(digests(window(lambda i: 0.3 if i % 288 < 10 else 0.0))).need_gib is None
    assert need(digests(window(lambda i: 0.3 if i % 288 < 20 else 0.0))).need_gib is not None
    assert need(digests(window(0.0))).need_gib is None


def test_on_several_gpus_it_is_not_known_what_one_of_them_holds() -> None:
    days = [replace(d, gpus=4) for d in digests(window(0.2))]
    found = need(days, 140.0)
    assert found.need_gib is None
    assert found.lower_gib == pytest.approx(35.0), "a model over all four: none holds all of it"


def test_a_server_that_fills_no_card_is_judged_by_what_it_holds() -> None:
    found = need(digests(window(0.2, memory=30.0)), framework="pytorch")
    assert found.pool is None
    assert found.kind is MemoryClass.STATIC


@pytest.mark.parametrize(("hours", "seen"), [(4, True), (6, False)])
def test_a_day_counts_where_four_fifths_of_it_were_seen(hours: int, seen: bool) -> None:
    (day,) = digests(window(lambda i: math.nan if i < 12 * hours else 0.2, days=1))
    assert (day.kv_cache is not None) is seen


def test_datapoints_before_the_configuration_are_left_out() -> None:
    made = window(lambda i: 0.9 if i < 144 else 0.2, days=1)
    (day,) = daily_usage(made, VariantSetup(TYPES[HOME], 1))
    found = add_kv_cache(day, made, kit.NOW - timedelta(hours=12)).kv_cache
    assert found is not None
    assert found.peak == 0.2


def test_no_start_on_a_smaller_card_has_shown_it_yet() -> None:
    days = digests(window(0.01))
    demand = demand_of(days, days, TYPES[HOME], need(days, 2.0), Policy())
    assert memory_risk(TYPES[HOME], TYPES[SMALL], demand, started=False) is Risk.MEDIUM
    assert memory_risk(TYPES[HOME], TYPES[SMALL], demand, started=True) is Risk.VERY_LOW


def test_a_server_that_fills_a_card_shares_none() -> None:
    days = digests(window(0.01))
    demand = demand_of(days, days, TYPES[HOME], need(days, 2.0), Policy())
    found = needs_of(TYPES[HOME], 1, demand, "vllm", Policy())
    assert getattr(found, "code", None) is Code.UNKNOWN_MEMORY_NEED


def test_a_pool_that_fills_on_our_smaller_card_is_no_reason_to_leave_it() -> None:
    """Late requests are, and they are counted."""
    days = [replace(d, instance_type=SMALL) for d in digests(window(1.0))]
    found = need(days, 10.0)
    assert found.need_gib is not None
    assert found.need_gib > 22
    assert outgrown_reason(TYPES[SMALL], TYPES[HOME], found) is None


def test_requests_that_take_longer_need_more_of_the_pool() -> None:
    found = need(digests(window(0.1)))
    assert found.need_gib is not None
    assert found.pool is not None
    usable = 22.0
    assert found.need_gib < usable
    assert pool_refusal(TYPES[HOME], TYPES[SMALL], found, 1.0) is None
    extra = found.pool.gib * 0.1 * MARGIN / 0.9
    most = 1 + (usable - found.need_gib) / extra
    assert pool_refusal(TYPES[HOME], TYPES[SMALL], found, most - 0.01) is None
    refused = pool_refusal(TYPES[HOME], TYPES[SMALL], found, most + 0.01)
    assert refused is not None
    assert refused.code is Code.MEMORY_TOO_SMALL
    assert pool_refusal(TYPES[HOME], TYPES["ml.p5.4xlarge"], found, 9.0) is None


def test_the_option_needs_no_test_of_the_memory_but_a_person() -> None:
    before, found = judged(window(None)), judged(window(0.02))
    assert before.chosen_option is not None
    assert before.chosen_option.untested_risk is Risk.HIGH
    assert found.chosen_option is not None
    assert found.chosen_option.risks[RiskResource.GPU_MEMORY] is Risk.MEDIUM
    assert any("prefixes" in said for said in found.chosen_option.not_checked)
    assert not any("the server pre-allocates" in said for said in found.not_checked)


def test_the_evidence_names_the_rung_and_the_figures() -> None:
    evidence = judged(window(0.02)).evidence
    assert evidence is not None
    assert evidence.rung == "L3"
    assert evidence.figures["KV cache"] == "at most 2 % of 30.6 GiB in use"
    assert evidence.figures["model weights"] == "9.6 GiB"
    assert evidence.figures["GPU memory"] == "pre-allocated, peak 40.2 GiB per GPU"
    plain = judged(window(None)).evidence
    assert plain is not None
    assert plain.rung == "L1"
    assert "KV cache" not in plain.figures


@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    weights=st.floats(0.1, 60.0),
    memory=st.floats(81.0, 100.0),
)
def test_the_need_lies_between_the_weights_and_the_card_with_margin(
    shares: list[float], weights: float, memory: float
) -> None:
    found = need(digests(window(lambda i: shares[i // 288], memory, days=3)), weights)
    if found.need_gib is None:
        assert weights >= memory / 100 * 44.7 - 0.001 or max(shares) < 0.0001
        return
    assert weights - 0.001 <= found.need_gib
    assert found.growing or found.need_gib <= 44.7 * found.margin + 0.001
    assert weights - 0.001 <= found.peak_gib <= memory / 100 * 44.7 + 0.001
