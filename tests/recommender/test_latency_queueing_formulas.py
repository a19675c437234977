"""Waiting by the formulas that are named, worked out by hand, and what a shadow test says of its latency."""

import math
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.demand import Latency
from rightsizer.domain.usage import SLOTS, DailyUsage
from rightsizer.recommender.latency import (
    Rates,
    ServiceTime,
    ShadowRun,
    find_service_time,
    rates_of,
    service_bins,
    service_time_of,
    shadow_ratios,
)
from tests.recommender.plain import near


def waiting(service_s: float, rate: float, spread: float) -> float:
    """Pollaczek and Khinchine: mean waiting before one worker."""
    load = rate * service_s
    return load * service_s * (1 + spread) / (2 * (1 - load))


@pytest.mark.parametrize(("rate", "spread"), [(0.2, 0.0), (0.5, 1.0), (0.7, 0.5)])
def test_the_service_behind_a_latency_of_one_worker_is_found(rate: float, spread: float) -> None:
    found = service_time_of(1.0 + waiting(1.0, rate, spread), rate, spread)
    assert found == pytest.approx(1.0, rel=2e-4)


def test_waiting_hides_the_service_of_a_worker_that_is_three_quarters_busy() -> None:
    assert service_time_of(1.0 + waiting(1.0, 0.74, 1.0), 0.74, 1.0) is not None
    assert service_time_of(1.0 + waiting(1.0, 0.76, 1.0), 0.76, 1.0) is None


def several(service_s: float, rate: float, workers: int, spread: float) -> float:
    """Sakasegawa (1977): mean waiting in one queue before several workers."""
    load = rate * service_s / workers
    chance: float = load ** (math.sqrt(2 * (workers + 1)) - 1)
    return service_s * chance * (1 + spread) / (2 * workers * (1 - load))


def behind(service_s: float, rates: Rates, workers: int, spread: float = 1.0) -> Latency:
    """A latency with the mean and the squared variation that one queue makes of a service."""
    total = sum(calls for _, calls in rates)
    first = second = 0.0
    for rate, calls in rates:
        load = rate * service_s / workers
        wait = several(service_s, rate, workers, spread) if workers > 1 else waiting(service_s, rate, spread)
        if workers > 1:
            square = 2 * wait**2 / load ** (math.sqrt(2 * (workers + 1)) - 1)
        else:
            square = 2 * wait**2 + rate * (service_s * (1 + spread)) ** 3 / (3 * (1 - load))
        first, second = first + calls * wait / total, second + calls * square / total
    mean = service_s + first
    variance = spread * service_s**2 + second - first**2
    return Latency(mean, mean, mean, mean, variance / mean**2)


@pytest.mark.parametrize(("workers", "load"), [(1, 0.2), (1, 0.45), (2, 0.2), (2, 0.45), (2, 0.8), (3, 0.45), (3, 0.8)])
@pytest.mark.parametrize("service_s", [1.0, 2.0])
def test_both_moments_of_the_service_are_found(workers: int, load: float, service_s: float) -> None:
    rates = [(load * workers / service_s, 10.0), (0.5 * load * workers / service_s, 30.0)]
    latency = behind(service_s, rates, workers)
    found = find_service_time(latency, rates, workers)
    assert found.mean_s == pytest.approx(service_s, rel=0.003)
    wanted = math.sqrt(math.log(2.0) / math.log1p(latency.squared_variation))
    assert found.power == pytest.approx(min(wanted, 1.0), rel=0.01)


def test_without_a_rate_a_worker_or_a_spread_the_latency_is_the_service() -> None:
    latency = behind(1.0, [(0.4, 1.0)], 1)
    same = ServiceTime(latency.mean_s, 1.0)
    assert find_service_time(latency, [], 1) == same
    assert find_service_time(latency, [(0.0, 5.0), (0.4, 0.0)], 1) == same
    assert find_service_time(latency, [(0.4, 1.0)], 0) == same
    assert find_service_time(replace(latency, squared_variation=0.0), [(0.4, 1.0)], 1) == same


def test_rates_without_requests_are_passed_over() -> None:
    latency = behind(1.0, [(0.4, 1.0)], 1)
    plain = find_service_time(latency, [(0.4, 1.0)], 1)
    assert find_service_time(latency, [(0.4, 1.0), (0.9, 0.0), (0.0, 9.0)], 1) == plain
    assert plain.mean_s < latency.mean_s


def test_the_share_of_the_service_in_the_latency_is_at_most_all_of_it() -> None:
    latency = behind(1.0, [(0.4, 1.0)], 1)
    assert ServiceTime(0.5 * latency.mean_s, 1.0).share(latency) == 0.5
    assert ServiceTime(2 * latency.mean_s, 1.0).share(latency) == 1.0
    assert ServiceTime(1.0, 1.0).share(replace(latency, mean_s=0.0)) == 1.0


def test_the_histogram_of_the_service_has_its_mean_and_less_spread() -> None:
    latency = Latency(2.0, 1.0, 4.0, 4.0, 1.0, ((1.0, 0.75), (4.0, 0.25)))
    found = service_bins(latency, ServiceTime(1.5, 0.5))
    assert [share for _, share in found] == [0.75, 0.25]
    assert sum(value * share for value, share in found) == near(1.5)
    assert found[1][0] / found[0][0] == near(2.0)
    assert service_bins(latency, ServiceTime(1.75, 1.0)) == ((near(1.0), 0.75), (near(4.0), 0.25))


