"""Endpoints without a request: too early to call them idle, and yet some of them may sleep."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.endpoint import EndpointKind, Mode, ScalableTarget
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.idle import delete_refusal, recommend_for_idle
from rightsizer.recommender.recommend import add_daily_usage
from tests.recommender import kit, plain
from tests.recommender.kit import judge, judge_digests

COLD = {"rightsizer:cold-start-ok": "true"}
SILENT = {("GPUUtilization", "Average"): 0.0, ("Invocations", "Sum"): 0.0}


def judged(
    signals: dict[tuple[str, str], Any], tags: dict[str, str], policy: Policy | None = None, days: int = 3, **given: Any
) -> Recommendation:
    endpoint = replace(kit.endpoint(**given), tags=tags)
    policy = policy or Policy()
    window = kit.window(signals, days=days)
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)


def test_who_tolerates_cold_starts_and_was_not_asked_may_sleep_long_before_it_is_idle() -> None:
    found = judged(SILENT, COLD, mode=Mode.PROPOSE)
    assert found.finding is Finding.OVER_PROVISIONED
    assert found.reason.code is Code.CHEAPER_OPTION
    assert "no request in" in found.reason.sentence
    assert found.chosen_option is not None
    assert found.chosen_option.kind is OptionKind.SCALE_TO_ZERO
    assert found.chosen_option.target.idle_minutes == 15
    assert found.gate is Gate.PROPOSE
    assert found.usd_per_month is not None
    assert (
        0.9 * float(found.usd_per_month) < float(found.chosen_option.saving_usd_per_month) < float(found.usd_per_month)
    )


def test_a_plain_real_time_endpoint_never_sleeps_by_itself() -> None:
    asked = judged(SILENT, COLD, mode=Mode.AUTO)
    assert (asked.gate, asked.gate_reason.code) == (Gate.PROPOSE, Code.NOT_IN_PLACE)


def ruled_out(found: Recommendation) -> dict[OptionKind | None, str]:
    return {e.dimension: e.reason.sentence for e in found.excluded}


@pytest.mark.parametrize(
    ("signals", "tags", "given", "awake"),
    [
        (SILENT, {}, {}, "no tag rightsizer:cold-start-ok=true says that callers can wait for a start"),
        ({**SILENT, ("GPUUtilization", "Average"): 30.0}, COLD, {}, "its GPU works (up to 30.0 %)"),
        ({**SILENT, ("Invocations", "Sum"): 1.0}, COLD, {}, "864 requests came in 3.0 days"),
        (
            {**SILENT, ("ApproximateBacklogSize", "Maximum"): 7.0},
            COLD,
            {"kind": EndpointKind.ASYNC},
            "the backlog of its queue was up to 7",
        ),
        (SILENT, COLD, {"kind": EndpointKind.ASYNC}, "the backlog of its queue is not known"),
        (
            SILENT,
            COLD,
            {"kind": EndpointKind.SHADOW},
            "sleep is not looked at for the kind shadow variant",
        ),
    ],
)
def test_otherwise_it_is_left_alone_for_want_of_data_and_says_why_it_does_not_sleep(
    signals: Any, tags: dict[str, str], given: dict[str, Any], awake: str
) -> None:
    found = judged(signals, tags, **given)
    assert found.finding is Finding.NOT_ENOUGH_DATA
    assert found.reason.code is Code.TOO_FEW_REQUESTS
    assert not found.options
    assert ruled_out(found)[OptionKind.SCALE_TO_ZERO] == awake


def test_who_is_silent_for_too_short_a_time_to_be_idle_is_told_so() -> None:
    for tags in ({}, COLD):
        found = judged(SILENT, tags)
        assert ruled_out(found)[OptionKind.DELETE] == "no request for 3 days; 14 days without a request make it idle"


@pytest.mark.parametrize(
    ("signals", "given", "said"),
    [
        ({}, {"days": 3}, "nobody called it in 3.0 days, and 14 such days in a row make it idle"),
        (
            {},
            {"kind": EndpointKind.ASYNC},
            "no request was counted in 14.0 days; the backlog of its queue is not known, and only an empty one makes it"
            " idle",
        ),
        (
            {("ApproximateBacklogSize", "Maximum"): 3.0},
            {"kind": EndpointKind.ASYNC},
            "no request was counted in 14.0 days; the backlog of its queue was up to 3, and only an empty one makes it"
            " idle",
        ),
    ],
    ids=["too early", "backlog unread", "a backlog"],
)
def test_what_is_missing_to_call_it_idle_is_said(signals: Any, given: Any, said: str) -> None:
    found = judged({**SILENT, **signals}, {}, **{"days": 14, **given})
    assert (found.finding, found.reason.sentence) == (Finding.NOT_ENOUGH_DATA, said)


@pytest.mark.parametrize(
    ("signals", "said"),
    [
        ({}, "no request was counted in 3.0 days, and 14 such days in a row make it idle"),
        (
            {("ModelLatency", "Average"): 2e5, ("ModelLatency", "SampleCount"): 4.0},
            "no request was counted in 3.0 days, and it answered some: ModelLatency was published",
        ),
        (
            {("GPUUtilization", "Average"): 30.0},
            "no request was counted in 3.0 days, and it is not known what its GPU works at without a request (up to"
            " 30.0 %)",
        ),
    ],
    ids=["too early", "answered", "works"],
)
def test_an_empty_queue_that_may_sleep_already_says_what_is_missing_to_call_it_idle(signals: Any, said: str) -> None:
    silent = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 0.0}
    target = ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 0, 4)
    of, window = replace(kit.endpoint(kind=EndpointKind.ASYNC), scaling=(target,)), kit.window({**silent, **signals}, 3)
    found = judge(of, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert (found.finding, found.reason.sentence) == (Finding.NOT_ENOUGH_DATA, said)


def test_no_text_tells_more_silent_days_than_were_seen() -> None:
    """A look-back from noon to noon touches fifteen dates, the first and the last in part."""
    base, demand = judged(SILENT, {}, days=15), replace(plain.DEMAND, requests=0.0, silent_days=15, days=14.0)
    assert base.price is not None
    args = (base.price, kit.endpoint(), AccountInputs(kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW))
    idle = recommend_for_idle(base, base.reason, demand, *args)
    assert idle.options[0].facts["days without a request"] == "14"
    used = delete_refusal(kit.endpoint(), replace(demand, requests=5.0), Policy())
    assert "(5 requests in 14.0 days, none on the last 14 days); a look-back of 14 days" in used.sentence
    today = delete_refusal(kit.endpoint(), replace(demand, requests=5.0, silent_days=0), Policy())
    assert today.sentence == "it is used (5 requests in 14.0 days); 14 days without a request make it idle"


def test_an_idle_endpoint_says_why_it_is_not_put_to_sleep_or_not_deleted() -> None:
    found = judged(SILENT, {}, days=15)
    assert (found.finding, found.options[0].kind) == (Finding.IDLE, OptionKind.DELETE)
    saved = found.options[0].saving_usd_per_month
    assert ruled_out(found) == {
        OptionKind.SCALE_TO_ZERO: f"it would save no more than deletion does (${saved:,.2f} a month), and it has no"
        " queue that keeps the request that wakes it"
    }
    silent = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 0.0}
    queue = judged(silent, {}, days=15, kind=EndpointKind.ASYNC)
    assert queue.options[0].kind is OptionKind.SCALE_TO_ZERO
    assert ruled_out(queue) == {
        OptionKind.DELETE: f"it would save no more than scaling to zero (${saved:,.2f} a month), where its queue keeps"
        " what comes"
    }


def test_an_idle_queue_that_sleeps_already_says_so() -> None:
    silent = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 0.0}
    target = ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 0, 4)
    endpoint = replace(kit.endpoint(kind=EndpointKind.ASYNC), scaling=(target,))
    window = kit.window(silent, days=15)
    found = judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.finding is Finding.IDLE
    assert ruled_out(found) == {OptionKind.SCALE_TO_ZERO: "its autoscaling goes down to 0 instances already"}
    short = judge(
        endpoint, [kit.window(silent, days=3)], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert ruled_out(short)[OptionKind.SCALE_TO_ZERO] == "its autoscaling goes down to 0 instances already"


def test_what_is_paid_for_lists_no_ways_to_save() -> None:
    assert judged(SILENT, {}, days=15, kind=EndpointKind.RESERVED).excluded == ()


def test_an_asynchronous_one_is_woken_by_its_queue_and_its_callers_change_nothing() -> None:
    silent = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 0.0}
    found = judged(silent, COLD, kind=EndpointKind.ASYNC, mode=Mode.PROPOSE)
    assert found.chosen_option is not None
    assert (found.chosen_option.kind, found.chosen_option.in_place) == (OptionKind.SCALE_TO_ZERO, True)
    assert found.chosen_option.client_change == ""


@pytest.mark.parametrize("kind", [EndpointKind.INFERENCE_COMPONENTS, EndpointKind.MULTI_MODEL, EndpointKind.SHADOW])
def test_kinds_that_publish_their_calls_elsewhere_are_not_called_silent(kind: EndpointKind) -> None:
    assert judged(SILENT, COLD, kind=kind).finding is Finding.NOT_ENOUGH_DATA


def test_calls_of_another_variant_are_not_seen() -> None:
    two = replace(kit.endpoint(), tags=COLD)
    two = replace(two, variants=(*two.variants, replace(two.variants[0], name="Second")))
    found = judge(two, [kit.window(SILENT, days=3)], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert not found.options


def test_work_that_is_not_published_is_not_taken_for_none() -> None:
    signals = {("Invocations", "Sum"): 0.0, ("MemoryUtilization", "Average"): 20.0, ("CPUUtilization", "Average"): 60.0}
    assert not judged(signals, COLD).options


def test_an_idle_endpoint_whose_instances_are_gone_already_costs_nothing_and_is_left_alone() -> None:
    silent = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 0.0}
    ran, gone = (kit.endpoint(count=count, kind=EndpointKind.ASYNC) for count in (1, 0))
    g5 = kit.catalogue().find(ran.variants[0].instance_type)
    assert g5 is not None
    usage = add_daily_usage(ran, [kit.window(silent, days=15)], g5, History(), Policy())
    found = judge_digests(gone, usage, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert (found.finding, found.gate) == (Finding.IDLE, Gate.SILENT)
    assert found.gate_reason.code is Code.SAVING_TOO_SMALL


@pytest.mark.parametrize("kinds", [(EndpointKind.ASYNC,), (EndpointKind.PIPELINE, EndpointKind.ASYNC)])
def test_a_queue_with_a_backlog_is_not_idle_whatever_else_its_endpoint_is(kinds: tuple[EndpointKind, ...]) -> None:
    stuck = {("GPUUtilization", "Average"): 0.0, ("ApproximateBacklogSize", "Maximum"): 7.0}
    endpoint = replace(kit.endpoint(kind=kinds[0]), kinds=kinds)
    windows = [kit.window(stuck, days=15)]
    found = judge(endpoint, windows, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.finding is not Finding.IDLE


def test_one_silent_variant_of_several_does_not_make_an_endpoint_idle() -> None:
    """Law 1: the calls of the first variant are read, and unknown is not idle."""
    plain = kit.endpoint(kind=EndpointKind.MULTI_VARIANT)
    silent, serving = plain.variants[0], replace(plain.variants[0], name="Other")
    windows = [kit.window(SILENT, days=15)]
    for variants, finding in (((silent,), Finding.IDLE), ((silent, serving), Finding.NOT_ENOUGH_DATA)):
        asked = replace(plain, variants=variants)
        found = judge(asked, windows, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
        assert found.finding is finding
    several = "it has several variants, and the calls of one do not tell whether all are "
    assert ruled_out(found) == {OptionKind.SCALE_TO_ZERO: f"{several}used", OptionKind.DELETE: f"{several}idle"}
    assert not found.options


@pytest.mark.parametrize(
    ("signals", "given", "why"),
    [
        (
            {("ApproximateBacklogSize", "Maximum"): 7.0},
            {"kind": EndpointKind.ASYNC},
            "the backlog of its queue was up to 7",
        ),
        ({}, {"kind": EndpointKind.ASYNC}, "the backlog of its queue is not known"),
        ({("GPUUtilization", "Average"): 30.0}, {}, "its GPU works without requests (up to 30.0 %)"),
    ],
)
def test_why_an_endpoint_is_not_idle_is_what_will_not_pass_with_the_days(
    signals: dict[tuple[str, str], Any], given: dict[str, Any], why: str
) -> None:
    for days in (3, 15):
        found = judged({**SILENT, **signals}, {}, days=days, **given)
        assert ruled_out(found)[OptionKind.DELETE].startswith(why)


def test_who_was_used_within_a_longer_look_back_is_told_when_it_would_be_idle() -> None:
    signals: dict[tuple[str, str], Any] = dict(kit.steady(memory=90.0))
    signals["Invocations", "Sum"] = lambda i: 6.0 * (i < 10 * 288)
    for statistic in ("Average", "p50", "p95", "p99"):
        latency = signals["ModelLatency", statistic]
        signals["ModelLatency", statistic] = lambda i, latency=latency: latency if i < 10 * 288 else math.nan
    found = judged(signals, {}, Policy(lookback_days=30), days=30)
    assert found.finding is not Finding.IDLE
    assert ruled_out(found)[OptionKind.DELETE].endswith("days); a look-back of 30 days without one makes it idle")


def queue_with(calls_at: range, works_at: range, backlog_at: range) -> Recommendation:
    """A queue of three days without a latency: slots of each day with a request, with GPU work, with a backlog."""

    def slots(at: range, value: float) -> Callable[[int], float]:
        return lambda slot: value if slot % 288 in at else 0.0

    signals = {
        ("GPUUtilization", "Average"): slots(works_at, 60.0),
        ("InvocationsProcessed", "Sum"): slots(calls_at, 1.0),
        ("ApproximateBacklogSize", "Maximum"): slots(backlog_at, 1.0),
    }
    return judged(signals, {}, mode=Mode.AUTO, kind=EndpointKind.ASYNC)


def test_one_request_does_not_explain_a_gpu_that_works_at_something_else() -> None:
    its_own = queue_with(range(6), range(6), range(6))
    assert its_own.options[0].kind is OptionKind.SCALE_TO_ZERO
    other = queue_with(range(1), range(100, 150), range(1))
    assert other.options == ()
    assert "of its GPU's work was done while no request was there" in ruled_out(other)[OptionKind.SCALE_TO_ZERO]
