"""A model that did not start on a type does not start there behind another endpoint either; another model may."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.flows.judge import judge
from rightsizer.model.history import History, PastChange
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code
from rightsizer.model.recommendation import Recommendation
from tests.rules import kit

MODEL = "chat"
"""What the endpoint of the kit runs."""


def judged(history: History | None = None) -> Recommendation:
    window = kit.window(kit.steady())
    return judge(kit.endpoint(), [window], kit.prices(), kit.catalogue(), {}, history or History(), Policy(), kit.NOW)


def first() -> str:
    return judged().options[0].target.instance_type


def failed(failure: str = "health-check", *models: str, days: float = 10) -> PastChange:
    at = kit.NOW - timedelta(days=days)
    return PastChange(at, "ml.g6e.xlarge", first(), 1, 1, "update-failed", failure=failure, demand=9.0, models=models)


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
    assert "rests until" in said


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
    assert "failed 2 time(s)" in sentence(judged(twice), first())


def test_a_load_that_changed_does_not_let_a_model_start_that_did_not() -> None:
    other_load = replace(failed("health-check", MODEL), demand=0.0001)
    assert first() not in [o.target.instance_type for o in judged(History((other_load,))).options]
