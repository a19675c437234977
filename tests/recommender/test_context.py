"""What one endpoint's options are weighed against: which replays are made, what may change, and what is kept."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.demand import Fleet, ReplayResult
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.history import History, PastEnd
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.option import LatencyObjective, OptionKind, Target
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.recommender import context as module
from rightsizer.recommender.context import SHARED, EvaluationContext, on_days, share_results
from tests.recommender import kit, plain
from tests.recommender.plain_context import OTHER, SCALED, TYPE, context, running

CLOSED = {"by_itself": TYPE_AND_COUNT}


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was handed to the replay."""
    asked: list[tuple[Any, ...]] = []

    def replay(*given: Any) -> ReplayResult:
        asked.append(given)
        return ReplayResult(len(asked), 0, 0.0)

    monkeypatch.setattr(module, "replay_requests", replay)
    monkeypatch.setattr(module, "stream_of", lambda *given: given)
    return asked


def test_a_plan_is_replayed_once_though_its_figures_differ_behind_the_fourth_digit(
    replayed: list[tuple[Any, ...]],
) -> None:
    seen, fleet = context(), Fleet((2,) * 24, 1, False, 1.23456, 1.05678)
    assert seen.replay(fleet) is seen.replay(replace(fleet, slower=1.234601, load=1.056801))
    assert len(replayed) == 1
    assert seen.replay(replace(fleet, slower=1.2347)) is not seen.replay(fleet)
    assert seen.replay(replace(fleet, load=1.0569)) is not seen.replay(fleet)
    assert replayed[0] == (seen.stream, fleet, seen.objective.p95_s, seen.alarm_share, seen.alarm_s)


def test_the_reference_fleet_is_replayed_as_it_served(replayed: list[tuple[Any, ...]]) -> None:
    seen = context((3,) * 12 + (1,) * 12, random_base=False)
    seen.reference_replay_at(1.15)
    assert replayed[0][1] == Fleet((3,) * 12 + (1,) * 12, seen.workers, False, 1.0, 1.15)


def test_days_on_the_reference_fleet_are_replayed_once_for_all_that_it_depends_on(
    replayed: list[tuple[Any, ...]],
) -> None:
    seen = context()
    days = seen.days[-2:]
    once = seen.reference_replay_of(days, 500)
    assert seen.reference_replay_of(days, 500) is once
    assert replayed[0] == (
        (days, seen.service_times, 500),
        Fleet((4,) * 24, seen.workers, seen.random_base, 1.0),
        seen.objective.p95_s,
    )
    assert seen.reference_replay_of(days, 501) is not once
    assert seen.reference_replay_of(seen.days[-3:], 500) is not once
    looser = replace(seen, objective=LatencyObjective(9.0, True, "tag"))
    assert looser.reference_replay_of(days, 500) is not once, "they share what was replayed"
    assert len(replayed) == 4


def test_few_requests_behind_an_objective_may_have_some_late_a_week() -> None:
    """Of 200 requests on seven days more may be late than the share alone would say; of many the share decides."""
    seen = context()
    few = replace(seen, days=[replace(one, requests=(0.1,) * 288) for one in seen.days])
    calls = 7 * 288 * 0.1
    assert few.busy_requests == pytest.approx((calls, 7))
    policy = seen.policy
    assert few.allowed_late_share(0.002) == pytest.approx(policy.late_allowed(0.002, True, 0.0, calls, 7))
    assert few.allowed_late_share(0.002) > 0.002
    assert few.allowed_late_share(0.9) == 0.9
    undeclared = replace(few, objective=LatencyObjective(4.0, False, "today"))
    assert undeclared.allowed_late_share(0.002) == 0.002


def test_a_dimension_is_open_where_the_settings_open_it_on_a_plain_endpoint() -> None:
    seen = context()
    queued = replace(seen, endpoint=replace(seen.endpoint, kind=EndpointKind.ASYNC))
    assert seen.may_change(OptionKind.SCHEDULE)
    assert not context(policy=CLOSED).may_change(OptionKind.SCHEDULE)
    assert not queued.may_change(OptionKind.SCHEDULE)


def test_counts_by_the_hour_may_be_set_on_the_type_that_runs_alone_and_as_the_only_change() -> None:
    seen, hours = context(), replace(SCALED, policies=(), scheduled=({"ScheduledActionName": "rightsizer-c-08"},))
    assert seen.may_set_hourly_counts(TYPE, rerouted=False)
    assert not seen.may_set_hourly_counts(OTHER, rerouted=False)
    assert not seen.may_set_hourly_counts(TYPE, rerouted=True)
    assert not context(policy=CLOSED).may_set_hourly_counts(TYPE, rerouted=False)
    assert not context(scaling=(SCALED,)).may_set_hourly_counts(TYPE, rerouted=False)
    assert not context(scaling=(hours,)).may_set_hourly_counts(TYPE, rerouted=False)
    assert context(scaling=(hours,), is_strained=True).may_set_hourly_counts(TYPE, rerouted=False)


