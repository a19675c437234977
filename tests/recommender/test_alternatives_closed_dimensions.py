"""Dimensions that the settings keep closed: a person is asked, and told how automatic mode could do it."""

from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import pytest

from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import EndpointKind, Mode, Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import Excluded, Option, OptionKind
from rightsizer.domain.policy import ADDABLE, TYPE_AND_COUNT, Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import alternatives
from rightsizer.recommender.context import SHARED, EvaluationContext
from rightsizer.recommender.dimension import collect_offers
from rightsizer.recommender.finding import LatencyDegradation
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.test_dimensions import SCALED, allowing, by_day_only, chosen, judged, smaller
from tests.recommender.test_fleet_size import seen

__all__ = ["seen"]
BUSY = replace(kit.endpoint("ml.g6.xlarge", 3), objective=Objective(2.0, min_instances=1))


def test_hours_that_would_save_are_proposed_with_the_setting_that_opens_them() -> None:
    opened = chosen(by_day_only(BUSY, allowing(OptionKind.SCHEDULE), 1500.0))
    found = by_day_only(BUSY, Policy(by_itself=TYPE_AND_COUNT), 1500.0)
    option = chosen(found)
    assert (option.kind, option.target, option.usd_per_month) == (opened.kind, opened.target, opened.usd_per_month)
    assert option.in_place, "the journal carries it out after an approval"
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NEEDS_APPROVAL)
    assert "Limits does not open schedule to automatic mode" in found.gate_reason.sentence
    assert '{"dimensions": ["schedule"]}' in option.notes[-1]
    assert "schedule (1 to 3 × ml.g6.xlarge) would save $" in found.reason.sentence
    assert "another endpoint" not in found.reason.sentence
    assert found.replay is not None, "who is asked sees what the past days would have been"


def test_what_saves_more_than_the_change_that_is_applied_stands_behind_it() -> None:
    found = by_day_only(
        replace(kit.endpoint("ml.g6.xlarge", 4), objective=BUSY.objective), Policy(by_itself=TYPE_AND_COUNT), 1500.0
    )
    assert (found.gate, chosen(found).kind) == (Gate.APPLY, OptionKind.INSTANCE_COUNT)
    behind = [o for o in found.options if o.kind is OptionKind.SCHEDULE]
    assert [o.saving_usd_per_month > chosen(found).saving_usd_per_month for o in behind] == [True]
    assert not behind[0].by_itself, "automatic mode never takes it, also where the chosen one lacks capacity"


def test_routing_that_needs_fewer_instances_is_proposed() -> None:
    random = kit.endpoint("ml.g5.xlarge", 4, p95_s=0.9, routing="RANDOM")
    found = judged(random, Policy(by_itself=TYPE_AND_COUNT), per_slot=200.0, gpu=2.0)
    assert (chosen(found).kind, chosen(found).target.instance_count) == (OptionKind.ROUTING, 2)
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NEEDS_APPROVAL)


def test_a_minimum_that_the_load_does_not_need_is_proposed() -> None:
    found = judged(smaller(scaling=(SCALED,)), Policy(by_itself=TYPE_AND_COUNT), per_slot=20.0)
    option = chosen(found)
    assert option.kind is OptionKind.AUTOSCALING
    assert (option.target.minimum or 9) < 4
    assert option.target.maximum == 6
    assert found.gate is Gate.PROPOSE


def test_what_saves_no_more_than_an_open_change_is_not_mentioned() -> None:
    found = judged(smaller(), Policy(by_itself=TYPE_AND_COUNT))
    assert found.gate is not Gate.SILENT
    assert all(option.target.hourly_counts is None for option in found.options)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"scaling": (SCALED,)}, id="hours would fight with autoscaling"),
        pytest.param({"kind": EndpointKind.ASYNC}, id="asynchronous"),
        pytest.param({"kind": EndpointKind.SHADOW}, id="not plain"),
    ],
)
def test_hours_are_not_proposed_where_they_cannot_be_carried_out(given: dict[str, Any]) -> None:
    found = by_day_only(replace(BUSY, **given), Policy(by_itself=TYPE_AND_COUNT), 1500.0)
    assert all(option.target.hourly_counts is None for option in found.options)


@pytest.mark.parametrize("kind", [EndpointKind.ASYNC, EndpointKind.MULTI_VARIANT, EndpointKind.MULTI_MODEL])
@pytest.mark.parametrize("dimension", sorted(ADDABLE))
def test_a_dimension_is_looked_at_on_the_same_kinds_of_endpoint_whether_it_is_open_or_closed(
    kind: EndpointKind, dimension: OptionKind
) -> None:
    crowd = replace(kit.endpoint("ml.g6.xlarge", 3, routing="RANDOM", kind=kind), objective=BUSY.objective)
    scaled = replace(crowd, scaling=(SCALED,)) if dimension is OptionKind.AUTOSCALING else crowd
    found = [by_day_only(scaled, policy, 1500.0) for policy in (Policy(by_itself=TYPE_AND_COUNT), allowing(dimension))]
    shut, opened = ([(o.kind, o.target, o.usd_per_month) for o in each.options] for each in found)
    assert opened == shut
    why = [[e.reason.code for e in each.excluded if e.dimension is dimension] for each in found]
    assert why == [[Code.OTHER_KIND]] * 2


