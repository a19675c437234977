"""Why a type cannot serve, each reason with its figures, and what GPU memory a model needs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.demand import Demand, KvPool, MemoryClass, MemoryNeed
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.usage import SLOTS, DailyUsage, EachGpu, Spread
from rightsizer.recommender.candidates import fit_chance
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.fit import CandidateLimits, fit_refusal, gpus_per_request, memory_need, pool_refusal
from rightsizer.recommender.recommend import add_daily_usage
from rightsizer.recommender.workload import evaluation_context
from tests.recommender import kit
from tests.recommender.plain import NEED, PRICE, card, demand, near

POLICY = Policy()
CATALOGUE = kit.catalogue(kit.OTHERS)
TYPES = CATALOGUE.types
FOUR, ONE, L4 = TYPES["ml.g5.12xlarge"], TYPES["ml.g5.xlarge"], TYPES["ml.g6.xlarge"]
LARGE, T4 = TYPES["ml.g6e.xlarge"], TYPES["ml.g4dn.xlarge"]
LIMITS = CandidateLimits(PRICE, None)
L4_CARD = card("ml.g6.xlarge")


def refused(
    candidate: InstanceType, load: Demand | None = None, now: InstanceType = LARGE, limits: CandidateLimits = LIMITS
) -> tuple[Code, str] | None:
    found = fit_refusal(now, candidate, load or demand(), limits)
    return None if found is None else (found.code, found.sentence)


def needing(gib: float | None, **more: Any) -> Demand:
    memory = {"need_gib": gib, "peak_gib": 0.0 if gib is None else 0.9 * gib, **more}
    return demand(memory=replace(NEED, **memory))


def test_a_type_that_can_serve_is_not_refused() -> None:
    assert refused(ONE) is None
    assert refused(T4) is None


def test_a_type_has_to_be_priced_and_sold() -> None:
    sentence = "ml.g5.xlarge has no price in this Region, so it is no candidate"
    assert refused(ONE, limits=CandidateLimits(None, None)) == (Code.NO_PRICE, sentence)
    unlisted = replace(PRICE, listed=False)
    sentence = "no price list shows that us-east-1 sells ml.g5.xlarge for hosting; its price is an estimate of 2026-09"
    assert refused(ONE, limits=CandidateLimits(unlisted, None)) == (Code.NOT_SOLD, sentence)
    assert refused(ONE, limits=CandidateLimits(unlisted, None, runs_now=True)) is None


HARDWARE = [
    ("ml.m5.2xlarge", LARGE, Code.NO_ACCELERATOR, "ml.m5.2xlarge has no accelerator"),
    ("ml.inf2.xlarge", LARGE, Code.ANOTHER_VENDOR, "ml.inf2.xlarge carries AWS, the model runs on NVIDIA"),
    (
        "ml.g5.12xlarge",
        LARGE,
        Code.OTHER_GPU_COUNT,
        "ml.g5.12xlarge has 4 GPUs, more than the 1 of ml.g6e.xlarge",
    ),
]


@pytest.mark.parametrize(("name", "now", "code", "sentence"), HARDWARE)
def test_other_hardware_is_refused(name: str, now: InstanceType, code: Code, sentence: str) -> None:
    assert refused(TYPES[name], now=now) == (code, sentence)


def test_another_processor_or_an_older_gpu_is_refused() -> None:
    arm = replace(ONE, cpu_arch="arm64")
    sentence = "ml.g5.xlarge is arm64, the image runs on x86_64"
    assert refused(arm) == (Code.ANOTHER_ARCHITECTURE, sentence)
    old = replace(L4_CARD, model="K80", compute_capability=(3, 7))
    sentence = "ml.g6.xlarge has compute capability 3.7, below 7.0"
    assert refused(replace(L4, accelerator=old)) == (Code.COMPUTE_CAPABILITY_TOO_OLD, sentence)
    for capability, now in (((7, 0), (8, 9)), ((6, 0), (6, 1)), (None, (8, 9)), ((6, 0), None)):
        chip, runs = replace(old, compute_capability=capability), replace(old, compute_capability=now)
        assert refused(replace(L4, accelerator=chip), now=replace(L4, accelerator=runs)) is None
    bare = refused(ONE, now=TYPES["ml.m5.2xlarge"])
    assert bare is not None
    assert bare[0] is Code.NO_ACCELERATOR


@pytest.mark.parametrize(
    ("load", "gpus"),
    [
        (demand(gpu_s_per_request=None), 4),
        (demand(gpu_s_per_request=None, gpus_used=2), 2),
        (demand(latency=None), 4),
        (demand(gpu_s_per_request=0.05), 1),
        (demand(gpu_s_per_request=0.59), 1),
        (demand(gpu_s_per_request=0.61), 2),
        (demand(gpu_s_per_request=9.0), 4),
    ],
)
def test_a_request_needs_as_many_gpus_at_once_as_it_works_longer_than_it_takes(load: Demand, gpus: int) -> None:
    assert gpus_per_request(FOUR, load) == gpus


def test_fewer_gpus_than_a_request_needs_are_refused() -> None:
    both = demand(gpu_s_per_request=0.61)
    sentence = "ml.g5.xlarge has 1 GPU, and a request may need 2 of the 4 of ml.g5.12xlarge"
    assert refused(ONE, both, now=FOUR) == (Code.OTHER_GPU_COUNT, sentence)
    assert refused(replace(ONE, accelerator_count=2), both, now=FOUR) is None


def test_the_need_with_its_margin_has_to_fit_the_card() -> None:
    assert refused(ONE, needing(22.0)) is None
    sentence = (
        "ml.g5.xlarge offers 22.0 GiB, and the model needs 22.1 GiB per GPU (19.9 GiB seen, and a margin of 10 %)"
    )
    assert refused(ONE, needing(22.1)) == (Code.MEMORY_TOO_SMALL, sentence)
    assert refused(TYPES["ml.g5.2xlarge"], needing(99.0), now=ONE) is None, "it runs on such a card"


def test_weights_alone_have_to_fit_a_server_that_takes_what_there_is() -> None:
    taking = {"kind": MemoryClass.PREALLOCATED}
    assert refused(ONE, needing(None, lower_gib=22.0, **taking)) is None
    sentence = "ml.g5.xlarge offers 22.0 GiB, and the weights alone need 22.1 GiB"
    assert refused(ONE, needing(None, lower_gib=22.1, **taking)) == (Code.MEMORY_TOO_SMALL, sentence)
    assert refused(ONE, needing(None, lower_gib=22.1)) is None


def test_memory_averaged_over_idle_gpus_may_lie_on_one_of_them() -> None:
    """10 GiB on each of four GPUs, of which two work: 20 GiB on each of those, and never more than a card has."""
    twos = replace(L4, accelerator_count=2)
    half = replace(needing(13.0), gpus_used=2, gpu_s_per_request=None)
    found = refused(twos, half, now=replace(LARGE, accelerator_count=4))
    assert found is not None
    assert "needs 26.0 GiB per GPU" in found[1]
    assert refused(twos, replace(half, gpus_seen=True), now=replace(LARGE, accelerator_count=4)) is None
    assert refused(twos, replace(half, gpus_used=None), now=replace(LARGE, accelerator_count=2)) is None
    assert refused(twos, half, now=replace(FOUR, vcpu=4)) is None, "22 GiB is what the card of today has"


HOST = {"host_memory_gib": 16.0, "vcpu": 4.0}
ROOMY = TYPES["ml.g6e.2xlarge"]


def test_the_host_needs_its_memory_and_its_vcpus_where_there_are_fewer() -> None:
    assert refused(ONE, demand(**HOST), now=ROOMY) is None
    more = demand(**{**HOST, "host_memory_gib": 16.6})
    sentence = "ml.g5.xlarge has 16 GiB of host memory, and with a margin 17 GiB are needed"
    assert refused(ONE, more, now=ROOMY) == (Code.HOST_MEMORY_TOO_SMALL, sentence)
    assert refused(ONE, more, now=L4) is None, "it has no less than today"
    unknown = demand(**{**HOST, "host_memory_gib": None})
    sentence = "ml.g5.xlarge has 16 GiB of host memory, ml.g6e.2xlarge has 64 GiB, and how much is in use is unknown"
    assert refused(ONE, unknown, now=ROOMY) == (Code.HOST_MEMORY_TOO_SMALL, sentence)
    assert refused(ONE, unknown, now=L4) is None
    cores = demand(**{**HOST, "vcpu": 4.1})
    assert refused(ONE, cores, now=ROOMY) == (
        Code.VCPU_TOO_FEW,
        "ml.g5.xlarge has 4 vCPU, and with a margin 4.1 are needed",
    )
    assert refused(ONE, cores, now=L4) is None
    assert refused(ONE, demand(**{**HOST, "vcpu": None}), now=ROOMY) is None


def test_a_quota_of_none_is_refused_and_an_unknown_one_is_not() -> None:
    sentence = "the account's quota for ml.g5.xlarge endpoints is 0"
    assert refused(ONE, limits=CandidateLimits(PRICE, 0)) == (Code.NO_QUOTA, sentence)
    assert refused(ONE, limits=CandidateLimits(PRICE, 1)) is None


def day(number: int, top: float, low: float | None = None, name: str = "ml.g6e.xlarge", **more: Any) -> DailyUsage:
    """A day whose GPU memory had this peak and, of the lowest slots, this share."""
    least = 0.5 * top if low is None else low
    spread = Spread(least, 0.9 * top, top, top, top)
    none = (None,) * SLOTS
    when = date(2026, 11, 1) + timedelta(days=number)
    plain: dict[str, Any] = {"gpu_memory": spread, "host_memory": None, "cpu": None, "gpu": None}
    gpus = TYPES[name].accelerator_count
    return DailyUsage(when, name, gpus, none, none, (1.0,) * 24, (), 0.0, 0.0, **{**plain, **more})


def need(days: Sequence[DailyUsage], framework: str = "pytorch", size: int | None = None, kills: int = 0) -> MemoryNeed:
    return memory_need(days, CATALOGUE, POLICY, framework, size, kills)


GIB = 1024**3
CARD = 44.7
"""GiB that the L40S of a ml.g6e lists."""


def test_a_use_that_swings_is_elastic_and_a_steady_one_static() -> None:
    """Of four days the margin is 3 % and 12 % over the square root of four."""
    found = need([day(n, 0.4) for n in range(4)])
    assert (found.kind, found.margin, found.growing) == (MemoryClass.ELASTIC, near(1.09), False)
    assert found.peak_gib == found.lower_gib == near(0.4 * CARD)
    assert found.need_gib == near(0.4 * CARD * 1.09)
    assert need([day(n, 0.4, 0.4 / 1.09) for n in range(4)]).kind is MemoryClass.STATIC
    assert need([day(n, 0.4, 0.4 / 1.11) for n in range(4)]).kind is MemoryClass.ELASTIC
    mixed = [day(0, 0.4, 0.39), day(1, 0.4, 0.2)]
    assert need(mixed).kind is MemoryClass.ELASTIC
    assert need([day(0, 0.4)]).margin == near(1.15)
    assert need([day(0, 0.4), day(0, 0.3)]).margin == near(1.15), "two types on one day are a day"
    assert need([day(0, 0.4)], kills=1).margin == near(1.35)


def test_without_memory_metrics_the_weights_are_the_least() -> None:
    blind = [day(0, 0.4, gpu_memory=None)]
    found = need(blind, size=10 * GIB)
    assert (found.kind, found.need_gib, found.peak_gib, found.margin) == (MemoryClass.UNKNOWN, None, 0.0, 1.0)
    assert found.lower_gib == near(12.0)
    assert need(blind).lower_gib == 0.0
    four = [day(0, 0.4, name="ml.g5.12xlarge", gpu_memory=None)]
    assert need(four, size=10 * GIB).lower_gib == near(3.0), "they may lie on all four GPUs together"
    assert need([*blind, *four], size=10 * GIB).lower_gib == near(3.0)


def test_a_server_that_fills_any_card_needs_what_only_a_start_tells() -> None:
    for found in (need([day(0, 0.4)], "vllm", 10 * GIB), need([day(0, 0.9, 0.89), day(1, 0.9, 0.89)], size=10 * GIB)):
        assert (found.kind, found.need_gib) == (MemoryClass.PREALLOCATED, None)
        assert found.lower_gib == near(12.0)
    assert need([day(0, 0.4)], "vllm").peak_gib == near(0.4 * CARD)
    assert need([day(0, 0.9, 0.89), day(1, 0.9, 0.80)]).kind is not MemoryClass.PREALLOCATED, "not flat on each day"
    assert need([day(0, 0.88, 0.87)]).kind is not MemoryClass.PREALLOCATED, "79 % is no full card"


def test_a_leak_leaves_room_for_a_month() -> None:
    """Each day takes 0.01 of the card more; each tenth of a day counts nothing."""
    rising = [day(n, 0.40 + 0.01 * n) for n in range(5)]
    found = need(rising)
    assert found.growing
    assert found.need_gib == near(0.44 * CARD * found.margin + 30 * 0.01 * CARD)
    assert found.leak_gib == near(0.01 * CARD)
    assert need([*[day(n, 0.4) for n in range(5)], day(5, 0.6)]).leak_gib == 0, "one jump is growth, and no leak yet"
    assert not need(rising[:3]).growing
    assert need(rising[:4]).growing
    flat = [day(n, 0.40 + (0.01 * n if n % 2 else 0.0)) for n in range(5)]
    assert not need([day(n, 0.4) for n in range(5)]).growing
    assert not need([*flat, day(5, 0.40)]).growing


def test_a_rise_is_the_middle_of_all_slopes_and_needs_four_of_five_days() -> None:
    """Six days: five rises of 0.01, 0.01, 0.01, 0.04 and none; the middle of the fifteen slopes leaves the jump out."""
    tops = (0.40, 0.41, 0.42, 0.43, 0.47, 0.47)
    slopes = sorted((b - a) / (j - i) for i, a in enumerate(tops) for j, b in enumerate(tops) if j > i)
    found = need([day(n, top) for n, top in enumerate(tops)])
    assert found.growing
    assert found.need_gib == near((0.47 * found.margin + 30 * slopes[7]) * CARD)
    level = (0.40, 0.41, 0.41, 0.42, 0.42, 0.43)
    assert not need([day(n, top) for n, top in enumerate(level)]).growing, "three of five"


def test_a_day_above_all_days_before_leaves_room_for_two_more_such_days() -> None:
    jumped = [*(day(n, 0.40) for n in range(4)), day(4, 0.44)]
    found = need(jumped)
    assert found.growing
    assert found.need_gib == near(0.44 * CARD * found.margin + 0.44 * CARD * (1.1**2 - 1))
    assert not need([day(0, 0.40), day(1, 0.41)]).growing
    assert need([day(0, 0.40), day(1, 0.413)]).growing
    assert not need([day(0, 0.0), day(1, 0.4)]).growing


def test_memory_over_more_gpus_than_the_fewest_may_lie_on_one_up_to_its_card() -> None:
    one, four = day(0, 0.2, name="ml.g5.xlarge"), day(1, 0.2, name="ml.g5.12xlarge")
    assert need([four]).peak_gib == near(0.2 * 22.352)
    assert need([one, four]).peak_gib == near(0.8 * 22.352)
    assert need([one, replace(four, gpu_memory=Spread(0.1, 0.3, 0.4, 0.4, 0.4))]).peak_gib == near(22.0)
    unknown = replace(four, instance_type="ml.unknown")
    assert need([one, unknown]).peak_gib == near(0.2 * 22.352)


POOL = KvPool(20.0, 0.5, 1.25)


def pooled(candidate: InstanceType, crowd: float, memory: MemoryNeed | None = None) -> tuple[Code, str] | None:
    with_pool = replace(NEED, kind=MemoryClass.PREALLOCATED, need_gib=20.0, pool=POOL)
    found = pool_refusal(LARGE, candidate, memory or with_pool, crowd)
    return None if found is None else (found.code, found.sentence)


def test_more_requests_at_once_need_more_of_the_pool() -> None:
    """Each more of the crowd takes half of a pool of 20 GiB, on a card a quarter larger: 12.5 GiB."""
    assert pooled(ONE, 1.16) is None
    assert pooled(ONE, 0.5) is None
    sentence = (
        "weights and KV cache need 22.5 GiB per GPU with 1.2 times as many requests in service at once, ml.g5.xlarge"
        " offers 22.0 GiB"
    )
    assert pooled(ONE, 1.2) == (Code.MEMORY_TOO_SMALL, sentence)
    assert pooled(LARGE, 9.0) is None, "it is today's card"
    assert pooled(ONE, 9.0, NEED) is None
    assert pooled(ONE, 9.0, replace(NEED, pool=POOL, need_gib=None)) is None
    assert pooled(TYPES["ml.m5.2xlarge"], 9.0) is None


def kv(number: int, top: float, peak: float, p95: float = 0.3, **more: Any) -> DailyUsage:
    return day(number, top, kv_cache=Spread(0.1, 0.2, p95, peak, peak), **more)


def test_a_pool_whose_use_is_seen_every_day_tells_the_need() -> None:
    """Weights of 12 GiB and half of the rest were in use at most, of a card that is filled to nine tenths."""
    found = need([kv(0, 0.9, 0.25), kv(1, 0.9, 0.5)], "vllm", 10 * GIB)
    pool = 0.9 * CARD - 12.0
    margin = 1.03 + 0.12 / 2**0.5
    assert found.kind is MemoryClass.PREALLOCATED
    assert found.pool == KvPool(near(pool), 0.5, near(margin / 0.9))
    assert found.peak_gib == near(12 + 0.5 * pool)
    assert found.lower_gib == near(12)
    assert (found.margin, found.growing) == (near(margin), True), "the second day needs a fifth more"
    steady = need([kv(0, 0.9, 0.5), kv(1, 0.9, 0.5)], "vllm", 10 * GIB)
    assert steady.need_gib == near((12 + 0.5 * pool) / 0.9 * margin)
    assert not steady.growing


@pytest.mark.parametrize(
    ("days", "size"),
    [
        pytest.param([kv(0, 0.9, 0.5), day(1, 0.9)], 10, id="a day without it"),
        pytest.param([kv(0, 0.9, 0.5, name="ml.g5.12xlarge")], 10, id="four GPUs"),
        pytest.param([kv(0, 0.9, 0.5)], 0, id="weights of unknown size"),
        pytest.param([kv(0, 0.9, 0.5)], 40, id="weights larger than what is held"),
        pytest.param([kv(0, 0.9, 0.5, p95=0.0)], 10, id="hardly ever in use when looked at"),
    ],
)
def test_a_pool_tells_nothing_where(days: list[DailyUsage], size: int) -> None:
    found = need(days, "vllm", size * GIB)
    assert (found.need_gib, found.pool) == (None, None)


@given(top=some.floats(0.05, 0.7), days=some.integers(1, 14))
def test_the_need_is_never_below_what_was_seen(top: float, days: int) -> None:
    found = need([day(n, top) for n in range(days)])
    assert found.need_gib is not None
    assert found.need_gib > found.peak_gib >= found.lower_gib


def test_the_fullest_gpu_is_not_multiplied() -> None:
    one, four = day(0, 0.2, name="ml.g5.xlarge"), day(1, 0.2, name="ml.g5.12xlarge")
    seen = replace(four, each_gpu=EachGpu((0.9, 0.5, 0.4, 0.3), (0.5, 0.2, 0.1, 0.1)))
    assert need([one, seen]).peak_gib == near(0.2 * 22.352)


@pytest.mark.parametrize(
    ("runs", "to", "seen", "fits"),
    [
        ("ml.g5.2xlarge", "ml.g5.xlarge", False, True),  # the same card
        ("ml.g5.2xlarge", "ml.g6.2xlarge", True, True),  # another one of 22 GiB, of which 4.5 are in use
        ("ml.g5.2xlarge", "ml.g6.2xlarge", False, False),  # nobody knows that they are not all in use
        ("ml.g5.2xlarge", "ml.g6e.xlarge", False, True),  # twice as much
        ("ml.g5.2xlarge", "ml.g4dn.xlarge", False, False),
    ],
)
def test_a_memory_that_nobody_saw_fits_another_card_for_sure_where_that_has_room_beyond_todays(
    runs: str, to: str, seen: bool, fits: bool
) -> None:
    """A need that was seen has a margin; one that was not may be all of today's card, so as much is not enough."""
    load = kit.steady()
    if not seen:
        load = {key: value for key, value in load.items() if key[0] != "GPUMemoryUtilization"}
    types, endpoint = kit.catalogue(), kit.endpoint(runs)
    usage = add_daily_usage(endpoint, [kit.window(load)], types.types[runs], History(), Policy())
    inputs = AccountInputs(kit.prices(), types, {}, History(), Policy(), kit.NOW)
    context = evaluation_context(endpoint, usage.days, inputs)
    assert context is not None
    assert (fit_chance(context, types.types[to]) == 1.0) == fits
