"""What CloudWatch does not show: hours without datapoints, requests that nobody counted, chips without metrics."""

from array import array
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.endpoint import LEAST, EndpointKind, Objective
from rightsizer.domain.history import History
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import MetricStatistic, Series
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.demand import unseen_hours, unseen_instances
from rightsizer.recommender.gate import UNSEEN_HOURS, decide_gate
from rightsizer.recommender.usage_days import complete_end
from rightsizer.recommender.workload import analyse_workload
from tests.recommender import kit
from tests.recommender.plain import demand, option, past
from tests.recommender.test_gate_verdicts import case, endpoint

DAY = 288
OVERSIZED = kit.steady(gpu=2.0, memory=10.0)
NAN = float("nan")


def read(
    signals: dict[tuple[str, str], Any], instance_type: str = "ml.g6e.2xlarge", count: int = 1, **more: Any
) -> Recommendation:
    endpoint = replace(kit.endpoint(instance_type, count), objective=Objective(60.0, min_instances=1), **more)
    window, types = kit.window(signals), kit.catalogue(kit.OTHERS)
    return kit.judge(endpoint, [window], kit.prices(), types, {}, History(), Policy(), kit.NOW)


def silent_for(hours: float) -> dict[tuple[str, str], Callable[[int], float]]:
    """The signals of an oversized endpoint without a datapoint in its last hours."""
    last = round(14 * DAY - 12 * hours)

    def cut(value: Any) -> Callable[[int], float]:
        return lambda i: NAN if i >= last else value(i) if callable(value) else float(value)

    return {key: cut(value) for key, value in OVERSIZED.items()}


def test_what_is_not_seen_any_more_is_changed_by_no_automatic_mode() -> None:
    assert read(silent_for(0)).gate is Gate.APPLY
    assert read(silent_for(UNSEEN_HOURS - 0.5)).gate is Gate.APPLY
    found = read(silent_for(20))
    assert (found.finding, found.gate, found.gate_reason.code) == (
        Finding.OVER_PROVISIONED, Gate.PROPOSE, Code.TOO_MANY_GAPS,
    )  # fmt: skip
    assert "no GPU datapoint of its last 19 complete hours; find out why" in found.gate_reason.sentence


def test_hours_in_which_office_hours_had_it_stopped_are_not_missed() -> None:
    days = daily_usage(kit.window(OVERSIZED), VariantSetup(kit.catalogue().types["ml.g6e.2xlarge"], 1))
    until, start = kit.NOW + timedelta(days=2), kit.NOW
    assert unseen_hours(days, until, ()) == 48
    assert unseen_hours(days, until, (StoppedTime(start + timedelta(hours=1), until - timedelta(hours=1)),)) == 2
    assert unseen_hours(days, until, (StoppedTime(start - timedelta(hours=1)),)) == 0


def missed(*publishing: float | None, runs: int = 3) -> float:
    """Instances missed by what published on each of the days before today."""
    window, setup = kit.window(OVERSIZED), VariantSetup(kit.catalogue().types["ml.g6e.2xlarge"], 3)
    made = daily_usage(window, setup)[-len(publishing) :]
    return unseen_instances([replace(d, publishing=n) for d, n in zip(made, publishing, strict=True)], runs)


def test_instances_that_published_nothing_on_both_of_the_last_days_are_missed_and_what_was_not_asked_is_not() -> None:
    assert missed(3.0, 2.0, 2.0) == missed(3.0, 2.0, 2.0, 2.0) == 1.0
    assert missed(2.0, 2.0, 3.0) == missed(3.0, 2.0, None) == missed(3.0, 3.0, 3.0) == missed(3.0, 3.0, 4.0) == 0.0
    assert missed(2.0) == 0.0, "one day is not two"
    assert missed(2.0, 2.0, 2.0) == missed(2.0, 2.0) == 0.0, "one sample for several instances is a rhythm of its own"


def test_a_count_that_was_changed_lately_is_no_dead_instance_and_hides_none() -> None:
    assert missed(2.0, 2.0, 3.0, runs=4) == missed(2.0, 2.0, 2.0, runs=4) == 0.0, "raised yesterday, or today"
    assert missed(4.0, 3.0, 2.0, runs=2) == 0.0, "lowered"
    assert missed(3.0, 2.0, 2.0, runs=4) == 1.0, "one was dead before it was raised"


