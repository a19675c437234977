"""What earlier changes and tests, and the size of a card, say about a type."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.demand import Latency, MemoryClass, MemoryNeed
from rightsizer.domain.history import PastEnd
from rightsizer.domain.reason import Code
from rightsizer.domain.slowdown import SlowdownSource
from rightsizer.recommender import candidates
from rightsizer.recommender.candidates import (
    fit_chance,
    latency_ratio_on,
)
from rightsizer.recommender.slowdown import LEFT, Lesson, Ratio
from tests.recommender import kit, plain
from tests.recommender.plain_context import TYPE, context, day
from tests.recommender.test_candidates import HALF, SIZE, SMALL, hardware, loaded

# what earlier failures say


def refuted(days_ago: float = 3.0, **more: Any) -> Any:
    return plain.past(SMALL, days_ago=days_ago, ended=PastEnd.ROLLED_BACK, from_type=TYPE, failure="errors", **more)


def test_a_type_that_failed_rests_and_longer_the_second_time() -> None:
    once = refuted()
    seen = context(past=(once,))
    rests = candidates._rest_reason(seen, hardware(), Lesson(refuted=once))
    assert rests is not None
    assert rests.code is Code.BLACKLISTED
    assert rests.sentence == (
        "ml.g4dn.xlarge failed once, last on 17 Nov 2026 (errors); it is not tried again before 17 Dec 2026"
    )
    twice = context(past=(refuted(9.0), once))
    rests = candidates._rest_reason(twice, hardware(), Lesson(refuted=replace(once, failure="")))
    assert rests is not None
    assert "failed 2 times, last on 17 Nov 2026 (unknown cause)" in rests.sentence
    assert candidates._rest_reason(seen, hardware(), Lesson()) is None
    assert candidates._rest_reason(seen, seen.reference, Lesson(refuted=once)) is None
    old = refuted(days_ago=400.0)
    assert candidates._rest_reason(context(past=(old,)), hardware(), Lesson(refuted=old)) is None


def test_a_failure_behind_another_endpoint_is_said_as_that() -> None:
    there = plain.past(SMALL, days_ago=3.0, ended=PastEnd.ROLLED_BACK, failure="health-check", models=("chat",))
    seen = context()
    account = replace(seen.inputs, history=replace(seen.inputs.history, account=(there,)))
    elsewhere = candidates._rest_reason(replace(seen, inputs=account), hardware(), Lesson(refuted=there))
    here = candidates._rest_reason(context(past=(there,)), hardware(), Lesson(refuted=there))
    assert elsewhere is not None
    assert here is not None
    assert " behind another endpoint with the same model (health-check)" in elsewhere.sentence
    assert " behind another endpoint" not in here.sentence


@pytest.mark.parametrize("failure", ["alarm", LEFT, "errors"])
def test_an_alarm_is_forgiven_once_where_the_hours_on_the_type_were_no_slower(failure: str) -> None:
    past = replace(refuted(), failure=failure)
    seen = context(past=(past,))
    served = replace(seen, days=[*seen.days, day(8, name=SMALL)])
    rests = candidates._rest_reason(served, hardware(), Lesson(refuted=past))
    assert (rests is None) is (failure != "errors")
    assert candidates._rest_reason(seen, hardware(), Lesson(refuted=past)) is not None, "no hour tells"
    again = replace(served, inputs=replace(seen.inputs, history=replace(seen.inputs.history, endpoint=(past, past))))
    assert candidates._rest_reason(again, hardware(), Lesson(refuted=past)) is not None


@pytest.mark.parametrize(("p50_s", "p95_s", "alike"), [(1.05, 2.1, True), (1.06, 2.1, False), (1.05, 2.11, False)])
def test_no_slower_is_a_median_and_a_p95_within_a_twentieth(
    monkeypatch: pytest.MonkeyPatch, p50_s: float, p95_s: float, alike: bool
) -> None:
    usual = Latency(1.0, 1.0, 2.0, 3.0, 1.0)
    monkeypatch.setattr(candidates, "latency_of", lambda _: Latency(1.0, p50_s, p95_s, 3.0, 1.0))
    assert candidates._is_no_slower(context(latency=usual), hardware()) is alike


def test_a_new_version_of_the_model_is_tried_where_the_old_one_failed_once() -> None:
    past = replace(refuted(), models=("chat-0",))
    assert candidates._rest_reason(context(past=(past,)), hardware(), Lesson(refuted=past)) is None
    twice = (past, replace(past, at=past.at - timedelta(days=1)))
    assert candidates._rest_reason(context(past=twice), hardware(), Lesson(refuted=past)) is not None


# slowdown and fit


def test_a_measured_slowdown_goes_before_the_datasheet_with_the_error_of_its_measurement() -> None:
    seen = context()
    for lesson, error in ((Lesson(gpu_ratio=2.0), 0.1), (Lesson(gpu_ratio=2.0, served=True), 0.05)):
        policy = replace(seen.policy, measured_error=0.1, served_error=0.05)
        told = replace(seen, inputs=replace(seen.inputs, policy=policy))
        speed = candidates._slowdown(told, lesson, hardware())
        assert (speed.mid, speed.bound) == pytest.approx((2.0, 2.0 * (1 + error)))
    same = candidates._slowdown(seen, Lesson(gpu_ratio=2.0), hardware(SIZE))
    assert (same.mid, same.source) == (1.0, SlowdownSource.SAME)


def test_another_type_of_this_endpoint_narrows_the_bound_of_a_guess() -> None:
    seen = context(policy={"other_type_spread": 0.1})
    plain_speed = candidates._slowdown(seen, Lesson(), hardware())
    assert plain_speed.source is SlowdownSource.DATASHEET
    assert plain_speed.bound == pytest.approx(plain_speed.phi * seen.policy.slowdown_bound)
    narrowed = candidates._slowdown(seen, Lesson(other_q=0.5), hardware())
    assert narrowed.source is SlowdownSource.LEARNT
    assert narrowed.bound == pytest.approx(plain_speed.phi * 0.55)
    assert candidates._slowdown(seen, Lesson(other_q=5.0), hardware()) == plain_speed
    learnt = context()
    vars(learnt)["outcomes"] = (0.5,) * 60
    told = candidates._slowdown(learnt, Lesson(), hardware())
    assert told.source is SlowdownSource.LEARNT
    assert told.mid < plain_speed.mid, "the account's own middle counts"


def test_the_latency_ratio_is_known_of_types_with_an_accelerator() -> None:
    seen = context()
    assert latency_ratio_on(seen, hardware(SIZE)) == Ratio(1.0, 1.0)
    cpu = kit.catalogue({"ml.m5.2xlarge": (8, 32, 0, "0.461")}).find("ml.m5.2xlarge")
    assert cpu is not None
    assert latency_ratio_on(seen, cpu) is None
    assert latency_ratio_on(replace(seen, reference=cpu), hardware(SIZE)) is None


def test_few_vcpus_bound_the_part_of_the_host() -> None:
    seen = context()
    seen = replace(seen, demand=replace(seen.demand, gpu_share=0.5), reference=hardware(SIZE))
    assert latency_ratio_on(seen, hardware(TYPE)) == Ratio(1.5, 1.5)
    tested = plain.past(TYPE, from_type=SIZE, latency_ratio=1.0, ended=PastEnd.TESTED, days_ago=2.0)
    shown = replace(seen, inputs=replace(seen.inputs, history=replace(seen.inputs.history, endpoint=(tested,))))
    _, host, _ = candidates._slowdowns(shown, Lesson(), hardware(TYPE))
    assert host == 1.0, "a test with fewer vCPUs was no slower"


@pytest.mark.parametrize(
    ("name", "used", "seen_singly", "counted"),
    [
        ("ml.g6.48xlarge", None, False, True),
        (TYPE, 1, True, True),
        (TYPE, 1, False, False),
        (TYPE, 2, True, False),
        (TYPE, None, True, False),
        ("ml.g5.xlarge", 1, True, False),
    ],
)
def test_fewer_gpus_are_enough_where_they_were_counted_one_by_one_on_the_same_card(
    name: str, used: int | None, seen_singly: bool, counted: bool
) -> None:
    seen = context(reference=hardware("ml.g6.48xlarge"))
    seen = replace(seen, demand=replace(seen.demand, gpus_used=used, gpus_seen=seen_singly, memory=HALF))
    assert candidates._is_counted(seen, hardware(name)) is counted
    assert fit_chance(seen, hardware(name)) == (1.0 if counted else 0.8)


def test_an_unknown_need_fits_by_the_share_of_the_card_that_is_left() -> None:
    unknown = MemoryNeed(MemoryClass.UNKNOWN, None, 2.0, 2.0, 1.0)
    seen = loaded(unknown, policy={"memory_margin": 0.1})
    room = 14.6 / 1.1
    assert fit_chance(seen, hardware()) == pytest.approx((room - 2.0) / (22.0 - 2.0))
    taken = loaded(replace(unknown, kind=MemoryClass.PREALLOCATED), policy={"memory_margin": 0.1})
    assert fit_chance(taken, hardware()) == pytest.approx((14.6 - 2.0) / (22.0 - 2.0))
    assert fit_chance(taken, hardware("ml.g5.xlarge")) == 1.0, "as large as what runs"
    tight = loaded(unknown, policy={"memory_margin": 0.01})
    assert fit_chance(tight, hardware("ml.g5.xlarge")) == pytest.approx(candidates.UNSEEN_FIT)
    assert fit_chance(seen, hardware(SIZE)) == 1.0, "the same card needs no room"
    assert fit_chance(loaded(replace(unknown, lower_gib=14.5)), hardware()) == 0.0
    full = loaded(replace(unknown, kind=MemoryClass.PREALLOCATED, lower_gib=22.0))
    assert fit_chance(full, hardware()) == 0.0


def test_what_started_there_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_lesson", lambda *_: Lesson(started=True))
    assert fit_chance(loaded(MemoryNeed(MemoryClass.UNKNOWN, None, 14.0, 14.0, 1.0)), hardware()) == 1.0


def test_a_latency_that_was_measured_there_goes_before_what_datasheets_say() -> None:
    _, _, ratio = candidates._slowdowns(context(), Lesson(latency_ratio=1.3), hardware())
    assert ratio.mid == 1.3


def test_cards_are_compared_by_their_datasheets_and_a_type_without_one_by_nothing() -> None:
    seen, small = context(), hardware()
    cpu = replace(small, accelerator=None)
    assert small.accelerator is not None
    assert seen.reference.accelerator is not None
    assert candidates._phi(seen, small) == seen.reference.accelerator.phi(small.accelerator) > 1
    assert candidates._phi(seen, cpu) == candidates._phi(replace(seen, reference=cpu), small) == 1.0
    assert fit_chance(seen, cpu) == fit_chance(replace(seen, reference=cpu), small) == 0.0
