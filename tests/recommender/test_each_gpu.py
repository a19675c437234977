"""Single GPUs, where enhanced metrics show them: a count in place of a bound, and the memory of the fullest."""

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.demand import Demand, MemoryClass
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import DailyUsage, GpuSeries, MetricWindow, Series, VariantUsage
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import demand_of
from rightsizer.recommender.each_gpu import add_each_gpu
from rightsizer.recommender.fit import CandidateLimits, fit_refusal, memory_need
from tests.recommender import kit
from tests.recommender.kit import judge, judge_digests

type Level = float | Callable[[int], float]
TYPE = "ml.g5.12xlarge"
ONE_WORKS = [(30.0, 80.0), (0.4, 80.0), (0.2, 80.0), (0.0, 80.0)]
"""Utilisation and memory of four GPUs: replicas hold the model alike, and only one is asked."""


def published(each: Sequence[tuple[Level, float]], days: int = 14, instance: str = "i-0") -> MetricWindow:
    """What an instance of four GPUs published as a whole, and GPU by GPU."""
    mean, memory = sum(v if isinstance(v, float) else v(0) for v, _ in each), sum(m for _, m in each)
    whole = kit.window(kit.steady(gpu=mean, memory=memory, per_slot=180.0, cpu=100.0, host=4.0, swing=0.0), days)
    return replace(whole, gpus=gpus(whole, each, instance))


def gpus(whole: MetricWindow, each: Sequence[tuple[Level, float]], instance: str = "i-0") -> tuple[GpuSeries, ...]:
    size = int((whole.end - whole.start).total_seconds()) // whole.period_s

    def series(level: Level) -> Series:
        values = array("d", [level(i) if callable(level) else level for i in range(size)])
        return Series(whole.start, whole.period_s, values)

    return tuple(GpuSeries(instance, str(n), series(b), series(m)) for n, (b, m) in enumerate(each))


def judged(window: MetricWindow) -> Recommendation:
    endpoint = kit.endpoint(TYPE, 1, Mode.AUTO, 60.0)
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def digests(window: MetricWindow) -> list[DailyUsage]:
    return [add_each_gpu(d, window, None) for d in daily_usage(window, VariantSetup(kit.catalogue().types[TYPE], 1))]


def demand(days: Sequence[DailyUsage], framework: str = "pytorch") -> Demand:
    memory = memory_need(days, kit.catalogue(), Policy(), framework, None)
    return demand_of(days, days, kit.catalogue().types[TYPE], memory, Policy())


def figures(found: Recommendation) -> tuple[str, str]:
    assert found.evidence is not None
    return found.evidence.figures["GPUs"], found.evidence.rung


def test_what_was_seen_gpu_by_gpu_is_a_count_and_no_bound() -> None:
    found = judged(published(ONE_WORKS))
    assert figures(found) == ("uses 1 of the 4 GPUs of ml.g5.12xlarge", "L2")
    assert "; it uses 1 of the 4 GPUs of ml.g5.12xlarge" in found.reason.sentence
    together = judged(replace(published(ONE_WORKS), gpus=()))
    assert figures(together) == ("uses perhaps all of the 4 GPUs of ml.g5.12xlarge", "L1")


def test_the_evidence_shows_how_far_apart_the_gpus_are() -> None:
    found = judged(published(ONE_WORKS))
    assert found.evidence is not None
    assert found.evidence.figures["GPU skew"] == "busiest 30.0 %, least busy 0.0 % on average"


def test_where_all_work_it_is_known_that_all_do() -> None:
    each = [(30.0, 20.0), (11.0, 20.0), (2.0, 20.0), (1.0, 20.0)]
    assert figures(judged(published(each))) == ("uses all of the 4 GPUs of ml.g5.12xlarge", "L2")


def test_a_gpu_without_datapoints_is_unknown_and_not_idle() -> None:
    window = published(ONE_WORKS)
    assert figures(judged(replace(window, gpus=window.gpus[:3])))[1] == "L1"
    silent = (*window.gpus[:3], replace(window.gpus[3], busy=None))
    assert figures(judged(replace(window, gpus=silent)))[1] == "L1"


@pytest.mark.parametrize(("hours", "seen"), [(4, True), (6, False)])
def test_a_day_counts_where_four_fifths_of_it_were_seen(hours: int, seen: bool) -> None:
    late: Level = lambda i: math.nan if i % 288 < 12 * hours else 0.0  # noqa: E731
    window = published(ONE_WORKS)
    own = gpus(window, [*ONE_WORKS[:3], (late, 80.0)])
    assert (figures(judged(replace(window, gpus=own)))[1] == "L2") is seen