@pytest.mark.parametrize(("number", "text"), [(0.9, "1 instance"), (1.0, "1 instance"), (2.2, "2 instances")])
def test_what_is_missed_is_said_in_whole_instances(number: float, text: str) -> None:
    gate = decide_gate(case(demand=demand(unseen_instances=number)), History(), Policy(), kit.NOW)
    text = f"for two days metrics came from {text} fewer than before; find out why before it is changed"
    assert gate == (Gate.PROPOSE, Reason(Code.TOO_MANY_GAPS, f"needs your approval: {text}"))


@pytest.mark.parametrize(("samples", "publishing"), [(2 * 1440.0, 2.0), (1440.0, 1.0), (288.0, None), (NAN, None)])
def test_samples_of_a_whole_day_tell_how_many_instances_published_and_not_how_many_ran(
    samples: float, publishing: float | None
) -> None:
    made, setup = kit.window(OVERSIZED, days=1), VariantSetup(kit.catalogue().types["ml.g6e.2xlarge"], 3)
    counted = {MetricStatistic("CPUUtilization", "SampleCount"): Series(made.start, 86400, array("d", [samples]))}
    (usage,) = daily_usage(replace(made, series={**made.series, **counted}), setup)
    assert usage.publishing == publishing
    assert set(usage.instances) == {3.0}


def test_hours_in_which_nothing_ran_are_not_hours_in_which_an_instance_published_nothing() -> None:
    made, setup = kit.window(silent_for(13.5 * 24), days=1), VariantSetup(kit.catalogue().types["ml.g6e.2xlarge"], 2)
    counted = {MetricStatistic("CPUUtilization", "SampleCount"): Series(made.start, 86400, array("d", [1440.0]))}
    (usage,) = daily_usage(replace(made, series={**made.series, **counted}), setup)
    assert usage.publishing == 2.0, "half a day of two, stopped for the other half"


OWN_ROUTING = ("PREFIX_AWARE", "KV_AWARE", "ONE_OF_TOMORROW")


@pytest.mark.parametrize("routing", OWN_ROUTING)
def test_another_count_behind_another_routing_strategy_is_asked_about_and_another_type_is_not(routing: str) -> None:
    made = endpoint()
    routed = replace(made, variants=tuple(replace(v, routing=routing) for v in made.variants))

    def gate(kind: OptionKind) -> Gate:
        return decide_gate(case(endpoint=routed, option=option(kind=kind)), History(), Policy(), kit.NOW)[0]

    assert {gate(k) for k in (OptionKind.INSTANCE_COUNT, OptionKind.TYPE_AND_COUNT, OptionKind.ROUTING)} == {
        Gate.PROPOSE
    }
    assert gate(OptionKind.INSTANCE_TYPE) is Gate.APPLY
    why = decide_gate(
        case(endpoint=routed, option=option(kind=OptionKind.INSTANCE_COUNT)), History(), Policy(), kit.NOW
    )
    assert f"how the routing strategy {routing} spreads requests over another count is not known" in why[1].sentence


@pytest.mark.parametrize("routing", ["", "RANDOM", "LEAST_OUTSTANDING_REQUESTS", *OWN_ROUTING])
def test_another_type_brings_another_routing_only_where_requests_are_routed_at_random(routing: str) -> None:
    made, window = (
        kit.endpoint("ml.g6e.2xlarge", 2, routing=routing),
        kit.window(kit.steady(per_slot=600.0, latency_s=0.12, gpu=15.0)),
    )
    found = kit.judge(made, [window], kit.prices(), kit.catalogue(kit.OTHERS), {}, History(), Policy(), kit.NOW)
    assert found.chosen_option is not None
    assert (found.gate, found.chosen_option.kind) == (Gate.APPLY, OptionKind.INSTANCE_TYPE)
    assert found.chosen_option.target.routing == ("LEAST_OUTSTANDING_REQUESTS" if routing in ("", "RANDOM") else None)
    said = {out.reason.sentence for out in found.excluded if out.dimension is OptionKind.ROUTING}
    assert (f"its owner chose the routing strategy {routing}" in said) is (routing in OWN_ROUTING)