@pytest.mark.parametrize(
    ("mean", "count", "larger"), [(4.02, 1, True), (4.005, 9, False), (None, 5, True), (None, 4, False)]
)
def test_more_than_runs_is_more_than_a_hundredth_of_an_instance(mean: float | None, count: int, larger: bool) -> None:
    option = plain.option(target=Target(TYPE, count), mean_instances=mean)
    assert context(instances=4.0).is_larger(option) is larger
    assert not running(context(instances=4.0), OTHER).is_larger(option)


def test_counts_by_the_hour_of_ours_are_what_a_larger_fleet_is_held_against() -> None:
    hours = replace(SCALED, policies=(), scheduled=({"ScheduledActionName": "rightsizer-c-08"},))
    past = (
        plain.past(TYPE, from_type=TYPE, mean_instances=9.0),
        plain.past(TYPE, from_type=TYPE, mean_instances=5.0),
        plain.past(TYPE, from_type=TYPE, mean_instances=7.0, ended=PastEnd.ROLLED_BACK),
    )
    seen = context(scaling=(hours,), past=past, instances=4.0)
    for mean, larger in ((5.0, False), (5.02, True)):
        assert seen.is_larger(plain.option(target=Target(TYPE, 1), mean_instances=mean)) is larger
    unknown = context(scaling=(hours,), past=(replace(past[1], mean_instances=None),), instances=4.0)
    assert unknown.is_larger(plain.option(target=Target(TYPE, 1), mean_instances=4.02))
    owners = context(scaling=(SCALED,), past=past, instances=4.0)
    assert owners.is_larger(plain.option(target=Target(TYPE, 1), mean_instances=4.02))


def test_days_apart_keep_what_was_computed_of_them_before() -> None:
    seen = context()
    days, base = seen.days[:2], seen.base[:3]
    apart = on_days(seen, days, base)
    assert (apart.days, apart.base) == (days, base)
    assert apart._replays is not seen._replays
    assert apart._of_days is not seen._of_days
    assert apart.reference_counts == (4,) * 24
    later = on_days(replace(seen, extra_margin=2), days, base)
    assert later.extra_margin == 2
    assert later._replays is apart._replays
    assert "reference_counts" in vars(later)
    assert "reference_counts" not in vars(on_days(seen, days, seen.base[:2]))
    assert on_days(seen, seen.days[:1], base)._replays is not apart._replays


def test_only_what_neither_dimensions_nor_late_requests_change_is_shared() -> None:
    seen = context()
    vars(seen).update({**dict.fromkeys(SHARED, 1), "allowed_slowdown": 2.0})
    other = context(extra_margin=3)
    assert share_results(seen, other) is other
    assert {name: value for name, value in vars(other).items() if name in SHARED} == dict.fromkeys(SHARED, 1)
    assert "allowed_slowdown" not in vars(other)
    assert other.extra_margin == 3


def test_the_failed_starts_of_a_model_are_weighed_by_the_price_of_their_types() -> None:
    seen = context()
    price = seen.inputs.prices.find(TYPE)
    assert price is not None
    assert EvaluationContext._usd_per_hour(seen, TYPE) == price.usd_per_hour
    assert EvaluationContext._usd_per_hour(seen, "ml.unknown") is None


def test_the_policy_is_that_of_the_endpoints_environment_and_the_prices_are_of_the_hours_that_it_runs() -> None:
    inputs, endpoint = context().inputs, kit.endpoint(TYPE)
    here = inputs.for_endpoint(replace(endpoint, tags={"environment": "dev"}))
    assert here.policy.lone_instance < inputs.policy.lone_instance
    night = StoppedTime(kit.NOW - timedelta(days=1), kit.NOW - timedelta(hours=12))
    stopped = replace(inputs, history=History(stopped=(night,)))
    for tags, less in (({"rightsizer:hours": "mon-fri 08:00-18:00 UTC"}, True), ({}, False)):
        price = stopped.for_endpoint(replace(endpoint, tags=tags)).prices.find(TYPE)
        assert price is not None
        assert (price.hours_per_month < 700) is less
    assert inputs.for_endpoint(endpoint).policy == inputs.policy
