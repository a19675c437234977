"""A model that did not start on a type does not start there behind another endpoint either; another model may."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import BIN, VariantUsage
from rightsizer.recommender import recommend
from tests.recommender import kit
from tests.recommender.kit import judge

MODEL = "chat"
"""What the endpoint of the kit runs."""


def judged(history: History | None = None) -> Recommendation:
    window = kit.window(kit.steady())
    return judge(kit.endpoint(), [window], kit.prices(), kit.catalogue(), {}, history or History(), Policy(), kit.NOW)


def first() -> str:
    return judged().options[0].target.instance_type


def failed(failure: str = "health-check", *models: str, days: float = 10) -> PastChange:
    at = kit.NOW - timedelta(days=days)
    return PastChange(
        at, "ml.g6e.xlarge", first(), 1, 1, PastEnd.UPDATE_FAILED, failure=failure, demand=9.0, models=models
    )


def sentence(found: Recommendation, name: str) -> str:
    (excluded,) = [e for e in found.excluded if e.instance_type == name and e.dimension is None]
    assert excluded.reason.code in (Code.BLACKLISTED, Code.MEMORY_TOO_SMALL)
    return excluded.reason.sentence


@pytest.mark.parametrize("failure", ["health-check", "memory"])
def test_what_failed_behind_another_endpoint_with_the_same_model_holds_here(failure: str) -> None:
    found = judged(History(account=(failed(failure, MODEL),)))
    assert first() not in [o.target.instance_type for o in found.options]
    assert sentence(found, first())


def test_the_reason_says_that_it_was_another_endpoint() -> None:
    said = sentence(judged(History(account=(failed("health-check", MODEL),))), first())
    assert "another endpoint with the same model" in said
    assert "is not tried again before" in said


@pytest.mark.parametrize("failure", ["alarm", "timeout", "performance"])
def test_what_belongs_to_the_load_of_another_endpoint_says_nothing_here(failure: str) -> None:
    assert judged(History(account=(failed(failure, MODEL),))).options == judged().options


def test_another_model_of_the_account_may_try_the_type() -> None:
    assert judged(History(account=(failed("health-check", "ranker"),))).options == judged().options


def test_an_own_failure_of_a_model_that_is_not_served_any_more_is_lifted() -> None:
    assert judged(History((failed("health-check", "chat-v1"),))).options[0].target.instance_type == first()


@pytest.mark.parametrize("models", [(MODEL,), ()], ids=["same model", "not recorded"])
def test_an_own_failure_holds_for_the_model_and_where_the_model_was_not_recorded(models: tuple[str, ...]) -> None:
    found = judged(History((failed("health-check", *models),)))
    assert first() not in [o.target.instance_type for o in found.options]


def test_the_rest_doubles_over_all_endpoints_with_the_model() -> None:
    """Thirty days for one failure, sixty for two: forty days ago holds only with another before it."""
    once = judged(History(account=(failed("health-check", MODEL, days=40),)))
    assert once.options[0].target.instance_type == first()
    twice = History((failed("health-check", MODEL, days=40),), (failed("health-check", MODEL, days=50),))
    assert "failed 2 times" in sentence(judged(twice), first())


def tired(days: float, demand: float | None, *models: str) -> PastChange:
    """A change to the cheapest type that its alarm took back, under the demand of today where none is given."""
    past = failed("alarm", *models, days=days)
    return replace(past, ended=PastEnd.ROLLED_BACK, demand=demand)


def today() -> float:
    promise = judged().options[0].promise
    assert promise is not None
    assert promise.peak_busy_gpus is not None
    return promise.peak_busy_gpus


@pytest.mark.parametrize(("then", "rests"), [(0.5, True), (1.0, True), (1.3, True), (1.4, False)])
def test_only_a_failure_under_a_quarter_more_demand_than_today_is_lifted(then: float, rests: bool) -> None:
    found = judged(History((tired(10, then * today(), MODEL),)))
    assert (first() not in [o.target.instance_type for o in found.options]) is rests


def test_a_new_version_of_the_model_lifts_the_first_failure_of_a_type_and_not_the_second() -> None:
    once, twice = tired(10, None, "chat-v1"), tired(20, None, "chat-v0")
    assert judged(History((once,))).options[0].target.instance_type == first()
    assert "failed 2 times" in sentence(judged(History((twice, once))), first())


def test_a_load_that_changed_does_not_let_a_model_start_that_did_not() -> None:
    other_load = replace(failed("health-check", MODEL), demand=0.0001)
    assert first() not in [o.target.instance_type for o in judged(History((other_load,))).options]


@pytest.mark.parametrize(("tail_s", "again"), [(0.0, True), (20.0, False)], ids=["as fast", "slow tail"])
def test_an_alarm_is_forgiven_only_where_the_hours_on_the_type_had_no_slower_median_and_no_slower_p95(
    tail_s: float, again: bool
) -> None:
    """The slowest requests took 20 s: the median cannot tell, and the p95 can."""
    window = kit.window(kit.steady())
    hardware = kit.catalogue().find("ml.g6e.xlarge")
    assert hardware is not None
    used = recommend.add_daily_usage(kit.endpoint(), [window], hardware, History(), Policy())
    assert isinstance(used, VariantUsage)
    last = used.days[-1]
    *most, (_, slowest), (_, slower) = last.latency
    latency = (*most, (round(math.log(1000 * tail_s) / math.log(BIN)), slowest + slower)) if tail_s else last.latency
    there = replace(last, instance_type=first(), latency=latency)
    usage = replace(used, days=(*used.days, there))
    back = History((tired(1, today()),))
    rest: Any = (kit.prices(), kit.catalogue(), {}, back, Policy(), kit.NOW)
    found = kit.judge_digests(kit.endpoint(), usage, *rest)
    named = {e.instance_type: e.reason.code for e in found.excluded if e.dimension is None}
    assert (named.get(first()) is not Code.BLACKLISTED) is again