@pytest.mark.parametrize(
    ("before", "now", "at_random"),
    [("RANDOM", LEAST, True), ("", "RANDOM", True), ("", "PREFIX_AWARE", False), ("KV_AWARE", "RANDOM", False)],
)
def test_the_reference_days_were_routed_as_before_our_first_change(before: str, now: str, at_random: bool) -> None:
    made, changed = kit.endpoint(routing=now), replace(past(), from_routing=before)
    days = daily_usage(kit.window(OVERSIZED), VariantSetup(kit.catalogue().types["ml.g6e.xlarge"], 1))
    account = AccountInputs(kit.prices(), kit.catalogue(), {}, History((changed,)), Policy(), kit.NOW)
    assert analyse_workload(made, kit.catalogue().types["ml.g6e.xlarge"], days, account).random_base is at_random


def test_whole_days_are_expected_up_to_midnight_and_a_running_day_up_to_its_last_complete_hour() -> None:
    noon = kit.NOW + timedelta(hours=12, minutes=20)
    assert complete_end((kit.NOW - timedelta(days=1)).date(), noon) == kit.NOW
    assert complete_end(kit.NOW.date(), noon) == kit.NOW + timedelta(hours=11)


def test_answered_requests_that_nobody_counted_are_no_silence() -> None:
    uncounted = {**OVERSIZED, ("Invocations", "Sum"): NAN}
    found = read(uncounted)
    assert (found.finding, found.gate) == (Finding.NOT_ENOUGH_DATA, Gate.SILENT)
    assert found.reason.sentence.startswith("requests were answered (ModelLatency was published)")
    quiet = {key: NAN if key[0] == "ModelLatency" else value for key, value in uncounted.items()}
    assert read({**quiet, ("GPUUtilization", "Average"): 0.0}).finding is Finding.IDLE


def test_a_queue_whose_requests_nobody_counts_is_judged_by_its_backlog() -> None:
    kinds: dict[str, Any] = {"kind": EndpointKind.ASYNC, "kinds": (EndpointKind.ASYNC,)}
    found = read({**OVERSIZED, ("Invocations", "Sum"): NAN, ("ApproximateBacklogSize", "Maximum"): 0.0}, **kinds)
    assert found.reason.code is Code.TOO_FEW_REQUESTS
    assert not found.reason.sentence.startswith("requests were answered"), "its queue tells what it had to do"


def test_a_chip_of_which_nothing_is_published_is_idle_by_its_requests_alone() -> None:
    host = {key: value for key, value in kit.steady().items() if key[0] in ("CPUUtilization", "MemoryUtilization")}
    found = read({**host, ("Invocations", "Sum"): 0.0}, "ml.inf2.xlarge")
    assert (found.finding, found.gate) == (Finding.IDLE, Gate.PROPOSE)
    assert found.reason.sentence.endswith(
        "while the utilisation of its host was published; CloudWatch shows nothing of its chips"
    )
    assert (
        read({**host, ("Invocations", "Sum"): lambda i: float(i == 9 * DAY)}, "ml.inf2.xlarge").finding
        is Finding.NOT_ENOUGH_DATA
    )
    assert read({**host, ("Invocations", "Sum"): 0.0}, "ml.g5.xlarge").finding is Finding.NOT_ENOUGH_DATA


@pytest.mark.parametrize(("gpu", "cut"), [(0.0, True), (60.0, False)])
def test_silence_takes_no_instance_whose_gpu_works(gpu: float, cut: bool) -> None:
    signals = kit.steady(per_slot=300.0)
    signals[("Invocations", "Sum")] = lambda i: 300.0 if i < 9 * DAY else 0.0
    for name in ("Average", "Maximum"):
        signals[("GPUUtilization", name)] = lambda i: 20.0 if i < 9 * DAY else gpu
    for key in signals:
        if key[0] == "ModelLatency":
            signals[key] = lambda i: 500_000.0 if i < 9 * DAY else NAN
    found = read(signals, "ml.g5.xlarge", 4)
    assert ("its traffic has stopped" in found.reason.sentence) is cut