def answers_of(found: Recommendation, context: EvaluationContext) -> list[Option | Excluded]:
    """What each dimension of the search says, open or closed."""
    return [answer for one in DIMENSIONS if ADDABLE & set(one.kinds) for answer in collect_offers(one, context, found)]


HARM = LatencyDegradation(Reason(Code.UNDER_PROVISIONED, "users wait"), is_severe=False)


@pytest.mark.parametrize(("sign", "value"), [("find_degradation", HARM), ("late_budget_used", 1.5)])
def test_nothing_closed_is_proposed_while_users_wait(
    seen: list[EvaluationContext], monkeypatch: pytest.MonkeyPatch, sign: str, value: object
) -> None:
    found = by_day_only(BUSY, Policy(by_itself=TYPE_AND_COUNT), 1500.0)
    assert chosen(found).kind is OptionKind.SCHEDULE
    assert any(isinstance(a, Option) for a in answers_of(replace(found, options=()), seen[-1]))
    monkeypatch.setattr(alternatives, sign, lambda at: value)
    answers = answers_of(replace(found, options=()), seen[-1])
    assert [a.dimension for a in answers if isinstance(a, Excluded)] == sorted(ADDABLE)
    assert not any(isinstance(a, Option) for a in answers)


def test_where_everything_is_open_nothing_is_closed(seen: list[EvaluationContext]) -> None:
    found = by_day_only(BUSY, allowing(*ADDABLE), 1500.0)
    assert not any(isinstance(answer, Option) for answer in answers_of(found, seen[-1]))


def test_each_closed_dimension_that_is_not_offered_says_why() -> None:
    """Law 7: silence has a reason."""
    found = judged(kit.endpoint("ml.g5.xlarge", 1), Policy(by_itself=TYPE_AND_COUNT))
    why = {e.dimension: e.reason for e in found.excluded if e.dimension in ADDABLE}
    assert set(why) == ADDABLE
    assert {reason.code for reason in why.values()} == {Code.NOT_APPLICABLE}
    even = judged(
        kit.endpoint("ml.g5.xlarge", 3, p95_s=0.9), Policy(by_itself=TYPE_AND_COUNT), per_slot=700.0, gpu=60.0
    )
    why = {e.dimension: e.reason for e in even.excluded if e.dimension in ADDABLE}
    assert set(why) == ADDABLE, [o.kind for o in even.options]


def opened(found: Recommendation) -> dict[OptionKind | None, str]:
    return {e.dimension: e.reason.sentence for e in found.excluded if e.dimension in ADDABLE}


def test_each_open_dimension_that_no_option_moves_says_why() -> None:
    every, steady = allowing(*ADDABLE), kit.endpoint("ml.g5.xlarge", 3, p95_s=0.9)
    one = judged(kit.endpoint("ml.g5.xlarge", 1), every)
    assert opened(one) == {kind: "of use only where two instances or more run" for kind in ADDABLE}
    busy = judged(steady, replace(every, tests_per_month=0), per_slot=700.0, gpu=60.0)
    assert not busy.options
    assert opened(busy)[OptionKind.SCHEDULE] == f"3 × ml.g5.xlarge would cost ${busy.usd_per_month:,.2f} a month"
    fewer = judged(steady, every, per_slot=100.0, gpu=20.0)
    saved = (
        f"schedule saves no more than what is offered without it (${chosen(fewer).saving_usd_per_month:,.2f} a month)"
    )
    assert opened(fewer)[OptionKind.SCHEDULE] == saved
    assert opened(fewer)[OptionKind.ROUTING] == "requests go to the least busy instance already"


def test_an_open_dimension_that_is_offered_is_not_ruled_out() -> None:
    found = by_day_only(BUSY, allowing(*ADDABLE), 1500.0)
    assert chosen(found).kind is OptionKind.SCHEDULE
    assert set(opened(found)) == ADDABLE - {OptionKind.SCHEDULE}
    unseen = kit.endpoint("ml.g5.xlarge", 4, p95_s=0.9, routing="RANDOM")
    random = judged(unseen, allowing(*ADDABLE), per_slot=60.0, gpu=2.0)
    assert chosen(random).kind is OptionKind.ROUTING
    first = "routing is offered, and one change moves one of them: schedule is looked at again after it"
    assert opened(random)[OptionKind.SCHEDULE] == first