def test_one_day_that_was_not_seen_makes_it_a_bound_again() -> None:
    days = digests(published(ONE_WORKS))
    days[3] = replace(days[3], each_gpu=None)
    assert not demand(days).gpus_seen
    assert demand(days).gpus_used is None, "80 % of all four may be in use on that day"
    usage = VariantUsage("chat", "AllTraffic", tuple(days))
    rest: Any = (kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert figures(judge_digests(kit.endpoint(TYPE), usage, *rest))[1] == "L1"


def test_gpus_that_all_do_nearly_nothing_are_used_when_they_are_alike() -> None:
    """A model over four GPUs that is asked once an hour: none reaches 1 %, and none is idle."""
    alike = demand(digests(published([(0.4, 80.0), (0.4, 80.0), (0.3, 80.0), (0.2, 80.0)])))
    assert (alike.gpus_used, alike.gpus_seen) == (None, True)
    apart = demand(digests(published([(0.4, 80.0), (0.4, 80.0), (0.1, 80.0), (0.0, 80.0)])))
    assert apart.gpus_used == 2


def test_where_no_gpu_ever_worked_none_is_counted() -> None:
    """Memory on all four: which of them a request would use is not known."""
    found = demand(digests(published([(0.0, 80.0)] * 4)))
    assert (found.gpus_used, found.gpus_seen) == (None, False)


def test_a_quiet_day_with_a_trace_of_work_does_not_make_gpus_busy() -> None:
    first: Level = lambda i: 30.0 if i < 288 * 13 else 0.2  # noqa: E731
    found = demand(digests(published([(first, 80.0), (0.2, 80.0), (0.2, 80.0), (0.0, 80.0)])))
    assert (found.gpus_used, found.gpus_seen) == (1, True)


def test_an_instance_that_was_not_among_those_seen_still_counts_by_its_sum() -> None:
    window = published([(90.0, 80.0), (70.0, 80.0), (0.0, 80.0), (0.0, 80.0)])
    own = gpus(window, [(90.0, 80.0), (0.5, 80.0), (0.0, 80.0), (0.0, 80.0)])
    assert demand(digests(replace(window, gpus=own))).gpus_used == 2


def test_of_several_instances_the_one_with_most_gpus_at_work_counts() -> None:
    window = published(ONE_WORKS)
    other = gpus(window, [(20.0, 80.0), (0.0, 80.0), (0.0, 80.0), (20.0, 80.0)], "i-1")
    assert demand(digests(replace(window, gpus=(*window.gpus, *other)))).gpus_used == 2


def test_of_several_containers_on_a_gpu_the_busier_one_counts() -> None:
    window = published(ONE_WORKS)
    other = gpus(window, [(0.0, 5.0), (25.0, 5.0), (0.0, 5.0), (0.0, 5.0)])
    assert demand(digests(replace(window, gpus=(*window.gpus, *other)))).gpus_used == 2


def test_a_candidate_must_offer_the_memory_of_the_fullest_gpu_and_no_more() -> None:
    """40 % of one card and 35 % of another are 19 % on average, and had to be taken as 75 % of one card."""
    window = published([(30.0, 40.0), (20.0, 35.0), (0.0, 0.0), (0.0, 0.0)])
    found, before = demand(digests(window)), demand(digests(replace(window, gpus=())))
    assert found.memory.peak_gib == pytest.approx(0.4 * 22.352)
    assert (found.gpus_used, before.gpus_used) == (2, 1)
    now, small = kit.catalogue().types[TYPE], kit.catalogue().types["ml.g4dn.xlarge"]
    two, limits = (
        replace(small, vcpu=48, memory_gib=192.0, accelerator_count=2),
        CandidateLimits(kit.prices().find(TYPE), None),
    )
    assert fit_refusal(now, two, found, limits) is None
    refused = [fit_refusal(now, two, before, limits)]
    refused += [fit_refusal(now, two, demand(digests(published([(30.0, 70.0), (20.0, 5.0), *ONE_WORKS[2:]]))), limits)]
    assert [reason and reason.code for reason in refused] == [Code.MEMORY_TOO_SMALL] * 2


def test_beside_days_on_fewer_gpus_the_fullest_of_four_is_not_taken_for_all_of_them() -> None:
    """What was averaged over four cards may all have been on one, next to days on one; the fullest is known."""
    four = digests(published([(30.0, 40.0), (20.0, 20.0), (0.0, 20.0), (0.0, 20.0)]))
    one = replace(four[0], gpus=1, instance_type="ml.g5.xlarge", each_gpu=None, gpu_memory=four[0].host_memory)
    assert one.gpu_memory is not None
    assert one.gpu_memory.peak < 0.1
    needed = memory_need([one, *four], kit.catalogue(), Policy(), "pytorch", None)
    assert needed.peak_gib == pytest.approx(0.4 * 22.352)


def test_a_card_that_a_server_filled_is_seen_beside_empty_ones() -> None:
    filled = published([(30.0, 90.0), (0.0, 0.5), (0.0, 0.5), (0.0, 0.5)])
    assert demand(digests(filled)).memory.kind is MemoryClass.PREALLOCATED
    assert demand(digests(replace(filled, gpus=()))).memory.kind is not MemoryClass.PREALLOCATED


def test_datapoints_before_the_configuration_are_left_out() -> None:
    turn = kit.NOW.replace(hour=0, day=19)
    window = published([(lambda i: 50.0 if i < 288 * 13 else 0.0, 80.0), *ONE_WORKS[:3]])
    last = digests(window)[-1]
    found = add_each_gpu(last, window, turn).each_gpu
    assert found is not None
    assert found.peaks == (0.3, 0.004, 0.002, 0.0)
    assert add_each_gpu(replace(last, each_gpu=None), window, kit.NOW).each_gpu is None


@given(st.lists(st.floats(0, 100).map(lambda percent: round(percent, 2)), min_size=4, max_size=4))
def test_as_many_are_used_as_the_sum_needs_and_as_worked(busy: list[float]) -> None:
    (day,) = digests(published([(b, 50.0) for b in busy], days=1))
    found = demand([day])
    used = found.gpus_used or 4
    assert found.gpus_seen is (max(busy) > 0)
    assert math.ceil(sum(busy) / 100 - 0.02) <= used
    assert used >= max(sum(b >= 1 for b in busy), 1)
