"""The finding's evidence: each threshold from both sides, and each sentence with its figures."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rightsizer.domain.demand import Latency, MemoryClass
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import BIN, SLOTS, DailyUsage
from rightsizer.recommender.finding import (
    MUCH,
    SEVERE,
    UNUSUAL,
    busy_and_failing_reason,
    idle_reason,
    late_budget_multiple,
    latency_degradation,
    outgrown_reason,
    too_late_reason,
    too_little_data_reason,
    unexplained_work,
)
from tests.recommender import kit
from tests.recommender.plain import LATENCY, NEED, demand

POLICY = Policy()
USUAL_GOAL, DECLARED = LatencyObjective(1.0, False, "as usual"), LatencyObjective(1.0, True, "tag rightsizer:p95-ms")


QUIET = demand(requests=0.0, silent_days=14, gpu_peak=0.004, valid_share=0.98)


def words(found: Reason | None) -> tuple[Code, str] | None:
    return None if found is None else (found.code, found.sentence)


def endpoint(**more: Any) -> Endpoint:
    return replace(kit.endpoint(), **more)


def test_only_an_endpoint_in_service_is_judged() -> None:
    assert too_little_data_reason(endpoint(), demand(), POLICY) is None
    sentence = "its status is Updating; only InService endpoints are judged"
    assert words(too_little_data_reason(endpoint(status="Updating"), demand(), POLICY)) == (
        Code.NOT_IN_SERVICE,
        sentence,
    )


def test_without_gpu_metrics_nothing_is_judged_() -> None:
    blind = demand(gpu_mean=None, valid_share=0.0, days=2.04)
    sentence = "no GPU utilisation was published in 2.0 days; low use cannot be told from no data"
    wanted = (Code.NO_GPU_METRICS, sentence)
    assert words(too_little_data_reason(endpoint(), blind, POLICY)) == wanted
    hardware = kit.catalogue(kit.OTHERS).find("ml.inf2.xlarge")
    assert hardware is not None
    chip = hardware.accelerator
    why = "CloudWatch publishes no utilisation of the Inferentia2 chip, so low use cannot be seen"
    assert words(too_little_data_reason(endpoint(), blind, POLICY, chip)) == (Code.NO_GPU_METRICS, why)


def test_nothing_is_judged_of_requests_that_were_answered_and_not_counted() -> None:
    sentence = (
        "requests were answered (ModelLatency was published), and CloudWatch has no count of them (Invocations): how"
        " many came is not known"
    )
    blind = demand(uncounted=True, requests=0.0)
    assert words(too_little_data_reason(endpoint(), blind, POLICY)) == (Code.TOO_FEW_REQUESTS, sentence)
    assert too_little_data_reason(endpoint(), replace(blind, requests=1.0), POLICY) is None
    queue = endpoint(kinds=(EndpointKind.ASYNC,))
    assert too_little_data_reason(queue, blind, POLICY) is None, "a queue has no such count"


def test_a_chip_of_which_nothing_is_published_is_idle_where_nobody_calls() -> None:
    chip = replace(QUIET, gpu_mean=None, gpu_peak=None)
    assert too_little_data_reason(endpoint(), chip, POLICY) is None
    sentence = "no request for 14 days while the utilisation of its host was published"
    assert words(idle_reason(endpoint(), chip, POLICY)) == (
        Code.IDLE,
        f"{sentence}; CloudWatch shows nothing of its chips",
    )


def test_half_a_day_of_datapoints_is_the_least() -> None:
    assert too_little_data_reason(endpoint(), demand(days=0.5), POLICY) is None
    sentence = "only 7 hours of datapoints since its configuration changed"
    assert words(too_little_data_reason(endpoint(), demand(days=0.3), POLICY)) == (Code.TOO_FEW_DAYS, sentence)


def test_four_of_five_periods_need_gpu_datapoints_from_the_first_whole_day_on() -> None:
    assert too_little_data_reason(endpoint(), demand(valid_share=0.8), POLICY) is None
    sentence = "79 % of the periods have GPU datapoints, 80 % are needed"
    assert words(too_little_data_reason(endpoint(), demand(valid_share=0.79), POLICY)) == (Code.TOO_MANY_GAPS, sentence)
    assert words(too_little_data_reason(endpoint(), demand(valid_share=0.79, days=1.0), POLICY)) == (
        Code.TOO_MANY_GAPS,
        sentence,
    )
    assert too_little_data_reason(endpoint(), demand(valid_share=0.1, days=0.99), POLICY) is None


def test_two_weeks_without_a_request_or_work_are_idle() -> None:
    sentence = "no request for 14 days while utilisation was published (98 % of the periods), GPU at most 0.4 %"
    assert words(idle_reason(endpoint(), QUIET, POLICY)) == (Code.IDLE, sentence)
    longer = replace(QUIET, silent_days=15, days=13.2)
    assert words(idle_reason(endpoint(), longer, POLICY)) == (Code.IDLE, sentence), "no more days than were seen"
    unknown = replace(QUIET, gpu_peak=None)
    assert words(idle_reason(endpoint(), unknown, POLICY)) == (Code.IDLE, sentence.replace("0.4 %", "0.0 %"))
    assert idle_reason(endpoint(), replace(QUIET, gpu_peak=0.01), POLICY) is not None


@pytest.mark.parametrize(
    ("of", "load"),
    [
        pytest.param(endpoint(), replace(QUIET, silent_days=13), id="a day too few"),
        pytest.param(endpoint(), replace(QUIET, requests=1.0), id="a request"),
        pytest.param(endpoint(), replace(QUIET, gpu_peak=0.4, gpu_mean=0.051), id="work on the GPU"),
        pytest.param(
            endpoint(kinds=(EndpointKind.ASYNC,)),
            replace(QUIET, backlog=0.0, gpu_peak=0.011, gpu_mean=0.0),
            id="work on the GPU of a queue",
        ),
        pytest.param(endpoint(kinds=(EndpointKind.ASYNC,)), QUIET, id="a queue of unknown length"),
        pytest.param(endpoint(kinds=(EndpointKind.ASYNC,)), replace(QUIET, backlog=1.0), id="a queue"),
    ],
)
def test_not_idle(of: Endpoint, load: Any) -> None:
    assert idle_reason(of, load, POLICY) is None


def test_a_gpu_that_blinks_without_a_request_is_idle_and_leaves_a_question() -> None:
    blinks = replace(QUIET, gpu_peak=0.4, gpu_mean=0.05)
    found = idle_reason(endpoint(), blinks, POLICY)
    assert found is not None
    assert found.sentence.endswith("GPU at most 40.0 %, 5.0 % on average: whatever works there, nobody called it")
    assert unexplained_work(blinks, POLICY) == "what its GPU works at without a request (up to 40.0 %)"
    assert unexplained_work(replace(QUIET, gpu_peak=0.01), POLICY) == ""
    assert unexplained_work(replace(QUIET, gpu_peak=None), POLICY) == ""


def test_an_asynchronous_endpoint_with_an_empty_queue_may_be_idle() -> None:
    assert idle_reason(endpoint(kinds=(EndpointKind.ASYNC,)), replace(QUIET, backlog=0.0), POLICY) is not None


def bin_of(seconds: float) -> int:
    return round(math.log(1000 * seconds) / math.log(BIN))


def day(late: float, total: float, number: int = 0) -> DailyUsage:
    """A day of so many requests, of which so many took two seconds and the others a fifth of one."""
    latency = ((bin_of(0.2), total - late), (bin_of(2.0), late))
    none = (None,) * 4
    when = date(2026, 11, 1) + timedelta(days=number)
    slots = (total / SLOTS,) * SLOTS
    return DailyUsage(when, "ml.g5.xlarge", 1, slots, slots, (1.0,) * 24, latency, 0.2 * total, 0.0, *none)


def hurts(
    days: Sequence[DailyUsage], baseline: float, objective: LatencyObjective = USUAL_GOAL
) -> tuple[str, bool] | None:
    found = latency_degradation(days, objective, baseline, POLICY)
    if found is None:
        return None
    assert found.reason.code is Code.UNDER_PROVISIONED
    return found.reason.sentence, found.is_severe


def test_late_requests_beyond_twice_the_budget_speak_against_our_change() -> None:
    """0.2 % may be late: 40 of 10,000 are twice that."""
    assert hurts([day(40, 10_000)], 0.0) is None
    sentence = "since the last change 41 of 10000 requests took longer than 1.00 s, before it 0.0 %"
    assert hurts([day(41, 10_000)], 0.0) == (sentence, False)
    assert hurts([day(20, 5_000), day(21, 5_000, 1)], 0.0) == (sentence, False), "days are added up"


def test_a_tenth_more_than_usual_is_how_days_differ() -> None:
    """Of a million 5 % are usual; a tenth of these is 5,000, more than 4,000 of the budget and 447 of chance."""
    assert UNUSUAL == 0.1
    assert hurts([day(55_000, 1_000_000)], 0.05) is None
    sentence = "since the last change 55001 of 1000000 requests took longer than 1.00 s, before it 5.0 %"
    assert hurts([day(55_001, 1_000_000)], 0.05) == (sentence, False)


def test_two_standard_deviations_of_the_usual_count_are_chance() -> None:
    """Of 2,500 one in a hundred is usual, 25: two standard deviations are 10, as many as twice the budget."""
    assert hurts([day(35, 2_500)], 0.01) is None
    assert hurts([day(36, 2_500)], 0.01) is not None
    assert hurts([day(18, 400)], 0.02) is not None, "of 400 eight are usual, and 5.7 two deviations"
    assert hurts([day(13, 400)], 0.02) is None
    assert hurts([day(14, 400)], 0.02) is not None
    assert hurts([day(2, 100)], 0.0) is None, "one request is the least deviation"
    assert hurts([day(3, 100)], 0.0) is not None


def test_uneven_days_have_deviations_of_their_own_up_to_what_is_severe() -> None:
    """Of 2,500 one in a hundred is usual, 25: two deviations are 10, of days four times as uneven 20."""
    assert latency_degradation([day(45, 2_500)], USUAL_GOAL, 0.01, POLICY, 4.0) is None
    assert latency_degradation([day(46, 2_500)], USUAL_GOAL, 0.01, POLICY, 4.0) is not None
    assert latency_degradation([day(150, 2_500)], USUAL_GOAL, 0.01, POLICY, 400.0) is None
    assert latency_degradation([day(151, 2_500)], USUAL_GOAL, 0.01, POLICY, 400.0) is not None


def test_few_requests_behind_a_declared_objective_have_two_a_week() -> None:
    """Of 100 on one day 2/7 may be late, and two deviations of at least one more: 2.29."""
    assert hurts([day(2, 100)], 0.0, DECLARED) is None
    assert hurts([day(2.28, 100)], 0.0, DECLARED) is None
    assert hurts([day(2.29, 100)], 0.0, DECLARED) is not None
    assert hurts([day(2.28, 100)], 0.0) is not None
    assert hurts([day(2.1, 100)], 0.0) is not None, "one request is the deviation where nothing is declared"
    week = [day(0, 100, number) for number in range(6)]
    assert hurts([*week, day(4.82, 100, 6)], 0.0, DECLARED) is None, "two a week and two deviations of two: 4.83"
    assert hurts([*week, day(4.84, 100, 6)], 0.0, DECLARED) is not None


def test_twenty_requests_are_the_least_that_tell() -> None:
    assert hurts([day(19, 19)], 0.0) is None
    assert hurts([day(20, 20)], 0.0) == (
        "since the last change 20 of 20 requests took longer than 1.00 s, before it 0.0 %",
        True,
    )


def test_one_late_request_in_twenty_beyond_the_usual_brings_the_old_fleet_back_at_once() -> None:
    assert SEVERE == 0.05
    for late, baseline, wanted in ((500, 0.0, False), (501, 0.0, True), (600, 0.01, False), (601, 0.01, True)):
        found = hurts([day(late, 10_000)], baseline)
        assert found is not None
        assert found[1] is wanted, (late, baseline)


def test_days_without_latency_say_nothing() -> None:
    assert hurts([], 0.0) is None
    assert late_budget_multiple([], USUAL_GOAL, 0.0, POLICY) == 0.0
    assert late_budget_multiple([replace(day(0, 100), latency=())], USUAL_GOAL, 0.5, POLICY) == 0.0


def test_the_budget_is_spent_in_multiples_of_what_may_be_late() -> None:
    assert late_budget_multiple([day(20, 10_000)], USUAL_GOAL, 0.0, POLICY) == pytest.approx(1.0)
    assert late_budget_multiple([day(120, 10_000)], USUAL_GOAL, 0.01, POLICY) == pytest.approx(1.0)
    assert late_budget_multiple([day(0, 10_000)], USUAL_GOAL, 0.01, POLICY) == pytest.approx(-5.0)
    assert late_budget_multiple([day(1, 100)], USUAL_GOAL, 0.0, POLICY) == pytest.approx(5.0)
    assert late_budget_multiple([day(1, 100)], DECLARED, 0.0, POLICY) == pytest.approx(0.5), (
        "two a week, from the first day on"
    )
    fortnight = [day(1, 100, number) for number in range(14)]
    assert late_budget_multiple(fortnight, DECLARED, 0.0, POLICY) == pytest.approx(3.5), "fourteen late ones of four"


@given(late=some.integers(0, 1000), usual=some.floats(0.0, 0.05))
def test_more_late_requests_never_spend_less(late: int, usual: float) -> None:
    fewer, more = (late_budget_multiple([day(n, 2000)], DECLARED, usual, POLICY) for n in (late, late + 1))
    assert more > fewer


SMALL, LARGE = kit.catalogue().types["ml.g5.xlarge"], kit.catalogue().types["ml.g6e.xlarge"]


def grown(runs: InstanceType = SMALL, before: InstanceType = LARGE, **memory: Any) -> tuple[Code, str] | None:
    need = {"need_gib": 22.1, "peak_gib": 20.05, **memory}
    return words(outgrown_reason(runs, before, replace(NEED, **need)))


def test_memory_that_outgrew_the_smaller_card_brings_the_larger_one_back() -> None:
    sentence = (
        "GPU memory grew to 20.1 GiB (22.1 GiB with room to grow), ml.g5.xlarge has 22.0 GiB: the last good"
        " configuration comes back"
    )
    assert grown(peak_gib=20.06) == (Code.UNDER_PROVISIONED, sentence)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"need_gib": 22.0}, id="it still fits"),
        pytest.param({"need_gib": None}, id="the need is unknown"),
        pytest.param({"runs": LARGE, "before": LARGE, "need_gib": 99.0}, id="the card is the same"),
        pytest.param({"runs": LARGE, "before": SMALL, "need_gib": 99.0}, id="the card is larger"),
        pytest.param({"before": replace(LARGE, accelerator=None)}, id="there was no card before"),
        pytest.param({"kind": MemoryClass.PREALLOCATED}, id="the server takes what there is"),
    ],
)
def test_memory_asks_for_nothing_where(told: dict[str, Any]) -> None:
    assert grown(**told) is None


def test_a_type_without_a_card_is_outgrown_by_any_need() -> None:
    assert grown(runs=replace(SMALL, accelerator=None)) is not None


def starves(
    latency: Latency = LATENCY, objective: LatencyObjective = DECLARED, instances: float = 1.0, **more: Any
) -> tuple[Code, str] | None:
    late = too_late_reason(demand(**more), latency, objective, POLICY, instances)
    return words(late or busy_and_failing_reason(demand(**more), objective, POLICY))


SLOW = replace(LATENCY, mean_s=0.31, p95_s=1.01)
"""Two requests a second, 0.31 s each, keep 0.62 of one worker busy."""


def test_a_missed_objective_is_want_of_capacity_where_the_workers_are_busy_too() -> None:
    sentence = "p95 is 1.01 s, above the objective of 1.00 s (tag rightsizer:p95-ms)"
    assert starves(SLOW) == (Code.UNDER_PROVISIONED, sentence)
    assert starves(replace(SLOW, p95_s=1.0)) is None
    assert starves(replace(SLOW, mean_s=0.3)) is None, "0.6 of a worker is not short"
    assert starves(SLOW, instances=1.04) is None
    assert starves(SLOW, instances=0.5) is not None, "part of an instance counts as one"
    assert starves(replace(SLOW, mean_s=0.29), instances=0.5) is None
    assert starves(SLOW, objective=USUAL_GOAL) is None


def test_an_objective_that_is_missed_by_a_quarter_is_want_of_capacity_anyhow() -> None:
    assert MUCH == 1.25
    free = replace(LATENCY, mean_s=0.01)
    assert starves(replace(free, p95_s=1.25)) is None
    assert starves(replace(free, p95_s=1.26)) is not None
    assert starves(replace(free, p95_s=9.0), objective=USUAL_GOAL) is None
    loose = replace(DECLARED, p95_s=2.0)
    assert starves(replace(free, p95_s=2.5), objective=loose) is None
    assert starves(replace(free, p95_s=2.51), objective=loose) is not None


def test_failures_of_a_busy_gpu_are_want_of_capacity() -> None:
    fine = replace(LATENCY, p95_s=0.5)
    sentence = "1.25 % of the requests failed (0.5 % are allowed) while the GPU was 96 % busy"
    assert starves(fine, error_share=0.0125, gpu_peak=0.96) == (Code.UNDER_PROVISIONED, sentence)
    assert starves(fine, error_share=0.005, gpu_peak=0.96) is None
    assert starves(fine, error_share=0.0125, gpu_peak=0.95) is None
    assert starves(fine, error_share=0.0125, gpu_peak=None) is None
    loose = replace(DECLARED, error_share=0.02)
    assert starves(fine, objective=loose, error_share=0.0125, gpu_peak=0.96) is None
    assert starves(fine, objective=replace(loose, error_share=0.01), error_share=0.0125, gpu_peak=0.96) == (
        Code.UNDER_PROVISIONED,
        sentence.replace("0.5 %", "1 %"),
    )