@pytest.mark.parametrize(("sign", "value"), [("find_degradation", HARM), ("late_budget_used", 1.5)])
def test_open_dimensions_say_that_users_wait(
    seen: list[EvaluationContext], monkeypatch: pytest.MonkeyPatch, sign: str, value: object
) -> None:
    found = by_day_only(BUSY, allowing(*ADDABLE), 1500.0)
    monkeypatch.setattr(alternatives, sign, lambda at: value)
    why = {
        e.dimension: e.reason.code for e in answers_of(replace(found, options=()), seen[-1]) if isinstance(e, Excluded)
    }
    assert why[OptionKind.SCHEDULE] is (
        Code.UNDER_PROVISIONED if sign == "find_degradation" else Code.LATE_BUDGET_SPENT
    )
    assert why[OptionKind.ROUTING] is Code.NOT_APPLICABLE, "what can never save there needs no other reason"


def test_what_an_open_dimension_is_told_does_not_contradict_what_is_done() -> None:
    """The traffic jumped on a fleet that no change of ours made: it is sized all the same."""
    calls = lambda i: 60.0 if i < 13 * 288 else 180.0  # noqa: E731
    steady = kit.steady(latency_s=0.3, gpu=2.0, memory=20.0)
    windows = [kit.window({**steady, ("Invocations", "Sum"): calls})]
    endpoint = kit.endpoint("ml.g6.xlarge", 4, p95_s=0.9)
    found = judge(endpoint, windows, kit.prices(), kit.catalogue(), {}, History(), allowing(*ADDABLE), kit.NOW)
    assert found.finding is Finding.OVER_PROVISIONED
    assert opened(found)
    assert not [why for why in opened(found).values() if "jumped" in why]


def test_the_setting_that_is_named_keeps_what_is_open_already() -> None:
    option = chosen(by_day_only(BUSY, allowing(OptionKind.ROUTING), 1500.0))
    assert '{"dimensions": ["routing", "schedule"]}' in option.notes[-1]


def test_stricter_reasons_go_before_the_closed_dimension() -> None:
    """Who opens the dimension must not be asked again for a reason that was there before."""
    asked = by_day_only(replace(BUSY, mode=Mode.PROPOSE), Policy(by_itself=TYPE_AND_COUNT), 1500.0)
    assert (asked.gate, asked.gate_reason.code) == (Gate.PROPOSE, Code.NOT_OPTED_IN)
    owned = by_day_only(replace(BUSY, owned_by="CloudFormation stack x"), Policy(by_itself=TYPE_AND_COUNT), 1500.0)
    assert (owned.gate, owned.gate_reason.code) == (Gate.PROPOSE, Code.OWNED_BY_STACK)


def test_a_closed_dimension_that_saves_too_little_does_not_hide_a_large_alternative() -> None:
    """Three instances of slow requests, quiet at night, whose owner would take an asynchronous endpoint."""
    made = kit.steady(per_slot=20.0, latency_s=12.0, memory=90.0)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        baseline = made[key]
        made[key] = lambda i, usual=baseline: usual if 96 <= i % 288 < 216 else 0.0  # type: ignore[misc]
    slow = replace(kit.endpoint("ml.g6.xlarge", 3, p95_s=60.0), tags={"rightsizer:async-ok": "true"})
    for least in (Decimal(50), Decimal(1000)):
        policy = replace(Policy(by_itself=TYPE_AND_COUNT), minimum_saving_usd=least)
        found = judge(slow, [kit.window(made)], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)
        told = {o.kind for o in found.options} | {e.dimension for e in found.excluded}
        assert OptionKind.ASYNC in {o.kind for o in found.options}, (found.reason.sentence, told)
        assert told >= ADDABLE


def test_a_pool_of_a_change_that_saves_too_little_does_not_push_out_the_other_ways() -> None:
    policy = replace(Policy(by_itself=TYPE_AND_COUNT), minimum_saving_usd=Decimal(10_000), tests_per_month=0)
    found = judged(kit.endpoint("ml.g6.2xlarge", 1, p95_s=0.9), policy, memory=20.0)
    assert found.gate_reason.code is Code.SAVING_TOO_SMALL
    kinds = [o.kind for o in found.options]
    assert kinds[0] not in ADDABLE | {OptionKind.INSTANCE_POOLS}
    assert OptionKind.INSTANCE_POOLS in kinds, "it stands behind the change as before"


def test_what_two_contexts_share_are_cached_properties_of_a_context() -> None:
    named = {name: vars(EvaluationContext).get(name) for name in SHARED}
    assert [name for name, value in named.items() if not isinstance(value, cached_property)] == []