RUN = ShadowRun(
    requests=40.0,
    hours=2.0,
    mean_s=2.0,
    live_mean_s=1.0,
    gpu_s=0.5,
    live_gpu_s=0.2,
    spread=1.0,
    queued=False,
    alike=False,
)
RATE = 40 / 7200


def test_a_shadow_test_tells_gpu_seconds_and_latency_over_those_of_production() -> None:
    gpu, latency = shadow_ratios(RUN)
    assert gpu == near(2.5)
    service = service_time_of(2.0, RATE, 1.0)
    assert service is not None
    assert service < 1.99
    assert latency == near(service)


def test_where_production_waits_in_the_same_way_its_waiting_is_taken_out_too() -> None:
    shadow, live = service_time_of(2.0, RATE, 1.0), service_time_of(1.0, RATE, 1.0)
    assert shadow is not None
    assert live is not None
    assert shadow_ratios(replace(RUN, queued=True))[1] == near(shadow / live)
    busy = replace(RUN, queued=True, requests=2000.0, mean_s=2.0, live_mean_s=40.0)
    hidden = service_time_of(2.0, 2000 / 7200, 1.0)
    assert hidden is not None
    assert shadow_ratios(busy)[1] == near(hidden / 40.0), "production's own service is hidden: its latency counts"


@pytest.mark.parametrize(
    ("seen", "gpu", "latency"),
    [
        ({"gpu_s": None}, False, True),
        ({"live_gpu_s": None}, False, True),
        ({"live_gpu_s": 0.0}, False, True),
        ({"requests": 20.0}, True, True),
        ({"requests": 19.0}, False, True),
        ({"requests": 2.0, "alike": True}, True, True),
        ({"requests": 1.0, "alike": True}, False, False),
        ({"requests": 2.0}, False, True),
        ({"mean_s": None}, True, False),
        ({"live_mean_s": None}, True, False),
        ({"hours": 0.0}, True, False),
        ({"hours": 0.5}, True, True),
        ({"requests": 6000.0, "hours": 1.0}, True, False),
    ],
)
def test_a_shadow_test_tells_nothing_of_what_it_did_not_see(seen: dict[str, Any], gpu: bool, latency: bool) -> None:
    found = shadow_ratios(replace(RUN, **seen))
    assert (found[0] is not None, found[1] is not None) == (gpu, latency)


def day(number: int, *slots: float | None) -> DailyUsage:
    """The first slots of a day; the others had no request."""
    none = (None,) * 4
    requests = (*slots, *(0.0,) * (SLOTS - len(slots)))
    when = date(2026, 11, 1) + timedelta(days=number)
    return DailyUsage(when, "ml.g5.xlarge", 1, requests, (None,) * SLOTS, (1.0,) * 24, (), 0.0, 0.0, *none)


def test_a_slot_with_ten_requests_is_a_stretch_and_a_request_does_not_meet_itself() -> None:
    assert rates_of([day(0, 10.0)], 1.0) == ((9 / 300, 10.0),)
    assert rates_of([day(0, 10.0)], 2.0) == ((9 / 600, 10.0),)
    assert rates_of([day(0, 16.0, 16.0)], 1.0) == ((15 / 300, 16.0), (15 / 300, 16.0))


def test_the_stretch_grows_until_it_has_ten_requests() -> None:
    assert rates_of([day(0, 4.0, 4.0, 4.0)], 1.0) == ((near(11 / 900), 12.0),)
    assert rates_of([day(0, *(1.0,) * 12)], 1.0) == ((near(11 / 3600), 12.0),)
    assert rates_of([day(0, *(1.0,) * 36)], 1.0) == ((near(11 / 3600), 12.0),) * 3
    assert rates_of([day(0, 9.0)], 1.0) == ((near(8 / 86400), 9.0),)
    assert rates_of([day(0, 1.0)], 1.0) == ((0.0, 1.0),)
    assert rates_of([day(0)], 1.0) == ()
    assert rates_of([], 1.0) == ()


def test_what_is_unknown_in_a_stretch_is_as_the_rest_of_it() -> None:
    assert rates_of([day(0, 4.0, None, 6.0)], 1.0) == ((near(14 / 900), 15.0),)
    assert rates_of([day(0, 20.0, None, None)], 1.0) == ((near(19 / 300), 20.0),)
    unknown = replace(day(0, 4.0, 4.0, 4.0), requests=(4.0, 4.0, 4.0, *(None,) * (SLOTS - 3)))
    assert rates_of([unknown], 1.0) == ((near(11 / 900), 12.0),)


def test_stretches_are_grouped_in_six_by_their_rate() -> None:
    found = rates_of([day(0, *(10.0 * n for n in range(12, 0, -1)))], 1.0)
    assert len(found) == 6
    assert found[0] == (near((9 * 10 + 19 * 20) / 30 / 300), 30.0)
    assert found[-1] == (near((109 * 110 + 119 * 120) / 230 / 300), 230.0)


@given(rate=some.floats(0.01, 3.0), more=some.floats(0.01, 1.0), spread=some.floats(0.0, 2.0))
def test_a_busier_worker_never_has_a_longer_service_behind_one_latency(rate: float, more: float, spread: float) -> None:
    latency = Latency(1.0, 1.0, 1.0, 1.0, spread)
    assert (
        find_service_time(latency, [(rate + more, 1.0)], 1).mean_s
        <= find_service_time(latency, [(rate, 1.0)], 1).mean_s + 0.05
    )
